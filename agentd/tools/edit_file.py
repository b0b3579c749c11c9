"""`edit_file`: text in a file by other text."""

from collections.abc import Mapping
from typing import Any

from agentd.protocol.messages import ToolKind
from agentd.tools.base import Action, Description, ToolContext
from agentd.tools.changes import Revision, prepare_change
from agentd.tools.replacement import replace
from agentd.tools.targets import argument, describe, locate, refusal
from agentd.workspace.paths import WorkspaceError
from agentd.workspace.text import Text, check_insertable


class EditFile:
    """Replaces literal text in a file that the model has read; every other byte stays."""

    name = "edit_file"
    description = (
        "Replace text in a file that you have read. old_string must be in the file exactly as it stands, "
        "indentation included, without the line numbers of read_file, and only once: take in enough lines "
        "around it, or set replace_all. Both strings are literal. The file's own line ends are kept."
    )
    kind: ToolKind = "edit"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "file_path": {
                "type": "string",
                "description": "The file, relative to the workspace or absolute.",
            },
            "old_string": {"type": "string", "description": "The text to replace."},
            "new_string": {"type": "string", "description": "The text to put in its place."},
            "replace_all": {
                "type": "boolean",
                "description": "Replace every occurrence instead of the only one. Default false.",
            },
        },
        "required": ["file_path", "old_string", "new_string"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Edit src/a.py`."""
        return describe("Edit", arguments.get("file_path"), context)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the text and computes the diff."""
        old_string, new_string = arguments["old_string"], arguments["new_string"]
        every = argument(arguments, "replace_all", False)
        try:
            place = (await locate(context, arguments["file_path"])).place
            _check(old_string, new_string)

            def revise(old: Text | None) -> Revision:
                if old is None:
                    raise WorkspaceError("not_found", f"File not found: '{place.shown}'")
                check_insertable(new_string, old, place.relative)
                replaced = replace(old.text, old_string, new_string, every=every, name=place.shown)
                if replaced.text == old.text:
                    raise WorkspaceError("no_match", f"The edit would change nothing in '{place.shown}'.")
                count = replaced.count
                return Revision(replaced.text, "Edited", f"{count} replacement{'' if count == 1 else 's'}")

            return await prepare_change(context, place, revise, rebase=True)
        except WorkspaceError as error:
            return refusal(error)


def _check(old_string: str, new_string: str) -> None:
    if not old_string:
        raise WorkspaceError(
            "no_match", "old_string is empty. Name the text to replace; to create a file, use write_file."
        )
    if old_string == new_string:
        raise WorkspaceError("no_match", "old_string and new_string are the same. Nothing was changed.")
