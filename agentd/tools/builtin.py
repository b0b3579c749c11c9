"""The tools that agentd brings along, in the order the model sees them."""

from agentd.tools.background import BashKill, BashOutput
from agentd.tools.base import Toolbox
from agentd.tools.bash import Bash
from agentd.tools.checks import EditChecks
from agentd.tools.delete_file import DeleteFile
from agentd.tools.diagnostics import Diagnostics
from agentd.tools.edit_file import EditFile
from agentd.tools.find_files import FindFiles
from agentd.tools.list_directory import ListDirectory
from agentd.tools.move_file import MoveFile
from agentd.tools.read_file import ReadFile
from agentd.tools.report_findings import ReportFindings
from agentd.tools.search_files import SearchFiles
from agentd.tools.task import Task
from agentd.tools.todo import TodoRead, TodoWrite
from agentd.tools.web_fetch import WebFetch
from agentd.tools.write_file import WriteFile
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox


def builtin_tools(processes: Processes, sandbox: Sandbox | None = None) -> Toolbox:
    """All built-in tools; commands run under `processes`, in mode `auto` in the sandbox."""
    checks = EditChecks(processes, sandbox)
    return Toolbox(
        (
            ReadFile(),
            WriteFile(checks),
            EditFile(checks),
            MoveFile(),
            DeleteFile(),
            ListDirectory(),
            FindFiles(),
            SearchFiles(),
            Diagnostics(processes, sandbox),
            ReportFindings(),
            Bash(processes, sandbox),
            BashOutput(),
            BashKill(),
            TodoWrite(),
            TodoRead(),
            WebFetch(),
            Task(),
        )
    )
