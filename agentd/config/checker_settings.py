"""The programs that find what is wrong in a workspace where no editor tells it: tables `[checkers.<name>]`.

They are the user's alone, as whatever stands here runs. A workspace can only say which of them it wants.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, cast, get_args

from agentd.config.provider_settings import not_known
from agentd.config.toml_table import Table

Format = Literal["ruff", "eslint", "tsc", "gnu"]
"""What a checker prints: JSON of ruff or ESLint, lines of tsc, or `file:line:column: severity: message`."""

DEFAULT_TIMEOUT_S = 120
DEFAULT_AFTER_EDIT_S = 5.0
_KNOWN = ("command", "format", "timeout_s", "after_edit_s")


@dataclass(frozen=True)
class Checker:
    """A program, run in the workspace folder as it stands here. `timeout_s` is in seconds.

    `after_edit_s` is how long an edit waits for it, 0 where it is not run after edits.
    """

    name: str
    command: tuple[str, ...]
    format: Format
    timeout_s: int = DEFAULT_TIMEOUT_S
    after_edit_s: float = DEFAULT_AFTER_EDIT_S


def checker_settings(table: Table | None) -> tuple[Checker, ...]:
    """The checkers of a `[checkers]` table; one that is described wrongly is complained of and left out."""
    found = []
    for name in table or ():
        assert table is not None
        if (entry := table.table(name)) is not None and (checker := _checker(name, entry)) is not None:
            found.append(checker)
    return tuple(found)


def _checker(name: str, table: Table) -> Checker | None:
    for key, _ in table.unknown(_KNOWN):
        table.complain(key, not_known(key, _KNOWN))
    command = table.texts("command")
    if "command" not in table or command == ():
        table.complain("command", 'is missing; give the program and its arguments, as in ["ruff", "check"]')
    form = cast(Format | None, table.choice("format", get_args(Format)))
    if "format" not in table:
        table.complain("format", f"is missing; use one of {', '.join(get_args(Format))}")
    timeout_s = table.count("timeout_s")
    after_edit_s = table.number("after_edit_s", zero=True)
    if not table.is_sound or not command or form is None:
        return None
    after = DEFAULT_AFTER_EDIT_S if after_edit_s is None else after_edit_s
    return Checker(name, command, form, timeout_s or DEFAULT_TIMEOUT_S, after)


def chosen(checkers: Collection[Checker], names: Collection[str] | None) -> tuple[Checker, ...]:
    """Those of the user's checkers that a workspace wants; all where it does not say."""
    return tuple(each for each in checkers if names is None or each.name in names)
