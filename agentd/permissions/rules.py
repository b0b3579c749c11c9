"""Answers that are remembered of a session.

A rule covers exactly what the user saw: one command string in one folder, one file, one host of the web, one
set of arguments. Never a beginning of it: behind an allowed beginning anything can follow.
"""

import json
from pathlib import Path
from typing import assert_never

from agentd.protocol.messages import (
    CommandSubject,
    EditSubject,
    FetchSubject,
    McpSubject,
    PermissionOption,
    PermissionSubject,
    ReadSubject,
)
from agentd.protocol.text import visible
from agentd.workspace.paths import UriError, path_of
from agentd.workspace.web_address import origin_of

_SHOWN = 200
"""Characters of a command or address that a rule's words show; the question itself shows it whole."""

_Key = tuple[str, ...]


class Rules:
    """What the user allowed for the rest of the session."""

    def __init__(self) -> None:
        self._keys: set[_Key] = set()

    def remember(self, tool_name: str, subject: PermissionSubject) -> None:
        """From now on exactly this needs no question."""
        self._keys.add(_key(tool_name, subject))

    def covers(self, tool_name: str, subject: PermissionSubject) -> bool:
        """Whether exactly this was allowed before."""
        return _key(tool_name, subject) in self._keys


def rule_for(tool_name: str, subject: PermissionSubject, root: Path | None = None) -> str:
    """In words what `Rules.remember` would cover. Files below `root` are named relative to it."""
    match subject:
        case CommandSubject():
            where = _place(Path(subject.cwd), root)
            suffix = "" if where == "." else f" (in {where})"
            return f"exactly this command: {_shown(subject.command)}{suffix}"
        case EditSubject():
            return f"edits to {_file(subject.uri, root)} with {tool_name}"
        case ReadSubject():
            return f"reading {_file(subject.uri, root)} with {tool_name}"
        case FetchSubject():
            return f"fetching anything from {_shown(origin_of(subject.url))}"
        case McpSubject():
            return f"{_shown(subject.tool)} of {_shown(subject.server)} with exactly these arguments"
        case _:
            assert_never(subject)


def options_for(
    tool_name: str, subject: PermissionSubject, root: Path | None = None
) -> tuple[PermissionOption, ...]:
    """The answers a question offers: allow once, allow for this session, reject. None outlives it."""
    return (
        PermissionOption(option_id="allow_once", label="Allow once", kind="allow_once", scope="once"),
        PermissionOption(
            option_id="allow_always",
            label="Allow for this session",
            kind="allow_always",
            scope="session",
            rule=rule_for(tool_name, subject, root),
        ),
        PermissionOption(option_id="reject_once", label="Reject", kind="reject_once", scope="once"),
    )


def _key(tool_name: str, subject: PermissionSubject) -> _Key:
    """What makes a subject the same as another, letter by letter."""
    match subject:
        case CommandSubject():
            what: _Key = (subject.command, subject.cwd)
        case EditSubject() | ReadSubject():
            what = (subject.uri,)
        case FetchSubject():
            what = (origin_of(subject.url),)
        case McpSubject():
            what = (subject.server, subject.tool, json.dumps(subject.arguments, sort_keys=True))
        case _:
            assert_never(subject)
    return (tool_name, subject.type, *what)


def _file(uri: str, root: Path | None) -> str:
    try:
        return _place(path_of(uri), root)
    except UriError:  # an unsaved document of the editor: its URI is its name
        return _shown(uri)


def _place(path: Path, root: Path | None) -> str:
    return _shown(str(path.relative_to(root) if root and path.is_relative_to(root) else path))


def _shown(text: str) -> str:
    """Text that looks like what it is: escape codes, hidden letters and marks that turn text are spelled out.

    Stricter than the workspace's `shown`, as an answer given here lasts.
    """
    beginning = visible(text[:_SHOWN], kept="")
    return beginning if len(text) <= _SHOWN else f"{beginning}… ({len(text)} characters)"
