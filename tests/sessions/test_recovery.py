"""A daemon that stopped anywhere in a run: the session opens, the run is closed, the next prompt works."""

from pathlib import Path
from typing import Any

import pytest
from agent.event_order import words
from agent.loop_host import FakeTool
from agent.strict_history import faults
from sessions.session_home import COMMAND, assert_whole_journal, calling, entries, home, prompt, tool_call

from agentd.agent.request import project
from agentd.protocol.events import AgentEnd, DurableEvent, FilesChanged, MessageStart, ToolExecutionEnd
from agentd.protocol.messages import EditDetails, FileChange, PermissionRequest, TextContent, UserMessage
from agentd.protocol.methods import PermissionAnswer, PromptResult
from agentd.sessions.journal import read
from agentd.sessions.recovery import OUTCOME_UNKNOWN
from agentd.tools.base import ToolResult

EDITED = EditDetails(
    files=(FileChange(uri="file:///w/a", action="created", patch="p", additions=1, deletions=0),)
)


async def edit(arguments: Any, context: Any) -> ToolResult:
    return ToolResult.text("edited", EDITED)


async def allow(request: PermissionRequest) -> PermissionAnswer:
    return PermissionAnswer(option_id="allow_always")


def asking_tools() -> list[FakeTool]:
    return [FakeTool("edit", run=edit, kind="edit"), FakeTool("bash", subject=COMMAND)]


async def record_a_run(folder: Path) -> tuple[str, Path]:
    """Two prompts, the second with three calls in two turns, a question and a changed file."""
    async with home(folder, *asking_tools()) as living:
        living.face.answer = allow
        session = await living.new(
            "hello",
            calling(tool_call("a", "edit"), tool_call("b", "bash"), text="working"),
            calling(tool_call("c", "missing")),
            "done",
            mode="ask",
        )
        await session.prompt(prompt("first", prompt_id="p1"))
        result = await session.prompt(prompt("second", prompt_id="p2"))
        assert isinstance(result, PromptResult)
        assert result.stop_reason == "stop"
        path = living.journal(session.session_id)
        session_id = session.session_id
    assert_whole_journal(path)
    return session_id, path


async def cut(recorded: tuple[str, Path], folder: Path, records: int) -> tuple[str, Path]:
    """The same session as it lies there when the daemon was killed behind that record."""
    session_id, source = recorded
    target = folder / "data" / "sessions" / source.parent.name / source.name
    target.parent.mkdir(parents=True)
    lines = source.read_bytes().splitlines(keepends=True)
    target.write_bytes(b"".join(lines[: 1 + records]))
    return session_id, target


def changes(events: list[DurableEvent]) -> int:
    return sum(isinstance(event, FilesChanged) for event in events)


async def test_a_run_cut_behind_any_record_is_closed_and_the_next_prompt_works(tmp_path: Path) -> None:
    recorded = await record_a_run(tmp_path / "whole")
    whole = entries(recorded[1])
    cuts = [number for number in range(1, len(whole) + 1) if _is_open(whole[:number])]
    assert len(cuts) > 35
    doubled = []
    for number in cuts:
        folder = tmp_path / f"cut{number}"
        session_id, path = await cut(recorded, folder, number)
        async with home(folder, *asking_tools()) as living:
            session = await living.sessions.open(session_id)
            assert session.info.state == "idle"
            assert session.get(None, 200).pending == ()
            told = assert_whole_journal(path)
            assert told[:number] == whole[:number], "what was journaled stays"
            assert [each.seq for each in living.face.sent] == list(range(number + 1, len(told) + 1))
            end = told[-1].event
            assert isinstance(end, AgentEnd)
            assert end.stop_reason in ("interrupted", "stop")
            assert faults(project(session.get(None, 200).messages)) == []
            prompt_id = whole[number - 1].prompt_id
            doubled += [number for each in ("p1", "p2") if changes(_events(told, each)) > 1]
            result = await session.prompt(prompt("next", prompt_id="next", model=living.script("fine")))
            assert isinstance(result, PromptResult)
            assert (result.stop_reason, result.text) == ("stop", "fine"), result.error
            assert session._state.prompts[str(prompt_id)].result is not None
            assert not any(tool.ran for tool in living.tools), "what may have run never runs again"
            after = path.read_bytes()
        async with home(folder) as living:
            await living.sessions.open(session_id)
            assert path.read_bytes() == after, "closing twice adds nothing"
    assert doubled == [], "files_changed is told once, also where only agent_end was missing"


