"""`report_findings`: what a review found, shown in the files themselves as the editor's diagnostics."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentd.protocol.messages import ToolKind
from agentd.tools.base import Action, Description, ToolContext, ToolError, ToolResult
from agentd.tools.targets import in_thread, locate
from agentd.workspace import files
from agentd.workspace.editor import Finding
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.text import BinaryContent, decode, lines_of

_MAX_FINDINGS = 200
_MAX_MESSAGE = 2_000
_SEVERITIES = {"error": 1, "warning": 2, "information": 3, "hint": 4}
_NAMES = {number: name for name, number in _SEVERITIES.items()}


class ReportFindings:
    """Replaces what the session shows of findings. Reads the files, and changes none."""

    name = "report_findings"
    description = (
        "Show what you found in a review in the user's editor, at the lines it is about. The list is whole: "
        "it replaces the one before, and an empty one clears it. Say what is wrong and why, one finding for "
        "each place; once some are fixed, report those that are left."
    )
    kind: ToolKind = "think"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "findings": {
                "type": "array",
                "maxItems": _MAX_FINDINGS,
                "items": {
                    "type": "object",
                    "properties": {
                        "file_path": {"type": "string"},
                        "line": {
                            "type": "integer",
                            "minimum": 1,
                            "description": "The first line it is about, as read_file numbers them.",
                        },
                        "end_line": {
                            "type": "integer",
                            "minimum": 1,
                            "description": "The last line. Default: the first.",
                        },
                        "severity": {"type": "string", "enum": list(_SEVERITIES)},
                        "message": {"type": "string", "pattern": "\\S", "maxLength": _MAX_MESSAGE},
                    },
                    "required": ["file_path", "line", "severity", "message"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["findings"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Report 3 findings`."""
        given = arguments.get("findings")
        count = len(given) if isinstance(given, list) else 0
        return Description(f"Report {_counted(count)}" if count else "Clear the findings")

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the files and lines. Raises ToolError that names each finding whose place does not exist."""
        read: dict[str, tuple[Place, str, list[str]]] = {}
        findings, wrong = [], []
        for number, given in enumerate(arguments["findings"]):
            try:
                name = given["file_path"]
                if name not in read:
                    read[name] = await _read(context, name)
                findings.append(_finding(given, *read[name]))
            except (WorkspaceError, BinaryContent, ToolError) as error:
                wrong.append(f"findings[{number}]: {error}")
        if wrong:
            raise ToolError("\n".join(["Nothing is shown, as some places do not exist.", *wrong]))

        async def run() -> ToolResult:
            return ToolResult.text(_told(findings, is_shown=context.show_findings(findings)))

        return Action(run)


async def _read(context: ToolContext, name: str) -> tuple[Place, str, list[str]]:
    """The file of that name, the editor's spelling of it, and its lines as the user sees them."""
    place = (await locate(context, name)).place
    document = await context.editor.document(place.path)
    if document is not None:
        return place, document.uri or place.uri, lines_of(document.text)
    snapshot = await in_thread(files.read, place)
    return place, place.uri, lines_of(decode(snapshot.data).text)


def _finding(given: Mapping[str, Any], place: Place, uri: str, lines: Sequence[str]) -> Finding:
    first = int(given["line"])
    last = int(given.get("end_line") or first)
    if last < first:
        raise ToolError(f"end_line {last} comes before line {first}.")
    if last > max(len(lines), 1):
        raise ToolError(f"{shown(place.given)} has {len(lines)} lines.")
    at = lines[first - 1] if lines else ""
    return Finding(
        uri=uri,
        path=place.path,
        first=first - 1,
        last=last - 1,
        message=given["message"].strip(),
        severity=_SEVERITIES[given["severity"]],
        indent=len(at) - len(at.lstrip(" \t")),
        last_line=lines[last - 1] if lines else "",
    )


def _told(findings: Sequence[Finding], *, is_shown: bool) -> str:
    if not is_shown:
        return "The user's editor cannot show findings. Tell them in your answer, each with file and line."
    return f"The user's editor shows {_counted(len(findings))}." if findings else "No findings are shown now."


def _counted(number: int) -> str:
    return "1 finding" if number == 1 else f"{number} findings"
