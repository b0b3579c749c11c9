"""Whatever comes in: each request is answered exactly once, and the daemon serves on."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire.harness import Daemon, Json, error_of, frame, request

METHODS = [
    "initialize",
    "agentd/prompt",
    "agentd/cancel",
    "agentd/commands",
    "agentd/session/new",
    "agentd/session/list",
    "agentd/session/get",
    "agentd/session/update",
    "agentd/session/attach",
    "agentd/session/export",
    "agentd/session/compact",
    "agentd/session/fork",
    "agentd/session/rewind",
    "agentd/session/diff",
    "agentd/session/original",
    "agentd/session/close",
    "agentd/models",
    "agentd/session/delete",
    "agentd/queue/update",
    "agentd/tools",
    "agentd/credentials/set",
    "agentd/permission/respond",
    "agentd/permissions/rules",
    "agentd/permissions/revoke",
    "textDocument/hover",
    "workspace/executeCommand",
    "textDocument/didOpen",
    "textDocument/didChange",
    "textDocument/didSave",
    "textDocument/didClose",
    "workspace/didChangeWorkspaceFolders",
    "workspace/didChangeConfiguration",
    "agentd/trust/didChange",
    "agentd/diagnostics/publish",
    "agentd/focus",
    "agentd/document/unsaved",
    "$/cancelRequest",
    "",
]

NAMES = [
    "sessionId", "promptId", "prompt", "model", "mode", "title", "workspaceUri", "limit", "cursor", "before",
    "wait", "whenBusy", "maxTurns", "requestId", "optionId", "provider", "secret", "text", "type", "uri",
    "textDocument", "contentChanges", "range", "start", "end", "line", "character", "version", "event",
    "added", "removed", "id", "jsonrpc", "method", "params", "effort", "trusted", "ruleId",
    "op", "index", "afterSeq", "keepQueue", "scope", "uris", "undo", "dryRun", "messageId", "instructions",
    "selection", "visible", "diagnostics", "message", "severity", "settings", "agentd",
]  # fmt: skip

TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["\ud800", "x\udfff\ud800y", "file:///", "file:///tmp", "untitled:x", "p-1", "a/b", "\0"]
    ),
)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)

VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), TEXTS), inner, max_size=5),
    ),
    max_leaves=15,
)

CALM = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def answers_since(daemon: Daemon, since: int) -> list[Json]:
    """The responses that came after message number `since`, up to and with that of a last request."""
    assert daemon.serves()
    return [message for message in daemon.messages[since:] if "method" not in message][:-1]


@CALM
@given(method=st.sampled_from(METHODS), params=VALUES)
def test_any_params_of_any_method_are_answered_exactly_once(daemon: Daemon, method: str, params: Any) -> None:
    since = len(daemon.messages)
    daemon.send(request("any", method, params))
    daemon.wait(lambda message: message.get("id") == "any", since)
    (answer,) = answers_since(daemon, since)
    if "error" in answer:
        assert error_of(answer)["code"] != -32603, answer


@CALM
@given(method=st.sampled_from(METHODS), params=VALUES)
def test_any_notification_is_taken_without_an_answer(daemon: Daemon, method: str, params: Any) -> None:
    since = len(daemon.messages)
    daemon.send({"jsonrpc": "2.0", "method": method, "params": params})
    assert answers_since(daemon, since) == []


@CALM
@given(message=VALUES)
def test_any_json_value_as_a_message_is_answered_at_most_once(daemon: Daemon, message: Any) -> None:
    since = len(daemon.messages)
    daemon.send(message)
    for answer in answers_since(daemon, since):
        assert error_of(answer)["code"] in (-32700, -32600, -32601, -32602)


@CALM
@given(body=st.binary(max_size=60))
def test_any_bytes_as_a_body_are_answered_once(daemon: Daemon, body: bytes) -> None:
    since = len(daemon.messages)
    daemon.write(frame(body))
    (answer,) = answers_since(daemon, since)
    assert error_of(answer)["code"] in (-32700, -32600)


@CALM
@given(data=st.data())
def test_a_valid_request_with_one_byte_changed_is_answered_at_most_once(
    daemon: Daemon, data: st.DataObject
) -> None:
    body = bytearray(json.dumps(request(5, "agentd/status", {"limit": 5})).encode())
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] = data.draw(st.integers(0, 255))
    since = len(daemon.messages)
    daemon.write(frame(bytes(body)))
    assert len(answers_since(daemon, since)) <= 1


@CALM
@given(cuts=st.lists(st.integers(0, 2000), max_size=12))
def test_frames_cut_anywhere_are_the_same_frames(daemon: Daemon, cuts: list[int]) -> None:
    since = len(daemon.messages)
    whole = b"".join(frame(request(f"cut-{n}", "agentd/status", {"é": "😀" * n})) for n in range(10))
    places = sorted({0, *(cut % len(whole) for cut in cuts), len(whole)})
    for start, end in itertools.pairwise(places):
        daemon.write(whole[start:end])
    assert [answer["id"] for answer in answers_since(daemon, since)] == [f"cut-{n}" for n in range(10)]


def test_every_method_of_the_protocol_was_tried(daemon: Daemon) -> None:
    announced = daemon.messages[0]["result"]["capabilities"]["experimental"]["agentd"]["methods"]
    without_params = {"agentd/status", "agentd/schema"}
    if missing := set(announced) - set(METHODS) - without_params:
        pytest.fail(f"METHODS lacks {missing}")
