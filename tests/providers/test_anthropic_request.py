"""How a model request becomes a body of the Messages API. The strict fake server says what is valid."""

import json
import re
from typing import Any

import pytest
from conversation import PIXEL, READ, assistant, call, request, result, thinking, user
from fakes.anthropic_faults import request_fault, sign
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.request import project
from agentd.protocol.messages import (
    CommandContent,
    ImageContent,
    Message,
    ResourceContent,
    TextContent,
    ThinkingContent,
    UserMessage,
)
from agentd.providers.anthropic_models import BINDING_CONTROLS, Dialect
from agentd.providers.anthropic_request import betas_of, messages_body
from agentd.providers.base import Model, ModelRequest, ProviderError, ToolSpec

DIALECT = Dialect()
OLD = Model("local", "claude-sonnet-4-5", images=True)
NEW = Model("local", "claude-opus-4-8", images=True)
MARK = {"type": "ephemeral"}


def body_of(asked: ModelRequest, dialect: Dialect = DIALECT) -> dict[str, Any]:
    body = messages_body(asked, dialect)
    assert request_fault({"anthropic-version": dialect.version}, body) is None
    return json.loads(json.dumps(body))


def bare(value: Any) -> Any:
    """Without cache markers."""
    if isinstance(value, dict):
        return {name: bare(item) for name, item in value.items() if name != "cache_control"}
    return [bare(item) for item in value] if isinstance(value, list) else value


def messages(*history: Message, model: Model = NEW, **fields: Any) -> list[dict[str, Any]]:
    return bare(body_of(request(*history, model=model, **fields))["messages"])


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def thought(words: str, model: Model = NEW) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": sign(model.name, words)}


# --- the plain parts ------------------------------------------------------------------------------


def test_a_plain_request_has_no_fields_beyond_need() -> None:
    assert bare(body_of(request(user("Hi"), model=NEW, system=" ", tools=()))) == {
        "model": "claude-opus-4-8",
        "max_tokens": 32_000,
        "stream": True,
        "messages": [{"role": "user", "content": [text("Hi")]}],
    }


def test_system_and_tools_are_in_the_forms_of_this_api() -> None:
    body = bare(body_of(request(model=NEW)))
    assert body["system"] == [text("Be brief.")]
    assert body["tools"] == [
        {"name": "read_file", "description": "Read a file.", "input_schema": READ.parameters}
    ]


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        ({}, {"type": "object", "properties": {}}),
        (
            {"anyOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a", "c"]},
                {"properties": {"b": {"type": "integer"}}, "required": ["c"]},
            ]},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
                "required": ["c"],
            },
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "allOf": [{"properties": {"a": {}, "b": {"oneOf": [{}, {}]}}, "required": ["b"]}],
                "oneOf": [],
            },
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"oneOf": [{}, {}]}},
                "required": ["a", "b"],
            },
        ),
        (
            {"type": "object", "oneOf": [True, {"required": ["a"]}], "additionalProperties": False},
            {"type": "object", "properties": {}, "additionalProperties": False},
        ),
    ],
    ids=["nothing", "either", "all of it", "ill-typed branches"],
)  # fmt: skip
def test_a_schema_has_no_choice_at_its_top(parameters: dict[str, Any], schema: dict[str, Any]) -> None:
    before = json.dumps(parameters)
    body = bare(body_of(request(model=NEW, tools=(ToolSpec("t", "T.", parameters),))))
    assert body["tools"][0]["input_schema"] == schema
    assert json.dumps(parameters) == before


# --- messages -------------------------------------------------------------------------------------


def test_a_tool_turn_has_its_input_as_an_object_and_all_results_in_one_message() -> None:
    assert messages(
        user("Read both"),
        assistant("Sure.", call("a", path="x"), call("b")),
        result("a", "1"),
        result("b", "gone", is_error=True),
        user("And?"),
    ) == [
        {"role": "user", "content": [text("Read both")]},
        {
            "role": "assistant",
            "content": [
                text("Sure."),
                {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "x"}},
                {"type": "tool_use", "id": "b", "name": "read_file", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [text("1")]},
                {"type": "tool_result", "tool_use_id": "b", "content": [text("gone")], "is_error": True},
                text("And?"),
            ],
        },
    ]


def test_neighbours_of_one_role_are_merged_and_nothing_blank_is_sent() -> None:
    assert messages(
        user("one", " "),
        user("\n"),
        user("two"),
        assistant("", "three"),
        assistant(" \n"),
        assistant("four"),
        user("five"),
    ) == [
        {"role": "user", "content": [text("one"), text("two")]},
        {"role": "assistant", "content": [text("three"), text("four")]},
        {"role": "user", "content": [text("five")]},
    ]


