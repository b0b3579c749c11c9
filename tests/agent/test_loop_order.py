"""The order of events, row by row of the protocol's table, and what the model is told."""

from dataclasses import replace
from typing import Any

import pytest
from agent.event_order import words
from agent.loop_host import FakeTool, MemoryHost, Play, calls, text, thought
from agent.strict_history import faults

from agentd.agent.host import NotJournaled
from agentd.agent.loop import MAX_CUT_RESPONSES
from agentd.agent.request import GO_ON, project
from agentd.agent.retry import MAX_ATTEMPTS
from agentd.agent.tool_calls import OUTPUT_LIMIT
from agentd.protocol.events import MessageEnd, MessageStart, MessageUpdate, ToolExecutionStart, TurnEnd
from agentd.protocol.messages import AssistantMessage, TextContent, ToolCall, Usage
from agentd.providers.base import Model, ProviderError, StreamEnd, TextDelta, ToolCallDelta

OPENING = ["agent_start", "turn_start", "start(user)", "end(user)"]
ANSWER = ["start(assistant)", "end(assistant)"]


def ran(call_id: str) -> list[str]:
    return [f"run({call_id})", f"ran({call_id})", "start(tool_result)", "end(tool_result)"]


def last(host: MemoryHost) -> AssistantMessage:
    message = host.messages[-1]
    assert isinstance(message, AssistantMessage)
    return message


async def test_a_plain_answer() -> None:
    host = MemoryHost(text("hello"))
    end = await host.run()
    assert words(host.events, live=True) == [
        *OPENING,
        "start(assistant)",
        "update(he)",
        "update(ll)",
        "update(o)",
        "end(assistant)",
        "turn_end",
        "agent_end(stop)",
    ]
    assert [message.role for message in host.messages] == ["user", "assistant"]
    assert (last(host).text, last(host).provider, last(host).model) == ("hello", "fake", "one")
    assert (end.turns, end.error, end.usage) == (1, None, None)
    assert len(host.provider.requests) == 1
    assert host.provider.closed == 1


async def test_one_tool_call() -> None:
    tool = FakeTool()
    host = MemoryHost(calls(("call-1", "echo", '{"value": "hello"}')), text("done"), tools=[tool])
    end = await host.run()
    assert words(host.events) == [
        *OPENING,
        *ANSWER,
        *ran("call-1"),
        "turn_end",
        "turn_start",
        *ANSWER,
        "turn_end",
        "agent_end(stop)",
    ]
    assert tool.ran == [{"value": "hello"}]
    assert host.results == [("call-1", "echo hello", False)]
    asked = host.provider.requests[1]
    assert [message.role for message in asked.messages] == ["user", "assistant", "tool_result"]
    assert [spec.name for spec in asked.tools] == ["echo"]
    assert end.turns == 2
    assert host.provider.left == []


async def test_tools_run_one_after_another_in_the_order_of_the_calls() -> None:
    host = MemoryHost(
        calls(("a", "echo", "{}"), ("b", "missing", "{}"), ("c", "echo", "{}")),
        text("ok"),
        tools=[FakeTool()],
    )
    await host.run()
    assert words(host.events)[6:-6] == [*ran("a"), *ran("b"), *ran("c")]
    turn_end = next(event for event in host.events if isinstance(event, TurnEnd))
    assert len(turn_end.tool_result_ids) == 3
    assert turn_end.stop_reason == "tool_use"


async def test_the_assistant_message_is_in_the_transcript_before_its_first_tool_runs() -> None:
    seen: list[str] = []

    async def look(arguments: Any, context: Any) -> None:
        seen.extend(message.role for message in host.messages)

    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=look)])
    await host.run()
    assert seen == ["user", "assistant"]


async def test_going_on_adds_no_user_message() -> None:
    host = MemoryHost(text("one"), text("two"))
    await host.run()
    start = len(host.events)
    end = await host.run(None)
    assert words(host.events[start:]) == ["agent_start", "turn_start", *ANSWER, "turn_end", "agent_end(stop)"]
    assert len(end.message_ids) == 1
    assert host.provider.requests[1].messages[-1].content == (TextContent(text=GO_ON),)


async def test_no_update_repeats_what_was_said_before() -> None:
    said = "word " * 200
    host = MemoryHost(text(said, 5))
    await host.run()
    deltas = [event.update.delta for event in host.events if isinstance(event, MessageUpdate)]
    assert "".join(deltas) == said


