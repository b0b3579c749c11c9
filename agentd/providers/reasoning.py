"""Reasoning as OpenAI-compatible servers send it, and as they want it back.

There are three forms: a text field, `reasoning_content` or `reasoning`, sometimes both with the same text;
`reasoning_details`, a list of typed pieces with signatures or encrypted data (OpenRouter, Vercel, Snowflake);
and parts of a content list (Mistral), which the decoder reads itself. DeepSeek refuses a tool turn whose
reasoning does not come back, others refuse a field they do not know: so what came is remembered under the
name it came in.
"""

from collections.abc import Mapping, Sequence
from typing import Any

_TEXT_FIELDS = ("reasoning_content", "reasoning")
_FIELDS = frozenset((*_TEXT_FIELDS, "reasoning_details"))
_GROWING = ("text", "summary", "data")
"""The fields of a detail that a stream sends in pieces."""


class Reasoning:
    """The reasoning of one response."""

    def __init__(self) -> None:
        self._field: str | None = None
        self._details: list[tuple[dict[str, Any], dict[str, list[str]]]] = []

    def add(self, delta: Mapping[str, Any]) -> str:
        """Take a delta; give the reasoning text in it, once where it is there twice."""
        if _FIELDS.isdisjoint(delta):
            return ""
        details = delta.get("reasoning_details")
        if not isinstance(details, list):
            details = []
        details = [detail for detail in details if isinstance(detail, Mapping)]
        for detail in details:
            self._add_detail(detail)
        names = (self._field, *_TEXT_FIELDS) if self._field else _TEXT_FIELDS
        for name in names:
            text = delta.get(name)
            if isinstance(text, str) and text:
                self._field = self._field or name
                return text
        return "" if self._field else _text_of_details(details)

    def replay(self) -> dict[str, Any]:
        """What `replayed` needs to send this reasoning back; empty where there was none."""
        kept: dict[str, Any] = {}
        if self._field:
            kept["reasoningField"] = self._field
        if self._details:
            kept["reasoningDetails"] = [
                fields | {name: "".join(pieces) for name, pieces in growing.items()}
                for fields, growing in self._details
            ]
        return kept

    def _add_detail(self, detail: Mapping[str, Any]) -> None:
        last = self._details[-1] if self._details else None
        if last is None or _is_another(last[0], detail):
            last = ({}, {})
            self._details.append(last)
        fields, growing = last
        for key, value in detail.items():
            if key in _GROWING and isinstance(value, str):
                growing.setdefault(key, []).append(value)
            elif value or key not in fields:
                fields[key] = value


def _is_another(last: Mapping[str, Any], detail: Mapping[str, Any]) -> bool:
    """Whether a detail does not go on with the last one: what is signed or encrypted must not be glued."""
    if any(last.get(key) != detail.get(key) for key in ("type", "index")):
        return True
    return bool(last.get("id") and detail.get("id")) and last["id"] != detail["id"]


def replayed(kept: Mapping[str, Any], thinking: str) -> dict[str, Any]:
    """The fields that carry reasoning back to the server it came from."""
    fields: dict[str, Any] = {}
    if thinking and kept.get("reasoningField") in _TEXT_FIELDS:
        fields[kept["reasoningField"]] = thinking
    if isinstance(kept.get("reasoningDetails"), list):
        fields["reasoning_details"] = kept["reasoningDetails"]
    return fields


def _text_of_details(details: Sequence[Mapping[str, Any]]) -> str:
    texts = (detail.get("text") or detail.get("summary") for detail in details)
    return "".join(text for text in texts if isinstance(text, str))
