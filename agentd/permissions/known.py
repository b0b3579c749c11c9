"""Programs of which agentd knows what their options do: which forms of them a rule for the program covers.

A rule for `git log` is meant for reading the history, and yet `git log --output=F` writes a file. So for each
program here the options are listed that keep it to what it is known for; any other option asks. The lists
hold no option that writes a file, runs a program, or reads names from a file. A word that only looks like an
option counts as one, so it does not matter which words the program takes for values.

Operands are paths as far as anybody can tell: they must stay inside the workspace. What reads whole trees, or
a history, is kept from files with secrets by the words that `rebuilt` adds.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from agentd.permissions.commands import Command
from agentd.permissions.git_filters import may_run
from agentd.workspace.secrets import GLOBS, is_secret

Words = tuple[str, ...]


def _same(command: Command) -> Command:
    return command


@dataclass(frozen=True)
class Known:
    """A program, or one of its subcommands.

    `options` matches those that are harmless. `operands` is how many other words it may have; `begins`
    matches the first two words, where they matter. `reads`: words may be paths. `compares`: of two words, one
    that is a folder means what lies in it, secrets too. `runs`: it runs code of the workspace, as tests do.
    `refused_in` tells folders in which none of it is harmless, `refuses` words that together are not.
    `rebuilt` gives what runs in its place.
    """

    options: re.Pattern[str]
    operands: int = 1000
    reads: bool = True
    compares: bool = False
    runs: bool = False
    begins: re.Pattern[str] | None = None
    refused_in: Callable[[Path], bool] = lambda cwd: False
    refuses: Callable[[Words], bool] = lambda words: False
    rebuilt: Callable[[Command], Command] = _same

    def takes(self, words: Words, options: list[str], operands: list[str]) -> bool:
        """Whether these words, the name apart, are no more than what the program is known for."""
        if self.begins is not None and not self.begins.fullmatch(" ".join(words[:2])):
            return False
        if self.runs and any(word.startswith("@") for word in operands):
            return False  # a file of further options: https://docs.pytest.org/en/stable/how-to/usage.html
        if self.refuses(words):
            return False
        return len(operands) <= self.operands and all(map(self.options.fullmatch, options))


@dataclass(frozen=True)
class Place:
    """Where a command would run, both resolved."""

    root: Path
    cwd: Path


def known(argv: Words) -> tuple[int, Known] | None:
    """What is known of the program of these words, and how many of them name it."""
    for length in (3, 2, 1):
        if len(argv) >= length and (found := _KNOWN.get(argv[:length])) is not None:
            return length, found
    return None


def is_judged(argv: Words) -> bool:
    """Whether a program is one whose harmless forms are listed here, be this one of them or not."""
    return known(argv) is not None or (argv[0] == "git" and (len(argv) < 2 or argv[1].startswith("-")))


def hardened(command: Command) -> Command:
    """What runs in place of a command, whichever form of it a rule has let pass."""
    found = known(command.argv)
    return command if found is None else found[1].rebuilt(command)


def is_harmless(command: Command, place: Place) -> bool:
    """Whether a command is one of the harmless forms of a program that is known.

    That it names no secret is looked at by itself (`names_secret`), for programs that are not known too.
    """
    found = known(command.argv)
    if found is None:
        return False
    length, program = found
    words = command.argv[length:]
    options = [word for word in words if word.startswith("-") and word not in ("-", "--")]
    operands = [word for word in words if not word.startswith("-") or word == "-"]
    if not program.takes(words, options, operands) or program.refused_in(place.cwd):
        return False
    if program.compares and len(operands) > 1 and any((place.cwd / word).is_dir() for word in operands):
        return False
    return not program.reads or all(_inside(word, place) for word in operands)


def names_secret(words: Iterable[str], place: Place) -> str | None:
    """The first of these words that names a file that holds secrets, be it by a link."""
    return next((word for word in words if _names_secret(word, place)), None)


def _parts(word: str) -> list[str]:
    """What of a word may be a path: it may stand behind `=`, `:` or `,`, and behind a short option."""
    parts = [word, *re.split(r"[=:,]", word)]
    return [part for part in (*parts, re.sub(r"^-[A-Za-z]", "", word)) if part]


def _names_secret(word: str, place: Place) -> bool:
    for part in _parts(word):
        real = _real(place.cwd / part)
        beneath = real.relative_to(place.root) if real.is_relative_to(place.root) else real
        for parts in (PurePath(part).parts, beneath.parts):
            if is_secret(parts) or is_secret((*parts, "any")):  # a folder is what any file in it would be
                return True
    return False


def _inside(word: str, place: Place) -> bool:
    return all(_real(place.cwd / part).is_relative_to(place.root) for part in _parts(word))


def _real(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return Path("/")  # nothing that can be a path: outside


# --- what runs in place of a command --------------------------------------------------------------

_GIT = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit",
    "-c", "gpg.program=false", "-c", "gpg.openpgp.program=false", "-c", "gpg.x509.program=false",
    "-c", "gpg.ssh.program=false", "-c", "log.showSignature=false", "-c", "status.submoduleSummary=false",
    "-c", "diff.submodule=short", "--no-optional-locks", "--no-pager",
)  # fmt: skip
"""Whatever a repository's own configuration would have run, off: git-config(1)."""

