"""Prompts that come while another one runs: queued, said in its run, in its place. None is lost or twice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from agent.event_order import words
from agent.loop_host import FakeTool
from fakes.pictures import block, picture
from sessions.prompting import Later, finished, later, refused
from sessions.session_home import Home, assert_whole_journal, calling, home, prompt, tool_call

from agentd.protocol.errors import RpcError
from agentd.protocol.events import AgentEnd, AgentStart, EventNotification, MessageEnd, Notice, QueueChanged
from agentd.protocol.messages import (
    AssistantMessage,
    CommandContent,
    EditDetails,
    FileChange,
    ImageContent,
    TextContent,
    UserMessage,
)
from agentd.protocol.methods import CancelParams, PromptAccepted, PromptResult, QueueUpdateParams
from agentd.providers.base import ModelRequest
from agentd.sessions.session import Session
from agentd.tools.base import ToolResult

CALL = calling(tool_call("a"))
EDITED = EditDetails(
    files=(FileChange(uri="file:///w/a", action="changed", patch="p", additions=1, deletions=0),)
)


class Held:
    """A session whose first prompt runs a tool until it is released."""

    def __init__(self, living: Home, session: Session, release: anyio.Event) -> None:
        self.living = living
        self.session = session
        self.release = release
        self.first = later(living, session, "first", prompt_id="p1")

    def beside(self, text: Any, prompt_id: str, **params: Any) -> Later:
        return later(self.living, self.session, text, prompt_id=prompt_id, **params)

    async def queued(self, text: str, prompt_id: str, when_busy: str = "queue") -> Later:
        """A prompt that stands in the queue now."""
        running = self.beside(text, prompt_id, when_busy=when_busy)
        with anyio.fail_after(10):
            while prompt_id not in self.ids:
                await anyio.lowlevel.checkpoint()
        return running

    @property
    def ids(self) -> list[str]:
        return [each.prompt_id for each in self.session.get(None, 1).queue]

    def update(self, op: Any, prompt_id: str | None = None, **more: Any) -> list[str]:
        params = QueueUpdateParams(session_id=self.session.session_id, op=op, prompt_id=prompt_id, **more)
        return [each.prompt_id for each in self.session.prompts.update_queue(params)]

    @property
    def requests(self) -> list[list[str]]:
        """What the user said, in each request."""
        return [said(request) for request in self.living.engines.scripted.requests]

    @property
    def starts(self) -> list[str | None]:
        return [sent.prompt_id for sent in self.living.face.sent if isinstance(sent.event, AgentStart)]


def said(request: ModelRequest) -> list[str]:
    return [
        block.text
        for message in request.messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, TextContent)
    ]


@asynccontextmanager
async def held(folder: Path, *responses: Any) -> AsyncIterator[Held]:
    release = anyio.Event()

    async def hold(arguments: Any, context: Any) -> ToolResult:
        await release.wait()
        return ToolResult.text("edited", EDITED)

    async with home(folder, FakeTool(run=hold, kind="edit")) as living:
        session = await living.new(CALL, *responses)
        busy = Held(living, session, release)
        await living.face.until("tool_execution_start")
        yield busy
        await living.close()
        assert_whole_journal(living.journal(session.session_id))


async def never(running: Later) -> PromptResult:
    """The result of a prompt that was taken out of the queue."""
    result = await running.result()
    assert isinstance(result, PromptResult), result
    assert (result.stop_reason, result.turns, result.text, result.message_id) == ("aborted", 0, "", None)
    return result


# --- queue ----------------------------------------------------------------------------------------


async def test_queued_prompts_run_in_order_after_the_one_that_runs(tmp_path: Path) -> None:
    async with held(tmp_path, "one", "two", "three") as busy:
        second, third = await busy.queued("second", "p2"), await busy.queued("third", "p3")
        assert busy.ids == ["p2", "p3"]
        assert (await refused(busy.session, "no", prompt_id="p4")).kind == "sessionBusy"
        busy.release.set()
        results = [await each.result() for each in (busy.first, second, third)]
        assert [(r.prompt_id, r.text) for r in results] == [("p1", "one"), ("p2", "two"), ("p3", "three")]
        assert busy.starts == ["p1", "p2", "p3"]
        assert busy.requests[1:] == [["first"], ["first", "second"], ["first", "second", "third"]]
        told = [e for e in busy.living.face.events if isinstance(e, QueueChanged)]
        assert [[q.prompt_id for q in each.queue] for each in told] == [["p2"], ["p2", "p3"], ["p3"], []]
        assert [q.prompt for q in told[1].queue] == [
            (TextContent(text="second"),),
            (TextContent(text="third"),),
        ]


async def test_nothing_of_the_next_run_comes_before_the_responses_of_the_last(tmp_path: Path) -> None:
    async with held(tmp_path, "one", "two") as busy:
        answered: list[str] = []
        joined = [busy.beside("first", "p1") for _ in range(3)]
        busy.beside([], "p2", when_busy="queue")  # which has nothing to go on from, and is told so at once
        await busy.living.face.until("queue_changed")
        await busy.queued("third", "p3")
        publish = busy.living.face.publish

        def note(notification: EventNotification) -> None:
            publish(notification)
            if isinstance(notification.event, AgentStart | Notice):
                answered.extend("late" for each in (busy.first, *joined) if not each.results)

        busy.living.face.publish = note  # type: ignore[method-assign]  # to look at that moment
        busy.release.set()
        await busy.living.face.until("agent_end", 2)
        assert answered == []
        assert busy.starts == ["p1", "p3"]
        assert [each.results[0].text for each in joined] == ["one"] * 3


async def test_a_queued_prompt_is_accepted_once_it_is_safe_and_joined_by_its_like(tmp_path: Path) -> None:
    async with held(tmp_path, "one", "two") as busy:
        wanted = prompt("second", prompt_id="p2", when_busy="queue", wait="accepted")
        accepted = await busy.session.prompt(wanted)
        assert isinstance(accepted, PromptAccepted)
        assert (accepted.outcome, accepted.seq) == ("queued", busy.session.info.seq)
        assert await busy.session.prompt(wanted) == accepted
        assert (
            await refused(busy.session, "other", prompt_id="p2", when_busy="queue")
        ).kind == "invalidParams"
        joined = busy.beside("second", "p2", when_busy="steer")
        await anyio.lowlevel.checkpoint()
        assert busy.ids == ["p2"]
        busy.release.set()
        assert (await joined.result()).text == "two"
        assert (await finished(busy.session, "second", prompt_id="p2")).text == "two"
        assert busy.starts == ["p1", "p2"]


async def test_wishes_of_a_queued_prompt_are_for_its_own_run(tmp_path: Path) -> None:
    async with held(tmp_path, "one", "three") as busy:
        other = busy.living.script("of the other model")
        queued = busy.beside("second", "p2", when_busy="queue", model=other)
        steer = busy.beside("by the way", "p3", when_busy="steer", model=other, mode="plan")
        await busy.living.face.until("queue_changed", 2)
        busy.release.set()
        assert (await steer.result()).text == "one", "a steer does not bring its model along"
        assert (await queued.result()).text == "of the other model"
        assert (await finished(busy.session, "third")).text == "three"


async def test_the_queue_is_full_at_thirty_two(tmp_path: Path) -> None:
    async with held(tmp_path) as busy:
        for number in range(32):
            await busy.queued(f"say {number}", f"q{number}", "steer" if number % 2 else "queue")
        for wish in ("queue", "steer"):
            error = await refused(busy.session, "one more", prompt_id="more", when_busy=wish)
            assert (error.kind, error.retryable) == ("queueFull", True)
        assert not busy.session.knows_prompt("more")
        assert len((await busy.session.cancel()).restored) == 32


@pytest.mark.parametrize("wish", ["queue", "steer", "interrupt"])
@pytest.mark.parametrize(
    ("text", "params", "kind"),
    [
        ([CommandContent(name="fix")], {}, "invalidParams"),
        ("go", {"model": "none/x"}, "noModel"),
        ("go", {"mode": "auto"}, "unsupported"),
        ([TextContent(text=" ")], {}, "invalidParams"),
    ],
)
async def test_a_prompt_that_could_not_run_is_refused_at_once_and_disturbs_nothing(
    tmp_path: Path, wish: str, text: Any, params: Any, kind: str
) -> None:
    async with held(tmp_path, "one") as busy:
        before = busy.session.info.seq
        if wish == "steer" and "model" in params:
            params = {"mode": "auto"}  # a steer is for the model that runs
            kind = "unsupported"
        assert (await refused(busy.session, text, when_busy=wish, **params)).kind == kind
        assert (busy.ids, busy.session.info.seq) == ([], before)
        busy.release.set()
        assert (await busy.first.result()).text == "one"


async def test_a_steer_has_to_say_something(tmp_path: Path) -> None:
    async with held(tmp_path, "one") as busy:
        assert (await refused(busy.session, [], when_busy="steer")).kind == "invalidParams"


async def test_a_queued_prompt_that_cannot_begin_any_more_is_told_and_the_next_runs(tmp_path: Path) -> None:
    async with held(
        tmp_path, {"content": [{"type": "text", "text": "cut"}], "stopReason": "length"}, "2"
    ) as busy:
        image = ImageContent(mime_type="image/png", data=block(picture())["data"])
        going_on = busy.beside([], "p2", when_busy="queue")
        again = busy.beside([], "p3", when_busy="queue")
        last = busy.beside([image], "p4", when_busy="queue", model=busy.living.script("seen"))
        await busy.living.face.until("queue_changed", 3)
        busy.release.set()
        assert (await going_on.result()).text == "2"
        assert (await again.result()).kind == "invalidParams", "the answer before it was complete"
        assert (await last.result()).text == "seen"
        notices = [e.message for e in busy.living.face.events if e.type == "notice"]
        assert ["could not begin" in each for each in notices] == [True]
        recalled = await finished(busy.session, [], prompt_id="p3")
        assert (recalled.stop_reason, recalled.error and recalled.error.kind) == ("error", "bad_request")


async def test_a_run_that_fails_does_not_stop_the_queue(tmp_path: Path) -> None:
    async with held(tmp_path, {"content": [], "error": {"kind": "quota", "message": "no"}}, "two") as busy:
        second = await busy.queued("second", "p2")
        busy.release.set()
        assert (await busy.first.result()).stop_reason == "error"
        assert (await second.result()).text == "two"


async def test_a_prompt_that_is_about_to_begin_waits_no_more(tmp_path: Path) -> None:
    """Between a run's end and the next `agent_start` the queue can change around the prompt that begins."""
    async with held(tmp_path, "one", "two", "five", "three", "four") as busy:
        second, third = await busy.queued("second", "p2"), await busy.queued("third", "p3")
        fifth = await busy.queued("fifth", "p5")
        changed: list[Any] = []
        start_soon = busy.living.house.start_soon

        async def change() -> None:
            assert busy.starts == ["p1"], "it has not begun"
            with pytest.raises(RpcError):
                busy.update("remove", "p2")
            changed.append(busy.update("move", "p5", index=0))
            assert busy.ids == ["p2", "p5", "p3"], "a kill that comes now finds it in the queue"
            changed.append(busy.beside("fourth", "p4", when_busy="queue"))

        def starting(function: Any, *args: Any) -> None:
            start_soon(function, *args)
            if not changed and getattr(function, "__name__", "") == "_drive":
                changed.append(None)
                start_soon(change)

        object.__setattr__(busy.living.house, "start_soon", starting)
        busy.release.set()
        assert [(await each.result()).text for each in (busy.first, second, third)] == ["one", "two", "three"]
        assert changed[1] == ["p5", "p3"]
        assert (await fifth.result()).text == "five"
        assert (await changed[2].result()).text == "four"
        assert busy.starts == ["p1", "p2", "p5", "p3", "p4"]