def test_text_after_a_call_goes_before_it() -> None:
    content = messages(user("Hi"), assistant(call("a"), "Done?"), result("a", "1"))[1]["content"]
    assert [block["type"] for block in content] == ["text", "tool_use"]


def test_a_result_without_text_is_not_blank() -> None:
    content = messages(user("Hi"), assistant(call("a")), result("a", " "))[2]["content"]
    assert content[0]["content"] == [text("(no output)")]


def test_ids_of_other_servers_become_valid_and_stay_different() -> None:
    history = messages(
        user("Hi"),
        assistant(call("functions.add:0"), call("functions_add_0"), call("x~2"), call("x.2")),
        result("functions.add:0", "1"),
        result("functions_add_0", "2"),
        result("x~2", "3"),
        result("x.2", "4"),
    )
    ids = [block["id"] for block in history[1]["content"]]
    assert [block["tool_use_id"] for block in history[2]["content"]] == ids
    assert len(set(ids)) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", id) for id in ids)


def test_resources_and_commands_are_mentioned_in_words() -> None:
    content = (ResourceContent(uri="file:///a", text="x"), CommandContent(name="fix", arguments="it"))
    said = UserMessage(message_id="u", content=content, timestamp="t")
    assert messages(said)[0]["content"] == [text("[file:///a]\nx"), text("/fix it")]


def test_a_refused_answer_is_left_out() -> None:
    refused = assistant("Well, ").model_copy(update={"stop_reason": "refusal"})
    assert messages(user("Break in"), refused, user("Sorry")) == [
        {"role": "user", "content": [text("Break in"), text("Sorry")]}
    ]


# --- images ---------------------------------------------------------------------------------------

SHOWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def test_images_are_shown_in_prompts_and_in_results() -> None:
    history = messages(user("Look", PIXEL), assistant(call("a")), result("a", "x", PIXEL))
    assert history[0]["content"] == [text("Look"), SHOWN]
    assert history[2]["content"][0]["content"] == [text("x"), SHOWN]


def test_images_of_failed_results_follow_after_all_results() -> None:
    history = messages(
        user("Hi"),
        assistant(call("a"), call("b")),
        result("a", PIXEL, is_error=True),
        result("b", "2"),
        user("And?"),
    )
    failed, second, *rest = history[2]["content"]
    assert (failed["content"], second["content"]) == ([text("(no output)")], [text("2")])
    assert rest == [SHOWN, text("And?")]


def test_an_image_of_a_type_that_the_api_refuses_is_mentioned() -> None:
    odd = ImageContent(mime_type="image/svg+xml", data="eA==")
    jpg = ImageContent(mime_type="image/JPG", data="/9j/")
    content = messages(user(odd, jpg))[0]["content"]
    assert "image/svg+xml" in content[0]["text"]
    assert content[1]["source"]["media_type"] == "image/jpeg"


@pytest.mark.parametrize(
    "history",
    [(user(PIXEL),), (user("Hi"), assistant(call("a")), result("a", PIXEL))],
    ids=["prompt", "result"],
)
def test_an_image_for_a_model_without_eyes_is_refused(history: tuple[Message, ...]) -> None:
    with pytest.raises(ProviderError, match='"local/claude-blind" does not take images') as caught:
        messages_body(request(*history, model=Model("local", "claude-blind")), DIALECT)
    assert caught.value.kind == "bad_request"


# --- thinking -------------------------------------------------------------------------------------


def kept(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"blocks": list(blocks)}


def turn(*blocks: dict[str, Any], model: Model = NEW) -> tuple[Message, ...]:
    answer = assistant(
        thinking("Hm."), "So: ", call("a"), model=model.name, provider_data=kept(*blocks) if blocks else None
    )
    return user("Hi"), answer, result("a", "1")


PLACES = ({"type": "text"}, {"type": "tool_use"})


def test_thinking_goes_back_as_it_was_and_in_its_place() -> None:
    hidden = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    odd = {"type": "hologram", "data": [1]}
    content = messages(*turn(thought("Hm. \n"), hidden, PLACES[0], odd, PLACES[1]), effort="high")[1][
        "content"
    ]
    assert content == [
        thought("Hm. \n"),
        hidden,
        text("So: "),
        odd,
        {"type": "tool_use", "id": "a", "name": "read_file", "input": {}},
    ]


def test_citations_and_callers_go_back_to_their_blocks() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srv_1"}
    content = messages(
        *turn({"type": "text", "citations": [{"url": "u"}]}, {"type": "tool_use", "caller": caller})
    )[1]["content"]
    assert content[0] == text("So: ") | {"citations": [{"url": "u"}]}
    assert content[1]["caller"] == caller


