"""JSON as model servers write it."""

import json
from typing import Any, TypeVar

from pydantic_core import from_json

from agentd.protocol.text import clean_text

Data = TypeVar("Data", dict[str, Any], list[dict[str, Any]])

_MAX_DEPTH = 200
"""As deep as the fast parser reads."""


def parse_json(text: str) -> Any:
    """The JSON value in a text, or None where there is none, or one nested deeper than a journal can hold.

    The fast parser refuses half of a surrogate pair, which servers that count in UTF-16 do send.
    """
    try:
        return from_json(text)
    except (ValueError, TypeError):  # TypeError: half of a pair stands in the text itself
        pass
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if _is_deep(value) else value


def storable(data: Data) -> Data:
    """The same as a journal can hold it and a request can say it, both of which are strict JSON.

    Halves of characters are joined, or replaced where the other half is missing; numbers that JSON has no
    form for are null.
    """
    text = clean_text(json.dumps(data, ensure_ascii=False))
    stored: Data = json.loads(text, parse_constant=lambda _: None)
    return stored


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for container in level
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return False
    return True
