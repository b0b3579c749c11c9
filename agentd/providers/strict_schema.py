"""Which schemas OpenAI's strict mode takes.

Source: OpenAI's guide "Structured model outputs", section "Supported schemas". Strict mode makes the model
keep to the schema, and refuses the whole request when a schema is one that it cannot enforce.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_KEYWORDS = frozenset((
    "type", "description", "title", "enum", "const", "properties", "required", "additionalProperties",
    "items", "anyOf", "$ref", "$defs", "definitions", "pattern", "format", "multipleOf", "maximum",
    "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems",
))  # fmt: skip
_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))


def fits_strict(schema: Mapping[str, Any]) -> bool:
    """Whether strict mode takes the schema of a tool's parameters as it is."""
    return schema.get("type") == "object" and "anyOf" not in schema and _fits(schema)


def _fits(schema: Any) -> bool:
    if not isinstance(schema, Mapping) or not _KEYWORDS.issuperset(schema):
        return False
    if "$ref" in schema:
        return len(schema) == 1
    if schema.get("format", "uuid") not in _FORMATS or "(?" in str(schema.get("pattern", "")):
        return False
    if not ("type" in schema or "anyOf" in schema or "enum" in schema or "const" in schema):
        return False
    types = schema.get("type")
    if "object" in (types if isinstance(types, list) else [types]) and not _is_closed(schema):
        return False
    return all(_fits(part) for part in _parts(schema))


def _is_closed(schema: Mapping[str, Any]) -> bool:
    """Whether an object has all of its properties, and no others."""
    properties = schema.get("properties")
    return (
        isinstance(properties, Mapping)
        and schema.get("additionalProperties") is False
        and set(schema.get("required", ())) == set(properties)
    )


def _parts(schema: Mapping[str, Any]) -> Iterable[Any]:
    for key in ("properties", "$defs", "definitions"):
        yield from schema.get(key, {}).values()
    yield from schema.get("anyOf", ())
    types = schema.get("type")
    if "array" in (types if isinstance(types, list) else [types]):
        yield schema.get("items")
