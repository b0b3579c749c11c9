"""The protocol as TypeScript declarations, made from its JSON Schema."""

import json
import re
from typing import Any

Json = dict[str, Any]

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_TABLES = {
    "requests": ("Requests", "The requests a client sends."),
    "notifications": ("Notifications", "The notifications a client sends."),
    "serverRequests": ("ServerRequests", "The requests the daemon sends."),
    "serverNotifications": ("ServerNotifications", "The notifications the daemon sends."),
}


def typescript(schema: Json) -> str:
    """The module for a schema of the form that `agentd.protocol.schema.json_schema` gives.

    One exported type for each definition, then a table of methods for each direction.
    """
    parts = [f"// {schema['title']}. Made by `agentd schema --typescript`."]
    parts += [_declaration(name, definition) for name, definition in schema["$defs"].items()]
    for key, (name, description) in _TABLES.items():
        fields = [
            f"  {json.dumps(method)}: {_inline({part: _type(kind) for part, kind in types.items()})};"
            for method, types in schema[key].items()
        ]
        parts.append("\n".join([f"/** {description} */", f"export interface {name} {{", *fields, "}"]))
    return "\n\n".join(parts) + "\n"


def _declaration(name: str, definition: Json) -> str:
    comment = _comment(definition.get("description"))
    if "properties" not in definition:
        return f"{comment}export type {name} = {_type(definition)};"
    required = definition.get("required", [])
    fields = [
        f"  {_key(field if field in required else f'{field}?')}: {_type(kind)};"
        for field, kind in definition["properties"].items()
    ]
    return "\n".join([f"{comment}export interface {name} {{", *fields, "}"])


def _comment(text: str | None) -> str:
    if not text:
        return ""
    lines = text.replace("*/", "* /").split("\n")
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    body = "\n".join(f" * {line}".rstrip() for line in lines)
    return f"/**\n{body}\n */\n"


def _type(schema: Json) -> str:
    """The TypeScript type of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(_type(member) for member in schema[union]))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    return _plain(schema)


def _plain(schema: Json) -> str:
    kind = schema.get("type")
    if kind == "array":
        items = _type(schema.get("items", {}))
        return f"({items})[]" if "|" in items else f"{items}[]"
    if kind == "object":
        if "properties" in schema:
            required = schema.get("required", [])
            return _inline(
                {
                    field if field in required else f"{field}?": _type(value)
                    for field, value in schema["properties"].items()
                }
            )
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) and values else 'unknown'}>"
    names = {
        "string": "string",
        "integer": "number",
        "number": "number",
        "boolean": "boolean",
        "null": "null",
    }
    return names.get(str(kind), "unknown")


def _inline(fields: dict[str, str]) -> str:
    return "{ " + "; ".join(f"{_key(field)}: {kind}" for field, kind in fields.items()) + " }"


def _key(field: str) -> str:
    name = field.removesuffix("?")
    return field if _IDENTIFIER.fullmatch(name) else json.dumps(name) + field[len(name) :]
