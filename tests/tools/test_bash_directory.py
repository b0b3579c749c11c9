"""Where a session's commands run: `cd` lasts within the workspace, and nothing else moves."""

import shutil
from pathlib import Path

import anyio
import pytest
from shell_calls import ShellCalls, said

from agentd.protocol.messages import CommandSubject
from agentd.tools.base import ToolContext, ToolError
from agentd.tools.read_file import ReadFile
from agentd.workspace.process import Processes
from agentd.workspace.seen import SeenFiles
from agentd.workspace.shell import Shell

IN_SUB = "[working directory: sub]"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    return tmp_path


async def place(shell: ShellCalls) -> str:
    """Where the next command runs, from the workspace folder."""
    first = said(await shell.run("pwd -P")).splitlines()[0]
    return str(Path(first).relative_to(shell.context.root))


@pytest.mark.parametrize(
    ("command", "then"),
    [
        ("cd sub", "sub"),
        ("cd sub; false", "sub"),
        ("cd sub && cd deep", "sub/deep"),
        ("cd sub; exit 3", "sub"),
        ("set -e; cd sub; false; cd ..", "sub"),
        ("set -u; cd sub; echo $nothing", "sub"),
        ("set -x; cd sub", "sub"),
        ("pwd() { echo /; }; echo() { :; }; cd sub", "sub"),
        ("(cd sub)", "."),
        ("cd sub | cat", "."),
        ("bash -c 'cd sub'", "."),
        ("cd sub & wait", "."),
        ("cd sub; exec true", "."),
        ("cd sub; kill -KILL $$", "."),
        ("cd sub; kill -TERM $$", "."),
        ("trap - EXIT; cd sub", "."),
        ("trap 'true' EXIT; cd sub", "."),
        ("exec 198>&-; cd sub", "."),
        ("cd /", "."),
        ("cd ..", "."),
        ("ln -s / out; cd out", "."),
        ("ln -s deep sub/link; cd sub/link", "sub/deep"),
        ("cd sub; (", "."),
    ],
)
async def test_the_next_command_starts_where_the_shell_has_ended(
    shell: ShellCalls, root: Path, command: str, then: str
):
    await shell.run(command)
    assert await place(shell) == then


async def test_running_out_of_time_leaves_the_directory(shell: ShellCalls, root: Path):
    await shell.run("cd sub; sleep 300", timeout_ms=300)
    assert await place(shell) == "."


async def test_a_cancelled_command_leaves_the_directory(shell: ShellCalls, root: Path):
    await shell.run("cd sub")
    with anyio.move_on_after(0.3):
        await shell.run("cd ../other; sleep 300")
    assert await place(shell) == "sub"


async def test_the_result_names_the_directory_when_it_is_another_than_the_workspace(
    shell: ShellCalls, root: Path
):
    assert said(await shell.run("cd sub; echo hi")) == f"hi\n{IN_SUB}"
    assert said(await shell.run("echo hi")) == f"hi\n{IN_SUB}"
    assert said(await shell.run("exit 2")) == f"(no output)\n[exit code 2]\n{IN_SUB}"
    assert said(await shell.run("cd ..")) == "(no output)\n[working directory: the workspace folder]"
    assert said(await shell.run("echo hi")) == "hi"


async def test_a_way_out_of_the_workspace_is_told_and_not_taken(shell: ShellCalls, root: Path):
    await shell.run("cd sub")
    note = "[/ is outside the workspace: the next command does not start there]"
    assert said(await shell.run("cd /; echo hi")) == f"hi\n{note}\n{IN_SUB}"


async def test_a_folder_that_the_command_itself_removed_is_told(shell: ShellCalls, root: Path):
    result = await shell.run("cd sub && rm -rf ../sub")
    gone = "[the folder that the command ended in is gone]"
    assert said(result) == f"(no output)\n{gone}\n[working directory: the workspace folder]"
    assert said(await shell.run("echo hi")) == "hi"


async def test_a_folder_that_is_gone_at_the_next_command_is_told_before_it_runs(
    shell: ShellCalls, root: Path
):
    await shell.run("cd sub/deep")
    shutil.rmtree(root / "sub")
    action = await shell.prepare("bash", command="pwd -P")
    assert action.subject == CommandSubject(command="pwd -P", cwd=str(root))
    note = "[the working directory sub/deep is gone: the command ran in the workspace folder]"
    assert said(await action.run()) == f"{root}\n{note}"


async def test_a_folder_that_became_a_link_out_of_the_workspace_is_gone(shell: ShellCalls, root: Path):
    await shell.run("cd other")
    (root / "other").rmdir()
    (root / "other").symlink_to("/usr")
    assert said(await shell.run("pwd -P")).startswith(f"{root}\n[the working directory other is gone")


