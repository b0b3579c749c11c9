"""What is no ordinary file, for every tool that reads or writes: refused or passed over, never waited for."""

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from file_calls import Calls, said
from wire.processes import DEADLINE

from agentd.workspace.paths import PathError

SPECIAL = ("fifo", "socket", "device", "folder", "fifo-link", "sparse", "huge", "loop", "/proc/self/environ")
REASONS = (
    "named pipe",
    "socket",
    "device",
    "directory",
    "files over 32 MB are not read",
    "circle",
    "outside",
)
TOOLS = {
    "read_file": {},
    "write_file": {"content": "x"},
    "edit_file": {"old_string": "a", "new_string": "b"},
    "edit_file many": {"edits": [{"old_string": "a", "new_string": "b"}]},
}


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    """A workspace with one of each kind."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "fifo-link").symlink_to("fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(50 * 2**30)
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(32 * 2**20 + 1)
    if os.geteuid() == 0:
        os.mknod(tmp_path / "device", 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        yield Calls(tmp_path)


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("tool", TOOLS)
async def test_each_tool_refuses_it_at_once_and_says_what_it_is(calls: Calls, tool: str, kind: str) -> None:
    if kind == "device" and os.geteuid() != 0:
        pytest.skip("only root may make a device")
    with anyio.fail_after(DEADLINE):
        try:
            text = await calls.error(tool.split()[0], file_path=kind, **TOOLS[tool])
        except PathError as error:
            text = str(error)
    assert any(reason in text for reason in REASONS), text
    assert sorted(os.listdir(calls.root)) == sorted({*SPECIAL[:-1]} - ({"device"} if os.geteuid() else set()))


async def test_a_search_passes_them_over_and_a_search_in_one_says_what_it_is(calls: Calls) -> None:
    (calls.root / "plain").write_text("needle\n")
    with anyio.fail_after(DEADLINE):
        assert "plain:1" in (await calls.text("search_files", pattern="needle")).replace(" ", "")
        for kind in ("fifo", "socket", "sparse"):
            assert (await calls.run("search_files", pattern="needle", path=kind)).is_error
        listed = await calls.text("list_directory")
    assert "fifo" in listed


async def test_a_file_that_becomes_a_pipe_after_the_question_is_refused(calls: Calls) -> None:
    path = calls.root / "f"
    path.write_text("a")
    await calls.text("read_file", file_path="f")
    actions = [
        await calls.prepare(tool.split()[0], file_path="f", **arguments) for tool, arguments in TOOLS.items()
    ]
    path.unlink()
    os.mkfifo(path)
    with anyio.fail_after(DEADLINE):
        for action in actions:
            result = await action.run()
            assert result.is_error
            assert "named pipe" in said(result)


async def test_a_workspace_that_holds_proc_gives_away_no_secret_of_a_process() -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc")
    calls = Calls(Path("/"))
    with anyio.fail_after(DEADLINE):
        for name in ("environ", "mem", "maps", "cmdline"):
            assert (await calls.run("read_file", file_path=f"proc/self/{name}")).is_error
            arguments = {"old_string": "a", "new_string": "b"}
            assert (await calls.run("edit_file", file_path=f"proc/self/{name}", **arguments)).is_error


_FULL = """
import asyncio, sys
from pathlib import Path
from file_calls import Calls

async def main():
    calls = Calls(Path(sys.argv[1]))
    await calls.text("read_file", file_path="f")
    print(await calls.error("edit_file", file_path="f", old_string="old", new_string="N" * 4_000_000))
    print(await calls.error("write_file", file_path="f", content="N" * 4_000_000))
    print(await calls.error("write_file", file_path="new", content="N" * 4_000_000))

asyncio.run(main())
"""


PRIVATE_MOUNTS = ("unshare", "--mount", "sh", "-c")
MOUNT = "mount -t tmpfs -o size=1m none {}"


def run_script(code: str, root: Path, *before: str, **options: object) -> list[str]:
    """The lines that `code` prints, run by itself on the workspace `root`; `before` starts it."""
    done = subprocess.run(
        [*before, sys.executable, "-c", code, str(root)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def limit_file_size() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))


@pytest.mark.parametrize("linked", [False, True])
def test_a_disk_that_takes_no_more_leaves_the_old_file_and_nothing_else(tmp_path: Path, linked: bool) -> None:
    (tmp_path / "f").write_text("old")
    if linked:
        os.link(tmp_path / "f", tmp_path / "g")
    told = run_script(_FULL, tmp_path, preexec_fn=limit_file_size)
    assert len(told) == 3
    assert all("File too large" in line for line in told)
    assert (tmp_path / "f").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["f", "g"][: 1 + linked]


def test_a_full_file_system_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    if subprocess.run([*PRIVATE_MOUNTS, MOUNT.format("/mnt")], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system, and not in every container")
    script = MOUNT.format('"$0"') + ' && printf old > "$0/f" && "$@" && ls -A "$0" && cat "$0/f"'
    told = run_script(_FULL, tmp_path, *PRIVATE_MOUNTS, script, str(tmp_path))
    assert len(told) == 5
    assert all("No space left on device. It is as before." in line for line in told[:3])
    assert told[3:] == ["f", "old"]


_UNMOUNTED = """
import asyncio, os, subprocess, sys
from pathlib import Path
from file_calls import Calls

async def main():
    calls = Calls(Path(sys.argv[1]))
    (calls.root / "f").write_text("old")
    await calls.text("read_file", file_path="f")
    edit = await calls.prepare("edit_file", file_path="f", old_string="old", new_string="new")
    write = await calls.prepare("write_file", file_path="f", content="new")
    subprocess.run(["umount", "-l", sys.argv[1]], check=True)
    assert (await edit.run()).is_error
    assert (await write.run()).is_error
    print(await calls.error("edit_file", file_path="f", old_string="old", new_string="new"))
    print(os.listdir(calls.root))

asyncio.run(main())
"""


def test_in_a_workspace_that_is_unmounted_meanwhile_no_edit_is_made_below_it(tmp_path: Path) -> None:
    if subprocess.run([*PRIVATE_MOUNTS, MOUNT.format("/mnt")], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system, and not in every container")
    script = MOUNT.format('"$0"') + ' && "$@"'
    told = run_script(_UNMOUNTED, tmp_path, *PRIVATE_MOUNTS, script, str(tmp_path))
    assert told == ["File not found: 'f'", "[]"]
