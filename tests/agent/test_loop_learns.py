"""What a run learns of its model beside the answer: its window, and whether its prompts are cut."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from agent.event_order import words
from agent.loop_host import MemoryHost, Play, text
from agent.test_compaction import history

from agentd.agent.tokens import of_messages
from agentd.protocol.events import Notice
from agentd.protocol.messages import Usage
from agentd.providers.base import Model, ProviderError, StreamEnd, TextDelta

OLLAMA = Model("ollama", "qwen3", cuts_prompts=True)
LONG = "the quick brown fox jumps over a lazy dog " * 2000


def counting(tokens: int) -> list[Play]:
    """An answer whose prompt had that many tokens, says the server."""
    return [TextDelta(0, "done"), StreamEnd("stop", Usage(input=tokens))]


def host_at(*responses: Sequence[Play]) -> MemoryHost:
    host = MemoryHost(*responses)
    host.model = OLLAMA
    return host


def notices(host: MemoryHost) -> list[Notice]:
    return [event for event in host.events if isinstance(event, Notice)]


async def test_a_prompt_that_was_cut_is_told_inside_the_message_that_shows_it() -> None:
    host = host_at(counting(2051), counting(2051))
    assert (await host.run(LONG)).stop_reason == "stop"
    assert words(host.events)[-5:] == [
        "start(assistant)",
        "notice",
        "end(assistant)",
        "turn_end",
        "agent_end(stop)",
    ]
    await host.run(LONG)
    assert len(notices(host)) == 1


async def test_a_request_that_was_sent_again_may_have_been_cached_and_proves_nothing() -> None:
    busy = ProviderError("overloaded", "fake: busy", retryable=True, retry_after_ms=0)
    host = host_at([busy], counting(1))
    assert (await host.run(LONG)).stop_reason == "stop"
    assert notices(host) == []


async def test_an_answer_without_usage_proves_nothing() -> None:
    host = host_at(text("done"))
    await host.run(LONG)
    assert notices(host) == []


@pytest.mark.parametrize(("limit", "window"), [(8192, 8192), (None, 4096)])
async def test_the_window_that_a_failure_tells_is_known_to_the_next_turn(
    limit: int | None, window: int
) -> None:
    failure = ProviderError("context_overflow", "fake: too long", context_limit=limit)
    host = MemoryHost([failure], counting(7))
    host.model = replace(OLLAMA, context_window=4096)
    assert (await host.run()).stop_reason == "error"
    end = await host.run()
    assert end.usage is not None
    assert end.usage.context_window == window


@pytest.mark.parametrize("fails", [False, True])
async def test_a_history_is_made_shorter_for_the_window_that_the_failure_told(fails: bool) -> None:
    def failure(limit: int) -> ProviderError:
        return ProviderError("context_overflow", "fake: too long", context_limit=limit, code="too_long")

    summary = [failure(4000)] if fails else text("## Goal\nTo go on.")
    host = MemoryHost([failure(10_000)], summary, *([] if fails else [counting(7)]))
    host.messages = history(turns=60, size=4000)
    end = await host.run("go on")
    asked = host.provider.requests[1]
    assert of_messages(asked.messages) < 10_000, "the history has six times as much"
    assert asked.model.context_window == 10_000
    assert end.stop_reason == ("error" if fails else "stop")
    if fails:
        assert end.error is not None
        assert end.error.code == "too_long"
        assert "Making the conversation shorter failed" in end.error.message
        assert host.model.context_window == 4000
    else:
        assert end.usage is not None
        assert end.usage.context_window == 10_000, "in the very turn"