_GIT_SUBCOMMANDS = {
    "diff": ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"),
    "log": ("--no-ext-diff", "--no-textconv"),
    "show": ("--no-ext-diff", "--no-textconv"),
    "status": ("--ignore-submodules=dirty",),
}


_PAST_SECRETS = tuple(
    f":(top,exclude,icase,glob)**/{path}"
    for glob in GLOBS
    for path in (glob.removeprefix("**/"), f"{glob.removeprefix('**/')}/**")
)
"""All but files with secrets: gitglossary(7), under "pathspec"."""

_EVERY_COMMIT = ("--full-history", "--sparse")
"""Paths are no reason to leave commits out: git-log(1), under "History Simplification"."""

_SHOWS_LINES = re.compile(r"-[pu]|-U\d+|-[SG].*|--(?:patch|unified|word-diff|check)(?:=.*)?")
"""Options with which `git log` shows lines of files, or tells whether they are there."""

_MAY_BE_AN_OBJECT = re.compile(r"(?:.*-g)?[0-9a-fA-F]{4,64}|[^:]*\^\{.*")
_RANGE = re.compile(r"(\.{2,3}|^\^)")


def _git(command: Command) -> Command:
    """Git without a program of the repository's choice; a missing object is not fetched from anywhere.

    What was committed of files with secrets is passed over wherever lines of files are shown.
    """
    _, subcommand, *rest = command.argv
    if subcommand == "show":
        rest = [*(() if "--" in rest else _EVERY_COMMIT), *_commits(rest), *_PAST_SECRETS]
    elif subcommand == "diff":
        rest = [*_commits(rest), *_PAST_SECRETS]
    elif subcommand == "log" and any(map(_SHOWS_LINES.fullmatch, rest)):
        names_paths = not all(word.startswith("-") for word in rest)  # or a branch: who can tell
        rest = [*(() if names_paths else _EVERY_COMMIT), *rest, *_PAST_SECRETS]
    argv = ("git", *_GIT, subcommand, *_GIT_SUBCOMMANDS.get(subcommand, ()), *rest)
    return command.running(argv, GIT_ALLOW_PROTOCOL="none")


def _commits(words: list[str]) -> list[str]:
    """The same words, where an id can only be a commit's: a file's content has an id, too, and no name."""
    end = words.index("--") if "--" in words else len(words)
    return [*map(_commit, words[:end]), *words[end:]]


def _commit(word: str) -> str:
    if word.startswith("-"):
        return word
    pieces = _RANGE.split(word)
    return "".join(f"{each}^{{commit}}" if _MAY_BE_AN_OBJECT.fullmatch(each) else each for each in pieces)


def _follows_lines(words: Words) -> bool:
    """Whether a file's lines would be shown back to when it had another name, a secret's perhaps."""
    return "--follow" in words and any(map(_SHOWS_LINES.fullmatch, words))


def _rg(command: Command) -> Command:
    """Ripgrep without the user's own configuration, past files with secrets."""
    without = [word for glob in GLOBS for word in ("--iglob", f"!{glob}")]
    return command.running(("rg", "--no-config", *without, *command.argv[1:]))


# --- the programs ---------------------------------------------------------------------------------


