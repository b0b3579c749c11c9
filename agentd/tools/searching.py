"""What the two searches have in common: how they open, and what they say beside what they found."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agentd.protocol.messages import ReadSubject
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.tools.targets import argument, holds_secrets, locate, locate_readable, locations, refusal, title
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.search import SearchOutcome
from agentd.workspace.untitled import Untitled

SEARCH_SECONDS = 15.0
"""How long a search may take."""

NOTES_BYTES = 1_000
"""Room that the notes take at most."""


def describe_search(what: str, arguments: Mapping[str, Any], context: ToolContext) -> Description:
    """The title, and the place that the argument `path` seems to name."""
    return Description(title(what), locations(argument(arguments, "path", "."), context))


async def search_action(
    arguments: Mapping[str, Any],
    context: ToolContext,
    search: Callable[[Place], Awaitable[ToolResult]],
    *,
    shows_contents: bool,
) -> Action:
    """The action that searches the place which the argument `path` names, by default the workspace.

    What shows contents may look into kept output of commands too, and into a file or folder of secrets only
    when the user agrees. Raises PathError.
    """
    find = locate_readable if shows_contents else locate
    try:
        place = (await find(context, argument(arguments, "path", "."))).place
    except WorkspaceError as error:
        return refusal(error)

    async def run() -> ToolResult:
        try:
            return await search(place)
        except WorkspaceError as error:
            return ToolResult.error(str(error))

    return Action(run, ReadSubject(uri=place.uri), secret=shows_contents and holds_secrets(place))


async def unsaved_below(context: ToolContext, place: Place) -> dict[str, str]:
    """The unsaved text of open documents at or below a place, by path from the root.

    What is no file yet counts as one in the workspace folder that has its URI for a name.
    """
    if isinstance(place, Untitled):
        document = await context.editor.document(place.path)
        return {place.uri: document.text if document is not None else ""}
    buffers: dict[str, str] = {}
    if not place.parts:
        buffers = {each.uri: each.text for each in await context.editor.untitled() if _is_path(each.uri)}
    for path in await context.editor.dirty_paths():
        if path.is_relative_to(place.path):
            document = await context.editor.document(path)
            if document is not None and document.dirty:
                buffers[path.relative_to(place.root).as_posix()] = document.text
    return buffers


def base_of(place: Place) -> tuple[str, ...]:
    """Where a search begins, from the root."""
    return tuple(place.uri.split("/")) if isinstance(place, Untitled) else place.parts


def _is_path(uri: str) -> bool:
    """Whether a URI can stand for a path."""
    return all(part not in ("", ".", "..") for part in uri.split("/"))


def notes(outcome: SearchOutcome, noun: str, shown: int) -> list[str]:
    """One line each, in brackets. `noun` is what is counted, `shown` how many of them the result holds."""
    end = outcome.end
    said: list[str] = []
    if outcome.stuck:
        said.append(
            f"stopped after {SEARCH_SECONDS:.0f} s within one match, so there may be more: the pattern "
            "backtracks too much; make it simpler"
        )
    elif end.cut == "time":
        said.append(f"stopped after {SEARCH_SECONDS:.0f} s, so there may be more; narrow the path or glob")
    elif end.cut is not None:
        said.append(f"cut after {shown} {noun}, there are more; narrow the pattern, path or glob")
    if end.secret:
        said.append(f"{_files(end.secret)} that may hold secrets not searched; name one as path to search it")
    for count, reason in (
        (end.binary, "binary, not searched"),
        (end.too_large, "too large, not searched; use bash with grep"),
        (end.unreadable, "could not be read"),
    ):
        if count:
            said.append(f"{_files(count)}: {reason}")
    return [f"({note})" for note in said]


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"
