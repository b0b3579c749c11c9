"""The body of a Responses request: what is said, in what order, and what goes back to whom."""

import itertools
import json
from typing import Any

import pytest
from conversation import PIXEL, assistant, call, request, result, thinking, user
from fakes.responses_wire import ResponsesWire
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.providers.base import Model, ProviderError, ToolSpec
from agentd.providers.openai_call_ids import CallIds
from agentd.providers.openai_responses_output import REPLAY_KEY
from agentd.providers.openai_responses_request import ResponsesDialect, responses_body
from agentd.providers.strict_schema import fits_strict

SEALED = {"type": "reasoning", "id": "rs_1", "encrypted_content": "c2VhbGVkIGZvciBtOg"}
SPOKEN = {"type": "message", "id": "msg_1"}
CALLED = {"type": "function_call", "id": "fc_1"}
THINKER = Model("local", "m", reasoning=True, efforts=("low", "high"))
SEES = Model("local", "m", images=True)


def items(*messages: Any, dialect: ResponsesDialect | None = None, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = responses_body(request(*messages, **fields), dialect or ResponsesDialect())[
        "input"
    ]
    return found


def came_as(*kept: dict[str, Any]) -> dict[str, Any]:
    return {REPLAY_KEY: list(kept)}


def types(found: list[dict[str, Any]]) -> list[str]:
    return [item["type"] for item in found]


# --- the fields -----------------------------------------------------------------------------------


def test_the_whole_body_of_a_plain_request() -> None:
    assert responses_body(request(user("Hi"))) == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        "tools": [
            {
                "type": "function",
                "name": "read_file",
                "description": "Read a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                "strict": False,
            }
        ],
        "stream": True,
        "store": False,
        "prompt_cache_key": "agentd-u",
    }


def test_nothing_is_sent_that_was_not_given() -> None:
    dialect = ResponsesDialect(prompt_cache_key=False)
    body = responses_body(request(system=" \n", tools=()), dialect)
    assert set(body) == {"model", "input", "stream", "store"}


@pytest.mark.parametrize(("limit", "sent"), [(None, None), (4096, 4096), (1, 16)])
def test_the_output_limit_is_never_below_what_the_api_takes(limit: int | None, sent: int | None) -> None:
    body = responses_body(request(model=Model("local", "m", max_output=limit)))
    assert body.get("max_output_tokens") == sent


def test_a_model_that_reasons_is_asked_for_a_summary_and_for_sealed_reasoning() -> None:
    body = responses_body(request(model=THINKER, effort="high"))
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]


@pytest.mark.parametrize("effort", [None, "max"])
def test_an_effort_that_the_model_does_not_have_is_left_to_it(effort: Any) -> None:
    assert responses_body(request(model=THINKER, effort=effort))["reasoning"] == {"summary": "auto"}


def test_a_model_that_does_not_reason_is_not_asked_about_reasoning() -> None:
    body = responses_body(request(effort="high"))
    assert not {"reasoning", "include"} & set(body)


def test_a_dialect_leaves_out_what_its_server_does_not_take() -> None:
    dialect = ResponsesDialect(
        encrypted_reasoning=False, reasoning_summary=False, output_limit=False, prompt_cache_key=False
    )
    body = responses_body(request(model=THINKER), dialect)
    assert not {"reasoning", "include", "max_output_tokens", "prompt_cache_key"} & set(body)


def test_the_cache_key_stays_the_same_through_a_conversation_and_fits() -> None:
    first = user("Hi").model_copy(update={"message_id": "u" * 128})
    keys = {
        responses_body(request(first, *rest))["prompt_cache_key"]
        for rest in ((), (assistant("Hello"), user("More")))
    }
    assert len(keys) == 1
    assert len(keys.pop()) == 64


# --- tools ----------------------------------------------------------------------------------------

