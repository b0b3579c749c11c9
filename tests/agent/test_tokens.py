"""How long a history is for a model, and how long it may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.agent import tokens
from agentd.protocol.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ToolCall,
    Usage,
    UserMessage,
)
from agentd.providers.base import Model

TIME = "2026-01-01T00:00:00.000Z"


def model(window: int | None, output: int | None = None) -> Model:
    return Model("p", "m", context_window=window, max_output=output)


def user(*blocks: object) -> UserMessage:
    return UserMessage(message_id="u", content=blocks, timestamp=TIME)


def answer(count: int | None, stop: str = "stop") -> AssistantMessage:
    usage = None if count is None else Usage(context_tokens=count)
    return AssistantMessage(
        message_id="a", content=(), provider="p", model="m", usage=usage, stop_reason=stop, timestamp=TIME
    )


@pytest.mark.parametrize(
    ("window", "output", "budget"),
    [
        (200_000, 32_000, 168_000),  # room for an answer
        (200_000, 8_000, 180_000),  # a tenth, where that is more
        (200_000, None, 180_000),
        (1005, None, 904),  # of a tenth that is no whole number nothing is lost
    ],
)
def test_a_request_may_fill_all_but_room_for_an_answer_and_a_tenth_at_least(
    window: int, output: int | None, budget: int
) -> None:
    assert tokens.budget(model(window, output)) == budget


@pytest.mark.parametrize("output", [200_000, 300_000, 0, -5])
def test_a_limit_of_the_answer_that_cannot_be_is_not_reckoned_with(output: int) -> None:
    assert tokens.budget(model(200_000, output)) == 180_000


@pytest.mark.parametrize("window", [None, 0, -1])
def test_without_a_window_there_is_neither_budget_nor_threshold(window: int | None) -> None:
    assert tokens.budget(model(window)) is None
    assert tokens.threshold(model(window), 0.85) is None


def test_the_threshold_is_the_share_of_the_window_and_never_above_the_budget() -> None:
    assert tokens.threshold(model(200_000), 0.85) == 170_000
    assert tokens.threshold(model(200_000), 0.5) == 100_000
    assert tokens.threshold(model(200_000), 1.0) == 180_000
    assert tokens.threshold(model(200_000, 64_000), 0.85) == 136_000
    assert tokens.threshold(model(1), 0.85) == 1


@given(st.text(st.characters(codec=None)))
def test_an_estimate_is_the_same_each_time_and_grows_with_the_text(text: str) -> None:
    once = tokens.of_text(text)
    assert once == tokens.of_text(text)
    assert once <= tokens.of_text(text + "more")
    call = ToolCall(id="c", name="n", arguments={"text": text})
    assert tokens.of_message(answer(None).model_copy(update={"content": (call,)})) > once // 2


def test_an_image_costs_the_same_whatever_its_size() -> None:
    small, large = (
        tokens.of_message(user(ImageContent(mime_type="image/png", data="A" * size)))
        for size in (4, 4_000_000)
    )
    assert small == large > tokens.IMAGE_TOKENS


def test_what_the_server_counted_last_goes_before_every_estimate() -> None:
    history = [user(TextContent(text="x")), answer(500), user(), answer(900), answer(None), user()]
    assert tokens.counted(history, 0) == (900, 4)
    assert tokens.counted(history, 0, latest=False) == (500, 2)
    assert tokens.counted(history, 4) is None


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_an_answer_that_is_in_no_request_counts_nothing(stop: str) -> None:
    assert tokens.counted([answer(500), answer(900, stop)], 0) == (500, 1)
