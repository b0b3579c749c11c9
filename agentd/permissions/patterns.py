"""What an answer that is given for good covers: patterns, made from what the user was asked about.

| asked about | pattern | covers |
|---|---|---|
| a plain command line | one `argv` per command | these words, and what is known to be harmless behind them |
| any other command line | `command` | exactly this text in this folder, for the session only |
| an edit, a read | `edit`, `read` | this file with this tool |
| an address | `fetch` | this host |
| a tool of a server | `mcp` | exactly these arguments |

No pattern covers a file that holds secrets, but the answer that a user gives to the very question for the
session.
"""

import json
import os
import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal, assert_never
from urllib.parse import urlsplit

from agentd.permissions.commands import LONGEST_PLAIN, Command, parse, render
from agentd.permissions.found import LONGEST, commands_in
from agentd.permissions.known import Place, hardened, is_harmless, is_judged, known, names_secret
from agentd.protocol.messages import (
    CommandSubject,
    EditSubject,
    FetchSubject,
    McpSubject,
    PermissionSubject,
    ReadSubject,
)
from agentd.protocol.text import visible
from agentd.workspace.paths import UriError, path_of
from agentd.workspace.secrets import is_secret
from agentd.workspace.web_address import origin_of

PatternType = Literal["argv", "command", "edit", "read", "fetch", "mcp"]
Words = tuple[str, ...]

_SHOWN = 200
"""Characters of a command or address that a pattern's words show; the question itself shows it whole."""

_NAME = re.compile(r"[\w./~@+-]+")
"""What may be the name of a file, wherever it stands in a command line."""

ANY = "*"
"""At the end of a rule that the user has written: whatever words follow."""

_NEVER = frozenset(
    {
        ".", "[", "agentd", "alias", "bash", "bg", "builtin", "busybox", "cd", "command", "dash", "declare",
        "disown", "doas", "enable", "env", "eval", "exec", "export", "fg", "fish", "hash", "history",
        "ionice", "jobs", "kill", "ksh", "let", "local", "mapfile", "nice", "nohup", "parallel", "popd",
        "printf", "pushd", "read", "readarray", "readonly", "set", "setsid", "sh", "shopt", "source", "ssh",
        "stdbuf", "su", "sudo", "test", "timeout", "trap", "typeset", "ulimit", "umask", "unalias", "unset",
        "wait", "xargs", "zsh",
    }
)  # fmt: skip
"""Programs that change what the next command does, or run a command of their own: always asked about."""


@dataclass(frozen=True)
class Pattern:
    """What a rule covers. `parts` are the words of an `argv`, else what tells one subject from another."""

    type: PatternType
    parts: Words


def patterns_for(subject: PermissionSubject, root: Path) -> tuple[Pattern, ...]:
    """What an answer for good remembers; nothing where only the answer itself can count."""
    if isinstance(subject, CommandSubject):
        return _command_patterns(subject, root)
    return (exact(subject),)


def _command_patterns(subject: CommandSubject, root: Path) -> tuple[Pattern, ...]:
    place = Place(root, Path(os.path.realpath(subject.cwd)))
    if mentions_secret(subject.command, place):
        return ()
    if (
        subject.reason is not None
    ):  # what runs outside the sandbox was shown with its reason, and no other is like it
        return (exact(subject),)
    commands = parse(subject.command)
    words = [_words_for(command, place) for command in commands or ()]
    found = tuple(Pattern("argv", each) for each in dict.fromkeys(words) if each is not None)
    if commands is None or None in words or covering(found, subject, root) is None:
        return (exact(subject),)
    return found


def _words_for(command: Command, place: Place) -> Words | None:
    """The beginning of a command that a rule would be about: what names the program, or else all of it."""
    name = known(command.argv)
    if name is not None and is_harmless(command, place):
        return command.argv[: name[0]]
    if command.argv[0] in _NEVER or is_judged(command.argv):
        return None
    return command.argv


def is_allowable(words: Words) -> bool:
    """Whether a rule of these words could ever cover anything."""
    return words[0] not in _NEVER


def is_lasting(patterns: Collection[Pattern]) -> bool:
    """Whether these may be remembered beyond the session."""
    return bool(patterns) and all(pattern.type != "command" for pattern in patterns)


def exact(subject: PermissionSubject) -> Pattern:
    """The pattern that covers a subject to the letter: edits of that file, a command line in that folder."""
    match subject:
        case CommandSubject():
            return Pattern("command", (subject.command, subject.cwd))
        case EditSubject(target_uri=str(target)):
            return Pattern("edit", (subject.uri, target))
        case EditSubject() | ReadSubject():
            return Pattern(subject.type, (subject.uri,))
        case FetchSubject():
            return Pattern("fetch", (_host(subject.url) or subject.url,))
        case McpSubject():
            arguments = json.dumps(subject.arguments, sort_keys=True)
            return Pattern("mcp", (subject.server, subject.tool, arguments))
        case _:
            assert_never(subject)


