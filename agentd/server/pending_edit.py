"""An edit that the editor was asked to make, and what is heard of it; see `editor.py`."""

from collections.abc import Callable
from pathlib import Path

import anyio

from agentd.protocol.text import visible
from agentd.workspace.editor import Applied, BufferEdit, ChangedOtherwise, EditOutcome, NotApplied
from agentd.workspace.text import same_lines

EDIT_SECONDS = 2.0
"""How long an editor may take to make an edit and to tell of it."""
MOST_REASON = 200
"""Characters of what an editor says, which is for the model and not to be believed to be short."""


class PendingEdit:
    """An edit that was sent, and what is heard of it."""

    def __init__(self, edit: BufferEdit, text: Callable[[Path], str | None]) -> None:
        self.decided = anyio.Event()
        self.answered = anyio.Event()
        self.told = anyio.Event()
        """The editor has told of some change of the document, or nobody waits for it any more."""
        self.edit = edit
        self._text = text
        self._made: str | None = None
        self._refusal: str | None = None

    def look(self) -> None:
        """A document has changed; this one has perhaps the text that it should have."""
        if self.decided.is_set():
            return
        text = self._text(self.edit.path)
        if text != self.edit.before:
            self.told.set()
        if text is not None and _is_as_wanted(text, self.edit):
            self._made = text
        if text is None or self._made is not None:
            self.decided.set()

    def take_answer(self, refusal: str | None) -> None:
        """The editor has answered; None is its word that it did it, for which there is no proof yet."""
        if refusal is not None:
            self._refusal = refusal
            self.decided.set()
            self.told.set()
        self.answered.set()

    @property
    def is_silent(self) -> bool:
        """The editor says that it made the edit, and has told of no change at all."""
        return self.answered.is_set() and not self.told.is_set()

    def give_up(self) -> None:
        """Nobody has the time to wait."""
        self.decided.set()
        self.told.set()
        self.answered.set()

    def outcome(self, seconds: float) -> EditOutcome:
        """What came of it, as far as it is known by now, after at most so many seconds."""
        now = self._text(self.edit.path)
        if self._made is not None and now is not None:
            return Applied(self._made, now)
        if self._refusal is not None and now is not None:
            return NotApplied(self._refusal)
        if now == self.edit.before:
            said = (
                "the editor says that it made the edit, but"
                if self.answered.is_set()
                else "the editor did not answer, and"
            )
            return NotApplied(f"{said} its text was the same after {seconds:g} s")
        return ChangedOtherwise(now)


def _is_as_wanted(text: str, edit: BufferEdit) -> bool:
    """Whether an editor has made the edit: some have line ends of their own, and always one at the end."""
    if text == edit.before:
        return False
    return any(same_lines(text, wanted) for wanted in (edit.after, edit.after + "\n"))


def refusal(reason: str) -> str:
    """What the editor says, for the model."""
    said = " ".join(visible(reason).split())[:MOST_REASON]
    return f"the editor refused the edit ({said})" if said else "the editor refused the edit"
