"""Patches as ACP shows them: for each place that changed, its old and its new text."""

import re
from collections.abc import Iterator
from typing import Any

from agentd.protocol.messages import FileAction
from agentd.protocol.text import clean_text
from agentd.workspace.paths import WorkspaceError, path_of

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_NO_NEWLINE = "\\"


def path_in(uri: str) -> str:
    """The path of a file's URI, with marks for what is no Unicode in it; another URI as it is."""
    try:
        return clean_text(str(path_of(uri)))
    except WorkspaceError:
        return uri


def diff_blocks(uri: str, patch: str, action: FileAction | None = None) -> list[dict[str, Any]]:
    """A block for each hunk of a patch, with the lines around it; one for a file that is empty.

    A file that is new, as the patch or `action` says, has no old text.
    """
    created = action == "created" or patch.startswith("--- /dev/null")
    blocks = [_block(uri, None if created else old, new) for old, new in _hunks(patch)]
    if not blocks and (created or action == "deleted"):
        blocks = [_block(uri, None if created else "", "")]
    return blocks


def _block(uri: str, old: str | None, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path_in(uri), "oldText": old, "newText": new}


def _hunks(patch: str) -> Iterator[tuple[str, str]]:
    """The old and the new lines of each hunk."""
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    inside = False
    for line in patch.split("\n"):
        if _HUNK.match(line):
            if inside:
                yield "".join(old), "".join(new)
            old, new, last, inside = [], [], (), True
        elif inside and line.startswith(_NO_NEWLINE):
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
        elif inside and line:
            last = {"-": (old,), "+": (new,)}.get(line[0], (old, new))
            for side in last:
                side.append(line[1:] + "\n")
    if inside:
        yield "".join(old), "".join(new)
