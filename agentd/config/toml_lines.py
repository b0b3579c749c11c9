"""On which line of a TOML document each key stands: `tomllib` does not say, and error messages need it."""

import re
from dataclasses import dataclass, field

KeyPath = tuple[str, ...]

# TOML 1.0 at the grain needed to find keys. Strings come before what may stand inside them.
_TOKEN = re.compile(
    r'''
      (?P<comment> \#[^\n]*)
    | (?P<text>    """(?:\\.|[^\\])*?"{3,5} | \'\'\'.*?\'{3,5})
    | (?P<quoted>  "(?:\\.|[^"\\\n])*" | '[^'\n]*')
    | (?P<bare>    [A-Za-z0-9_-]+)
    | (?P<newline> \n)
    | (?P<sign>    [\[\]{},=])
    ''',
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Path of each key and table -> the 0-based line it first stands on. The document must be valid TOML."""
    scan = _Scan()
    for token in _TOKEN.finditer(text):
        scan.take(token.lastgroup or "", token[0])
    return scan.lines


@dataclass
class _Scan:
    """A walk over the tokens of a document.

    `key` is the key being read, None behind its `=`; `table` is what it is relative to, `current` what is
    being given a value; `outer` holds, for each open bracket of a value, the bracket and the table around it.
    """

    lines: dict[KeyPath, int] = field(default_factory=dict)
    line: int = 0
    table: KeyPath = ()
    key: KeyPath | None = ()
    current: KeyPath = ()
    outer: list[tuple[str, KeyPath]] = field(default_factory=list)

    def take(self, kind: str, token: str) -> None:
        """Look at the next token."""
        if self.key is not None and kind in ("bare", "quoted"):
            self.key = (*self.key, token if kind == "bare" else _unquoted(token))
        elif kind == "sign":
            self._take_sign(token)
        elif kind == "newline" and not self.outer:
            self.key = ()
        self.line += token.count("\n")

    def _take_sign(self, sign: str) -> None:
        if self.key is not None and not self.outer and sign in "[]":
            self._take_header(sign)
        elif sign == "=" and self.key is not None:
            self.current = self._note((*self.table, *self.key))
            self.key = None
        elif sign in "[{":
            self.outer.append((sign, self.table))
            if sign == "{":
                self.table, self.key = self.current, ()
        elif sign in "]}" and self.outer:
            _, self.table = self.outer.pop()
            self.key = None
        elif sign == "," and self.outer and self.outer[-1][0] == "{":
            self.key = ()

    def _take_header(self, sign: str) -> None:
        """`[a.b]` or `[[a.b]]`: what follows is relative to it."""
        if sign == "]" and self.key:
            self.table = self._note(self.key)
            self.key = ()

    def _note(self, path: KeyPath) -> KeyPath:
        """Remember the line of a path, and of the tables that it opens on the way."""
        for end in range(1, len(path) + 1):
            self.lines.setdefault(path[:end], self.line)
        return path


def _unquoted(token: str) -> str:
    import tomllib

    text: str = tomllib.loads(f"text = {token}")["text"]
    return text
