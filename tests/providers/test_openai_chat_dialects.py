"""Each flag of a chat dialect, and what the built-in providers make of a request with them."""

from typing import Any

import pytest
from conversation import PIXEL, READ, assistant, call, request, result, thinking, user
from fakes.model_server import ModelServer
from fakes.openai_wire import wire_fault
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.config.builtin import BUILT_IN
from agentd.protocol.messages import Effort, Message
from agentd.providers.base import Model, ProviderError, ToolSpec
from agentd.providers.mistral_call_ids import NineLetterIds
from agentd.providers.openai_chat import OpenAIChat
from agentd.providers.openai_chat_dialect import PLAIN, ChatDialect
from agentd.providers.openai_chat_request import RESULTS_SEEN, chat_body

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
THINKS = Model("local", "m", images=True, reasoning=True, efforts=EFFORTS, max_output=100)
MISTRAL = ChatDialect(**BUILT_IN["mistral"].dialect)
TURN = (user("Hi"), assistant(call("c1"), call("c2")), result("c1", "x"), result("c2", "y"))


def sent(*history: Message, dialect: ChatDialect, **fields: Any) -> list[dict[str, Any]]:
    body = chat_body(request(*history, **fields), dialect)
    return list(body["messages"])


def with_effort(dialect: ChatDialect, effort: Effort = "high") -> dict[str, Any]:
    body = chat_body(request(user("Hi"), model=THINKS, effort=effort), dialect)
    known = {"model", "messages", "stream", "stream_options", "tools", "max_tokens"}
    return {name: value for name, value in body.items() if name not in known}


def test_the_plain_dialect_is_what_a_server_that_nobody_knows_gets() -> None:
    asked = request(user("Hi"), model=THINKS, effort="low")
    assert chat_body(asked) == chat_body(asked, PLAIN)
    assert wire_fault(chat_body(asked)) is None


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_output_limit_has_the_servers_own_name(field: Any) -> None:
    body = chat_body(request(user("Hi"), model=THINKS), ChatDialect(max_tokens_field=field))
    assert {name: value for name, value in body.items() if "tokens" in name} == {field: 100}


def test_an_output_limit_can_be_kept_back() -> None:
    body = chat_body(request(user("Hi"), model=THINKS), ChatDialect(max_tokens_field="none"))
    assert not any("tokens" in name for name in body)


def test_only_a_model_that_reasons_is_told_by_the_developer() -> None:
    dialect = ChatDialect(system_role="developer")
    assert sent(user("Hi"), dialect=dialect, model=THINKS)[0]["role"] == "developer"
    assert sent(user("Hi"), dialect=dialect)[0]["role"] == "system"


@pytest.mark.parametrize(
    ("form", "high", "minimal"),
    [
        ("reasoning_effort", {"reasoning_effort": "high"}, {"reasoning_effort": "minimal"}),
        ("reasoning", {"reasoning": {"effort": "high"}}, {"reasoning": {"effort": "minimal"}}),
        ("thinking", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}),
        (
            "thinking_effort",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
            {"thinking": {"type": "disabled"}},
        ),
        ("enable_thinking", {"enable_thinking": True}, {"enable_thinking": False}),
        (
            "chat_template_kwargs",
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        ("none", {}, {}),
    ],
)
def test_an_effort_is_asked_for_in_the_servers_form(form: Any, high: Any, minimal: Any) -> None:
    assert with_effort(ChatDialect(effort_form=form)) == high
    assert with_effort(ChatDialect(effort_form=form), "minimal") == minimal


def test_no_form_sends_an_effort_that_the_model_does_not_take() -> None:
    body = chat_body(request(user("Hi"), effort="high"), ChatDialect(effort_form="thinking_effort"))
    assert not {"thinking", "reasoning_effort"} & set(body)


def test_usage_is_not_asked_for_where_the_field_is_refused() -> None:
    assert "stream_options" not in chat_body(request(), ChatDialect(stream_options=False))


