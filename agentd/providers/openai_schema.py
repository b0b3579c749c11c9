"""Schemas of tools' parameters as OpenAI's servers take them, in both of its APIs, in strict mode or not.

They refuse a request with a tool whose schema has a choice at its top ("schema must have type 'object' and
not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level") or, anywhere, a list that does not say of
what ("array schema missing items"). What has to be left out is checked by the tool itself when it is called.
"""

from collections.abc import Mapping
from typing import Any

from agentd.providers.anthropic_schema import input_schema

_NOT_ABOVE = ("enum", "not")
_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_DATA = ("enum", "const", "default", "examples", "required")


def function_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The `parameters` of a function for a tool's: the same, where nothing is wrong with them."""
    if not any(name in parameters for name in ("anyOf", "oneOf", "allOf", *_NOT_ABOVE)):
        whole: dict[str, Any] = {"type": "object", "properties": {}, **parameters}
    else:
        whole = input_schema({k: v for k, v in parameters.items() if k not in _NOT_ABOVE})
    whole["type"] = "object"
    said = _with_items(whole)
    assert isinstance(said, dict)
    return said


def _with_items(value: Any, *, is_named: bool = False) -> Any:
    """A schema, in which each list says of what it is: of anything, where nothing was said.

    With `is_named` it is a map of schemas by names, which mean nothing here.
    """
    if isinstance(value, list):
        return [_with_items(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if is_named:
        return {name: _with_items(item) for name, item in value.items()}
    told = {
        word: item if word in _DATA else _with_items(item, is_named=word in _NAMED)
        for word, item in value.items()
    }
    types = told.get("type")
    if "array" in (types if isinstance(types, list) else [types]):
        told.setdefault("items", {})
    return told
