"""JSON to the letter of RFC 8259, with a bounded depth. Standard library only: `boot.py` reads with it.

Python's own reader also takes NaN, other encodings than UTF-8, and lone surrogates in strings. The first two
are refused here, the last replaced, since nothing behind this point could write them again.
"""

import json
from typing import Any, NoReturn

from agentd.protocol.text import clean_text

MAX_DEPTH = 512
_MAX_DIGITS = 4300  # Python's own limit for turning text into an integer


def loads(body: bytes) -> Any:
    """The value of a JSON text. Raises ValueError that says what is wrong, without repeating the text."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"no UTF-8 at byte {error.start}") from None
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_integer)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    return _cleaned(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _cleaned(value: Any) -> Any:
    """The value with its strings cleaned, level by level: recursion would end at Python's own limit."""
    top = [value]
    level: list[Any] = [top]
    for _ in range(MAX_DEPTH + 1):
        deeper: list[Any] = []
        for container in level:
            _clean_keys(container)
            for key, item in container.items() if isinstance(container, dict) else enumerate(container):
                if isinstance(item, str):
                    container[key] = clean_text(item)  # an existing key: the container keeps its size
                elif isinstance(item, dict | list):
                    deeper.append(item)
        if not deeper:
            return top[0]
        level = deeper
    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")


def _clean_keys(container: Any) -> None:
    if isinstance(container, dict) and any(clean_text(key) != key for key in container):
        items = [(clean_text(key), item) for key, item in container.items()]
        container.clear()
        container.update(items)
