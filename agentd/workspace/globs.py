"""Patterns for file names: `*`, `?`, `**`, `[...]` and `{a,b}`.

A pattern without `/` is for the name alone, at any depth; one with `/` is for the whole path. What is in
brackets also matches itself, since many real names hold brackets (`pages/[id].tsx`).
"""

import re

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]/]*\]|[{},]|.", re.DOTALL)
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_BRACES = {"{": "(?:", "}": ")"}


def compile_glob(glob: str) -> re.Pattern[str]:
    """The pattern as a regular expression to `fullmatch` a path with; never fails."""
    glob = glob.removeprefix("./").lstrip("/")
    if "/" not in glob:
        glob = "**/" + glob
    return re.compile(_translated(glob), re.DOTALL)


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