# --- steer ----------------------------------------------------------------------------------------


async def test_a_steer_is_said_right_after_the_next_turn_start(tmp_path: Path) -> None:
    async with held(tmp_path, "one", "two") as busy:
        steers = [await busy.queued(f"steer {n}", f"s{n}", "steer") for n in range(2)]
        mark = len(busy.living.face.events)
        busy.release.set()
        first = await busy.first.result()
        results = [await each.result() for each in steers]
        after = words(busy.living.face.events[mark:])
        turns = [after[n + 1 : n + 5] for n, word in enumerate(after) if word == "turn_start"]
        assert turns == [["start(user)", "end(user)", "queue_changed", "start(assistant)"]] * 2
        assert busy.requests == [["first"], ["first", "steer 0"], ["first", "steer 0", "steer 1"]]
        assert [(r.prompt_id, r.outcome, r.run_prompt_id, r.text) for r in results] == [
            ("s0", "steered", "p1", "two"),
            ("s1", "steered", "p1", "two"),
        ]
        assert (first.outcome, first.turns, results[0].seq) == (None, 3, first.seq)
        session_id = busy.session.session_id
        for n, result in enumerate(results):
            assert await finished(busy.session, f"steer {n}", prompt_id=f"s{n}") == result
    async with home(tmp_path) as living:
        again = await living.sessions.open(session_id)
        assert await finished(again, "steer 0", prompt_id="s0") == results[0]
        assert (await refused(again, "other", prompt_id="s0")).kind == "invalidParams"


