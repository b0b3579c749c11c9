"""How the temporary files of writes are named; `write_notes` finds those that a killed daemon left."""

import os

_MAX_STEM = 80  # bytes of the target's name kept in the temporary's, whose name must not grow too long


def temporary_name(name: str, token: str, number: int) -> str:
    """A name for a temporary beside the file `name`, of the writer with this token."""
    stem = os.fsdecode(os.fsencode(name)[:_MAX_STEM])
    return f".{stem}.{token}-{number}.agentd~"


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that a write is making, or left: no part of the workspace."""
    return name.startswith(".") and name.endswith(".agentd~")


def is_temporary_of(name: str, token: str) -> bool:
    """Whether it is one of the writer with this token."""
    return is_temporary(name) and f".{token}-" in name
