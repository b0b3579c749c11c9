"""Diagnostics as the model reads them: `src/a.py:12:5: error: undefined name 'x' (F821 ruff)`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agentd.protocol.documents import Diagnostic
from agentd.protocol.text import visible
from agentd.tools.targets import clipped
from agentd.workspace.diagnostics import new_and_fixed
from agentd.workspace.paths import shown
from agentd.workspace.secrets import is_secret

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_MOST_LINES = 20
_MOST_MESSAGE = 500
_MOST_CODE = 100


def line_of(diagnostic: Diagnostic) -> str:
    """`12:5: error: undefined name 'x' (F821 ruff)`; line and character from 1, as in read_file."""
    start = diagnostic.range.start
    severity = _SEVERITIES.get(diagnostic.severity or 0, "problem")
    message = " ".join(visible(diagnostic.message).split())[:_MOST_MESSAGE]
    named = (diagnostic.code, diagnostic.source)
    source = " ".join(str(each)[:_MOST_CODE] for each in named if each is not None)
    by = f" ({visible(source, kept='')})" if source else ""
    return f"{start.line + 1}:{start.character + 1}: {severity}: {message}{by}"


def listed(found: Mapping[Path, Sequence[Diagnostic]], root: Path, limit: int) -> tuple[list[str], int]:
    """The diagnostics of files of the workspace, line by line and file by file, and how many there are.

    Those of files that hold secrets are left out: they may quote them.
    """
    lines = []
    for path in sorted(found):
        if not path.is_relative_to(root) or is_secret(path.relative_to(root).parts):
            continue
        name = shown(path.relative_to(root).as_posix())
        ordered = sorted(found[path], key=lambda each: (each.range.start.line, each.range.start.character))
        lines += [f"{name}:{line_of(each)}" for each in ordered]
    return clipped(lines, limit), len(lines)


def told_difference(by: str, before: Sequence[Diagnostic], after: Sequence[Diagnostic]) -> str:
    """What a change did to the diagnostics of a file, to be said behind its result; `by` knows them."""
    new, fixed = new_and_fixed(before, after)
    if not new and not fixed:
        return ""
    left = f"{len(after)} in all" if after else "none left"
    lines = [f"Diagnostics of {by}: {len(new)} new, {len(fixed)} fixed, {left}."]
    lines += _some("new", new) + _some("fixed", fixed)
    return "\n" + "\n".join(lines)


def _some(word: str, diagnostics: Sequence[Diagnostic]) -> list[str]:
    lines = [f"{word}: {line_of(each)}" for each in diagnostics[:_MOST_LINES]]
    more = len(diagnostics) - _MOST_LINES
    return [*lines, *([f"{word}: {more} more"] if more > 0 else [])]
