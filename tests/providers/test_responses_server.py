"""The fake Responses server refuses what strict servers refuse, so that other tests may trust it."""

from typing import Any

import pytest
from fakes.responses_wire import ResponsesWire, seal

USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
REASONING = {"type": "reasoning", "summary": [], "encrypted_content": seal("m", "")}
TOOL = {
    "type": "function",
    "name": "f",
    "description": "",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


def call(id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"} | fields


def output(id: str, text: Any = "x") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": text}


def fault(*items: dict[str, Any], kind: dict[str, bool] | None = None, **fields: Any) -> str | None:
    wire = ResponsesWire(**kind or {})
    return wire.fault_of({"model": "m", "stream": True, "store": False, "input": list(items)} | fields)


def test_a_valid_history_has_no_fault() -> None:
    answers = (REASONING, ANSWER, REASONING, call("a"), call("b"), output("a"), output("b"))
    assert fault(USER, *answers, USER, tools=[TOOL]) is None


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "input is empty"),
        ([USER, call("a")], "No tool output found for function call a"),
        ([USER, call("a"), USER, output("a")], "No tool output found for function call a"),
        ([USER, output("a")], "No tool call found for function call output with call_id a"),
        ([USER, call("a"), output("a"), output("a")], "No tool call found"),
        ([USER, output("a"), call("a")], "No tool call found"),
        ([USER, call("a"), call("a"), output("a")], "used twice"),
        ([USER, REASONING], "without its required following item"),
        ([USER, REASONING, USER], "without its required following item"),
        ([USER, call("a"), REASONING, output("a")], "without its required following item"),
        ([USER, ANSWER | {"id": "msg_1"}, USER], "Items are not persisted"),
        ([USER, REASONING | {"encrypted_content": None}, ANSWER, USER], "without any reasoning"),
        ([USER, REASONING | {"encrypted_content": seal("n", "")}, ANSWER, USER], "could not be verified"),
        ([USER, call("x" * 65), output("x" * 65)], "call_id"),
        ([USER, call("a", arguments={}), output("a")], "arguments"),
        ([USER, call("a", arguments="[]"), output("a")], "arguments"),
        ([USER, call("a", name="a b"), output("a")], "name"),
        ([USER, call("a", status="completed"), output("a")], "Unknown parameter: 'input[1].status'"),
        ([USER, call("a"), output("a", "")], "blank"),
        ([USER, call("a"), output("a", [])], "empty"),
        ([USER, call("a"), output("a", [{"type": "output_text", "text": "x"}])], "Invalid value"),
        ([USER, {"type": "message", "role": "tool", "content": "x"}], "Invalid value: 'tool'"),
        ([USER, ANSWER | {"content": USER["content"]}, USER], "Invalid value: 'input_text'"),
        ([USER, ANSWER | {"content": "\n"}, USER], "blank"),
        ([USER, ANSWER | {"phase": "odd"}, USER], "phase"),
        ([USER, ANSWER], "last item"),
        ([USER | {"content": [{"type": "input_image", "image_url": "https://x"}]}], "data URL"),
        ([USER | {"content": "\ud800"}], "surrogate"),
        ([USER, {"type": "item_reference", "id": "rs_1"}], "Invalid value: 'item_reference'"),
    ],
)
def test_a_fault_in_the_history_is_found(items: list[dict[str, Any]], words: str) -> None:
    found = fault(*items)
    assert found is not None
    assert words in found


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"temperature": 1}, "Unknown parameter: 'temperature'"),
        ({"store": True}, "store"),
        ({"max_output_tokens": 15}, "max_output_tokens"),
        ({"tools": []}, "tools is empty"),
        ({"tools": [{key: TOOL[key] for key in TOOL if key != "strict"}]}, "strict"),
        ({"tools": [TOOL | {"strict": True}]}, "additionalProperties"),
        ({"tools": [TOOL | {"name": "a.b"}]}, "name"),
        ({"reasoning": {"effort": "odd"}}, "effort"),
        ({"stream": False}, "no streamed request"),
    ],
)
def test_a_fault_in_the_fields_is_found(fields: dict[str, Any], words: str) -> None:
    found = fault(USER, **fields)
    assert found is not None
    assert words in found


def test_a_model_that_does_not_reason_refuses_to_be_asked() -> None:
    include = ["reasoning.encrypted_content"]
    assert (
        fault(USER, kind={"reasons": False}, include=include)
        == "Encrypted content is not supported with this model."
    )
    assert "reasoning" in str(fault(USER, kind={"reasons": False}, reasoning={"summary": "auto"}))


def test_a_server_that_wants_calls_together_refuses_what_lies_between() -> None:
    apart = (USER, call("a"), ANSWER, call("b"), output("a"), output("b"))
    assert fault(*apart) is None
    assert "between" in str(fault(*apart, kind={"adjacent": True}))


def test_a_server_that_checks_types_wants_messages_and_reasoning_in_full() -> None:
    typed = {"typed": True}
    content = [{"type": "output_text", "text": "Hello", "annotations": []}]
    whole = ANSWER | {"id": "msg_1", "status": "completed", "content": content}
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert fault(USER, thought, whole, USER, kind=typed) is None
    for less in (ANSWER, whole | {"content": ANSWER["content"]}):
        assert "validation error" in str(fault(USER, less, USER, kind=typed))
    assert "validation error" in str(fault(USER, REASONING, whole, USER, kind=typed))
