"""What the file tools have in common: finding the file that a call names, showing it, refusing."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, TypeVar

import anyio.to_thread

from agentd.protocol.messages import Location
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.workspace.editor import OpenDocument, OperationKind
from agentd.workspace.names import Found, MissingFile, find
from agentd.workspace.paths import PathError, Place, WorkspaceError, lexical_uri, resolve, shown
from agentd.workspace.secrets import is_secret
from agentd.workspace.untitled import is_untitled, not_open, untitled

MAX_RESULT_BYTES = 50_000
"""The most that a tool says to the model at once."""

_MAX_TITLE = 200

_T = TypeVar("_T")


async def in_thread(work: Callable[..., _T], *arguments: Any) -> _T:
    """Do blocking work that changes nothing; cancelling does not wait for it."""
    return await anyio.to_thread.run_sync(work, *arguments, abandon_on_cancel=True)


async def place_of(context: ToolContext, given: str) -> Place:
    """The place a path means, existing or not. Raises PathError."""
    return await in_thread(_place, context.root, given)


async def locate(context: ToolContext, given: str) -> Found:
    """The existing file or folder that a path means, or one that is only in the editor so far.

    Raises PathError, MissingFile.
    """
    if is_untitled(given) and await context.editor.other(given) is not None:
        return Found(untitled(context.root, given), renamed=False)
    place, found = await in_thread(_look, context.root, given)
    if isinstance(found, Found) and not found.renamed:
        return found
    if await unsaved(context, place) is not None:
        return Found(place, renamed=False)
    if isinstance(found, MissingFile):
        if is_untitled(given):
            raise not_open(given, tuple(each.uri for each in await context.editor.untitled()))
        raise found
    return found


def _look(root: Path, given: str) -> tuple[Place, Found | MissingFile]:
    place = _place(root, given)
    try:
        return place, find(place)
    except MissingFile as error:
        return place, error


def _place(root: Path, given: str) -> Place:
    place = resolve(root, given)
    if place.root != root or not os.path.isdir(root):
        raise PathError(
            "not_found",
            f"The workspace folder '{shown(str(root))}' does not exist any more, or leads elsewhere by now. "
            "Tell the user.",
        )
    return place


async def locate_readable(context: ToolContext, given: str) -> Found:
    """The same for tools that only read: kept output of this session's commands counts as well."""
    spilled = context.shell.spills.find(given)
    return Found(spilled, renamed=False) if spilled is not None else await locate(context, given)


async def unsaved(context: ToolContext, place: Place) -> OpenDocument | None:
    """The open document that stands for the file, when its text is not what is on disk.

    A clean document is what is on disk, or older: then the disk is right until the editor reloads.
    """
    document = await context.editor.document(place.path)
    return document if document is not None and document.dirty else None


def is_left_to_editor(context: ToolContext, kind: OperationKind) -> bool:
    """Whether the editor is to do such an operation.

    It goes by names, while a command of any session could put a link in the place of a folder that was looked
    at; so what is done beside one is done on the disk, where no link is followed.
    """
    return context.shell.is_alone and context.editor.can_do(kind)


def check_not_late(context: ToolContext, place: Place) -> None:
    """Refuse to put a file where the editor may yet remove one. Raises WorkspaceError."""
    if context.editor.may_yet_remove(place.path):
        raise WorkspaceError(
            "stale",
            f"The user's editor was asked to remove '{place.shown}', has not answered, and may do it yet, so "
            "nothing new is put there for a minute. Use another name, or ask the user.",
        )


def holds_secrets(place: Place) -> bool:
    """Whether the file, by its own name or by the one given, holds secrets."""
    return is_secret(place.names) or is_secret((PurePath(place.given).name,))


def refusal(error: WorkspaceError) -> Action:
    """An action that only says why not. A bad path is raised instead: the loop reports a failed call."""
    if isinstance(error, PathError):
        raise error

    async def run() -> ToolResult:
        return ToolResult.error(str(error))

    return Action(run)


def describe(verb: str, given: Any, context: ToolContext, line: Any = None) -> Description:
    """`Read src/a.py` and where that is, from arguments that nobody has checked."""
    if not isinstance(given, str):
        return Description(verb)
    return Description(title(f"{verb} {relative_to(context, given)}"), locations(given, context, line))


def title(text: str) -> str:
    """A title on one line, not too long."""
    return shown(text)[:_MAX_TITLE]


def locations(given: Any, context: ToolContext, line: Any = None) -> tuple[Location, ...]:
    """The place that an unchecked path argument seems to name, with a 0-based line; none when outside."""
    uri = _lexical_uri(context.root, given) if isinstance(given, str) else None
    if uri is None:
        return ()
    start = line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None
    return (Location(uri=uri, line=start),)


def _lexical_uri(root: Path, given: str) -> str | None:
    return given if is_untitled(given) else lexical_uri(root, given)


def relative_to(context: ToolContext, given: str) -> str:
    """An absolute path in the workspace made shorter, for people."""
    path = PurePath(os.path.normpath(given))
    return str(path.relative_to(context.root)) if path.is_relative_to(context.root) else given


def argument(arguments: Mapping[str, Any], name: str, default: Any) -> Any:
    """An optional argument; null counts as absent. JSON Schema takes 10.0 for an integer: make it one."""
    value = arguments.get(name)
    return default if value is None else value


def clipped(lines: list[str], reserve: int, limit: int = MAX_RESULT_BYTES) -> list[str]:
    """As many lines as fit in `limit` bytes with their ends, `reserve` bytes kept free."""
    room = limit - reserve
    for index, line in enumerate(lines):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            return lines[:index]
    return lines
