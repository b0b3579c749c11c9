"""The protocol as JSON Schema 2020-12 and as TypeScript, made from the very types that the daemon uses.

What a client sends is described as the daemon accepts it (a field with a default may be left out), what the
daemon sends as it sends it (a field with a default is always there), and a type that goes both ways like the
latter. Named unions and enumerations keep their names, so that the result reads like section 13.
"""

import re
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import core_schema

from agentd.protocol import capabilities, documents, errors, events, messages, methods
from agentd.protocol.wire import Id, Wire

Json = dict[str, Any]


class Exchange(NamedTuple):
    """What goes with a request: its params and what answers it."""

    params: type[Wire]
    results: tuple[type[Wire], ...]


REQUESTS: dict[str, Exchange] = {
    "agentd/prompt": Exchange(methods.PromptParams, (methods.PromptResult, methods.PromptAccepted)),
    "agentd/cancel": Exchange(methods.CancelParams, (methods.CancelResult,)),
    "agentd/session/new": Exchange(methods.SessionNewParams, (methods.SessionResult,)),
    "agentd/session/list": Exchange(methods.SessionListParams, (methods.SessionListResult,)),
    "agentd/session/get": Exchange(methods.SessionGetParams, (methods.SessionGetResult,)),
    "agentd/session/update": Exchange(methods.SessionUpdateParams, (methods.SessionResult,)),
    "agentd/session/attach": Exchange(methods.SessionAttachParams, (methods.AttachResult,)),
    "agentd/session/export": Exchange(methods.SessionParams, (methods.SessionExportResult,)),
    "agentd/session/compact": Exchange(methods.SessionCompactParams, (methods.SessionCompactResult,)),
    "agentd/session/fork": Exchange(methods.SessionForkParams, (methods.SessionResult,)),
    "agentd/session/rewind": Exchange(methods.SessionRewindParams, (methods.SessionRewindResult,)),
    "agentd/session/diff": Exchange(methods.SessionDiffParams, (methods.SessionDiffResult,)),
    "agentd/session/original": Exchange(methods.SessionOriginalParams, (methods.SessionOriginalResult,)),
    "agentd/session/close": Exchange(methods.SessionParams, (methods.Empty,)),
    "agentd/session/delete": Exchange(methods.SessionParams, (methods.Empty,)),
    "agentd/queue/update": Exchange(methods.QueueUpdateParams, (methods.QueueResult,)),
    "agentd/status": Exchange(methods.Empty, (methods.StatusResult,)),
    "agentd/models": Exchange(methods.ModelsParams, (methods.ModelsResult,)),
    "agentd/tools": Exchange(methods.ToolsParams, (methods.ToolsResult,)),
    "agentd/commands": Exchange(methods.CommandsParams, (methods.CommandsResult,)),
    "agentd/schema": Exchange(methods.Empty, ()),
    "agentd/credentials/set": Exchange(methods.CredentialsParams, (methods.Empty,)),
    "agentd/permission/respond": Exchange(methods.PermissionRespondParams, (methods.Empty,)),
    "agentd/permissions/rules": Exchange(methods.PermissionRulesParams, (methods.PermissionRulesResult,)),
    "agentd/permissions/revoke": Exchange(methods.PermissionRevokeParams, (methods.Empty,)),
}
"""The requests a client sends; no result type: any JSON object."""

NOTIFICATIONS: dict[str, type[Wire]] = {
    "agentd/trust/didChange": methods.TrustParams,
    "agentd/diagnostics/publish": documents.DocumentDiagnostics,
    "agentd/document/unsaved": documents.UnsavedParams,
    "agentd/focus": documents.FocusParams,
}
"""The notifications a client sends."""

SERVER_REQUESTS: dict[str, Exchange] = {
    "agentd/permission/request": Exchange(messages.PermissionRequest, (methods.PermissionAnswer,)),
    "agentd/document/save": Exchange(documents.DocumentSaveParams, (documents.DocumentSaveResult,)),
    "agentd/diagnostics/get": Exchange(documents.DiagnosticsGetParams, (documents.DiagnosticsGetResult,)),
}
"""The requests the daemon sends."""

SERVER_NOTIFICATIONS: dict[str, type[Wire]] = {"agentd/event": events.EventNotification}
"""The notifications the daemon sends."""

