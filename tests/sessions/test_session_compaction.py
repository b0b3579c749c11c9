"""A session whose history is summed up: on request and by itself, journaled, closed, and never half done."""

import itertools
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent.loop_host import FakeTool
from agent.strict_history import faults
from sessions.session_home import Home, assert_whole_journal, calling, entries, home, prompt, tool_call

from agentd.agent.request import project
from agentd.protocol.errors import RpcError
from agentd.protocol.events import CompactionEnd, CompactionStart, TodoChanged
from agentd.protocol.messages import TodoItem
from agentd.protocol.methods import PromptResult, SessionListParams
from agentd.sessions import journal
from agentd.sessions.journal import read
from agentd.sessions.session import Session

SUMMARY = "## Goal\nTo find it."
HANG: dict[str, Any] = {"content": [{"type": "text", "text": "## Go"}], "hang": True}
FULL = {"input": 90_000, "output": 10, "total": 90_010}


async def worked(living: Home, *more: Any) -> Session:
    """A session with two prompts behind it, one of them with calls; `more` is what its model says then."""
    session = await living.new(
        calling(tool_call("a", value="1"), tool_call("b", value="2"), text="I look"), "seen", "fine", *more
    )
    await session.prompt(prompt("find it", prompt_id="p1"))
    await session.prompt(prompt("and so on", prompt_id="p2"))
    return session


def compactions(living: Home) -> list[tuple[str | None, str]]:
    """The prompt and the word of each event about it that was sent."""
    return [
        (each.prompt_id, each.event.outcome if isinstance(each.event, CompactionEnd) else each.event.reason)
        for each in living.face.sent
        if isinstance(each.event, CompactionStart | CompactionEnd)
    ]


def asked(living: Home) -> str:
    """The last request to the model, in words."""
    blocks = (block for m in living.engines.scripted.requests[-1].messages for block in m.content)
    return "\n".join(getattr(block, "text", "") for block in blocks)


async def listed_total(living: Home) -> int:
    """The tokens that the list shows for the only session."""
    (info,) = (await living.sessions.listing(SessionListParams(), None)).sessions
    assert info.usage is not None
    return info.usage.total


async def test_on_request_the_history_is_summed_up_for_the_model_and_stays_whole_for_the_user(
    tmp_path: Path,
) -> None:
    async with home(tmp_path) as living:
        session = await worked(living, SUMMARY, "on we go")
        before = session.get(None, 100)
        result = await session.compact("Keep the colours.")
        assert result.outcome == "compacted"
        assert "Keep the colours." in asked(living)
        assert compactions(living) == [(None, "request"), (None, "compacted")]
        after = session.get(None, 100)
        assert after.messages == before.messages
        assert after.seq == before.seq + 2
        await session.prompt(prompt("go on"))
        assert "To find it." in asked(living)
        assert "I look" not in asked(living)
        assert_whole_journal(living.journal(session.session_id))


