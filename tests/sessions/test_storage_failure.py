"""A disk that is full at any moment: the prompt is told, the daemon lives on, and later all is well again."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent.loop_host import FakeTool
from agent.strict_history import faults
from sessions.prompting import later
from sessions.session_home import COMMAND, Home, assert_whole_journal, calling, home, prompt, tool_call

from agentd.agent.request import project
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import PermissionRequest, UserMessage
from agentd.protocol.methods import (
    PermissionAnswer,
    PromptResult,
    QueueUpdateParams,
    SessionNewParams,
    SessionUpdateParams,
)
from agentd.sessions import journal
from agentd.sessions.journal import Journal
from agentd.sessions.session import Session


class Disk:
    """A disk that writes `left` records more, and then half of one and an error, until it is `freed`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 10**9
        self.failures = 0
        self._write = journal._write
        monkeypatch.setattr(journal, "_write", self._count)

    def _count(self, fd: int, data: bytes, offset: int) -> None:
        if self.left <= 0:
            self.failures += 1
            os.pwrite(fd, data[: len(data) // 2], offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= 1
        self._write(fd, data, offset)

    def full(self, after: int = 0) -> None:
        self.left = after

    def freed(self) -> None:
        self.left = 10**9


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


async def allow(request: PermissionRequest) -> PermissionAnswer:
    return PermissionAnswer(option_id="allow_once")


async def session_with_a_tool(living: Home) -> Session:
    living.face.answer = allow
    return await living.new(calling(tool_call("a", "bash")), "done", "fine", mode="ask")


async def result_of(session: Session, text: str = "go", **params: Any) -> PromptResult:
    result = await session.prompt(prompt(text, **params))
    assert isinstance(result, PromptResult)
    return result


async def test_a_disk_that_is_full_from_any_record_on_fails_the_prompt_and_no_more(
    tmp_path: Path, disk: Disk
) -> None:
    number = 0
    while True:
        async with home(tmp_path / str(number), FakeTool("bash", subject=COMMAND)) as living:
            session = await session_with_a_tool(living)
            disk.full(after=number)
            failed = await result_of(session, prompt_id="p1")
            if not disk.failures:
                break
            assert failed.stop_reason == "error"
            assert failed.error is not None
            assert (failed.error.kind, failed.error.retryable) == ("storage", True)
            assert "space" in failed.error.message.lower()
            assert session.get(None, 9).pending == (), f"no question is left behind record {number}"
            sent = [each.seq for each in living.face.sent if each.seq is not None]
            assert sent == list(range(1, number + 2)), "what is sent was journaled, and nothing else"
            disk.freed()
            disk.failures = 0
            after = await result_of(session, "next", model=living.script("fine"))
            assert (after.stop_reason, after.text) == ("stop", "fine"), after.error
            assert_whole_journal(living.journal(session.session_id))
            assert faults(project(session.get(None, 99).messages)) == []
            assert len(living.tools[0].ran) <= 1
            sent = [each.seq for each in living.face.sent if each.seq is not None]
            assert sent == list(range(1, session.info.seq + 1))
        number += 1
    assert number >= 18, "every record of the run was tried"


async def test_a_session_whose_run_could_not_be_closed_is_idle(tmp_path: Path, disk: Disk) -> None:
    """Nothing runs in it: a client that is told otherwise would wait for ever."""
    async with home(tmp_path) as living:
        session = await living.new("one")
        disk.full(after=5)
        assert (await result_of(session)).stop_reason == "error"
        assert session.info.state == "idle"


async def test_a_disk_that_fails_once_fails_one_prompt(tmp_path: Path, disk: Disk) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one", "two")
        disk.full(after=3)
        write = disk._count

        def once(*args: Any) -> None:
            try:
                write(*args)
            finally:
                if disk.failures:
                    disk.freed()

        journal._write = once  # restored by the fixture's monkeypatch
        await result_of(session)
        assert disk.failures == 1
        assert (await result_of(session, "again")).text in ("one", "two")
        assert_whole_journal(living.journal(session.session_id))


async def test_a_prompt_that_was_not_accepted_is_an_error(tmp_path: Path, disk: Disk) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one")
        disk.full()
        with pytest.raises(RpcError) as caught:
            await session.prompt(prompt(wait="accepted"))
        assert (caught.value.kind, caught.value.retryable) == ("storage", True)


async def test_a_change_that_could_not_be_stored_has_not_happened(tmp_path: Path, disk: Disk) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one", title="old")
        disk.full()
        with pytest.raises(RpcError) as caught:
            session.update(SessionUpdateParams(session_id=session.session_id, title="new"))
        assert caught.value.kind == "storage"
        assert (session.info.title, session.info.seq) == ("old", 1)
        disk.freed()
        assert session.update(SessionUpdateParams(session_id=session.session_id, title="new")).title == "new"


@pytest.mark.parametrize("after", [0, 1])
async def test_a_session_that_could_not_be_stored_is_none_and_holds_nothing_open(
    tmp_path: Path, disk: Disk, after: int
) -> None:
    async with home(tmp_path) as living:
        descriptors = len(os.listdir("/proc/self/fd"))
        disk.full(after=after)
        with pytest.raises(RpcError) as caught:
            await living.sessions.create(living.root, SessionNewParams())
        assert caught.value.kind == "storage"
        assert living.sessions.opened == ()
        assert len(os.listdir("/proc/self/fd")) == descriptors
        disk.freed()
        await living.new("fine")
        assert len(living.sessions.opened) == 1


async def test_a_session_that_cannot_be_repaired_yet_is_let_go_and_opens_later(
    tmp_path: Path, disk: Disk
) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one")
        disk.full(after=4)
        await result_of(session)
        session_id = session.session_id
    async with home(tmp_path) as living:
        with pytest.raises(RpcError) as caught:
            await living.sessions.open(session_id)
        assert caught.value.kind == "storage"
        disk.freed()
        again = await living.sessions.open(session_id)
        assert (await result_of(again, "next", model=living.script("fine"))).text == "fine"
        assert_whole_journal(living.journal(session_id))


async def test_a_flush_that_fails_fails_the_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one", "two")

        def fail(fd: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as broken:
            broken.setattr(journal, "_flush_data", fail)
            failed = await result_of(session)
        assert failed.error is not None
        assert failed.error.kind == "storage"
        assert living.engines.scripted.requests == [], "the first request waits for the user's message"
        assert (await result_of(session, "again")).stop_reason == "stop"
        assert_whole_journal(living.journal(session.session_id))


async def test_a_record_that_is_no_json_fails_one_run_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours in any one record: the request is answered, the session idle, the journal in order."""
    append: Callable[[Journal, Any], None] = Journal.append
    number = 0
    while True:
        counted = [0]

        def faulty(self: Journal, record: Any, number: int = number, counted: list[int] = counted) -> None:
            counted[0] += 1
            if counted[0] == number + 2:  # behind session_changed
                raise ValueError("a lone surrogate")
            append(self, record)

        monkeypatch.setattr(Journal, "append", faulty)
        async with home(tmp_path / str(number)) as living:
            session = await living.new(calling(tool_call()), "done", "fine")
            first = await result_of(session)
            if counted[0] < number + 2:
                break
            assert first.stop_reason in ("error", "stop"), number
            result = await result_of(session, "next", model=living.script("fine"))
            assert (result.stop_reason, result.text) == ("stop", "fine"), (number, result.error)
            try:
                assert_whole_journal(living.journal(session.session_id))
            except AssertionError as error:
                error.add_note(f"after a fault in record {number + 2}")
                raise
        number += 1
    assert number > 15


@pytest.mark.parametrize("after", range(12))
async def test_prompts_that_wait_stand_through_a_full_disk(tmp_path: Path, disk: Disk, after: int) -> None:
    """Whichever record does not fit: who waits is told, the prompt stands, and runs when there is room."""
    release = anyio.Event()

    async def hold(arguments: Any, context: Any) -> None:
        await release.wait()

    async with home(tmp_path, FakeTool(run=hold)) as living:
        session = await living.new(calling(tool_call("a")), "one", "two", "three")
        first = later(living, session, "first", prompt_id="p1")
        await living.face.until("tool_execution_start")
        second = later(living, session, "second", prompt_id="p2", when_busy="queue")
        steer = later(living, session, "wait", prompt_id="s1", when_busy="steer")
        await living.face.until("queue_changed", 2)
        disk.full(after)
        release.set()
        told = [await each.result() for each in (first, second, steer)]
        for each in told:
            assert isinstance(each, PromptResult) or (each.kind, each.retryable) == ("storage", True)
        disk.freed()
        waiting = {each.prompt_id for each in session.get(None, 1).queue}
        queue = QueueUpdateParams(session_id=session.session_id, op="run")
        session.prompts.update_queue(queue)
        for prompt_id, text in (("p2", "second"), ("s1", "wait")):
            if prompt_id in waiting:
                result = await result_of(session, text, prompt_id=prompt_id)
                assert result.stop_reason in ("stop", "interrupted")  # a steer that was begun is said there
        assert session.get(None, 1).queue == ()
        said = [m.content[0].text for m in session.messages if isinstance(m, UserMessage)]  # type: ignore[union-attr]
        assert sorted(said) == ["first", "second", "wait"], "each once"
        assert_whole_journal(living.journal(session.session_id))
        assert faults(project(session.messages)) == []