def test_strict_is_sent_for_schemas_that_strict_mode_takes_only() -> None:
    fits = ToolSpec(
        "fits", "", {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    )
    body = chat_body(request(tools=(fits, READ)), ChatDialect(strict_tools=True))
    assert [tool["function"].get("strict") for tool in body["tools"]] == [True, None]
    assert "strict" not in str(chat_body(request(tools=(fits,)), PLAIN))


@pytest.mark.parametrize("allowed", [True, False])
def test_parallel_calls_are_spoken_of_where_there_are_tools(allowed: bool) -> None:
    dialect = ChatDialect(parallel_tool_calls=allowed)
    assert chat_body(request(), dialect)["parallel_tool_calls"] is allowed
    assert "parallel_tool_calls" not in chat_body(request(tools=()), dialect)


def test_an_answer_of_calls_alone_has_empty_text_where_null_is_refused() -> None:
    assert sent(*TURN, dialect=ChatDialect(empty_content="text"))[2]["content"] == ""
    assert sent(*TURN, dialect=PLAIN)[2]["content"] is None


def test_a_server_that_sees_nothing_is_shown_nothing() -> None:
    with pytest.raises(ProviderError, match="does not take images"):
        chat_body(request(user("Look", PIXEL), model=THINKS), ChatDialect(images=False))


def test_claudes_cache_is_marked_for_gateways_that_hand_the_mark_on() -> None:
    claude, other = Model("openrouter", "anthropic/claude-opus-5.5"), Model("openrouter", "x-ai/grok-4.7")
    dialect = ChatDialect(cache_markers=True)
    assert chat_body(request(model=claude), dialect)["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in chat_body(request(model=other), dialect)
    assert "cache_control" not in chat_body(request(model=claude))


def test_a_conversation_keeps_its_cache_key() -> None:
    dialect = ChatDialect(prompt_cache_key=True)
    first, later = (chat_body(request(*TURN[:end]), dialect)["prompt_cache_key"] for end in (1, 4))
    assert first == later
    assert len(first) <= 64


# --- reasoning ------------------------------------------------------------------------------------

REASONED = assistant(thinking("hm"), call("c1"), provider_data={"reasoningField": "reasoning_content"})
FOREIGN = assistant(thinking("hm"), call("c1"), model="another")


@pytest.mark.parametrize(
    ("replay", "answer", "field"),
    [
        ("as_received", REASONED, {"reasoning_content": "hm"}),
        ("as_received", FOREIGN, {}),
        ("never", REASONED, {}),
        ("required", REASONED, {"reasoning_content": "hm"}),
        ("required", FOREIGN, {"reasoning_content": " "}),
        ("required", assistant("Hello"), {}),
    ],
)
def test_reasoning_goes_back_as_the_server_wants_it(replay: Any, answer: Any, field: Any) -> None:
    rest = (result("c1", "x"),) if answer.calls else (user("And?"),)
    message = sent(user("Hi"), answer, *rest, dialect=ChatDialect(reasoning_replay=replay))[2]
    assert {name: value for name, value in message.items() if "reasoning" in name} == field


# --- Mistral --------------------------------------------------------------------------------------


def test_mistral_gets_ids_of_nine_letters_and_digits_that_still_match() -> None:
    long, own = "call_" + "x" * 100, "aB3dE6gH9"
    messages = sent(
        user("Hi"),
        assistant(call(long), call(own)),
        result(long, "x"),
        result(own, "y"),
        dialect=MISTRAL,
    )
    calls = [call["id"] for call in messages[2]["tool_calls"]]
    assert [message["tool_call_id"] for message in messages[3:]] == calls
    assert all(len(id) == 9 and id.isalnum() for id in calls)
    assert calls[1] == own


@given(st.lists(st.text(max_size=12) | st.from_regex(r"[A-Za-z0-9]{9}", fullmatch=True), max_size=20))
@settings(max_examples=60, deadline=None)
def test_nine_letter_ids_are_unique_steady_and_fit(ids: list[str]) -> None:
    one, again = NineLetterIds(), NineLetterIds()
    given_ids = [one[id] for id in ids]
    assert given_ids == [again[id] for id in ids]
    assert len(set(given_ids)) == len(set(ids))
    assert all(len(id) == 9 and id.isascii() and id.isalnum() for id in given_ids)


def test_mistral_hears_an_answer_between_results_and_the_user() -> None:
    messages = sent(*TURN, user("And?"), dialect=MISTRAL)
    assert [message["role"] for message in messages[1:]] == [
        "user", "assistant", "tool", "tool", "assistant", "user",
    ]  # fmt: skip
    assert messages[-2] == {"role": "assistant", "content": RESULTS_SEEN}
    assert [message["role"] for message in sent(*TURN, user("And?"), dialect=PLAIN)][-2:] == ["tool", "user"]


def test_mistral_gets_no_field_that_its_schema_does_not_have() -> None:
    body = chat_body(request(*TURN, model=Model("mistral", "m", max_output=5)), MISTRAL)
    assert set(body) == {"model", "messages", "stream", "tools", "max_tokens"}


def test_openai_gets_ids_of_at_most_64_characters() -> None:
    long = "c" * 120
    messages = sent(user("Hi"), assistant(call(long)), result(long, "x"), dialect=ChatDialect(call_ids="64"))
    assert len(messages[2]["tool_calls"][0]["id"]) == 64
    assert messages[3]["tool_call_id"] == messages[2]["tool_calls"][0]["id"]


# --- built in -------------------------------------------------------------------------------------

CHAT = [name for name, known in BUILT_IN.items() if known.api == "openai-chat"]


@pytest.mark.parametrize("name", CHAT)
def test_every_built_in_dialect_makes_a_request_whose_history_is_valid(name: str) -> None:
    dialect = ChatDialect(**BUILT_IN[name].dialect)
    reasoned = assistant(thinking("hm"), call("c3"), provider_data={"reasoningField": "reasoning"})
    asked = request(*TURN, user("And?"), reasoned, result("c3", "z"), model=THINKS, effort="high")
    body = chat_body(asked, dialect)
    core = {"model", "messages", "stream", "tools"}
    assert wire_fault({name: value for name, value in body.items() if name in core}) is None


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [("bearer", "authorization", "Bearer key-1"), ("api-key", "api-key", "key-1")],
)
async def test_the_key_is_in_the_header_that_the_server_reads(
    model_server: ModelServer, auth: Any, header: str, value: str
) -> None:
    model_server.push({"content": [{"type": "text", "text": "Hi"}]})
    provider = OpenAIChat("azure", model_server.base_url, "key-1", dialect=ChatDialect(auth=auth))
    async with provider.stream(request()) as events:
        async for _ in events:
            pass
    await provider.aclose()
    headers = model_server.requests[0].headers
    assert {name: told for name, told in headers.items() if "key-1" in told} == {header: value}
