"""`agentd acp`: everything put together."""

from agentd.acp.dialect import ACP
from agentd.acp.editor import ClientFiles
from agentd.acp.face import AcpFace
from agentd.acp.options import SessionOptions
from agentd.acp.prompt_requests import PromptRequests
from agentd.acp.session_requests import SessionRequests
from agentd.acp.telling import Options
from agentd.daemon import service
from agentd.daemon.core import Core, Ground, User, build
from agentd.daemon.door import Door
from agentd.daemon.service import Parts
from agentd.daemon.start import Start
from agentd.daemon.user_settings import UserSettings
from agentd.protocol.lines import encode_line
from agentd.tools.base import Toolbox
from agentd.workspace.editor import Disk


def serve(start: Start) -> int:
    """Serve one client until it, or a signal, ends that. Gives the exit code."""
    return service.serve(start, _assemble, encode_line)


class _Whole:
    """What the face needs of that which is built on it."""

    core: Core
    choices: SessionOptions

    @property
    def toolbox(self) -> Toolbox:
        """The tools of sessions."""
        return self.core.house.toolbox

    @property
    def options(self) -> Options:
        """The options of a session."""
        return self.choices.of


def _assemble(ground: Ground) -> Parts:
    start, tasks = ground.start, ground.tasks
    user = User.read(start)
    settings = UserSettings(user.settings, start.allow_full, user.trust, user.rules)
    door = Door(ground.outbox, tasks, ACP)
    whole = _Whole()
    face = AcpFace(door, ground.outbox, tasks.start_soon, whole)
    files = ClientFiles(door)
    core = build(ground, user, settings, face, Disk(), files.seen_by)
    whole.core = core
    whole.choices = SessionOptions(core.house, core.engines.models)
    sessions = SessionRequests(core, face, files, whole.choices, settings)
    prompts = PromptRequests(core, face, sessions, settings)
    notices = {**sessions.notices(), **prompts.notices()}
    door.serve({**sessions.requests(), **prompts.requests()}, notices, lambda method, params: False)
    return Parts(door, core, files.end)
