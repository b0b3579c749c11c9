"""Nothing of a command lives on, however it tries to get away, and whoever is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest
import pytest_asyncio
from living import (
    PATH,
    all_gone,
    children,
    has_escaped,
    living,
    new_mark,
    none_left,
    run,
    running,
)

from agentd.workspace import process
from agentd.workspace.command import CommandError, CommandResult, LostCommandError
from agentd.workspace.process import Processes

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans")

DAEMONIZE = "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: os.execvp('sleep', ['sleep', '300'])\n    os._exit(0)"  # noqa: E501 - one program text
PTY = "import os, pty\npid, fd = pty.fork()\nif pid == 0: os.execvp('sleep', ['sleep', '300'])\nprint('ready', flush=True)\nos.wait()"  # noqa: E501 - one program text
# Ways to run away. Each says `ready` once what it started runs, and stays.
ESCAPES = {
    "plain child": "sleep 300 & echo ready; wait",
    "nohup": "nohup sleep 300 > /dev/null 2>&1 & echo ready; sleep 300",
    "setsid": "setsid sleep 300 & echo ready; sleep 300",
    "setsid that forks": "setsid -f sleep 300; echo ready; sleep 300",
    "double fork": "(setsid sh -c 'sleep 300 & sleep 300' < /dev/null &> /dev/null &); echo ready; sleep 300",
    "disown": "sleep 300 & disown; echo ready; sleep 300",
    "ignored signals": "trap '' TERM HUP INT; sleep 300 & echo ready; while true; do sleep 300; done",
    "process group of its own": "set -m; sleep 300 & set +m; echo ready; sleep 300",
    "python daemon": f'{sys.executable} -c "{DAEMONIZE}"; echo ready; sleep 300',
    "chain of subshells": "( ( ( setsid sleep 300 & ) & ) & ) & echo ready; exec sleep 300",
    "terminal of its own": f'{sys.executable} -c "{PTY}"',
}
STORM = "for i in $(seq 200); do setsid -f sleep 300; done; echo ready; sleep 300"


@pytest_asyncio.fixture
async def processes() -> AsyncIterator[Processes]:
    async with Processes() as owner:
        yield owner


# --- eleven ways of running away -----------------------------------------------------------------


def test_there_are_eleven_ways():
    assert len(ESCAPES) == 11


@linux
async def test_no_way_of_running_away_survives_a_cancel(processes: Processes):
    for name, command in ESCAPES.items():
        mark = new_mark()
        async with running(processes, command, mark):
            assert has_escaped(mark), name
        assert living(mark) == [], name


@linux
async def test_no_storm_of_two_hundred_sessions_survives(processes: Processes):
    for _ in range(3):
        mark = new_mark()
        async with running(processes, STORM, mark):
            assert len(living(mark)) > 200
        assert living(mark) == []


@linux
async def test_no_way_of_running_away_survives_running_out_of_time(processes: Processes):
    marks = {name: new_mark() for name in ESCAPES}
    results: dict[str, CommandResult] = {}

    async def call(name: str) -> None:
        results[name] = await run(processes, ESCAPES[name], timeout=6, MARK=marks[name])

    async with anyio.create_task_group() as tasks:
        for name in ESCAPES:
            tasks.start_soon(call, name)
    for name, result in results.items():
        assert (result.timed_out, result.text) == (True, "ready\n"), name
        assert living(marks[name]) == [], name


DAEMON = """
import sys
sys.path.insert(0, sys.argv[1])
import anyio
from pathlib import Path
from agentd.workspace.process import Processes

async def main():
    path, mark, commands = sys.argv[2], sys.argv[3], sys.argv[4:]
    async def show(text, left_out):
        print(text, end="", flush=True)
    async with Processes() as processes, anyio.create_task_group() as tasks:
        async def call(command):
            env = {"PATH": path, "MARK": mark}
            await processes.run(["bash", "-c", command], cwd=Path("/"), env=env, timeout=300, output=show)
        for command in commands:
            tasks.start_soon(call, command)

