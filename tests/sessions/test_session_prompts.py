"""Prompt and cancel of a session: one at a time, each answered once, and the same twice is the same once."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from agent.event_order import words
from agent.loop_host import FakeTool, MemoryHost
from fakes.pictures import block, picture
from sessions.prompting import Later, finished, later, refused
from sessions.session_home import Home, assert_whole_journal, calling, home, page_of, prompt, tool_call

from agentd.protocol.errors import RpcError
from agentd.protocol.events import AgentEnd, AgentStart, EventNotification, Notice
from agentd.protocol.messages import (
    AssistantMessage,
    CommandContent,
    ImageContent,
    ResourceContent,
    TextContent,
)
from agentd.protocol.methods import (
    Problem,
    PromptAccepted,
    PromptResult,
    SessionGetParams,
    SessionNewParams,
    SessionUpdateParams,
)
from agentd.providers.base import ProviderError, StreamEnd, TextDelta, ToolCallDelta
from agentd.sessions.session import Session
from agentd.sessions.submission import Submission

HANG = {"content": [{"type": "text", "text": "so far"}], "hang": True}


# --- results --------------------------------------------------------------------------------------


async def test_a_prompt_is_answered_with_its_result(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        response = {
            "content": [{"type": "text", "text": "Hello"}],
            "usage": {"input": 2, "output": 3, "total": 5},
        }
        session = await living.new(response)
        result = await finished(session, prompt_id="p1")
        end = living.face.sent[-1]
        assert isinstance(end.event, AgentEnd)
        assert result == PromptResult(
            session_id=session.session_id,
            prompt_id="p1",
            stop_reason="stop",
            text="Hello",
            message_id=end.event.message_id,
            usage=end.event.usage,
            turns=1,
            seq=end.seq or 0,
        )
        assert session.info.usage == result.usage
        assert session.info.title == "go"
        assert session.info.message_count == 2
        told = assert_whole_journal(living.journal(session.session_id))
        assert [entry.notification(session.session_id) for entry in told] == [
            sent for sent in living.face.sent if sent.seq is not None
        ]


async def test_an_accepted_prompt_is_answered_once_it_is_safe(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(HANG)
        accepted = await session.prompt(prompt(prompt_id="p1", wait="accepted"))
        assert isinstance(accepted, PromptAccepted)
        assert accepted.outcome == "started"
        assert "end(user)" in words(living.face.events)
        await session.cancel()


async def test_a_provider_that_fails_is_a_result(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        error = {"kind": "quota", "message": "no credit left", "status": 429}
        session = await living.new({"content": [{"type": "text", "text": "half"}], "error": error}, "fine")
        result = await finished(session)
        assert (result.stop_reason, result.text) == ("error", "half")
        assert result.error is not None
        assert (result.error.kind, result.error.message, result.error.retryable) == (
            "quota",
            "no credit left",
            False,
        )
        assert (await finished(session, "again")).text == "fine"


async def test_the_first_prompt_tells_what_is_wrong_with_the_configuration_once(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        living.settings.problems = (Problem(severity="error", message="line 3 is no TOML"),)
        session = await living.new("a", "b")
        await finished(session)
        await finished(session, "again")
        assert [e for e in living.face.events if isinstance(e, Notice)] == [
            Notice(severity="error", message="line 3 is no TOML")
        ]
        assert_whole_journal(living.journal(session.session_id))


# --- what can be wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ([], "invalidParams"),
        ([TextContent(text=" \n")], "invalidParams"),
        ([CommandContent(name="fix")], "invalidParams"),
        ([ResourceContent(uri="file:///etc/passwd")], "outsideWorkspace"),
        ([ResourceContent(uri="git:one")], "invalidParams"),
    ],
)
async def test_a_prompt_that_cannot_begin_leaves_no_trace(tmp_path: Path, text: Any, kind: str) -> None:
    async with home(tmp_path) as living:
        session = await living.new("fine")
        before = living.journal(session.session_id).read_bytes()
        assert (await refused(session, text)).kind == kind
        assert living.journal(session.session_id).read_bytes() == before
        assert (await finished(session)).text == "fine"


@pytest.mark.parametrize(
    ("params", "kind"), [({"model": "none/x"}, "noModel"), ({"mode": "auto"}, "unsupported")]
)
async def test_a_prompt_with_wrong_wishes_leaves_no_trace(tmp_path: Path, params: Any, kind: str) -> None:
    async with home(tmp_path) as living:
        session = await living.new("fine")
        assert (await refused(session, **params)).kind == kind
        assert session.info.seq == 1


async def test_mode_full_needs_the_users_permission(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        living.settings.default_mode, living.settings.allow_full = "ask", False
        session = await living.new("fine")
        assert (await refused(session, mode="full")).kind == "unsupported"
        with pytest.raises(RpcError, match="full"):
            session.update(SessionUpdateParams(session_id=session.session_id, mode="full"))
        assert session.info.mode == "ask"


async def test_a_workspace_that_is_gone_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("fine")
        living.root.rename(tmp_path / "elsewhere")
        assert (await refused(session)).kind == "outsideWorkspace"
        assert not living.root.exists()


async def test_going_on_is_for_answers_that_are_not_complete(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(
            {"content": [{"type": "text", "text": "ha"}], "stopReason": "length"}, "lf"
        )
        assert (await finished(session)).stop_reason == "length"
        assert (await finished(session, [])).text == "lf"
        assert (await refused(session, [])).kind == "invalidParams"
        assert session.info.message_count == 3


async def test_an_image_alone_is_a_prompt(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("nice")
        assert (
            await finished(session, [ImageContent(mime_type="image/png", data=block(picture())["data"])])
        ).text == "nice"


# --- the same prompt twice ------------------------------------------------------------------------


async def test_the_same_prompt_joins_while_it_runs_and_is_recalled_afterwards(tmp_path: Path) -> None:
    release = anyio.Event()

    async def hold(arguments: Any, context: Any) -> None:
        await release.wait()

    async with home(tmp_path, FakeTool(run=hold)) as living:
        session = await living.new(calling(tool_call()), "done")
        running = [later(living, session, prompt_id="p1") for _ in range(3)]
        await living.face.until("tool_execution_start")
        assert (await refused(session, "other", prompt_id="p1")).kind == "invalidParams"
        release.set()
        results = [await each.result() for each in running]
        assert results[0].text == "done"
        assert results[1] == results[2] == results[0]
        sent = len(living.face.sent)
        assert await finished(session, prompt_id="p1") == results[0]
        assert await finished(session, [TextContent(text="go")], prompt_id="p1") == results[0]
        assert len(living.face.sent) == sent, "a recalled result comes without events"
        assert (await refused(session, "other", prompt_id="p1")).kind == "invalidParams"
        session_id = session.session_id
    async with home(tmp_path) as living:
        again = await living.sessions.open(session_id)
        assert await finished(again, prompt_id="p1") == results[0]
        assert (await refused(again, "other", prompt_id="p1")).kind == "invalidParams"
        assert living.face.sent == []


async def test_a_prompt_without_an_id_is_always_a_new_one(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("a", "b")
        first, second = await finished(session), await finished(session)
        assert first.prompt_id != second.prompt_id
        assert (first.text, second.text) == ("a", "b")


# --- busy -----------------------------------------------------------------------------------------


async def test_a_second_prompt_is_refused_and_the_first_goes_on_undisturbed(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(HANG, "left")
        running = later(living, session, prompt_id="p1")
        await living.face.until("message_start", 2)
        error = await refused(session, "second", prompt_id="p2")
        assert (error.kind, error.message) == ("sessionBusy", "Agent is already processing a prompt.")
        assert not session.knows_prompt("p2")
        await session.cancel()
        assert (await running.result()).stop_reason == "aborted"
        assert (await finished(session, "third")).text == "left"
        assert_whole_journal(living.journal(session.session_id))


@pytest.mark.parametrize("wish", ["queue", "steer", "interrupt"])
async def test_an_idle_session_starts_a_prompt_whatever_it_wished_for_a_busy_one(
    tmp_path: Path, wish: str
) -> None:
    async with home(tmp_path) as living:
        session = await living.new("fine")
        assert (await finished(session, when_busy=wish)).text == "fine"


async def test_two_sessions_run_at_the_same_time(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        slow, quick = await living.new(HANG), await living.new("quick")
        running = later(living, slow)
        await living.face.until("message_start", 2)
        assert (await finished(quick)).text == "quick"
        assert slow.info.state == "running"
        await slow.cancel()
        await running.result()


async def test_a_prompt_right_after_agent_end_but_before_its_response_is_taken(tmp_path: Path) -> None:
    """A client that has seen `agent_end` may prompt at once: the session is idle from there on."""
    async with home(tmp_path) as living:
        session = await living.new("one", "two")
        second: list[Later] = []
        publish = living.face.publish

        def eager(notification: EventNotification) -> None:
            publish(notification)
            if isinstance(notification.event, AgentEnd) and not second:
                second.append(later(living, session, "next", prompt_id="p2"))

        living.face.publish = eager  # type: ignore[method-assign]  # the eager client
        assert (await finished(session, prompt_id="p1")).text == "one"
        assert (await second[0].result()).text == "two"
        starts = [s.prompt_id for s in living.face.sent if isinstance(s.event, AgentStart)]
        assert starts == ["p1", "p2"]
        assert_whole_journal(living.journal(session.session_id))


async def test_two_prompts_behind_an_end_are_one_run_and_one_refusal(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one", HANG)
        both: list[Later] = []
        publish = living.face.publish

        def eager(notification: EventNotification) -> None:
            publish(notification)
            if isinstance(notification.event, AgentEnd) and not both:
                both.extend(later(living, session, f"next {number}") for number in range(2))

        living.face.publish = eager  # type: ignore[method-assign]  # the eager client
        await finished(session)
        await living.face.until("agent_start", 2)
        await living.face.until("message_start", 4)
        await session.cancel()
        results = [await each.result() for each in both]
        assert sorted(getattr(r, "kind", getattr(r, "stop_reason", None)) for r in results) == [
            "aborted",
            "sessionBusy",
        ]


# --- cancel ---------------------------------------------------------------------------------------


async def test_a_cancel_answers_when_the_run_has_closed(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(HANG, "fine")
        running = later(living, session, prompt_id="p1")
        await living.face.until("message_update")
        answer = await session.cancel()
        assert (answer.state, answer.quiescent, answer.prompt_id, answer.restored) == (
            "cancelled",
            True,
            "p1",
            (),
        )
        assert words(living.face.events)[-1] == "agent_end(aborted)"
        result = await running.result()
        assert (result.stop_reason, result.text, result.turns) == ("aborted", "so far", 1)
        assert session.info.state == "idle"
        assert (await finished(session, "next")).text == "fine"


async def test_a_cancel_in_the_same_step_as_its_prompt_asks_no_model(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("never")

        def at_once(taken: Submission) -> None:
            taken.cancel()

        result = await session.prompt(prompt(prompt_id="p1"), at_once)
        assert isinstance(result, PromptResult)
        assert (result.stop_reason, result.turns, result.text) == ("aborted", 0, "")
        assert living.engines.scripted.requests == []
        assert_whole_journal(living.journal(session.session_id))


async def test_a_cancel_of_nothing_of_another_prompt_or_twice_changes_nothing(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one", HANG, "three")
        assert (await session.cancel()).state == "notRunning"
        await finished(session, prompt_id="p1")
        assert (await session.cancel("p1")).state == "notRunning"
        running = later(living, session, "two", prompt_id="p2")
        await living.face.until("message_update", 2)
        assert (await session.cancel("p1")).state == "notRunning"
        assert (await session.cancel("unknown")).state == "notRunning"
        assert session.info.state == "running"
        assert (await session.cancel("p2")).state == "cancelled"
        assert (await session.cancel("p2")).state == "notRunning"
        assert (await running.result()).stop_reason == "aborted"
        assert (await finished(session, "three")).stop_reason == "stop"


async def test_two_cancels_of_one_run_both_answer_that_it_was_cancelled(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(HANG)
        running = later(living, session)
        await living.face.until("message_update")
        answers: list[Any] = []

        async def cancel() -> None:
            answers.append(await session.cancel())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            tasks.start_soon(cancel)
        assert [answer.state for answer in answers] == ["cancelled", "cancelled"]
        await running.result()


async def test_a_cancel_that_comes_too_late_waits_for_the_end_and_says_so(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("whole")
        answers: list[Any] = []
        publish = living.face.publish

        async def cancel() -> None:
            answer = await session.cancel()
            answers.append((answer.state, words(living.face.events)[-1]))

        def late(notification: EventNotification) -> None:
            publish(notification)
            event = notification.event
            if event.type == "message_end" and isinstance(event.message, AssistantMessage):
                living.house.start_soon(cancel)

        living.face.publish = late  # type: ignore[method-assign]  # the late client
        assert (await finished(session)).stop_reason == "stop"
        await anyio.lowlevel.checkpoint()
        with anyio.fail_after(5):
            while not answers:
                await anyio.lowlevel.checkpoint()
        assert answers == [("notRunning", "agent_end(stop)")]


async def test_a_session_that_closes_ends_its_run_first(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(HANG)
        running = later(living, session)
        await living.face.until("message_update")
        path = living.journal(session.session_id)
        await living.sessions.close(session.session_id)
        assert (await running.result()).stop_reason == "aborted"
        assert_whole_journal(path)
        again = await living.sessions.open(session.session_id)
        assert (await finished(again, "next", model=living.script("fine"))).text == "fine"


async def test_a_daemon_that_ends_interrupts_its_runs(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(HANG)
        running = later(living, session)
        await living.face.until("message_update")
        await living.sessions.close_all("interrupted")
        result = await running.result()
        assert (result.stop_reason, result.text) == ("interrupted", "so far")


# --- reading and changing while it runs -----------------------------------------------------------


async def test_a_reading_shows_what_a_run_has_said_so_far(tmp_path: Path) -> None:
    async def talk(arguments: Any, context: Any) -> None:
        await context.output("stdout", "half😀")
        await anyio.sleep_forever()

    async with home(tmp_path, FakeTool(run=talk)) as living:
        session = await living.new({**calling(tool_call()), "chunkSize": 100}, HANG)
        running = later(living, session)
        await living.face.until("tool_execution_update")
        reading = page_of(await living.sessions.get(SessionGetParams(session_id=session.session_id)))
        assert reading.session.state == "running"
        assert reading.partial is not None
        assert reading.partial.message is None
        (tool,) = reading.partial.tools
        assert (tool.tool_call_id, tool.output, tool.offset) == ("a", "half😀", 6)
        assert reading.seq == living.face.sent[-2].seq
        await session.cancel()
        await running.result()
        running = later(living, session, "again")
        await living.face.until("message_update", 2)
        reading = session.get(None, 200)
        assert reading.partial is not None
        assert reading.partial.message is not None
        assert reading.partial.message.content == (TextContent(text="so far"),)
        await session.cancel()
        await running.result()
        assert session.get(None, 200).partial is None


async def test_a_reading_names_a_call_whose_id_and_name_came_behind_its_first_piece(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        fake = MemoryHost(
            [ToolCallDelta(0, '{"a'), ToolCallDelta(0, '": 1', "c1", "echo"), anyio.sleep_forever]
        )
        living.engines.others["fake"] = fake.provider
        session = await living.new("unused")
        running = later(living, session, model="fake/x")
        await living.face.until("message_update", 2)
        partial = session.get(None, 9).partial
        await session.cancel()
        await running.result()
        assert partial is not None
        assert partial.message is not None
        (call,) = partial.message.content
        assert (call.id, call.name, call.raw_arguments) == ("c1", "echo", '{"a": 1')


async def test_offsets_of_a_reading_hold_for_each_block(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        fake = MemoryHost([TextDelta(0, "a😀"), TextDelta(1, "b"), TextDelta(0, "c"), anyio.sleep_forever])
        living.engines.others["fake"] = fake.provider
        session = await living.new("unused")
        running = later(living, session, model="fake/x")
        await living.face.until("message_update", 3)
        partial = session.get(None, 9).partial
        await session.cancel()
        await running.result()
        assert partial is not None
        assert partial.message is not None
        assert partial.message.content == (TextContent(text="a😀c"), TextContent(text="b"))


async def two_turns(living: Home, **session: Any) -> tuple[Session, anyio.Event, Any]:
    """A session whose first turn waits in a tool, and a provider `fake` that notes what it is asked."""
    fake = MemoryHost(
        [ToolCallDelta(0, "{}", "a", "echo"), StreamEnd("tool_use")],
        [TextDelta(0, "done"), StreamEnd("stop")],
    )
    living.engines.others["fake"] = fake.provider
    release = anyio.Event()

    async def hold(arguments: Any, context: Any) -> None:
        await release.wait()

    living.tools[0].run = hold
    return await living.new("unused", **session), release, fake.provider


async def test_a_new_model_acts_at_the_next_turn(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session, release, provider = await two_turns(living)
        session.update(SessionUpdateParams(session_id=session.session_id, model="fake/one"))
        running = later(living, session)
        await living.face.until("tool_execution_start")
        info = session.update(SessionUpdateParams(session_id=session.session_id, model="fake/two", title="T"))
        assert (info.model, info.title, info.state) == ("fake/two", "T", "running")
        release.set()
        await running.result()
        assert [request.model.name for request in provider.requests] == ["one", "two"]
        assert session.info.seq == living.face.sent[-1].seq


async def test_a_new_effort_leaves_a_run_the_model_it_was_started_with(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session, release, provider = await two_turns(living)
        running = later(living, session, model="fake/mine")
        await living.face.until("tool_execution_start")
        session.update(SessionUpdateParams(session_id=session.session_id, effort="high"))
        release.set()
        await running.result()
        assert [(r.model.name, r.effort) for r in provider.requests] == [("mine", None), ("mine", "high")]


async def test_a_change_of_a_session_without_a_model_of_its_own_is_no_fault(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        living.settings.default_model = None
        session, release, _ = await two_turns(living)
        session = (await living.sessions.create(living.root, SessionNewParams())).session
        running = later(living, session, model="fake/mine")
        await living.face.until("tool_execution_start")
        info = session.update(SessionUpdateParams(session_id=session.session_id, effort="high"))
        assert info.effort == "high"
        release.set()
        assert (await running.result()).stop_reason == "stop"


async def test_a_change_to_a_model_that_is_not_there_changes_nothing(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("x")
        with pytest.raises(RpcError) as caught:
            session.update(SessionUpdateParams(session_id=session.session_id, model="none/x", title="T"))
        assert caught.value.kind == "noModel"
        assert (session.info.seq, session.info.title) == (1, "")


async def test_a_window_that_a_server_told_is_known_to_all_and_to_the_run_that_heard_it(
    tmp_path: Path,
) -> None:
    async with home(tmp_path) as living:
        failure = ProviderError("context_overflow", "fake: too long", context_limit=8192)
        living.engines.others["fake"] = MemoryHost([failure]).provider
        session = await living.new("unused")
        taken: list[Submission] = []
        await session.prompt(prompt(model="fake/x"), taken.append)
        assert living.engines.windows == {"fake/x": 8192}
        assert taken[0].run is not None
        assert taken[0].run.engine().model.context_window == 8192