async def test_a_steer_that_waits_at_an_answer_gets_one_more_turn(tmp_path: Path) -> None:
    """The steer arrives while the last answer streams: no call follows, and still the run goes on for it."""
    async with home(tmp_path) as living:
        session = await living.new("first answer", "second answer")
        steers: list[Later] = []
        publish = living.face.publish

        def steer(notification: EventNotification) -> None:
            publish(notification)
            if notification.event.type == "message_update" and not steers:
                steers.append(later(living, session, "wait", prompt_id="s1", when_busy="steer"))

        living.face.publish = steer  # type: ignore[method-assign]  # the user who speaks now
        result = await finished(session, "go", prompt_id="p1")
        assert (result.text, result.turns) == ("second answer", 2)
        assert (await steers[0].result()).outcome == "steered"
        assert [said(r) for r in living.engines.scripted.requests] == [["go"], ["go", "wait"]]
        assert_whole_journal(living.journal(session.session_id))


async def test_a_steer_at_any_event_is_said_once_in_that_run_or_the_next(tmp_path: Path) -> None:
    """Also behind the last word: there it starts its own run, behind `agent_end`."""
    outcomes: list[str] = []
    for number in range(1, 60):
        async with home(tmp_path / str(number)) as living:
            session = await living.new(CALL, "one", "two", "three")
            steer = await steer_at(living, session, number)
            if steer is None:
                break
            outcomes.append((await steer.result()).outcome or "started")
            assert said(living.engines.scripted.requests[-1]) == ["go", "wait"], number
            told = assert_whole_journal(living.journal(session.session_id))
            ends = [entry.event for entry in told if isinstance(entry.event, MessageEnd)]
            assert sum(isinstance(end.message, UserMessage) for end in ends) == 2
            assert session.get(None, 9).queue == ()
    assert outcomes[0] == "steered"
    assert outcomes[-1] == "started"
    assert outcomes == sorted(outcomes, reverse=True), "once it is too late it stays too late"


