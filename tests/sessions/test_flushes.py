"""What is brought to the disk while a run waits for somebody else, and that nothing waits for that."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent.loop_host import FakeTool
from sessions.session_home import COMMAND, calling, home, prompt, tool_call

from agentd.protocol.methods import PermissionAnswer, PromptResult
from agentd.sessions import journal
from agentd.tools.base import ToolResult

HANG: dict[str, Any] = {"content": [], "hang": True}


class Disk:
    """Notes how much of the journal each flush found; one that finds `held` last waits until it is let go."""

    def __init__(self) -> None:
        self.flushed = 0
        self.held: bytes | None = None
        self.holds = threading.Event()
        self.let_go = threading.Event()

    def flush(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        last = os.pread(fd, size, 0).splitlines()[-1]
        if self.held is not None and b'"event":{"type":"' + self.held in last:
            self.holds.set()
            assert self.let_go.wait(10)
        os.fdatasync(fd)
        self.flushed = size

    async def until_all_of(self, path: Path) -> None:
        await until(lambda: self.flushed >= path.stat().st_size)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(journal, "_flush_data", disk.flush)
    yield disk
    disk.let_go.set()


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - another thread brings it about
            await anyio.sleep(0.005)


async def test_an_answer_whose_calls_are_asked_about_is_on_the_disk_meanwhile(
    tmp_path: Path, disk: Disk
) -> None:
    async with (
        home(tmp_path, FakeTool("bash", subject=COMMAND)) as living,
        anyio.create_task_group() as tasks,
    ):
        session = await living.new(calling(tool_call("a", "bash")), "done", mode="ask")
        tasks.start_soon(session.prompt, prompt())
        await living.face.until("permission_requested")
        await disk.until_all_of(session.journal)
        assert b'"name":"bash"' in session.journal.read_bytes()
        await session.cancel()


async def test_results_are_on_the_disk_while_the_model_thinks(tmp_path: Path, disk: Disk) -> None:
    async with home(tmp_path) as living, anyio.create_task_group() as tasks:
        session = await living.new(calling(tool_call("a")), HANG)
        tasks.start_soon(session.prompt, prompt())
        await until(lambda: len(living.engines.scripted.requests) == 2)
        await disk.until_all_of(session.journal)
        assert living.face.events[-1].type == "turn_start"
        await session.cancel()


async def test_a_slow_disk_holds_up_neither_the_next_request_nor_a_question(
    tmp_path: Path, disk: Disk
) -> None:
    async with home(tmp_path, FakeTool(), FakeTool("bash", subject=COMMAND)) as living:
        results: list[Any] = []
        session = await living.new(calling(tool_call("a")), calling(tool_call("b", "bash")), "x", mode="ask")

        async def allow(_: object) -> PermissionAnswer:
            disk.let_go.set()
            return PermissionAnswer(option_id="allow_once")

        async def run() -> None:
            results.append(await session.prompt(prompt()))

        living.face.answer = allow
        disk.held = b"turn_start"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.to_thread.run_sync(disk.holds.wait, 10)
            await living.face.until("permission_requested")  # two model requests and a question later
        assert isinstance(results[0], PromptResult)
        assert results[0].text == "x"


async def test_an_end_that_is_not_on_the_disk_is_answered_as_a_failure_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = threading.Event()

    def flush(fd: int) -> None:
        if failing.is_set():
            raise OSError(5, "Input/output error")
        if b'"type":"tool_execution_start"' in os.pread(fd, os.fstat(fd).st_size, 0).splitlines()[-1]:
            failing.set()

    monkeypatch.setattr(journal, "_flush_data", flush)
    async with home(tmp_path) as living:
        session = await living.new(calling(tool_call("a")), "done")
        result = await session.prompt(prompt(prompt_id="p"))
        assert isinstance(result, PromptResult)
        assert (result.stop_reason, result.text, result.turns) == ("error", "done", 2)
        assert result.error is not None
        assert (result.error.kind, result.error.retryable) == ("storage", True)
        failing.clear()
        again = await session.prompt(prompt("more", model=living.script("here again")))
        assert isinstance(again, PromptResult)
        assert again.text == "here again"


GATES = {
    b"message_end": "the first request to the model",
    b"tool_execution_start": "the tool",
    b"permission_resolved": "what was decided",
    b"agent_end": "the answer",
}


@pytest.mark.parametrize("gate", GATES)
async def test_what_a_gate_guards_waits_for_the_disk(tmp_path: Path, disk: Disk, gate: bytes) -> None:
    bash = FakeTool("bash", subject=COMMAND)
    results: list[Any] = []
    async with home(tmp_path, bash) as living:
        session = await living.new(calling(tool_call("a", "bash")), "done", mode="ask")

        async def reject(_: object) -> PermissionAnswer:
            return PermissionAnswer(
                option_id="reject_once" if gate == b"permission_resolved" else "allow_once"
            )

        async def run() -> None:
            results.append(await session.prompt(prompt()))

        living.face.answer = reject
        disk.held = gate
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.to_thread.run_sync(disk.holds.wait, 10)
            await anyio.wait_all_tasks_blocked()
            assert living.face.events[-1].type == gate.decode(), "nothing comes behind it"
            requests = 0 if gate == b"message_end" else 2 if gate == b"agent_end" else 1
            assert len(living.engines.scripted.requests) == requests
            assert len(bash.ran) == (1 if gate == b"agent_end" else 0)
            assert results == []
            disk.held = None
            disk.let_go.set()
        assert results[0].text == "done"


async def test_what_a_steer_says_is_on_the_disk_before_the_model_hears_it(tmp_path: Path, disk: Disk) -> None:
    async def steer(_: object, __: object) -> ToolResult:
        await session.prompt(prompt("this too", prompt_id="s", wait="accepted", when_busy="steer"))
        disk.held = b"queue_changed"  # which follows its message: it waits no more
        return ToolResult.text("x")

    async with home(tmp_path, FakeTool(run=steer)) as living:
        session = await living.new(calling(tool_call("a")), "done")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, prompt(prompt_id="p"))
            await anyio.to_thread.run_sync(disk.holds.wait, 10)
            await anyio.wait_all_tasks_blocked()
            assert b'"steer":"s"' in session.journal.read_bytes(), "it is being said"
            assert len(living.engines.scripted.requests) == 1
            disk.let_go.set()
        assert len(living.engines.scripted.requests) == 2


async def test_a_prompt_is_acknowledged_once_it_is_on_the_disk(tmp_path: Path, disk: Disk) -> None:
    answers: list[Any] = []
    async with home(tmp_path) as living:
        session = await living.new(HANG)

        async def accept(prompt_id: str, when_busy: Any) -> None:
            wanted = prompt("go", prompt_id=prompt_id, wait="accepted", when_busy=when_busy)
            answers.append(await session.prompt(wanted))

        for prompt_id, when_busy, held in (("p", "reject", b"message_end"), ("q", "queue", b"queue_changed")):
            disk.held = held
            disk.holds.clear()
            disk.let_go.clear()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(accept, prompt_id, when_busy)
                await anyio.to_thread.run_sync(disk.holds.wait, 10)
                await anyio.wait_all_tasks_blocked()
                assert [each.prompt_id for each in answers] == [["p"], []][prompt_id == "p"]
                disk.let_go.set()
        assert [each.outcome for each in answers] == ["started", "queued"]
        await session.cancel()
