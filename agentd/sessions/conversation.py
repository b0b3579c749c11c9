"""What a model is told of a session: `agent.host.Conversation`, in a run, and for a summary."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread

from agentd.agent.instructions import NOTHING, Instructions, read_instructions
from agentd.agent.skills import catalogue
from agentd.agent.system_prompt import CHILD, system_prompt
from agentd.config.compaction_settings import CompactionSettings
from agentd.config.sources import Sources
from agentd.protocol.events import Memory
from agentd.protocol.messages import ContentBlock, Message, ResourceContent, TodoItem, UserMessage
from agentd.protocol.text import clean_text
from agentd.providers.base import Model
from agentd.sessions.house import House
from agentd.sessions.log import SessionLog
from agentd.tools.base import Toolbox
from agentd.tools.skill import with_skills
from agentd.workspace.paths import UriError, WorkspaceError, path_of
from agentd.workspace.skills import NO_SKILLS, Skill

DAMAGED = (
    "Parts of this conversation were lost and are not shown to you. Where something seems to be missing, "
    "look at the files or ask."
)
"""What the model is told where lines of the journal could not be read."""

LOOK_SECONDS = 2.0
"""For files of instructions, skills and commands; on a disk that hangs, work goes on without them."""


class SessionConversation:
    """The session's side of a conversation with a model."""

    def __init__(self, root: Path, log: SessionLog, house: House) -> None:
        self._root = root
        self._log = log
        self._house = house
        self._instructions: Instructions = NOTHING
        self._skills = NO_SKILLS
        self._skilled = with_skills(house.toolbox)

    @property
    def sources(self) -> Sources:
        """Time and ids."""
        return self._house.sources

    @property
    def transcript(self) -> Sequence[Message]:
        """All messages, oldest first."""
        return self._log.state.messages

    @property
    def memory(self) -> Memory | None:
        """What requests show of a history that was made shorter."""
        return self._log.state.memory

    @property
    def todo(self) -> Sequence[TodoItem]:
        """The to-do list."""
        return self._log.state.todo

    @property
    def toolbox(self) -> Toolbox:
        """The tools; the one for skills only where there are any."""
        return self._skilled if self.skills else self._house.toolbox

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that can be loaded now."""
        return self._skills.loadable(trusted=self.is_trusted) if self._house.gives_skills else ()

    @property
    def compaction(self) -> CompactionSettings:
        """When the history is made shorter by itself."""
        return self._house.settings.compaction

    @property
    def is_trusted(self) -> bool:
        """Whether the user trusts the workspace."""
        return self._house.settings.trusts(self._root)

    async def look_for_instructions(self, prompt: Sequence[ContentBlock]) -> None:
        """Read what users and project say of how to work, in the folder that the prompt is about.

        Once for all turns, so that a file that changes meanwhile costs a model server's cache once.
        """
        worked_in = self._worked_in(prompt)
        with anyio.move_on_after(LOOK_SECONDS):
            self._instructions = await anyio.to_thread.run_sync(
                read_instructions, self._root, self._house.config_folder, worked_in, abandon_on_cancel=True
            )

    def _worked_in(self, prompt: Sequence[ContentBlock]) -> tuple[str, ...]:
        """The folder that the conversation is about: that of the file that a prompt last referred to.

        It stays until another is referred to, also after a restart, so that requests begin with the same.
        """
        before = (m.content for m in reversed(self.transcript) if isinstance(m, UserMessage))
        folders = (_folder_of(blocks, self._root) for blocks in (prompt, *before))
        return next((folder for folder in folders if folder is not None), ())

    async def look_for_skills(self) -> None:
        """Find the skills that there are, once for all turns, as with instructions."""
        with anyio.move_on_after(LOOK_SECONDS):
            self._skills = await anyio.to_thread.run_sync(
                self._house.skills.find, self._root, abandon_on_cancel=True
            )

    def system_prompt(self) -> str:
        """What the model is told first."""
        told = system_prompt(self._root) + self._instructions.prompt(trusted=self.is_trusted)
        told += catalogue(self.skills)
        if self._log.state.base.parent is not None:
            told = f"{told}\n\n{CHILD}"
        return f"{told}\n\n{DAMAGED}" if self._log.state.damage else told

    def place_of(self, uri: str) -> str:
        """A file as the model names it: by its path in the workspace, where it is there."""
        try:
            path = path_of(uri)
        except WorkspaceError:
            return uri
        return clean_text(str(path.relative_to(self._root) if path.is_relative_to(self._root) else path))

    def learn_window(self, model: Model, tokens: int) -> Model:
        """A server has said how large a model's context window is; gives the model as it is known now."""
        return self._house.engines.learn_window(model, tokens)

    async def room(self) -> None:
        """Wait for a slow client."""
        await self._log.room()


def _folder_of(blocks: Sequence[ContentBlock], root: Path) -> tuple[str, ...] | None:
    """The folder of the first file of the workspace that a prompt refers to, None where it refers to none."""
    for block in blocks:
        if isinstance(block, ResourceContent):
            with suppress(UriError):
                path = path_of(block.uri)
                if path.is_relative_to(root):
                    return path.relative_to(root).parent.parts
    return None
