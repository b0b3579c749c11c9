"""Tool arguments against the tool's JSON Schema: strict, without coercion, never echoing the input."""

import copy
import re
from collections.abc import Iterator
from typing import Any

from agentd.agent.response import ArgumentsError, parse_arguments
from agentd.protocol.messages import ToolCall

_MAX_TEXT = 400  # with what is put before it, an answer stays under 500 characters
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")


class InvalidArguments(Exception):
    """Arguments that the tool's schema refuses; the message names each place and reason."""

    def __init__(self, tool_name: str, issues: list[str]) -> None:
        super().__init__(_message(tool_name, issues))


def validated(call: ToolCall, schema: dict[str, Any]) -> dict[str, Any]:
    """A deep copy of the call's arguments that the schema accepts.

    Null for an argument that need not be there counts as absent. Raises `InvalidArguments`.
    """
    if call.raw_arguments is not None:
        raise InvalidArguments(call.name, [f"/: {_why_unparsed(call.raw_arguments)}"])
    arguments = _without_nulls(copy.deepcopy(call.arguments), schema)
    issues = list(_issues(arguments, schema))
    if issues:
        raise InvalidArguments(call.name, issues)
    assert isinstance(arguments, dict)
    return arguments


def _why_unparsed(text: str) -> str:
    try:
        parse_arguments(text)
    except ArgumentsError as error:
        return str(error)
    return "arguments must be valid JSON"


def _message(tool_name: str, issues: list[str]) -> str:
    text = f'Invalid arguments for tool "{tool_name[:64]}":'
    for number, issue in enumerate(issues):
        line = f"\n  - {issue[:160]}"
        if len(text) + len(line) > _MAX_TEXT - 24:
            return f"{text}\n  - ... and {len(issues) - number} more"
        text += line
    return text


def _without_nulls(value: Any, schema: dict[str, Any]) -> Any:
    """The value without members that are null, optional, and not allowed to be null."""
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        return [_without_nulls(item, items) for item in value]
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value
    required = schema.get("required", ())
    kept = {}
    for name, item in value.items():
        inner = properties.get(name)
        if item is None and isinstance(inner, dict) and name not in required and not _allows_null(inner):
            continue
        kept[name] = _without_nulls(item, inner) if isinstance(inner, dict) else item
    return kept


def _allows_null(schema: dict[str, Any]) -> bool:
    import jsonschema_rs  # needed once a tool is called: kept out of start-up

    try:
        return bool(jsonschema_rs.is_valid(schema, None))
    except ValueError:  # a reference that leads outside this part of the schema
        return False


def _issues(arguments: Any, schema: dict[str, Any]) -> Iterator[str]:
    import jsonschema_rs  # needed once a tool is called: kept out of start-up

    try:
        errors = list(jsonschema_rs.validator_for(schema).iter_errors(arguments))
    except ValueError as error:  # a value JSON does not know (an object, a function), or a broken schema
        yield f"/: arguments must be plain JSON values ({type(error).__name__})"
        return
    for fault in errors:
        path = [str(part) for part in fault.instance_path]
        keyword, wanted = fault.kind.name, fault.kind.value
        if keyword == "required":
            yield f"{_pointer([*path, str(wanted)])}: is required"
        elif keyword == "additionalProperties":
            yield from (f"{_pointer([*path, str(name)])}: unknown argument" for name in wanted)
        else:
            yield f"{_pointer(path)}: {_reason(keyword, wanted)}"


def _pointer(path: list[str]) -> str:
    """A JSON pointer in which a name that the model made up is shown only when it looks like one."""
    return "/" + "/".join(part if part.isdigit() or _PLAIN_NAME.fullmatch(part) else "?" for part in path)


def _reason(keyword: str, wanted: Any) -> str:
    """The schema's demand in words; the value that failed it is not repeated."""
    words = {
        "type": lambda: f"must be of type {' or '.join(map(str, wanted))}",
        "enum": lambda: "must be one of " + ", ".join(f'"{option}"' for option in wanted),
        "minimum": lambda: f"must be at least {wanted}",
        "maximum": lambda: f"must be at most {wanted}",
        "minLength": lambda: f"must have at least {wanted} characters",
        "maxLength": lambda: f"must have at most {wanted} characters",
        "minItems": lambda: f"must have at least {wanted} items",
        "maxItems": lambda: f"must have at most {wanted} items",
        "pattern": lambda: f"must match {wanted}",
    }
    return words[keyword]() if keyword in words else f"does not satisfy the schema's {keyword}"
