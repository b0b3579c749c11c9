"""What a client can do, as it says in `initialize`."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Abilities:
    """The capabilities that agentd uses; whatever is not well said counts as not there."""

    reads: bool = False
    writes: bool = False
    asks_by_form: bool = False

    @classmethod
    def of(cls, capabilities: Any) -> "Abilities":
        """Read them from `clientCapabilities`."""
        files = _member(capabilities, "fs")
        form = _member(_member(capabilities, "elicitation"), "form")
        return cls(
            reads=_member(files, "readTextFile") is True,
            writes=_member(files, "writeTextFile") is True,
            asks_by_form=isinstance(form, dict),
        )


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
