"""`edit_file`: text in a file by other text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.protocol.messages import ToolKind
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.tools.changes import Revision, prepare_change
from agentd.tools.checks import EditChecks
from agentd.tools.replacement import replace
from agentd.tools.targets import argument, describe, locate, refusal
from agentd.workspace.paths import WorkspaceError
from agentd.workspace.text import Text, check_insertable

_OLD = {"type": "string", "description": "The text to replace."}
_NEW = {"type": "string", "description": "The text to put in its place."}
_ALL = {
    "type": "boolean",
    "description": "Replace every occurrence instead of the only one. Default false.",
}
_ONE = {"old_string": _OLD, "new_string": _NEW, "replace_all": _ALL}


class EditFile:
    """Replaces literal text in a file that the model has read; every other byte stays."""

    name = "edit_file"
    description = (
        "Replace text in a file that you have read. old_string must be in the file exactly as it stands, "
        "indentation included, without the line numbers of read_file, and only once: take in enough lines "
        "around it, or set replace_all. Both strings are literal. The file's own line ends are kept. Give "
        "either old_string and new_string, or edits for several replacements at once: they are made in "
        "order, each in the text that the ones before it have left, so a later one may change what an "
        "earlier one has put in. When one of them cannot be made, none is."
    )
    kind: ToolKind = "edit"
    # The choice between the two forms is not in the schema: model servers refuse one at its top level.
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "file_path": {
                "type": "string",
                "description": "The file, relative to the workspace or absolute.",
            },
            **_ONE,
            "edits": {
                "type": "array",
                "description": "Several replacements, instead of old_string, new_string and replace_all.",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": _ONE,
                    "required": ["old_string", "new_string"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["file_path"],
        "additionalProperties": False,
    }

    def __init__(self, checks: EditChecks | None = None) -> None:
        """`checks` look at what a change did to what is wrong in the file."""
        self._checks = checks or EditChecks()

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Edit src/a.py`."""
        return describe("Edit", arguments.get("file_path"), context)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the text and computes the diff."""
        issues = _issues(arguments)
        if issues:
            return _invalid(issues)
        edits = _edits(arguments)
        try:
            place = (await locate(context, arguments["file_path"])).place

            def revise(old: Text | None) -> Revision:
                if old is None:
                    raise WorkspaceError("not_found", f"File not found: '{place.shown}'")
                return _revision(old, edits, place.shown)

            return await prepare_change(context, place, revise, self._checks, rebase=True)
        except WorkspaceError as error:
            return refusal(error)


@dataclass(frozen=True)
class _Edit:
    old: str
    new: str
    every: bool
    label: str = ""  # what a refusal begins with, where there are several


def _issues(arguments: Mapping[str, Any]) -> list[str]:
    """What is wrong with the choice between the two forms, in the words of every argument error."""
    single = [name for name in _ONE if name in arguments]
    if "edits" in arguments:
        return [f"/{name}: must not be given beside edits" for name in single]
    if not single:
        return ["/: either old_string and new_string, or edits is required"]
    return [f"/{name}: is required" for name in ("old_string", "new_string") if name not in single]


def _invalid(issues: Sequence[str]) -> Action:
    async def run() -> ToolResult:
        listed = "".join(f"\n  - {issue}" for issue in issues)
        return ToolResult.error(f'Invalid arguments for tool "{EditFile.name}":{listed}')

    return Action(run)


def _edits(arguments: Mapping[str, Any]) -> Sequence[_Edit]:
    given: Sequence[Mapping[str, Any]] = arguments.get("edits") or [arguments]
    return [
        _Edit(
            edit["old_string"],
            edit["new_string"],
            argument(edit, "replace_all", False),
            f"Edit {number} of {len(given)}: " if len(given) > 1 else "",
        )
        for number, edit in enumerate(given, 1)
    ]


def _revision(old: Text, edits: Sequence[_Edit], name: str) -> Revision:
    """All edits, one after the other. Raises WorkspaceError when one cannot be made."""
    text, count = old.text, 0
    for edit in edits:
        try:
            _check(edit)
            check_insertable(edit.new, old, name)
            replaced = replace(text, edit.old, edit.new, every=edit.every, name=name)
            if replaced.text == text:
                raise WorkspaceError("no_match", f"The edit would change nothing in '{name}'.")
        except WorkspaceError as error:
            raise WorkspaceError(error.kind, f"{edit.label}{error}{_which_lines(edit, text, old)}") from error
        text, count = replaced.text, count + replaced.count
    if text == old.text:
        raise WorkspaceError("no_match", f"The edits together would change nothing in '{name}'.")
    places = f"{count} replacement{'' if count == 1 else 's'}"
    return Revision(text, "Edited", places if len(edits) == 1 else f"{len(edits)} edits, {places}")


def _which_lines(edit: _Edit, text: str, old: Text) -> str:
    """Lines that a refusal names are those of the text so far."""
    if not edit.label or text == old.text:
        return ""
    return "\n(That is the text after the edits before this one, none of which was made.)"


def _check(edit: _Edit) -> None:
    if not edit.old:
        raise WorkspaceError(
            "no_match", "old_string is empty. Name the text to replace; to create a file, use write_file."
        )
    if edit.old == edit.new:
        raise WorkspaceError("no_match", "old_string and new_string are the same. Nothing was changed.")
