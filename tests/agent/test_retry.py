"""A request that failed in passing is sent again: when, how often, and what is told of it."""

from dataclasses import replace
from typing import Any

import anyio
import pytest
from agent.event_order import assert_whole_run, words
from agent.loop_host import FakeTool, MemoryHost, Play, calls, text

from agentd.agent import retry
from agentd.agent.retry import MAX_ATTEMPTS, GiveUp, Wait, after
from agentd.protocol.events import MessageReset, MessageUpdate, Retry
from agentd.protocol.messages import AssistantMessage, ErrorKind
from agentd.providers.base import ProviderError, TextDelta, ToolCallDelta


def failure(kind: ErrorKind = "overloaded", retry_after_ms: int | None = 0, **more: Any) -> ProviderError:
    return ProviderError(kind, "fake: busy", retryable=True, retry_after_ms=retry_after_ms, **more)


def host_of(*responses: list[Play], tools: Any = ()) -> MemoryHost:
    return MemoryHost(*responses, tools=tools)


# --- when -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jitter", "delays"), [(0.0, [250, 500, 1000, 2000]), (1.0, [500, 1000, 2000, 4000])]
)
def test_the_wait_doubles_and_is_spread(jitter: float, delays: list[int]) -> None:
    error = failure(retry_after_ms=None)
    assert [after(error, attempt, jitter) for attempt in range(1, MAX_ATTEMPTS)] == [Wait(d) for d in delays]


def test_the_wait_never_exceeds_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "MAX_ATTEMPTS", 100)
    assert after(failure(retry_after_ms=None), 50, 1.0) == Wait(30_000)


@pytest.mark.parametrize("asked", [0, 1, 2000, 120_000])
def test_the_server_says_how_long_first(asked: int) -> None:
    assert after(failure(retry_after_ms=asked), 1, 0.5) == Wait(asked)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (120_001, "2 min 0 s"),
        (3_599_000, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
        (100_000_000, "27 h 46 min"),
    ],
)
def test_a_wait_of_more_than_two_minutes_is_told_instead(asked: int, told: str) -> None:
    decision = after(failure("rate_limit", asked, status=429), 1, 0.5)
    assert isinstance(decision, GiveUp)
    assert decision.error.message == f"fake: busy. The server asks to wait {told}: try again then."
    assert (decision.error.kind, decision.error.retry_after_ms) == ("rate_limit", asked)


def test_what_is_not_retryable_is_not_sent_again() -> None:
    error = ProviderError("auth", "fake: wrong key")
    assert after(error, 1, 0.5) == GiveUp(error)


def test_no_request_is_sent_more_often_than_the_limit() -> None:
    error = failure()
    assert after(error, MAX_ATTEMPTS, 0.5) == GiveUp(error)


# --- what the loop makes of it --------------------------------------------------------------------


async def test_a_failure_before_any_text_is_told_before_the_message_begins() -> None:
    host = host_of([failure()], [failure()], text("fine"))
    end = await host.run()
    assert_whole_run(host.events)
    assert words(host.events)[4:] == [
        "retry",
        "retry",
        "start(assistant)",
        "end(assistant)",
        "turn_end",
        "agent_end(stop)",
    ]
    told = [event for event in host.events if isinstance(event, Retry)]
    assert [(event.attempt, event.max_attempts, event.delay_ms) for event in told] == [(1, 5, 0), (2, 5, 0)]
    assert told[0].reason == "fake: busy"
    assert (end.stop_reason, end.turns) == ("stop", 1), "an attempt is no turn"
    assert len(host.provider.requests) == 3


async def test_text_that_was_shown_is_taken_back_and_said_once() -> None:
    broken: list[Play] = [TextDelta(0, "half of"), ToolCallDelta(1, '{"va', "a", "echo"), failure()]
    host = host_of(broken, text("the whole"), tools=[FakeTool()])
    await host.run()
    assert_whole_run(host.events)
    kinds = [type(event) for event in host.events]
    assert kinds.index(MessageReset) + 1 == kinds.index(Retry), "reset, then retry"
    (reset,) = [event for event in host.events if isinstance(event, MessageReset)]
    answer = host.messages[-1]
    assert isinstance(answer, AssistantMessage)
    assert (answer.message_id, answer.text, answer.calls) == (reset.message_id, "the whole", ())
    again = [e for e in host.events[kinds.index(Retry) :] if isinstance(e, MessageUpdate)]
    assert again[0].update.offset == 0
    assert host.results == [], "a call of a broken answer never runs"


async def test_when_every_attempt_fails_the_run_ends_with_the_last_error() -> None:
    host = host_of(*[[TextDelta(0, f"try {number}"), failure()] for number in range(MAX_ATTEMPTS)])
    end = await host.run()
    assert_whole_run(host.events)
    assert len(host.provider.requests) == MAX_ATTEMPTS
    assert end.stop_reason == "error"
    assert end.error is not None
    assert end.error.kind == "overloaded"
    answer = host.messages[-1]
    assert isinstance(answer, AssistantMessage)
    assert answer.text == "try 4"


async def test_each_turn_has_its_own_attempts() -> None:
    failing = [[failure()]] * (MAX_ATTEMPTS - 1)
    host = host_of(*failing, calls(("a", "echo", "{}")), *failing, text("done"), tools=[FakeTool()])
    end = await host.run()
    assert (end.stop_reason, end.turns) == ("stop", 2)


@pytest.mark.parametrize("said", [[], [TextDelta(0, "half")]])
async def test_a_cancel_during_the_wait_sends_no_further_request(said: list[Play]) -> None:
    host = host_of([*said, failure(retry_after_ms=60_000)], text("never"))
    loop = host.loop()
    host.at_event = lambda event: loop.cancel() if isinstance(event, Retry) else None
    with anyio.fail_after(10):
        end = await host.play(loop)
    assert_whole_run(host.events)
    assert end.stop_reason == "aborted"
    assert len(host.provider.requests) == 1
    answer = host.messages[-1]
    assert isinstance(answer, AssistantMessage)
    assert (answer.content, answer.stop_reason) == ((), "aborted"), "what was taken back is not said"


async def test_the_jitter_is_passed_in() -> None:
    host = host_of([failure(retry_after_ms=None)], text("fine"))
    host.sources = replace(host.sources, jitter=lambda: -1.0)
    await host.run()
    (told,) = [event for event in host.events if isinstance(event, Retry)]
    assert told.delay_ms == 0


def test_an_error_that_is_told_instead_of_a_wait_still_says_whose_it_is() -> None:
    decision = after(failure("rate_limit", 3_600_000, status=429, code="c", request_id="r"), 1, 0.5)
    assert isinstance(decision, GiveUp)
    assert (decision.error.status, decision.error.code, decision.error.request_id) == (429, "c", "r")