CLOSED = {
    "type": "object",
    "properties": {
        "path": {"type": ["string", "null"]},
        "lines": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["path", "lines"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(("strict", "sent"), [(True, True), (False, False), (None, None)])
def test_strict_is_said_as_the_dialect_wants_it(strict: bool | None, sent: bool | None) -> None:
    tools = (ToolSpec("t", "A tool.", CLOSED),)
    body = responses_body(request(tools=tools), ResponsesDialect(strict=strict))
    assert body["tools"][0].get("strict") is sent


def test_a_schema_that_strict_mode_refuses_is_never_sent_as_strict() -> None:
    body = responses_body(request(), ResponsesDialect(strict=True))
    assert body["tools"][0]["strict"] is False


@pytest.mark.parametrize(
    "change",
    [
        {"required": ["path"]},
        {"additionalProperties": True},
        {"properties": None},
        {"oneOf": []},
        {"anyOf": [{"type": "string"}]},
        {"properties": CLOSED["properties"] | {"path": {"type": "string", "minLength": 1}}},
        {"properties": CLOSED["properties"] | {"path": {"type": "string", "format": "uri"}}},
        {"properties": CLOSED["properties"] | {"path": {"type": "string", "pattern": "(?!a)"}}},
        {"properties": CLOSED["properties"] | {"path": {"description": "untyped"}}},
        {"properties": CLOSED["properties"] | {"path": {"$ref": "#/$defs/p", "description": "x"}}},
        {"properties": CLOSED["properties"] | {"path": {"type": "object", "properties": {}}}},
        {"properties": CLOSED["properties"] | {"lines": {"type": "array"}}},
        {"$defs": {"p": {"type": "string", "uniqueItems": True}}},
        {"type": "array"},
    ],
)
def test_what_strict_mode_cannot_enforce_does_not_fit_it(change: dict[str, Any]) -> None:
    assert fits_strict(CLOSED)
    assert not fits_strict(CLOSED | change)


# --- the history ----------------------------------------------------------------------------------


def test_a_history_of_anothers_making_is_text_and_calls() -> None:
    foreign = assistant(
        thinking("Hm."),
        "Let me look.",
        call("c1", path="ä"),
        provider_data=came_as(SEALED, SPOKEN, CALLED),
        model="other",
    )
    assert items(user("Hi"), foreign, result("c1", "x")) == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Let me look."}],
        },
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": '{"path": "ä"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "x"},
    ]


def test_what_a_model_sent_goes_back_to_it_as_it_came() -> None:
    kept = came_as(
        SEALED | {"summary": [{"type": "summary_text", "text": "Hm."}]},
        SPOKEN | {"phase": "commentary"},
        SEALED,
        CALLED | {"namespace": "fs"},
        CALLED,
    )
    answer = assistant(thinking("Hm."), "Let me look.", call("c1"), call("c2", path="b"), provider_data=kept)
    found = items(user("Hi"), answer, result("c1", "x"), result("c2", "y"))
    assert types(found[1:6]) == ["reasoning", "message", "reasoning", "function_call", "function_call"]
    assert found[1]["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert found[2]["phase"] == "commentary"
    assert found[2]["content"] == [{"type": "output_text", "text": "Let me look."}]
    assert found[3]["summary"] == []
    assert (found[4]["namespace"], found[4]["call_id"]) == ("fs", "c1")
    assert found[5] == {
        "type": "function_call",
        "call_id": "c2",
        "name": "read_file",
        "arguments": '{"path": "b"}',
    }
    assert not any("id" in item for item in found)


def test_the_model_is_the_same_under_its_name_and_under_its_id() -> None:
    for name in ("m", "local/m"):
        answer = assistant("Hello", provider_data=came_as(SEALED, SPOKEN), model=name)
        assert types(items(user("Hi"), answer, user("Go on"))) == [
            "message",
            "reasoning",
            "message",
            "message",
        ]


@pytest.mark.parametrize(
    "model", [Model("local", "other"), Model("elsewhere", "m")], ids=["another model", "another provider"]
)
def test_reasoning_never_goes_to_another(model: Model) -> None:
    answer = assistant("Hello", call("c1"), provider_data=came_as(SEALED, SPOKEN, CALLED))
    found = items(user("Hi"), answer, result("c1", "x"), model=model)
    assert types(found) == ["message", "message", "function_call", "function_call_output"]


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        ((SEALED,), []),
        ((SPOKEN, SEALED), ["message"]),
        ((SEALED, {"type": "web_search_call"}, SPOKEN), ["message"]),
        ((SEALED, {"type": "web_search_call"}, SEALED, SPOKEN), ["reasoning", "message"]),
        ((SEALED, SEALED, SPOKEN), ["reasoning", "reasoning", "message"]),
    ],
)
def test_reasoning_goes_back_only_before_what_it_led_to(kept: Any, left: list[str]) -> None:
    said = ["Hello"] if SPOKEN in kept else []
    found = items(user("Hi"), assistant(*said, provider_data=came_as(*kept)), user("Go on"))
    assert types(found)[1 if left else 0 : -1] == left


