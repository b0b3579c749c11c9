"""`list_directory`: what is in a folder."""

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from agentd.protocol.messages import ReadSubject, ToolKind
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.tools.targets import argument, clipped, describe, in_thread, locate, refusal
from agentd.workspace.beneath import directory
from agentd.workspace.files import os_error
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.temporaries import is_temporary

_MAX_ENTRIES = 1_000
_RESERVE = 200  # bytes for the word on what was cut


class ListDirectory:
    """Lists one folder, nothing below it, ignored and hidden files included."""

    name = "list_directory"
    description = (
        "List a folder of the workspace: one name a line, folders with a trailing /, links with an arrow "
        "to their target. Hidden and ignored files are shown too. To find files at any depth, use "
        "find_files."
    )
    kind: ToolKind = "read"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "The folder, relative to the workspace or absolute. Default: the workspace.",
            }
        },
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`List src`."""
        return describe("List", argument(arguments, "path", "."), context)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the folder."""
        try:
            place = (await locate(context, argument(arguments, "path", "."))).place
        except WorkspaceError as error:
            return refusal(error)
        return Action(partial(_list, place), ReadSubject(uri=place.uri))


async def _list(place: Place) -> ToolResult:
    try:
        entries = await in_thread(_entries, place)
    except NotADirectoryError:
        return ToolResult.error(f"'{place.shown}' is a file, not a directory; use read_file.")
    except OSError as error:
        return ToolResult.error(str(os_error(place, error)))
    if not entries:
        return ToolResult.text(f"'{place.shown}' is empty.")
    lines = clipped(entries[:_MAX_ENTRIES], _RESERVE)
    if len(lines) < len(entries):
        lines.append(
            f"({len(entries) - len(lines)} more entries, not shown; use find_files with a glob to narrow "
            "them)"
        )
    return ToolResult.text("\n".join(lines))


def _entries(place: Place) -> list[str]:
    with directory(place.root, place.parts) as fd, os.scandir(fd) as entries:
        kept = (entry for entry in entries if not is_temporary(entry.name))
        return [_entry(fd, entry) for entry in sorted(kept, key=lambda entry: entry.name)]


def _entry(fd: int, entry: "os.DirEntry[str]") -> str:
    name = shown(entry.name)
    if entry.is_symlink():
        try:
            return f"{name} -> {shown(os.readlink(entry.name, dir_fd=fd))}"
        except OSError:
            return f"{name} -> (gone)"  # it was replaced or removed just now
    return name + "/" if entry.is_dir(follow_symlinks=False) else name
