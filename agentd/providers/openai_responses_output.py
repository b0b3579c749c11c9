"""The output of one answer of OpenAI's Responses API: its items as they grow.

A content block of ours is a message item, a function call, or one part of a reasoning item. The rules:

* items are found by `output_index` and their parts by `content_index` or `summary_index`; the `item_id` is
  another one in every event on some gateways (GitHub Copilot);
* what an item says when it is done is the truth, the deltas before it are for display: of the truth, only
  what was not said yet is told, so that text that comes four times is told once;
* where the two differ, text that was shown stays as it is, and a tool call fails the answer: nobody may run
  one version of a call when the server says that it meant another;
* arguments are passed on as they come only while they look like the beginning of a JSON object. GitHub
  Copilot sends ciphertext for deltas; then the call waits for its truth;
* a message or a call may come without being announced (`output_item.added`), and a call's arguments may come
  only when it is done (LM Studio).

Calls to tools that run at the server, and items of unknown types, are no blocks: agentd offers no such tools.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentd.providers.base import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from agentd.providers.json_text import parse_json, storable
from agentd.providers.surrogates import SurrogatePairs

_log = logging.getLogger(__name__)

REPLAY_KEY = "responsesItems"
"""Where a message's provider data holds its items; see `Output.kept`."""

PartKind = Literal["text", "refusal", "summary", "reasoning", "arguments"]

_ITEM_OF: dict[PartKind, str] = {
    "text": "message",
    "refusal": "message",
    "summary": "reasoning",
    "reasoning": "reasoning",
    "arguments": "function_call",
}
_IN_CONTENT = {
    "message": {"content", "role", "status"},
    "function_call": {"arguments", "call_id", "name", "status"},
    "reasoning": {"status"},
}
"""What of an item need not be kept for its replay: the message's content has it, or no server wants it."""


@dataclass
class _Part:
    """One growing text. `held` text was not told, as it is not what it should be; `whole` grows no more."""

    block: int | None = None
    said: list[str] = field(default_factory=list)
    held: bool = False
    whole: bool = False

    @property
    def text(self) -> str:
        return "".join(self.said)


@dataclass
class _Item:
    """An item; `raw` is the latest that the server said of it as a whole."""

    type: str
    raw: Mapping[str, Any] = field(default_factory=dict)
    done: bool = False
    parts: dict[tuple[PartKind, int], _Part] = field(default_factory=dict)
    block: int | None = None
    has_text: bool = False
    call_id: str | None = None
    name: str | None = None


