"""What users of an editor without a plugin are shown: messages, and files that their editor opens.

The files lie beside the session's journal and go with it.
"""

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread

from agentd.daemon.door import ClientError, Door
from agentd.protocol.methods import PromptResult
from agentd.protocol.text import visible
from agentd.server.client_profile import ClientProfile
from agentd.workspace.checkpoints import folder_beside

log = logging.getLogger(__name__)

SHORT = 600
"""An answer of so many characters is said in a message, too."""
_SHOW_SECONDS = 10.0
_TYPES: dict[str, int] = {"error": 1, "warning": 2, "info": 3}  # MessageType

Severity = Literal["error", "warning", "info"]


class Shown:
    """Shows things to the user of one client."""

    def __init__(self, door: Door, client: Callable[[], ClientProfile]) -> None:
        """`client` is asked each time, as it is known from `initialize` on."""
        self._door = door
        self._client = client
        self._numbers: dict[Path, int] = {}  # journal -> how often its session was shown

    def message(self, text: str, severity: Severity = "info") -> None:
        """Say something, as far as this editor shows it."""
        text = visible(text.strip())
        if not self._client().quirks.long_messages:
            text = _first_line(text)
        self._door.notify("window/showMessage", {"type": _TYPES[severity], "message": text})

    async def answer(self, result: PromptResult, journal: Path, transcript: str) -> None:
        """The end of a prompt: its answer, whole in the transcript and, where it is short, in a message."""
        if result.error is not None:
            self.message(f"agentd: {result.error.message}", "error")
        elif result.stop_reason in ("aborted", "interrupted"):
            return
        try:
            file = await self.file(journal, "md", transcript)
        except OSError as error:
            file, why = None, f"agentd cannot write the transcript: {error.strerror}."
            self.message(why, "warning")
        short = len(result.text) <= SHORT
        if result.error is None and short:
            self.message(self._short(result.text, file) or "agentd has finished without a word.")
        if file is None:
            return
        is_seen = await self.open(file) and not self._client().quirks.leaves_open_behind
        if not is_seen and not short:
            self.message(f"agentd has answered at length: {file}")

    def _short(self, answer: str, file: Path | None) -> str:
        """A short answer as it is said; with its file where its end is neither said nor shown."""
        client, answer = self._client(), answer.strip()
        whole = client.quirks.long_messages or client.shows_documents or "\n" not in answer
        if whole or file is None:
            return answer
        return f"{_first_line(answer)} (all of it: {file})"

    async def file(self, journal: Path, suffix: Literal["md", "diff"], text: str) -> Path:
        """Write something for the user to read. Gives the file; raises OSError where it cannot be written."""
        number = self._numbers.get(journal, 0) + 1
        self._numbers[journal] = number
        name = "agentd" if self._client().quirks.reloads_files else f"agentd-{number}"
        path = folder_beside(journal) / "shown" / f"{name}.{suffix}"
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_write, path, text)
        return path

    async def open(self, path: Path, line: int | None = None) -> bool:
        """Have the editor open a file beside what the user is at; False where it does not.

        `line`: the user has asked for the file, and this line of it is of interest.
        """
        if not self._client().shows_documents:
            return False
        params: dict[str, Any] = {"uri": path.as_uri(), "external": False, "takeFocus": False}
        if line is not None and self._client().quirks.leaves_open_behind:
            place = {"line": line, "character": 0}
            params["selection"] = {"start": place, "end": place}
        answer: Any = None
        with anyio.move_on_after(_SHOW_SECONDS):
            try:
                answer = await self._door.ask("window/showDocument", params)
            except ClientError as error:
                log.warning("the editor does not show %s: %s", path.name, error)
        return isinstance(answer, dict) and answer.get("success") is True

    async def choose(self, question: str, titles: list[str]) -> str | None:
        """Have the user choose one of these by LSP's own question; None where they do not."""
        params = {
            "type": _TYPES["info"],
            "message": question,
            "actions": [{"title": title} for title in titles],
        }
        try:
            answer: Any = await self._door.ask("window/showMessageRequest", params)
        except ClientError as error:
            log.warning("no answer to a question: %s", error)
            return None
        title = answer.get("title") if isinstance(answer, dict) else None
        return title if title in titles else None


def _first_line(text: str) -> str:
    """The first line, with a sign where there are more."""
    line, more, _ = text.partition("\n")
    return f"{line} …" if more else line


def _write(path: Path, text: str) -> None:
    """A whole file or none, and the user's alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd, new = tempfile.mkstemp(prefix=".", dir=path.parent)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
