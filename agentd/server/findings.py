"""What the model's reviews found, as diagnostics of the editor: `textDocument/publishDiagnostics`."""

from collections.abc import Sequence
from pathlib import Path

from agentd.daemon.door import Door
from agentd.protocol.documents import Diagnostic
from agentd.protocol.messages import Position, Range
from agentd.protocol.text import visible
from agentd.workspace.buffer import Encoding, width
from agentd.workspace.editor import Finding

SOURCE = "agentd"
"""What diagnostics of ours say of where they come from."""


class ShownFindings:
    """The findings of all sessions, as one client shows them."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._by_session: dict[str, tuple[Finding, ...]] = {}

    def show(self, session_id: str, findings: Sequence[Finding], encoding: Encoding) -> None:
        """Show these in place of all that the session has shown. A document shows those of all sessions."""
        before = self._by_session.pop(session_id, ())
        if findings:
            self._by_session[session_id] = tuple(findings)
        for path, uri in {each.path: each.uri for each in (*before, *findings)}.items():
            there = [each for shown in self._by_session.values() for each in shown if each.path == path]
            diagnostics = [_diagnostic(each, encoding) for each in there]
            self._door.notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": diagnostics})

    def session_of(self, path: Path | None, message: str) -> str | None:
        """The session that found this in a file; None where none shows it."""
        for session_id, findings in self._by_session.items():
            if any(each.path == path and _said(each) == message for each in findings):
                return session_id
        return None


def _diagnostic(finding: Finding, encoding: Encoding) -> Diagnostic:
    start = Position(line=finding.first, character=finding.indent)
    end = Position(line=finding.last, character=width(finding.last_line, encoding))
    return Diagnostic(
        range=Range(start=start, end=end),
        message=_said(finding),
        severity=finding.severity,
        source=SOURCE,
    )


def _said(finding: Finding) -> str:
    return visible(finding.message)
