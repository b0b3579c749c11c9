"""The body of a chat request, in the forms that strict servers want."""

import json
from typing import Any

import pytest
from conversation import PIXEL, assistant, call, request, result, thinking, user
from fakes.openai_wire import wire_fault

from agentd.protocol.messages import CommandContent, Message, ResourceContent, ToolCall, UserMessage
from agentd.providers.base import Model, ModelRequest, ProviderError, ToolSpec
from agentd.providers.openai_chat_request import IMAGES_OF_RESULTS, chat_body

SEES = Model("local", "m", images=True)
PIXEL_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def messages(*history: Message, model: Model = SEES, system: str = "") -> list[dict[str, Any]]:
    body = chat_body(request(*history, model=model, system=system))
    assert wire_fault(body) is None
    return list(body["messages"])


def test_a_plain_request_has_no_fields_beyond_need() -> None:
    asked = ModelRequest(Model("local", "qwen"), "", (user("Hi"),), ())
    assert chat_body(asked) == {
        "model": "qwen",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_full_request_has_system_tools_limit_and_effort() -> None:
    model = Model("local", "m", max_output=8192, efforts=("low", "high"))
    body = chat_body(
        request(user("Hi"), model=model, tools=(ToolSpec("now", "The time.", {}),), effort="high")
    )
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert body["max_tokens"] == 8192
    assert body["reasoning_effort"] == "high"
    function = {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}}
    assert body["tools"] == [{"type": "function", "function": function}]


def test_an_effort_that_the_model_does_not_list_is_not_sent() -> None:
    model = Model("local", "m", efforts=("low",))
    assert "reasoning_effort" not in chat_body(request(user("Hi"), model=model, effort="max"))


def test_a_tool_turn_has_arguments_as_text_and_each_result_right_after() -> None:
    sent = messages(
        user("Read both"),
        assistant("On it.", call("c1", path="ä"), call("c2")),
        result("c1", "one", "two"),
        result("c2", "three"),
    )
    assert sent[1:] == [
        {
            "role": "assistant",
            "content": "On it.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"path": "ä"}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "one\ntwo"},
        {"role": "tool", "tool_call_id": "c2", "content": "three"},
    ]


def test_arguments_that_did_not_parse_go_back_as_a_valid_object() -> None:
    broken = ToolCall(id="c1", name="read_file", raw_arguments='{"path":')
    sent = messages(user("Hi"), assistant(broken), result("c1", "bad", is_error=True))
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("said", [(), ("",), ("\n\n",)])
def test_an_answer_of_calls_alone_has_null_content(said: tuple[str, ...]) -> None:
    sent = messages(user("Hi"), assistant(*said, call("c1")), result("c1", "x"))
    assert sent[1]["content"] is None


def test_an_answer_that_says_nothing_is_left_out_and_its_neighbours_are_merged() -> None:
    sent = messages(user("one"), assistant(thinking("hm"), " "), user("two"))
    assert sent == [{"role": "user", "content": "one\n\ntwo"}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no such line", "Error: no such line"),
        ("Error: no such line", "Error: no such line"),
        ('Tool "echo" failed: disk offline', 'Tool "echo" failed: disk offline'),
        ('Unknown tool "missing".', 'Unknown tool "missing".'),
        ("Tool execution aborted.", "Tool execution aborted."),
        ("first\nan error below", "Error: first\nan error below"),
    ],
)
def test_a_failed_tools_text_shows_that_it_failed(text: str, shown: str) -> None:
    sent = messages(user("Hi"), assistant(call("c1")), result("c1", text, is_error=True))
    assert sent[-1]["content"] == shown


def test_a_result_without_text_is_not_blank() -> None:
    sent = messages(user("Hi"), assistant(call("c1"), call("c2")), result("c1"), result("c2", PIXEL))
    assert sent[2]["content"] == "(no output)"
    assert sent[3]["content"].strip()


def test_images_of_results_follow_in_one_user_message_after_all_of_them() -> None:
    sent = messages(
        user("Look"),
        assistant(call("c1"), call("c2")),
        result("c1", "a", PIXEL),
        result("c2", "b", PIXEL),
        user("And?"),
    )
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert sent[-1]["content"] == [
        {"type": "text", "text": IMAGES_OF_RESULTS},
        PIXEL_PART,
        PIXEL_PART,
        {"type": "text", "text": "And?"},
    ]


def test_a_users_image_is_a_data_url() -> None:
    assert messages(user("Look", PIXEL))[0]["content"] == [{"type": "text", "text": "Look"}, PIXEL_PART]


@pytest.mark.parametrize(
    "history",
    [(user(PIXEL),), (user("Hi"), assistant(call("c1")), result("c1", PIXEL))],
    ids=["from the user", "from a tool"],
)
def test_an_image_for_a_model_without_eyes_is_refused(history: tuple[Message, ...]) -> None:
    with pytest.raises(ProviderError, match="local/m") as caught:
        chat_body(request(*history, model=Model("local", "m")))
    assert (caught.value.kind, caught.value.retryable) == ("bad_request", False)


def test_resources_and_commands_are_mentioned_in_words() -> None:
    blocks = (ResourceContent(uri="file:///a.py", text="x = 1"), CommandContent(name="fix", arguments="it"))
    sent = messages(UserMessage(message_id="u", content=blocks, timestamp=""))
    assert sent[0]["content"] == "[file:///a.py]\nx = 1\n\n/fix it"


@pytest.mark.parametrize(
    ("model", "field"),
    [("m", "reasoning_content"), ("m", "reasoning"), ("local/m", "reasoning"), ("another", None)],
)
def test_reasoning_goes_back_under_its_name_to_the_model_it_came_from(model: str, field: str | None) -> None:
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    data = {"reasoningField": field or "reasoning", "reasoningDetails": details}
    answer = assistant(thinking("hm"), call("c1"), model=model, provider_data=data)
    sent = messages(user("Hi"), answer, result("c1", "x"))[1]
    replayed = {key: value for key, value in sent.items() if "reasoning" in key}
    assert replayed == ({field: "hm", "reasoning_details": details} if field else {})


def test_reasoning_whose_field_nobody_remembers_stays_here() -> None:
    answer = assistant(thinking("hm"), "Hi", provider_data={"reasoningField": "__proto__"})
    sent = messages(user("Hi"), answer, user("Go on"))[1]
    assert sent == {"role": "assistant", "content": "Hi"}


def test_a_calls_extra_content_goes_back_to_the_same_call() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    answer = assistant(call("c1"), call("c2"), provider_data={"callExtras": [None, {"extra_content": extra}]})
    sent = messages(user("Hi"), answer, result("c1", "x"), result("c2", "x"))[1]["tool_calls"]
    assert "extra_content" not in sent[0]
    assert sent[1]["extra_content"] == extra


def test_what_else_came_with_a_call_or_a_text_goes_back_to_the_same_model_alone() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    kept = {"callExtras": [{"signature": "x", "id": "never"}], "extraContent": extra}
    answer = assistant("Hm", call("c1"), provider_data=kept)
    sent = messages(user("x"), answer, result("c1", "y"))[1]
    assert sent["extra_content"] == extra
    assert (sent["tool_calls"][0]["id"], sent["tool_calls"][0]["signature"]) == ("c1", "x")
    foreign = answer.model_copy(update={"model": "another"})
    sent = messages(user("x"), foreign, result("c1", "y"))[1]
    assert "extra_content" not in sent
    assert "signature" not in sent["tool_calls"][0]


def test_the_body_is_json() -> None:
    json.dumps(chat_body(request()))