async def steer_at(living: Home, session: Session, number: int) -> Later | None:
    """Run a prompt and send a steer right behind its `number`-th event; None where it has fewer."""
    steers: list[Later] = []
    publish, before = living.face.publish, len(living.face.sent)

    def watch(notification: EventNotification) -> None:
        publish(notification)
        if len(living.face.sent) == before + number:
            steers.append(later(living, session, "wait", prompt_id="s1", when_busy="steer"))

    living.face.publish = watch  # type: ignore[method-assign]  # the user who speaks now
    await finished(session, "go", prompt_id="p1")
    return steers[0] if steers else None


async def test_a_steer_that_the_limit_of_turns_leaves_no_room_for_runs_next(tmp_path: Path) -> None:
    release = anyio.Event()

    async def hold(arguments: Any, context: Any) -> None:
        await release.wait()

    async with home(tmp_path, FakeTool(run=hold)) as living:
        session = await living.new(CALL, "later")
        first = later(living, session, prompt_id="p1", max_turns=1)
        await living.face.until("tool_execution_start")
        steer = later(living, session, "wait", prompt_id="s1", when_busy="steer")
        await living.face.until("queue_changed")
        release.set()
        assert (await first.result()).stop_reason == "max_turns"
        result = await steer.result()
        assert (result.text, result.outcome) == ("later", None)


