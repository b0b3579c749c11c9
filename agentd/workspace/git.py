"""The daemon's own calls of git. They only read, and nothing that a repository brings runs outside a jail.

`git status` in a hostile repository runs code: a filesystem monitor, a filter, a hook, a repository that is
planted as a folder of the workspace. So every call runs in a sandbox in which nothing but a scratch folder
can be written to and no network is reached. Beside that the programs that a repository can name are switched
off, so that in a good repository, too, none starts. Without a sandbox git is not run at all.

The system's and the user's configuration do not count, but for the user's ignore file. With filters off, a
file that git keeps in another form (large file storage) shows as changed once its time stamp has changed.

Sources: git(1), git-config(1), gitattributes(5).
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from agentd.workspace.command import CommandError
from agentd.workspace.enclosure import SandboxError, wrap
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

TIMEOUT_SECONDS = 10.0
MOST_BYTES = 4 * 1024 * 1024
"""The most output that a call may give unless it says otherwise."""

_BATCH_HEAD = 128  # bytes, what git writes around each content at most
_SHA256 = 64  # hexadecimal digits

_BLOCK = 512  # bytes, what `ulimit -f` counts in (POSIX)
_SHOWN = 400

# An alias of the repository cannot take the place of a command of git's own; any other name might be one.
_READING = frozenset({"cat-file", "config", "diff", "for-each-ref", "log", "ls-files", "ls-tree", "rev-list",
                      "rev-parse", "show", "status", "symbolic-ref", "version"})  # fmt: skip
_OF_CONTENT = frozenset({"cat-file", "diff", "log", "ls-files", "show", "status"})
_DIFFING = frozenset({"diff", "log", "show"})

_OFF = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "core.editor=false",
    "core.askPass=", "core.sshCommand=false", "core.gitProxy=", "core.alternateRefsCommand=",
    "credential.helper=", "diff.external=", "gpg.program=false", "gpg.ssh.program=false",
    "gpg.x509.program=false", "log.showSignature=false", "protocol.allow=never", "submodule.recurse=false",
    "gc.auto=0", "maintenance.auto=false", "safe.bareRepository=explicit", "safe.directory=*",
    "core.quotePath=false", "color.ui=false",
)  # fmt: skip
_SCRIPT = 'ulimit -f "$1"; in=$2 out=$3 err=$4; shift 4; exec "$@" <"$in" >"$out" 2>"$err"'


class GitError(Exception):
    """Git was not run, or failed. The message says which and why."""


@dataclass(frozen=True)
class GitResult:
    """What a call came to: its exit code, 128 and above for a signal, and what it said."""

    exit_code: int
    output: bytes
    errors: str


@dataclass(frozen=True)
class Change:
    """A file that is not as the last commit has it.

    `code` is the pair of letters that git-status(1) lists, as in ` M` and `??`; `origin` is the path that a
    renamed or copied file had.
    """

    code: str
    path: str
    origin: str | None = None


class Git:
    """Git for one workspace folder. Raises `GitError` where a call cannot be made or fails."""

    def __init__(
        self, root: Path, processes: Processes, sandbox: Sandbox, environment: Mapping[str, str] = os.environ
    ) -> None:
        """`environment` says where git is and who the user is; nothing else of it reaches git."""
        self.root = root
        self._processes = processes
        self._sandbox = sandbox
        self._environment = environment

    async def version(self) -> str:
        """The version of git, as in `2.39.5`."""
        return (await self._said("version")).removeprefix("git version ")

    async def top(self) -> Path | None:
        """The folder of the repository that the workspace folder is in; None where it is in none."""
        result = await self.run(["rev-parse", "--show-toplevel"])
        return Path(os.fsdecode(result.output.rstrip(b"\n"))) if result.exit_code == 0 else None

    async def head(self) -> str | None:
        """The commit that is checked out; None where there is none yet."""
        result = await self.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        return result.output.decode().strip() or None

    async def branch(self) -> str | None:
        """The branch that is checked out, without a commit too; None where none is."""
        result = await self.run(["symbolic-ref", "--quiet", "--short", "HEAD"])
        return os.fsdecode(result.output).strip() or None

    async def status(self) -> list[Change]:
        """What is not as the last commit has it, new files too. Submodules are not looked into."""
        arguments = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
        ]
        fields = iter(os.fsdecode(await self._output(arguments)).split("\0")[:-1])
        return [Change(field[:2], field[3:], next(fields) if field[0] in "RC" else None) for field in fields]

    async def blobs(self, ids: Sequence[str], *, limit: int = MOST_BYTES) -> dict[str, bytes]:
        """Contents that the repository has, by their ids, without those that it has not.

        `limit` is how many bytes all of them may take. What is not what its id says is left out.
        """
        lines = "".join(f"{each}\n" for each in ids).encode("ascii")
        room = limit + len(ids) * _BATCH_HEAD
        result = await self.run(["cat-file", "--batch"], limit=room, said=lines)
        if result.exit_code != 0:
            raise GitError(f"git cat-file failed in {self.root}: {result.errors}")
        return dict(_blobs(result.output))

    async def run(
        self,
        arguments: Sequence[str],
        *,
        timeout: float = TIMEOUT_SECONDS,
        limit: int = MOST_BYTES,
        said: bytes = b"",
    ) -> GitResult:
        """Run one of git's reading commands, which reads `said`.

        `timeout` is in seconds, `limit` in bytes of output.

        A call that fails is a result like any other. Raises `GitError` where there is no git or no sandbox,
        or the call takes too long or says too much.
        """
        if arguments[0] not in _READING:
            raise ValueError(f"{arguments[0]} is no command of git that only reads")
        filters = await self._filters() if arguments[0] in _OF_CONTENT else []
        return await self._run(arguments, filters, timeout, limit, said)

    # --- inside -----------------------------------------------------------------------------------

    async def _said(self, *arguments: str) -> str:
        return os.fsdecode(await self._output(arguments)).strip()

    async def _output(self, arguments: Sequence[str]) -> bytes:
        result = await self.run(arguments)
        if result.exit_code != 0:
            raise GitError(f"git {arguments[0]} failed in {self.root}: {result.errors}")
        return result.output

    async def _filters(self) -> list[str]:
        """The names of the filters that the repository has programs for."""
        arguments = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."]
        found = await self._run(arguments, [], TIMEOUT_SECONDS, MOST_BYTES)
        names = os.fsdecode(found.output).split("\0")
        return sorted({name[len("filter.") :].rpartition(".")[0] for name in names if name.count(".") > 1})

    async def _run(
        self, arguments: Sequence[str], filters: Sequence[str], timeout: float, limit: int, said: bytes = b""
    ) -> GitResult:
        program = self._program()
        with ExitStack() as stack:
            scratch = await anyio.to_thread.run_sync(_Scratch, said)
            stack.callback(scratch.remove)
            try:
                status, policy = await self._sandbox.read_only(self.root, scratch.path)
                line = [program, *_options(arguments)]
                shell = ["/bin/sh", "-c", _SCRIPT, "sh", str(limit // _BLOCK + 1), *scratch.names, *line]
                jailed = wrap(status, policy, shell, self.root, self._variables(program, filters))
                result = await self._processes.run(
                    jailed.argv, cwd=self.root, env=jailed.env, timeout=timeout, jail=jailed.jail
                )
            except SandboxError as error:
                raise GitError(
                    f"git is not run here, as a repository may make it run programs. {error}"
                ) from None
            except CommandError as error:
                raise GitError(str(error)) from error
            output, errors = scratch.read(limit + 1)
        if result.timed_out:
            raise GitError(f"git {arguments[0]} took longer than {timeout:g} s in {self.root}.")
        if len(output) > limit:
            raise GitError(f"git {arguments[0]} says more than {limit} bytes in {self.root}.")
        text = errors.decode(errors="replace").strip() or result.text.strip()
        return GitResult(result.exit_code if result.exit_code is not None else 128, output, text[:_SHOWN])

    def _program(self) -> str:
        """Git by its absolute path, never one of the workspace."""
        folders = (Path(each) for each in self._environment.get("PATH", os.defpath).split(os.pathsep))
        safe = [str(each) for each in folders if each.is_absolute() and not each.is_relative_to(self.root)]
        program = shutil.which("git", path=os.pathsep.join(safe))
        if program is None:
            raise GitError("git is not installed, or not on the PATH.")
        return program

    def _variables(self, program: str, filters: Sequence[str]) -> dict[str, str]:
        """The environment: the least there is, and filters off, as their names may hold what `-c` cannot."""
        off = [
            (f"filter.{name}.{key}", value)
            for name in filters
            for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
        ]
        variables = {
            "PATH": f"{Path(program).parent}:{os.defpath}",
            "HOME": self._environment.get("HOME", "/nonexistent"),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_CONFIG_COUNT": str(len(off)),
        }
        for number, (key, value) in enumerate(off):
            variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return variables


def _blobs(output: bytes) -> Iterator[tuple[str, bytes]]:
    """What `cat-file --batch` gave: a line with id, kind and size before each, a line feed behind."""
    at = 0
    while (end := output.find(b"\n", at)) >= 0:
        head = output[at:end].split()
        at = end + 1
        if len(head) != 3 or not head[2].isdigit():
            continue  # "<id> missing"
        name, kind, size = head[0].decode("ascii", "replace"), head[1], int(head[2])
        data = output[at : at + size]
        at += size + 1
        digest = hashlib.sha256 if len(name) == _SHA256 else hashlib.sha1
        whole = digest(b"%b %d\0" % (kind, size) + data, usedforsecurity=False)
        if kind == b"blob" and whole.hexdigest() == name:
            yield name, data


def _options(arguments: Sequence[str]) -> list[str]:
    """The command line behind git's name."""
    off = [part for setting in _OFF for part in ("-c", setting)]
    command, *rest = arguments
    without = ["--no-ext-diff", "--no-textconv"] if command in _DIFFING else []
    return ["--no-pager", "--no-optional-locks", "--literal-pathspecs", *off, command, *without, *rest]


class _Scratch:
    """The folder where a call leaves what it says, in files that stay ours whatever takes their place."""

    def __init__(self, said: bytes = b"") -> None:
        self.path = Path(os.path.realpath(tempfile.mkdtemp(prefix="agentd-git-")))
        self.names = [str(self.path / name) for name in ("input", "output", "errors")]
        (self.path / "input").write_bytes(said)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._files = [os.open(name, flags, 0o600) for name in self.names[1:]]

    def read(self, limit: int) -> list[bytes]:
        """Output and errors, each up to so many bytes."""
        return [os.pread(fd, limit, 0) for fd in self._files]

    def remove(self) -> None:
        """Leave nothing."""
        for fd in self._files:
            os.close(fd)
        shutil.rmtree(self.path, ignore_errors=True)
