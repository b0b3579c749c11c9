"""Sessions that run on behalf of another one's tool call, and what ties the two together.

A child has a history, a journal and a budget of its own. What it may do, what the user is asked about it and
what it does to files are its parent's: the mode in force, the answers for the session, and what files were
before the parent's prompt.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic import Field

from agentd.agent.usage import add_spent
from agentd.protocol.messages import ChildCall, FileAction, Mode, SessionParent, ToolCall, Usage
from agentd.protocol.wire import Wire
from agentd.tools.base import RunChild
from agentd.workspace.checkpoints import Checkpoint

if TYPE_CHECKING:  # they import this
    from agentd.sessions.questions import Asked, Questions, Record
    from agentd.sessions.run import Run

KEPT = "children"
"""The member of a record that holds what children came to, beside the end of the call that ran them."""


class Delegated(Wire):
    """What the children of one tool call used, and how they changed files. Journaled and never sent."""

    usage: Usage | None = None
    changed: dict[str, FileAction] = Field(default_factory=dict)

    def with_child(self, usage: Usage | None, changed: dict[str, FileAction]) -> "Delegated":
        """The same with one child more."""
        both = dict(self.changed)
        for uri, action in changed.items():
            both[uri] = together(both.get(uri), action)
        return Delegated(usage=add_spent(self.usage, usage), changed=both)


def together(before: FileAction | None, now: FileAction) -> FileAction:
    """What two changes of one file come to; what is left of it at the end, the disk tells."""
    if before == "created":
        return "created"
    return "changed" if before == "deleted" else now


@dataclass(frozen=True)
class Parentage:
    """What a child's run has of its parent's run.

    `mode` is the one in force there now. `questions` puts what is asked about the child before the user, as
    the parent's, told by `emit`. `checkpoint` keeps what files are before the child changes them.
    """

    session_id: str
    prompt_id: str
    call_id: str
    description: str
    questions: "Questions"
    mode: Callable[[], Mode]
    checkpoint: Callable[[], Checkpoint]
    emit: "Record"

    @property
    def reference(self) -> SessionParent:
        """The call, as a child's session names it."""
        return SessionParent(session_id=self.session_id, tool_call_id=self.call_id)

    def asked(self, asked: "Asked") -> "Asked":
        """A question of the child as one of the parent, so that who knows only the parent can answer."""
        return replace(
            asked,
            session_id=self.session_id,
            prompt_id=self.prompt_id,
            call=ToolCall(id=self.call_id, name=asked.call.name),
            title=f"Sub-agent “{self.description}”: {asked.title}",
            emit=self.emit,
            child=ChildCall(session_id=asked.session_id, tool_call_id=asked.call.id),
        )


@dataclass(frozen=True)
class Family:
    """The relations of a session: how its runs get children, or whose child it is."""

    children: "Callable[[Run], RunChild] | None" = None
    parent: Parentage | None = None


@dataclass
class Delegations:
    """What the children of a run came to: of each open call, and of all calls that have ended."""

    _open: dict[str, Delegated] = field(default_factory=dict)
    usage: Usage | None = None

    def add(self, call_id: str, usage: Usage | None, changed: dict[str, FileAction]) -> None:
        """A child of this call has ended."""
        self._open[call_id] = self._open.get(call_id, Delegated()).with_child(usage, changed)

    def take(self, call_id: str) -> Delegated | None:
        """What the children of a call that ends came to; None where it had none."""
        taken = self._open.pop(call_id, None)
        if taken is not None:
            self.usage = add_spent(self.usage, taken.usage)
        return taken