async def test_steers_that_no_run_took_run_before_the_queue(tmp_path: Path) -> None:
    async with held(tmp_path, {"content": [], "error": {"kind": "quota", "message": "no"}}, "s", "q") as busy:
        queued = await busy.queued("second", "p2")
        busy.release.set()
        await busy.living.face.until("turn_start", 2)
        steer = busy.beside("wait", "s1", when_busy="steer")
        assert (await steer.result()).text == "s"
        assert (await queued.result()).text == "q"


async def test_a_steer_waits_with_nothing_in_its_way_for_a_run_that_is_being_cancelled(
    tmp_path: Path,
) -> None:
    async with held(tmp_path, "own run") as busy:
        cancelling = later_cancel(busy)
        await anyio.lowlevel.checkpoint()
        steer = busy.beside("wait", "s1", when_busy="steer")
        assert (await cancelling.result()).restored == ()
        assert (await steer.result()).text == "own run"
        assert busy.starts == ["p1", "s1"]


class later_cancel:  # noqa: N801 - reads like `later`
    """A cancel beside the test."""

    def __init__(self, busy: Held, **params: Any) -> None:
        self.answers: list[Any] = []
        self.done = anyio.Event()
        self._cancel = lambda: busy.session.cancel(**params)
        busy.living.house.start_soon(self._run)

    async def _run(self) -> None:
        self.answers.append(await self._cancel())
        self.done.set()

    async def result(self) -> Any:
        with anyio.fail_after(10):
            await self.done.wait()
        return self.answers[0]


# --- interrupt ------------------------------------------------------------------------------------


async def test_an_interruption_cancels_runs_ahead_of_the_queue_and_gives_steers_back(tmp_path: Path) -> None:
    async with held(tmp_path, "now", "then") as busy:
        queued = await busy.queued("then", "p2")
        steer = await busy.queued("unsaid", "s1", "steer")
        result = await finished(busy.session, "now", prompt_id="p3", when_busy="interrupt")
        assert (result.text, [each.prompt_id for each in result.restored or ()]) == ("now", ["s1"])
        assert (await busy.first.result()).stop_reason == "aborted"
        await never(steer)
        assert (await queued.result()).text == "then"
        assert busy.starts == ["p1", "p3", "p2"]
        assert "unsaid" not in str(busy.requests)


async def test_two_interruptions_at_once_run_one_after_the_other(tmp_path: Path) -> None:
    async with held(tmp_path, "x", "y") as busy:
        both = [busy.beside(f"now {n}", f"i{n}", when_busy="interrupt") for n in range(2)]
        results = [await each.result() for each in both]
        assert [r.stop_reason for r in results] == ["aborted", "stop"]
        assert busy.starts == ["p1", "i0", "i1"]


# --- cancel ---------------------------------------------------------------------------------------


async def test_a_cancel_gives_the_queue_back(tmp_path: Path) -> None:
    async with held(tmp_path) as busy:
        waiting = [await busy.queued("second", "p2"), await busy.queued("wait", "s1", "steer")]
        answer = await busy.session.cancel()
        assert (answer.state, answer.prompt_id) == ("cancelled", "p1")
        assert [(each.prompt_id, each.kind) for each in answer.restored] == [("p2", "queue"), ("s1", "steer")]
        assert answer.restored[0].prompt == (TextContent(text="second"),)
        for each in waiting:
            await never(each)
        assert busy.ids == []
        assert words(busy.living.face.events)[-3:] == ["turn_end", "queue_changed", "agent_end(aborted)"]
        assert busy.starts == ["p1"]
        assert (await busy.session.cancel()).restored == (), "once"
        session_id = busy.session.session_id
    async with home(tmp_path) as living:
        again = await living.sessions.open(session_id)
        assert (await finished(again, "second", prompt_id="p2")).stop_reason == "aborted"
        assert again.get(None, 1).queue == ()


