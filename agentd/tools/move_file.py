"""`move_file`: gives one file another name, which a rewind takes back."""

from collections.abc import Mapping
from typing import Any

from agentd.protocol.messages import EditDetails, EditSubject, FileChange, ToolKind
from agentd.protocol.text import visible
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.tools.changes import is_guarded
from agentd.tools.targets import holds_secrets, in_thread, locations, refusal, relative_to, title
from agentd.tools.whole_files import content_of, free_place, move, named_file, save_before
from agentd.workspace import files
from agentd.workspace.paths import Place, WorkspaceError


class MoveFile:
    """Moves or renames a file; its content stays as it is, to the byte."""

    name = "move_file"
    description = (
        "Move or rename a file. Nothing is written over: the new name has to be free, and missing folders "
        "are created. A file that is open in the user's editor is renamed there. What refers to the old name "
        "is not changed. It does not move folders or links: use bash for those."
    )
    kind: ToolKind = "move"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "file_path": {
                "type": "string",
                "description": "The file, relative to the workspace or absolute.",
            },
            "new_path": {"type": "string", "description": "Its new name, with the folder."},
        },
        "required": ["file_path", "new_path"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Move src/a.py to src/b.py`."""
        old, new = arguments.get("file_path"), arguments.get("new_path")
        if not isinstance(old, str) or not isinstance(new, str):
            return Description("Move")
        said = f"Move {relative_to(context, old)} to {relative_to(context, new)}"
        return Description(title(said), locations(old, context) + locations(new, context))

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds both places."""
        try:
            place = await named_file(context, arguments["file_path"], "mv")
            await content_of(context, place)  # which is a file, and one that can be read
            files.check_writable(place, (await in_thread(files.read, place)).status)
            target = await free_place(context, arguments["new_path"])
        except WorkspaceError as error:
            return refusal(error)
        patch = visible(f"rename from {place.shown}\nrename to {target.shown}\n")

        async def run() -> ToolResult:
            try:
                await save_before(context, place, "moved")
                await move(context, place, target, f"agentd: Move {place.shown} to {target.shown}")
            except WorkspaceError as error:
                return ToolResult.error(str(error))
            changes = (_change(place, "deleted", patch), _change(target, "created", ""))
            made = ToolResult.text(f"Moved {place.shown} to {target.shown}.", EditDetails(files=changes))
            context.made(made)
            return made

        secret = holds_secrets(place) or holds_secrets(target)
        guarded = await in_thread(is_guarded, place) or await in_thread(is_guarded, target)
        subject = EditSubject(uri=place.uri, target_uri=target.uri, patch=patch)
        return Action(run, subject, secret=secret or guarded)


def _change(place: Place, action: Any, patch: str) -> FileChange:
    return FileChange(uri=place.uri, action=action, patch=patch, additions=0, deletions=0)
