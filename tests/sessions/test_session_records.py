"""Events to records and back: nothing is lost, nothing is stored twice, and what is private stays so."""

from pathlib import Path
from typing import Any, get_args

import pytest
from agent.loop_host import FakeTool
from pydantic_core import from_json, to_json
from sessions.session_home import COMMAND, calling, entries, home, prompt, tool_call

from agentd.permissions.rules import Rules
from agentd.protocol import events as e
from agentd.protocol.messages import (
    AssistantMessage,
    EditDetails,
    FileChange,
    ImageContent,
    Location,
    QueuedPrompt,
    RunError,
    Session,
    TextContent,
    ThinkingContent,
    TodoItem,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agentd.sessions.journal import Journal, read
from agentd.sessions.records import Entry, Reader
from agentd.sessions.state import SessionState
from agentd.tools.base import ToolResult

TIME = "2026-01-01T00:00:00.000Z"
QUESTION: dict[str, Any] = {
    "session_id": "s1",
    "prompt_id": "p1",
    "request_id": "q1",
    "tool_call_id": "c1",
    "tool_name": "bash",
    "title": "make",
    "kind": "execute",
    "subject": COMMAND,
    "options": Rules().options("bash", COMMAND),
}
SESSION = Session(
    session_id="s1",
    workspace_uri="file:///w",
    title="T",
    model="p/m",
    mode="ask",
    state="idle",
    created_at=TIME,
    updated_at=TIME,
    message_count=0,
    seq=1,
)
CHANGE = FileChange(uri="file:///w/a", action="created", patch="@@ é \u2028", additions=1, deletions=0)
RESULT = ToolResultMessage(
    message_id="m3",
    tool_call_id="c1",
    tool_name="write",
    content=(TextContent(text="ok"), ImageContent(mime_type="image/png", data="aGk=")),
    is_error=False,
    details=EditDetails(files=(CHANGE,)),
    timestamp=TIME,
)
ANSWER = AssistantMessage(
    message_id="m2",
    content=(
        ThinkingContent(text="hm", redacted=True),
        TextContent(text="é😀\u2028"),
        ToolCall(id="c1", name="write", arguments={"a": [1, None, {"b": 1.5}]}),
        ToolCall(id="c2", name="write", raw_arguments='{"a'),
    ),
    provider="p",
    model="m",
    usage=Usage(input=1, output=2, total=3),
    stop_reason="tool_use",
    timestamp=TIME,
    provider_data={"signature": "c2ln"},
)
USER = UserMessage(message_id="m1", content=(TextContent(text="go"),), timestamp=TIME)

EVENTS: list[e.DurableEvent] = [
    e.SessionChanged(session=SESSION),
    e.AgentStart(prompt=e.PromptSettings(model="p/m", mode="ask", effort="high")),
    e.TurnStart(turn=1),
    e.MessageStart(message=e.MessageHead(role="user", message_id="m1")),
    e.MessageEnd(message=USER),
    e.MessageStart(message=e.MessageHead(role="assistant", message_id="m2", model="p/m")),
    e.Retry(attempt=1, max_attempts=3, delay_ms=250, reason="overloaded"),
    e.MessageReset(message_id="m2"),
    e.MessageEnd(message=ANSWER),
    e.ToolExecutionStart(
        tool_call_id="c1",
        tool_name="write",
        arguments={"a": 1},
        title="Write a",
        kind="edit",
        locations=(Location(uri="file:///w/a", line=3),),
    ),
    e.PermissionRequested(**QUESTION),
    e.PermissionResolved(
        request_id="q1", tool_call_id="c1", outcome="allowed", option_id="allow_once", by="client"
    ),
    e.ToolExecutionEnd(tool_call_id="c1", tool_name="write", result=RESULT, duration_ms=5),
    e.MessageStart(
        message=e.MessageHead(role="tool_result", message_id="m3", tool_call_id="c1", tool_name="write")
    ),
    e.MessageEnd(message=RESULT),
    e.TurnEnd(turn=1, message_id="m2", stop_reason="tool_use", tool_result_ids=("m3",), usage=Usage(total=3)),
    e.CompactionStart(reason="overflow", tokens_before=10),
    e.CompactionEnd(outcome="failed", tokens_before=10, error=RunError(kind="server", message="x")),
    e.TodoChanged(items=(TodoItem(id="t", text="x", status="pending"),)),
    e.QueueChanged(
        queue=(QueuedPrompt(prompt_id="p2", kind="queue", prompt=(TextContent(text="x"),), queued_at=TIME),)
    ),
    e.FilesChanged(files=(e.ChangedFile(uri="file:///w/a", action="created"),)),
    e.Notice(severity="warning", message="careful"),
    e.SessionRewound(prompt_id="p0", scope="both", removed_message_ids=("m0",), files=()),
    e.AgentEnd(
        stop_reason="error",
        message_id="m2",
        message_ids=("m1", "m2", "m3"),
        turns=1,
        usage=Usage(total=3),
        error=RunError(kind="rate_limit", message="slow down", retryable=True, retry_after_ms=9),
    ),
]


def stored(entry: Entry) -> dict[str, Any]:
    """The record of an entry as a journal gives it back."""
    record = from_json(to_json(entry.record()))
    assert isinstance(record, dict)
    return record


def numbered(events: list[e.DurableEvent]) -> list[Entry]:
    return [Entry(number, TIME, "p1", event) for number, event in enumerate(events, 1)]


def test_every_type_of_event_is_tried_here() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(e.DurableEvent))


