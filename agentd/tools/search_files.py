"""`search_files`: lines that match a regular expression."""

from collections.abc import Iterator, Mapping
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
from agentd.tools.targets import argument, clipped, holds_secrets
from agentd.workspace.paths import Place, shown
from agentd.workspace.search import SearchOutcome, run_search
from agentd.workspace.search_job import SearchJob

_LIMIT = 200
_MAX_LIMIT = 1_000
_MAX_CONTEXT = 20


class SearchFiles:
    """Searches the files below a folder, or one file, line by line. Unsaved documents count."""

    name = "search_files"
    description = (
        "Search the contents of files with a regular expression (Python syntax; put a backslash before "
        "special characters that you mean literally). Each line is matched by itself. Results read "
        "`path:line: text`, with context lines as `path-line- text`. Files that a .gitignore excludes, "
        "binary files and files that may hold secrets are left out; hidden files are not."
    )
    kind: ToolKind = "search"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The regular expression."},
            "path": {
                "type": "string",
                "description": "The folder or file to search. Default: the workspace itself.",
            },
            "glob": {
                "type": "string",
                "description": "Only files with such names, for example `*.{ts,tsx}`.",
            },
            "case": {
                "type": "string",
                "enum": ["sensitive", "insensitive"],
                "description": "Whether upper and lower case differ. Default: sensitive.",
            },
            "context": {
                "type": "integer",
                "description": "Lines to show before and after each match, at most 20. Default 0.",
            },
            "limit": {"type": "integer", "description": "Matching lines to show, at most 1000. Default 200."},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Search for TODO`."""
        return describe_search(f"Search for {arguments.get('pattern', '?')}", arguments, context)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the folder or file; a file that holds secrets is searched only when it is named itself."""
        search = partial(_search, arguments, context)
        return await search_action(arguments, context, search, shows_contents=True)


async def _search(arguments: Mapping[str, Any], context: ToolContext, place: Place) -> ToolResult:
    job = SearchJob(
        root=str(place.root),
        base=base_of(place),
        glob=arguments.get("glob"),
        pattern=arguments["pattern"],
        ignore_case=argument(arguments, "case", "sensitive") == "insensitive",
        context=min(max(0, int(argument(arguments, "context", 0))), _MAX_CONTEXT),
        limit=min(max(1, int(argument(arguments, "limit", _LIMIT))), _MAX_LIMIT),
        with_secrets=holds_secrets(place),
        seconds=SEARCH_SECONDS,
        buffers=await unsaved_below(context, place),
    )
    return _told(await run_search(job), separate=job.context > 0)


def _told(outcome: SearchOutcome, *, separate: bool) -> ToolResult:
    pairs = [pair for result in outcome.found for pair in _lines(result, separate)]
    pairs = pairs[1:] if separate else pairs
    lines = clipped([line for line, _ in pairs], NOTES_BYTES)
    if len(lines) < len(pairs):
        outcome.end.cut = outcome.end.cut or "size"
    matches = sum(is_match for _, is_match in pairs[: len(lines)])
    if not matches:
        lines = [f"No matches in {outcome.end.files} file{'' if outcome.end.files == 1 else 's'}."]
    details = SearchDetails(matches=matches, truncated=outcome.end.cut is not None)
    return ToolResult.text("\n".join([*lines, *notes(outcome, "matches", matches)]), details)


def _lines(result: Mapping[str, Any], separate: bool) -> Iterator[tuple[str, bool]]:
    """The result of one file, line by line, and whether it is a match. `--` before each group."""
    path = shown(result["file"])
    expected = None
    for number, text, is_match in result["lines"]:
        if separate and number != expected:
            yield "--", False
        mark = ":" if is_match else "-"
        yield f"{path}{mark}{number}{mark} {text}", is_match
        expected = number + 1
