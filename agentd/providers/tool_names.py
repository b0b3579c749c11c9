"""Names of tools on the wire: a two-way map between a session's names and those that every server takes.

OpenAI takes 64 letters, digits, "_" and "-", Anthropic took no more until 2025, Gemini wants a letter or "_"
first; MCP allows 128 characters and dots, models make up whatever they like. A name that fits all of them
goes out as it is. Any other becomes its own beginning, as far as it fits, and a digest of the whole: so it is
the same in every request, whatever tools there are beside it, and a server's cache knows the history again.
One rule for all servers, so that a session that changes its model keeps its names.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256

from agentd.protocol.messages import AssistantBlock, AssistantMessage, Message, ToolCall, UserMessage
from agentd.providers.base import ModelRequest, StreamEvent, ToolCallDelta

MAX_LENGTH = 64
_FIT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST = 10  # hexadecimal digits: 40 bits


class ToolNames:
    """The names of one request: different ones stay different, and each has its way back."""

    def __init__(self, names: Iterable[str]) -> None:
        """`names` are all that the request speaks of, tools and history alike."""
        self._sent: dict[str, str] = {}
        distinct = dict.fromkeys(names)
        taken = {name for name in distinct if _FIT.fullmatch(name)}
        for name in distinct:
            if name not in taken:
                self._sent[name] = sent = _shortened(name, taken)
                taken.add(sent)
        self._own = {sent: name for name, sent in self._sent.items()}

    @classmethod
    def of(cls, request: ModelRequest) -> "ToolNames":
        """The names in a request."""
        return cls((*(tool.name for tool in request.tools), *_in_history(request.messages)))

    def __bool__(self) -> bool:
        """Whether any name has to be another on the wire."""
        return bool(self._sent)

    def sent(self, name: str) -> str:
        """The name to send for one of the session."""
        return self._sent.get(name, name)

    def own(self, name: str) -> str:
        """The session's name for one that a server says. One that was not sent means itself."""
        return self._own.get(name, name)

    def told(self, request: ModelRequest) -> ModelRequest:
        """The request with the names to send: of tools, of calls and of results."""
        if not self:
            return request
        tools = tuple(replace(tool, name=self.sent(tool.name)) for tool in request.tools)
        return replace(request, tools=tools, messages=tuple(map(self._renamed, request.messages)))

    def heard(self, event: StreamEvent) -> StreamEvent:
        """An event of the answer with the session's names."""
        if isinstance(event, ToolCallDelta) and event.name is not None:
            return replace(event, name=self.own(event.name))
        return event

    def _renamed(self, message: Message) -> Message:
        if isinstance(message, UserMessage):
            return message
        if isinstance(message, AssistantMessage):
            return message.model_copy(update={"content": tuple(map(self._renamed_block, message.content))})
        return message.model_copy(update={"tool_name": self.sent(message.tool_name)})

    def _renamed_block(self, block: AssistantBlock) -> AssistantBlock:
        if isinstance(block, ToolCall):
            return block.model_copy(update={"name": self.sent(block.name)})
        return block


def _in_history(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from (call.name for call in message.calls)
        elif not isinstance(message, UserMessage):
            yield message.tool_name


def _shortened(name: str, taken: set[str]) -> str:
    """A name that fits, for one that does not, and that none of `taken` is."""
    plain = _ODD.sub("_", name)
    if not _FIT.match(plain):
        plain = f"_{plain}"
    count = 0
    while True:
        salted = f"{count}{name}" if count else name
        digest = sha256(salted.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        sent = f"{plain[: MAX_LENGTH - _DIGEST - 1]}_{digest}"
        if sent not in taken:
            return sent
        count += 1
