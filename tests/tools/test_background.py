"""Commands in the background: started by `bash`, read by `bash_output`, stopped by `bash_kill`."""

import re
import time
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import jsonschema_rs
import pytest
from shell_calls import ShellCalls, details, said
from wire.processes import until
from workspace.living import all_gone, living, new_mark

from agentd.permissions.policy import Allow, Ask, Decision, Deny, Proposal, decide
from agentd.permissions.rules import Rules
from agentd.protocol.messages import CommandSubject, Mode
from agentd.tools import background as tools
from agentd.tools.base import Action, ToolError, ToolResult
from agentd.workspace import background
from agentd.workspace.background import MOST_RUNNING

RUNS = "[{0} runs in the background: bash_output shows its output, bash_kill stops it]"


async def start(shell: ShellCalls, command: str, **arguments: object) -> ToolResult:
    return await shell.run(command, run_in_background=True, **arguments)


async def read(shell: ShellCalls, command_id: str = "bg_1", wait_ms: int = 20_000) -> str:
    return said(await shell.call("bash_output", id=command_id, wait_ms=wait_ms))


async def read_until(shell: ShellCalls, text: str, begin: ToolResult | None = None) -> str:
    """All that is shown of `bg_1` until this stands in it, from what its start has shown on."""
    shown = f"{said(begin)}\n" if begin else ""
    with anyio.fail_after(20):
        while text not in shown:
            shown += await read(shell) + "\n"
    return shown


