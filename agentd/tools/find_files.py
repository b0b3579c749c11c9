"""`find_files`: files by their names."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from agentd.protocol.messages import SearchDetails, ToolKind
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.tools.searching import (
    NOTES_BYTES,
    SEARCH_SECONDS,
    base_of,
    describe_search,
    notes,
    search_action,
    unsaved_below,
)
from agentd.tools.targets import clipped
from agentd.workspace.paths import Place, shown
from agentd.workspace.search import run_search
from agentd.workspace.search_job import SearchJob

_LIMIT = 1_000


class FindFiles:
    """Finds files below a folder, by a glob."""

    name = "find_files"
    description = (
        "Find files by name at any depth. `*.py` looks at names, `src/**/*.ts` at whole paths; `*`, `**`, "
        "`?`, `[ab]` and `{a,b}` work. Files that .gitignore excludes, and .git, are left out; hidden "
        "files are not."
    )
    kind: ToolKind = "search"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "glob": {
                "type": "string",
                "description": "The pattern, for example `*.py` or `src/**/test_*.py`.",
            },
            "path": {
                "type": "string",
                "description": "The folder to look in. Default: the workspace itself.",
            },
        },
        "required": ["glob"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Find *.py`."""
        return describe_search(f"Find {arguments.get('glob', 'files')}", arguments, context)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the folder."""
        find = partial(_find, context, arguments["glob"])
        return await search_action(arguments, context, find, shows_contents=False)


async def _find(context: ToolContext, glob: str, place: Place) -> ToolResult:
    job = SearchJob(
        root=str(place.root), base=base_of(place), glob=glob, limit=_LIMIT, seconds=SEARCH_SECONDS
    )
    names = dict.fromkeys(await unsaved_below(context, place), "")
    outcome = await run_search(replace(job, buffers=names))
    found = sorted(shown(result["file"]) for result in outcome.found)
    lines = clipped(found, NOTES_BYTES)
    if len(lines) < len(found):
        outcome.end.cut = "size"
    details = SearchDetails(matches=len(lines), truncated=outcome.end.cut is not None)
    return ToolResult.text(
        "\n".join([*(lines or ["No files found."]), *notes(outcome, "files", len(lines))]), details
    )
