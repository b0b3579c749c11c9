"""Function calls out of the parts of a Gemini stream.

Mostly a part holds a whole call: `{"functionCall": {"name": "read", "args": {…}, "id": "…"}}`, the id not
from every model. Each such part is a call of its own, whatever its name and id: parallel calls of one tool
differ in nothing but their arguments.

Vertex can stream the arguments (`willContinue` says that the next part goes on with the call):

    {"name": "read", "willContinue": true}
    {"partialArgs": [{"jsonPath": "$.path", "stringValue": "a/", "willContinue": true}], "willContinue": true}
    {"partialArgs": [{"jsonPath": "$.path", "stringValue": "b"}], "willContinue": true}
    {}

The closing part may be missing. https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agentd.providers.base import ToolCallDelta

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_ESCAPED = re.compile(r"\\(.)")
_MAX_DEPTH = 64


class PathError(ValueError):
    """A JSON path that leads nowhere in the arguments so far."""


class FunctionCalls:
    """The calls of one response. `new_block` numbers the content block of each call when it appears."""

    def __init__(self, new_block: Callable[[], int]) -> None:
        self._new_block = new_block
        self._open: _GrowingCall | None = None
        self.count = 0
        """How many calls there are so far."""

    def add(self, part: Mapping[str, Any]) -> tuple[list[ToolCallDelta], bool]:
        """Take a `functionCall`; give what it says that is new, and whether it began a call."""
        name, id_, goes_on = _word(part.get("name")), _word(part.get("id")), part.get("willContinue") is True
        pieces, args = part.get("partialArgs"), part.get("args")
        deltas: list[ToolCallDelta] = []
        call = self._open
        is_next = call is not None and (name is None or (id_ is not None and id_ == call.id))
        if not is_next:
            if name is None and not args and not pieces:
                return deltas, False  # the end of a call that has ended already
            deltas += self.close()
            self.count += 1
            call = _GrowingCall(self._new_block(), id_)
            if not goes_on and not pieces:
                return [ToolCallDelta(call.block, _text(args), id_, name)], True
            deltas.append(ToolCallDelta(call.block, "", id_, name))
            self._open = call
        assert call is not None
        call.take(args, pieces)
        if not goes_on:
            deltas += self.close()
        return deltas, not is_next

    def close(self, *, cut: bool = False) -> list[ToolCallDelta]:
        """Nothing more comes for the open call, if there is one; `cut` when the output limit ended it."""
        call, self._open = self._open, None
        return [] if call is None else [ToolCallDelta(call.block, call.text(cut=cut))]


@dataclass
class _Text:
    """A string that still grows. Joined at the end: long texts come in many pieces."""

    pieces: list[str]


@dataclass
class _GrowingCall:
    block: int
    id: str | None
    arguments: dict[str, Any] = field(default_factory=dict)
    unplaced: list[Any] = field(default_factory=list)
    unfinished: str | None = None
    """The path of the string whose end has not come."""

    def take(self, args: Any, pieces: Any) -> None:
        if isinstance(args, Mapping):
            self.arguments |= args
        for piece in pieces if isinstance(pieces, list) else ():
            try:
                self._place(piece)
            except PathError:
                self.unplaced.append(piece)

    def text(self, *, cut: bool) -> str:
        """The arguments as JSON text, which is no whole object where something of them is missing."""
        if self.unplaced:
            return json.dumps(self.unplaced, ensure_ascii=False)  # what was said, for the model to see
        text = json.dumps(self.arguments, ensure_ascii=False, default=lambda grown: "".join(grown.pieces))
        return text[:-1] if cut or self.unfinished is not None else text

    def _place(self, piece: Any) -> None:
        if not isinstance(piece, Mapping) or not isinstance(piece.get("jsonPath"), str):
            raise PathError
        path = piece["jsonPath"]
        container, key = self._container(_steps(path))
        text = piece.get("stringValue")
        if not isinstance(text, str):
            _put(container, key, piece.get("numberValue", piece.get("boolValue")))
        elif isinstance(grown := _at(container, key), _Text):
            grown.pieces.append(text)
        else:
            _put(container, key, _Text([grown, text] if isinstance(grown, str) else [text]))
        self.unfinished = path if piece.get("willContinue") is True else None

    def _container(self, steps: list[str | int]) -> tuple[Any, str | int]:
        """The object or list that the last step of a path leads into, made where it is not there yet."""
        place: Any = self.arguments
        for step, following in pairwise(steps):
            inner = _at(place, step)
            if inner is None:
                inner = [] if isinstance(following, int) else {}
                _put(place, step, inner)
            place = inner
        return place, steps[-1]


def _steps(path: str) -> list[str | int]:
    """The steps of a JSON path (RFC 9535) of names and indexes: `$.edits[0].text`. Raises `PathError`."""
    steps: list[str | int] = []
    at = 1
    while path.startswith("$") and (step := _STEP.match(path, at)) and len(steps) < _MAX_DEPTH:
        at = step.end()
        plain, index, single, double = step.groups()
        quoted = single if single is not None else double
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(plain if plain is not None else _ESCAPED.sub(r"\1", quoted or ""))
    if not steps or at != len(path):
        raise PathError
    return steps


def _at(place: Any, step: str | int) -> Any:
    """What is there, or None. Raises `PathError` where the step does not fit what it leads into."""
    if isinstance(place, dict) and isinstance(step, str):
        return place.get(step)
    if isinstance(place, list) and isinstance(step, int) and step <= len(place):
        return place[step] if step < len(place) else None
    raise PathError


def _put(place: Any, step: str | int, value: Any) -> None:
    _at(place, step)  # checks that it fits
    if isinstance(place, list) and step == len(place):
        place.append(value)
    else:
        place[step] = value


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _text(args: Any) -> str:
    """Arguments as JSON text; a server that sends text means it."""
    if args is None:
        return "{}"
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
