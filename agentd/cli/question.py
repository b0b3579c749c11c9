"""Permission questions on the command line."""

import shlex
from pathlib import Path

import anyio

from agentd.cli.terminal import Terminal, cut, one_line
from agentd.cli.view import TITLE_COLUMNS, RunView
from agentd.permissions.patterns import is_lasting, patterns_for
from agentd.protocol.messages import (
    CommandSubject,
    EditSubject,
    PermissionOption,
    PermissionRequest,
    PermissionSubject,
)
from agentd.protocol.methods import PermissionAnswer
from agentd.protocol.text import visible
from agentd.workspace.paths import WorkspaceError, path_of
from agentd.workspace.secrets import is_secret


class Questions:
    """Asks the user at the terminal, and refuses in words where there is none.

    `mode`, `trusted` and `folder`, resolved, are what the run works with: they decide which option or rule
    would have allowed it.
    """

    def __init__(self, view: RunView, mode: str | None, trusted: bool, folder: Path) -> None:
        self._view = view
        self.mode = mode
        self._trusted = trusted
        self._folder = folder
        self._asking: set[anyio.CancelScope] = set()  # sub-agents ask beside each other

    async def answer(self, request: PermissionRequest) -> PermissionAnswer:
        """The user's answer; none where the question was dismissed."""
        terminal = Terminal.open()
        if terminal is None:
            return await self._refuse(request)
        scope = anyio.CancelScope()
        self._asking.add(scope)
        try:
            with scope:
                async with self._view.paused():
                    terminal.discard_typed()
                    await terminal.show(_text(request))
                    return await _choice(terminal, request.options)
            return PermissionAnswer(cancelled=True)
        finally:
            self._asking.discard(scope)
            terminal.close()

    def dismiss(self) -> None:
        """Take the open questions away, where there are any: the user is done with this run."""
        for scope in tuple(self._asking):
            scope.cancel()

    async def _refuse(self, request: PermissionRequest) -> PermissionAnswer:
        way_out = allowing_options(request.subject, self.mode, self._trusted)
        if (rule := allowing_rule(request.subject, self._folder, self._trusted)) is not None:
            way_out = f"{rule} or {way_out}"
        title = cut(one_line(request.title), TITLE_COLUMNS)
        await self._view.note(f"Refused: {title}. There is no terminal to ask on; {way_out} would allow it.")
        reject = next((option for option in request.options if option.kind == "reject_once"), None)
        if reject is None:
            return PermissionAnswer(cancelled=True)
        return PermissionAnswer(
            option_id=reject.option_id,
            feedback="The user cannot be asked in this run. Do without it, or say what you would need.",
        )


def allowing_options(subject: PermissionSubject, mode: str | None, trusted: bool) -> str:
    """The options of `agentd run` under which such a call is not asked about (protocol, section 6)."""
    edits = isinstance(subject, EditSubject) and not any(
        _is_guarded(uri) for uri in (subject.uri, subject.target_uri) if uri is not None
    )
    wanted = "edit" if edits and mode not in ("edit", "auto", "full") else "full"
    words = [] if mode == wanted else [f"--mode {wanted}"]
    if wanted == "full":
        words.append("--allow-full")
    if not trusted:
        words.append("--trust")
    return " ".join(words)


def allowing_rule(subject: PermissionSubject, folder: Path, trusted: bool) -> str | None:
    """The command that makes the rule under which this is not asked about; None where there is none."""
    if not isinstance(subject, CommandSubject):
        return None
    patterns = patterns_for(subject, folder)
    if not is_lasting(patterns):
        return None
    rules = [f"`agentd permissions allow {shlex.quote(shlex.join(each.parts))}`" for each in patterns]
    return one_line(" with ".join(rules)) + ("" if trusted else " and --trust")


def _is_guarded(uri: str) -> bool:
    """Whether a file is one that every mode but full asks about."""
    try:
        parts = path_of(uri).parts
    except WorkspaceError:
        return True
    return is_secret(parts) or ".git" in parts or ".agentd" in parts


def _text(request: PermissionRequest) -> str:
    lines = ["", f"{one_line(request.title)}?", *_subject(request.subject), ""]
    for number, option in enumerate(request.options, start=1):
        rule = f" ({one_line(option.rule)})" if option.rule else ""
        lines.append(f"  {number}  {one_line(option.label)}{rule}")
    lines.append("y, n or a number (words after a rejection go to the model): ")
    return "\n".join(lines)


def _subject(subject: PermissionSubject) -> list[str]:
    """What it is about, in full: the title alone could hide something."""
    match subject.type:
        case "command":
            outside = f" (outside the sandbox: {one_line(subject.reason)})" if subject.reason else ""
            return [f"  in {one_line(subject.cwd)}{outside}:", *_indented(subject.command)]
        case "edit":
            return [f"  {one_line(subject.uri)}", *_indented(subject.patch)]
        case "read":
            return [f"  {one_line(subject.uri)}"]
        case "fetch":
            return [f"  {one_line(subject.url)}"]
        case "mcp":
            return [
                f"  {one_line(subject.server)}: {one_line(subject.tool)}",
                *_indented(str(subject.arguments)),
            ]


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in visible(text).split("\n")]


def _meant(word: str, options: tuple[PermissionOption, ...]) -> PermissionOption | None:
    """What everyone types first: yes, once, or no."""
    kind = {"y": "allow_once", "yes": "allow_once", "n": "reject_once", "no": "reject_once"}.get(word)
    return next((option for option in options if option.kind == kind), None)


async def _choice(terminal: Terminal, options: tuple[PermissionOption, ...]) -> PermissionAnswer:
    while (line := await terminal.read_line()) is not None:
        word, _, feedback = line.strip().partition(" ")
        if (option := _meant(word.lower(), options)) is not None:
            return PermissionAnswer(option_id=option.option_id, feedback=feedback.strip() or None)
        if word.isascii() and word.isdigit() and 1 <= int(word) <= len(options):
            option = options[int(word) - 1]
            return PermissionAnswer(option_id=option.option_id, feedback=feedback.strip() or None)
        await terminal.show(f"Please answer with y, n or a number from 1 to {len(options)}: ")
    return PermissionAnswer(cancelled=True)