async def test_the_end_of_a_cancelled_run_has_its_order(tmp_path: Path) -> None:
    async def edit(arguments: Any, context: Any) -> ToolResult:
        return ToolResult.text("edited", EDITED)

    async with home(tmp_path, FakeTool(run=edit, kind="edit")) as living:
        session = await living.new(CALL, {"content": [{"type": "text", "text": "so"}], "hang": True}, "next")
        order: list[str] = []

        async def first() -> None:
            await finished(session, prompt_id="p1")
            order.append("prompt answered")

        living.house.start_soon(first)
        await living.face.until("message_start", 4)
        later(living, session, "second", prompt_id="p2", when_busy="queue")
        await living.face.until("queue_changed")
        publish = living.face.publish

        def note(notification: EventNotification) -> None:
            publish(notification)
            order.extend(words([notification.event]))

        async def cancel() -> None:
            await session.cancel()
            order.append("cancel answered")

        living.face.publish = note  # type: ignore[method-assign]  # to note the order
        living.house.start_soon(cancel)
        await living.face.until("agent_end")
        await finished(session, "third", when_busy="queue")
        order = order[order.index("files_changed") :]
        assert order[:5] == [
            "files_changed",
            "queue_changed",
            "agent_end(aborted)",
            "prompt answered",
            "cancel answered",
        ]
        assert order[5] == "agent_start"


async def test_a_cancel_that_keeps_the_queue_gives_back_the_steers_only(tmp_path: Path) -> None:
    async with held(tmp_path, "two") as busy:
        second, steer = await busy.queued("second", "p2"), await busy.queued("wait", "s1", "steer")
        answer = await busy.session.cancel(keep_queue=True)
        assert [each.prompt_id for each in answer.restored] == ["s1"]
        await never(steer)
        assert (await second.result()).text == "two"


async def test_a_cancel_of_one_queued_prompt_takes_that_one_out(tmp_path: Path) -> None:
    async with held(tmp_path, "one", "three") as busy:
        second, third = await busy.queued("second", "p2"), await busy.queued("third", "p3")
        answer = await busy.session.cancel("p2")
        assert (answer.state, [each.prompt_id for each in answer.restored]) == ("cancelled", ["p2"])
        await never(second)
        assert busy.session.info.state == "running"
        busy.release.set()
        assert (await third.result()).text == "three"
        assert (await busy.session.cancel("p2")).state == "notRunning"


async def test_a_request_that_is_taken_back_takes_its_own_prompt_only(tmp_path: Path) -> None:
    async with held(tmp_path, "two") as busy:
        tickets: list[Any] = []

        async def asked(text: str, prompt_id: str, when_busy: Any) -> None:
            wanted = prompt(text, prompt_id=prompt_id, when_busy=when_busy)
            results.append(await busy.session.prompt(wanted, tickets.append))

        results: list[Any] = []
        busy.living.house.start_soon(asked, "second", "p2", "queue")
        busy.living.house.start_soon(asked, "third", "p3", "queue")
        busy.living.house.start_soon(asked, "wait", "s1", "steer")
        await busy.living.face.until("queue_changed", 3)
        for ticket in (tickets[0], tickets[2]):
            ticket.cancel()
        assert busy.ids == ["p3"]
        assert busy.session.info.state == "running"
        busy.beside("first", "p1")
        await busy.session.prompt(prompt("first", prompt_id="p1"), lambda taken: taken.cancel())
        assert (await busy.first.result()).stop_reason == "aborted"
        await busy.living.face.until("agent_end", 2)
        assert busy.starts == ["p1", "p3"], "the queue goes on"


async def test_a_late_cancel_takes_the_queue_all_the_same(tmp_path: Path) -> None:
    async with held(tmp_path, "one", "two") as busy:
        second = await busy.queued("second", "p2")
        cancels: list[later_cancel] = []
        publish = busy.living.face.publish

        def late(notification: EventNotification) -> None:
            publish(notification)
            event = notification.event
            if isinstance(event, AgentEnd) and not cancels:
                cancels.append(later_cancel(busy))

        busy.living.face.publish = late  # type: ignore[method-assign]  # the late user
        busy.release.set()
        assert (await busy.first.result()).text == "one"
        answer = await cancels[0].result()
        assert (answer.state, [each.prompt_id for each in answer.restored]) == ("notRunning", ["p2"])
        await never(second)
        assert busy.starts == ["p1"]


# --- queue/update ---------------------------------------------------------------------------------


