"""A tool's parameters in the form the Messages API takes: an object, with no choice at its top.

Below the top nearly all of JSON Schema is taken. A choice at the top becomes one object that has the
properties of all branches; what that forgets, the tool says itself when it is called.
"""

from collections.abc import Mapping
from typing import Any

_CHOICES = ("anyOf", "oneOf", "allOf")


def input_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The `input_schema` of a tool."""
    schema = {name: value for name, value in parameters.items() if name not in _CHOICES}
    properties = dict(_object(parameters.get("properties")))
    required = list(_list(parameters.get("required")))
    for choice in _CHOICES:
        branches = [_object(branch) for branch in _list(parameters.get(choice))]
        for branch in branches:
            properties = {**_object(branch.get("properties")), **properties}
        always = [set(_list(branch.get("required"))) for branch in branches]
        if always:
            held = set.union(*always) if choice == "allOf" else set.intersection(*always)
            required += sorted(held - set(required))
    schema |= {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