def test_every_event_comes_back_from_the_journal_as_it_was() -> None:
    reader = Reader()
    for entry in numbered(EVENTS):
        back = reader.entry(stored(entry))
        assert back == entry
        assert to_json(back.notification("s1")) == to_json(entry.notification("s1"))


def test_each_body_is_stored_once() -> None:
    text = b"\n".join(to_json(entry.record()) for entry in numbered(EVENTS))
    assert text.count(b"aGk=") == 1, "the result's message names the result"
    assert text.count(b'"c2ln"') == 1


def test_provider_data_is_journaled_and_never_sent() -> None:
    entry = Entry(1, TIME, "p1", e.MessageEnd(message=ANSWER))
    back = Reader().entry(stored(entry))
    assert back is not None
    assert isinstance(back.event, e.MessageEnd)
    assert isinstance(back.event.message, AssistantMessage)
    assert back.event.message.provider_data == {"signature": "c2ln"}
    for each in (entry, back):
        assert b"c2ln" not in to_json(each.notification("s1"))


def test_what_is_private_stays_in_the_journal() -> None:
    entry = Entry(1, TIME, "p1", EVENTS[1], {"promptDigest": "abc"})
    back = Reader().entry(stored(entry))
    assert back == entry
    assert b"abc" not in to_json(entry.notification("s1"))


def test_an_event_outside_a_run_has_no_prompt() -> None:
    entry = Entry(1, TIME, None, e.SessionChanged(session=SESSION))
    assert "promptId" not in stored(entry)
    assert Reader().entry(stored(entry)) == entry


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"seq": 1},
        {"seq": "1", "event": {}},
        {"seq": True, "event": {}},
        {"event": {}},
        {"seq": 1, "event": []},
    ],
)
def test_a_record_of_a_later_version_is_none_of_ours(record: dict[str, Any]) -> None:
    assert Reader().entry(record) is None


def test_a_result_whose_body_was_lost_is_left_out() -> None:
    assert (
        Reader().entry({"seq": 4, "time": TIME, "event": {"type": "message_end", "resultId": "m9"}}) is None
    )


def test_an_event_of_a_later_version_is_refused_as_such() -> None:
    with pytest.raises(ValueError, match="future"):
        Reader().entry({"seq": 4, "time": TIME, "event": {"type": "future"}})


# --- the fold -------------------------------------------------------------------------------------


