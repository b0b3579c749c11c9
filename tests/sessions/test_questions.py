"""Questions of permission in a session: put once, answered once, and nothing but an allow is one."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from agent.event_order import words
from agent.loop_host import FakeTool
from sessions.session_home import (
    COMMAND,
    FakeFace,
    Home,
    assert_whole_journal,
    calling,
    home,
    prompt,
    tool_call,
)

from agentd.agent.tool_calls import ABORTED
from agentd.protocol.errors import RpcError
from agentd.protocol.events import PermissionRequested, PermissionResolved
from agentd.protocol.messages import CommandSubject, PermissionRequest, ToolResultMessage
from agentd.protocol.methods import PermissionAnswer, PromptResult, SessionUpdateParams
from agentd.sessions.questions import REJECTED
from agentd.sessions.session import Session
from agentd.tools.base import ToolResult


def bash() -> FakeTool:
    return FakeTool("bash", subject=COMMAND)


def answering(answer: PermissionAnswer | None) -> Any:
    async def say(request: PermissionRequest) -> PermissionAnswer | None:
        return answer

    return say


ALLOW, ALWAYS, REJECT = (PermissionAnswer(option_id=o) for o in ("allow_once", "allow_always", "reject_once"))


async def asking(living: Home, *more: Any, calls: int = 1) -> Session:
    """A session whose model calls bash, `calls` times in one turn."""
    wanted = calling(*(tool_call(f"c{n}", "bash") for n in range(calls)))
    return await living.new(wanted, *(more or ("done",)), mode="ask")


async def run(session: Session, living: Home, **params: Any) -> PromptResult:
    result = await session.prompt(prompt(**params))
    assert isinstance(result, PromptResult)
    assert_whole_journal(living.journal(session.session_id))
    return result


def results(session: Session) -> list[tuple[str, bool]]:
    found = [m for m in session.get(None, 200).messages if isinstance(m, ToolResultMessage)]
    return [("".join(getattr(block, "text", "") for block in m.content), m.is_error) for m in found]


def resolved(face: FakeFace) -> list[tuple[str, str, str | None]]:
    events = [event for event in face.events if isinstance(event, PermissionResolved)]
    return [(event.outcome, event.by, event.option_id) for event in events]


async def answered(tmp_path: Path, answer: PermissionAnswer | None) -> tuple[Any, Any, int]:
    """Result of the call, how the question was resolved, and how often the tool ran."""
    async with home(tmp_path, bash()) as living:
        living.face.answer = answering(answer)
        session = await asking(living)
        assert (await run(session, living)).stop_reason == "stop"
        return results(session)[0], resolved(living.face)[0], len(living.tools[0].ran)


# --- answers --------------------------------------------------------------------------------------


async def test_a_question_tells_all_that_it_is_about(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        living.face.answer = answering(ALLOW)
        session = await asking(living)
        await run(session, living, prompt_id="p1")
        (asked,) = living.face.asked
        assert (asked.session_id, asked.prompt_id, asked.tool_call_id) == (session.session_id, "p1", "c0")
        assert (asked.tool_name, asked.kind, asked.subject) == ("bash", "execute", COMMAND)
        assert [o.kind for o in asked.options] == ["allow_once", "allow_always", "reject_once"]
        assert all(o.rule for o in asked.options if o.kind.endswith("_always"))
        (event,) = [e for e in living.face.events if isinstance(e, PermissionRequested)]
        assert dict(event) == {**dict(asked), "type": "permission_requested"}
        said = words(living.face.events)
        place = said.index("permission_requested")
        assert said[place - 1 : place + 3] == [
            "run(c0)",
            "permission_requested",
            "permission_resolved",
            "ran(c0)",
        ]


async def test_an_allow_runs_the_tool_once(tmp_path: Path) -> None:
    assert await answered(tmp_path, ALLOW) == (("echo ", False), ("allowed", "client", "allow_once"), 1)


async def test_a_rejection_is_told_to_the_model_and_the_run_goes_on(tmp_path: Path) -> None:
    assert await answered(tmp_path, REJECT) == ((REJECTED, True), ("rejected", "client", "reject_once"), 0)


async def test_the_users_own_words_reach_the_model(tmp_path: Path) -> None:
    answer = PermissionAnswer(option_id="reject_once", feedback=" use make test \n")
    (said, is_error), _, ran = await answered(tmp_path, answer)
    assert (said, is_error, ran) == (f"{REJECTED} They said: use make test", True, 0)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        PermissionAnswer(),
        PermissionAnswer(option_id="allow"),
        PermissionAnswer(option_id="allow_once", cancelled=True),
        PermissionAnswer(cancelled=True),
    ],
    ids=range(5),
)
async def test_anything_but_a_well_formed_allow_is_no_permission(tmp_path: Path, answer: Any) -> None:
    (_, is_error), (outcome, by, option), ran = await answered(tmp_path, answer)
    assert (is_error, outcome, by, option, ran) == (True, "rejected", "client", None, 0)


async def test_a_client_that_fails_to_answer_gives_no_permission(tmp_path: Path) -> None:
    async def fail(request: PermissionRequest) -> PermissionAnswer | None:
        raise RuntimeError("the client is broken")

    async with home(tmp_path, bash()) as living:
        living.face.answer = fail
        session = await asking(living)
        await run(session, living)
        assert session.get(None, 9).pending == ()
        assert resolved(living.face) == [("rejected", "client", None)]
        assert living.tools[0].ran == []


async def test_one_answer_covers_one_call(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        living.face.answer = answering(ALLOW)
        await run(await asking(living, calls=2), living)
        assert len(living.face.asked) == 2


async def test_an_answer_for_good_covers_the_same_again_and_nothing_else(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        living.face.answer = answering(ALWAYS)
        session = await asking(living, "done", calling(tool_call("x", "bash")), "done", calls=2)
        await run(session, living)
        assert len(living.face.asked) == 1
        living.tools[0].subject = CommandSubject(command="make; rm x", cwd="/w")
        await run(session, living)
        assert len(living.face.asked) == 2
        session_id = session.session_id
        living.tools[0].subject = COMMAND
        other = await asking(living)
        await run(other, living)
        assert len(living.face.asked) == 3, "another session knows nothing of it"
    async with home(tmp_path, bash()) as living:
        again = await living.sessions.open(session_id)
        await run(again, living, model=living.script(calling(tool_call("y", "bash")), "done"))
        assert living.face.asked == [], "it survives a restart"
        assert len(living.tools[0].ran) == 1


# --- the second view ------------------------------------------------------------------------------


async def waiting(living: Home) -> tuple[Session, str, list[PromptResult]]:
    """A session with an open question, its id, and where its prompt's result will be."""
    session = await asking(living)
    ended: list[PromptResult] = []

    async def ask() -> None:
        result = await session.prompt(prompt(prompt_id="p1"))
        assert isinstance(result, PromptResult)
        ended.append(result)

    living.house.start_soon(ask)
    await living.face.until("permission_requested")
    await _until(lambda: bool(living.face.asked))
    return session, living.face.asked[0].request_id, ended


