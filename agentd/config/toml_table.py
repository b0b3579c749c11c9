"""Reading a TOML document key by key, with a complaint that names file, line and key of all that is wrong."""

import math
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from agentd.config.toml_lines import KeyPath, key_lines
from agentd.protocol.methods import Problem

T = TypeVar("T")

_SHOWN = 60
_TYPES: Mapping[type, str] = {
    str: "a string", bool: "true or false", int: "a whole number", float: "a number with a fraction",
    dict: "a table", list: "an array",
}  # fmt: skip


class Document:
    """A configuration file and what is wrong with it."""

    def __init__(self, path: Path, text: str = "") -> None:
        """`text` has to be valid TOML, or empty where there is none."""
        self.path = path
        self.problems: list[Problem] = []
        self.is_understood = True
        self._lines = key_lines(text)

    @property
    def name(self) -> str:
        """The path as it can be shown, whatever bytes it holds."""
        return os.fsencode(self.path).decode("utf-8", "replace")

    def origin(self, key: KeyPath) -> str:
        """Where a key stands: `<file>:<line>`, lines counted from 1."""
        line = self._line(key)
        return self.name if line is None else f"{self.name}:{line + 1}"

    def complain(self, what: str, key: KeyPath = (), line: int | None = None) -> None:
        """Note an error at a key, or else at a line (0-based) or the file as such."""
        line = self._line(key) if key else line
        place = self.name if line is None else f"{self.name}:{line + 1}"
        self.problems.append(
            Problem(
                severity="error",
                message=f"{place}: {dotted(key)}: {what}" if key else f"{place}: {what}",
                uri=self.path.as_uri() if self.path.is_absolute() else None,
                line=line,
            )
        )

    def _line(self, key: KeyPath) -> int | None:
        """The line of a key, or of the nearest table around it."""
        return next(
            (self._lines[key[:end]] for end in range(len(key), 0, -1) if key[:end] in self._lines), None
        )


class Table:
    """A table of a document. A value that is absent or wrong reads as None; a wrong one is complained of."""

    def __init__(self, document: Document, path: KeyPath, values: Mapping[str, Any]) -> None:
        self.document = document
        self.path = path
        self._values = values
        self._complaints = 0

    @property
    def is_sound(self) -> bool:
        """Whether nothing read from this table itself was wrong so far."""
        return self._complaints == 0

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def complain(self, name: str, what: str) -> None:
        """Say what is wrong with a key of this table."""
        self._complaints += 1
        self.document.complain(what, (*self.path, name))

    def unknown(self, known: Collection[str]) -> Iterator[tuple[str, Any]]:
        """The keys that are not known, with their values."""
        return ((name, value) for name, value in self._values.items() if name not in known)

    def text(self, name: str) -> str | None:
        """A string that is not blank."""
        value = self._read(name, str)
        if value is not None and not value.strip():
            self.complain(name, "is empty; give it a value or remove it")
            return None
        return value

    def flag(self, name: str) -> bool | None:
        """True or false."""
        return self._read(name, bool)

    def count(self, name: str) -> int | None:
        """A whole number above zero."""
        value = self._read(name, int)
        if value is not None and value <= 0:
            self.complain(name, f"is {shown(value)}; it has to be above 0")
            return None
        return value

    def number(self, name: str, *, zero: bool = False) -> float | None:
        """A number above zero, or also zero itself."""
        value = self._values.get(name)
        if value is None:
            return None
        if type(value) not in (int, float):
            self.complain(name, f"has to be a number, not {_type_of(value)}")
        elif not (0 < value < math.inf or (zero and value == 0)):
            self.complain(name, f"is {value}; it has to be {'0 or more' if zero else 'above 0'}")
        else:
            return float(value)
        return None

    def texts(self, name: str) -> tuple[str, ...] | None:
        """An array of strings that are not blank."""
        values = self._read(name, list)
        if values is None:
            return None
        for value in values:
            if not isinstance(value, str) or not value.strip():
                self.complain(name, "has to be an array of strings, none of them empty")
                return None
        return tuple(values)

    def right_texts(self, name: str) -> tuple[tuple[str, ...], bool]:
        """Of an array, the strings that are not blank, and whether that is all that was said."""
        values = self._read(name, list)
        if values is None:
            return (), name not in self
        right = tuple(value for value in values if isinstance(value, str) and value.strip())
        if len(right) < len(values):
            self.complain(name, "has to be an array of strings, none of them empty; the others of it count")
        return right, len(right) == len(values)

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        """One of these strings."""
        value = self._read(name, str)
        if value is None or value in choices:
            return value
        self.complain(
            name, f"{shown(value)} is not known{meant(value, choices)}; use one of {', '.join(choices)}"
        )
        return None

    def choices(self, name: str, choices: Collection[str]) -> tuple[str, ...] | None:
        """An array of these strings."""
        values = self._read(name, list)
        if values is None:
            return None
        for value in values:
            if not isinstance(value, str) or value not in choices:
                self.complain(name, f"{shown(value)} is not known; use any of {', '.join(choices)}")
                return None
        return tuple(values)

    def table(self, name: str) -> "Table | None":
        """A table in this one."""
        values = self._read(name, dict)
        return None if values is None else Table(self.document, (*self.path, name), values)

    def _read(self, name: str, kind: type[T]) -> T | None:
        value = self._values.get(name)
        if value is None or type(value) is kind:  # exactly: true is no number
            return value
        self.complain(name, f"has to be {_TYPES[kind]}, not {_type_of(value)}")
        return None


def _type_of(value: object) -> str:
    return _TYPES.get(type(value), "a date or time")


def dotted(path: KeyPath) -> str:
    """A key as TOML writes it."""
    return ".".join(part if _is_bare(part) else shown(part) for part in path)


def _is_bare(part: str) -> bool:
    return part.isascii() and bool(part) and part.replace("-", "0").replace("_", "0").isalnum()


def shown(value: object) -> str:
    """A value in an error message: quoted, on one line, not too long."""
    import json

    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def meant(word: str, known: Collection[str]) -> str:
    """` (did you mean "…"?)` where a known word is near, else nothing."""
    import difflib

    near = difflib.get_close_matches(word.lower(), known, n=1)
    return f' (did you mean "{near[0]}"?)' if near else ""