def known(state: SessionState) -> dict[str, Any]:
    return {
        "seq": state.seq,
        "updated": state.updated_at,
        "messages": state.messages,
        "prompts": {prompt_id: (each.digests, each.result) for prompt_id, each in state.prompts.items()},
        "answers": state.answers,
        "run": state.run,
        "usage": state.usage,
        "base": state.base,
        "info": state.info(alive=False),
    }


def test_the_fold_of_what_was_read_is_the_fold_of_what_was_written() -> None:
    live, read_back, reader = SessionState("s1"), SessionState("s1"), Reader()
    for entry in numbered(EVENTS):
        live.apply(entry)
        back = reader.entry(stored(entry))
        assert back is not None
        read_back.apply(back)
        assert known(read_back) == known(live)


async def test_a_session_is_after_a_restart_what_it_was(tmp_path: Path) -> None:
    async def edit(arguments: Any, context: Any) -> ToolResult:
        return ToolResult.text("edited", EditDetails(files=(CHANGE,)))

    async with home(tmp_path, FakeTool(run=edit)) as living:
        session = await living.new(
            {**calling(tool_call("a"), tool_call("a")), "usage": {"input": 3, "total": 3}},
            "done",
            "more",
            title="T",
        )
        await session.prompt(prompt(prompt_id="p1"))
        await session.prompt(prompt("second", prompt_id="p2"))
        before = known(session._state)
        session_id = session.session_id
        assert before["usage"].total == 3
    async with home(tmp_path) as living:
        again = await living.sessions.open(session_id)
        assert known(again._state) == before
        assert again.get(None, 200).messages == tuple(before["messages"])
        assert living.face.sent == [], "opening a session that was closed tells nothing"


async def test_a_run_stores_each_message_once(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        calls = [tool_call(f"c{number}", value=f"value-{number}-") for number in range(30)]
        session = await living.new(calling(*calls), "done")
        await session.prompt(prompt())
        text = living.journal(session.session_id).read_bytes()
    for number in range(30):
        assert text.count(f"echo value-{number}-".encode()) == 2, "its title and its result"


# --- what a later version wrote -------------------------------------------------------------------


async def test_numbers_go_on_behind_an_event_that_only_a_later_version_knows(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one")
        await session.prompt(prompt())
        session_id, path = session.session_id, living.journal(session.session_id)
    journal, contents = Journal.open(path)
    last = contents.records[-1]["seq"]
    journal.append({"seq": last + 1, "time": TIME, "event": {"type": "from_the_future", "x": 1}})
    journal.close()
    async with home(tmp_path) as living:
        again = await living.sessions.open(session_id)
        await again.prompt(prompt("next", model=living.script("two")))
    seqs = [record["seq"] for record in read(path).records]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(entries_known(path)) == len(seqs) - 1


def entries_known(path: Path) -> list[dict[str, Any]]:
    return [record for record in read(path).records if record["event"]["type"] != "from_the_future"]


async def test_a_damaged_line_costs_that_event_only(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one")
        await session.prompt(prompt())
        session_id, path = session.session_id, living.journal(session.session_id)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if b'"message_end"' in line and b'"assistant"' in line)
    lines[place] = lines[place].replace(b"one", b"two")
    path.write_bytes(b"".join(lines))
    async with home(tmp_path) as living:
        again = await living.sessions.open(session_id)
        assert [message.role for message in again.get(None, 9).messages] == ["user"]
        result = await again.prompt(prompt("next", model=living.script("fine")))
        assert result.stop_reason == "stop"  # type: ignore[union-attr]  # it was waited for
        assert "were lost" in living.engines.scripted.requests[-1].system, "the model is told"
        notices = [sent.event for sent in living.face.sent if sent.event.type == "notice"]
        assert [f"line {place + 1} " in each.message for each in notices] == [True], "the user is told"  # type: ignore[union-attr]
    assert len(entries(path)) == len(lines) - 2 + 1 + 8
    async with home(tmp_path) as living:
        await living.sessions.open(session_id)
        assert living.face.sent == [], "and told once"
        assert any(session_id in problem.message for problem in living.sessions.problems)
