"""What every face stands on: sessions, models, tools and the user's settings, put together."""

import functools
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from anyio.abc import TaskGroup

from agentd.config.folders import config_file, data_dir, home_dir, own_places, skill_folders
from agentd.config.settings import ProviderSettings, Settings, load
from agentd.config.sources import Sources
from agentd.config.trust import Trust
from agentd.config.variables import passed_variables, take_keys
from agentd.daemon.lifetime import Lifetime
from agentd.daemon.outbox import Outbox
from agentd.daemon.start import Start
from agentd.daemon.user_settings import UserSettings
from agentd.permissions.store import RuleStore
from agentd.providers.apis import open_provider, open_recorded
from agentd.providers.base import Headers, Provider
from agentd.sessions.engines import ConfiguredEngines
from agentd.sessions.face import Face
from agentd.sessions.house import House
from agentd.sessions.store import Sessions
from agentd.tools.builtin import builtin_tools
from agentd.workspace import checkpoints
from agentd.workspace.editor import Editor
from agentd.workspace.environment import command_environment
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox
from agentd.workspace.skills import SkillFolders
from agentd.workspace.spills import sweep
from agentd.workspace.write_notes import WriteNotes

if TYPE_CHECKING:
    from agentd.workspace.git import Git

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ground:
    """What a face is put together on."""

    start: Start
    tasks: TaskGroup
    processes: Processes
    lifetime: Lifetime
    outbox: Outbox


@dataclass(frozen=True)
class User:
    """What the user has told agentd: settings, whom they trust, what they allowed for good."""

    settings: Settings
    trust: Trust
    rules: RuleStore

    @classmethod
    def read(cls, start: Start) -> "User":
        """Read it all, and take the keys that the settings name out of the environment."""
        settings = load(os.environ)
        take_keys(settings, start.secrets, os.environ)
        trust = Trust.of_user(os.environ, settings.trusted)
        return cls(settings, trust, RuleStore.of_user(os.environ))


@dataclass(frozen=True)
class Core:
    """All sessions and what they share."""

    house: House
    engines: ConfiguredEngines
    sessions: Sessions
    sandbox: Sandbox


def build(
    ground: Ground,
    user: User,
    settings: UserSettings,
    face: Face,
    editor: Editor,
    editor_for: Callable[[str], Editor] | None = None,
) -> Core:
    """Put together what `face` and `editor` belong to. `editor_for` gives the editor as a session sees it.

    What killed daemons left is removed in the background.
    """
    start, tasks, processes = ground.start, ground.tasks, ground.processes
    engines = ConfiguredEngines(
        user.settings, lambda name: start.secrets.take(name, os.environ), _provider_opener(start)
    )
    sandbox = Sandbox(processes, user.settings.sandbox, own_places(os.environ), home_dir())
    folder = data_dir(os.environ)
    house = House(
        settings=settings,
        engines=engines,
        toolbox=builtin_tools(processes, sandbox),
        face=face,
        editor=editor,
        environment=command_environment(
            os.environ, passed_variables(user.settings, start.secrets, os.environ)
        ),
        sources=Sources(),
        start_soon=tasks.start_soon,
        write_notes=WriteNotes(folder / "writes"),
        spills=folder / "output",
        sandbox=sandbox,
        rules=user.rules,
        config_folder=config_file(os.environ).parent,
        skills=SkillFolders(skill_folders(os.environ)),
        git=functools.partial(_git, processes, sandbox),
        editor_for=editor_for,
        checkpoint_bytes=user.settings.checkpoints.max_mb * 2**20,
    )
    sessions = Sessions(folder / "sessions", house)
    tasks.start_soon(clear_away, house.write_notes, sessions, folder)
    return Core(house, engines, sessions, sandbox)


def _provider_opener(start: Start) -> Callable[[ProviderSettings, str | None, Headers], Provider]:
    """What opens providers: so that they are recorded, where the daemon was started for that."""
    if start.recording is None:
        return open_provider
    from agentd.providers.recording import Recording

    return functools.partial(open_recorded, recording=Recording(start.recording, start.secrets))


def _git(processes: Processes, sandbox: Sandbox, folder: Path) -> "Git":
    from agentd.workspace.git import Git  # only for workspaces that are too large to be read

    return Git(folder, processes, sandbox)


async def clear_away(notes: WriteNotes, sessions: Sessions, folder: Path) -> None:
    """Take back and remove what killed daemons left, in the data `folder` too; nobody waits for it.

    What fails on the way is logged: it is no reason to end a daemon, and the next one tries again.
    """
    in_thread = functools.partial(anyio.to_thread.run_sync, abandon_on_cancel=True)
    # What a kill left aside has its name again before a rewind looks for it.
    for clear in (
        functools.partial(in_thread, notes.sweep),
        sessions.settle_rewinds,
        functools.partial(in_thread, sweep, folder / "output"),
        functools.partial(in_thread, checkpoints.sweep, folder / "sessions"),
    ):
        try:
            await clear()
        except OSError as error:
            log.warning("what a killed daemon left is cleared away by the next one: %s", error)