@pytest.mark.parametrize(
    "kept", [(SPOKEN, SPOKEN), (SPOKEN, CALLED, CALLED), (CALLED,), (), ({"type": "odd"},)]
)
def test_items_that_do_not_fit_the_message_any_more_are_not_used(kept: Any) -> None:
    answer = assistant("Hello", call("c1"), provider_data=came_as(*kept))
    found = items(user("Hi"), answer, result("c1", "x"))
    assert types(found) == ["message", "message", "function_call", "function_call_output"]


@pytest.mark.parametrize("data", [None, {}, {REPLAY_KEY: "x"}, {"reasoningField": "reasoning"}])
def test_other_provider_data_is_no_matter(data: Any) -> None:
    answer = assistant("Hello", provider_data=data)
    assert types(items(user("Hi"), answer, user("Go on"))) == ["message"] * 3


def test_a_server_that_wants_its_ids_gets_them_back() -> None:
    answer = assistant("Hello", call("c1"), provider_data=came_as(SEALED, SPOKEN, CALLED))
    foreign = assistant("Hello", model="other")
    found = items(
        user("Hi"), answer, result("c1", "x"), foreign, user("Go on"), dialect=ResponsesDialect(item_ids=True)
    )
    assert [item.get("id") for item in found[1:4]] == ["rs_1", "msg_1", "fc_1"]
    for message in (found[2], found[5]):
        assert message["id"].startswith("msg_")
        assert message["status"] == "completed"
        assert message["content"] == [{"type": "output_text", "text": "Hello", "annotations": []}]


def test_a_server_that_wants_calls_together_gets_them_last() -> None:
    answer = assistant(call("c1"), "Both at once.", call("c2"))
    results = result("c1", "x"), result("c2", "y")
    apart = items(user("Hi"), answer, *results)
    together = items(user("Hi"), answer, *results, dialect=ResponsesDialect(adjacent_calls=True))
    assert types(apart)[1:4] == ["function_call", "message", "function_call"]
    assert types(together)[1:4] == ["message", "function_call", "function_call"]


def test_reasoning_is_left_out_where_its_server_cannot_open_it() -> None:
    answer = assistant("Hello", provider_data=came_as(SEALED, SPOKEN | {"phase": "final_answer"}))
    found = items(user("Hi"), answer, user("Go on"), dialect=ResponsesDialect(replay_reasoning=False))
    assert types(found) == ["message"] * 3
    assert found[1]["phase"] == "final_answer"


def test_answers_that_say_nothing_are_left_out_and_the_users_words_joined() -> None:
    found = items(user("One"), assistant("  "), user("Two", "Three"))
    assert [part["text"] for part in found[0]["content"]] == ["One", "Two", "Three"]
    assert len(found) == 1


def test_arguments_are_json_text() -> None:
    found = items(user("Hi"), assistant(call("c1", text='"\n🌍')), result("c1", "x"))
    assert json.loads(found[1]["arguments"]) == {"text": '"\n🌍'}


# --- results and images ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "is_error", "sent"),
    [
        (("a", "b"), False, "a\nb"),
        (("gone",), True, "Error: gone"),
        (("Error: gone",), True, "Error: gone"),
        ((" ",), False, "(no output)"),
        ((), True, "Error: (no output)"),
    ],
)
def test_a_result_is_text_that_says_when_it_failed(said: Any, is_error: bool, sent: str) -> None:
    found = items(user("Hi"), assistant(call("c1")), result("c1", *said, is_error=is_error))
    assert found[-1]["output"] == sent


