"""JSON as model servers write it."""

import json
from typing import Any

from pydantic_core import from_json


def parse_json(text: str) -> Any:
    """The JSON value in a text, or None where there is none.

    The fast parser refuses half of a surrogate pair, which servers that count in UTF-16 do send.
    """
    try:
        return from_json(text)
    except ValueError:
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
