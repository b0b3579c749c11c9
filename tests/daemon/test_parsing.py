"""Bodies: every fault has its own error, under the right id, and says nothing of the input."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.daemon.parsing import BadMessage, Call, Reply, parse, validate
from agentd.protocol.errors import RpcError
from agentd.protocol.methods import PromptParams, SessionListParams
from agentd.server.connection import InitializeParams


def bad(body: bytes) -> tuple[str, Any, str]:
    """Kind, id and text of the error."""
    with pytest.raises(BadMessage) as caught:
        parse(body)
    return caught.value.error.kind, caught.value.id, caught.value.error.message


def nested(depth: int, brackets: str = "[]") -> bytes:
    inside = "1"
    opening, closing = ('{"a":' if brackets == "{}" else "["), brackets[1]
    value = opening * depth + inside + closing * depth
    return f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{value}}}'.encode()


MAX_DEPTH = 512  # section 9 of the protocol

# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("message_id", [0, 1, -1, 9007199254740993, 2**70, "1", "abc", "", "é😀"])
def test_an_id_keeps_its_type_and_value(message_id: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": message_id, "method": "m", "params": {"a": 1}}).encode()
    call = parse(body)
    assert call == Call(message_id, "m", {"a": 1})
    assert type(call.id) is type(message_id)


def test_a_message_without_an_id_is_a_notification() -> None:
    assert parse(b'{"jsonrpc":"2.0","method":"m"}') == Call(None, "m", None)


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":null}', Reply(1, None, None)),
        (b'{"jsonrpc":"2.0","id":"1","result":{"a":1}}', Reply("1", {"a": 1}, None)),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601}}', Reply(1, None, {"code": -32601})),
        (b'{"jsonrpc":"2.0","id":null,"error":"odd"}', Reply(None, None, None)),
        (b'{"jsonrpc":"2.0","id":7}', Reply(7, None, None, is_empty=True)),
    ],
)
def test_replies(body: bytes, reply: Reply) -> None:
    assert parse(body) == reply


def test_unicode_line_ends_inside_strings_are_letters() -> None:
    body = json.dumps(
        {"jsonrpc": "2.0", "method": "m", "params": {"t": "a\u2028b\u2029"}}, ensure_ascii=False
    )
    assert parse(body.encode()) == Call(None, "m", {"t": "a\u2028b\u2029"})


def test_half_a_letter_is_replaced_wherever_it_stands() -> None:
    params = b'{"\\udc00":["\\ud83d\\ude00",{"x":"a\\udfff"}]}'
    body = b'{"jsonrpc":"2.0","id":"\\ud800","method":"m","params":%b}' % params
    assert parse(body) == Call("\ufffd", "m", {"\ufffd": ["😀", {"x": "a\ufffd"}]})


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"NaN",
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m"} x',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        '{"jsonrpc":"2.0","id":1,"method":"m"}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5000,
    ],
    ids=range(12),
)
def test_what_is_no_json_is_a_parse_error_without_an_id(body: bytes) -> None:
    kind, message_id, text = bad(body)
    assert (kind, message_id) == ("parse", None)
    assert len(text) < 200


@pytest.mark.parametrize(
    ("body", "message_id"),
    [
        (b"[]", None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', None),
        (b"42", None),
        (b"null", None),
        (b'"text"', None),
        (b"{}", None),
        (b'{"jsonrpc":"1.0","id":7,"method":"m"}', 7),
        (b'{"id":7,"method":"m"}', 7),
        (b'{"jsonrpc":2.0,"id":"7","method":"m"}', "7"),
        (b'{"jsonrpc":"2.0"}', None),
        (b'{"jsonrpc":"2.0","result":1}', None),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', 7),
        (b'{"jsonrpc":"2.0","id":7,"method":null}', 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"m"}', None),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(body: bytes, message_id: Any) -> None:
    assert bad(body)[:2] == ("request", message_id)


@pytest.mark.parametrize("brackets", ["[]", "{}"])
@pytest.mark.parametrize("depth", [1, 150, 199, 250, MAX_DEPTH - 1])
def test_nesting_up_to_the_limit_is_read(depth: int, brackets: str) -> None:
    call = parse(nested(depth, brackets))
    assert isinstance(call, Call)
    assert call.id == 1


@pytest.mark.parametrize("brackets", ["[]", "{}"])
@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 100, 5000])
def test_nesting_above_the_limit_fails_alone(depth: int, brackets: str) -> None:
    assert bad(nested(depth, brackets))[0] == "parse"


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(st.binary(max_size=40), st.text(alphabet='{}[]":,\\u0eE-1nultre ', max_size=30).map(str.encode))
)
def test_any_body_is_a_message_or_a_fault_of_its_own(body: bytes) -> None:
    with suppress(BadMessage):
        parse(body)


# --- params ---------------------------------------------------------------------------------------


def invalid(model: Any, params: Any) -> str:
    with pytest.raises(RpcError) as caught:
        validate(model, params)
    assert caught.value.kind == "invalidParams"
    return caught.value.message


def test_params_that_are_left_out_are_empty() -> None:
    assert validate(SessionListParams, None) == SessionListParams()
    assert validate(SessionListParams, {"unknown": 1}) == SessionListParams()


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({}, "/prompt"),
        ({"prompt": 5}, "/prompt"),
        ({"prompt": " \n"}, "/prompt"),
        ({"prompt": "x", "sessionId": "a/b"}, "/sessionId"),
        ({"prompt": "x", "mode": "yolo"}, "/mode"),
        ({"prompt": "x", "maxTurns": 0}, "/maxTurns"),
        ({"prompt": "x", "maxTurns": "3"}, "/maxTurns"),
        ({"prompt": "x", "maxTurns": True}, "/maxTurns"),
        ({"prompt": "x", "wait": "never"}, "/wait"),
        ({"prompt": [{"type": "text"}]}, "/prompt/0/text"),
        ({"prompt": [{"type": "text", "text": "ok"}, {"type": "image", "data": "x"}]}, "/prompt/1/mimeType"),
        ({"prompt": [{"type": "odd"}]}, "/prompt/0"),
        ({"prompt": [5]}, "/prompt/0"),
        ([], "/"),
        ("text", "/"),
    ],
)
def test_params_that_are_wrong_name_the_place(params: Any, path: str) -> None:
    assert f"{path}: " in invalid(PromptParams, params)


def test_an_error_of_params_repeats_no_value_and_is_short() -> None:
    marker = "MARKER" * 1000
    params = {"prompt": {"x": marker}, "sessionId": marker, "mode": marker, "maxTurns": marker}
    message = invalid(PromptParams, params)
    assert "MARKER" not in message
    assert len(message) <= 1000


def test_a_secret_in_wrong_params_is_not_told() -> None:
    params = {"capabilities": "sk-secret", "processId": "sk-secret"}
    assert "sk-secret" not in invalid(InitializeParams, params)