async def comes_alive(mark: str) -> None:
    await anyio.to_thread.run_sync(until, lambda: living(mark), "it runs")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine also what ends at once takes its time."""
    monkeypatch.setattr(tools, "_FIRST_LOOK_SECONDS", 20)


async def test_a_server_runs_on_while_other_commands_run(shell: ShellCalls, tmp_path: Path):
    result = await start(shell, "python3 -u -m http.server 0 --bind 127.0.0.1")
    assert said(result).splitlines()[-1] == RUNS.format("bg_1")
    assert (result.is_error, result.details) == (False, None)
    (tmp_path / "a.txt").write_text("served")
    (port,) = re.findall(r" port (\d+)", await read_until(shell, " port ", result))
    fetch = f"from urllib.request import urlopen as u; print(u('http://127.0.0.1:{port}/a.txt').read())"
    assert said(await shell.run(f'python3 -c "{fetch}"')) == "b'served'"
    assert "GET /a.txt" in await read_until(shell, "GET /a.txt")
    assert said(await shell.call("bash_kill", id="bg_1")) == "(no new output)\n[bg_1 was stopped]"


async def test_each_look_shows_what_is_new(shell: ShellCalls, tmp_path: Path):
    (tmp_path / "go").mkdir()
    result = await start(shell, "echo one; while [ -e go ]; do sleep 0.02; done; printf two; sleep 300")
    await read_until(shell, "one", result)
    (tmp_path / "go").rmdir()
    assert await read(shell) == "two\n[bg_1 is running]", "also where the line has not ended yet"
    assert await read(shell, wait_ms=0) == "(no new output)\n[bg_1 is running]"


async def test_the_end_is_told_once(shell: ShellCalls, tmp_path: Path):
    await start(shell, "until [ -e go ]; do sleep 0.02; done; echo done; exit 3")
    (tmp_path / "go").touch()
    assert (await read_until(shell, "has ended")).endswith("[bg_1 has ended: exit code 3]\n")
    with pytest.raises(ToolError, match=r'no background command "bg_1".* Running: none'):
        await read(shell)


async def test_the_details_of_the_end_are_those_of_a_command(shell: ShellCalls, tmp_path: Path):
    await start(shell, "until [ -e go ]; do sleep 0.02; done; kill -KILL $$")
    (tmp_path / "go").touch()
    with anyio.fail_after(30):
        while (result := await shell.call("bash_output", id="bg_1", wait_ms=20_000)).details is None:
            pass
    assert (details(result).exit_code, details(result).signal) == (None, "SIGKILL")
    assert not result.is_error, "looking at it went well"


async def test_one_that_fails_at_once_says_so_at_once(shell: ShellCalls, patient: None):
    result = await start(shell, "echo no such script; exit 1")
    assert (said(result), result.is_error) == ("no such script\n[bg_1 has ended: exit code 1]", True)
    assert details(result).exit_code == 1
    result = await start(shell, "echo fine")
    assert (said(result), result.is_error) == ("fine\n[bg_2 has ended: exit code 0]", False)


async def test_one_that_cannot_start_is_an_error(shell: ShellCalls, patient: None):
    result = await start(shell, ": " + "x" * 3_000_000)
    assert result.is_error
    assert "Write the long part to a file" in said(result)


async def test_the_next_command_mentions_one_that_has_ended(shell: ShellCalls, tmp_path: Path):
    await start(shell, "until [ -e go ]; do sleep 0.02; done")
    (tmp_path / "go").touch()
    with anyio.fail_after(30):
        await shell.shell.background.get("bg_1").ended.wait()
    assert said(await shell.run("echo hi")) == "hi\n[ended in the background: bg_1; bash_output tells how]"
    assert said(await shell.run("echo hi")) == "hi"
    assert await read(shell) == "(no new output)\n[bg_1 has ended: exit code 0]"


async def test_waiting_ends_with_output_with_the_end_or_with_its_time(shell: ShellCalls, tmp_path: Path):
    await start(shell, "until [ -e go ]; do sleep 0.02; done; echo on; sleep 300")
    began = time.monotonic()
    assert await read(shell, wait_ms=200) == "(no new output)\n[bg_1 is running]"
    assert time.monotonic() - began >= 0.2
    with anyio.fail_after(20):
        for then, shown in (
            ((tmp_path / "go").touch, "on\n[bg_1 is running]"),
            (shell.shell.background.get("bg_1").limit.cancel, "[bg_1 ran out of time and was stopped]"),
        ):
            looked: list[str] = []

            async def look(looked: list[str] = looked) -> None:
                looked.append(await read(shell, wait_ms=60_000))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(look)
                await anyio.wait_all_tasks_blocked()
                then()
            assert looked[0].endswith(shown)


async def test_stopping_leaves_nothing_of_it_and_shows_its_last_words(shell: ShellCalls):
    mark = new_mark()
    trap = "trap 'echo bye; exit' TERM"
    result = await start(shell, f"export MARK={mark}; {trap}; setsid -f sleep 300; sleep 300 & echo up; wait")
    await read_until(shell, "up", result)
    assert living(mark)
    assert said(await shell.call("bash_kill", id="bg_1")) == "bye\n[bg_1 was stopped]"
    assert living(mark) == []


async def test_what_ignores_sigterm_is_stopped_all_the_same(shell: ShellCalls):
    mark = new_mark()
    result = await start(shell, f"export MARK={mark}; trap '' TERM; echo up; while true; do sleep 300; done")
    await read_until(shell, "up", result)
    with anyio.fail_after(20):
        await shell.call("bash_kill", id="bg_1")
    assert living(mark) == []


async def test_a_limit_of_its_own_stops_it(shell: ShellCalls):
    await start(shell, "echo up; sleep 300", timeout_ms=1_000)
    shown = await read_until(shell, "was stopped")
    assert shown.endswith("[bg_1 ran out of time and was stopped]\n")


async def test_one_whose_warden_was_killed_has_ended_and_says_so(shell: ShellCalls, tmp_path: Path):
    mark = new_mark()
    command = f"export MARK={mark}; setsid -f sleep 300; until [ -e go ]; do sleep 0.02; done"
    await start(shell, f"{command}; kill -9 $PPID; sleep 300")
    (tmp_path / "go").touch()
    result = await shell.call("bash_output", id="bg_1", wait_ms=20_000)
    assert "[bg_1 has ended: The process that watches over the command was killed" in said(result)
    assert result.is_error
    assert all_gone(mark)


async def test_too_many_at_once_are_refused_with_a_way_out(shell: ShellCalls):
    for number in range(MOST_RUNNING):
        assert RUNS.format(f"bg_{number + 1}") in said(await start(shell, "sleep 300"))
    with pytest.raises(ToolError, match=r"bg_1, .*bg_8\. Stop one with bash_kill first"):
        await start(shell, "sleep 300")
    await shell.call("bash_kill", id="bg_3")
    assert RUNS.format("bg_9") in said(await start(shell, "sleep 300"))


async def test_ended_ones_that_nobody_asks_for_are_forgotten(
    shell: ShellCalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(background, "MOST_ENDED", 2)
    for _ in range(4):
        await start(shell, "until [ -e go ]; do sleep 0.02; done")
    (tmp_path / "go").touch()
    for command in shell.shell.background.running:
        await command.ended.wait()
    await start(shell, "sleep 300")
    with pytest.raises(ToolError, match='no background command "bg_2"'):
        await read(shell, "bg_2")
    assert "exit code 0" in await read(shell, "bg_3")


async def test_much_output_is_cut_in_each_look_and_all_of_it_is_in_a_file(shell: ShellCalls):
    result = await start(shell, "seq 200000; echo end; sleep 300")
    shown = await read_until(shell, "\nend\n", result)
    assert "bytes of output are not shown here" in shown
    (path,) = set(re.findall(r"\[all of the output: (\S+) ", shown))
    is_kept = partial(until, lambda: Path(path).read_text().endswith("\nend\n"), "the last line is kept")
    await anyio.to_thread.run_sync(is_kept)  # what keeps it runs in this loop
    assert len(Path(path).read_text().splitlines()) == 200_001
    assert "200001 | end" in said(await shell.call("read_file", file_path=path, offset=200_000))


async def test_it_runs_in_the_directory_of_the_session_and_does_not_move_it(
    shell: ShellCalls, tmp_path: Path
):
    (tmp_path / "sub").mkdir()
    await shell.run("cd sub")
    action = await shell.prepare("bash", command="pwd; cd /", run_in_background=True)
    assert action.subject == CommandSubject(command="pwd; cd /", cwd=str(tmp_path / "sub"))
    assert said(await action.run()).splitlines()[0] == str(tmp_path / "sub")
    assert said(await shell.run("pwd")).splitlines()[0] == str(tmp_path / "sub")
    assert shell.title("make dev", run_in_background=True) == "make dev (in sub) (in the background)"


async def test_a_cancelled_call_leaves_running_what_was_started(shell: ShellCalls, patient: None):
    mark = new_mark()
    runs = partial(until, lambda: len(shell.shell.background.running) == 1, "it is started")
    async with anyio.create_task_group() as calls:
        calls.start_soon(start, shell, f"MARK={mark} exec sleep 300")
        await anyio.to_thread.run_sync(runs)
        calls.cancel_scope.cancel()
    assert len(shell.shell.background.running) == 1
    with anyio.move_on_after(0.1):
        await read(shell, wait_ms=60_000)
    assert len(shell.shell.background.running) == 1
    await comes_alive(mark)


async def test_all_end_with_the_session(shell: ShellCalls):
    mark = new_mark()
    for _ in range(3):
        await start(shell, f"export MARK={mark}; trap '' TERM; setsid -f sleep 300; sleep 300; sleep 300")
    await comes_alive(mark)
    with anyio.fail_after(20):
        await shell.shell.close()
    assert all_gone(mark)
    with pytest.raises(ToolError, match="The session is being closed"):
        await start(shell, "sleep 300")


async def test_an_ampersand_in_an_ordinary_call_is_none_of_this(shell: ShellCalls):
    with anyio.fail_after(20):
        result = await shell.run("sleep 300 & echo hi")
    assert said(result) == "hi\n[background processes that it left were stopped]"
    assert shell.shell.background.running == ()


def judged(shell: ShellCalls, name: str, action: Action, mode: Mode, trusted: bool = True) -> Decision:
    proposal = Proposal(name, shell.tools[name].kind, action.subject, action.secret)
    return decide(proposal, mode=mode, trusted=trusted, remembered=Rules())


async def test_starting_asks_as_any_command_and_looking_and_stopping_are_free(shell: ShellCalls):
    starting = await shell.prepare("bash", command="sleep 300", run_in_background=True)
    assert isinstance(judged(shell, "bash", starting, "ask"), Ask)
    assert isinstance(judged(shell, "bash", starting, "plan"), Deny)
    await starting.run()
    modes: tuple[Mode, ...] = ("ask", "edit", "auto", "full")
    for name in ("bash_output", "bash_kill"):
        action = await shell.prepare(name, id="bg_1")
        assert [judged(shell, name, action, mode) for mode in modes] == [Allow()] * 4
        assert judged(shell, name, action, "edit", trusted=False) == Allow()
    assert judged(shell, "bash_output", await shell.prepare("bash_output", id="bg_1"), "plan") == Allow()
    kill = await shell.prepare("bash_kill", id="bg_1")
    assert isinstance(judged(shell, "bash_kill", kill, "plan"), Deny), "plan mode does nothing but read"


async def test_titles_and_schemas_take_what_the_tools_take(shell: ShellCalls):
    schema = jsonschema_rs.validator_for(shell.tools["bash_output"].parameters)
    assert schema.is_valid({"id": "bg_1", "wait_ms": 60_000})
    for wrong in ({}, {"id": 1}, {"id": "bg_1", "wait_ms": -1}, {"id": "bg_1", "wait_ms": 60_001}):
        assert not schema.is_valid(wrong)
    for name, title in (("bash_output", "Output of bg_1"), ("bash_kill", "Stop bg_1")):
        assert shell.tools[name].describe({"id": "bg_1"}, shell.context).title == title
        for odd in ({}, {"id": 5}, {"id": ""}):
            assert shell.tools[name].describe(odd, shell.context).title.endswith("a command")
        assert "\x1b" not in shell.tools[name].describe({"id": "\x1b[2J"}, shell.context).title
        with pytest.raises(ToolError, match="no background command"):
            await shell.call(name, id="bg_7")
