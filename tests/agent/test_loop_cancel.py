"""A cancel at every wait of a run: it always ends, in order, and the session takes the next prompt."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from agent.event_order import assert_whole_run, words
from agent.loop_host import FakeTool, MemoryHost, calls, text
from agent.strict_history import faults

from agentd.agent import loop as loop_room
from agentd.agent import tool_calls
from agentd.agent.loop import Loop
from agentd.agent.request import project
from agentd.agent.tool_calls import ABORTED
from agentd.protocol.events import AgentEnd
from agentd.protocol.messages import AssistantMessage, TextContent, ToolResultMessage
from agentd.providers.base import ProviderError, StreamEnd, TextDelta, ToolCallDelta
from agentd.tools.base import ToolResult

ANSWER = ["start(assistant)", "end(assistant)"]


def last(host: MemoryHost) -> AssistantMessage:
    message = host.messages[-1]
    assert isinstance(message, AssistantMessage)
    return message


# --- everywhere -----------------------------------------------------------------------------------


def two_tools() -> MemoryHost:
    async def talk(arguments: Any, context: Any) -> ToolResult:
        await host.wait()
        await context.output("stdout", "working")
        await host.wait()
        return ToolResult.text("ran")

    async def look(arguments: Any) -> None:
        await host.wait()

    host = MemoryHost(
        [
            TextDelta(0, "ab"),
            ToolCallDelta(1, "{}", "a", "echo"),
            ToolCallDelta(2, "{}", "b", "echo"),
            StreamEnd("stop"),
        ],
        text("done"),
        text("next"),
        tools=[FakeTool(run=talk, before=look)],
    )
    return host


def failing() -> MemoryHost:
    return MemoryHost([TextDelta(0, "ab"), ProviderError("server", "broke")], text("next"))


def limited() -> MemoryHost:
    return MemoryHost(calls(("a", "echo", "{}")), text("next"), tools=[FakeTool()])


async def cancel_everywhere(make: Callable[[], MemoryHost], stop: Any, max_turns: int) -> int:
    """Play a run again and again with a cancel at its first wait, its second, and so on; give how many."""
    number = 0
    while True:
        number += 1
        host = make()
        loop = host.loop(max_turns=max_turns)
        in_time: list[bool] = []

        def act(wait: int, number: int = number, loop: Loop = loop, in_time: list[bool] = in_time) -> None:
            if wait == number:
                in_time.append(not loop.settled)
                loop.cancel(stop)

        host.at_wait = act
        end = await host.play(loop)
        if not in_time:
            return number - 1
        await check(host, loop, end, stop if in_time[0] else None)


async def check(host: MemoryHost, loop: Loop, end: AgentEnd, stop: str | None) -> None:
    assert_whole_run(host.events)
    assert loop.cancelled == (stop is not None)
    assert loop.quiescent
    if stop is not None:
        assert end.stop_reason == stop
        assert last(host).stop_reason == "aborted"
        assert end.error is None
    assert end.turns == len(host.provider.requests)
    assert host.provider.closed == len(host.provider.requests), "no connection is left open"
    told = [message.tool_call_id for message in host.messages if isinstance(message, ToolResultMessage)]
    assert len(told) == len(set(told))
    assert faults(project(host.messages)) == []
    # the next prompt works, with whatever response is left
    host.at_wait = lambda wait: None
    events = len(host.events)
    del host.provider.left[:-1]
    assert (await host.run("next")).stop_reason == "stop"
    assert faults(host.provider.requests[-1].messages) == []
    assert events < len(host.events)


@pytest.mark.parametrize("stop", ["aborted", "interrupted"])
async def test_a_cancel_at_any_wait_of_a_run_with_two_tools(stop: str) -> None:
    assert await cancel_everywhere(two_tools, stop, 100) > 40


async def test_a_cancel_at_any_wait_of_a_run_that_fails() -> None:
    assert await cancel_everywhere(failing, "aborted", 100) > 12


async def test_a_cancel_at_any_wait_of_a_run_that_meets_its_limit() -> None:
    assert await cancel_everywhere(limited, "aborted", 1) > 20


async def test_a_cancel_at_every_event_leaves_no_event_behind_the_end() -> None:
    for number in range(1, 60):
        host = two_tools()
        loop = host.loop()

        def act(event: Any, number: int = number, host: MemoryHost = host, loop: Loop = loop) -> None:
            if len(host.events) == number:
                loop.cancel()

        host.at_event = act
        await host.play(loop)
        assert_whole_run(host.events)
        if len(host.events) < number:
            return
    pytest.fail("the run has no end")


# --- the rows of the table ------------------------------------------------------------------------


async def test_a_cancel_before_the_run_began_asks_no_model() -> None:
    host = MemoryHost(text("never"))
    loop = host.loop()
    loop.cancel()
    end = await host.play(loop)
    assert words(host.events) == [
        "agent_start",
        "turn_start",
        "start(user)",
        "end(user)",
        *ANSWER,
        "turn_end",
        "agent_end(aborted)",
    ]
    assert (end.turns, last(host).content, host.provider.requests) == (0, (), [])


async def test_a_cancel_in_the_stream_keeps_the_text_so_far() -> None:
    host = MemoryHost(text("abcdef"))
    loop = host.loop()
    host.at_event = lambda event: loop.cancel() if words([event], live=True) == ["update(ab)"] else None
    end = await host.play(loop)
    assert words(host.events, live=True)[4:] == [
        "start(assistant)",
        "update(ab)",
        "end(assistant)",
        "turn_end",
        "agent_end(aborted)",
    ]
    assert last(host).content == (TextContent(text="ab"),)
    assert end.turns == 1


async def test_a_cancel_in_the_stream_drops_calls_whole_and_half() -> None:
    host = MemoryHost(
        [TextDelta(0, "ab"), ToolCallDelta(1, "{}", "a", "echo"), anyio.sleep_forever], tools=[FakeTool()]
    )
    loop = host.loop()
    host.at_wait = lambda wait: loop.cancel() if len(host.events) >= 7 else None
    await host.play(loop)
    assert last(host).content == (TextContent(text="ab"),)
    assert host.results == []


async def test_a_cancel_in_a_tool_ends_the_run_with_a_turn_of_its_own() -> None:
    async def cancelling(arguments: Any, context: Any) -> ToolResult:
        loop.cancel()
        return ToolResult.text("too late")

    host = MemoryHost(
        calls(("abort-1", "echo", "{}"), ("abort-2", "echo", "{}")),
        text("left"),
        tools=[FakeTool(run=cancelling)],
    )
    loop = host.loop()
    end = await host.play(loop)
    assert words(host.events)[4:] == [
        *ANSWER,
        "run(abort-1)",
        "ran(abort-1)",
        "start(tool_result)",
        "end(tool_result)",
        "turn_end",
        "turn_start",
        *ANSWER,
        "turn_end",
        "agent_end(aborted)",
    ]
    assert host.results == [("abort-1", ABORTED, True)]
    assert (last(host).content, last(host).error_message) == ((), "Tool loop aborted")
    assert (end.stop_reason, end.turns) == ("aborted", 1)
    assert len(host.provider.left) == 1


async def test_the_request_after_a_cancel_answers_every_call_once() -> None:
    await test_a_cancel_in_a_tool_ends_the_run_with_a_turn_of_its_own()
    host = MemoryHost(
        calls(("a", "echo", "{}"), ("b", "echo", "{}"), ("c", "echo", "{}")), text("next"), tools=[FakeTool()]
    )
    loop = host.loop()
    host.at_event = lambda event: loop.cancel() if words([event]) == ["run(b)"] else None
    await host.play(loop)
    await host.run("next")
    told = [m.tool_call_id for m in host.provider.requests[1].messages if isinstance(m, ToolResultMessage)]
    assert told == ["a", "b", "c"]


async def test_a_cancel_reaches_a_model_that_says_nothing() -> None:
    host = MemoryHost([anyio.sleep_forever], text("next"))
    loop = host.loop()
    host.at_wait = lambda wait: loop.cancel() if len(host.provider.requests) == 1 else None
    assert (await host.play(loop)).stop_reason == "aborted"
    assert host.provider.closed == 1


async def test_a_cancel_reaches_a_question() -> None:
    async def ask(call: Any) -> Any:
        loop.cancel()
        await anyio.sleep_forever()

    tool = FakeTool()
    host = MemoryHost(calls(("a", "echo", "{}")), tools=[tool])
    host.verdict = ask
    loop = host.loop()
    await host.play(loop)
    assert host.results == [("a", ABORTED, True)]
    assert tool.ran == []


async def test_a_cancel_reaches_a_run_that_waits_for_a_slow_client() -> None:
    host = MemoryHost(text("abcdef"))
    loop = host.loop()

    async def stalled() -> None:
        if len(host.events) == 6:
            loop.cancel()
            await anyio.sleep_forever()

    host.room = stalled  # type: ignore[method-assign]  # the slow client
    assert (await host.play(loop)).stop_reason == "aborted"
    assert_whole_run(host.events)


async def test_closing_never_waits_for_a_slow_client() -> None:
    host = MemoryHost(calls(("a", "echo", "{}")), tools=[FakeTool()])
    loop = host.loop()
    rooms: list[int] = []

    def act(event: Any) -> None:
        if words([event]) == ["run(a)"]:
            loop.cancel()
            rooms.append(host.rooms)

    host.at_event = act
    await host.play(loop)
    assert host.rooms == rooms[0]


async def test_a_second_cancel_and_one_that_is_too_late_change_nothing() -> None:
    host = MemoryHost(text("ok"))
    loop = host.loop()
    host.at_event = lambda event: loop.cancel() if words([event])[:1] == ["turn_end"] else None
    end = await host.play(loop)
    assert (end.stop_reason, loop.cancelled, loop.settled) == ("stop", False, True)
    loop.cancel()
    loop.cancel("interrupted")
    assert not loop.cancelled


async def test_the_first_reason_to_stop_counts() -> None:
    host = MemoryHost([anyio.sleep_forever])
    loop = host.loop()
    loop.cancel("interrupted")
    loop.cancel("aborted")
    assert (await host.play(loop)).stop_reason == "interrupted"


# --- tools that do not heed it --------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_calls, "ABANDON_SECONDS", 0.05)


@pytest.mark.usefixtures("impatient")
async def test_a_tool_that_ignores_the_cancel_is_left_behind_and_its_late_result_dropped() -> None:
    released = anyio.Event()

    async def deaf(arguments: Any, context: Any) -> ToolResult:
        with anyio.CancelScope(shield=True):
            started.set()
            await released.wait()
            await context.output("stdout", "too late")
        return ToolResult.text("too late")

    started = anyio.Event()
    host = MemoryHost(calls(("a", "echo", "{}")), text("next"), tools=[FakeTool(run=deaf)])
    loop = host.loop()

    async def cancel_when_it_runs() -> None:
        await started.wait()
        loop.cancel()

    counted: list[int] = []

    def after() -> None:
        counted.append(len(host.events))
        released.set()

    host.at_event = lambda event: (
        host.start_soon(cancel_when_it_runs) if words([event]) == ["run(a)"] else None
    )
    end = await host.play(loop, after=after)
    assert (end.stop_reason, loop.quiescent) == ("aborted", False)
    assert host.results == [("a", ABORTED, True)]
    assert len(host.events) == counted[0], "nothing of the tool comes behind the end"
    assert_whole_run(host.events)
    host.at_event = lambda event: None
    await host.run("next")
    assert host.results == [("a", ABORTED, True)]


async def test_a_deaf_tool_gets_less_patience_when_the_daemon_itself_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_calls, "ABANDON_SECONDS", 600.0)
    monkeypatch.setattr(loop_room, "ENDING_SECONDS", 0.05)
    released, started = anyio.Event(), anyio.Event()

    async def deaf(arguments: Any, context: Any) -> ToolResult:
        with anyio.CancelScope(shield=True):
            started.set()
            await released.wait()
        return ToolResult.text("too late")

    host = MemoryHost(calls(("a", "echo", "{}")), tools=[FakeTool(run=deaf)])
    loop = host.loop()

    async def end_when_it_runs() -> None:
        await started.wait()
        loop.cancel("interrupted")

    host.at_event = lambda event: host.start_soon(end_when_it_runs) if words([event]) == ["run(a)"] else None
    with anyio.fail_after(60):
        end = await host.play(loop, after=released.set)
    assert (end.stop_reason, loop.quiescent) == ("interrupted", False)


@pytest.mark.usefixtures("impatient")
async def test_a_tool_that_swallows_the_cancel_and_answers_is_too_late() -> None:
    started = anyio.Event()

    async def stubborn(arguments: Any, context: Any) -> ToolResult:
        started.set()
        try:
            await anyio.sleep_forever()
        except BaseException:
            return ToolResult.text("swallowed")

    host = MemoryHost(calls(("a", "echo", "{}")), tools=[FakeTool(run=stubborn)])
    loop = host.loop()

    async def cancel_when_it_runs() -> None:
        await started.wait()
        loop.cancel()

    host.at_event = lambda event: (
        host.start_soon(cancel_when_it_runs) if words([event]) == ["run(a)"] else None
    )
    await host.play(loop)
    assert host.results == [("a", ABORTED, True)]
    assert loop.quiescent


@pytest.mark.usefixtures("impatient")
async def test_a_tool_that_does_not_heed_the_cancel_while_it_prepares_is_left_behind_too() -> None:
    released = anyio.Event()

    async def deaf(arguments: Any) -> None:
        loop.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            await released.wait()
            return
        late.append("the run waited for it")

    late: list[str] = []
    tool = FakeTool(before=deaf)
    host = MemoryHost(calls(("a", "echo", "{}")), tools=[tool])
    loop = host.loop()
    await host.play(loop, after=released.set)
    assert late == []
    assert host.results == [("a", ABORTED, True)]
    assert tool.ran == []


# --- what is made stays made ------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["waits", "returns"])
async def test_what_a_tool_has_made_when_it_is_cancelled_is_its_result(end: str) -> None:
    async def makes(arguments: Any, context: Any) -> ToolResult:
        context.made(ToolResult.text("made"))
        loop.cancel()
        if end == "waits":
            await anyio.sleep_forever()
        return ToolResult.text("made, and looked at")

    host = MemoryHost(calls(("a", "echo", "{}")), tools=[FakeTool(run=makes)])
    loop = host.loop()
    assert (await host.play(loop)).stop_reason == "aborted"
    assert host.results == [("a", "made", False)]
    assert_whole_run(host.events)


async def test_a_tool_that_fails_behind_what_it_has_made_does_not_hide_it() -> None:
    async def makes(arguments: Any, context: Any) -> ToolResult:
        context.made(ToolResult.text("made"))
        raise ValueError("no look")

    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=makes)])
    await host.play(host.loop())
    (result,) = [m for m in host.messages if isinstance(m, ToolResultMessage)]
    said = [block.text for block in result.content if isinstance(block, TextContent)]
    assert (said, result.is_error) == (["made", 'Tool "echo" failed: no look'], False)