def test_images_of_results_and_prompts_are_shown_where_they_stand() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
    found = items(
        user("Look", PIXEL),
        assistant(call("c1"), call("c2")),
        result("c1", "shot", PIXEL),
        result("c2", PIXEL, is_error=True),
        model=SEES,
    )
    assert found[0]["content"] == [{"type": "input_text", "text": "Look"}, image]
    assert found[3]["output"] == [{"type": "input_text", "text": "shot"}, image]
    assert found[4]["output"] == [{"type": "input_text", "text": "Error:"}, image]


@pytest.mark.parametrize(
    "messages", [(user(PIXEL),), (user("Hi"), assistant(call("c1")), result("c1", PIXEL))]
)
def test_an_image_for_a_model_without_eyes_is_refused_with_the_way_out(messages: Any) -> None:
    with pytest.raises(ProviderError, match="images = true") as caught:
        items(*messages)
    assert caught.value.kind == "bad_request"


# --- ids ------------------------------------------------------------------------------------------


def test_a_long_id_is_shortened_the_same_for_the_call_and_its_result() -> None:
    one, other = "call_" + "x" * 100, "call_" + "x" * 101
    found = items(user("Hi"), assistant(call(one), call(other)), result(one, "x"), result(other, "y"))
    sent = [item["call_id"] for item in found[1:]]
    assert sent[:2] == sent[2:]
    assert len(set(sent)) == 2
    assert all(len(id) == 64 for id in sent)
    assert sent[0].startswith("call_xxx")


def test_an_id_that_fits_is_sent_as_it_is() -> None:
    for id in ("call_1", "functions.add:0", "call_1~2", "x" * 64):
        assert CallIds()[id] == id


def test_an_id_that_looks_like_anothers_short_form_stays_another() -> None:
    long = "x" * 65
    short = CallIds()[long]
    ids = CallIds()
    assert ids[long] != ids[short]
    assert len(ids[short]) <= 64


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text("ab_", min_size=1, max_size=120) | st.text("ab", min_size=60, max_size=70), max_size=20)
)
def test_ids_are_different_exactly_where_they_were(ids: list[str]) -> None:
    sent, again = CallIds(), CallIds()
    short = [sent[id] for id in ids]
    assert all(0 < len(id) <= 64 for id in short)
    assert len(set(short)) == len(set(ids))
    assert [again[id] for id in ids] == short


# --- any history ----------------------------------------------------------------------------------

_ITEM = st.sampled_from([SEALED, SPOKEN | {"phase": "commentary"}, CALLED, {"type": "web_search_call"}])


@st.composite
def _histories(draw: st.DrawFn) -> list[Any]:
    numbers = itertools.count()
    messages: list[Any] = [user("Hi")]
    for _ in range(draw(st.integers(0, 4))):
        blocks: list[Any] = []
        for kind in draw(st.lists(st.sampled_from(["text", "call", "thinking"]), max_size=4)):
            if kind == "text":
                blocks.append("Words.")
            elif kind == "call":
                blocks.append(call(f"c{next(numbers)}" + "x" * draw(st.sampled_from([0, 90]))))
            else:
                blocks.append(thinking("Hm."))
        kept = draw(st.lists(_ITEM, max_size=5)) if draw(st.booleans()) else [
            {"text": SPOKEN, "call": CALLED, "thinking": SEALED}[
                "text" if isinstance(block, str) else "thinking" if block.type == "thinking" else "call"
            ]
            for block in blocks
        ]  # fmt: skip
        answer = assistant(*blocks, provider_data=came_as(*kept), model=draw(st.sampled_from(["m", "other"])))
        messages += [answer, *(result(each.id, "x") for each in answer.calls), user("Go on")]
    return messages


@settings(max_examples=100, deadline=None)
@given(_histories(), st.booleans(), st.booleans())
def test_no_history_makes_a_request_that_a_strict_server_refuses(
    history: list[Any], adjacent: bool, typed: bool
) -> None:
    wire = ResponsesWire(adjacent=adjacent, typed=typed)
    dialect = ResponsesDialect(adjacent_calls=adjacent, item_ids=typed)
    for model in (THINKER, Model("local", "third")):
        assert wire.fault_of(responses_body(request(*history, model=model), dialect)) is None
