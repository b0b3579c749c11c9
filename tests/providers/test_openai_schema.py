"""The schema of any tool, in the form that OpenAI's servers take."""

from typing import Any

from fakes.openai_wire import schema_faults
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.providers.openai_schema import function_parameters
from agentd.tools.builtin import builtin_tools
from agentd.workspace.process import Processes

TYPES = st.sampled_from(["string", "integer", "object", "array", "null", ["array", "null"]])
WORDS = ("items", "anyOf", "oneOf", "allOf", "not", "additionalProperties", "prefixItems", "contains")
NAMES = st.sampled_from(["a", "type"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional={"type": TYPES, "description": st.just("d")}),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": TYPES, "properties": st.dictionaries(NAMES, inner)}),
        st.dictionaries(st.sampled_from(WORDS), inner | st.lists(inner, max_size=2), max_size=3),
    ),
    max_leaves=10,
)


@settings(max_examples=100)
@given(SCHEMAS)
def test_any_schema_becomes_one_that_the_servers_take_and_no_other_a_second_time(schema: Any) -> None:
    told = function_parameters(schema)
    assert list(schema_faults("x", told)) == []
    assert function_parameters(told) == told


def test_a_schema_that_they_take_stays_as_it_is() -> None:
    for tool in builtin_tools(Processes()).tools:
        assert function_parameters(tool.parameters) == tool.parameters


def test_a_list_says_of_what_it_is_wherever_it_stands_and_data_stays_data() -> None:
    schema = {
        "type": "object",
        "properties": {"items": {"type": ["array", "null"], "default": {"type": "array"}}, "type": {}},
    }
    told = function_parameters(schema)
    assert told["properties"]["items"] == {**schema["properties"]["items"], "items": {}}
    assert told["properties"]["type"] == {}


def test_of_a_choice_at_the_top_the_properties_of_all_branches_are_there() -> None:
    one, two = ({"type": "object", "properties": {name: {"type": "string"}}} for name in "ab")
    assert set(function_parameters({"oneOf": [one, two]})["properties"]) == {"a", "b"}