@pytest.mark.parametrize(
    "model",
    [Model("local", "claude-opus-4-7"), Model("other", "claude-opus-4-8")],
    ids=["another model", "another provider"],
)
def test_thinking_stays_away_from_whoever_did_not_think_it(model: Model) -> None:
    content = messages(*turn(thought("Hm."), *PLACES), model=model, effort="high")[1]["content"]
    assert [block["type"] for block in content] == ["text", "tool_use"]


def test_thinking_without_a_signature_is_never_sent_to_who_would_check_it() -> None:
    unsigned = {"type": "thinking", "thinking": "Hm."}
    for block in (unsigned, unsigned | {"signature": ""}):
        content = messages(*turn(block, *PLACES), effort="high")[1]["content"]
        assert [each["type"] for each in content] == ["text", "tool_use"]
    asked = request(*turn(unsigned, *PLACES), model=NEW)
    sent = messages_body(asked, Dialect(unsigned_thinking=True))
    assert sent["messages"][1]["content"][0] == unsigned


@pytest.mark.parametrize(
    "data",
    [
        {"blocks": [thought("Hm."), {"type": "tool_use"}]},
        {"blocks": [thought("Hm."), *PLACES, {"type": "tool_use"}]},
        {"blocks": "odd"},
        {"blocks": [7]},
        {"reasoningField": "reasoning"},
    ],
)
def test_data_that_does_not_fit_the_message_is_left_out(data: dict[str, Any]) -> None:
    answer = assistant("So: ", call("a"), model=NEW.name, provider_data=data)
    content = messages(user("Hi"), answer, result("a", "1"))[1]["content"]
    assert [block["type"] for block in content] == ["text", "tool_use"]


@pytest.mark.parametrize(
    ("name", "effort", "fields"),
    [
        ("claude-opus-4-8", "xhigh", {"thinking": "adaptive", "effort": "xhigh"}),
        ("claude-opus-4-6", "xhigh", {"thinking": "adaptive", "effort": "high"}),
        ("claude-sonnet-4-6", "minimal", {"thinking": "adaptive", "effort": "low"}),
        ("claude-fable-5", "max", {"thinking": "adaptive", "effort": "max"}),
        ("claude-sonnet-4-5-20250929", "medium", {"thinking": 10_000}),
        ("claude-sonnet-4-20250514", "high", {"thinking": 16_000}),
        ("claude-3-7-sonnet-latest", "minimal", {"thinking": 1024}),
        ("claude-3-5-haiku-20241022", "high", {}),
        ("claude-opus-4-8", None, {}),
        ("claude-sonnet-4-5", None, {}),
        ("llama3.2", "high", {}),
    ],
)
def test_an_effort_is_asked_for_as_the_models_generation_wants_it(
    name: str, effort: Any, fields: dict[str, Any]
) -> None:
    body = body_of(request(model=Model("local", name), effort=effort))
    told: dict[str, Any] = {}
    if "thinking" in body:
        told["thinking"] = body["thinking"].get("budget_tokens") or body["thinking"]["type"]
    if "output_config" in body:
        told["effort"] = body["output_config"]["effort"]
    assert told == fields


def test_efforts_that_the_user_lists_are_the_ones_there_are() -> None:
    model = Model("local", "claude-opus-4-8", efforts=("low", "medium"))
    assert body_of(request(model=model, effort="max"))["output_config"] == {"effort": "medium"}


def test_summaries_of_thinking_are_asked_for() -> None:
    body = body_of(request(model=NEW, effort="low"))
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize("name", ["claude-fable-5-1", "claude-fable-5-2", "claude-opus-5-5"])
def test_a_model_that_binds_its_thinking_to_the_prompt_is_told_to_drop_it(name: str) -> None:
    asked = request(model=Model("local", name))
    body = messages_body(asked, DIALECT)
    assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert betas_of(body, Dialect(betas=("a-1",))) == ("a-1", BINDING_CONTROLS)
    assert "output_config" not in body
    assert "thinking" not in messages_body(asked, Dialect(binding_controls=False))


@pytest.mark.parametrize("name", ["claude-mythos-5-1", "claude-fable-5", "claude-opus-5", "claude-opus-4-8"])
def test_other_models_are_not_told_what_they_may_not_know(name: str) -> None:
    body = body_of(request(model=Model("local", name), effort="high"))
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert betas_of(body, DIALECT) == ()


def test_a_budget_leaves_room_for_the_answer() -> None:
    small = Model("local", "claude-sonnet-4-5", max_output=4096)
    assert body_of(request(model=small, effort="high"))["thinking"]["budget_tokens"] == 2048
    tiny = Model("local", "claude-sonnet-4-5", max_output=1500)
    assert "thinking" not in body_of(request(model=tiny, effort="high"))


