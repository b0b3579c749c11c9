"""The daemon: everything put together, started, and ended in good order."""

import asyncio
import contextvars
import functools
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from agentd.config.folders import config_file, data_dir, home_dir, own_places, skill_folders
from agentd.config.settings import ProviderSettings, load
from agentd.config.sources import Sources
from agentd.config.trust import Trust
from agentd.config.variables import passed_variables, take_keys
from agentd.permissions.store import RuleStore
from agentd.protocol.errors import RpcError
from agentd.protocol.frames import BrokenFraming, Oversized
from agentd.providers.apis import open_provider, open_recorded
from agentd.providers.base import Headers, Provider
from agentd.server.commands import Commands
from agentd.server.configuration import EditorConfiguration
from agentd.server.connection import Connection
from agentd.server.door import Door
from agentd.server.editor import ClientEditor
from agentd.server.face import EditorFace
from agentd.server.language_server import LanguageServer
from agentd.server.lifetime import Lifetime
from agentd.server.log import set_up_log
from agentd.server.methods import Methods
from agentd.server.outbox import Outbox
from agentd.server.shown import Shown
from agentd.server.start import Start
from agentd.server.stdin import read_frames
from agentd.sessions.engines import ConfiguredEngines
from agentd.sessions.house import House
from agentd.sessions.store import Sessions
from agentd.tools.builtin import builtin_tools
from agentd.workspace import checkpoints
from agentd.workspace.environment import command_environment
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox
from agentd.workspace.skills import SkillFolders
from agentd.workspace.spills import sweep
from agentd.workspace.write_notes import WriteNotes

if TYPE_CHECKING:
    from agentd.workspace.git import Git

log = logging.getLogger(__name__)

CLOSE_SECONDS = 1.2
"""How long runs may take to close when the daemon ends. With the last writes this stays under two seconds."""
ANSWER_SECONDS = 0.2
DRAIN_SECONDS = 0.3
TOOLS_GRACE_SECONDS = 0.3
SWEEP_SECONDS = 0.2


def serve(start: Start) -> int:
    """Serve one client until it, or a signal, ends that. Gives the exit code."""
    log_handler = set_up_log(start.secrets, os.environ.get("AGENTD_LOG", "WARNING"))
    try:
        return anyio.run(_serve, start)
    except Exception:
        log.exception("the daemon failed")
        return 1
    finally:
        log_handler.flush()


async def _serve(start: Start) -> int:
    async with anyio.create_task_group() as tasks, Processes() as processes:
        lifetime = Lifetime(tasks.start_soon)
        outbox = Outbox(start.fd_out, on_lost=lambda: lifetime.end(1, "stdout is closed"))
        server = _assemble(start, tasks, processes, lifetime, outbox)
        tasks.start_soon(lifetime.watch_signals)
        tasks.start_soon(server.language_server.run)
        lifetime.watch_stdout(start.fd_out)
        if start.client_process is not None:
            lifetime.follow_parent(start.client_process)
        server.take_over(start)
        await lifetime.ended.wait()
        with anyio.CancelScope(shield=True):
            await server.close(processes)
            await outbox.close(DRAIN_SECONDS)
        tasks.cancel_scope.cancel()
    return lifetime.code


class _Server:
    """The parts that have a beginning and an end."""

    def __init__(
        self,
        door: Door,
        lifetime: Lifetime,
        sessions: Sessions,
        engines: ConfiguredEngines,
        editor: ClientEditor,
        sandbox: Sandbox,
    ) -> None:
        self.language_server = editor.documents
        self._editor = editor
        self._sandbox = sandbox
        self._door = door
        self._lifetime = lifetime
        self._sessions = sessions
        self._engines = engines

    def take_over(self, start: Start) -> None:
        """Handle the frames that were read before us, then read on."""
        for number, frame in enumerate(start.frames):
            self._on_frame(frame, answered=start.answered and number == 0)
        if start.broken is not None or start.ended:
            self._on_end(start.broken)
            return
        call = asyncio.get_running_loop().call_soon_threadsafe
        call_here = functools.partial(
            call, context=contextvars.copy_context()
        )  # where anyio finds its backend
        read_frames(start.fd_in, start.reader, call_here, self._on_frame, self._on_end)

    def _on_frame(self, frame: bytes | Oversized, answered: bool = False) -> None:
        self._door.receive(frame, answered=answered)

    def _on_end(self, broken: BrokenFraming | None) -> None:
        if broken is None:
            self._lifetime.end(0, "stdin is at its end")
            return
        log.error("stdin is no sequence of frames any more: %s", broken)
        self._door.refuse(RpcError("parse", f"Broken framing: {broken}. The daemon ends."))
        self._lifetime.end(2, "broken framing")

    async def close(self, processes: Processes) -> None:
        """End what runs, its tools first, and answer who waits."""
        self._editor.end()
        with anyio.move_on_after(CLOSE_SECONDS):
            async with anyio.create_task_group() as closing:
                closing.start_soon(self._sessions.close_all, "interrupted")
                closing.start_soon(processes.shutdown, TOOLS_GRACE_SECONDS)
        await self._door.answer_all(ANSWER_SECONDS)
        with anyio.move_on_after(DRAIN_SECONDS):
            await self._engines.aclose()
        with anyio.move_on_after(SWEEP_SECONDS):  # what is left then is swept by a later daemon
            await anyio.to_thread.run_sync(self._sandbox.close, abandon_on_cancel=True)


