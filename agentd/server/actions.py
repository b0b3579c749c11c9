"""What the editor's own menu offers: code actions on diagnostics, on a selection, and on lines that ask.

A function of what the client says and of the lines in question. An action only names a command with its
arguments (`commands.py`); nothing is done before the user chooses it.
"""

import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.protocol.documents import Diagnostic
from agentd.protocol.messages import Position, Range
from agentd.protocol.text import visible, without_unseen
from agentd.protocol.wire import Many, Wire, absent
from agentd.server.findings import SOURCE

_COMMENT = re.compile(r"\s*(?:[^\w\s]{1,4}|rem|REM|dnl)\s*agentd:")
"""How a line begins that is nothing but a comment, in whatever language, and asks agentd for something."""
_CLOSERS = ("*/", "-->", "*)", "#}", "--]]", "-}", "|#", "%}")
"""How such a comment ends where its language wants an end."""

_MAX_LINES = 400
"""So many lines of a selection are looked at for comments that ask."""
_MAX_INDENT = 500
_TITLE = 60


class TextDocument(Wire):
    """A document by its URI."""

    uri: str


class ActionContext(Wire):
    """What the client knows of the place. `only`: the kinds of actions it wants."""

    diagnostics: Many[Diagnostic] = ()
    only: Many[str] | None = absent()


class CodeActionParams(Wire):
    """`textDocument/codeAction`."""

    text_document: TextDocument
    range: Range
    context: ActionContext


class Target(Wire):
    """What a command is about: a file, or a part of it; what is wrong there, and what the user wants."""

    uri: str
    range: Range | None = absent()
    diagnostics: Many[Diagnostic] = ()
    instruction: str | None = absent()


@dataclass(frozen=True)
class Action:
    """An action of the menu."""

    title: str
    kind: str
    command: str
    arguments: tuple[Any, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    def on_wire(self, *, as_literal: bool) -> dict[str, Any]:
        """As LSP has it: a `CodeAction`, or for clients that know none a `Command`."""
        command = {"title": self.title, "command": self.command, "arguments": list(self.arguments)}
        if not as_literal:
            return command
        action: dict[str, Any] = {"title": self.title, "kind": self.kind, "command": command}
        return {**action, "diagnostics": list(self.diagnostics)} if self.diagnostics else action


def actions(
    params: CodeActionParams, text: str | None, *, running: Sequence[str] = (), asking: Sequence[str] = ()
) -> list[Action]:
    """The actions for a place in a document that has this text, where it is known.

    `running` are the sessions of the workspace in which a prompt runs, `asking` the ids of open questions.
    """
    found = [*_of_place(params, text), *_of_runs(running, asking)]
    only = params.context.only
    return found if only is None else [action for action in found if _is_wanted(action.kind, only)]


def _of_place(params: CodeActionParams, text: str | None) -> Iterator[Action]:
    uri, where, diagnostics = params.text_document.uri, params.range, params.context.diagnostics
    for line, words in asking_lines(text, where):
        at = Range(start=Position(line=line, character=0), end=Position(line=line + 1, character=0))
        target = Target(uri=uri, range=at)
        yield Action(f"agentd: {_title(words)}", "quickfix", "agentd.prompt", (words, target))
    findings = [each for each in diagnostics if each.source == SOURCE]
    for each in findings:
        target = Target(uri=uri, range=each.range, diagnostics=(each,))
        yield Action(f"agentd: fix: {_title(each.message)}", "quickfix", "agentd.fix", (target,), (each,))
    if diagnostics and not (findings and len(diagnostics) == 1):
        what = "this problem" if len(diagnostics) == 1 else f"these {len(diagnostics)} problems"
        target = Target(uri=uri, range=_around(diagnostics), diagnostics=diagnostics)
        yield Action(f"agentd: fix {what}", "quickfix", "agentd.fix", (target,), diagnostics)
    selected = where.start != where.end
    target = Target(uri=uri, range=where) if selected else Target(uri=uri)
    what = "the selection" if selected else "this file"
    if selected:
        yield Action(f"agentd: improve {what}", "refactor.rewrite", "agentd.edit", (target,))
    yield Action(f"agentd: explain {what}", "source", "agentd.explain", (target,))
    yield Action(f"agentd: write tests for {what}", "source", "agentd.test", (target,))


def _of_runs(running: Sequence[str], asking: Sequence[str]) -> Iterator[Action]:
    for request_id in asking[:1]:  # one at a time, the oldest first
        yield Action("agentd: allow what it asks for", "source", "agentd.approve", (request_id,))
        yield Action("agentd: reject what it asks for", "source", "agentd.reject", (request_id,))
    for session_id in running[:1]:
        yield Action("agentd: cancel the running prompt", "source", "agentd.cancel", (session_id,))


def asking_lines(text: str | None, where: Range) -> list[tuple[int, str]]:
    """The lines of a range that are comments like `# agentd: do this`, 0-based, and what they ask for."""
    if text is None or "agentd:" not in text:
        return []
    first, last = where.start.line, max(where.start.line, where.end.line)
    if last > first and where.end.character == 0:
        last -= 1  # whole lines were selected
    lines = itertools.islice(io.StringIO(text, newline=None), first, min(last + 1, first + _MAX_LINES))
    asked = ((first + number, _asked(line)) for number, line in enumerate(lines))
    return [(number, words) for number, words in asked if words]


def _asked(line: str) -> str:
    """What a line asks agentd for; nothing where it does not. No line takes long, however it is made."""
    begin = _COMMENT.match(line[:_MAX_INDENT])
    if begin is None:
        return ""
    words = line[begin.end() :].strip()
    closer = next((each for each in _CLOSERS if words.endswith(each)), "")
    return without_unseen(words.removesuffix(closer).rstrip())


def _title(text: str) -> str:
    """A text on one line of a menu, without what would show it as another than it is."""
    text = " ".join(visible(text).split())
    return text if len(text) <= _TITLE else text[: _TITLE - 1].rstrip() + "…"


def _around(diagnostics: Sequence[Diagnostic]) -> Range:
    """From the first of them to the last."""
    starts = [(d.range.start.line, d.range.start.character, d.range.start) for d in diagnostics]
    ends = [(d.range.end.line, d.range.end.character, d.range.end) for d in diagnostics]
    return Range(start=min(starts)[2], end=max(ends)[2])


def _is_wanted(kind: str, only: Sequence[str]) -> bool:
    """LSP: a kind asks for all below it, `source` for `source.x`; an empty kind for all."""
    return any(wanted in ("", kind) or kind.startswith(f"{wanted}.") for wanted in only)