async def test_a_response_without_any_content_still_has_a_message() -> None:
    host = MemoryHost([StreamEnd("stop")], text("again"))
    await host.run()
    assert words(host.events)[4:] == [*ANSWER, "turn_end", "agent_end(stop)"]
    await host.run("next")
    assert [message.role for message in host.provider.requests[1].messages] == ["user", "user"]


async def test_thinking_alone_is_an_answer_that_no_request_repeats() -> None:
    host = MemoryHost(thought("hm"), text("again"))
    assert (await host.run()).stop_reason == "stop"
    await host.run("next")
    assert [message.role for message in host.provider.requests[1].messages] == ["user", "user"]


@pytest.mark.parametrize("stop", ["stop", "length", "refusal"])
async def test_a_run_ends_as_its_last_response_did(stop: Any) -> None:
    host = MemoryHost([TextDelta(0, "x"), StreamEnd(stop)])
    assert (await host.run()).stop_reason == stop
    assert last(host).stop_reason == stop


async def test_a_refusal_says_why_where_the_model_does() -> None:
    host = MemoryHost([StreamEnd("refusal", reason="local: I do not write that. (cyber)")])
    end = await host.run()
    assert (end.stop_reason, last(host).stop_reason) == ("refusal", "refusal")
    assert end.error is not None
    assert (end.error.kind, end.error.retryable) == ("refusal", False)
    assert end.error.message == last(host).error_message == "local: I do not write that. (cyber)"


async def test_a_promise_of_calls_without_any_ends_the_run() -> None:
    host = MemoryHost([TextDelta(0, "I will"), StreamEnd("tool_use")], text("never"))
    assert (await host.run()).stop_reason == "stop"
    assert len(host.provider.requests) == 1


async def test_calls_count_though_the_server_says_that_it_just_stopped() -> None:
    host = MemoryHost(calls(("a", "echo", "{}"), stop="stop"), text("ok"), tools=[FakeTool()])
    await host.run()
    assert host.results == [("a", "echo ", False)]


# --- the provider fails ---------------------------------------------------------------------------

OVERLOADED = ProviderError("overloaded", "fake: overloaded", retryable=True, retry_after_ms=5)
REFUSED = ProviderError("bad_request", "fake: no such model")


async def test_a_failure_before_any_text() -> None:
    host = MemoryHost([REFUSED], text("fine"))
    end = await host.run()
    assert words(host.events) == [*OPENING, *ANSWER, "turn_end", "agent_end(error)"]
    assert (last(host).content, last(host).stop_reason) == ((), "error")
    assert last(host).error_message == "fake: no such model"
    assert end.error is not None
    assert (end.error.kind, end.error.retryable, end.error.retry_after_ms) == ("bad_request", False, None)
    assert (await host.run("again")).stop_reason == "stop"


async def test_a_failure_after_text_keeps_the_text_and_drops_half_calls() -> None:
    response: list[Play] = [TextDelta(0, "half"), ToolCallDelta(1, '{"va', "a", "echo"), REFUSED]
    host = MemoryHost(response, text("fine"), tools=[FakeTool()])
    assert (await host.run()).stop_reason == "error"
    assert last(host).content == (TextContent(text="half"),)
    assert host.results == []
    await host.run("again")
    assert [m.role for m in host.provider.requests[1].messages] == ["user", "user"]


async def test_a_failure_of_a_later_turn_keeps_what_came_before() -> None:
    host = MemoryHost(calls(("a", "echo", "{}")), [REFUSED], text("fine"), tools=[FakeTool()])
    end = await host.run()
    assert (end.stop_reason, end.turns) == ("error", 2)
    await host.run("again")
    assert [m.role for m in host.provider.requests[2].messages] == [
        "user",
        "assistant",
        "tool_result",
        "user",
    ]


async def test_a_stream_that_just_ends_is_a_protocol_error() -> None:
    host = MemoryHost(*[[TextDelta(0, "half")]] * MAX_ATTEMPTS)
    host.sources = replace(host.sources, jitter=lambda: -1.0)  # no time at all
    end = await host.run()
    assert end.error is not None
    assert (end.error.kind, end.error.retryable) == ("protocol", True)
    assert last(host).text == "half"


