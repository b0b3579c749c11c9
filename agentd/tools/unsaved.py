"""Before a command runs: what the user has typed and not saved, which no command sees."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentd.tools.base import ToolContext

NOT_WANTED = (
    "The command was not run: there are unsaved files in the editor, and the user chose not to go on before "
    "they are saved. Ask the user how to go on."
)
_NAMED_FILES = 10


async def save_first(context: ToolContext) -> list[str] | None:
    """Have unsaved files of the workspace saved; gives the note on those that the command will not see.

    None when the user wants the command not to run.
    """
    unsaved = await _unsaved(context)
    if not unsaved:
        return []
    saving = await context.editor.save(unsaved)
    return None if saving.cancelled else _note(await _unsaved(context), dict(saving.failed), context.root)


async def _unsaved(context: ToolContext) -> list[Path]:
    """Of the workspace only: other folders may be open in the same editor, and are nobody's business here."""
    return [path for path in await context.editor.dirty_paths() if path.is_relative_to(context.root)]


def _note(unsaved: Sequence[Path], failed: Mapping[Path, str], root: Path) -> list[str]:
    """A line that names the files whose text in the editor a command does not see."""
    if not unsaved:
        return []
    names = sorted(
        os.path.relpath(path, root) + (f" ({why})" if (why := failed.get(path)) else "") for path in unsaved
    )
    more = f" and {len(names) - _NAMED_FILES} more" if len(names) > _NAMED_FILES else ""
    return [
        "[unsaved in the editor, so the command saw the older text on disk: "
        f"{', '.join(names[:_NAMED_FILES])}{more}]"
    ]
