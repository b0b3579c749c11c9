"""JSON Schema in the subset that `parameters` takes."""

from typing import Any

import pytest
from fakes.gemini_faults import schema_faults
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.providers.gemini_schema import subset
from agentd.tools.builtin import builtin_tools
from agentd.workspace.process import Processes


def translated(schema: dict[str, Any], **root: Any) -> Any:
    """A property's schema in the subset."""
    return subset({"type": "object", "properties": {"p": schema}} | root)["properties"]["p"]


STRING = {"type": "STRING"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "description": "A path."}, STRING | {"description": "A path."}),
        ({"type": "string", "$comment": "x", "title": "P", "default": "a", "examples": ["a"]}, STRING),
        ({"type": ["string", "null"]}, STRING | {"nullable": True}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, STRING | {"nullable": True}),
        ({"oneOf": [{"type": "string"}], "description": "D"}, STRING | {"description": "D"}),
        ({"type": ["string", "integer"]}, {"anyOf": [STRING, {"type": "INTEGER"}]}),
        (
            {"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
            {"anyOf": [STRING | {"nullable": True}, {"type": "NUMBER", "nullable": True}]},
        ),
        ({"enum": ["a", "b"]}, STRING | {"enum": ["a", "b"], "format": "enum"}),
        ({"type": "string", "enum": ["a", None]}, STRING | {"enum": ["a"], "format": "enum"}),
        ({"const": "a"}, STRING | {"enum": ["a"], "format": "enum"}),
        ({"enum": [1, 2]}, {"type": "INTEGER", "description": "One of: 1, 2."}),
        (
            {"type": "integer", "enum": [1], "description": "How many."},
            {"type": "INTEGER", "description": "How many. One of: 1."},
        ),
        ({"const": True}, {"type": "BOOLEAN", "description": "One of: True."}),
        (
            {"type": "integer", "exclusiveMinimum": 0, "maximum": 9},
            {"type": "INTEGER", "minimum": 1, "maximum": 9},
        ),
        ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 2}, {"type": "NUMBER"}),
        ({"type": "string", "format": "uri"}, STRING),
        ({"type": "string", "format": "date-time"}, STRING | {"format": "date-time"}),
        ({"type": "array"}, {"type": "ARRAY", "items": STRING}),
        ({"items": {"type": "integer"}, "minItems": 1, "uniqueItems": True},
         {"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": 1}),
        ({"prefixItems": [{"type": "number"}]}, {"type": "ARRAY", "items": {"type": "NUMBER"}}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "OBJECT"}),
        (
            {"properties": {"a": {"type": "string"}}, "required": ["a", "b"], "additionalProperties": False},
            {"type": "OBJECT", "properties": {"a": STRING}, "required": ["a"]},
        ),
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            {"type": "OBJECT", "properties": {"a": STRING, "b": STRING}, "required": ["a"]},
        ),
        (
            {"properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"properties": {"b": {}}}]},
            {"type": "OBJECT", "properties": {"a": STRING, "b": STRING}},
        ),
        (True, STRING),
        ({}, STRING),
    ],
)  # fmt: skip
def test_a_schema_is_said_in_the_subset(schema: Any, expected: Any) -> None:
    assert translated(schema) == expected
    assert not list(schema_faults(expected, "x"))


def test_references_are_resolved_and_what_stands_beside_them_stays() -> None:
    definitions = {"path/x": {"type": "string", "description": "A path."}}
    pointer = {"$ref": "#/$defs/path~1x", "description": "Mine."}
    assert translated(pointer, **{"$defs": definitions}) == STRING | {"description": "Mine."}
    assert translated({"$ref": "https://example.com/schema"}) == STRING


def test_a_schema_that_leads_into_itself_ends_in_any_object() -> None:
    node = {"type": "object", "properties": {"left": {"$ref": "#/$defs/n"}, "right": {"$ref": "#/$defs/n"}}}
    inner = {"type": "OBJECT"}
    assert translated({"$ref": "#/$defs/n"}, **{"$defs": {"n": node}}) == {
        "type": "OBJECT",
        "properties": {"left": inner, "right": inner},
    }
    for endless in ({"$ref": "#/$defs/e"}, {"allOf": [{"$ref": "#/$defs/e"}, {"$ref": "#/$defs/e"}]}):
        assert translated({"$ref": "#/$defs/e"}, **{"$defs": {"e": endless}})


def test_references_that_multiply_end_as_well() -> None:
    levels = {
        f"l{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/l{n + 1}"} for k in "abcdefgh"}}
        for n in range(20)
    }
    assert translated({"$ref": "#/$defs/l0"}, **{"$defs": levels})["type"] == "OBJECT"


def test_parameters_are_an_object_whatever_they_say() -> None:
    assert subset({}) == {"type": "OBJECT"}
    choice = {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
    assert subset(choice) == {"type": "OBJECT", "properties": {"a": STRING, "b": STRING}}


def test_every_built_in_tool_can_be_said_in_the_subset() -> None:
    for tool in builtin_tools(Processes()).tools:
        assert not list(schema_faults(subset(tool.parameters), tool.name))


WORDS = st.sampled_from(("string", "integer", "object", "array", "null", "x", "a", "#/$defs/a", "#"))
SCHEMAS = st.recursive(
    st.booleans() | st.none() | st.integers(-3, 3) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from((
            "type", "properties", "items", "anyOf", "oneOf", "allOf", "enum", "const", "$ref", "$defs",
            "required", "a", "format", "minimum", "exclusiveMinimum", "description", "nullable",
            "prefixItems",
        )), inner, max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(("p", "q")), SCHEMAS), SCHEMAS)
def test_any_schema_at_all_becomes_one_that_the_api_takes(properties: Any, definition: Any) -> None:
    schema = subset({"type": "object", "properties": properties, "$defs": {"a": definition}})
    assert not list(schema_faults(schema, "x"))
