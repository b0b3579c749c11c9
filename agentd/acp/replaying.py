"""A session told from its beginning, to a client that loads it."""

from collections.abc import Iterator

from agentd.acp import updates
from agentd.acp.content import blocks_out, text_block
from agentd.acp.telling import Told
from agentd.acp.updates import Json
from agentd.agent.tool_calls import describe
from agentd.protocol.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agentd.sessions.session import Session
from agentd.tools.base import ToolContext
from agentd.workspace.editor import Disk
from agentd.workspace.seen import SeenFiles


class Replay:
    """Gives the updates of one session, message by message, as far as there are any by now."""

    def __init__(self, session: Session, told: Told) -> None:
        self._session = session
        self._told = told
        self._context = ToolContext(session.root, Disk(), SeenFiles(), {})
        self._next = 0

    def messages(self, most: int) -> list[Json]:
        """The updates of so many messages more; none once all are told."""
        chosen = list(self._session.messages[self._next : self._next + most])
        self._next += len(chosen)
        return [update for message in chosen for update in self._message(message)]

    @property
    def is_at_end(self) -> bool:
        """Whether all messages are told."""
        return self._next >= len(self._session.messages)

    def rest(self) -> Iterator[Json]:
        """What is open now: the answer so far, the to-do list, calls that nothing will come of."""
        run = self._session.state.run if self._session.info.state != "idle" else None
        running = run.calls if run is not None else {}
        for call_id in sorted(self._told.open_calls - running.keys()):
            self._told.open_calls.discard(call_id)
            yield updates.progressed(call_id, "failed")
        for call_id in running:
            yield updates.progressed(call_id, "in_progress")
        for question in self._session.pending:
            yield from self._told.asked(question)
        yield from self._partial()
        if self._session.state.todo:
            yield updates.plan(self._session.state.todo)

    def _partial(self) -> Iterator[Json]:
        partial = self._session.get(None, 1).partial
        for tool in partial.tools if partial is not None else ():
            yield updates.said(tool.tool_call_id, tool.output)
        message = partial.message if partial is not None else None
        for block in message.content if message is not None else ():
            if isinstance(block, TextContent | ThinkingContent) and block.text:
                assert message is not None
                self._told.said.add(message.message_id)
                yield self._said(block, message.message_id)

    def _message(self, message: Message) -> Iterator[Json]:
        match message:
            case UserMessage():
                for block in blocks_out(message.content):
                    yield updates.chunk("user_message_chunk", block, message.message_id)
            case AssistantMessage():
                for part in message.content:
                    if isinstance(part, ToolCall):
                        yield self._call(part)
                    elif part.text:
                        yield self._said(part, message.message_id)
            case ToolResultMessage():
                self._told.open_calls.discard(message.tool_call_id)
                yield updates.ended(message)

    def _said(self, block: TextContent | ThinkingContent, message_id: str) -> Json:
        is_text = isinstance(block, TextContent)
        kind: updates.Chunk = "agent_message_chunk" if is_text else "agent_thought_chunk"
        return updates.chunk(kind, text_block(block.text), message_id)

    def _call(self, call: ToolCall) -> Json:
        self._told.open_calls.add(call.id)
        start = describe(call, self._told.toolbox.get(call.name), self._context)
        return updates.started(start, "pending")
