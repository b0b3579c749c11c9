"""The details of a Google error, in words.

Google's errors are a `google.rpc.Status` under "error", over HTTP sometimes in a list of one. Its `details`
say what the message leaves out: how long to wait (`RetryInfo`), which quota is used up (`QuotaFailure`).
https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_DURATION = re.compile(r"\d{1,10}(?:\.\d{1,9})?s")
"""A protobuf Duration as JSON: "34.4s"."""


def details_in_words(payload: Any) -> str:
    """What the details of an error payload say: the names of quotas, then "retry in 34.4s". Mostly empty."""
    return " ".join(_words(payload))


def _words(payload: Any) -> Iterator[str]:
    details = _details(payload)
    for detail in details:
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            if isinstance(violation, Mapping) and isinstance(violation.get("quotaId"), str):
                yield violation["quotaId"]
    for detail in details:
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and _DURATION.fullmatch(delay):
            yield f"retry in {delay}"


def _details(payload: Any) -> list[Mapping[str, Any]]:
    if isinstance(payload, list):
        payload = payload[0] if payload else None
    error = payload.get("error") if isinstance(payload, Mapping) else None
    details = error.get("details") if isinstance(error, Mapping) else None
    return [detail for detail in details if isinstance(detail, Mapping)] if isinstance(details, list) else []
