"""Arguments against a tool's schema: strict, without coercion, and nothing of the input is repeated."""

from typing import Any

import pytest

from agentd.agent.validation import InvalidArguments, validated
from agentd.protocol.messages import ToolCall

ECHO = {
    "type": "object",
    "properties": {
        "value": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["fast", "slow"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "nothing": {"type": ["string", "null"]},
        "options": {
            "type": "object",
            "properties": {"deep": {"type": "boolean"}, "need": {"type": "string"}},
            "required": ["need"],
        },
        "items": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["value"],
    "additionalProperties": False,
}
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def call(arguments: Any = None, raw: str | None = None, name: str = "echo") -> ToolCall:
    return ToolCall.model_construct(id="c1", name=name, arguments=arguments, raw_arguments=raw)


def refused(arguments: Any = None, raw: str | None = None, name: str = "echo") -> str:
    with pytest.raises(InvalidArguments) as caught:
        validated(call(arguments, raw, name), ECHO)
    return str(caught.value)


def test_the_wrong_type_is_told_with_tool_and_place() -> None:
    message = refused({"value": 42})
    assert '"echo"' in message
    assert "/value: must be of type string" in message


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({}, "/value: is required"),
        ({"value": "x", "count": 0}, "/count: must be at least 1"),
        ({"value": "x", "count": "1"}, "/count: must be of type integer"),
        ({"value": "x", "mode": "medium"}, '/mode: must be one of "fast", "slow"'),
        ({"value": "x", "options": {}}, "/options/need: is required"),
        ({"value": "x", "items": ["a", 1]}, "/items/1: must be of type string"),
        ({"value": "x", "items": ["a", "b", "c"]}, "/items: must have at most 2 items"),
        ({"value": "x", "other": 1}, "/other: unknown argument"),
        ({"value": None}, "/value: must be of type string"),
    ],
)
def test_every_fault_names_its_place_and_the_demand(arguments: Any, place: str) -> None:
    assert place in refused(arguments)


@pytest.mark.parametrize("arguments", [None, [], "text", 1])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    assert "/: must be of type object" in refused(arguments)


def test_argument_text_that_is_no_json_is_refused_as_such() -> None:
    assert "/: arguments must be valid JSON" in refused({}, '{"path":')


def test_argument_text_that_is_no_object_is_refused_as_such() -> None:
    assert "/: arguments must be a JSON object" in refused({}, "[1]")


@pytest.mark.parametrize("value", [object(), print, {1, 2}, b"bytes", float("nan")])
def test_a_value_that_json_does_not_know_is_refused_by_name(value: Any) -> None:
    assert "/" in refused({"value": value})


def test_what_is_given_to_the_tool_is_equal_and_shared_nowhere() -> None:
    arguments = {"value": "x", "options": {"need": "y"}, "items": ["a"]}
    made = validated(call(arguments), ECHO)
    assert made == arguments
    made["options"]["need"] = "changed"
    made["items"].append("changed")
    assert arguments == {"value": "x", "options": {"need": "y"}, "items": ["a"]}


@pytest.mark.parametrize("name", ["count", "items", "options", "mode", "either"])
def test_null_for_an_argument_that_need_not_be_there_is_as_if_it_were_not(name: str) -> None:
    assert validated(call({"value": "x", name: None}), ECHO) == {"value": "x"}


def test_null_for_a_nested_argument_that_need_not_be_there_is_as_if_it_were_not() -> None:
    arguments = {"value": "x", "options": {"need": "y", "deep": None}}
    assert validated(call(arguments), ECHO) == {"value": "x", "options": {"need": "y"}}


def test_null_stays_where_the_schema_wants_it() -> None:
    assert validated(call({"value": "x", "nothing": None}), ECHO) == {"value": "x", "nothing": None}


def test_no_arguments_are_fine_for_a_tool_that_needs_none() -> None:
    assert validated(call({}), NO_ARGUMENTS) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {"value": ["MARKER" * 800]},
        {"value": "x", "mode": "MARKER" * 800},
        {"value": "x", "MARKER" * 800: 1},
        {"value": "x", "MARKER secret": 1},
        {"value": "x", **{f"MARKER é {number}": 1 for number in range(400)}},
        {f"unknown_{number}": 1 for number in range(400)},
    ],
)
def test_an_error_is_short_and_repeats_nothing_of_the_input(arguments: dict[str, Any]) -> None:
    message = refused(arguments)
    assert len(message) < 500
    assert "MARKER" not in message


def test_an_error_is_short_though_the_tools_name_is_long() -> None:
    assert len(refused({f"unknown_{number}": 1 for number in range(400)}, name="n" * 64)) < 500


def test_broken_text_is_not_repeated_either() -> None:
    message = refused({}, '{"value": "' + "MARKER" * 800)
    assert len(message) < 500
    assert "MARKER" not in message
