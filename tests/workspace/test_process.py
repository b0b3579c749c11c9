"""Commands as real processes: how they start, what they see, how they end."""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
import pytest_asyncio
from living import PATH, appears, children, environment_of, living, new_mark, run

from agentd.workspace import process
from agentd.workspace.command import CommandResult, SpawnError
from agentd.workspace.output import RESULT_BYTES
from agentd.workspace.process import Processes

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")


@pytest_asyncio.fixture
async def processes() -> AsyncIterator[Processes]:
    async with Processes() as owner:
        yield owner


# --- how a command runs ---------------------------------------------------------------------------


async def test_output_comes_in_order_from_both_streams(processes: Processes):
    result = await run(processes, "echo one; echo two >&2; echo three; exit 7")
    assert result.text == "one\ntwo\nthree\n"
    assert (result.exit_code, result.signal, result.total_bytes) == (7, None, 14)
    assert (result.timed_out, result.leftovers, result.truncated, result.survivors) == (
        False,
        False,
        False,
        0,
    )


async def test_a_deadly_signal_has_its_name(processes: Processes):
    result = await run(processes, "kill -SEGV $$")
    assert (result.exit_code, result.signal) == (None, "SIGSEGV")
    result = await run(processes, "kill -40 $$")
    assert (result.exit_code, result.signal) == (None, "SIG40")


async def test_a_command_inherits_nothing_but_what_it_is_given(processes: Processes, tmp_path: Path):
    os.environ["AGENTD_TEST_API_KEY"] = "canary"
    leaked = os.dup2(0, 77, inheritable=True)
    umask = os.umask(0o027)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        script = (
            "readlink /proc/$$/fd/0; umask; pwd -P; grep -E 'Sig(Blk|Ign)' /proc/self/status; env; "
            "readlink /proc/$PPID/fd/0 /proc/$PPID/fd/1; ps -o sid= $$; echo $$"
        )
        result = await run(processes, script, cwd=tmp_path, GIVEN="yes")
        descriptors = await processes.run(
            ["ls", "/proc/self/fd"], cwd=tmp_path, env={"PATH": PATH}, timeout=60
        )
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.umask(umask)
        os.close(leaked)
        del os.environ["AGENTD_TEST_API_KEY"]
    lines = result.text.splitlines()
    assert descriptors.text.split() == ["0", "1", "2", "3"], "the last is the folder that ls reads"
    assert lines[:3] == ["/dev/null", "0027", str(tmp_path)]
    assert lines[3].split() == ["SigBlk:", "0" * 16]
    ignored = int(lines[4].removeprefix("SigIgn:"), 16)
    assert ignored & ~0x1_8000_0000 == 0, "but for 32 and 33, which glibc keeps to itself"
    assert "GIVEN=yes" in lines
    assert "canary" not in result.text
    assert lines[-4:-2] == ["/dev/null", "/dev/null"]
    assert lines[-2].strip() == lines[-1], "it leads a session of its own"


@linux
async def test_the_processes_behind_commands_have_an_empty_environment(processes: Processes):
    result = await run(processes, "echo $PPID; ps -o ppid= $PPID; cat /proc/$PPID/environ | wc -c")
    warden, keeper, size = result.text.split()
    assert int(size) == 0
    assert int(keeper) in children(os.getpid())
    assert environment_of(int(keeper)) == environment_of(int(warden)) == b""


async def test_a_pipe_that_breaks_ends_its_writer(processes: Processes):
    result = await run(processes, "yes | head -1; echo ${PIPESTATUS[0]}")
    assert result.text == "y\n141\n"


async def test_commands_run_side_by_side(processes: Processes, tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    results = {}

    async def call(name: str, command: str) -> None:
        results[name] = (await run(processes, command, cwd=tmp_path)).text

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "reader", "cat fifo")
        for number in range(10):
            tasks.start_soon(call, str(number), f"echo {number}")
        tasks.start_soon(call, "writer", "echo met > fifo")
    assert results == {"reader": "met\n", "writer": "", **{str(n): f"{n}\n" for n in range(10)}}


# --- what cannot start ----------------------------------------------------------------------------


async def test_a_missing_folder_is_named(processes: Processes, tmp_path: Path):
    with pytest.raises(SpawnError, match=r"the folder .*gone cannot be entered: No such file") as caught:
        await run(processes, "true", cwd=tmp_path / "gone")
    assert caught.value.errno == errno.ENOENT
    assert (await run(processes, "echo on")).text == "on\n"


async def test_a_missing_program_is_named(processes: Processes):
    for program in ("no-such-program", "/no/such/program"):
        with pytest.raises(SpawnError, match=f"Cannot start {program}: no such program"):
            await processes.run([program], cwd=Path("/"), env={"PATH": PATH}, timeout=5)


async def test_a_command_too_long_for_the_system_is_refused_with_a_way_out(processes: Processes):
    with pytest.raises(SpawnError, match=r"Argument list too long\. Write the long part to a file"):
        await run(processes, "true " + "x" * 5_000_000)
    assert (await run(processes, "echo on")).text == "on\n"


