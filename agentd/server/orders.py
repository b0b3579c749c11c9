"""What the editor's actions say to the model, in words. The place itself goes along as a resource block."""

from collections.abc import Iterator
from pathlib import Path

from agentd.server.actions import Target
from agentd.server.findings import SOURCE
from agentd.tools.findings import line_of
from agentd.workspace.paths import WorkspaceError, path_of

_MOST_DIAGNOSTICS = 50


def asked_in(words: str, target: Target, root: Path) -> str:
    """An order that stands as a comment in a file."""
    return (
        f"{words}\n\nI wrote this as a comment in {_place(target, root)}. "
        "Take the comment out of the file once it is done."
    )


def fix(target: Target, root: Path) -> str:
    """Mend what the editor's diagnostics complain about."""
    what = "this problem" if len(target.diagnostics) == 1 else "what is wrong"
    lines = [f"- {line_of(each)}" for each in target.diagnostics[:_MOST_DIAGNOSTICS]]
    more = len(target.diagnostics) - _MOST_DIAGNOSTICS
    lines += [f"- and {more} more"] if more > 0 else []
    is_own = any(each.source == SOURCE for each in target.diagnostics)
    after = ["Then report the findings that are left."] if is_own else []
    return "\n".join([f"Fix {what} in {_place(target, root)}.", *lines, *_wish(target), *after])


def edit(target: Target, root: Path) -> str:
    """Change a part of a file."""
    if target.instruction is not None:
        return f"In {_place(target, root)}: {target.instruction}"
    return f"Improve {_place(target, root)} without changing what it does: make it simpler and clearer."


def explain(target: Target, root: Path) -> str:
    """Explain a part of a file, and change nothing."""
    said = f"Explain {_place(target, root)}: what it does, and why in this way. Change nothing."
    return "\n".join([said, *_wish(target)])


def test(target: Target, root: Path) -> str:
    """Write tests."""
    said = f"Write tests for {_place(target, root)}, in the manner of the tests that are there, and run them."
    return "\n".join([said, *_wish(target)])


def _wish(target: Target) -> Iterator[str]:
    if target.instruction is not None:
        yield target.instruction


def _place(target: Target, root: Path) -> str:
    """A file, and lines of it counted from 1, as people name them."""
    try:
        path = path_of(target.uri)
        name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    except WorkspaceError:
        name = target.uri
    if target.range is None:
        return name
    first, end = target.range.start.line + 1, target.range.end
    last = end.line if end.character == 0 and end.line >= first else end.line + 1
    return f"line {first} of {name}" if last <= first else f"lines {first} to {last} of {name}"
