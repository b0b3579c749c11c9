"""What a run learns of its model beside the answer: its window, and whether its prompts are cut."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from agent.event_order import words
from agent.loop_host import MemoryHost, Play, text

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