anyio.run(main)
"""


@linux
def test_no_way_of_running_away_survives_the_death_of_the_daemon():
    mark = new_mark()
    root = str(Path(process.__file__).parents[2])
    commands = [*ESCAPES.values(), STORM]
    arguments = [sys.executable, "-c", DAEMON, root, PATH, mark, *commands]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as daemon:
        assert daemon.stdout
        for _ in commands:
            assert daemon.stdout.readline() == b"ready\n"
        helpers = children(daemon.pid)
        helpers += [warden for helper in helpers for warden in children(helper)]
        assert len(helpers) > len(commands)
        assert len(living(mark)) > 200
        daemon.kill()
    assert all_gone(mark)
    assert none_left(helpers)


# --- when the processes behind commands die -------------------------------------------------------


def _warden_of(mark: str) -> int:
    pid = int(living(mark)[0].split()[0])
    while b"warden.py" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def _keeper_of(mark: str) -> int:
    return int(Path(f"/proc/{_warden_of(mark)}/stat").read_text().rpartition(")")[2].split()[1])


@linux
@pytest.mark.parametrize("victim", [_warden_of, _keeper_of])
async def test_when_a_process_behind_a_command_is_killed_the_command_dies_and_the_next_one_runs(
    processes: Processes, victim: Callable[[str], int]
):
    await run(processes, "true")
    for _ in range(3):
        mark = new_mark()
        async with running(
            processes, "trap '' TERM; setsid -f sleep 300; echo ready; sleep 300", mark
        ) as outcome:
            os.kill(victim(mark), signal.SIGKILL)
            assert await anyio.to_thread.run_sync(all_gone, mark)
            with anyio.fail_after(10):
                while not outcome:
                    await anyio.lowlevel.checkpoint()
        assert isinstance(outcome[0], LostCommandError)
        assert (await run(processes, "echo on")).text == "on\n"


@linux
async def test_a_command_that_kills_its_own_warden_gains_nothing(processes: Processes):
    mark = new_mark()
    with pytest.raises(LostCommandError, match="Find out how far it got"):
        await run(processes, "setsid -f sleep 300; kill -9 $PPID; sleep 300", MARK=mark)
    assert all_gone(mark)


@linux
async def test_a_warden_killed_while_it_waits_is_replaced(processes: Processes):
    warden = int((await run(processes, "echo $PPID")).text)
    assert int((await run(processes, "echo $PPID")).text) == warden, "one that waits is used again"
    os.kill(warden, signal.SIGKILL)
    assert none_left([warden])
    assert int((await run(processes, "echo $PPID")).text) != warden


async def test_shutdown_kills_what_runs_and_refuses_what_comes():
    mark = new_mark()
    owner = Processes()
    async with running(
        owner, "trap '' TERM; setsid -f sleep 300; echo ready; sleep 300; sleep 300", mark
    ) as outcome:
        with anyio.fail_after(20):
            await owner.shutdown()
            while not outcome:
                await anyio.lowlevel.checkpoint()
        assert living(mark) == []
    with pytest.raises(CommandError, match="the daemon is ending"):
        await run(owner, "true")


async def test_shutdown_lets_commands_end_on_their_own_first():
    owner = Processes()
    async with running(
        owner, "trap 'echo bye; exit' TERM; echo ready; sleep 300 & wait", new_mark()
    ) as outcome:
        await owner.shutdown(grace=20)
        with anyio.fail_after(20):
            while not outcome:
                await anyio.lowlevel.checkpoint()
    assert isinstance(outcome[0], CommandResult)
    assert outcome[0].text == "ready\nbye\n"


# --- where orphans cannot be adopted --------------------------------------------------------------


async def test_without_adoption_the_process_group_still_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    elsewhere = tmp_path / "warden.py"
    elsewhere.write_text(
        "import runpy, sys\nsys.platform = 'elsewhere'\n"
        f"runpy.run_path({str(process._WARDEN)!r}, run_name='__main__')"
    )
    monkeypatch.setattr(process, "_WARDEN", elsewhere)
    mark = new_mark()
    async with Processes() as owner:
        assert (await run(owner, "echo hi; exit 2")).exit_code == 2
        result = await run(owner, "sleep 300 & echo hi", MARK=mark)
        assert (result.text, result.leftovers) == ("hi\n", True)
        result = await run(owner, "trap '' TERM; sleep 300 & sleep 300; sleep 300", timeout=1, MARK=mark)
        assert (result.timed_out, result.signal) == (True, "SIGKILL")
        async with running(owner, "sleep 300 & echo ready; sleep 300", mark):
            pass
        assert all_gone(mark)
