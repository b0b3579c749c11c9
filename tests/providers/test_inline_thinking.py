"""Thinking in the text of an answer: apart for who asks for it, wherever the stream cuts it, never lost."""

import json
from typing import Any

import pytest
from fakes.model_server import ModelServer, Raw, sse
from hypothesis import example, given
from hypothesis import strategies as st
from providers.conversation import Reading, assistant, call, calls_in, read, request, result, thinking, user

from agentd.agent.response import Response
from agentd.providers.base import Model, StreamEnd, StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from agentd.providers.inline_thinking import InlineThinking
from agentd.providers.openai_chat import ChatDialect, OpenAIChat
from agentd.providers.openai_chat_request import chat_body

CLOSED = {"inlineThinking": {"open": "<think>", "close": "</think>"}}
SPACED = {"inlineThinking": {"open": "<think>", "close": "</think>\n\n"}}
LEADING = {"inlineThinking": {"open": " \n<think>", "close": "</think>"}}

CASES: list[tuple[str, str, str, dict[str, Any] | None]] = [
    ("<think>plan</think>Hello", "plan", "Hello", CLOSED),
    ("<think>plan</think>\n\nHello", "plan", "Hello", SPACED),
    (" \n<think>plan</think>Hello", "plan", "Hello", LEADING),
    ("<think>\n<tool_call>{}</tool_call>\n</think>Hello", "\n<tool_call>{}</tool_call>\n", "Hello", CLOSED),
    ("<think></think>Hello", "", "Hello", CLOSED),
    ("<think>no end", "no end", "", CLOSED),
    ("<think>no end </thin", "no end </thin", "", CLOSED),
    ("<think>a < b </ c</think>d", "a < b </ c", "d", CLOSED),
    ("<think>one</think>two <think>three</think>", "one", "two <think>three</think>", CLOSED),
    ("<think>one</think>", "one", "", CLOSED),
    ("<think>one</think>\n\n", "one", "", SPACED),
    ("Hello <think>no</think>", "", "Hello <think>no</think>", None),
    ("<thinking>no</thinking>", "", "<thinking>no</thinking>", None),
    ("<thin", "", "<thin", None),
    ("< think>no", "", "< think>no", None),
    ("  ", "", "  ", None),
    ("", "", "", None),
    ("plain", "", "plain", None),
]  # fmt: skip


def parted(events: list[StreamEvent], tag: str = "think") -> list[StreamEvent]:
    reader = InlineThinking(tag)
    return [told for event in events for told in reader.feed(event)]


def pieces(text: str, size: int) -> list[StreamEvent]:
    return [TextDelta(0, text[at : at + size]) for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
@pytest.mark.parametrize(("text", "thought", "said", "kept"), CASES)
def test_a_block_at_the_beginning_is_thinking_wherever_it_is_cut(
    text: str, thought: str, said: str, kept: dict[str, Any] | None, size: int
) -> None:
    reading = Reading(parted([*pieces(text, size), StreamEnd("stop")]))
    assert (reading.thinking, reading.text) == (thought, said)
    assert reading.end.provider_data == kept


def test_what_can_be_said_is_not_held_back() -> None:
    reader = InlineThinking("think")
    told = [list(reader.feed(TextDelta(0, piece))) for piece in ("<thi", "nk>a", "b<", "c</th", "ink>d", "e")]
    assert told == [
        [],
        [ThinkingDelta(0, "a")],
        [ThinkingDelta(0, "b")],
        [ThinkingDelta(0, "<c")],
        [TextDelta(1, "d")],
        [TextDelta(1, "e")],
    ]


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "th", "ink>", " ", "\n", "a", "é😀"])),
    st.integers(1, 9),
)
@example(words=["<think>", "</think>", " "], size=1)  # blanks, then a call, then the end
def test_no_character_is_lost_and_blocks_are_numbered_in_order(words: list[str], size: int) -> None:
    text = "".join(words)
    events = parted([*pieces(text, size), ToolCallDelta(1, "{}", "c", "x"), StreamEnd("stop")])
    reading = Reading(events)
    tags = (reading.end.provider_data or {}).get("inlineThinking")
    if tags is None:
        assert (reading.thinking, reading.text) == ("", text)
    else:
        whole = tags["open"] + reading.thinking + tags["close"] + reading.text
        assert whole.startswith(text)
        assert whole.removeprefix(text) in ("", "</think>"), "only the end that the model left out is added"
    response = Response(lambda wanted: wanted or "c")
    for event in events[:-1]:
        response.add(event)  # type: ignore[arg-type]
    indices = list(dict.fromkeys(event.index for event in events[:-1]))  # type: ignore[union-attr]
    assert indices == list(range(len(indices)))
    assert [each["name"] for each in calls_in(events)] == ["x"]


