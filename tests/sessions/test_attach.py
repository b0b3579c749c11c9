"""A client that attaches gets the same durable events, none twice and none missing, and then what follows."""

import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent.loop_host import FakeTool
from sessions.prompting import finished, later
from sessions.session_home import COMMAND, Home, assert_whole_journal, calling, home, page_of, tool_call

from agentd.protocol.errors import RpcError
from agentd.protocol.events import EventNotification, MessageUpdate
from agentd.protocol.methods import AttachResult, SessionAttachParams, SessionGetParams
from agentd.sessions import replay
from agentd.sessions.journal import Journal
from agentd.sessions.session import Session
from agentd.tools.base import ToolResult


async def attach(living: Home, session_id: str, after_seq: int = 0) -> AttachResult:
    return await living.sessions.attach(SessionAttachParams(session_id=session_id, after_seq=after_seq))


def wire(notification: EventNotification) -> dict[str, Any]:
    return notification.model_dump(mode="json")


def durable(living: Home) -> list[dict[str, Any]]:
    return [wire(sent) for sent in living.face.sent if sent.seq is not None]


async def talked(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """A session with tools, a steer and a queue; gives its id and what was sent of it."""
    release = anyio.Event()

    async def hold(arguments: Any, context: Any) -> ToolResult:
        await release.wait()
        return ToolResult.text("\u2028 é 😀")

    async with home(folder, FakeTool(run=hold)) as living:
        session = await living.new(
            calling(tool_call("a")), "one", "two", calling(tool_call("b"), text="hm"), "3"
        )
        first = later(living, session, "first", prompt_id="p1")
        await living.face.until("tool_execution_start")
        later(living, session, "steer", prompt_id="s1", when_busy="steer")
        second = later(living, session, "second", prompt_id="p2", when_busy="queue")
        await living.face.until("queue_changed", 2)
        release.set()
        await first.result()
        await second.result()
        await finished(session, "third")
        return session.session_id, durable(living)


async def test_a_new_process_replays_what_was_sent_behind_any_event(tmp_path: Path) -> None:
    session_id, sent = await talked(tmp_path)
    assert len(sent) > 40
    async with home(tmp_path) as living:
        for after in range(len(sent) + 1):
            told = await attach(living, session_id, after)
            assert (told.kind, told.seq, told.partial, told.pending) == ("replay", len(sent), None, ())
            assert list(told.events or ()) == sent[after:]
        assert living.face.sent == []
        session = await living.sessions.open(session_id)
        await finished(session, "and live", model=living.script("fine"))
        assert living.face.sent[0].seq == len(sent) + 1


async def test_an_attach_after_a_kill_behind_any_record_tells_how_the_run_was_closed(tmp_path: Path) -> None:
    session_id, sent = await talked(tmp_path / "whole")
    (source,) = (tmp_path / "whole" / "data" / "sessions").glob(f"*/{session_id}.jsonl")
    lines = source.read_bytes().splitlines(keepends=True)
    for number in range(1, len(lines)):
        folder = tmp_path / str(number)
        target = folder / "data" / "sessions" / source.parent.name / source.name
        target.parent.mkdir(parents=True)
        target.write_bytes(b"".join(lines[: number + 1]) + lines[-1][:9])
        async with home(folder) as living:
            seen = max(0, number - 3)
            told = await attach(living, session_id, seen)
            events = list(told.events or ())
            assert events[: number - seen] == sent[seen:number]
            assert [each["seq"] for each in events] == list(range(seen + 1, told.seq + 1))
            assert living.face.sent == [], "what closes the run is told once"
            opened = events[number - seen :]
            ends = [each["event"]["stopReason"] for each in opened if each["event"]["type"] == "agent_end"]
            assert ends in ([], ["interrupted"], ["stop"])
            assert_whole_journal(target)
            assert (await attach(living, session_id, told.seq)).events == ()
        shutil.rmtree(folder)


async def test_an_attach_in_the_middle_of_a_run_goes_on_where_it_ends(tmp_path: Path) -> None:
    """At every event of a run: what the attach told and what came after it is all that happened, once."""

    async def talk(arguments: Any, context: Any) -> None:
        await context.output("progress", "working")
        await anyio.sleep(0.005)

    async with home(tmp_path, FakeTool(run=talk)) as living:
        call = {**calling(tool_call("a"), text="so far"), "chunkSize": 2, "delayMs": 2}
        session = await living.new(*[call, "the answer"] * 60)
        number, partials = 1, 0
        while (attached := await attached_at(living, session, number)) is not None:
            told, rest = attached
            numbers = [each["seq"] for each in told.events or ()] + [e.seq for e in rest if e.seq is not None]
            assert numbers == list(range(numbers[0], session.info.seq + 1)), number
            said = text_of(told)
            partials += bool(said)
            for sent in rest:
                if not isinstance(sent.event, MessageUpdate):
                    break
                if sent.event.update.kind == "text":
                    assert sent.event.update.offset == len(said), number
                    said += sent.event.update.delta
            number += 1
        assert number > 20
        assert partials > 1


async def attached_at(
    living: Home, session: Session, number: int
) -> tuple[AttachResult, list[EventNotification]] | None:
    """Run a prompt and attach at its `number`-th event: what that told, and what came later.

    None where the run has fewer events.
    """
    attached: list[tuple[AttachResult, int]] = []
    done = anyio.Event()
    publish, before, first = living.face.publish, len(living.face.sent), session.info.seq

    async def look() -> None:
        told = await attach(living, session.session_id, first)
        attached.append((told, len(living.face.sent)))
        done.set()

    def watch(sent: EventNotification) -> None:
        publish(sent)
        if len(living.face.sent) == before + number:
            living.house.start_soon(look)

    living.face.publish = watch  # type: ignore[method-assign]  # the client that attaches
    await finished(session, "go")
    living.face.publish = publish  # type: ignore[method-assign]
    if len(living.face.sent) < before + number:
        return None
    with anyio.fail_after(5):
        await done.wait()
    told, place = attached[0]
    return told, living.face.sent[place:]


def text_of(told: AttachResult) -> str:
    """What the open message of a running prompt has said so far."""
    message = told.partial.message if told.partial is not None else None
    blocks = message.content if message is not None else ()
    return "".join(block.text for block in blocks if block.type == "text")


async def test_open_questions_stand_in_an_attach(tmp_path: Path) -> None:
    async with home(tmp_path, FakeTool("bash", subject=COMMAND)) as living:
        session = await living.new(calling(tool_call("a", "bash")), "done", mode="ask")
        running = later(living, session)
        await living.face.until("permission_requested")
        told = await attach(living, session.session_id)
        assert [each.request_id for each in told.pending or ()] == [living.face.asked[0].request_id]
        assert len(living.face.asked) == 1, "it is not asked again"
        await session.cancel()
        await running.result()
        assert (await attach(living, session.session_id)).pending == ()


async def test_what_was_not_yet_sent_when_a_session_was_read_is_in_no_later_event(tmp_path: Path) -> None:
    """A reading closes an open run in silence: whoever attaches later is told, whoever reads has it all."""
    session_id, sent = await talked(tmp_path)
    (path,) = (tmp_path / "data" / "sessions").glob(f"*/{session_id}.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))
    async with home(tmp_path) as living:
        reading = page_of(await living.sessions.get(SessionGetParams(session_id=session_id)))
        assert reading.seq > len(sent) - 3
        assert living.face.sent == []
        told = await attach(living, session_id, len(sent) - 3)
        assert [each["seq"] for each in told.events or ()] == list(range(len(sent) - 2, reading.seq + 1))


# --- where it is a snapshot -----------------------------------------------------------------------


async def test_a_client_that_knows_more_than_the_journal_starts_over(tmp_path: Path) -> None:
    session_id, sent = await talked(tmp_path)
    async with home(tmp_path) as living:
        told = await attach(living, session_id, len(sent) + 1)
        assert (told.kind, told.events, told.seq) == ("snapshot", None, len(sent))
        assert told.snapshot == page_of(await living.sessions.get(SessionGetParams(session_id=session_id)))


async def test_what_is_too_much_to_replay_is_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id, sent = await talked(tmp_path)
    async with home(tmp_path) as living:
        monkeypatch.setattr(replay, "MAX_EVENTS", len(sent) - 10)
        assert (await attach(living, session_id, 10)).kind == "replay"
        assert (await attach(living, session_id, 9)).kind == "snapshot"
        monkeypatch.undo()
        monkeypatch.setattr(replay, "MAX_BYTES", 3000)
        assert (await attach(living, session_id, len(sent) - 2)).kind == "replay"
        assert (await attach(living, session_id)).kind == "snapshot"


async def test_a_replay_with_a_hole_is_a_snapshot(tmp_path: Path) -> None:
    session_id, sent = await talked(tmp_path)
    (path,) = (tmp_path / "data" / "sessions").glob(f"*/{session_id}.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[20] = lines[20].replace(b"record", b"rekord")
    path.write_bytes(b"".join(lines))
    async with home(tmp_path) as living:
        assert (await attach(living, session_id, 19)).kind == "snapshot"
        told = await attach(living, session_id, 20)
        notice = (told.events or ())[-1]["event"]
        assert list(told.events or ())[:-1] == sent[20:]
        assert (notice["type"], notice["severity"]) == ("notice", "warning")
        assert "line 21 " in notice["message"]


async def test_twenty_thousand_events_are_replayed_and_one_more_is_not(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("x")
        session_id, path = session.session_id, living.journal(session.session_id)
    journal, contents = Journal.open(path)
    first = contents.records[0]
    for seq in range(2, 20_002):
        notice = {"type": "notice", "severity": "info", "message": f"number {seq}"}
        journal.append({"seq": seq, "time": first["time"], "event": notice})
    journal.close()
    async with home(tmp_path) as living:
        told = await attach(living, session_id, 1)
        assert [each["seq"] for each in told.events or ()] == list(range(2, 20_002))
        assert (await attach(living, session_id, 0)).kind == "snapshot"


async def test_a_session_that_is_not_there_cannot_be_attached_to(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        with pytest.raises(RpcError) as caught:
            await attach(living, "s_nowhere")
        assert caught.value.kind == "sessionNotFound"


async def test_a_quick_run_does_not_outrun_an_attach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that come while the journal is read are told too, however many times that happens."""
    async with home(tmp_path) as living:
        session = await living.new(*["x"] * 9)
        read_on = replay.ReplayReader.read_on
        readings = []

        def slowly(self: Any) -> None:
            read_on(self)
            readings.append(self.seq)
            if len(readings) <= 3:
                anyio.from_thread.run(finished, session, f"more {len(readings)}")

        monkeypatch.setattr(replay.ReplayReader, "read_on", slowly)
        told = await attach(living, session.session_id)
        assert [each["seq"] for each in told.events or ()] == list(range(1, session.info.seq + 1))
        assert len(readings) == 4
