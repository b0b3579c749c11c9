"""The base of every type on the wire.

Rules of the room: models are frozen, camelCase on the wire and snake_case in Python; unknown fields are
ignored; values are never coerced (`"10"` is no integer); a field declared with `absent()` is left out when it
has no value, while a field typed `... | None` without it is sent as null. This is how section 13 of the
protocol tells `x?` from `x: T | null`.
"""

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, StringConstraints
from pydantic.alias_generators import to_camel

T = TypeVar("T")

Many = Annotated[tuple[T, ...], Strict(False)]
"""An immutable JSON array: a list is taken for it, while its items stay strictly typed."""

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:~-]{1,128}$")]
"""An identifier of a session, prompt, message, tool call or question."""


def _is_none(value: object) -> bool:
    return value is None


def absent() -> Any:
    """The default of an optional field: None in Python, not there on the wire."""
    return Field(default=None, exclude_if=_is_none)


class Wire(BaseModel):
    """A frozen type of the wire."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        extra="ignore",
        strict=True,
        defer_build=True,  # most models are never used in a process; building validators is start-up time
    )


@dataclass(frozen=True)
class Encoded:
    """A result that is JSON already: what a journal holds goes to the client as it stands."""

    body: bytes