def _events(told: list[Any], prompt_id: str) -> list[DurableEvent]:
    return [entry.event for entry in told if entry.prompt_id == prompt_id]


def _is_open(told: list[Any]) -> bool:
    last = told[-1].prompt_id
    return last is not None and not any(
        isinstance(entry.event, AgentEnd) and entry.prompt_id == last for entry in told
    )


async def recovered(tmp_path: Path, *, behind: str, nth: int = 1) -> tuple[list[str], list[Any]]:
    """The words of the closing events, and all entries, of the run cut behind the nth such event of `p2`."""
    recorded = await record_a_run(tmp_path / "whole")
    whole = entries(recorded[1])
    found = [
        n for n, entry in enumerate(whole, 1) if entry.prompt_id == "p2" and words([entry.event]) == [behind]
    ]
    number = found[nth - 1]
    folder = tmp_path / "cut"
    session_id, path = await cut(recorded, folder, number)
    async with home(folder) as living:
        await living.sessions.open(session_id)
    told = entries(path)
    return words([entry.event for entry in told[number:]]), told


CLOSING = ["turn_end", "turn_start", "start(assistant)", "end(assistant)", "turn_end"]


async def test_a_tool_that_was_running_has_an_unknown_outcome(tmp_path: Path) -> None:
    said, told = await recovered(tmp_path, behind="run(b)")
    assert said == [
        "ran(b)",
        "start(tool_result)",
        "end(tool_result)",
        *CLOSING,
        "files_changed",
        "agent_end(interrupted)",
    ]
    ended = [entry.event for entry in told if isinstance(entry.event, ToolExecutionEnd)][-1]
    assert ended.result.content == (TextContent(text=OUTCOME_UNKNOWN),)
    assert OUTCOME_UNKNOWN == "Outcome unknown: the daemon stopped while this ran."
    assert ended.result.is_error


async def test_an_open_question_is_withdrawn_before_its_call_is_closed(tmp_path: Path) -> None:
    said, _ = await recovered(tmp_path, behind="permission_requested")
    assert said[:2] == ["permission_resolved", "ran(b)"]


async def test_a_result_that_was_journaled_is_told_and_no_other(tmp_path: Path) -> None:
    said, told = await recovered(tmp_path, behind="ran(b)")
    assert said[:3] == ["start(tool_result)", "end(tool_result)", "turn_end"]
    ended = [entry.event for entry in told if isinstance(entry.event, ToolExecutionEnd)][-1]
    assert ended.result.content == (TextContent(text="echo "),)


async def test_a_call_that_never_began_gets_no_event(tmp_path: Path) -> None:
    said, _ = await recovered(tmp_path, behind="end(assistant)")
    assert said == [*CLOSING, "agent_end(interrupted)"]


async def test_an_open_message_ends_under_its_own_id(tmp_path: Path) -> None:
    said, told = await recovered(tmp_path, behind="start(assistant)")
    assert said == ["end(assistant)", "turn_end", "agent_end(interrupted)"]
    end = told[-1].event
    started = [
        e.event for e in told if isinstance(e.event, MessageStart) and e.event.message.role == "assistant"
    ]
    assert end.message_id == started[-1].message.message_id


async def test_a_turn_in_which_the_model_had_begun_to_answer_counts(tmp_path: Path) -> None:
    """As in a run that is cancelled there: only a turn that exists for the closing's sake does not count."""
    _, told = await recovered(tmp_path, behind="start(assistant)")
    assert told[-1].event.turns == 1
    _, told = await recovered(tmp_path / "second", behind="start(assistant)", nth=2)
    assert told[-1].event.turns == 2


