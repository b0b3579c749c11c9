"""Tool calls out of the fragments of an OpenAI-compatible stream.

A fragment looks like `{"index": 0, "id": "call_1", "function": {"name": "read", "arguments": "{"}}`, and
servers leave out, repeat or get wrong every part of it. Which call a fragment belongs to:

* `index` known: the call with that index and the fragment's id, else the latest call with that index, unless
  the fragment begins another call: a different id that comes with a name, or a different name;
* `index` new: a new call;
* no `index`: the call with the fragment's id, else a new call if it has an id or a name, else the call that
  the last fragment belonged to.

An empty or null id or name counts as absent. The first id and the first name of a call stand. Some servers
give parallel calls neither ids nor different indexes; they are told apart where gluing could only make
nonsense: a named fragment that opens an object after the call's arguments are a whole one.

Arguments are passed on and not parsed: text that looks whole may be the beginning of something longer.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentd.providers.base import ToolCallDelta


@dataclass
class _Call:
    block: int
    position: int
    id: str | None = None
    name: str | None = None
    arguments: list[str] = field(default_factory=list)

    def is_whole(self) -> bool:
        """Whether the arguments so far are a JSON object, so that nothing but blanks can follow."""
        last = next((piece for piece in reversed(self.arguments) if not piece.isspace()), "")
        if not last.rstrip().endswith("}"):  # looked at first, as long arguments come in many pieces
            return False
        text = "".join(self.arguments)
        try:
            return isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(frozen=True)
class _Fragment:
    index: int | None
    id: str | None
    name: str | None
    arguments: str

    @staticmethod
    def read(raw: Mapping[str, Any]) -> "_Fragment":
        function = raw.get("function")
        if not isinstance(function, Mapping):
            function = {}
        index = raw.get("index")
        return _Fragment(
            index if isinstance(index, int) and not isinstance(index, bool) else None,
            _word(raw.get("id")),
            _word(function.get("name")),
            _arguments(function.get("arguments")),
        )


class ToolFragments:
    """The calls of one response. `new_block` numbers the content block of each call when it first appears."""

    def __init__(self, new_block: Callable[[], int]) -> None:
        self._new_block = new_block
        self._count = 0
        self._last: _Call | None = None
        self._by_index: dict[int, _Call] = {}
        self._by_index_and_id: dict[tuple[int, str], _Call] = {}
        self._by_id: dict[str, _Call] = {}

    @property
    def count(self) -> int:
        """How many calls there are so far."""
        return self._count

    @property
    def last_position(self) -> int | None:
        """Which call, counted from 0, the last fragment belonged to."""
        return None if self._last is None else self._last.position

    def add(self, raw: Mapping[str, Any]) -> ToolCallDelta | None:
        """Take a fragment; give what it says that is new, or None."""
        fragment = _Fragment.read(raw)
        call = self._find(fragment)
        if call is None:
            if fragment.id is None and fragment.name is None and not fragment.arguments:
                return None
            call = _Call(self._new_block(), self._count)
            self._count += 1
        new_id = fragment.id if call.id is None else None
        new_name = fragment.name if call.name is None else None
        call.id = call.id or new_id
        call.name = call.name or new_name
        self._remember(call, fragment)
        if fragment.arguments:
            call.arguments.append(fragment.arguments)
        elif new_id is None and new_name is None:
            return None
        return ToolCallDelta(call.block, fragment.arguments, new_id, new_name)

    def _find(self, fragment: _Fragment) -> _Call | None:
        """The call that the fragment goes on with, or None when it begins one."""
        if fragment.index is None:
            if fragment.id is not None:
                call = self._by_id.get(fragment.id)
            else:
                call = self._last if fragment.name is None else None
        else:
            call = self._by_index.get(fragment.index)
            if fragment.id is not None:
                call = self._by_index_and_id.get((fragment.index, fragment.id), call)
        return None if call is None or _begins_another(fragment, call) else call

    def _remember(self, call: _Call, fragment: _Fragment) -> None:
        self._last = call
        if fragment.index is not None:
            self._by_index[fragment.index] = call
            if fragment.id is not None:
                self._by_index_and_id[fragment.index, fragment.id] = call
        if fragment.id is not None:
            self._by_id[fragment.id] = call


def _begins_another(fragment: _Fragment, call: _Call) -> bool:
    if fragment.name is None:
        return False
    if call.name is not None and fragment.name != call.name:
        return True
    if fragment.id is not None and call.id is not None and fragment.id != call.id:
        return True
    return fragment.arguments.lstrip().startswith("{") and call.is_whole()


def _word(value: Any) -> str | None:
    """An id or a name; numbers, which a few servers send for ids, count as their text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _arguments(value: Any) -> str:
    """Argument text; servers that send the object itself mean its text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else ""
