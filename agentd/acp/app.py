"""`agentd acp`: everything put together."""

from agentd.acp.dialect import ACP
from agentd.acp.editor import ClientFiles
from agentd.acp.face import AcpFace
from agentd.acp.options import SessionOptions
from agentd.acp.prompt_requests import PromptRequests
from agentd.acp.session_requests import SessionRequests
from agentd.daemon import service
from agentd.daemon.core import Ground, User, build
from agentd.daemon.door import Door
from agentd.daemon.service import Parts
from agentd.daemon.start import Start
from agentd.daemon.user_settings import UserSettings
from agentd.protocol.lines import encode_line
from agentd.workspace.editor import Disk


def serve(start: Start) -> int:
    """Serve one client until it, or a signal, ends that. Gives the exit code."""
    return service.serve(start, _assemble, encode_line)


def _assemble(ground: Ground) -> Parts:
    start, tasks = ground.start, ground.tasks
    user = User.read(start)
    settings = UserSettings(user.settings, start.allow_full, user.trust, user.rules)
    door = Door(ground.outbox, tasks, ACP)
    face = AcpFace(door, ground.outbox, tasks.start_soon)
    files = ClientFiles(door)
    core = build(ground, user, settings, face, Disk(), files.seen_by)
    sessions = SessionRequests(core, face, files, SessionOptions(core.house, core.engines.models), settings)
    prompts = PromptRequests(core, face, sessions, settings)
    requests = {**sessions.requests(), **prompts.requests()}
    door.serve(requests, prompts.notices(), lambda method, params: False)
    return Parts(door, core, files.end)