def _options(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def _long(words: str) -> str:
    return f"--(?:{'|'.join(words.split())})"


_GIT_READING = _options(
    r"-\d+", r"-n\d*", r"-[sbpuzMCi]", r"-[MC]\d+%?", r"-U\d+", r"-[SG].*",
    _long(
        r"""oneline stat shortstat numstat name-only name-status short branch long graph all decorate(=\w+)?
        porcelain(=v?[12])? patch no-patch cached staged merge-base no-color color(=\w+)? summary merges
        no-merges reverse follow check word-diff(=\w+)? ignored(=\w+)? untracked-files(=\w+)? first-parent
        full-index abbrev-commit abbrev=\d+ no-renames find-renames(=\d+%?)? dirstat raw relative-date root
        topo-order date-order ignore-all-space ignore-space-change ignore-blank-lines minimal patience
        histogram format=.* pretty(=.*)? date=.* author=.* committer=.* grep=.* since=.* until=.* after=.*
        before=.* max-count=\d+ skip=\d+ unified=\d+ diff-filter=\w+ branches tags remotes left-right
        cherry-pick text"""
    ),
)  # fmt: skip
_NONE = _options(r"(?!)")
_TESTS = _options(
    r"-[qvxsl]+", r"-[km]", r"-n\w*", r"-r[a-zA-Z]*",
    _long(
        r"""verbose quiet exitfirst lf ff last-failed failed-first nf new-first sw stepwise collect-only co
        maxfail=\d+ tb=\w+ durations=\d+ no-header no-summary cov(=\w+)? strict-markers color=\w+"""
    ),
)  # fmt: skip
_CARGO = _options(
    r"-[vqr]+", r"-p", r"-j\d*",
    _long(
        r"""release all workspace lib bins tests examples benches all-targets all-features no-default-features
        features(=.*)? package(=.*)? verbose quiet locked offline frozen no-run no-fail-fast doc nocapture
        test-threads=\d+ exact ignored"""
    ),
)  # fmt: skip
_GO = _options(r"--?(?:v|race|short|failfast|cover|count=\d+|run(=.*)?|bench(=.*)?|timeout=\w+|x|n|a)")

_PRINTS = re.compile(r"-n (?:\d+|\$)(?:,(?:\d+|\$))?p")
"""The one script of sed that a rule covers: printing lines. Others write files and run programs."""

_KNOWN: dict[Words, Known] = {
    ("ls",): Known(
        _options(
            r"-[1aAbcdFghHiklLmnopqrRsStuUvxXZ]+",
            _long(
                r"""all almost-all directory human-readable recursive reverse size color(=\w+)? full-time
                group-directories-first sort=\w+ time=\w+ time-style=[\w-]+"""
            ),
        )
    ),
    ("cat",): Known(_options(r"-[AbeEnstTuv]+", _long("number show-all show-ends show-tabs squeeze-blank"))),
    ("head",): Known(
        _options(r"-\d+", r"-[nc][+-]?\d*", r"-[qvz]+", _long(r"lines=-?\d+ bytes=-?\d+ quiet"))
    ),
    ("tail",): Known(
        _options(r"-\d+", r"-[nc][+-]?\d*", r"-[qvz]+", _long(r"lines=\+?\d+ bytes=\+?\d+ quiet"))
    ),
    ("wc",): Known(_options(r"-[clmLw]+", _long("bytes chars lines words max-line-length"))),
    ("grep",): Known(
        _options(
            r"-[EFGPivwxcHhlLnoqsabyzZ]+",
            r"-[ABCm]\d*",
            r"-e",
            _long(
                r"""ignore-case invert-match word-regexp line-regexp count line-number only-matching quiet
                with-filename no-filename files-with-matches files-without-match fixed-strings no-messages
                extended-regexp perl-regexp basic-regexp color(=\w+)? text context=\d+ after-context=\d+
                before-context=\d+ max-count=\d+"""
            ),
        )
    ),
    ("rg",): Known(
        _options(
            r"-[niwlcvFoSsHNxUpPV0]+",
            r"-[ABCmM]\d*",
            r"-[teT]",
            r"-[tT]\w+",
            _long(
                r"""files ignore-case line-number word-regexp files-with-matches count invert-match smart-case
                fixed-strings only-matching case-sensitive with-filename no-filename no-heading heading
                multiline no-line-number max-count=\d+ context=\d+ after-context=\d+ before-context=\d+
                type=\w+ stats json type-not=\w+ sort=\w+ color=\w+ max-depth=\d+ type-list column trim
                vimgrep"""
            ),
        ),
        rebuilt=_rg,
    ),
    ("find",): Known(
        _options(
            r"""-(?:name|iname|path|ipath|type|maxdepth|mindepth|size|mtime|mmin|newer|empty|not|o|a|or|and|print
            |print0|prune|regex|iregex|perm|user|group|links|ls|depth|mount|xdev|true|false|readable|writable
            |executable|\d+)""".replace("\n", "").replace(" ", "")
        )
    ),
    ("sort",): Known(
        _options(
            r"-[bdfgiMhnrVcCuzs]+",
            r"-[bdfgiMhnrVuzs]*[kt]\S*",
            _long("numeric-sort reverse unique ignore-case human-numeric-sort version-sort check stable"),
        )
    ),
    ("uniq",): Known(_options(r"-[cdDiuz]+", _long("count repeated unique ignore-case")), operands=1),
    ("cut",): Known(
        _options(r"-[bcf][\d,-]*", r"-d.?", "-s", _long(r"complement delimiter=.* fields=.* only-delimited"))
    ),
    ("tr",): Known(_options(r"-[cCdst]+"), reads=False),
    ("sed",): Known(_options("-n", "-s"), begins=_PRINTS),
    ("diff",): Known(
        _options(r"-[abBiuwqsy]+", r"-U\d+", _long(r"brief unified(=\d+)? side-by-side")), compares=True
    ),
    ("cmp",): Known(_options(r"-[bls]+")),
    ("stat",): Known(_options(r"-[Lcf]+", _long(r"format=.* printf=.*"))),
    ("file",): Known(_options(r"-[bikL]+", _long("brief mime mime-type"))),
    ("du",): Known(_options(r"-[abchkLmsx]+", r"-d\d*", _long(r"max-depth=\d+ human-readable summarize"))),
    ("df",): Known(_options(r"-[ahiklPTx]+")),
    ("tree",): Known(_options(r"-[adfhpsCDFi]+", r"-[LIP]", _long("dirsfirst noreport"))),
    ("nl",): Known(_options(r"-[bnw]\w*")),
    ("basename",): Known(_NONE, reads=False),
    ("dirname",): Known(_NONE, reads=False),
    ("realpath",): Known(_options(r"-[emsz]+")),
    ("readlink",): Known(_options(r"-[efmnz]+")),
    ("which",): Known(_options("-a")),
    ("pwd",): Known(_options("-[LP]"), operands=0),
    ("echo",): Known(_options(r"-[neE]+"), reads=False),
    ("true",): Known(_NONE, operands=0),
    ("false",): Known(_NONE, operands=0),
    ("uname",): Known(_options(r"-[asnrvmpio]+"), operands=0),
    ("whoami",): Known(_NONE, operands=0),
    ("git", "status"): Known(_GIT_READING, refused_in=may_run, rebuilt=_git),
    ("git", "log"): Known(_GIT_READING, refuses=_follows_lines, rebuilt=_git),
    # Outside a repository, or with a path outside it, `git diff A B` compares as `diff -r A B` does.
    ("git", "diff"): Known(_GIT_READING, compares=True, refused_in=may_run, rebuilt=_git),
    ("git", "show"): Known(_GIT_READING, rebuilt=_git),
    ("git", "branch"): Known(
        _options(r"-[arv]+", _long(r"all remotes list show-current verbose no-color no-abbrev sort=\S+")),
        operands=0,
        rebuilt=_git,
    ),
    ("git", "rev-parse"): Known(
        _options(_long(r"short(=\d+)? abbrev-ref show-toplevel git-dir is-inside-work-tree verify")),
        rebuilt=_git,
    ),
    ("git", "ls-files"): Known(
        _options(r"-[cdmosztv]+", _long("cached deleted modified others stage exclude-standard")),
        refused_in=may_run,
        rebuilt=_git,
    ),
    ("git", "remote"): Known(_options("-v", "--verbose"), operands=0, rebuilt=_git),
    ("pytest",): Known(_TESTS, runs=True),
    ("python", "-m", "pytest"): Known(_TESTS, runs=True),
    ("python3", "-m", "pytest"): Known(_TESTS, runs=True),
    ("cargo", "build"): Known(_CARGO, runs=True),
    ("cargo", "check"): Known(_CARGO, runs=True),
    ("cargo", "clippy"): Known(_CARGO, runs=True),
    ("cargo", "test"): Known(_CARGO, runs=True),
    ("go", "build"): Known(_options("--?(?:v|race)"), runs=True),
    ("go", "test"): Known(_GO, runs=True),
    ("go", "vet"): Known(_options("--?v"), runs=True),
}