def covering(patterns: Collection[Pattern], subject: CommandSubject, root: Path) -> str | None:
    """The text that runs in place of a command line that these patterns cover whole; else None."""
    allowed = [pattern.parts for pattern in patterns if pattern.type == "argv"]
    if not allowed:
        return None
    place = _place_of(subject, root) if subject.reason is None else None
    commands = parse(subject.command) if place is not None else None
    if place is None or commands is None:
        return None
    if not all(_is_covered(command, allowed, place) for command in commands):
        return None
    return render(tuple(map(hardened, commands)))


def rebuilt(subject: CommandSubject, root: Path) -> str | None:
    """The text that runs in place of a command line that rules have let pass; None where none can have."""
    commands = parse(subject.command) if _place_of(subject, root) is not None else None
    return None if commands is None else render(tuple(map(hardened, commands)))


def _is_covered(command: Command, allowed: list[Words], place: Place) -> bool:
    """Whether one of these rules covers a command."""
    argv, name = command.argv, known(command.argv)
    if argv[0] in _NEVER or names_secret(argv, place) is not None:
        return False
    is_piped_into = command.joined == "|"  # and what is piped into a program that runs code might be code
    if is_harmless(command, place) and name is not None and not (is_piped_into and name[1].runs):
        return any(_begins(words, argv) for words in allowed)
    # in another folder the same words may name another program
    to_the_letter = () if is_judged(argv) or place.cwd != place.root else argv
    return not is_piped_into and any(
        words == to_the_letter or (words[-1] == ANY and _begins(words, argv)) for words in allowed
    )


def _begins(words: Words, argv: Words) -> bool:
    beginning = words[:-1] if words[-1] == ANY else words
    return argv[: len(beginning)] == beginning


def mentions_secret(command: str, place: Place) -> bool:
    """Whether a command line names a file that holds secrets, as far as can be seen; one too long counts."""
    if len(command) > LONGEST or any(is_secret(PurePath(name).parts) for name in _NAME.findall(command)):
        return True
    return len(command) <= LONGEST_PLAIN and any(
        names_secret(words, place) is not None for words in commands_in(command)
    )


def _place_of(subject: CommandSubject, root: Path) -> Place | None:
    """Where a command would run; None outside the workspace."""
    cwd = Path(os.path.realpath(subject.cwd))
    return Place(root, cwd) if cwd.is_relative_to(root) else None


def _host(url: str) -> str | None:
    """Scheme, host and port of an address, where everybody reads it alike; else None."""
    if not url.isascii() or not url.isprintable() or set(url) & set('\\ @"<>`{}|^'):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is none
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return origin_of(url) + "/"


# --- in words -------------------------------------------------------------------------------------


def in_words(patterns: Collection[Pattern], tool_name: str, root: Path | None = None) -> str:
    """What patterns cover, for the user. Files below `root` are named relative to it."""
    argvs = [pattern.parts for pattern in patterns if pattern.type == "argv"]
    if argvs:
        return "; ".join(map(_argv_in_words, argvs))
    return "; ".join(_in_words(pattern, tool_name, root) for pattern in patterns)


def _argv_in_words(words: Words) -> str:
    if words[-1] == ANY:
        return f"{_shown(shlex.join(words[:-1]))} with any words behind it"
    name = known(words)
    if name is not None and name[0] == len(words):
        return f"{_shown(shlex.join(words))} with {'plain' if name[1].runs else 'reading'} options"
    return f"exactly {_shown(shlex.join(words))}"


def _in_words(pattern: Pattern, tool_name: str, root: Path | None) -> str:
    parts = pattern.parts
    match pattern.type:
        case "argv":
            return _argv_in_words(parts)
        case "command":
            where = _place(Path(parts[1]), root)
            return f"exactly this command: {_shown(parts[0])}{'' if where == '.' else f' (in {where})'}"
        case "edit":
            files = [_file(uri, root) for uri in parts]
            what = f"edits to {files[0]}" if len(files) == 1 else f"moving {' to '.join(files)}"
            return f"{what} with {tool_name}"
        case "read":
            return f"reading {_file(parts[0], root)} with {tool_name}"
        case "fetch":
            is_host = parts[0].endswith("/") and parts[0].count("/") == 3
            return (
                f"fetching {'anything from' if is_host else 'exactly'} {_shown(parts[0].removesuffix('/'))}"
            )
        case "mcp":
            return f"{_shown(parts[1])} of {_shown(parts[0])} with exactly these arguments"
        case _:
            assert_never(pattern.type)


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
