"""How long a model server asks to wait before the next request, in the ways in which servers say it.

`retry-after-ms`; `retry-after` in seconds or as a date (RFC 9110); "retry in 4.5s" in words (Google, OpenAI);
and on a 429 the time at which a used-up limit is whole again: `x-ratelimit-reset…` as seconds, as a duration
("6m0s", "17ms"; OpenAI, Groq, xAI, Azure) or as a time (OpenRouter), `anthropic-ratelimit-…-reset` as a date
of RFC 3339.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

_IN_WORDS = re.compile(r"(?:re|\b)try (?:again )?in (\d{1,6}(?:\.\d{1,9})?) ?(m?s)\b", re.IGNORECASE)
_RESET = re.compile(r"(?:x-ratelimit-reset(-after|-[a-z]+)?|anthropic-ratelimit-([a-z-]+)-reset)")
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?")
_A_TIME = 1_000_000_000
"""Seconds from here on are a time since the epoch and no wait."""


def asks_to_wait(words: str) -> bool:
    """Whether a server's words name a wait: then even "exceeded your current quota" is only a rate."""
    return _IN_WORDS.search(words) is not None


def retry_after_ms(
    headers: Mapping[str, str], now: float, words: str = "", status: int | None = None
) -> int | None:
    """The wait in milliseconds, None where a server names none.

    `headers` has lower-case names; `now` is in seconds since the epoch.
    """
    if (wait := _number(headers.get("retry-after-ms"))) is not None:
        return int(wait)
    value = headers.get("retry-after", "").strip()
    if (wait := _number(value)) is not None:
        return int(wait * 1000)
    try:
        return max(0, int((parsedate_to_datetime(value).timestamp() - now) * 1000))
    except (ValueError, OverflowError):
        pass  # it names no date either
    if asked := _IN_WORDS.search(words):
        return int(float(asked[1]) * (1 if asked[2].lower() == "ms" else 1000))
    if status != HTTPStatus.TOO_MANY_REQUESTS:
        return None
    waits = [max(0.0, wait) for wait in _resets(headers, now)]
    return int(max(waits) * 1000) if waits else None


def _resets(headers: Mapping[str, str], now: float) -> Iterator[float]:
    """The seconds until each limit that is used up is whole again."""
    for name, value in headers.items():
        found = _RESET.fullmatch(name)
        if found is None:
            continue
        kind = found[2] or (found[1] or "").strip("-")
        family = "anthropic-ratelimit" if found[2] else "x-ratelimit"
        left = headers.get(f"{family}-{kind}-remaining" if found[2] else f"{family}-remaining-{kind}")
        if left is not None and left.strip() != "0":
            continue  # this limit was not the one
        if (wait := _until(value.strip(), now)) is not None:
            yield wait


def _until(value: str, now: float) -> float | None:
    """The seconds until a time, or of a duration; None for what is neither."""
    if (number := _number(value)) is not None:
        return number if number < _A_TIME else number - now
    if value.isdigit() and len(value) == len("1700000000000"):
        return int(value) / 1000 - now
    if value and (parts := _DURATION.fullmatch(value)) is not None:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in parts.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment.timestamp() - now if moment.tzinfo is not None else None


def _number(value: str | None) -> float | None:
    """A number of at most ten digits, with or without a fraction."""
    match = re.fullmatch(r"\d{1,10}(?:\.\d{1,10})?", (value or "").strip())
    return float(match[0]) if match else None
