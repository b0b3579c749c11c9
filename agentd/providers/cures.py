"""Fields and forms that a server refuses, and how a request does without them.

A dialect says what a server takes, but nobody may have said which one it speaks, and behind a proxy there may
be a stricter server. A refusal mostly names the field. A cure is the flag of the dialect that leaves it out,
or has it look otherwise.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from agentd.providers.http_endpoint import Refusal

D = TypeVar("D")

_log = logging.getLogger(__name__)

_NOT_TAKEN = (
    r"(?:un(?:supported|known|recogni[sz]ed|expected)|n[o']t (?:support(?:ed)?|permitted|allowed|accepted)"
    r"|extra|forbidden|additional propert|invalid (?:field|param|arg))"
)
_OF_A_TEMPLATE = re.compile(r"jinja|raise_exception|chat[_ ]template", re.IGNORECASE)
"""llama.cpp tells of what a model's own template refuses as a fault of the server."""


@dataclass(frozen=True)
class Cure:
    """A flag of a dialect, its other value, and the words of a refusal that this may cure."""

    flag: str
    value: Any
    words: str


def not_taken(field: str) -> str:
    """The words with which servers refuse a field that they do not know. `field` is a pattern."""
    name = rf"\b(?:{field})\b"
    return rf"{_NOT_TAKEN}[\s\S]{{0,160}}?{name}|{name}[\s\S]{{0,160}}?{_NOT_TAKEN}"


def cured(dialect: D, refusal: Refusal, cures: Iterable[Cure], tried: set[str]) -> D | None:
    """The dialect without what was refused; None where something else is the matter.

    For one request a flag is turned once: `tried` are those that were, and takes the next.
    """
    if refusal.error.kind != "bad_request" and not _OF_A_TEMPLATE.search(refusal.text):
        return None
    for cure in cures:
        if cure.flag in tried or getattr(dialect, cure.flag) == cure.value:
            continue
        if re.search(cure.words, refusal.text, re.IGNORECASE):
            tried.add(cure.flag)
            _log.warning("%s; asking again with %s = %r", refusal.error.message, cure.flag, cure.value)
            return cast(D, replace(cast(Any, dialect), **{cure.flag: cure.value}))
    return None