async def test_the_queue_is_edited_moved_and_cleared(tmp_path: Path) -> None:
    async with held(tmp_path, "one", "x") as busy:
        waiting = [await busy.queued(f"say {n}", f"q{n}") for n in range(4)]
        assert busy.update("move", "q3", index=0) == ["q3", "q0", "q1", "q2"]
        assert busy.update("move", "q3", index=99) == ["q0", "q1", "q2", "q3"]
        seq = busy.session.info.seq
        assert busy.update("move", "q3", index=3) == ["q0", "q1", "q2", "q3"]
        assert busy.session.info.seq == seq, "nothing changed"
        assert busy.update("edit", "q1", prompt="other words") == ["q0", "q1", "q2", "q3"]
        assert busy.session.get(None, 1).queue[1].prompt == (TextContent(text="other words"),)
        joined = busy.beside("say 1", "q1", when_busy="queue")
        assert busy.update("remove", "q0") == ["q1", "q2", "q3"]
        await never(waiting[0])
        assert busy.update("run", "q3") == ["q3", "q1", "q2"]
        busy.update("remove", "q3")
        busy.update("remove", "q2")
        busy.release.set()
        assert (await joined.result()).text == "x", "it is the same prompt, edited"
        assert busy.requests[-1] == ["first", "other words"]


@pytest.mark.parametrize("index", [2, 3, 2**31, 2**70])
async def test_a_place_behind_the_end_is_the_last_one(tmp_path: Path, index: int) -> None:
    async with held(tmp_path) as busy:
        for number in range(3):
            await busy.queued(f"say {number}", f"q{number}")
        assert busy.update("move", prompt_id="q0", index=index) == ["q1", "q2", "q0"]


async def test_the_queue_is_cleared(tmp_path: Path) -> None:
    async with held(tmp_path, "one") as busy:
        waiting = [await busy.queued(f"say {n}", f"q{n}") for n in range(3)]
        assert busy.update("clear") == []
        for each in waiting:
            await never(each)
        assert busy.session.info.state == "running"
        busy.release.set()
        assert (await busy.first.result()).text == "one"
        assert busy.starts == ["p1"]


@pytest.mark.parametrize(
    ("op", "params", "kind"),
    [
        ("edit", {"prompt_id": "q9", "prompt": "x"}, "promptNotFound"),
        ("remove", {"prompt_id": "p1"}, "promptNotFound"),
        ("move", {"prompt_id": "q9", "index": 0}, "promptNotFound"),
        ("run", {"prompt_id": "q9"}, "promptNotFound"),
        ("remove", {}, "invalidParams"),
        ("edit", {"prompt_id": "q0"}, "invalidParams"),
        ("edit", {"prompt_id": "q0", "prompt": (TextContent(text=" "),)}, "invalidParams"),
        ("edit", {"prompt_id": "q0", "prompt": (CommandContent(name="x"),)}, "invalidParams"),
        ("move", {"prompt_id": "q0"}, "invalidParams"),
        ("edit", {"prompt_id": "s0", "prompt": ()}, "invalidParams"),
    ],
)
async def test_a_change_that_cannot_be_changes_nothing(
    tmp_path: Path, op: Any, params: dict[str, Any], kind: str
) -> None:
    async with held(tmp_path) as busy:
        await busy.queued("say", "q0")
        await busy.queued("wait", "s0", "steer")
        before = busy.session.info.seq, busy.session.get(None, 1).queue
        with pytest.raises(RpcError) as caught:
            busy.update(op, **params)
        assert caught.value.kind == kind
        assert (busy.session.info.seq, busy.session.get(None, 1).queue) == before


# --- restarts -------------------------------------------------------------------------------------


async def test_a_queue_stands_after_a_restart_and_runs_when_the_user_says_so(tmp_path: Path) -> None:
    async with held(tmp_path) as busy:
        for n in range(3):
            await busy.queued(f"say {n}", f"q{n}", "steer" if n == 1 else "queue")
        queue, session_id = busy.session.get(None, 1).queue, busy.session.session_id
    assert busy.first.results[0].stop_reason == "interrupted"
    async with home(tmp_path) as living:
        session = await living.sessions.open(session_id)
        again = Held.__new__(Held)
        again.living, again.session = living, session
        assert session.get(None, 1).queue == queue
        joined = later(living, session, "say 2", prompt_id="q2")
        model = living.script("fine", "two", "one", "zero", "end")
        session.update(session_model(session_id, model))
        assert (await finished(session, "a new one", prompt_id="n1")).text == "fine", (
            "it does not wait for them"
        )
        assert session.get(None, 1).queue == queue
        assert not joined.results
        again.update("run", "q2")
        assert (await joined.result()).text == "two"
        assert session.get(None, 1).queue == queue[:2]
        again.update("run")
        await living.face.until("agent_end", 4)
        assert again.starts == ["n1", "q2", "q1", "q0"], "the steer is first"
        assert session.get(None, 1).queue == ()
        assert (await finished(session, "say 0", prompt_id="q0")).text == "zero"