async def _until(condition: Any) -> None:
    with anyio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - any state of the session, which tells no event
            await anyio.sleep(0.001)


async def test_an_open_question_stands_in_readings_and_the_session_waits(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session, request_id, ended = await waiting(living)
        reading = session.get(None, 200)
        assert [request.request_id for request in reading.pending] == [request_id]
        assert reading.session.state == "waiting"
        assert session.respond(request_id, ALLOW)
        await _until(lambda: ended)
        assert session.get(None, 200).pending == ()
        assert session.info.state == "idle"


async def test_the_first_answer_wins_and_the_client_is_told_to_stop_asking(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session, request_id, ended = await waiting(living)
        assert session.respond(request_id, ALLOW)
        assert not session.respond(request_id, REJECT), "also in the same step"
        await _until(lambda: ended)
        assert not session.respond(request_id, REJECT)
        assert living.face.withdrawn == [request_id]
        assert resolved(living.face) == [("allowed", "client", "allow_once")]
        assert results(session) == [("echo ", False)]


async def test_an_answer_that_the_question_does_not_have_is_refused_and_it_stays_open(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session, request_id, ended = await waiting(living)
        with pytest.raises(RpcError, match="allow_once") as caught:
            session.respond(request_id, PermissionAnswer(option_id="allow"))
        assert caught.value.kind == "invalidParams"
        assert len(session.get(None, 9).pending) == 1
        session.respond(request_id, REJECT)
        await _until(lambda: ended)


async def test_a_question_that_never_was_is_none_of_the_sessions(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session = await asking(living)
        assert not session.respond("q_unknown", ALLOW)


# --- withdrawn ------------------------------------------------------------------------------------


async def test_a_cancel_withdraws_the_question_before_the_run_closes(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session, request_id, ended = await waiting(living)
        answer = await session.cancel()
        assert (answer.state, answer.quiescent) == ("cancelled", True)
        assert living.face.withdrawn == [request_id]
        assert resolved(living.face) == [("cancelled", "cancel", None)]
        assert results(session) == [(ABORTED, True)]
        await _until(lambda: ended)
        assert not session.respond(request_id, ALLOW), "a late answer finds nothing"
        assert living.tools[0].ran == []
        assert_whole_journal(living.journal(session.session_id))


async def test_an_answer_in_the_same_step_as_a_cancel_runs_nothing(tmp_path: Path) -> None:
    for order in (0, 1):
        async with home(tmp_path / str(order), bash()) as living:
            session, request_id, ended = await waiting(living)

            async def cancel(session: Session = session) -> None:
                await session.cancel()

            if order:
                session.respond(request_id, ALLOW)
            living.house.start_soon(cancel)
            await anyio.lowlevel.checkpoint()
            if not order:
                session.respond(request_id, ALLOW)
            await _until(lambda ended=ended: ended)
            assert ended[0].stop_reason == "aborted"
            assert living.tools[0].ran == []
            assert_whole_journal(living.journal(session.session_id))


# --- judged anew ----------------------------------------------------------------------------------


async def test_a_new_mode_that_allows_it_answers_the_question(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session, request_id, ended = await waiting(living)
        session.update(SessionUpdateParams(session_id=session.session_id, mode="full"))
        await _until(lambda: ended)
        assert resolved(living.face) == [("allowed", "rule", None)]
        assert living.face.withdrawn == [request_id]
        assert results(session) == [("echo ", False)]


async def test_a_new_mode_that_forbids_it_answers_the_question_too(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session, _, ended = await waiting(living)
        session.update(SessionUpdateParams(session_id=session.session_id, mode="plan"))
        await _until(lambda: ended)
        assert resolved(living.face) == [("rejected", "rule", None)]
        assert living.tools[0].ran == []
        assert "plan" in results(session)[0][0]


async def test_a_new_mode_that_asks_as_well_leaves_it_open(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session, request_id, ended = await waiting(living)
        session.update(SessionUpdateParams(session_id=session.session_id, mode="edit"))
        await anyio.lowlevel.checkpoint()
        assert len(session.get(None, 9).pending) == 1
        session.respond(request_id, REJECT)
        await _until(lambda: ended)
        assert len(living.face.asked) == 1, "it is not put a second time"


async def test_trust_that_is_given_acts_at_the_next_turn(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        living.settings.trusted = False
        calls = [calling(tool_call(f"c{number}", "bash")) for number in range(2)]
        session = await living.new(*calls, "done", mode="full")
        ended: list[Any] = []

        async def ask() -> None:
            ended.append(await session.prompt(prompt()))

        living.house.start_soon(ask)
        await living.face.until("permission_requested")
        living.settings.trusted = True
        session.trust_changed()
        (question,) = session.get(None, 9).pending
        assert session.respond(question.request_id, ALLOW)
        await _until(lambda: ended)
        assert len(resolved(living.face)) == 1, "the second turn asks nothing"
        assert len(living.tools[0].ran) == 2


async def test_trust_that_is_taken_back_acts_at_the_next_call(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session = await living.new(
            calling(tool_call("a", "bash"), tool_call("b", "bash")), "done", mode="full"
        )

        async def revoke(arguments: Any, context: Any) -> ToolResult:
            living.settings.trusted = False
            session.trust_changed()
            return ToolResult.text("ok")

        living.tools[0].run = revoke
        living.face.answer = answering(ALLOW)
        await run(session, living)
        assert len(living.face.asked) == 1, "the first call was free, the second is asked about"


async def test_a_mode_for_one_run_holds_for_that_run(tmp_path: Path) -> None:
    async with home(tmp_path, bash()) as living:
        session = await asking(living, "done", calling(tool_call("x", "bash")), "done")
        await run(session, living, mode="plan")
        assert "plan" in results(session)[0][0]
        living.face.answer = answering(ALLOW)
        await run(session, living)
        assert len(living.face.asked) == 1
        assert session.info.mode == "ask"


async def test_a_tool_that_touches_nothing_asks_nothing(tmp_path: Path) -> None:
    async with home(tmp_path, FakeTool("bash", kind="read")) as living:
        session = await asking(living)
        await run(session, living)
        assert living.face.asked == []
        assert len(living.tools[0].ran) == 1
