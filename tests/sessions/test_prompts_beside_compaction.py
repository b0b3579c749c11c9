"""Prompts that come while a session is summed up: refused, waiting, next, or in its place. None is lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from agent.event_order import AnyEvent
from sessions.prompting import Later, finished, later, refused
from sessions.session_home import Home, assert_whole_journal, entries, home, page_of, prompt
from sessions.test_attach import attach, durable
from sessions.test_session_compaction import HANG, SUMMARY, asked, compactions, worked

from agentd.protocol.errors import RpcError
from agentd.protocol.events import AgentStart, CompactionEnd, EventNotification, Notice
from agentd.protocol.methods import PromptAccepted, QueueUpdateParams, SessionCompactResult, SessionGetParams
from agentd.sessions import journal
from agentd.sessions.journal import read
from agentd.sessions.page import read_page
from agentd.sessions.session import Session

SLOW: dict[str, Any] = {"content": [{"type": "text", "text": SUMMARY}], "chunkSize": 1, "delayMs": 4}


class Summing:
    """A session that is being summed up."""

    def __init__(self, living: Home, session: Session) -> None:
        self.living = living
        self.session = session
        self.results: list[SessionCompactResult | RpcError] = []
        self.done = anyio.Event()

    async def run(self) -> None:
        try:
            self.results.append(await self.session.compact(None))
        except RpcError as error:
            self.results.append(error)
        self.done.set()

    async def result(self) -> SessionCompactResult | RpcError:
        with anyio.fail_after(10):
            await self.done.wait()
        return self.results[0]

    @property
    def outcome(self) -> str:
        (result,) = self.results
        assert isinstance(result, SessionCompactResult), result
        return result.outcome

    async def beside(self, text: str, prompt_id: str, when_busy: str) -> Later:
        """A prompt that was read now."""
        running = later(self.living, self.session, text, prompt_id=prompt_id, when_busy=when_busy)
        with anyio.fail_after(10):
            while not self.session.knows_prompt(prompt_id):
                await anyio.lowlevel.checkpoint()
        return running

    @property
    def queue(self) -> list[str]:
        return [each.prompt_id for each in self.session.get(None, 1).queue]

    @property
    def starts(self) -> list[str | None]:
        """The prompts that began behind the compaction."""
        return [sent.prompt_id for sent in self.living.face.sent if isinstance(sent.event, AgentStart)][2:]


@asynccontextmanager
async def summing(folder: Path, summary: Any, *responses: Any) -> AsyncIterator[Summing]:
    async with home(folder) as living:
        busy = Summing(living, await worked(living, summary, *responses))
        living.house.start_soon(busy.run)
        await living.face.until("compaction_start")
        yield busy
        await living.close()
        assert_whole_journal(living.journal(busy.session.session_id))


async def test_prompts_wait_for_the_end_of_it_and_steers_come_first(tmp_path: Path) -> None:
    async with summing(tmp_path, SLOW, "two", "one") as busy:
        queued = await busy.beside("queued", "q1", "queue")
        wanted = prompt("at once", prompt_id="s1", when_busy="steer", wait="accepted")
        accepted = await busy.session.prompt(wanted)
        assert isinstance(accepted, PromptAccepted)
        assert accepted.outcome == "queued", "there is no run that could say it"
        assert busy.queue == ["q1", "s1"]
        assert busy.starts == []
        error = await refused(busy.session, "no")
        assert (error.kind, error.retryable) == ("sessionBusy", True)
        assert "summed up" in error.message
        steered = await finished(busy.session, "at once", prompt_id="s1")
        assert (steered.text, steered.outcome) == ("two", None)
        assert (await queued.result()).text == "one"
        assert busy.starts == ["s1", "q1"]
        assert busy.outcome == "compacted"
        assert "To find it." in asked(busy.living)
        assert compactions(busy.living) == [(None, "request"), (None, "compacted")]


async def test_who_interrupts_it_runs_next_and_the_queue_stays(tmp_path: Path) -> None:
    async with summing(tmp_path, HANG, "now", "as you say", "then") as busy:
        queued = await busy.beside("later", "q1", "queue")
        steer = await busy.beside("by the way", "s1", "steer")
        interrupting = await busy.beside("now", "i1", "interrupt")
        result = await interrupting.result()
        assert (result.text, result.restored) == ("as you say", None), "which takes the steer with it"
        assert ((await steer.result()).run_prompt_id, (await queued.result()).text) == ("i1", "then")
        assert busy.starts == ["i1", "q1"]
        assert busy.outcome == "aborted"
        assert "I look" in asked(busy.living), "the history is as it was"


async def test_who_cannot_run_interrupts_nothing(tmp_path: Path) -> None:
    async with summing(tmp_path, SLOW) as busy:
        assert (await refused(busy.session, model="none/x", when_busy="interrupt")).kind == "noModel"
        result = await busy.result()
        assert isinstance(result, SessionCompactResult)
        assert result.outcome == "compacted"


async def test_a_cancel_gives_the_queue_back_or_lets_it_go_on(tmp_path: Path) -> None:
    async with summing(tmp_path / "back", HANG) as busy:
        queued = await busy.beside("later", "q1", "queue")
        cancelled = await busy.session.cancel()
        assert (cancelled.state, cancelled.quiescent, cancelled.prompt_id) == ("cancelled", True, None)
        assert [each.prompt_id for each in cancelled.restored] == ["q1"]
        assert (await queued.result()).stop_reason == "aborted"
        assert (busy.outcome, busy.queue, busy.starts) == ("aborted", [], [])
    async with summing(tmp_path / "on", HANG, "later it is") as busy:
        queued = await busy.beside("later", "q1", "queue")
        cancelled = await busy.session.cancel(keep_queue=True)
        assert (cancelled.state, cancelled.restored) == ("cancelled", ())
        assert (await queued.result()).text == "later it is"


async def test_a_cancel_of_a_prompt_that_waits_leaves_it_alone(tmp_path: Path) -> None:
    async with summing(tmp_path, SLOW) as busy:
        queued = await busy.beside("later", "q1", "queue")
        cancelled = await busy.session.cancel("q1")
        assert (cancelled.state, cancelled.prompt_id) == ("cancelled", "q1")
        assert (await queued.result()).stop_reason == "aborted"
        assert (await busy.session.cancel("q9")).state == "notRunning"
        await busy.done.wait()
        assert (busy.outcome, busy.starts) == ("compacted", [])


async def test_a_cancel_that_meets_who_interrupts_it_stops_both(tmp_path: Path) -> None:
    async with summing(tmp_path, HANG) as busy:
        interrupting = await busy.beside("now", "i1", "interrupt")
        assert (await busy.session.cancel()).state == "cancelled"
        assert (await interrupting.result()).stop_reason == "aborted"
        assert busy.outcome == "aborted"


@pytest.mark.parametrize("when_busy", ["reject", "queue", "steer", "interrupt"])
async def test_a_prompt_that_comes_behind_the_end_is_next_whatever_it_wishes(
    tmp_path: Path, when_busy: str
) -> None:
    async with summing(tmp_path, SLOW, "here") as busy:
        await busy.living.face.until("compaction_end")
        assert not busy.results, "its response is still to come"
        assert (await finished(busy.session, "next", when_busy=when_busy)).text == "here"
        assert busy.outcome == "compacted"


async def test_nothing_of_the_next_run_comes_before_its_response_and_those_of_cancels(tmp_path: Path) -> None:
    async with summing(tmp_path, HANG, "next") as busy:
        later(busy.living, busy.session, [], prompt_id="q0", when_busy="queue")  # which cannot run
        await busy.living.face.until("queue_changed")
        queued = await busy.beside("later", "q1", "queue")
        cancelled: list[Any] = []

        async def cancel() -> None:
            cancelled.append(await busy.session.cancel(keep_queue=True))

        for _ in range(3):
            busy.living.house.start_soon(cancel)
        seen: list[tuple[int, int]] = []
        publish = busy.living.face.publish

        def note(notification: EventNotification) -> None:
            publish(notification)
            if isinstance(notification.event, AgentStart | Notice):
                seen.append((len(busy.results), len(cancelled)))

        busy.living.face.publish = note  # type: ignore[method-assign]  # to look at that moment
        await queued.result()
        assert seen == [(1, 3)] * 2


async def test_what_is_let_run_meanwhile_waits_as_well(tmp_path: Path) -> None:
    async with summing(tmp_path, SLOW, "here") as busy:
        queued = await busy.beside("later", "q1", "queue")
        params = QueueUpdateParams(session_id=busy.session.session_id, op="run")
        busy.session.prompts.update_queue(params)
        assert (busy.queue, busy.starts) == (["q1"], [])
        assert (await queued.result()).text == "here"
        assert compactions(busy.living) == [(None, "request"), (None, "compacted")]


async def test_a_closed_session_keeps_what_waited(tmp_path: Path) -> None:
    async with summing(tmp_path, HANG) as busy:
        queued = await busy.beside("later", "q1", "queue")
        interrupting = await busy.beside("now", "i1", "interrupt")
        await busy.session.close()
        assert [(await each.result()).kind for each in (queued, interrupting)] == ["cancelled"] * 2
        session_id = busy.session.session_id
    async with home(tmp_path) as later_home:
        session = await later_home.sessions.open(session_id)
        assert [each.prompt_id for each in session.get(None, 1).queue] == ["q1"]
        with pytest.raises(RpcError) as error:
            await busy.session.compact(None)
        assert error.value.kind == "cancelled"


async def test_on_a_full_disk_who_waits_is_told_and_stays_in_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with summing(tmp_path, SLOW, "after all") as busy:
        queued = await busy.beside("later", "q1", "queue")

        def full(fd: int, data: bytes, offset: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(journal, "_write", full)
            assert (await queued.result()).kind == "storage"
        result = await busy.result()
        assert isinstance(result, RpcError)
        assert (result.kind, busy.queue) == ("storage", ["q1"])
        params = QueueUpdateParams(session_id=busy.session.session_id, op="run")
        busy.session.prompts.update_queue(params)
        assert (await finished(busy.session, "later", prompt_id="q1")).text == "after all"
        assert compactions(busy.living) == [(None, "request"), (None, "aborted")]


# --- what is read of it ---------------------------------------------------------------------------


async def summed_up(folder: Path) -> tuple[str, Path, list[dict[str, Any]]]:
    """A closed session that was summed up on request, at the second attempt; what was sent of it."""
    busy = {"content": [], "error": {"kind": "overloaded", "message": "busy", "retryAfterMs": 0}}
    async with home(folder) as living:
        session = await worked(living, busy, SUMMARY)
        await session.compact(None)
        kinds = [event.type for event in living.face.events[-3:]]
        assert kinds == ["compaction_start", "retry", "compaction_end"]
        return session.session_id, living.journal(session.session_id), durable(living)


async def test_a_page_is_read_from_the_end_also_where_it_was_summed_up_last(tmp_path: Path) -> None:
    session_id, path, _ = await summed_up(tmp_path)
    wanted = SessionGetParams(session_id=session_id)
    page = page_of(read_page(path, wanted))
    async with home(tmp_path) as living:
        session = await living.sessions.open(session_id)
        assert session.get(None, wanted.limit) == page
    whole = path.read_bytes().splitlines(keepends=True)
    for missing in (1, 2):
        path.write_bytes(b"".join(whole[:-missing]))
        assert read_page(path, wanted) is None, "it is closed first"


async def test_who_attaches_gets_it_as_it_was_sent_and_never_what_stands_for_the_history(
    tmp_path: Path,
) -> None:
    session_id, path, sent = await summed_up(tmp_path)
    assert b"To find it." in path.read_bytes()
    async with home(tmp_path) as living:
        for after in range(len(sent) + 1):
            told = await attach(living, session_id, after)
            assert (told.kind, list(told.events or ())) == ("replay", sent[after:])
            assert "To find it." not in told.model_dump_json()
            assert all("kept" not in each["event"] for each in told.events or ())


async def test_an_attach_closes_it_where_a_daemon_stopped_and_tells_that_once(tmp_path: Path) -> None:
    session_id, path, sent = await summed_up(tmp_path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    async with home(tmp_path) as living:
        told = await attach(living, session_id, len(sent) - 2)
        assert [each["event"]["type"] for each in told.events or ()] == ["retry", "compaction_end"]
        assert [each["event"].get("outcome") for each in told.events or ()][-1] == "aborted"
        assert living.face.sent == []
        last: AnyEvent = entries(path)[-1].event
        assert isinstance(last, CompactionEnd)
        assert read(path).records[-1]["summary"]["seq"] == told.seq