@pytest.mark.parametrize(
    "error", [RuntimeError("secret detail"), ValueError(), ExceptionGroup("g", [OSError()])]
)
async def test_a_provider_with_a_fault_of_its_own_ends_the_run_in_good_order(error: Exception) -> None:
    host = MemoryHost([TextDelta(0, "half"), error], text("fine"))
    end = await host.run()
    assert end.error is not None
    assert end.error.kind == "internal"
    assert "secret detail" not in end.error.message
    assert (last(host).text, last(host).stop_reason) == ("half", "error")
    assert host.provider.closed == 1
    assert (await host.run("again")).stop_reason == "stop"


async def test_a_fault_while_the_run_opens_ends_it_in_good_order() -> None:
    host = MemoryHost(text("fine"))
    host.system_prompt = lambda: 1 / 0  # type: ignore[assignment,return-value]  # the fault
    assert (await host.run()).stop_reason == "error"


# --- limits ---------------------------------------------------------------------------------------


async def test_the_limit_of_turns_ends_the_run_with_a_last_word() -> None:
    responses = [calls((None, "echo", "{}")) for _ in range(5)]
    host = MemoryHost(*responses, text("fine"), tools=[FakeTool()])
    end = await host.run(max_turns=3)
    assert words(host.events)[-6:] == ["turn_end", "turn_start", *ANSWER, "turn_end", "agent_end(max_turns)"]
    assert len(host.provider.requests) == end.turns == 3
    assert last(host).error_message == "Maximum iteration limit reached."
    assert (last(host).content, last(host).stop_reason, end.error) == ((), "error", None)
    assert faults(project(host.messages)) == []


async def test_one_turn_is_enough_for_an_answer() -> None:
    host = MemoryHost(text("ok"))
    assert (await host.run(max_turns=1)).stop_reason == "stop"


async def test_a_call_that_the_output_limit_cut_is_told_to_the_model_and_not_run() -> None:
    tool = FakeTool()
    host = MemoryHost(
        calls(("a", "echo", "{}"), ("b", "echo", '{"va'), stop="length"), text("smaller"), tools=[tool]
    )
    assert (await host.run()).stop_reason == "stop"
    assert host.results == [("a", "echo ", False), ("b", OUTPUT_LIMIT.format(name="echo"), True)]
    assert len(tool.ran) == 1


async def test_the_model_is_told_of_cut_calls_only_so_often() -> None:
    cut = calls((None, "echo", '{"va'), stop="length")
    tool = FakeTool()
    host = MemoryHost(*[cut] * 10, tools=[tool])
    end = await host.run()
    assert end.stop_reason == "length"
    assert len(host.provider.requests) == MAX_CUT_RESPONSES + 1
    assert len(host.results) == MAX_CUT_RESPONSES
    assert tool.ran == []
    assert faults(project(host.messages)) == []


async def test_a_whole_response_in_between_begins_the_count_anew() -> None:
    cut, whole = calls((None, "echo", '{"va'), stop="length"), calls((None, "echo", "{}"))
    host = MemoryHost(cut, cut, whole, cut, cut, text("ok"), tools=[FakeTool()])
    assert (await host.run()).stop_reason == "stop"


# --- ids, usage, engine ---------------------------------------------------------------------------


async def test_two_calls_of_one_id_are_two_calls() -> None:
    host = MemoryHost(calls(("a", "echo", "{}"), ("a", "echo", "{}")), text("ok"), tools=[FakeTool()])
    await host.run()
    assert [call_id for call_id, _, _ in host.results] == ["a", "a~2"]


async def test_an_id_that_comes_again_in_a_later_turn_is_another_call() -> None:
    host = MemoryHost(calls(("a", "echo", "{}")), calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool()])
    await host.run()
    assert [call_id for call_id, _, _ in host.results] == ["a", "a~2"]
    assert faults(host.provider.requests[2].messages) == []


async def test_an_unknown_tool_has_all_its_events_and_the_run_goes_on() -> None:
    host = MemoryHost(calls(("a", "missing", "{}")), text("ok"))
    assert (await host.run()).stop_reason == "stop"
    assert host.results == [("a", 'Unknown tool "missing".', True)]
    assert words(host.events)[6:10] == ran("a")