def test_a_dialect_may_say_how_thinking_is_asked_for() -> None:
    asked = request(model=Model("local", "llama3.2", max_output=9000), effort="low")
    assert messages_body(asked, Dialect(thinking="budget"))["thinking"]["budget_tokens"] == 4096
    assert messages_body(asked, Dialect(thinking="adaptive"))["thinking"]["type"] == "adaptive"


def test_a_tool_loop_that_began_without_thinking_goes_on_without() -> None:
    old = Model("local", "claude-sonnet-4-5")
    body = body_of(request(*turn(model=old), model=old, effort="high"))
    assert "thinking" not in body
    done = (*turn(model=old), assistant("Done.", model=old.name), user("More"))
    assert "thinking" in body_of(request(*done, model=old, effort="high"))


def test_a_model_with_a_budget_that_is_not_asked_to_think_sees_no_thinking() -> None:
    old = Model("local", "claude-sonnet-4-5")
    history = turn(thought("Hm.", old), *PLACES, model=old)
    assert messages(*history, model=old)[1]["content"][0] == text("So: ")
    assert messages(*history, model=old, effort="high")[1]["content"][0] == thought("Hm.", old)


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        (Model("local", "claude-opus-4-8", max_output=128_000), 128_000),
        (Model("local", "us.anthropic.claude-opus-4-1-20250805-v1:0"), 32_000),
        (Model("local", "claude-3-5-sonnet@20240620"), 8192),
        (Model("local", "claude-3-haiku-20240307"), 4096),
        (Model("local", "claude-2.1"), 4096),
        (Model("local", "anthropic/claude-sonnet-4.6"), 32_000),
        (Model("local", "claude-mythos-preview"), 32_000),
        (Model("local", "qwen3"), 8192),
        (Model("local", "qwen3", context_window=4096), 2048),
    ],
)
def test_the_output_limit_is_always_sent(model: Model, limit: int) -> None:
    assert body_of(request(model=model))["max_tokens"] == limit


def marked(body: dict[str, Any]) -> list[str]:
    found = ["tools"] if any("cache_control" in tool for tool in body.get("tools", ())) else []
    found += ["system"] if any("cache_control" in block for block in body.get("system", ())) else []
    for number, message in enumerate(body["messages"]):
        found += [f"{number}.{at}" for at, block in enumerate(message["content"]) if "cache_control" in block]
    return found


@pytest.mark.parametrize(
    ("limit", "places"),
    [
        (9, ["tools", "system", "2.0", "4.1"]),
        (4, ["tools", "system", "2.0", "4.1"]),
        (3, ["system", "2.0", "4.1"]),
        (2, ["system", "4.1"]),
        (1, ["4.1"]),
        (0, []),
    ],
)
def test_the_most_useful_blocks_are_marked_within_the_limit(limit: int, places: list[str]) -> None:
    body = body_of(
        request(
            user("Hi"),
            assistant(call("a")),
            result("a", "1"),
            assistant(call("b"), call("c")),
            result("b", "2"),
            result("c", "3"),
            model=NEW,
        ),
        Dialect(cache_markers=limit),
    )
    assert marked(body) == places


# --- any history ----------------------------------------------------------------------------------

WORDS = st.sampled_from(["Hi", "", " \n", "ä🌍", "a\ud800b"])
IDS = st.sampled_from(["a", "b", "call~2", "functions.x:0", "functions_x_0"])
USERS = st.lists(WORDS.map(lambda words: TextContent(text=words)) | st.just(PIXEL), max_size=3)
SAID = (
    WORDS.map(lambda words: TextContent(text=words))
    | WORDS.map(lambda words: ThinkingContent(text=words))
    | IDS.map(call)
)
KEPT = st.none() | st.lists(
    st.sampled_from([*PLACES, thought("Hm."), {"type": "thinking", "thinking": "x"}]), max_size=4
).map(lambda blocks: {"blocks": blocks})
TRANSCRIPTS = st.lists(
    USERS.map(lambda blocks: UserMessage(message_id="u", content=tuple(blocks), timestamp="t"))
    | st.builds(
        lambda blocks, data, stop: assistant(*blocks, model=NEW.name, provider_data=data).model_copy(
            update={"stop_reason": stop}
        ),
        st.lists(SAID, max_size=4),
        KEPT,
        st.sampled_from(["stop", "tool_use", "error", "aborted", "length"]),
    )
    | st.builds(
        lambda id, words, failed: result(id, words, PIXEL, is_error=failed), IDS, WORDS, st.booleans()
    ),
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(TRANSCRIPTS, st.sampled_from([NEW, OLD]), st.sampled_from([None, "high"]))
def test_every_transcript_makes_a_request_that_the_server_takes(
    transcript: list[Message], model: Model, effort: Any
) -> None:
    history = project([user("Hi"), *transcript])
    body_of(request(*history, model=model, effort=effort))
