"""Changing a file in the editor, where it is open: the disk is left to the user's own saving."""

from dataclasses import dataclass

from anyio import CancelScope

from agentd.tools.base import ToolContext, ToolResult
from agentd.tools.keeping import kept
from agentd.tools.read_file import render
from agentd.workspace.alone import alone
from agentd.workspace.editor import Applied, BufferEdit, ChangedOtherwise, NotApplied, OpenDocument
from agentd.workspace.files import Snapshot
from agentd.workspace.held import Held
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.seen import digest
from agentd.workspace.text import lines_of
from agentd.workspace.untitled import Untitled

_AROUND = 3
_MOST_LINES = 40


@dataclass(frozen=True)
class BufferChange:
    """New text for an open document, and how that is `told` to the model and the user."""

    held: Held
    document: OpenDocument
    text: str
    told: str


class _NotDone(WorkspaceError):
    """Ends a checkpoint's context, so that it takes the change back."""

    def __init__(self, outcome: NotApplied | ChangedOtherwise) -> None:
        super().__init__("stale", "the editor did not make the change")
        self.outcome = outcome


async def change_buffer(context: ToolContext, place: Place, wanted: BufferChange) -> ToolResult | None:
    """Have the editor make the change. None where the document was another one by then, and nothing was sent.

    Raises WorkspaceError where what it was before cannot be kept.
    """
    async with alone(place.path):
        document = await context.editor.document(place.path)
        if document is None or document.text != wanted.document.text:
            return None  # a sub-agent was quicker: a change that cannot be made is none to be kept
        try:
            outcome = await _made(context, place, wanted)
        except _NotDone as done:
            return _failed(context, place, wanted, done.outcome)
    note = "" if outcome.saved else " The change is in the editor, where the file is open, and not saved yet."
    if isinstance(place, Untitled):
        note = " It is no file yet: the user has to save it under a name."
    if outcome.now != outcome.text:
        note += " The user has typed in it since: read it again before you change it again."
    return ToolResult.text(wanted.told + note)


async def _made(context: ToolContext, place: Place, wanted: BufferChange) -> Applied:
    """The change, made and kept. Raises `_NotDone`, and WorkspaceError where it cannot be kept."""
    shown, snapshot = wanted.held.shown(wanted.text), wanted.held.snapshot
    edit = BufferEdit(place.path, wanted.document.text, shown, f"agentd: {wanted.told.rstrip('.')}")
    after = wanted.held.saved(shown)
    async with kept(context, place, snapshot, after, in_buffer=True):
        outcome = await context.editor.apply(edit)
        if not isinstance(outcome, Applied):
            raise _NotDone(outcome)
        # Its line ends may be the editor's own, and what it has now is what can be brought back.
        really = wanted.held.saved(outcome.text)
    if really != after and snapshot is not None:
        with CancelScope(shield=True):
            before = Snapshot(after, snapshot.status)
            async with kept(context, place, before, really, in_buffer=True):
                pass
    context.seen.note(place.path, digest(really))
    return outcome


def _failed(
    context: ToolContext, place: Place, wanted: BufferChange, outcome: NotApplied | ChangedOtherwise
) -> ToolResult | None:
    if isinstance(outcome, NotApplied):
        if outcome.stale:
            return None
        return ToolResult.error(
            f"'{place.shown}' was not changed: {outcome.reason}. It is open in the user's editor; read it "
            "again before you repeat the change."
        )
    context.seen.forget([place.path])
    if outcome.now is None:
        return ToolResult.error(
            f"'{place.shown}' was closed in the editor while it was changed, and whether the change was kept "
            "is not known. Read it again."
        )
    return ToolResult.error(
        f"'{place.shown}' was changed by the user at the same moment, so it is not as you wanted it. Read it "
        f"again before you change it again. That part is now:\n{_region(place, wanted.text, outcome.now)}"
    )


def _region(place: Place, wanted: str, now: str) -> str:
    """The lines in which a text is not the wanted one, with some around them, as read_file shows them."""
    old, new = lines_of(wanted), lines_of(now)
    same = min(len(old), len(new))
    start = next((index for index in range(same) if old[index] != new[index]), same)
    tail = next((index for index in range(same - start) if old[-1 - index] != new[-1 - index]), same - start)
    first = max(start - _AROUND, 0)
    return render(place.given, new, first, min(len(new) - tail + _AROUND - first, _MOST_LINES)).text