def session_model(session_id: str, model: str) -> Any:
    from agentd.protocol.methods import SessionUpdateParams

    return SessionUpdateParams(session_id=session_id, model=model)


async def test_a_cancel_empties_a_queue_that_stands(tmp_path: Path) -> None:
    async with held(tmp_path) as busy:
        await busy.queued("say", "q0")
        await busy.queued("say more", "q1")
        session_id = busy.session.session_id
    async with home(tmp_path) as living:
        one = CancelParams(session_id=session_id, prompt_id="q1", keep_queue=True)
        assert [each.prompt_id for each in (await living.sessions.cancel(one)).restored] == ["q1"]
        kept = await living.sessions.cancel(CancelParams(session_id=session_id, keep_queue=True))
        assert (kept.state, kept.restored) == ("notRunning", ())
        answer = await living.sessions.cancel(CancelParams(session_id=session_id))
        assert (answer.state, [each.prompt_id for each in answer.restored]) == ("notRunning", ["q0"])
        assert (await living.sessions.open(session_id)).get(None, 1).queue == ()


async def test_a_session_that_is_closed_keeps_its_queue(tmp_path: Path) -> None:
    async with held(tmp_path) as busy:
        waiting = [await busy.queued("say", "q0"), busy.beside("now", "i0", when_busy="interrupt")]
        await busy.living.sessions.close(busy.session.session_id)
        assert [(await each.result()).kind for each in waiting] == ["cancelled", "cancelled"]
        assert (await busy.first.result()).stop_reason == "aborted"
        again = await busy.living.sessions.open(busy.session.session_id)
        assert [each.prompt_id for each in again.get(None, 1).queue] == ["q0"]


async def test_a_kill_behind_any_record_loses_no_prompt_of_the_queue(tmp_path: Path) -> None:
    """Whatever was queued or steered stands in the queue, was said, or was taken out: never nowhere."""
    async with held(tmp_path / "whole", "one", "two", "three") as busy:
        second, steer = await busy.queued("second", "q2"), await busy.queued("wait", "s1", "steer")
        third = await busy.queued("third", "q3")
        busy.update("edit", "q3", prompt="third, edited")
        busy.release.set()
        for each in (second, steer, third):
            await each.result()
        session_id = busy.session.session_id
        source = busy.living.journal(session_id)
    lines = source.read_bytes().splitlines(keepends=True)
    texts = {"q2": "second", "s1": "wait", "q3": "third, edited"}
    cuts = next(n for n, line in enumerate(lines) if b'"q2"' in line)
    for number in range(cuts + 1, len(lines) + 1):
        folder = tmp_path / str(number)
        target = folder / "data" / "sessions" / source.parent.name / source.name
        target.parent.mkdir(parents=True)
        target.write_bytes(b"".join(lines[:number]))
        brought = b"".join(lines[:number])
        async with home(folder) as living:
            session = await living.sessions.open(session_id)
            reading = session.get(None, 99)
            told = [e.event for e in living.face.sent if isinstance(e.event, QueueChanged)]
            spoken = [b.text for m in reading.messages if isinstance(m, UserMessage) for b in m.content]  # type: ignore[union-attr]
            standing = {each.prompt_id: each.prompt[0].text for each in reading.queue}  # type: ignore[union-attr]
            for prompt_id, text in texts.items():
                if f'"{prompt_id}"'.encode() not in brought:
                    continue
                places = [
                    spoken.count(text) + spoken.count("third") * (prompt_id == "q3"),
                    prompt_id in standing,
                ]
                assert sum(places) == 1, (number, prompt_id, spoken, standing)
            if told:
                assert told[-1].queue == reading.queue
            assert_whole_journal(target)
            last = reading.messages[-1]
            assert isinstance(last, AssistantMessage), number
