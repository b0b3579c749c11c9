"""Command lines that are plain enough for a rule to judge, and the text that runs in their place.

No parser agrees with a shell on every string, so none is trusted: `parse` takes a small regular language
(words, quotes without anything that expands, `&&`, `||`, `;`, `|`, and redirections that lose or join output)
and gives up on all else, and what runs is not the text that was parsed but the text that `render` makes of
the parse. That holds nothing but quoted words and known operators, so that a misreading can make a rule judge
another command than the model wrote, never make another run than was judged. For such a language a regular
expression is the whole parser; a grammar of all of bash would only read in detail what is refused anyway.
"""

import re
import shlex
from dataclasses import dataclass, replace
from typing import Literal

from agentd.protocol.text import visible

Operator = Literal["", "&&", "||", ";", "|"]

LONGEST_PLAIN = 4000
"""Characters of a command line that a rule looks at; who writes more is asked about."""

_TOKEN = re.compile(
    r"""
      (?P<space>       [ \t]+)
    | (?P<redirection> (?: 2>&1 | 1?>&2 | [12]?>>?[ \t]*/dev/null | &>[ \t]*/dev/null) (?=[ \t\n;|&]|\Z))
    | (?P<operator>    && | \|\| | [;|\n])
    | (?P<word>        (?: [A-Za-z0-9_@%+=:,./^~-]+ | '[^']*' | "[^"\\$`!]*" )+)
    """,
    re.VERBOSE,
)
_PIECE = re.compile(r"""'([^']*)' | "([^"]*)" | ([^'"]+)""", re.VERBOSE)
_TILDE = re.compile(r"(?:^|[=:])~")
"""Where the shell may put a home folder in place of a tilde."""

_PROGRAM = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+/-]*")
_RESERVED = frozenset(
    {
        "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
        "select", "function", "time", "coproc",
    }
)  # fmt: skip
"""Words that are no program's name, and that quoting by need leaves as they are."""


@dataclass(frozen=True)
class Command:
    """One command of a command line: its words, what joins it to the one before, what becomes of its output.

    `variables` are set for it alone; none comes from the text.
    """

    argv: tuple[str, ...]
    joined: Operator = ""
    redirections: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()

    def running(self, argv: tuple[str, ...], **variables: str) -> "Command":
        """The same command with other words, and with these variables."""
        return replace(self, argv=argv, variables=tuple(variables.items()))


def parse(text: str) -> tuple[Command, ...] | None:
    """The commands of a command line; None where any of it is not plain."""
    if len(text) > LONGEST_PLAIN or visible(text) != text:
        return None
    reading = _Reading()
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or not reading.take(token.lastgroup or "", token[0]):
            return None
        at = token.end()
    return reading.end()


def render(commands: tuple[Command, ...]) -> str:
    """The text that runs exactly these commands."""
    parts: list[str] = []
    for command in commands:
        if command.joined:
            parts.append(command.joined)
        parts += [f"{name}={shlex.quote(value)}" for name, value in command.variables]
        parts.append(shlex.join(command.argv))
        parts += command.redirections
    return " ".join(parts)


class _Reading:
    """The commands read so far, and the one being read."""

    def __init__(self) -> None:
        self._commands: list[Command] = []
        self._joined: Operator = ""
        self._argv: list[str] = []
        self._redirections: list[str] = []

    def take(self, kind: str, token: str) -> bool:
        """Read a token; False where it makes the line anything but plain."""
        if kind == "word":
            word = _unquoted(token)
            if word is None or self._redirections:  # words behind a redirection: allowed, and never needed
                return False
            self._argv.append(word)
        elif kind == "redirection":
            if not self._argv:
                return False
            self._redirections.append(re.sub(r"[ \t]", "", token))
        elif token == "\n":
            return not self._argv or self._join(";")
        elif kind == "operator":
            return self._join(token)  # type: ignore[arg-type]  # what the expression matches
        return True

    def _join(self, operator: Operator) -> bool:
        if not self._finish():
            return False
        self._joined = operator
        return True

    def _finish(self) -> bool:
        """The command that was being read is whole; False where it is none."""
        if not self._argv or not _PROGRAM.fullmatch(self._argv[0]) or self._argv[0] in _RESERVED:
            return False
        self._commands.append(Command(tuple(self._argv), self._joined, tuple(self._redirections)))
        self._argv, self._redirections = [], []
        return True

    def end(self) -> tuple[Command, ...] | None:
        """All that was read, None where the line stops in the middle or holds nothing."""
        if self._argv:
            if not self._finish():
                return None
        elif self._joined not in ("", ";"):
            return None
        return tuple(self._commands) or None


def _unquoted(token: str) -> str | None:
    """The word that a token stands for; None where a part of it may expand."""
    pieces = []
    for quoted, double_quoted, bare in _PIECE.findall(token):
        if _TILDE.search(bare):
            return None
        pieces.append(quoted or double_quoted or bare)
    return "".join(pieces)