async def test_a_lone_surrogate_is_refused(processes: Processes):
    with pytest.raises(SpawnError, match=r"'\\ud800' is no character"):
        await run(processes, "echo \ud800")


async def test_a_name_with_undecodable_bytes_reaches_the_command(processes: Processes):
    result = await run(processes, 'printf %s "$NAME" | od -An -tx1', NAME=os.fsdecode(b"a\xff"))
    assert result.text.split() == ["61", "ff"]


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize("room", range(6))
async def test_running_out_of_descriptors_is_an_error_and_no_more(
    processes: Processes, room: int, has_run: bool
):
    if has_run:
        await run(processes, "true")
    before = len(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.dup(2) for _ in range(room + 1)]
    for fd in free:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1], hard))
    outcome: object
    try:
        outcome = (await run(processes, "echo fits")).text
    except SpawnError as error:
        outcome = error.errno
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert outcome == (errno.EMFILE if room < (2 if has_run else 6) else "fits\n")
    if outcome == errno.EMFILE:
        assert len(os.listdir("/proc/self/fd")) <= before + 1, "at most the socket of a keeper that did start"
    assert (await run(processes, "echo on")).text == "on\n"


async def test_running_out_of_processes_is_an_error_and_no_more(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    crowded = tmp_path / "warden.py"
    crowded.write_text(
        "import errno, os, runpy\n"
        "fork, tries = os.fork, iter([1])\n"
        "def fork_at_the_second_try():\n"
        "    if next(tries, None): raise BlockingIOError(errno.EAGAIN, 'no more processes')\n"
        "    return fork()\n"
        "os.fork = fork_at_the_second_try\n"
        f"runpy.run_path({str(process._WARDEN)!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(process, "_WARDEN", crowded)
    with pytest.raises(SpawnError, match=r"temporarily unavailable\. Wait until other processes have ended"):
        await run(processes, "echo too much")
    assert (await run(processes, "echo on")).text == "on\n"


# --- how a command ends ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["sleep 300 & echo hi", "setsid sleep 300 & echo hi", "yes > /dev/null & echo hi"]
)
async def test_a_background_process_does_not_hold_the_call_and_is_stopped(processes: Processes, command: str):
    mark = new_mark()
    with anyio.fail_after(20):
        result = await run(processes, command, timeout=200, MARK=mark)
    assert (result.text, result.exit_code, result.leftovers, result.timed_out) == ("hi\n", 0, True, False)
    assert living(mark) == []


async def test_a_child_that_keeps_printing_is_stopped_with_the_command(processes: Processes):
    mark = new_mark()
    with anyio.fail_after(20):
        result = await run(processes, "yes & sleep 0.1; echo end", timeout=200, MARK=mark)
    assert result.leftovers
    assert result.total_bytes > RESULT_BYTES
    assert living(mark) == []


async def test_the_last_words_of_a_filter_behind_the_command_are_heard(processes: Processes):
    result = await run(processes, "echo hi > >(sleep 0.05; sed s/hi/ho/)")
    assert (result.text, result.leftovers) == ("ho\n", False)


async def test_time_runs_out_with_sigterm_first(processes: Processes):
    result = await run(processes, "trap 'echo bye; exit 3' TERM; echo start; sleep 300 & wait", timeout=1)
    assert (result.text, result.timed_out, result.exit_code) == ("start\nbye\n", True, 3)


async def test_what_ignores_sigterm_is_killed_when_time_runs_out(processes: Processes):
    mark = new_mark()
    result = await run(processes, "trap '' TERM; while true; do sleep 300; done", timeout=1, MARK=mark)
    assert (result.timed_out, result.signal, result.exit_code) == (True, "SIGKILL", None)
    assert living(mark) == []


@pytest.mark.parametrize("jump", [86_400, -86_400])
async def test_a_clock_that_jumps_a_day_neither_ends_nor_holds_a_command(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, jump: float
):
    clock = time.time

    async def watch(text: str, left_out: int) -> None:
        monkeypatch.setattr(time, "time", lambda: clock() + jump)
        (tmp_path / "go").touch()

    command = "echo ready; until [ -e go ]; do sleep 0.01; done; echo on"
    result = await processes.run(
        ["bash", "-c", command], cwd=tmp_path, env={"PATH": PATH}, timeout=60, output=watch
    )
    assert (result.text, result.timed_out) == ("ready\non\n", False)
    assert 0 <= result.duration < 60
    assert (await run(processes, "sleep 300", timeout=0.3)).timed_out


async def test_much_output_while_cleaning_up_does_not_stop_the_clean_up(processes: Processes):
    command = (
        "trap 'head -c 1000000 /dev/zero | tr \"\\0\" x; echo end; exit' TERM; echo ready; sleep 300 & wait"
    )
    result = await run(processes, command, timeout=1)
    assert result.text.endswith("end\n")
    assert result.total_bytes > 1_000_000


async def test_a_call_cancelled_before_it_starts_runs_nothing(processes: Processes, tmp_path: Path):
    with anyio.CancelScope() as scope:
        scope.cancel()
        await run(processes, "touch made", cwd=tmp_path)
    assert scope.cancelled_caught
    assert os.listdir(tmp_path) == []


async def test_a_call_cancelled_at_any_moment_leaves_nothing(processes: Processes):
    mark = new_mark()
    for milliseconds in range(0, 30, 2):
        with anyio.move_on_after(milliseconds / 1000) as scope:
            await run(processes, "sleep 300 & setsid -f sleep 300; sleep 300", MARK=mark)
        assert scope.cancelled_caught
        assert living(mark) == []
    assert (await run(processes, "echo on")).text == "on\n"


# --- who watches ----------------------------------------------------------------------------------


async def test_a_watcher_that_waits_does_not_hold_up_the_command(processes: Processes, tmp_path: Path):
    seen, missing = [], []

    async def watch(text: str, left_out: int) -> None:
        seen.append(text)
        missing.append(left_out)
        assert await anyio.to_thread.run_sync(appears, tmp_path / "made")

    result = await processes.run(
        ["bash", "-c", "echo ready; head -c 5000000 /dev/zero | tr '\\0' x; touch made"],
        cwd=tmp_path,
        env={"PATH": PATH},
        timeout=60,
        output=watch,
    )
    assert result.total_bytes == 5_000_006
    assert result.truncated
    assert len("".join(seen)) < 1_000_000
    assert len("".join(seen)) + sum(missing) == 5_000_006


async def test_a_watcher_that_fails_ends_the_command_with_its_own_error(processes: Processes):
    mark = new_mark()

    async def watch(text: str, left_out: int) -> None:
        raise ValueError("the watcher is broken")

    with pytest.raises(ValueError, match="the watcher is broken"):
        await processes.run(
            ["bash", "-c", "echo hi; sleep 300"],
            cwd=Path("/"),
            env={"PATH": PATH, "MARK": mark},
            timeout=60,
            output=watch,
        )
    assert living(mark) == []


MEASURED = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import anyio
from pathlib import Path
from agentd.workspace.process import Processes
from agentd.workspace.spills import Spills

async def main():
    async with Processes() as processes:
        spills = Spills(Path(sys.argv[2]))
        run = lambda command, timeout: processes.run(
            ["bash", "-c", command],
            cwd=Path("/"), env={"PATH": sys.argv[3]}, timeout=timeout, spill=spills.new(),
        )
        await run("seq 200000", 60)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for seconds in (3, 20):  # the longer one where a busy machine let it print too little
            result = await run("yes", seconds)
            if result.total_bytes > 40_000_000:
                break
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(result.total_bytes, len(result.text), result.text[:4].split(), (after - peak) * 1024)
        await spills.close()

anyio.run(main)
"""


@linux
def test_endless_output_takes_bounded_memory(tmp_path: Path):
    """In a process of its own, so that what other tests left in memory cannot hide it."""
    root = str(Path(process.__file__).parents[2])
    arguments = [sys.executable, "-c", MEASURED, root, str(tmp_path / "output"), PATH]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=60).stdout
    total, shown, *begin, growth = said.replace("'", "").replace("[", "").replace("]", "").split()
    assert int(total) > 40_000_000, "it printed more than could be kept unseen"
    assert int(shown) <= RESULT_BYTES
    assert begin == ["y,", "y"]
    assert int(growth) < 30_000_000


async def test_what_a_command_says_aside_is_no_output(processes: Processes):
    async def call(command: str, aside: int | None = 198) -> CommandResult:
        return await processes.run(
            ["bash", "-c", command], cwd=Path("/"), env={"PATH": PATH}, timeout=60, aside=aside
        )

    result = await call("echo out; echo aside >&198; sleep 300 & exit 3")
    assert (result.text, result.aside, result.exit_code) == ("out\n", b"aside\n", 3)
    assert (await call("head -c 60000 /dev/zero >&198")).aside == bytes(8192), "at most so much"
    assert (await call("true")).aside == b""
    result = await call("echo aside >&198", aside=None)
    assert (result.exit_code, result.aside) == (1, b""), "there is no such descriptor but on request"


async def test_a_hundred_commands_leave_no_descriptor_and_no_thread(processes: Processes):
    await run(processes, "true")
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    for number in range(100):
        if number % 10:
            await run(processes, "sleep 300 >/dev/null & exit 1" if number % 10 == 5 else "true")
        else:
            with anyio.move_on_after(0.01):
                await run(processes, "sleep 300")
    await run(processes, "true")
    assert len(os.listdir("/proc/self/fd")) <= descriptors + process.IDLE_WARDENS
    assert threading.active_count() <= threads
    await processes.shutdown()
    assert children(os.getpid()) == []
