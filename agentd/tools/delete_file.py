"""`delete_file`: removes one file, which a rewind brings back."""

from collections.abc import Mapping
from typing import Any

from agentd.protocol.messages import EditDetails, EditSubject, ToolKind
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.tools.changes import is_guarded
from agentd.tools.targets import describe, holds_secrets, in_thread, refusal
from agentd.tools.whole_files import content_of, named_file, remove, save_before, told_change
from agentd.workspace import files
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.text import BinaryContent, decode


class DeleteFile:
    """Removes a file that the model has read, or that is no text."""

    name = "delete_file"
    description = (
        "Delete a file. One that is text has to be read first. Where it is open in the user's editor it is "
        "closed there. It does not delete folders or links: use bash for those."
    )
    kind: ToolKind = "delete"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "file_path": {
                "type": "string",
                "description": "The file, relative to the workspace or absolute.",
            },
        },
        "required": ["file_path"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Delete src/a.py`."""
        return describe("Delete", arguments.get("file_path"), context)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Shows what would be lost."""
        try:
            place = await named_file(context, arguments["file_path"], "rm -r")
            data = await content_of(context, place)
            await in_thread(_check, place, data, context)
            change = await in_thread(told_change, place, data, None)
        except WorkspaceError as error:
            return refusal(error)

        async def run() -> ToolResult:
            try:
                await save_before(context, place, "deleted")
                await remove(context, place, data, f"agentd: Delete {place.shown}")
            except WorkspaceError as error:
                return ToolResult.error(str(error))
            lines = f" ({change.deletions} line{'' if change.deletions == 1 else 's'})" if data else ""
            made = ToolResult.text(f"Deleted {place.shown}{lines}.", EditDetails(files=(change,)))
            context.made(made)
            return made

        guarded = await in_thread(is_guarded, place)
        subject = EditSubject(uri=place.uri, patch=change.patch)
        return Action(run, subject, secret=holds_secrets(place) or guarded)


def _check(place: Place, data: bytes, context: ToolContext) -> None:
    """Refuse what the model has not seen as it is, where it could have, and what is read-only."""
    files.check_writable(place, files.read(place).status)
    if not context.seen.knows(place.path):
        try:
            decode(data)
        except BinaryContent:
            return
        raise WorkspaceError(
            "unseen",
            f"'{place.shown}' was not read in this session. Read it with read_file first, then delete it.",
        )
    if not context.seen.is_current(place.path, data):
        raise files.stale(place)
