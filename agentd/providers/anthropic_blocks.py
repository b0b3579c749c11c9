"""The content blocks of the Messages API, as they grow in an answer and as they go back.

The API wants an answer back as it was: thinking to the byte and with its signature, blocks that we know
nothing of in their places. What a message of ours does not hold of that is kept beside it, as
`provider_data`:

    {"blocks": [{"type": "thinking", "thinking": "...", "signature": "..."}, {"type": "text"}, ...],
     "stopDetails": {...}}

A block of text or a call stands there without its content, which is the message's next text or call, but with
its citations or its caller. Blank text, which the API sends and refuses, is not kept.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentd.protocol.messages import AssistantMessage, TextContent, ToolCall
from agentd.providers.base import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from agentd.providers.json_text import parse_json, storable

_SHOWN = frozenset({"text", "thinking", "tool_use"})
_GROWING = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("partial_json", "input"),
}
"""By kind of delta: the field that holds the piece, and the field of the block that it makes longer."""

_WHOLE = ("signature_delta", "compaction_delta")
"""The kinds of delta that come once and bring whole fields."""

_SAYS = {"text": "text", "thinking": "thinking", "tool_use": "input"}
"""The field of a shown block that is shown."""

_DIRECT = {"type": "direct"}
"""The caller of a call that no server-side code made, which goes without saying."""


class Block:
    """One block of an answer. `raw` is what `content_block_start` says of it.

    `begin`, `add` and `close` give the new text to show, or None when there is nothing new; `number` is the
    block's number among the shown ones, once it is shown.
    """

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.type = str(raw["type"])
        self.number: int | None = None
        self._fields = dict(raw)
        self._pieces: dict[str, list[str]] = {}
        citations = raw.get("citations")
        self._citations: list[Any] = [*citations] if isinstance(citations, list) else []
        self._told_call = False
        self._told_input = False  # all of it, from what the block began with

    @property
    def is_shown(self) -> bool:
        """Whether it is text, thinking or a call for us."""
        return self.type in _SHOWN

    def is_same_call(self, raw: Mapping[str, Any]) -> bool:
        """Whether `raw` begins the call again that this block is."""
        id = _word(self._fields, "id")
        return self.type == raw.get("type") == "tool_use" and id is not None and id == raw.get("id")

    def begin(self) -> str | None:
        """What the block begins with; an empty text for a call, whose id and name are news."""
        if self.type == "tool_use":
            return ""
        said = self._fields.get(_SAYS.get(self.type, ""))
        return said if isinstance(said, str) and said else None

    def add(self, delta: Mapping[str, Any]) -> str | None:
        """Take a delta."""
        kind = delta.get("type")
        if kind == "citations_delta":
            self._citations.append(delta.get("citation"))
        elif kind in _WHOLE and self.type not in ("text", "tool_use"):
            self._fields |= {name: value for name, value in delta.items() if name != "type"}
        elif isinstance(kind, str) and kind in _GROWING:
            source, target = _GROWING[kind]
            piece = delta.get(source)
            if isinstance(piece, str) and piece and not (self._told_input and target == "input"):
                self._pieces.setdefault(target, []).append(piece)
                return piece if target == _SAYS.get(self.type) else None
        return None

    def close(self) -> str | None:
        """The block is whole. A call whose input came with its beginning, and in no delta, says it here."""
        given = self._fields.get("input")
        if self.type != "tool_use" or not given or self._told_input or "input" in self._pieces:
            return None
        self._told_input = True
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)

    def event(self, text: str) -> StreamEvent | None:
        """New text as an event of this block; None where it says nothing."""
        assert self.number is not None
        if self.type == "tool_use":
            if self._told_call:
                return ToolCallDelta(self.number, text) if text else None
            self._told_call = True
            return ToolCallDelta(self.number, text, _word(self._fields, "id"), _word(self._fields, "name"))
        if not text:
            return None
        return TextDelta(self.number, text) if self.type == "text" else ThinkingDelta(self.number, text)

    def kept(self) -> dict[str, Any] | None:
        """The block as `provider_data` holds it, or None for one that must not go back."""
        if self.type == "text":
            if not self._whole("text").strip():
                return None
            return {"type": "text"} | ({"citations": self._citations} if self._citations else {})
        if self.type == "tool_use":
            caller = self._fields.get("caller")
            return {"type": "tool_use"} | ({} if caller in (None, _DIRECT) else {"caller": caller})
        block = dict(self._fields)
        if "input" in self._pieces:
            block["input"] = self._input()
        if self.type == "thinking":
            block["thinking"] = self._whole("thinking")
            return block if block["thinking"] or block.get("signature") else None
        return block

    def _whole(self, name: str) -> str:
        beginning = self._fields.get(name)
        return "".join([beginning if isinstance(beginning, str) else "", *self._pieces.get(name, ())])

    def _input(self) -> dict[str, Any]:
        """The input of a server's own tool."""
        value = parse_json("".join(self._pieces["input"]))
        return value if isinstance(value, dict) else {}


def replay_data(blocks: Iterable[Block], stop_details: Any) -> dict[str, Any] | None:
    """What is to be kept of an answer beside its message; None where the message says it all."""
    kept = [block for block in (block.kept() for block in blocks) if block is not None]
    data: dict[str, Any] = {}
    if any(set(block) != {"type"} or block["type"] not in ("text", "tool_use") for block in kept):
        data["blocks"] = kept
    if isinstance(stop_details, Mapping):
        data["stopDetails"] = dict(stop_details)
    return storable(data) if data else None


def blocks_of(message: AssistantMessage, kept: Any, *, unsigned: bool = False) -> list[dict[str, Any]]:
    """The content of a message, with the blocks in `kept` where they belong, calls last.

    Where `kept` does not fit the message, which has then been changed since, only the message counts.
    Thinking without a signature is left out unless `unsigned`.
    """
    blocks = list(_merged(message, kept)) if _fits(message, kept) else list(_plain(message))
    if not unsigned:
        blocks = [block for block in blocks if block["type"] != "thinking" or block.get("signature")]
    return sorted(blocks, key=lambda block: block["type"] == "tool_use")


def _fits(message: AssistantMessage, kept: Any) -> bool:
    if not isinstance(kept, Sequence) or not all(isinstance(block, Mapping) for block in kept):
        return False
    types = [block.get("type") for block in kept if block.get("type") in ("text", "tool_use")]
    return types == [block["type"] for block in _plain(message)]


def _merged(message: AssistantMessage, kept: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    ours = _plain(message)
    for block in kept:
        yield (next(ours) if block.get("type") in ("text", "tool_use") else {}) | dict(block)


def _plain(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    """The text and the calls of a message."""
    for block in message.content:
        if isinstance(block, TextContent):
            if block.text.strip():
                yield {"type": "text", "text": block.text}
        elif isinstance(block, ToolCall):
            yield {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}


def _word(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None
