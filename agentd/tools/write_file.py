"""`write_file`: a whole file at once."""

from collections.abc import Mapping
from typing import Any

from agentd.protocol.messages import ToolKind
from agentd.tools.base import Action, Description, ToolContext
from agentd.tools.changes import Revision, prepare_change
from agentd.tools.checks import EditChecks
from agentd.tools.targets import describe, locate, place_of, refusal
from agentd.workspace.names import MissingFile, check_new
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.text import Text, check_insertable


class WriteFile:
    """Creates a file, or replaces the whole text of one that the model has read."""

    name = "write_file"
    description = (
        "Create a file, or replace all of one that you have read. The content is stored exactly as sent, "
        "so end it with a newline where the file should have one. Missing folders are created. To change a "
        "part of a file, use edit_file."
    )
    kind: ToolKind = "edit"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "file_path": {
                "type": "string",
                "description": "The file, relative to the workspace or absolute.",
            },
            "content": {"type": "string", "description": "The whole text of the file."},
        },
        "required": ["file_path", "content"],
        "additionalProperties": False,
    }

    def __init__(self, checks: EditChecks | None = None) -> None:
        """`checks` look at what a change did to what is wrong in the file."""
        self._checks = checks or EditChecks()

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Write src/a.py`."""
        return describe("Write", arguments.get("file_path"), context)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Computes the diff."""
        content: str = arguments["content"]
        try:
            place = await _target(context, arguments["file_path"])

            def revise(old: Text | None) -> Revision:
                check_insertable(content, old, place.relative)
                # The model does not see the mark; one that it sends all the same is the file's own.
                text = content.removeprefix("\ufeff") if old is not None and old.mark else content
                return Revision(text, "Replaced")

            return await prepare_change(context, place, revise, self._checks, rebase=False)
        except WorkspaceError as error:
            return refusal(error)


async def _target(context: ToolContext, given: str) -> Place:
    """The file that is meant, which need not exist."""
    try:
        return (await locate(context, given)).place
    except MissingFile as error:
        if error.ambiguous:
            raise
        place = await place_of(context, given)
        check_new(place)
        return place
