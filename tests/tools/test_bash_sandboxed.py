"""The bash tool in the sandbox: what the model is told there, and how it asks for more."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import pytest_asyncio
from shell_calls import ShellCalls, details, said
from workspace.sandboxes import Ground, ground

from agentd.protocol.messages import CommandSubject
from agentd.tools.base import Action, ToolResult
from agentd.tools.bash import Bash
from agentd.workspace.command import CommandResult
from agentd.workspace.enclosure import Status
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

WITHHELD = (
    "[this ran in the sandbox, which may be why it failed: there is no network, only the workspace and "
    "$TMPDIR can be written to, and repositories' .git folders, editor settings, files with secrets and /run "
    "are closed. If it needs more, call bash again with `unsandboxed` set to the reason, and the user is "
    "asked]"
)


class Sandboxed(ShellCalls):
    """A session's bash calls with a sandbox."""

    def __init__(self, made: Ground) -> None:
        super().__init__(made.processes, made.root)
        self.made = made
        self.tool = self.tools["bash"] = Bash(made.processes, made.sandbox)

    async def prepared(self, command: str, **arguments: Any) -> Action:
        return await self.tool.prepare({"command": command, **arguments}, self.context)

    async def run(self, command: str, **arguments: Any) -> ToolResult:
        """Run it in the sandbox, as mode `auto` does."""
        action = await self.prepared(command, **arguments)
        return await action.in_manner("sandboxed")()


@pytest_asyncio.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Sandboxed]:
    async with ground(tmp_path, "bubblewrap") as made:
        await made.sandbox.status()
        yield Sandboxed(made)


async def test_a_command_that_needs_no_more_says_nothing_of_the_sandbox(shell: Sandboxed) -> None:
    result = await shell.run("echo hello > file; cat file; exit 3")
    assert said(result) == "hello\n[exit code 3]"
    assert (details(result).exit_code, shell.live) == (3, [("stdout", "hello\n")])
    assert (shell.made.root / "file").exists()


@pytest.mark.parametrize(
    "command",
    [
        "touch /etc/agentd-test",
        "cat .env",
        "exec 3<>/dev/tcp/192.0.2.1/80",
        "echo x > .git/config",
        "echo EROFS: no; false",
        "echo 'curl: (6) Could not resolve host: x'; exit 6",
    ],
)
async def test_a_failure_that_may_be_the_sandboxs_tells_what_is_withheld_and_how_to_ask(
    shell: Sandboxed, command: str
) -> None:
    (shell.made.root / ".git").mkdir()
    (shell.made.root / ".env").write_text("x")
    result = await shell.run(command)
    assert result.is_error
    assert said(result).splitlines()[-1] == WITHHELD


async def test_a_command_that_succeeds_is_never_lectured(shell: Sandboxed) -> None:
    assert said(await shell.run("touch /etc/agentd-test 2>&1 | cat; true")).endswith("Read-only file system")


async def test_what_the_host_would_run_is_told_when_a_command_makes_it(shell: Sandboxed) -> None:
    assert said(await shell.run("git init -q sub; mkdir .vscode")).splitlines()[-1] == (
        "[made or changed in the sandbox, and run by git or the editor later: .vscode, sub/.git. Tell the "
        "user to look at this]"
    )


async def test_a_command_is_run_once_and_never_again_outside(
    shell: Sandboxed, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    run = shell.made.processes.run

    async def counted(argv: list[str], **more: Any) -> CommandResult:
        runs.append(more["jail"])
        return await run(argv, **more)

    monkeypatch.setattr(shell.made.processes, "run", counted)
    await shell.run("touch /etc/agentd-test")
    assert len(runs) == 1
    assert runs[0] is not None


async def test_a_command_that_has_to_run_outside_is_asked_about_with_its_reason(shell: Sandboxed) -> None:
    action = await shell.prepared("git commit -m x", unsandboxed="  it writes to .git ")
    assert action.sandboxed is None
    root = str(shell.made.root)
    assert action.subject == CommandSubject(command="git commit -m x", cwd=root, reason="it writes to .git")
    title = shell.tool.describe({"command": "make", "unsandboxed": "x"}, shell.context).title
    assert title == "Outside the sandbox: make"


@pytest.mark.parametrize("reason", ["", "  \n"])
async def test_a_reason_without_a_word_is_none(shell: Sandboxed, reason: str) -> None:
    action = await shell.prepared("make", unsandboxed=reason)
    assert action.sandboxed is not None
    assert action.subject == CommandSubject(command="make", cwd=str(shell.made.root))
    assert shell.tool.describe({"command": "make", "unsandboxed": reason}, shell.context).title == "make"


async def test_what_the_user_allowed_runs_outside(shell: Sandboxed, tmp_path: Path) -> None:
    action = await shell.prepared(f"echo x > {tmp_path}/outside", unsandboxed="it has to")
    assert not (await action.in_manner("plain")()).is_error
    assert (tmp_path / "outside").exists()


async def test_a_background_command_runs_inside_too_and_its_end_tells_what_it_changed(
    shell: Sandboxed, tmp_path: Path
) -> None:
    started = await shell.run(
        f"echo x > {tmp_path}/outside; mkdir .vscode; sleep 300", run_in_background=True
    )
    assert "bg_1 runs in the background" in said(started)
    (command,) = shell.shell.background.running
    with anyio.fail_after(30):
        while not (shell.made.root / ".vscode").exists():  # noqa: ASYNC110 - a program makes it
            await anyio.sleep(0.01)
    ended = await shell.call("bash_kill", id=command.id)
    assert "made or changed in the sandbox, and run by git or the editor later: .vscode" in said(ended)
    assert not (tmp_path / "outside").exists()


async def test_cd_lasts_from_one_sandboxed_command_to_the_next(shell: Sandboxed) -> None:
    await shell.run("mkdir below && cd below")
    assert said(await shell.run("pwd")).splitlines()[0] == str(shell.made.root / "below")


async def test_without_a_sandbox_nothing_is_sandboxable(tmp_path: Path) -> None:
    class NoSandbox(Sandbox):
        @property
        def known(self) -> Status | None:
            return Status("none", "there is none.")

    async with Processes() as processes:
        shell = ShellCalls(processes, tmp_path)
        for tool in (
            Bash(processes),
            Bash(processes, Sandbox(processes)),
            Bash(processes, NoSandbox(processes)),
        ):
            action = await tool.prepare({"command": "make"}, shell.context)
            assert action.sandboxed is None


def test_the_description_is_the_same_with_and_without_a_sandbox() -> None:
    processes = Processes()
    plain, sandboxed = Bash(processes), Bash(processes, Sandbox(processes))
    assert (plain.description, plain.parameters) == (sandboxed.description, sandboxed.parameters)