async def test_a_closing_turn_does_not_count(tmp_path: Path) -> None:
    _, told = await recovered(tmp_path, behind="run(b)")
    assert told[-1].event.turns == 1


@pytest.mark.parametrize("behind", ["agent_start", "turn_start", "start(user)"])
async def test_a_run_that_had_hardly_begun_is_closed_too(tmp_path: Path, behind: str) -> None:
    said, told = await recovered(tmp_path, behind=behind)
    assert said[-2:] == ["turn_end", "agent_end(interrupted)"]
    assert told[-1].event.turns == 0


async def test_a_run_whose_answer_was_whole_ends_as_it_was_going_to(tmp_path: Path) -> None:
    said, told = await recovered(tmp_path, behind="end(assistant)", nth=3)
    assert said == ["turn_end", "files_changed", "agent_end(stop)"]
    assert told[-1].event.turns == 3


async def test_a_run_that_met_its_limit_ends_as_it_was_going_to(tmp_path: Path) -> None:
    """The outcome of a run is fixed when its last message is journaled."""
    async with home(tmp_path / "whole") as living:
        session = await living.new(calling(tool_call("a")))
        result = await session.prompt(prompt(prompt_id="p1", max_turns=1))
        assert isinstance(result, PromptResult)
        assert (result.stop_reason, result.turns, result.error) == ("max_turns", 1, None)
        recorded = session.session_id, living.journal(session.session_id)
    number = len(read(recorded[1]).records) - 2
    session_id, _ = await cut(recorded, tmp_path / "cut", number)
    async with home(tmp_path / "cut") as living:
        again = await living.sessions.open(session_id)
        told = again._state.prompts["p1"].result
        assert told is not None
        assert (told.stop_reason, told.turns, told.error) == ("max_turns", 1, None)


async def test_the_prompt_of_a_closed_run_is_answered_and_does_not_run_again(tmp_path: Path) -> None:
    recorded = await record_a_run(tmp_path / "whole")
    whole = entries(recorded[1])
    number = next(n for n, e in enumerate(whole, 1) if words([e.event]) == ["run(b)"])
    session_id, path = await cut(recorded, tmp_path / "cut", number)
    async with home(tmp_path / "cut") as living:
        session = await living.sessions.open(session_id)
        before = path.read_bytes()
        result = await session.prompt(prompt("second", prompt_id="p2"))
        assert isinstance(result, PromptResult)
        assert (result.stop_reason, result.text) == ("interrupted", "")
        assert path.read_bytes() == before


async def test_what_was_allowed_for_good_still_is_after_the_daemon_was_killed(tmp_path: Path) -> None:
    recorded = await record_a_run(tmp_path / "whole")
    whole = entries(recorded[1])
    number = next(n for n, e in enumerate(whole, 1) if words([e.event]) == ["permission_resolved"])
    session_id, _ = await cut(recorded, tmp_path / "cut", number)
    async with home(tmp_path / "cut", *asking_tools()) as living:
        session = await living.sessions.open(session_id)
        model = living.script(calling(tool_call("z", "bash")), "ok")
        await session.prompt(prompt("again", model=model))
        assert living.face.asked == []
        assert len(living.tools[1].ran) == 1


async def test_going_on_where_nothing_was_ever_said_is_refused(tmp_path: Path) -> None:
    """Killed before the user's message was journaled: there is nothing that a request could hold."""
    recorded = await record_a_run(tmp_path / "whole")
    session_id, _ = await cut(recorded, tmp_path / "cut", 4)  # behind message_start of the first prompt
    async with home(tmp_path / "cut") as living:
        session = await living.sessions.open(session_id)
        messages = session.get(None, 9).messages
        assert isinstance(messages[0], UserMessage)
        assert project(messages) == ()
        with pytest.raises(Exception, match="no messages to go on from"):
            await session.prompt(prompt([], model=living.script("never")))
