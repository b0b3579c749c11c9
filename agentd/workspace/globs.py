"""Patterns for file names: `*`, `?`, `**`, `[...]` and `{a,b}`.

A pattern without `/` is for the name alone, at any depth; one with `/` is for the whole path. What is in
brackets also matches itself, since many real names hold brackets (`pages/[id].tsx`).
"""

import re
from collections.abc import Iterable, Sequence

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]/]*\]|[{},]|.", re.DOTALL)
_PLAIN_NAME = re.compile(r"(?!\*?\Z)(?!.*\*\*)[\w.*-]+", re.ASCII)
_LITERAL_END = re.compile(r"[^*?\[\]{}/]*\Z", re.DOTALL)
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_BRACES = {"{": "(?:", "}": ")"}


def compile_glob(glob: str) -> re.Pattern[str]:
    """The pattern as a regular expression to `fullmatch` a path with; never fails."""
    glob = glob.removeprefix("./").lstrip("/")
    if "/" not in glob:
        glob = "**/" + glob
    return re.compile(_translated(glob), re.DOTALL)


class Glob:
    """A pattern for the files below a folder at `base`, whose own path from the root may be part of it."""

    def __init__(self, glob: str, base: Sequence[str] = ()) -> None:
        self._regex = compile_glob(glob)
        self._base = tuple(base)
        glob = glob.removeprefix("./").lstrip("/")
        self._is_for_names = not ("/" in glob or "**" in glob)
        self._is_for_all = glob in ("*", "**", "**/*")
        end = _LITERAL_END.search(glob)
        self._end = end[0] if end else ""
        name = glob.rpartition("/")[2]
        plain = _PLAIN_NAME.fullmatch(name)
        self.loose_name = name if plain else f"*{self._end}" if _PLAIN_NAME.fullmatch(self._end) else None
        """A glob that all programs read alike, and that each name that this one matches matches too."""

    def select(self, names: Iterable[str]) -> Iterable[str]:
        """The names that may be those of files that match."""
        return [name for name in names if name.endswith(self._end)] if self._end else names

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether it speaks of the file with these components from the root."""
        if self._is_for_all:
            return True
        if not parts[-1].endswith(self._end):
            return False
        if self._is_for_names:
            return self._regex.fullmatch(parts[-1]) is not None
        below = "/".join(parts[len(self._base) :])
        return any(self._regex.fullmatch(path) for path in (below, "/".join(parts)))


def _translated(glob: str) -> str:
    choices = _is_balanced(glob)
    depth = 0
    parts: list[str] = []
    for token in _TOKEN.findall(glob):
        if choices and token in ("{", "}"):
            depth += 1 if token == "{" else -1
            parts.append(_BRACES[token])
        elif depth and token == ",":
            parts.append("|")
        elif token in _WILDCARDS:
            parts.append(_WILDCARDS[token])
        elif len(token) > 1:
            parts.append(f"(?:{_class(token)}|{re.escape(token)})")
        else:
            parts.append(re.escape(token))
    return "".join(parts)


def _is_balanced(glob: str) -> bool:
    depth = 0
    for token in _TOKEN.findall(glob):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth < 0:
            return False
    return depth == 0


def _class(token: str) -> str:
    """A character class that never matches `/`; one that makes no sense matches nothing."""
    body = token[1:-1]
    negated = body[:1] in ("!", "^")
    escaped = re.sub(r"([\\\[\]&~|^])", r"\\\1", body[1:] if negated else body)
    candidate = f"(?!/)[{'^' if negated else ''}{escaped}]"
    try:
        re.compile(candidate)
    except re.error:
        return r"(?!)"
    return candidate