async def test_what_stands_for_the_history_is_never_sent_to_clients(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await worked(living, SUMMARY)
        await session.compact(None)
        assert all("To find it." not in each.model_dump_json() for each in living.face.sent)
        assert "To find it." in living.journal(session.session_id).read_text()


async def test_a_later_process_makes_the_same_request_of_it(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await worked(living, SUMMARY, "on we go")
        await session.compact(None)
        await session.prompt(prompt("go on"))
        request = living.engines.scripted.requests[-1]
        session_id = session.session_id
    async with home(tmp_path) as later:
        session = await later.sessions.open(session_id)
        await session.prompt(prompt("and on", model=later.script("yes")))
        messages = later.engines.scripted.requests[-1].messages
        assert messages[: len(request.messages)] == request.messages


async def test_with_nothing_new_to_sum_up_there_is_nothing_to_do(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        empty = await living.new()
        result = await empty.compact(None)
        assert (result.outcome, result.tokens_after) == ("nothingToDo", result.tokens_before)
        session = await worked(living, SUMMARY)
        assert (await session.compact(None)).outcome == "compacted"
        assert (await session.compact(None)).outcome == "nothingToDo"
        assert [word for _, word in compactions(living)] == [
            "request", "nothingToDo", "request", "compacted", "request", "nothingToDo",
        ]  # fmt: skip


async def test_a_busy_session_is_not_summed_up_and_one_that_is_summed_up_is_busy(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await worked(living, HANG, HANG)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, prompt("long"))
            await living.face.until("agent_start", 3)
            with pytest.raises(RpcError) as busy:
                await session.compact(None)
            assert (busy.value.kind, busy.value.retryable) == ("sessionBusy", True)
            await session.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.compact, None)
            await living.face.until("compaction_start")
            for request in (lambda: session.prompt(prompt("now")), lambda: session.compact(None)):
                with pytest.raises(RpcError) as busy:
                    await request()
                assert busy.value.kind == "sessionBusy"
            known = await session.prompt(prompt("find it", prompt_id="p1"))
            assert isinstance(known, PromptResult)
            await session.cancel()
        assert compactions(living) == [(None, "request"), (None, "aborted")]
        result = await session.prompt(prompt("now", model=living.script("here again")))
        assert isinstance(result, PromptResult)
        assert result.text == "here again"


async def test_a_cancel_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await worked(living, HANG)
        results = []

        async def compact() -> None:
            results.append(await session.compact(None))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compact)
            await living.face.until("compaction_start")
            cancelled = await session.cancel()
        assert (cancelled.state, cancelled.quiescent, cancelled.prompt_id) == ("cancelled", True, None)
        assert (results[0].outcome, results[0].tokens_before > 0) == ("aborted", True)
        assert results[0].tokens_after == results[0].tokens_before
        assert compactions(living) == [(None, "request"), (None, "aborted")]
        await session.prompt(prompt("go on", model=living.script("here again")))
        assert "I look" in asked(living)
        assert (await session.cancel()).state == "notRunning"


async def test_a_cancel_that_comes_behind_the_end_is_too_late_and_says_so(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await worked(living, SUMMARY)
        results = []

        async def compact() -> None:
            results.append(await session.compact(None))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compact)
            await living.face.until("compaction_end")
            assert session.prompts._busy.compacting is not None, "it has not returned yet"
            assert (await session.cancel()).state == "notRunning"
        assert results[0].outcome == "compacted"


@pytest.mark.parametrize("how", ["request", "close"])
async def test_it_ends_with_the_request_for_it_and_with_the_session(tmp_path: Path, how: str) -> None:
    async with home(tmp_path) as living:
        session = await worked(living, HANG)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.compact, None)
            await living.face.until("compaction_start")
            if how == "request":
                tasks.cancel_scope.cancel()
            else:
                await session.close()
        assert compactions(living) == [(None, "request"), (None, "aborted")]
        assert entries(living.journal(session.session_id))[-1].event.type == "compaction_end"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"kind": "auth", "message": "no key"}, "authRequired"),
        ({"kind": "overloaded", "message": "busy", "retryAfterMs": 600_000}, "overloaded"),
        ({"kind": "context_overflow", "message": "too long"}, "unsupported"),
    ],
)
async def test_where_the_server_fails_the_request_does_and_nothing_has_changed(
    tmp_path: Path, error: dict[str, Any], kind: str
) -> None:
    async with home(tmp_path) as living:
        session = await worked(living, {"content": [], "error": error}, "here again")
        with pytest.raises(RpcError) as failed:
            await session.compact(None)
        assert failed.value.kind == kind
        assert error["message"] in failed.value.message
        assert failed.value.details["error"]["kind"] == error["kind"]
        assert compactions(living) == [(None, "request"), (None, "failed")]
        await session.prompt(prompt("go on"))
        assert "I look" in asked(living)


async def test_what_summaries_take_counts_in_the_session_and_in_the_list(tmp_path: Path) -> None:
    counted = {"input": 100, "output": 10, "total": 110}
    async with home(tmp_path) as living:
        session = await worked(
            living,
            {"content": [{"type": "text", "text": "so"}], "usage": counted},
            {"content": [{"type": "text", "text": SUMMARY}], "usage": counted},
        )
        await session.prompt(prompt("count"))
        assert await listed_total(living) == 110
        await living.sessions.close(session.session_id)
        assert await listed_total(living) == 110, "also where it is read from the journal"
        session = await living.sessions.open(session.session_id)
        await session.compact(None)
        assert await listed_total(living) == 220
    async with home(tmp_path) as later:
        assert await listed_total(later) == 220
        usage = (await later.sessions.open(session.session_id)).info.usage
        assert usage is not None
        assert (usage.total, usage.context_tokens) == (220, 110)


async def test_the_to_do_list_is_part_of_the_state(tmp_path: Path) -> None:
    items = (TodoItem(id="1", text="find it", status="pending"),)
    async with home(tmp_path) as living:
        session = await worked(living, SUMMARY, "yes")
        session._log.record(TodoChanged(items=items))
        assert session.get(None, 1).todo == items
        await session.compact(None)
        await session.prompt(prompt("go on"))
        assert "- [pending] find it" in asked(living)