async def test_the_question_and_the_title_say_where_it_runs(shell: ShellCalls, root: Path):
    await shell.run("cd sub")
    action = await shell.prepare("bash", command="make test")
    assert action.subject == CommandSubject(command="make test", cwd=str(root / "sub"))
    assert shell.title("make test") == "make test (in sub)"


async def test_a_command_runs_where_the_user_was_told_also_when_another_moved_meanwhile(
    shell: ShellCalls, root: Path
):
    asked = await shell.prepare("bash", command="pwd -P")
    await shell.run("cd sub")
    assert said(await asked.run()) == f"{root}\n{IN_SUB}"
    assert await place(shell) == "sub", "and one that did not move takes nobody back"


async def test_commands_side_by_side_start_in_the_same_place(shell: ShellCalls, root: Path):
    results = {}

    async def call(name: str) -> None:
        results[name] = said(await shell.run(f"cd {name}; sleep 0.2; pwd -P")).splitlines()[0]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "sub")
        tasks.start_soon(call, "other")
    assert results == {"sub": str(root / "sub"), "other": str(root / "other")}


async def test_paths_of_other_tools_stay_relative_to_the_workspace(shell: ShellCalls, root: Path):
    (root / "a.txt").write_text("of the root\n")
    (root / "sub" / "a.txt").write_text("of sub\n")
    await shell.run("cd sub")
    action = await ReadFile().prepare({"file_path": "a.txt"}, shell.context)
    assert "of the root" in said(await action.run())
    assert Path.cwd() != root / "sub", "the daemon itself goes nowhere"


async def test_sessions_do_not_share_a_directory(shell: ShellCalls, root: Path):
    async with Processes() as processes:
        other = ShellCalls(processes, root)
        await shell.run("cd sub")
        assert await place(other) == "."


async def test_a_session_that_was_opened_anew_says_where_it_stands_once(shell: ShellCalls, root: Path):
    shell.context = ToolContext(
        root, shell.editor, SeenFiles(), shell.context.environment, shell=Shell(is_reopened=True)
    )
    assert said(await shell.run("echo hi")) == "hi\n[working directory: the workspace folder]"
    assert said(await shell.run("echo hi")) == "hi"


async def test_a_name_with_a_newline_and_odd_bytes_is_followed_and_shown_on_one_line(
    shell: ShellCalls, root: Path
):
    result = await shell.run(r"""d=$'sub/a\nb\xff \x1b[2J'; mkdir "$d"; cd "$d" """)
    assert said(result).splitlines()[-1] == r"[working directory: sub/a\nb\xff \x1b[2J]"
    action = await shell.prepare("bash", command="make")
    assert isinstance(action.subject, CommandSubject)
    assert action.subject.model_dump_json()
    assert shell.title("make") == r"make (in sub/a\nb\xff \x1b[2J)"
    listing = said(await shell.run("pwd -P | od -An -c; cd /")).splitlines()
    assert " ".join(listing[:-2]).split()[-12:] == [*"ub/a", r"\n", "b", "377", "033", "[", "2", "J", r"\n"]


async def test_what_a_command_says_aside_moves_it_no_further_than_cd(shell: ShellCalls, root: Path):
    for told in ("/usr", "../..", "no/such/place", "x" * 20_000):
        await shell.run(f"printf '%s\\n' {told} >&198; exec true")
        assert await place(shell) == "."


async def test_commands_see_nothing_of_how_it_is_done(shell: ShellCalls, root: Path):
    result = await shell.run('env | grep -i bash_env; echo "[$BASH_ENV]"; bash -c "echo inner; trap"')
    assert said(result) == "[]\ninner"
    assert "trap" not in said(await shell.run("echo )"))
    assert said(await shell.run("exec 198>&-")) == "(no output)"
    assert said(await shell.run("set -x; cd sub; true")).startswith("+ cd sub\n+ true\n[")


async def test_a_workspace_that_is_gone_is_an_error_and_works_again_when_it_is_back(
    shell: ShellCalls, root: Path
):
    await shell.run("cd sub")
    moved = root.rename(root.with_name("moved"))
    with pytest.raises(ToolError, match="does not exist any more"):
        await shell.run("true")
    moved.rename(root)
    assert await place(shell) == "sub"


@pytest.mark.parametrize("in_background", [False, True])
async def test_a_command_does_not_run_in_a_folder_that_took_its_folders_place(
    shell: ShellCalls, root: Path, tmp_path_factory: pytest.TempPathFactory, in_background: bool
) -> None:
    """Between the question and the answer lie minutes, in which what runs in the background goes on."""
    outside = tmp_path_factory.mktemp("outside")
    await shell.run("cd sub")
    action = await shell.prepare("bash", command="touch made", run_in_background=in_background)
    (root / "sub").rename(root / "moved")
    (root / "sub").symlink_to(outside)
    with pytest.raises(ToolError, match="leads elsewhere than when the command was judged"):
        await action.run()
    assert not list(outside.iterdir())