_NAMED: dict[str, Any] = {
    "Id": Id,
    "Mode": messages.Mode,
    "Effort": messages.Effort,
    "ToolKind": messages.ToolKind,
    "FileAction": messages.FileAction,
    "ErrorKind": messages.ErrorKind,
    "MessageStop": messages.MessageStop,
    "RunStop": messages.RunStop,
    "ContentBlock": messages.ContentBlock,
    "AssistantBlock": messages.AssistantBlock,
    "ResultBlock": messages.ResultBlock,
    "Message": messages.Message,
    "ToolDetails": messages.ToolDetails,
    "PermissionSubject": messages.PermissionSubject,
    "Event": events.Event,
}
"""What has a name in the protocol and is no class in Python."""


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, with the protocol's idea of optional."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """The name of a field says it already."""
        return False

    def model_field_schema(self, schema: core_schema.ModelField) -> Json:
        """A field declared with `absent()` is left out where it has no value: it is never null."""
        inner: Any = schema["schema"]
        if schema.get("serialization_exclude_if") is not None:
            while inner["type"] in ("default", "nullable"):
                inner = inner["schema"]
        return self.generate_inner(inner)

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Sent: whatever is not left out. Received: also a constant (`type`, `role`), which tells a union's
        members apart.
        """
        if field.get("serialization_exclude_if") is not None:
            return False
        if self.mode == "serialization":
            return True
        inner = field["schema"]
        literal = inner["schema"] if inner["type"] == "default" else inner
        if literal["type"] == "literal" and len(literal["expected"]) == 1:
            return True
        return super().field_is_required(field, total)

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> Json:
        """JSON Schema has no word `discriminator`; the constants do the work."""
        union = super().tagged_union_schema(schema)
        return {key: value for key, value in union.items() if key != "discriminator"}


def json_schema() -> Json:
    """The whole protocol, except what plain LSP says.

    The types stand in `$defs`; `requests`, `notifications`, `serverRequests` and `serverNotifications` name
    the `params` and the `result` of each method, as references into them. `initializationOptions` and `error`
    are the types that belong to no one method.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"agentd protocol {capabilities.PROTOCOL}",
        "requests": _exchanges(REQUESTS),
        "notifications": {name: {"params": _ref(params)} for name, params in NOTIFICATIONS.items()},
        "serverRequests": _exchanges(SERVER_REQUESTS),
        "serverNotifications": {name: {"params": _ref(p)} for name, p in SERVER_NOTIFICATIONS.items()},
        "initializationOptions": {"agentd": _ref(methods.ClientOptions)},
        "error": {"$ref": "#/$defs/RpcError"},
        "$defs": _definitions(),
    }


def _exchanges(exchanges: dict[str, Exchange]) -> Json:
    return {
        name: {"params": _ref(exchange.params), "result": _result(exchange.results)}
        for name, exchange in exchanges.items()
    }


def _result(results: tuple[type[Wire], ...]) -> Json:
    if not results:
        return {"type": "object"}
    return _ref(results[0]) if len(results) == 1 else {"anyOf": [_ref(result) for result in results]}


def _ref(model: type[Wire]) -> Json:
    return {"$ref": f"#/$defs/{model.__name__}"}


def _definitions() -> Json:
    received: list[type[Wire]] = [methods.ClientOptions, *NOTIFICATIONS.values()]
    received += [exchange.params for exchange in REQUESTS.values()]
    received += [result for exchange in SERVER_REQUESTS.values() for result in exchange.results]
    sent: list[type[Wire]] = [
        *SERVER_NOTIFICATIONS.values(),
        *(exchange.params for exchange in SERVER_REQUESTS.values()),
    ]
    sent += [result for exchange in REQUESTS.values() for result in exchange.results]
    types = {**_schemas(received, "validation"), **_schemas(sent, "serialization")}
    named = {name: _alone(kind) for name, kind in _NAMED.items()}
    definitions = {name: _with_wire_words(_with_names(schema, named)) for name, schema in types.items()}
    return dict(sorted({**definitions, **named, "RpcError": _error()}.items()))


def _schemas(models: list[type[Wire]], mode: JsonSchemaMode) -> Json:
    """The definitions of these models and of all that they hold."""
    inputs = [(model.__name__, mode, TypeAdapter(model)) for model in dict.fromkeys(models)]
    definitions: Json = TypeAdapter.json_schemas(inputs, schema_generator=_Generator)[1]["$defs"]
    return definitions


def _alone(kind: Any) -> Json:
    """The schema of a named type, without the definitions it refers to."""
    schema = TypeAdapter(kind).json_schema(mode="serialization", schema_generator=_Generator)
    return {key: value for key, value in schema.items() if key != "$defs"}


def _with_names(schema: Any, named: Json) -> Any:
    """The same schema with a reference wherever a named type is written out."""
    for name, written_out in named.items():
        if schema == written_out:
            return {"$ref": f"#/$defs/{name}"}
    if isinstance(schema, dict):
        return {key: _with_names(value, named) for key, value in schema.items()}
    if isinstance(schema, list):
        return [_with_names(value, named) for value in schema]
    return schema


def _with_wire_words(definition: Json) -> Json:
    """The same definition; fields that its description names are called as on the wire."""
    fields = definition.get("properties", {})

    def on_the_wire(word: re.Match[str]) -> str:
        return f"`{to_camel(word[1])}`" if to_camel(word[1]) in fields else word[0]

    return {**definition, "description": re.sub(r"`([a-z_]+)`", on_the_wire, definition["description"])}


def _error() -> Json:
    """The `error` member of a response (protocol, section 8)."""
    data = {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": list(errors.KINDS)},
            "retryable": {"type": "boolean"},
            "hint": {"type": "string"},
        },
        "required": ["kind", "retryable"],
    }
    return {
        "description": "Why a request was answered with an error. Clients switch on `data.kind`.",
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": data},
        "required": ["code", "message", "data"],
    }
