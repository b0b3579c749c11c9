"""What the reviews of a session found, as long as the editor shows it.

It is shown until the next report, until the prompt that reported it is rewound, or the session is closed.
Nothing of it is journaled: the model's report is in the transcript, and lines move.
"""

from collections.abc import Sequence

from agentd.protocol.events import DurableEvent, SessionRewound
from agentd.sessions.log import SessionLog
from agentd.workspace.editor import Editor, Finding


class SessionFindings:
    """The findings of one session."""

    def __init__(self, log: SessionLog, editor: Editor) -> None:
        self._state = log.state
        self._editor = editor
        self._reports: dict[str, Sequence[Finding]] = {}  # prompt -> what it reported last, in that order
        log.watch(self._follow)

    def replace(self, prompt_id: str, findings: Sequence[Finding]) -> bool:
        """A prompt reports these; False where no editor shows them."""
        self._reports.pop(prompt_id, None)
        self._reports[prompt_id] = findings
        return self._show()

    def clear(self) -> None:
        """Show nothing any more."""
        if self._reports:
            self._reports.clear()
            self._show()

    def _follow(self, event: DurableEvent) -> None:
        if isinstance(event, SessionRewound) and self._reports:
            self._show()

    def _show(self) -> bool:
        """Show the last report of a prompt that is still part of the conversation."""
        there = [each for prompt, each in self._reports.items() if prompt in self._state.starts]
        return self._editor.show_findings(self._state.session_id, there[-1] if there else ())
