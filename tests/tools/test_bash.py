"""The bash tool as the loop calls it, with real commands in a real folder."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import anyio
import jsonschema_rs
import pytest
from shell_calls import ShellCalls, details, said

from agentd.protocol.messages import CommandDetails, CommandSubject
from agentd.tools.base import ToolError
from agentd.workspace.editor import OpenDocument
from agentd.workspace.environment import command_environment


async def test_a_good_command_gives_its_output_and_nothing_else(shell: ShellCalls):
    result = await shell.run("echo hello; echo world >&2")
    assert said(result) == "hello\nworld"
    assert not result.is_error
    assert details(result) == CommandDetails(
        exit_code=0, duration_ms=details(result).duration_ms, truncated=False, total_bytes=12
    )
    assert details(result).duration_ms >= 0


async def test_a_failed_command_is_an_error_with_its_output(shell: ShellCalls):
    result = await shell.run("echo broken; exit 3")
    assert (said(result), result.is_error, details(result).exit_code) == ("broken\n[exit code 3]", True, 3)


async def test_no_output_is_said(shell: ShellCalls):
    assert said(await shell.run("true")) == "(no output)"
    assert said(await shell.run("false")) == "(no output)\n[exit code 1]"


async def test_a_deadly_signal_is_named(shell: ShellCalls):
    result = await shell.run("kill -KILL $$")
    assert (said(result), result.is_error) == ("(no output)\n[killed by SIGKILL]", True)
    assert (details(result).exit_code, details(result).signal) == (None, "SIGKILL")


async def test_running_out_of_time_is_an_error_with_the_output_so_far(shell: ShellCalls):
    result = await shell.run("echo start; sleep 300", timeout_ms=1500)
    assert (said(result), result.is_error) == ("start\n[timed out after 1.5 s and was stopped]", True)
    assert details(result).duration_ms >= 1500


async def test_running_out_of_memory_is_an_error_result_of_the_command(shell: ShellCalls):
    result = await shell.run("ulimit -v 200000; python3 -c 'x = bytearray(10**9)'")
    assert result.is_error
    assert "MemoryError" in said(result)
    result = await shell.run("ulimit -v 50000; python3 -c 'x = bytearray(10**9)'; echo on")
    assert said(result).endswith("on"), "the shell goes on"


async def test_stopped_background_processes_are_mentioned(shell: ShellCalls):
    result = await shell.run("sleep 300 & echo hi")
    assert (said(result), result.is_error) == ("hi\n[background processes that it left were stopped]", False)


async def test_output_is_shown_live_and_raw(shell: ShellCalls):
    result = await shell.run(r"printf '\033[31mred\033[0m\n'")
    assert said(result) == "red"
    assert shell.live == [("stdout", "\x1b[31mred\x1b[0m\n")]


async def test_escape_sequences_and_progress_do_not_reach_the_model(shell: ShellCalls):
    result = await shell.run(
        r"printf '\e[1;33mwarn\e[m \e]8;;http://x\e\\link\e]8;;\e\\ 1%%\r50%%\r100%%\n\e]52;c;AAAA\a'"
    )
    assert said(result) == "warn link 100%"


async def test_long_output_is_cut_in_the_middle_and_says_so(shell: ShellCalls):
    result = await shell.run("seq 1000000; exit 1")
    text = said(result)
    assert len(text.encode()) <= 50 * 1024
    assert text.startswith("1\n2\n")
    assert "\n1000000\n[exit code 1]\n[all of the output: " in text
    assert "bytes of output are not shown here" in text
    assert details(result).truncated
    assert details(result).total_bytes == 6888896


async def test_variables_do_not_last(shell: ShellCalls):
    await shell.run("X=1; export Y=2")
    assert said(await shell.run('echo "[$X$Y]"')) == "[]"


async def test_the_keys_of_the_daemon_are_nowhere_in_reach(
    shell: ShellCalls, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGENTD_TEST_API_KEY", "canary")
    shell.context = replace(shell.context, environment=command_environment(os.environ))
    result = await shell.run(
        "env; cat /proc/$PPID/environ; cat /proc/$(ps -o ppid= $PPID | tr -d ' ')/environ"
    )
    assert not result.is_error
    assert "canary" not in said(result)


async def test_unsaved_buffers_are_named_to_the_model(shell: ShellCalls, tmp_path: Path):
    shell.editor.documents[tmp_path / "sub" / "a.py"] = OpenDocument("new", 2, dirty=True)
    shell.editor.documents[tmp_path / "clean.py"] = OpenDocument("same", 1, dirty=False)
    note = "[unsaved in the editor, so the command saw the older text on disk: sub/a.py]"
    assert said(await shell.run("echo hi")) == f"hi\n{note}"
    for number in range(30):
        shell.editor.documents[tmp_path / f"f{number:02}.py"] = OpenDocument("new", 2, dirty=True)
    assert said(await shell.run("false")).endswith("f08.py, f09.py and 21 more]")


async def test_sh_takes_the_place_of_a_missing_bash(shell: ShellCalls, tmp_path: Path):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    shell.context = replace(shell.context, environment={"PATH": str(programs)})
    assert said(await shell.run('echo "$0"')) == "sh"
    (tmp_path / "sub").mkdir()
    for command in ("cd sub; exit 3", "exec 9>lock; cd ..", "cd sub; false"):
        result = await shell.run(command)
        assert said(result).endswith("[working directory: sub]")
    assert details(result).exit_code == 1
    assert (tmp_path / "sub" / "lock").read_text() == "", "what a script does with the descriptor is its own"


@pytest.mark.parametrize("command", ["", "  \n\t"])
async def test_a_blank_command_is_refused(shell: ShellCalls, command: str):
    with pytest.raises(ToolError, match="blank"):
        await shell.run(command)


async def test_a_nul_character_is_refused(shell: ShellCalls):
    with pytest.raises(ToolError, match="NUL"):
        await shell.run("echo a\0b")


async def test_a_lone_surrogate_is_refused(shell: ShellCalls):
    with pytest.raises(ToolError, match="no character"):
        await shell.run("echo \ud800")


async def test_a_command_that_is_too_long_is_refused_with_a_way_out(shell: ShellCalls):
    with pytest.raises(ToolError, match="Write the long part to a file"):
        await shell.run(": " + "x" * 3_000_000)


async def test_a_missing_workspace_folder_is_named(shell: ShellCalls, tmp_path: Path):
    action = await shell.tool.prepare({"command": "true"}, shell.context)
    os.rmdir(tmp_path)
    with pytest.raises(ToolError, match=f"the folder {tmp_path} cannot be entered"):
        await action.run()
    with pytest.raises(ToolError, match=f"The workspace folder {tmp_path} does not exist any more"):
        await shell.run("true")


async def test_what_would_run_is_the_subject_of_the_question(shell: ShellCalls, tmp_path: Path):
    action = await shell.tool.prepare({"command": "make test"}, shell.context)
    assert action.subject == CommandSubject(command="make test", cwd=str(tmp_path))


async def test_the_title_is_the_first_line_shortened(shell: ShellCalls):
    assert shell.title("make test") == "make test"
    assert shell.title("\n  make test  \n") == "make test"
    assert shell.title("cat <<X\nlong\nX") == "cat <<X …"
    assert shell.title("x" * 500) == "x" * 78 + " …"
    assert shell.title("echo \x1b[2J\u202eevil") == "echo \\x1b[2J\\u202eevil"
    for odd in (None, 5, ["ls"], "", "  "):
        assert shell.title(odd) == "bash"
    assert shell.tool.describe({}, shell.context).title == "bash"


async def test_the_schema_takes_what_the_tool_takes(shell: ShellCalls):
    schema = jsonschema_rs.validator_for(shell.tool.parameters)
    assert schema.is_valid({"command": "ls"})
    assert schema.is_valid({"command": "ls", "timeout_ms": 600_000})
    for wrong in ({}, {"command": 1}, {"command": "ls", "timeout_ms": 0}, {"command": "ls", "cwd": "/"}):
        assert not schema.is_valid(wrong)
    assert not schema.is_valid({"command": "ls", "timeout_ms": 600_001})


WAITING_COMMANDS = [
    "cat",
    "read x; echo $x",
    "head -1",
    "python3 -c 'input()'",
    "python3",
    "bash",
    "bash -i",
    "exec 3</dev/tty",
    "read -p 'sure? ' x < /dev/tty",
    "less /etc/passwd",
    "more /etc/passwd",
    "man ls",
    "vi /etc/passwd",
    "git commit --allow-empty",
    "git rebase -i --root",
    "git log -p",
    "git commit --amend",
    "git clone http://127.0.0.1:9/x",
    "ssh -o ConnectTimeout=2 127.0.0.1 true",
    "sudo -k true",
    "rm -i a.txt; select x in a b; do break; done",
]


async def test_a_scripted_edit_with_vim_works(shell: ShellCalls):
    if not shutil.which("vim"):
        pytest.skip("vim is not installed")
    result = await shell.run("echo a > v.txt; vim -c '%s/a/b/' -c wq v.txt > /dev/null 2>&1; cat v.txt")
    assert said(result) == "b"


@pytest.mark.parametrize("command", WAITING_COMMANDS)
async def test_a_command_that_waits_for_someone_returns_at_once(
    shell: ShellCalls, tmp_path: Path, command: str
):
    program = command.split()[0]
    if program in {"less", "more", "man", "vi", "ssh", "sudo", "git"} and not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    who = "-c user.name=a -c user.email=a@b"
    await shell.run(f"echo text > a.txt; git init -q . && git add . && git {who} commit -qm one")
    began = time.monotonic()
    with anyio.fail_after(60):
        result = await shell.run(command, timeout_ms=30_000)
    assert time.monotonic() - began < 30
    assert "timed out" not in said(result)