async def test_usage_is_told_per_response_and_summed_for_the_run() -> None:
    first, second = Usage(input=1, output=2, total=3), Usage(input=10, output=20, cache_read=5, total=35)
    host = MemoryHost(
        [ToolCallDelta(0, "{}", "a", "echo"), StreamEnd("tool_use", first)],
        [TextDelta(0, "x"), StreamEnd("stop", second)],
        tools=[FakeTool()],
    )
    host.model = Model("fake", "one", context_window=1000)
    end = await host.run()
    per_turn = [event.usage for event in host.events if isinstance(event, TurnEnd)]
    assert [(u.total, u.context_tokens, u.context_window) for u in per_turn if u] == [
        (3, 3, 1000),
        (35, 35, 1000),
    ]
    assert end.usage is not None
    assert (end.usage.input, end.usage.output, end.usage.cache_read, end.usage.total) == (11, 22, 5, 38)
    assert end.usage.context_tokens == 35


async def test_usage_of_a_response_that_failed_counts_too() -> None:
    error = ProviderError("server", "broke", usage=Usage(input=7, total=7))
    host = MemoryHost([error])
    end = await host.run()
    assert end.usage is not None
    assert end.usage.total == 7


async def test_a_change_of_model_acts_at_the_next_turn() -> None:
    async def switch(arguments: Any, context: Any) -> Any:
        host.model = Model("fake", "two")

    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=switch)])
    await host.run()
    assert [request.model.name for request in host.provider.requests] == ["one", "two"]
    starts = [e.message.model for e in host.events if isinstance(e, MessageStart) and e.message.model]
    assert starts == ["fake/one", "fake/two"]


async def test_provider_data_stays_with_its_message() -> None:
    host = MemoryHost([TextDelta(0, "x"), StreamEnd("stop", provider_data={"signature": "c2ln"})])
    await host.run()
    assert last(host).provider_data == {"signature": "c2ln"}


# --- what cannot be journaled ---------------------------------------------------------------------


@pytest.mark.parametrize("number", range(14))
async def test_a_run_that_cannot_be_journaled_says_so_and_sends_nothing_more(number: int) -> None:
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok", 9), tools=[FakeTool()])
    emit = host.emit

    async def refuse(event: Any) -> None:
        if len(host.events) >= number:
            raise NotJournaled("disk full")
        await emit(event)

    host.emit = refuse  # type: ignore[method-assign]  # the fault
    with pytest.raises(NotJournaled):
        await host.play(host.loop())
    assert len(host.events) == number


async def test_a_question_that_cannot_be_journaled_ends_the_run_too() -> None:
    """It is the journal that failed, not the tool: the model must not be told of a failed tool."""

    async def refuse(call: ToolCall) -> Any:
        raise NotJournaled("disk full")

    tool = FakeTool()
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[tool])
    host.verdict = refuse
    with pytest.raises(NotJournaled):
        await host.play(host.loop())
    assert tool.ran == []


async def test_the_start_of_a_call_shows_what_will_run() -> None:
    host = MemoryHost(calls(("a", "echo", '{"value": "x"}')), text("ok"), tools=[FakeTool()])
    await host.run()
    start = next(event for event in host.events if isinstance(event, ToolExecutionStart))
    assert (start.title, start.kind, start.arguments) == ("echo x", "execute", {"value": "x"})


async def test_arguments_that_a_tool_changes_stay_as_they_were_in_the_transcript() -> None:
    async def spoil(arguments: dict[str, Any], context: Any) -> Any:
        arguments["value"] = "spoilt"

    host = MemoryHost(calls(("a", "echo", '{"value": "x"}')), text("ok"), tools=[FakeTool(run=spoil)])
    await host.run()
    ended = [
        e.message
        for e in host.events
        if isinstance(e, MessageEnd) and isinstance(e.message, AssistantMessage)
    ]
    assert ended[0].calls[0].arguments == {"value": "x"}


async def test_an_answer_without_end_is_not_read_for_ever_and_what_was_said_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentd.agent.exchange.MOST_SAID", 2**20)
    words = [TextDelta(0, "x" * 2**18)] * 1000
    host = MemoryHost(words)
    end = await host.run()
    assert end.stop_reason == "error"
    assert end.error is not None
    assert (end.error.kind, end.error.retryable) == ("protocol", False)
    assert "longer than 1 MB" in end.error.message
    (block,) = host.transcript[-1].content
    assert len(block.text) == 2**20 + 2**18


async def test_calls_without_end_are_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentd.agent.exchange.MOST_SAID", 2**20)
    endless = [ToolCallDelta(number, "", f"c{number}", "echo") for number in range(5000)]
    host = MemoryHost(endless, tools=[FakeTool()])
    end = await host.run()
    assert end.error is not None
    assert "longer than 1 MB" in end.error.message
    assert host.transcript[-1].content == ()