def test_a_call_inside_an_open_block_leaves_what_follows_thinking() -> None:
    events = parted(
        [
            TextDelta(0, "<think>a</th"),
            ToolCallDelta(1, "{}", "c", "x"),
            TextDelta(2, "b</think>d"),
            StreamEnd("stop"),
        ]
    )
    assert events[:-1] == [
        ThinkingDelta(0, "a"),
        ThinkingDelta(0, "</th"),
        ToolCallDelta(1, "{}", "c", "x"),
        ThinkingDelta(2, "b"),
        TextDelta(3, "d"),
    ]


def test_a_servers_own_thinking_and_its_own_data_stay_as_they_are() -> None:
    own = {"reasoningField": "reasoning"}
    events = [ThinkingDelta(0, "hm"), TextDelta(1, "Hello"), StreamEnd("stop", provider_data=own)]
    assert parted(events) == events


# --- the whole way to a server and back -----------------------------------------------------------

TAGGED = Model("local", "m", thinking_tag="think")


def streamed(*texts: str, end: bool = True) -> Raw:
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    finish = [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}] if end else []
    return Raw(sse(*chunks, *finish, done=end))


async def test_an_answer_is_parted_only_where_the_model_is_said_to_write_so(
    model_server: ModelServer,
) -> None:
    provider = OpenAIChat("local", model_server.base_url)
    model_server.push(*[streamed("<thi", "nk>plan</thi", "nk>Hello")] * 2)
    parted_ = await read(provider, request(model=TAGGED))
    assert (parted_.thinking, parted_.text) == ("plan", "Hello")
    plain = await read(provider)
    assert (plain.thinking, plain.text) == ("", "<think>plan</think>Hello")
    assert plain.end.provider_data is None
    await provider.aclose()


async def test_what_was_held_back_is_told_before_the_failure(model_server: ModelServer) -> None:
    provider, reading = OpenAIChat("local", model_server.base_url), Reading()
    model_server.push(streamed("<think>plan </thi", end=False))
    with pytest.raises(Exception, match="truncated"):
        await reading.read(provider, request(model=TAGGED))
    assert reading.thinking == "plan </thi"
    await provider.aclose()


def again(dialect: ChatDialect, model: Model = TAGGED, text: str = "Hello") -> dict[str, Any]:
    """The answer as it goes back."""
    said = assistant(thinking("plan"), text, call("c"), provider_data=SPACED)
    asked = request(user("Hi"), said, result("c", "x"), model=model)
    found: dict[str, Any] = json.loads(json.dumps(chat_body(asked, dialect)))["messages"][2]
    return found


def test_thinking_goes_back_in_the_form_in_which_it_came() -> None:
    assert again(ChatDialect())["content"] == "<think>plan</think>\n\nHello"
    assert "reasoning_content" not in again(ChatDialect())


def test_thinking_goes_back_as_a_dialect_demands() -> None:
    required = again(ChatDialect(reasoning_replay="required"))
    assert (required["content"], required["reasoning_content"]) == ("Hello", "plan")
    never = again(ChatDialect(reasoning_replay="never"))
    assert never["content"] == "Hello"
    assert "plan" not in json.dumps(never)


def test_thinking_does_not_go_to_another_model() -> None:
    assert again(ChatDialect(), Model("local", "other", thinking_tag="think"))["content"] == "Hello"
