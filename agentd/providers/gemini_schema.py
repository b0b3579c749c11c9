"""JSON Schema as the subset of OpenAPI that `parameters` of a function declaration takes.

The API refuses a request for a keyword it does not know, so what has no counterpart is put into words where a
model can use it, or left out: the tool checks its arguments itself. References are resolved.
https://ai.google.dev/api/caching#Schema
"""

from collections.abc import Mapping, Sequence
from typing import Any

_TYPES = {
    "string": "STRING", "number": "NUMBER", "integer": "INTEGER", "boolean": "BOOLEAN", "array": "ARRAY",
    "object": "OBJECT",
}  # fmt: skip
_KEPT: dict[str, tuple[str, ...]] = {
    "STRING": ("minLength", "maxLength", "pattern"),
    "NUMBER": ("minimum", "maximum"),
    "INTEGER": ("minimum", "maximum"),
    "ARRAY": ("minItems", "maxItems"),
    "OBJECT": (),
    "BOOLEAN": (),
}
_FORMATS = {
    "STRING": ("date-time",), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64"),
}  # fmt: skip
_MAX_SCHEMAS = 2000
_MAX_HOPS = 16
"""How many references in a row are followed, and how deep `allOf` may nest."""

Schema = dict[str, Any]


def subset(parameters: Mapping[str, Any]) -> Schema:
    """The same parameters, as far as the subset can say it: an object, in any case.

    A schema that leads into itself ends in any object.
    """
    return _Translation(parameters).of({**parameters, "type": "object"}, frozenset())


class _Translation:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MAX_SCHEMAS

    def of(self, schema: Any, within: frozenset[str]) -> Schema:
        """A schema in the subset; `within` are the references that have led to it."""
        self._left -= 1
        schema = _object(schema)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in within:
                return {"type": "OBJECT"}
            within |= {reference}
        if self._left < 0:
            return {"type": "OBJECT"}
        schema = self._merged(self._resolved(schema))
        described = {"description": schema["description"]} if _is_text(schema.get("description")) else {}
        branches, nullable = _branches(schema)
        if len(branches) > 1:
            # Beside a choice nothing else is taken. https://cloud.google.com/vertex-ai, Schema
            choices = [self.of(branch, within) for branch in branches]
            return {"anyOf": [choice | ({"nullable": True} if nullable else {}) for choice in choices]}
        if branches and branches[0] is not schema:
            translated = described | self.of(branches[0], within)
        else:
            translated = described | self._simple(schema, within)
        return translated | ({"nullable": True} if nullable else {})

    def _simple(self, schema: Mapping[str, Any], within: frozenset[str]) -> Schema:
        kind = _TYPES.get(_type_of(schema), "STRING")
        plain: Schema = {"type": kind}
        plain |= {name: schema[name] for name in _KEPT[kind] if _is_limit(name, schema.get(name))}
        plain |= _bounds(schema, kind)
        if schema.get("format") in _FORMATS.get(kind, ()):
            plain["format"] = schema["format"]
        plain |= _enumerated(schema, kind)
        if kind == "ARRAY":
            items = schema.get("items", schema.get("prefixItems"))
            plain["items"] = self.of(items[0] if isinstance(items, list) and items else items, within)
        if kind == "OBJECT":
            plain |= self._members(schema, within)
        return plain

    def _members(self, schema: Mapping[str, Any], within: frozenset[str]) -> Schema:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return {}
        members: Schema = {"properties": {name: self.of(of, within) for name, of in properties.items()}}
        required = [name for name in _names(schema.get("required")) if name in properties]
        return members | ({"required": required} if required else {})

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema with what its `$ref` means, and what stands beside the reference over that."""
        for _ in range(_MAX_HOPS):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            beside = {name: value for name, value in schema.items() if name != "$ref"}
            schema = {**self._at(reference), **beside}
        return {}

    def _at(self, reference: str) -> Mapping[str, Any]:
        """What a local JSON pointer leads to; anything else means any value."""
        place: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if name:
                place = place.get(name) if isinstance(place, Mapping) else None
        return place if isinstance(place, Mapping) else {}

    def _merged(self, schema: Mapping[str, Any], hops: int = 0) -> Mapping[str, Any]:
        """The schema and all of its `allOf` as one; an object has the properties of all its choices, too."""
        joined = [(part, True) for part in _list(schema.get("allOf"))]
        apart = ["allOf"]
        if schema.get("type") == "object" or "properties" in schema:
            apart += ["anyOf", "oneOf"]
            joined += [(part, False) for name in apart[1:] for part in _list(schema.get(name))]
        merged = {name: value for name, value in schema.items() if name not in apart}
        for part, always in joined if hops < _MAX_HOPS else ():
            other = self._merged(self._resolved(_object(part)), hops + len(joined))
            properties = {**_object(other.get("properties")), **_object(merged.get("properties"))}
            required = [*_names(merged.get("required")), *(_names(other.get("required")) if always else ())]
            merged = {**(other if always else {}), **merged}
            merged |= {"properties": properties} if properties else {}
            merged |= {"required": list(dict.fromkeys(required))} if required else {}
        return merged


def _branches(schema: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], bool]:
    """What a value may be, one of, and whether it may also be null."""
    choices = _list(schema.get("anyOf")) or _list(schema.get("oneOf"))
    if not choices:
        types = schema.get("type")
        names = types if isinstance(types, list) else [types]
        choices = [{**schema, "type": name} for name in names] if len(names) > 1 else [schema]
    kept = [choice for choice in choices if isinstance(choice, Mapping) and choice.get("type") != "null"]
    return kept, schema.get("nullable") is True or len(kept) < len(choices)


def _type_of(schema: Mapping[str, Any]) -> str:
    named = schema.get("type")
    if isinstance(named, list) and named:
        named = named[0]
    if isinstance(named, str):
        return named.lower()
    if "properties" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    values = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
    if values and all(isinstance(value, bool) for value in values):
        return "boolean"
    if values and all(isinstance(value, int) for value in values):
        return "integer"
    return "string"


def _bounds(schema: Mapping[str, Any], kind: str) -> Schema:
    """Bounds that a value may not reach, as ones that it may, where that is the same."""
    bounds: Schema = {}
    for name, counterpart, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        value = schema.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and kind == "INTEGER":
            bounds[counterpart] = value + step
    return bounds


def _enumerated(schema: Mapping[str, Any], kind: str) -> Schema:
    """An enum, which can only be of texts; other values go into the description."""
    values = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
    values = [value for value in values if value is not None]
    if not values:
        return {}
    if kind == "STRING" and all(_is_text(value) for value in values):
        return {"enum": values, "format": "enum"}
    told = f"One of: {', '.join(map(str, values))}."
    description = schema.get("description")
    return {"description": f"{description} {told}" if _is_text(description) else told}


def _is_limit(name: str, value: Any) -> bool:
    if name == "pattern":
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _names(value: Any) -> list[str]:
    return [name for name in _list(value) if isinstance(name, str)]


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []
