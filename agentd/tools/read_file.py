"""`read_file`: lines of a text file, numbered, or an image."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from agentd.protocol.messages import ReadDetails, ReadSubject, TextContent, ToolKind
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.tools.images import NotShown, checked, for_model
from agentd.tools.targets import (
    argument,
    clipped,
    describe,
    holds_secrets,
    in_thread,
    locate_readable,
    refusal,
    unsaved,
)
from agentd.workspace import files
from agentd.workspace.editor import OpenDocument
from agentd.workspace.held import as_saved
from agentd.workspace.names import Found
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.seen import digest
from agentd.workspace.shrinking import INSTALL, can_shrink
from agentd.workspace.spills import SpilledLines
from agentd.workspace.text import BinaryContent, Text, decode, lines_of, visible
from agentd.workspace.untitled import is_untitled, not_open, untitled

if TYPE_CHECKING:
    from agentd.workspace.image_form import ImageForm

_LINES = 2_000
_MAX_LINE = 2_000  # characters
_NO_FILE = "(not a file: a document in the editor that was never saved)"
_RESERVE = 200  # bytes for the numbers in the first line, and the last line


class ReadFile:
    """Reads a file, or the open document that stands for it. The model has then seen its content."""

    name = "read_file"
    description = (
        "Read a text file of the workspace. Lines are shown as `number | text`; the number and the bar are "
        "not part of the file. A long file comes in parts: go on with the offset named at the end. Read a "
        "file before you change it. A PNG, JPEG, GIF or WebP file is shown as an image. A document in the "
        "user's editor that is no file yet goes by its name there, such as untitled:Untitled-1."
    )
    kind: ToolKind = "read"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "file_path": {
                "type": "string",
                "description": "The file, relative to the workspace or absolute.",
            },
            "offset": {
                "type": "integer",
                "description": "How many lines to skip, from the start of the file. Default 0.",
            },
            "limit": {"type": "integer", "description": "How many lines to show at most. Default 2000."},
        },
        "required": ["file_path"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Read src/a.py`."""
        return describe("Read", arguments.get("file_path"), context, arguments.get("offset"))

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the file; it is read when the action runs."""
        offset = max(0, int(argument(arguments, "offset", 0)))
        limit = max(0, int(argument(arguments, "limit", _LINES)))
        given: str = arguments["file_path"]
        # Documents of other kinds are settings, output and the like, which are not ours to read.
        if is_untitled(given) and (document := await context.editor.other(given)) is not None:
            secret = holds_secrets(untitled(context.root, given))
            run = partial(_read_other, context, given, offset, limit)
            return Action(run, ReadSubject(uri=document.uri), secret=secret)
        try:
            found = await locate_readable(context, given)
        except WorkspaceError as error:
            return refusal(error)
        read = _read_spilled if context.shell.spills.holds(found.place) else read_found
        run = partial(read, context, found, offset, limit)
        return Action(run, ReadSubject(uri=found.place.uri), secret=holds_secrets(found.place))


async def _read_other(context: ToolContext, given: str, offset: int, limit: int) -> ToolResult:
    """A document that is no file yet."""
    document = await context.editor.other(given)
    if document is None:
        return ToolResult.error(str(not_open(given, ())))
    lines = lines_of(visible(document.text))
    page = render(given, lines, offset, limit, note=_NO_FILE)
    context.seen.note(untitled(context.root, given).path, digest(as_saved(None, document).encode()))
    details = ReadDetails(uri=document.uri, start_line=page.start, end_line=page.end, total_lines=len(lines))
    return ToolResult.text(page.text, details)


async def read_found(context: ToolContext, found: Found, offset: int, limit: int) -> ToolResult:
    """The file's lines from `offset` on (from 0), at most `limit`, or the image that it is."""
    place = found.place
    document = await unsaved(context, place)
    try:
        content = await in_thread(_content, place, document)
    except WorkspaceError as error:
        return ToolResult.error(str(error))
    if isinstance(content, _Image):
        return await _show(context, place, content)
    context.seen.note(place.path, content.digest)
    page = render(place.given, content.lines, offset, limit, note=_renamed(found))
    total = len(content.lines)
    details = ReadDetails(uri=place.uri, start_line=page.start, end_line=page.end, total_lines=total)
    return ToolResult.text(page.text, details)


async def _read_spilled(context: ToolContext, found: Found, offset: int, limit: int) -> ToolResult:
    """The same for output of a command, which can be larger than any file that is read whole."""
    place = found.place
    try:
        lines = await in_thread(SpilledLines, place, _MAX_LINE * 4)
        page = await in_thread(render, place.given, lines, offset, limit)
    except WorkspaceError as error:
        return ToolResult.error(str(error))
    details = ReadDetails(uri=place.uri, start_line=page.start, end_line=page.end, total_lines=len(lines))
    return ToolResult.text(page.text, details)


async def _show(context: ToolContext, place: Place, image: "_Image") -> ToolResult:
    """An image as the model's server takes it."""
    form, model = image.form, context.model
    what = f"'{place.shown}' is a {form.name} image ({form.width} x {form.height} pixels)"
    if model is None or not model.images:
        name = f'the model "{model.id}"' if model is not None else "the model"
        return ToolResult.error(
            f"{what}, and {name} takes no images. Tell the user to choose a model that does, or to set "
            "images = true for this one in the configuration if that is wrong."
        )
    if not can_shrink():
        return ToolResult.error(
            f"{what}. Showing image files needs Pillow, which is not installed beside agentd. Tell the user: "
            f"{INSTALL}"
        )
    try:
        content, shown_as = await for_model(image.data, form, model.image_limits)
    except NotShown as error:
        return ToolResult.error(f"{what} and cannot be shown: {error}.")
    context.seen.note(place.path, digest(image.data))
    size = f"{form.width} x {form.height} pixels, {len(image.data):,} bytes"
    if (shown_as.width, shown_as.height) != (form.width, form.height):
        size += f"; shown at {shown_as.width} x {shown_as.height}"
    head = f"Image: {shown(place.given)} ({form.name}, {'animated, ' if form.animated else ''}{size})"
    details = ReadDetails(uri=place.uri, start_line=0, end_line=0, total_lines=0)
    return ToolResult((TextContent(text=head), content), details=details)


@dataclass(frozen=True)
class _Content:
    lines: list[str]
    digest: str


@dataclass(frozen=True)
class _Image:
    data: bytes
    form: "ImageForm"


def _content(place: Place, document: OpenDocument | None) -> _Content | _Image:
    """What the file holds, or the unsaved document as it would be saved."""
    before = files.read_if_present(place) if document is not None else files.read(place)
    try:
        text = decode(before.data) if before is not None else Text("")
    except BinaryContent as error:
        if document is None and before is not None and (form := _image_form(place, before.data)) is not None:
            return _Image(before.data, form)
        raise WorkspaceError(
            "binary",
            f"'{place.shown}' is a binary file, not text. Use bash with file, xxd or strings to look into "
            "it.",
        ) from error
    if document is not None:
        text = as_saved(text, document)
    data = before.data if before is not None and document is None else text.encode()
    return _Content(lines_of(text.text), digest(data))


def _image_form(place: Place, data: bytes) -> "ImageForm | None":
    """What image the file is, by its bytes; None where it is none. Raises WorkspaceError for a bad one."""
    try:
        return checked(data)
    except NotShown as error:
        raise WorkspaceError("binary", f"'{place.shown}' cannot be shown as an image: {error}.") from error


def _renamed(found: Found) -> str | None:
    return f"(its exact name is {found.place.relative!a})" if found.renamed else None


class Lines(Protocol):
    """The lines of a file: a list, or what reads only those that are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Iterable[str]: ...


@dataclass(frozen=True)
class Page:
    """A part of a file as the model sees it; 1-based first and last line, both 0 where none is shown."""

    text: str
    start: int
    end: int


def render(given: str, lines: Lines, offset: int, limit: int, note: str | None = None) -> Page:
    """The lines from `offset` on (from 0), at most `limit` of them and no more than a result may hold."""
    head = f"File: {shown(given)} ({len(lines)} lines total, showing "
    numbered = [
        f"{number:5d} | {_cut(line)}"
        for number, line in enumerate(lines[offset : offset + limit], offset + 1)
    ]
    body = clipped(numbered, len(head.encode()) + len((note or "").encode()) + _RESERVE)
    start, end = (offset + 1, offset + len(body)) if body else (0, 0)
    text = [head + (f"{start}-{end})" if body else "none)"), *([note] if note else []), *body]
    left = len(lines) - offset - len(body)
    if left > 0:
        text.append(f"({left} more lines; continue with offset={offset + len(body)})")
    return Page("\n".join(text), start, end)


def _cut(line: str) -> str:
    return visible(line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + "... (truncated)")
