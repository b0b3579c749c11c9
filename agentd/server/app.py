"""The language server: everything put together."""

from agentd.daemon import service
from agentd.daemon.core import Ground, User, build
from agentd.daemon.door import Door
from agentd.daemon.service import Parts
from agentd.daemon.start import Start
from agentd.server.commands import Commands
from agentd.server.configuration import EditorConfiguration
from agentd.server.connection import Connection
from agentd.server.dialect import LSP
from agentd.server.editor import ClientEditor
from agentd.server.face import EditorFace
from agentd.server.language_server import LanguageServer
from agentd.server.methods import Methods
from agentd.server.shown import Shown
from agentd.server.trace import Trace


def serve(start: Start) -> int:
    """Serve one editor until it, or a signal, ends that. Gives the exit code."""
    return service.serve(start, _assemble)


def _assemble(ground: Ground) -> Parts:
    start, tasks, lifetime, outbox = ground.start, ground.tasks, ground.lifetime, ground.outbox
    user = User.read(start)
    connection = Connection(user.settings, start.allow_full, user.trust, user.rules)
    trace = Trace(outbox, start.secrets.redact)
    door = Door(outbox, tasks, LSP, lambda clean: lifetime.end(0 if clean else 1, "exit"), trace)
    face = EditorFace(door, outbox, tasks.start_soon)
    language_server = LanguageServer(lambda: editor.position_encoding)
    editor = ClientEditor(language_server, door)
    core = build(ground, user, connection, face, editor)
    language_server.on_save = core.house.writers.note_save
    configuration = EditorConfiguration(door, connection, face)
    methods = Methods(
        connection, face, core.house, core.engines, core.sessions, lifetime, door, start.secrets, editor,
        configuration, trace,
    )  # fmt: skip
    commands = Commands(methods, Shown(door, lambda: connection.client), editor)
    requests = {**methods.requests(), **commands.requests()}
    door.serve(requests, methods.notices(), language_server.take)
    tasks.start_soon(language_server.run)
    return Parts(door, core, editor.end)
