"""What the model is shown of the words of a run's user: found out once, as each message is said.

Files with secrets are read but kept back. The user is asked about them once the message that refers to them
is safe, and the answer is journaled with what is shown from then on.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio

from agentd.agent.host import Verdict
from agentd.agent.references import Judge, References, Telling, Withheld, unread
from agentd.protocol.errors import RpcError
from agentd.protocol.events import DurableEvent, PermissionResolved
from agentd.protocol.messages import CommandContent, ContentBlock, ResultBlock, TextContent
from agentd.sessions.house import House
from agentd.sessions.questions import Emit
from agentd.sessions.records import Shown
from agentd.sessions.words import Words, look_up
from agentd.tools.base import ToolContext

LOOK_SECONDS = 5.0
"""For all files that a message refers to; on a disk that hangs, a run goes on without."""


class Record(Protocol):
    """Journals an event, with what is never sent beside it, and sends it."""

    async def __call__(self, event: DurableEvent, **private: Any) -> None:
        """See `agent.host.Host.emit`."""
        ...


@dataclass(frozen=True)
class Ways:
    """What the words of a user need of the run: the context of its tools, judging, asking and telling."""

    context: Callable[[], ToolContext]
    judge: Judge
    ask: Callable[[Withheld, Emit], Awaitable[Verdict]]
    emit: Record


class UserWords:
    """The words of one run: those it begins with, and those of its steers."""

    def __init__(self, words: Words, root: Path, house: House, ways: Ways) -> None:
        self._words = words
        self._root = root
        self._house = house
        self._ways = ways
        self._told: Telling | None = None
        self._withheld: deque[tuple[str, Telling, Withheld]] = deque()

    async def find_out(self) -> None:
        """Read what the first message refers to. Where this is cut short, that is named only."""
        if not self._words.are_literal:
            self._told = await self._read(self._words)

    def shown(self, message_id: str) -> tuple[ResultBlock, ...] | None:
        """What the model is shown of the first message, now that it is said; None: just what was written."""
        if self._words.are_literal:
            return None
        told = self._told or unread(self._words.parts, self._root)
        self._keep(message_id, told)
        return told.content

    async def of_steer(self, message_id: str, blocks: Sequence[ContentBlock]) -> "Steer":
        """The same for a steer that is about to be said.

        A command that cannot be used any more is shown as it was written, with a word on why.
        """
        try:
            words = look_up(blocks, self._root, self._house)
        except RpcError as error:
            return Steer(unread([_as_text(block, error.message) for block in blocks], self._root).content)
        if words.are_literal:
            return Steer(None)
        told = await self._read(words)
        return Steer(told.content, lambda: self._keep(message_id, told))

    async def ask_about_secrets(self) -> None:
        """Ask about each file that was kept back, one after the other."""
        while self._withheld:
            message_id, telling, withheld = self._withheld.popleft()

            async def emit(
                event: DurableEvent, about: tuple[str, Telling, Withheld] = (message_id, telling, withheld)
            ) -> None:
                is_yes = isinstance(event, PermissionResolved) and event.outcome == "allowed"
                await self._ways.emit(event, **(self._allowed(*about) if is_yes else {}))

            await self._ways.ask(withheld, emit)

    def _allowed(self, message_id: str, telling: Telling, withheld: Withheld) -> dict[str, Any]:
        """The user has allowed it: what is journaled beside that."""
        telling.groups[withheld.place] = withheld.blocks
        self._ways.context().seen.learn(withheld.seen)
        return {"shownNow": Shown(message_id=message_id, content=telling.content)}

    async def _read(self, words: Words) -> Telling:
        with anyio.move_on_after(LOOK_SECONDS):
            return await References(self._ways.context(), self._ways.judge).tell(words.parts)
        return unread(words.parts, self._root)

    def _keep(self, message_id: str, told: Telling) -> None:
        self._withheld += [(message_id, told, withheld) for withheld in told.withheld]


@dataclass(frozen=True)
class Steer:
    """What the model is shown of a steer. `said` is called in the step in which it is said."""

    shown: tuple[ResultBlock, ...] | None
    said: Callable[[], None] = lambda: None


def _as_text(block: ContentBlock, why: str) -> ContentBlock:
    if not isinstance(block, CommandContent):
        return block
    return TextContent(text=f"/{block.name} {block.arguments}\n[This command was not run: {why}]")
