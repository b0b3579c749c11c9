"""The published schema against the types that the daemon really uses."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from agentd.protocol import capabilities, events, messages, methods
from agentd.protocol.errors import KINDS, RpcError
from agentd.protocol.schema import json_schema
from agentd.protocol.typescript import typescript
from agentd.protocol.wire import Wire

SCHEMA = json_schema()
TIME = "2026-11-29T17:01:38.041Z"


def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


def references(node: Any) -> set[str]:
    """Every definition that is referred to."""
    if isinstance(node, dict):
        here = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return here.union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


def test_it_is_valid_json_schema() -> None:
    assert jsonschema_rs.meta.is_valid(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_announced_method_has_params_and_result() -> None:
    assert set(SCHEMA["requests"]) == set(capabilities.METHODS)
    assert set(SCHEMA["notifications"]) == set(capabilities.NOTIFICATIONS)
    for types in [*SCHEMA["requests"].values(), *SCHEMA["serverRequests"].values()]:
        assert set(types) == {"params", "result"}


def test_every_reference_has_its_definition_and_every_definition_is_referred_to() -> None:
    names = {reference.removeprefix("#/$defs/") for reference in references(SCHEMA)}
    assert names == set(SCHEMA["$defs"])


def test_every_event_of_the_protocol_is_in_it() -> None:
    members = {member["$ref"].rsplit("/", 1)[1] for member in SCHEMA["$defs"]["Event"]["oneOf"]}
    types = {SCHEMA["$defs"][member]["properties"]["type"]["const"] for member in members}
    table = (
        "agent_start turn_start message_start message_update message_end tool_execution_start "
        "tool_execution_update tool_execution_end turn_end agent_end permission_requested "
        "permission_resolved retry message_reset queue_changed session_changed session_rewound "
        "todo_changed compaction_start compaction_end files_changed notice"
    )
    assert types == set(table.split())


USAGE = messages.Usage(input=1, total=1, cost=messages.Cost(total=0.5))
SESSION = messages.Session(
    session_id="s1", workspace_uri="file:///w", title="", model=None, mode="ask", state="idle",
    created_at=TIME, updated_at=TIME, message_count=0, usage=USAGE, seq=1,
)  # fmt: skip
CALL = messages.ToolCall(id="c1", name="bash", arguments={"command": "ls"})
ANSWER = messages.AssistantMessage(
    message_id="m1", content=(messages.TextContent(text="a"), CALL), provider="p", model="m",
    stop_reason="tool_use", timestamp=TIME, provider_data={"signature": "x"},
)  # fmt: skip
RESULT = messages.ToolResultMessage(
    message_id="m2", tool_call_id="c1", tool_name="bash", content=(messages.TextContent(text="out"),),
    is_error=False, timestamp=TIME,
    details=messages.CommandDetails(
        exit_code=None, signal="SIGKILL", duration_ms=1, truncated=False, total_bytes=3
    ),
)  # fmt: skip
QUESTION = messages.PermissionRequest(
    session_id="s1", prompt_id="p1", request_id="q1", tool_call_id="c1", tool_name="bash", title="Run ls",
    kind="execute", subject=messages.CommandSubject(command="ls", cwd="/w"),
    options=(messages.PermissionOption(option_id="a", label="Allow", kind="allow_once", scope="once"),),
)  # fmt: skip


def note(event: events.DurableEvent) -> events.EventNotification:
    return events.EventNotification(session_id="s1", prompt_id="p1", seq=1, time=TIME, event=event)


@pytest.mark.parametrize(
    "sample",
    [
        SESSION,
        ANSWER,
        RESULT,
        QUESTION,
        USAGE,
        note(events.SessionChanged(session=SESSION)),
        note(events.MessageEnd(message=ANSWER)),
        note(events.PermissionRequested(**QUESTION.model_dump(by_alias=False))),
        methods.PromptResult(
            session_id="s1", prompt_id="p1", stop_reason="error", text="", message_id=None, turns=1, seq=4,
            error=messages.RunError(kind="auth", message="no"),
        ),
        methods.CancelResult(state="cancelled", quiescent=True),
        methods.CancelResult(
            state="cancelled",
            quiescent=True,
            background=(methods.BackgroundInfo(id="bg_1", command="serve"),),
        ),
        methods.SessionGetResult(
            session=SESSION, messages=(ANSWER, RESULT), has_more=False, pending=(QUESTION,), queue=(),
            todo=(), partial=methods.Partial(), seq=9,
        ),
    ],
    ids=lambda sample: type(sample).__name__,
)  # fmt: skip
def test_what_the_daemon_sends_is_valid(sample: Wire) -> None:
    sent = json.loads(sample.model_dump_json())
    validator(type(sample).__name__).validate(sent)
    for field in SCHEMA["$defs"][type(sample).__name__]["required"]:
        assert not validator(type(sample).__name__).is_valid({k: v for k, v in sent.items() if k != field})


@pytest.mark.parametrize(
    ("name", "params", "valid"),
    [
        ("PromptParams", {"prompt": "hello"}, True),
        ("PromptParams", {"prompt": "hello", "later": 1}, True),
        ("PromptParams", {"prompt": []}, True),
        ("PromptParams", {"prompt": [{"type": "text", "text": "a"}], "maxTurns": 3, "mode": "plan"}, True),
        ("PromptParams", {"prompt": "  "}, False),
        ("PromptParams", {}, False),
        ("PromptParams", {"prompt": [{"text": "a"}]}, False),
        ("PromptParams", {"prompt": "a", "maxTurns": 0}, False),
        ("PromptParams", {"prompt": "a", "maxTurns": "3"}, False),
        ("PromptParams", {"prompt": "a", "mode": "wild"}, False),
        ("PromptParams", {"prompt": "a", "sessionId": "../x"}, False),
        ("SessionListParams", {}, True),
        ("SessionListParams", {"limit": 0}, False),
        ("CredentialsParams", {"provider": "p", "secret": None}, True),
        ("CredentialsParams", {"provider": "p"}, False),
        ("ClientOptions", {}, True),
    ],
)
def test_schema_and_daemon_agree_about_params(name: str, params: dict[str, Any], valid: bool) -> None:
    model: type[Wire] = getattr(methods, name)
    assert validator(name).is_valid(params) is valid
    if valid:
        model.model_validate(params)
    else:
        with pytest.raises(ValueError):  # noqa: PT011 - pydantic's text is not ours
            model.model_validate(params)


def test_an_error_is_valid_and_can_be_read_back() -> None:
    for kind in KINDS:
        error = RpcError(kind, "It failed.", retryable=True, hint="Wait.", pid=7)
        validator("RpcError").validate(error.to_wire())
        read = RpcError.from_wire(error.to_wire())
        assert (read.to_wire(), read.kind, read.hint, read.details) == (
            error.to_wire(),
            kind,
            "Wait.",
            {"pid": 7},
        )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32601, "message": "no"}, "methodNotFound"),
        ({"code": -32803, "message": "no", "data": {"kind": "ofALaterProtocol"}}, "internal"),
        ({"code": -32602, "message": "no", "data": {"kind": 7, "self": 1, "message": 2}}, "invalidParams"),
        ({}, "internal"),
        ("nonsense", "internal"),
        (None, "internal"),
    ],
)
def test_any_error_of_a_server_can_be_read(error: Any, kind: str) -> None:
    assert RpcError.from_wire(error).kind == kind


def test_descriptions_name_fields_as_the_wire_does() -> None:
    assert "`messageIds`" in SCHEMA["$defs"]["AgentEnd"]["description"]


def test_what_is_secret_to_clients_is_not_in_it() -> None:
    assert "providerData" not in json.dumps(SCHEMA["$defs"]["AssistantMessage"]["properties"])


def test_typescript_declares_each_type_once_and_uses_no_other() -> None:
    text = re.sub(r"/\*\*.*?\*/", "", typescript(SCHEMA), flags=re.DOTALL)
    declared = re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE)
    assert len(declared) == len(set(declared))
    assert set(SCHEMA["$defs"]) < set(declared)
    used = set(re.findall(r"\b[A-Z]\w+", re.sub(r'"[^"]*"', "", text)))
    assert used - {"Record", "Made"} <= set(declared)
    for opening, closing in ("{}", "()", "[]"):
        assert text.count(opening) == text.count(closing)


def test_typescript_reads_like_the_protocol() -> None:
    text = typescript(SCHEMA)
    assert 'export type Mode = "plan" | "ask" | "edit" | "auto" | "full";' in text
    assert "export type Message = UserMessage | AssistantMessage | ToolResultMessage;" in text
    assert '"agentd/prompt": { params: PromptParams; result: PromptResult | PromptAccepted };' in text
    assert "  messageId: Id | null;" in text
    assert "  usage?: Usage;" in text
    assert "  cacheRead: number;" in text


@pytest.mark.skipif(shutil.which("tsc") is None, reason="there is no TypeScript compiler here")
def test_typescript_compiles(tmp_path: Path) -> None:
    (tmp_path / "agentd.ts").write_text(typescript(SCHEMA))
    subprocess.run(["tsc", "--noEmit", "--strict", "agentd.ts"], cwd=tmp_path, check=True, timeout=120)