# --- by itself, and cut anywhere ------------------------------------------------------------------


async def record(folder: Path) -> tuple[str, Path]:
    """A session that was summed up by itself in a run with a call, and then on request."""
    async with home(folder) as living:
        living.engines.window = 100_000
        session = await worked(
            living,
            {"content": [{"type": "text", "text": "full"}], "usage": FULL},
            SUMMARY,
            calling(tool_call("c", value="3"), text="looking again"),
            "done",
            "## Goal\nAgain.",
        )
        await session.prompt(prompt("fill it"))
        await session.prompt(prompt("and go on", prompt_id="p4"))
        await session.compact(None)
        assert [word for _, word in compactions(living)] == ["threshold", "compacted", "request", "compacted"]
        assert compactions(living)[0][0] == "p4"
        path = living.journal(session.session_id)
    return session.session_id, path


async def test_a_daemon_that_stopped_at_any_record_leaves_nothing_half_done(tmp_path: Path) -> None:
    session_id, source = await record(tmp_path / "first")
    lines = source.read_bytes().splitlines(keepends=True)
    for count in range(3, len(lines) + 1):
        folder = tmp_path / str(count)
        path = folder / "data" / "sessions" / source.parent.name / source.name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(lines[:count]))
        known = [entry.event for entry in entries(path)]
        starts, ends = (
            sum(isinstance(event, kind) for event in known) for kind in (CompactionStart, CompactionEnd)
        )
        async with home(folder, FakeTool()) as later:
            session = await later.sessions.open(session_id)
            told = [entry.event for entry in assert_whole_journal(path)]
            assert sum(isinstance(event, CompactionStart) for event in told) == starts
            closed = [event for event in told if isinstance(event, CompactionEnd)]
            assert [event.outcome for event in closed[ends:]] == ["aborted"] * (starts - ends)
            await session.prompt(prompt("next", model=later.script("here again")))
            request = later.engines.scripted.requests[-1]
            assert faults(request.messages) == []
            assert ("To find it." in asked(later)) == (ends == 1)
            assert ("Again." in asked(later)) == (ends == 2)
            assert_whole_journal(path)


async def test_what_a_summary_took_is_not_forgotten_where_the_daemon_stopped_behind_it(
    tmp_path: Path,
) -> None:
    counted = {"input": 100, "output": 10, "total": 110}
    async with home(tmp_path) as living:
        session = await worked(
            living,
            {"content": [], "error": {"kind": "context_overflow", "message": "too long"}},
            {"content": [{"type": "text", "text": SUMMARY}], "usage": counted},
            "done",
        )
        await session.prompt(prompt("go on", prompt_id="p3"))
        session_id, path = session.session_id, living.journal(session.session_id)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b'"compaction_end"' in line)
    path.write_bytes(b"".join(lines[: place + 1]))
    async with home(tmp_path) as later:
        session = await later.sessions.open(session_id)
        assert session.info.usage is not None
        assert session.info.usage.total == 110
        result = await session.prompt(prompt("go on", prompt_id="p3"))
        assert isinstance(result, PromptResult)
        assert (result.stop_reason, result.usage) == ("interrupted", session.info.usage)


async def test_a_disk_that_is_full_at_any_record_costs_no_more_than_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = journal._write, [10**9]

    def counting(fd: int, data: bytes, offset: int) -> None:
        if left[0] <= 0:
            raise OSError(28, "No space left on device")
        left[0] -= 1
        write(fd, data, offset)

    monkeypatch.setattr(journal, "_write", counting)
    for number in itertools.count():
        async with home(tmp_path / str(number)) as living:
            busy = {"kind": "overloaded", "message": "busy", "retryAfterMs": 0}
            session = await worked(living, {"content": [], "error": busy}, SUMMARY)
            left[0] = number
            failed = None
            try:
                await session.compact(None)
            except RpcError as error:
                failed = error
            left[0] = 10**9
            if failed is None:
                assert number == 3, "a start, a retry and an end"
                break
            assert (failed.kind, failed.retryable) == ("storage", True)
            result = await session.prompt(prompt("go on", model=living.script("here again")))
            assert isinstance(result, PromptResult)
            assert result.stop_reason == "stop"
            path = living.journal(session.session_id)
            assert_whole_journal(path)
            assert "I look" in asked(living)
            assert faults(project(session._state.messages)) == []
    assert read(path).damage == ()