def _provider_opener(start: Start) -> Callable[[ProviderSettings, str | None, Headers], Provider]:
    """What opens providers: so that they are recorded, where the daemon was started for that."""
    if start.recording is None:
        return open_provider
    from agentd.providers.recording import Recording

    return functools.partial(open_recorded, recording=Recording(start.recording, start.secrets))


def _git(processes: Processes, sandbox: Sandbox, folder: Path) -> "Git":
    from agentd.workspace.git import Git  # only for workspaces that are too large to be read

    return Git(folder, processes, sandbox)


async def _sweep(notes: WriteNotes, spills: Path, sessions: Path) -> None:
    """Remove what killed daemons have left; nobody waits for it."""
    await anyio.to_thread.run_sync(notes.sweep, abandon_on_cancel=True)
    await anyio.to_thread.run_sync(sweep, spills, abandon_on_cancel=True)
    await anyio.to_thread.run_sync(checkpoints.sweep, sessions, abandon_on_cancel=True)


def _assemble(
    start: Start, tasks: TaskGroup, processes: Processes, lifetime: Lifetime, outbox: Outbox
) -> _Server:
    settings = load(os.environ)
    take_keys(settings, start.secrets, os.environ)
    rules = RuleStore.of_user(os.environ)
    trust = Trust.of_user(os.environ, settings.trusted)
    connection = Connection(settings, start.allow_full, trust, rules)
    engines = ConfiguredEngines(
        settings, lambda name: start.secrets.take(name, os.environ), _provider_opener(start)
    )
    door = Door(outbox, tasks, lambda clean: lifetime.end(0 if clean else 1, "exit"), start.secrets.redact)
    sandbox = Sandbox(processes, settings.sandbox, own_places(os.environ), home_dir())
    face = EditorFace(door, outbox, tasks.start_soon)
    language_server = LanguageServer(lambda: editor.position_encoding)
    editor = ClientEditor(language_server, door)
    folder = data_dir(os.environ)
    house = House(
        settings=connection,
        engines=engines,
        toolbox=builtin_tools(processes, sandbox),
        face=face,
        editor=editor,
        environment=command_environment(os.environ, passed_variables(settings, start.secrets, os.environ)),
        sources=Sources(),
        start_soon=tasks.start_soon,
        write_notes=WriteNotes(folder / "writes"),
        spills=folder / "output",
        sandbox=sandbox,
        rules=rules,
        config_folder=config_file(os.environ).parent,
        skills=SkillFolders(skill_folders(os.environ)),
        git=functools.partial(_git, processes, sandbox),
        checkpoint_bytes=settings.checkpoints.max_mb * 2**20,
    )
    language_server.on_save = house.writers.note_save
    tasks.start_soon(_sweep, house.write_notes, folder / "output", folder / "sessions")
    sessions = Sessions(folder / "sessions", house)
    tasks.start_soon(sessions.settle_rewinds)
    configuration = EditorConfiguration(door, connection, face)
    methods = Methods(
        connection, face, house, engines, sessions, lifetime, door, start.secrets, editor, configuration
    )
    commands = Commands(methods, Shown(door, lambda: connection.client), editor)
    requests = {**methods.requests(), **commands.requests()}
    door.serve(requests, methods.notices(), language_server.take)
    return _Server(door, lifetime, sessions, engines, editor, sandbox)
