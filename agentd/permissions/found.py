"""The commands that a command line may run, found loosely: what rules that deny or ask go by.

Everything that might be a command counts as one: behind every operator, in substitutions, behind programs
that run others, in text that is handed to a shell. So a denied command is found in spite of quotes and
wrappers, and now and then where it is only spoken of. It is no boundary: a variable, an alias or a script can
hide any command.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath

_DEPTH = 4
"""How deep texts are looked into that hold commands themselves."""

_FAR = 64
"""How many words may stand between a program and the command that it runs."""

LONGEST = 20_000
"""Characters of a command line beyond which it is not taken apart."""

_SHELLS = frozenset({"bash", "dash", "fish", "ksh", "sh", "zsh"})

_RUNNERS = _SHELLS | frozenset(
    {
        "!", "builtin", "bundle", "bunx", "busybox", "chroot", "chrt", "command", "coproc", "direnv", "do",
        "doas", "docker", "elif", "else", "entr", "env", "eval", "exec", "fd", "find", "flock", "function",
        "hatch", "if", "ionice", "mise", "nice", "nix-shell", "nohup", "npm", "npx", "parallel", "pdm",
        "pipx", "pkexec", "pnpm", "podman", "poetry", "runuser", "script", "setsid", "ssh", "stdbuf",
        "strace", "su", "sudo", "systemd-run", "taskset", "then", "time", "timeout", "trap", "unbuffer",
        "unshare", "until", "uv", "watch", "while", "xargs", "yarn", "{",
    }
)  # fmt: skip
"""What has another command behind it, or in one of its words."""

_SPACE = re.compile(r"\$\{?IFS\}?|\\\n")
_PIECES = re.compile(
    r"""
      '(?P<quoted>[^']*)(?:'|\Z)
    | "(?P<double>(?:\\.|[^"\\])*)(?:"|\Z)
    | \\(?P<escaped>.)
    | (?P<space>[ \t]+)
    | (?P<redirection>(?:\b\d+)?(?:&>>?|>>?[|&]?|<<?<?[-&]?)(?!\())
    | (?P<end>[;&|\n(){}<>`]|\$\(|\#(?=[ ]))
    | \$(?=['"])
    | (?P<bare>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_BREAKS = re.compile(r"""[\s'"`;&|<>(){}$\\]+""")
_SHORT = re.compile(r"-[A-Za-z0-9]+")
_LONG_FOR = {"f": "--force", "r": "--recursive", "R": "--recursive"}
"""Short options that mean the same in every program that people write rules for."""
_SHORTEST_LONG = 5
"""Characters from which on the beginning of a long option counts as the option, which many programs take."""


def commands_in(text: str, depth: int = _DEPTH) -> Iterator[tuple[str, ...]]:
    """The words of every command that may run, the program's name without its folder."""
    segments = list(_segments(text, depth))
    is_fed = any(_is_shell(words) for words in segments if not isinstance(words, str))
    for words in segments:
        if isinstance(words, str):
            yield from commands_in(words, depth - 1)
            continue
        for word in words if is_fed and depth else ():  # any text may be piped into the shell
            if re.search(r"\s", word):
                yield from commands_in(word, depth - 1)
        while words and _ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
        if not words:
            continue
        yield _named(words)
        if PurePosixPath(words[0]).name in _RUNNERS:
            for start in range(1, min(len(words), _FAR)):
                yield _named(words[start:])
                if depth and re.search(r"\s", words[start]):
                    yield from commands_in(words[start], depth - 1)


def _is_shell(words: list[str]) -> bool:
    names = [PurePosixPath(word).name for word in words[:_FAR]]
    return names[0] in _SHELLS or (names[0] in _RUNNERS and not _SHELLS.isdisjoint(names))


def _segments(text: str, depth: int) -> Iterator[list[str] | str]:
    """Words up to each operator, and texts inside double quotes that run commands themselves.

    What a redirection names stands by itself: the command goes on behind it.
    """
    words: list[str] = []
    word: str | None = None
    is_target = False
    for piece in _PIECES.finditer(f"{_SPACE.sub(' ', text)}\n"):
        kind = piece.lastgroup
        if kind in ("space", "end", "redirection"):
            if word is not None and is_target:
                yield [word]
            elif word is not None:
                words.append(word)
            is_target = kind == "redirection" or (kind == "space" and word is None and is_target)
            word = None
            if kind == "end" and words:
                yield words
                words = []
        elif kind is not None:
            word = (word or "") + piece[kind]
        if kind == "double" and depth and re.search(r"\$\(|`", piece[kind]):
            yield piece[kind]


def _named(words: list[str]) -> tuple[str, ...]:
    return (PurePosixPath(words[0]).name or words[0], *words[1:])


def finds(rule: tuple[str, ...], text: str) -> bool:
    """Whether a command line may run a command that a rule means; a long one is judged by its words."""
    if len(text) > LONGEST:
        words = tuple(_BREAKS.split(text))
        plain = {PurePosixPath(rule[0]).name, *(word for word in rule[1:] if not word.startswith(("-", "*")))}
        return plain <= {PurePosixPath(word).name or word for word in words} and all(
            _has_option(option, words) for option in rule[1:] if option.startswith("-")
        )
    return any(speaks_of(rule, words) for words in commands_in(text))


def speaks_of(rule: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Whether a command is one that a rule to deny or to ask means.

    The words of the rule stand in the command in their order, with options and what may be their values
    between them; options of the rule may stand anywhere, short ones also in another order or apart.
    """
    if not words or PurePosixPath(rule[0]).name != words[0]:
        return False
    options = [word for word in rule[1:] if word.startswith("-")]
    wanted = [word for word in rule[1:] if not word.startswith("-") and word != "*"]
    for before, word in pairwise(words):
        if wanted and word == wanted[0]:
            wanted.pop(0)
        elif wanted and not word.startswith("-") and not before.startswith("-"):
            return False
    return not wanted and all(_has_option(option, words) for option in options)


def _has_option(option: str, words: tuple[str, ...]) -> bool:
    """Whether an option is given, short ones also in another order, apart, or by their long names."""
    given = {each for word in words for each in _options_in(word)}
    return all(
        any(each == wanted or (len(each) >= _SHORTEST_LONG and wanted.startswith(each)) for each in given)
        for wanted in _options_in(option)
    )


def _options_in(word: str) -> set[str]:
    if _SHORT.fullmatch(word):
        return {_LONG_FOR.get(letter, f"-{letter}") for letter in word[1:]}
    return {word.partition("=")[0]} if word.startswith("-") else set()