class Output:
    """The items of one response. Methods add to `events` what they have to tell."""

    def __init__(self) -> None:
        self.refused = False
        """Whether the model refused; its words are text."""
        self.conflict: str | None = None
        """The name of a tool that the server told two different calls of."""
        self._items: dict[int, _Item] = {}
        self._order: list[_Item] = []
        self._last = -1
        self._blocks = 0
        self._pairs = SurrogatePairs()
        self._logged_difference = False

    @property
    def has_calls(self) -> bool:
        """Whether there is a function call."""
        return any(item.type == "function_call" for item in self._order)

    # --- what events say --------------------------------------------------------------------------

    def grow(self, at: Any, kind: PartKind, part: Any, text: str, events: list[StreamEvent]) -> None:
        """More of a part. `at` is its output index, `part` its index in the item, either perhaps absent."""
        item = self._item(at, _ITEM_OF[kind])
        self._say(item, kind, part if isinstance(part, int) else 0, text, events)

    def settle(self, at: Any, kind: PartKind, part: Any, text: str, events: list[StreamEvent]) -> None:
        """The whole of a part."""
        item = self._item(at, _ITEM_OF[kind])
        self._settle(item, kind, part if isinstance(part, int) else 0, text, events)

    def add(self, at: Any, raw: Mapping[str, Any], events: list[StreamEvent]) -> None:
        """An item begins."""
        item = self._item(at, str(raw.get("type")), raw, begins=True)
        if not item.done:
            item.raw = raw
            self._introduce(item, events)

    def finish(self, at: Any, raw: Mapping[str, Any], events: list[StreamEvent]) -> None:
        """An item is done; `raw` is all of it."""
        item = self._item(at, str(raw.get("type")), raw)
        self._finish(item, raw, events)

    def complete(self, output: Any, events: list[StreamEvent]) -> None:
        """The response is over. `output` has its items once more, or is empty, or is all there ever was."""
        raws = [raw for raw in output if isinstance(raw, Mapping)] if isinstance(output, list) else []
        known = len(self._order)
        for at, raw in enumerate(raws):
            item = self._items.get(at)
            if item is None and at >= known:
                self.finish(at, raw, events)
            elif item is not None and not item.done and item.type == raw.get("type"):
                self._finish(item, raw, events)
        for item in self._order:
            if not item.done:
                self._finish(item, _unsealed(item.raw), events)

    # --- what goes back ---------------------------------------------------------------------------

    def kept(self) -> list[dict[str, Any]]:
        """The items in order, without what the message's own blocks say, for `openai_responses_request`.

        Messages without text are left out, and so is reasoning that only the server's memory could complete.
        Of items that are no blocks only the type is kept: reasoning that led to one cannot go back.
        """
        return storable([dict(_kept(item)) for item in self._order if _is_worth_keeping(item)])

    # --- items ------------------------------------------------------------------------------------

    def _item(
        self, at: Any, type: str, raw: Mapping[str, Any] | None = None, *, begins: bool = False
    ) -> _Item:
        """The item at an index, made if it is new; without an index, the latest one unless one begins."""
        if not isinstance(at, int):
            at = self._last + 1 if begins else max(self._last, 0)
        item = self._items.get(at)
        if item is None or item.type != type or _is_another(item, raw):
            item = self._items[at] = _Item(type)
            self._order.append(item)
        self._last = max(self._last, at)
        return item

    def _introduce(self, item: _Item, events: list[StreamEvent]) -> None:
        """Tell id and name of a call as soon as they are known."""
        if item.type != "function_call":
            return
        new_id = _word(item.raw.get("call_id")) if item.call_id is None else None
        new_name = _word(item.raw.get("name")) if item.name is None else None
        item.call_id, item.name = item.call_id or new_id, item.name or new_name
        if new_id or new_name:
            events.append(ToolCallDelta(self._block(item), "", new_id, new_name))

    def _finish(self, item: _Item, raw: Mapping[str, Any], events: list[StreamEvent]) -> None:
        item.raw = raw
        self._introduce(item, events)
        for kind, part, text in _parts(item.type, raw):
            self._settle(item, kind, part, text, events)
        item.done = True

    # --- parts ------------------------------------------------------------------------------------

    def _part(self, item: _Item, kind: PartKind, number: int) -> _Part | None:
        """The part; None where its text is there already in another form: reasoning beside its summary."""
        part = item.parts.get((kind, number))
        if part is None:
            if item.type == "reasoning" and any(other != kind for other, _ in item.parts):
                return None
            part = item.parts[kind, number] = _Part()
        return part

    def _say(self, item: _Item, kind: PartKind, number: int, text: str, events: list[StreamEvent]) -> None:
        if not text or (part := self._part(item, kind, number)) is None or part.whole:
            return
        if kind == "arguments" and not part.said:
            part.held = not text.lstrip().startswith("{")
        part.said.append(text)
        if not part.held:
            self._tell(item, kind, part, text, events)

    def _settle(
        self, item: _Item, kind: PartKind, number: int, whole: str, events: list[StreamEvent]
    ) -> None:
        part = self._part(item, kind, number)
        if part is None:
            return
        said, held = part.text, part.held
        part.held, part.whole = False, part.whole or bool(whole)
        if held or not said:
            part.said = [whole or said]
            self._tell(item, kind, part, part.text, events)
        elif whole.startswith(said):
            part.said = [whole]
            self._tell(item, kind, part, whole[len(said) :], events)
        elif not said.endswith(whole):  # which is true of no text at all, too
            self._differ(item, kind, said, whole)

    def _differ(self, item: _Item, kind: PartKind, said: str, whole: str) -> None:
        if kind == "arguments":
            value = parse_json(whole)
            if value is None or value != parse_json(said):
                self.conflict = item.name or "unknown"
        elif not self._logged_difference:
            self._logged_difference = True
            _log.warning("the whole of a %s is not what its deltas were; the deltas stand", item.type)

    def _tell(self, item: _Item, kind: PartKind, part: _Part, text: str, events: list[StreamEvent]) -> None:
        if not text:
            return
        self.refused = self.refused or kind == "refusal"
        owner = part if item.type == "reasoning" else item
        if not (text := self._pairs.join(id(owner), text)):
            return  # half a character only, which makes no block yet
        if kind == "arguments":
            events.append(ToolCallDelta(self._block(item), text))
        elif item.type == "message":
            item.has_text = item.has_text or not text.isspace()
            events.append(TextDelta(self._block(item), text))
        else:
            if part.block is None:
                part.block = self._new_block()
            events.append(ThinkingDelta(part.block, text))

    def _block(self, item: _Item) -> int:
        if item.block is None:
            item.block = self._new_block()
        return item.block

    def _new_block(self) -> int:
        self._blocks += 1
        return self._blocks - 1


def _is_another(item: _Item, raw: Mapping[str, Any] | None) -> bool:
    """Whether the index was given to another item than before, which a gateway that does not count does."""
    if raw is None:
        return False
    call_id = _word(raw.get("call_id"))
    if item.call_id is not None and call_id is not None:
        return call_id != item.call_id
    return item.done and raw.get("id") != item.raw.get("id")


def _unsealed(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """An item that was begun only: its encrypted reasoning is not yet whole."""
    return {key: value for key, value in raw.items() if key != "encrypted_content"}


def _parts(type: str, raw: Mapping[str, Any]) -> Iterator[tuple[PartKind, int, str]]:
    """The texts in a whole item."""
    if type == "function_call":
        yield "arguments", 0, _arguments(raw.get("arguments"))
    elif type == "message":
        for number, part in _objects(raw.get("content")):
            if isinstance(part.get("text"), str):
                yield "text", number, part["text"]
            elif isinstance(part.get("refusal"), str):
                yield "refusal", number, part["refusal"]
    elif type == "reasoning":
        for number, part in _objects(raw.get("summary")):
            if isinstance(part.get("text"), str):
                yield "summary", number, part["text"]
        for number, part in _objects(raw.get("content")):
            if isinstance(part.get("text"), str):
                yield "reasoning", number, part["text"]


def _is_worth_keeping(item: _Item) -> bool:
    if item.type == "message":
        return item.has_text
    if item.type == "reasoning":
        return bool(item.raw.get("encrypted_content") or item.raw.get("content"))
    return True


def _kept(item: _Item) -> Iterator[tuple[str, Any]]:
    yield "type", item.type
    if (left_out := _IN_CONTENT.get(item.type)) is None:
        return
    for key, value in item.raw.items():
        if key != "type" and key not in left_out and value is not None and value != []:
            yield key, value


def _objects(value: Any) -> Iterable[tuple[int, Mapping[str, Any]]]:
    """The objects in a list with their positions; nothing where it is no list."""
    items = value if isinstance(value, list) else []
    return ((number, item) for number, item in enumerate(items) if isinstance(item, Mapping))


def _arguments(value: Any) -> str:
    """Argument text; a server that sends the object itself means its text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else ""


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
