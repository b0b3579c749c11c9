"""The to-do list of a session, as the tool that changes it sees it."""

from dataclasses import dataclass

from agentd.protocol.events import TodoChanged
from agentd.protocol.messages import TodoItem
from agentd.sessions.log import SessionLog
from agentd.sessions.questions import Emit


@dataclass(frozen=True)
class SessionTodo:
    """`tools.base.Todo` of a session."""

    log: SessionLog
    emit: Emit

    @property
    def items(self) -> tuple[TodoItem, ...]:
        """The list as it is now."""
        return self.log.state.todo

    async def replace(self, items: tuple[TodoItem, ...]) -> None:
        """Put another list in its place."""
        await self.emit(TodoChanged(items=items))
