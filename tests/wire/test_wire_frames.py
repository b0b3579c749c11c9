"""The base protocol at its edges: how bytes may be cut, what a bad body costs and what bad framing costs."""

import contextlib
import json

import pytest
from wire.harness import Daemon, Json, error_of, frame, initialize_params, notification, request
from wire.home import Home

MIB = 1024 * 1024
LIMIT = 64 * MIB

STATUS = request("split-é€😀", "agentd/status", {"note": "a\u2028b\u2029c 😀"})


def is_refusal(message: Json) -> bool:
    """A response that could not be given to any request."""
    return "method" not in message and message["id"] is None


def refusals(daemon: Daemon) -> list[Json]:
    """The answers so far that name no request."""
    return [message for message in list(daemon.messages) if is_refusal(message)]


def refusal_of(daemon: Daemon, data: bytes) -> Json:
    """Write a frame that deserves an answer with `id: null`, and give the error of exactly that answer."""
    before = len(refusals(daemon))
    daemon.write(data)
    assert daemon.serves()
    answers = refusals(daemon)[before:]
    assert len(answers) == 1, answers
    return error_of(answers[0])


# --- how the bytes may come ----------------------------------------------------------------------------


def test_a_whole_conversation_fed_byte_by_byte_is_understood(home: Home) -> None:
    daemon = home.spawn()
    conversation = [request(1, "initialize", initialize_params()), notification("initialized", {}), STATUS]
    for byte in b"".join(map(frame, conversation)):
        daemon.write(bytes([byte]))
    assert daemon.response(1)["result"]["serverInfo"]["name"] == "agentd"
    assert "version" in daemon.response(STATUS["id"])["result"]


def test_a_frame_may_be_cut_in_two_at_every_byte(daemon: Daemon) -> None:
    cut = 0
    while True:
        message = request(f"cut at {cut} é€😀", "agentd/status", STATUS["params"])
        whole = frame(json.dumps(message, ensure_ascii=False).encode())
        cut += 1
        if cut == len(whole):
            return
        daemon.write(whole[:cut])
        daemon.wait_until_read()
        daemon.write(whole[cut:])
        assert "result" in daemon.response(message["id"])


def test_many_frames_in_one_write_are_all_answered_in_order(daemon: Daemon) -> None:
    ids = [f"one-write-{number}" for number in range(50)]
    daemon.send(*(request(request_id, "agentd/status") for request_id in ids))
    for request_id in ids:
        assert "result" in daemon.response(request_id)


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: %d\n\n",
        "content-length: %d\r\n\r\n",
        "CONTENT-LENGTH:%d\r\n\r\n",
        "Content-Length:   %d  \r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        "Content-Length: %d\r\nContent-Type: x; charset=utf8\r\nX-Näme: ü\r\n\r\n",
        "Content-Length: %d\r\nX-Trace: 1\n\r\n",
    ],
    ids=["lf-only", "lower-case", "no-blank", "blanks", "type-first", "non-ascii", "mixed-line-ends"],
)
def test_a_header_in_another_legal_form_is_understood(daemon: Daemon, header: str) -> None:
    request_id = f"header {header}"
    body = json.dumps(request(request_id, "agentd/status")).encode()
    daemon.write((header % len(body)).encode() + body)
    assert "result" in daemon.response(request_id)


# --- bad bodies fail alone -----------------------------------------------------------------------------

NOT_JSON = {
    "empty": b"",
    "brace": b"{",
    "text": b"hello",
    "comma": b'{"jsonrpc":"2.0","id":1,"method":"agentd/status",}',
    "two-values": b'{"jsonrpc":"2.0","id":1,"method":"agentd/status"}{}',
    "nan": b'{"jsonrpc":"2.0","id":1,"method":"agentd/status","params":{"x":NaN}}',
    "infinity": b'{"jsonrpc":"2.0","id":1,"method":"agentd/status","params":{"x":-Infinity}}',
    "single-quotes": b"{'jsonrpc':'2.0'}",
    "control-character": b'{"jsonrpc":"2.0","id":1,"method":"agentd/status","params":{"x":"a\x01b"}}',
    "nul": b"\0",
    "utf-8-cut": '{"jsonrpc":"2.0","id":1,"method":"agentd/status","params":{"x":"€'.encode()[:-1] + b'"}}',
    "latin-1": '{"jsonrpc":"2.0","id":1,"method":"agentd/status","params":{"x":"é"}}'.encode("latin-1"),
    "utf-8-surrogate": b'{"jsonrpc":"2.0","id":1,"method":"agentd/status","params":{"x":"\xed\xa0\x80"}}',
    "utf-16": '{"jsonrpc":"2.0","id":1,"method":"agentd/status"}'.encode("utf-16-le"),
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
def test_a_body_that_is_no_json_is_a_parse_error_and_fails_alone(daemon: Daemon, body: bytes) -> None:
    assert refusal_of(daemon, frame(body))["code"] == -32700


NO_MESSAGE: dict[str, bytes] = {
    "number": b"42",
    "string": b'"agentd/status"',
    "true": b"true",
    "null": b"null",
    "empty-batch": b"[]",
    "batch": json.dumps([request(1, "agentd/status"), request(2, "agentd/status")]).encode(),
    "no-method": b'{"jsonrpc":"2.0"}',
    "empty-object": b"{}",
    "null-id": json.dumps(request(None, "agentd/status")).encode(),
    "float-id": json.dumps(request(1.5, "agentd/status")).encode(),
    "whole-float-id": b'{"jsonrpc":"2.0","id":1.0,"method":"agentd/status"}',
    "bool-id": json.dumps(request(True, "agentd/status")).encode(),
    "object-id": json.dumps(request({"a": 1}, "agentd/status")).encode(),
    "list-id": json.dumps(request([1], "agentd/status")).encode(),
}


@pytest.mark.parametrize("body", NO_MESSAGE.values(), ids=NO_MESSAGE)
def test_json_that_is_no_message_is_an_invalid_request_and_fails_alone(daemon: Daemon, body: bytes) -> None:
    assert refusal_of(daemon, frame(body))["code"] == -32600


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "1.0", "method": "agentd/status"},
        {"method": "agentd/status"},
        {"jsonrpc": 2.0, "method": "agentd/status"},
        {"jsonrpc": "2.0", "method": 7},
        {"jsonrpc": "2.0", "method": None},
        {"jsonrpc": "2.0", "method": ["agentd/status"]},
    ],
    ids=["old-version", "no-version", "number-version", "number-method", "null-method", "list-method"],
)
def test_a_malformed_request_is_refused_under_its_own_id(daemon: Daemon, message: Json) -> None:
    request_id = f"malformed {message}"
    daemon.send({**message, "id": request_id})
    assert error_of(daemon.response(request_id))["code"] == -32600
    assert daemon.serves()


def nested(depth: int, request_id: str) -> bytes:
    """A request whose body is `depth` arrays and objects deep, the message itself counted."""
    inner = "[" * (depth - 2) + "]" * (depth - 2)
    return (
        f'{{"jsonrpc":"2.0","id":"{request_id}","method":"agentd/status","params":{{"x":{inner}}}}}'.encode()
    )


def test_a_body_512_levels_deep_is_served(daemon: Daemon) -> None:
    daemon.write(frame(nested(512, "depth-512")))
    assert "result" in daemon.response("depth-512")


@pytest.mark.parametrize("depth", [513, 100_000])
def test_a_body_more_than_512_levels_deep_is_refused_and_fails_alone(daemon: Daemon, depth: int) -> None:
    before = len(daemon.messages)
    daemon.write(frame(nested(depth, f"depth-{depth}")))
    answer = daemon.wait(
        lambda message: "method" not in message and message["id"] in (None, f"depth-{depth}"), since=before
    )
    assert error_of(answer)["code"] in (-32700, -32600)
    assert daemon.serves()


def test_a_hundred_thousand_open_brackets_are_refused_and_fail_alone(daemon: Daemon) -> None:
    assert refusal_of(daemon, frame(b"[" * 100_000))["code"] in (-32700, -32600)


def test_brackets_inside_a_string_do_not_count_as_depth(daemon: Daemon) -> None:
    body = request("deep string", "agentd/status", {"x": '\\"' + "[{" * 2000})
    daemon.send(body)
    assert "result" in daemon.response("deep string")


@pytest.mark.parametrize(
    "number",
    ["1" + "0" * 30, "-" + "9" * 100, "9" * 5000, "1e400", "-1e400", "1e-400", "0.1e1"],
    ids=["1e30", "-1e100", "5000-digits", "inf", "-inf", "zero", "fraction"],
)
def test_a_huge_number_in_an_unknown_field_hurts_nobody(daemon: Daemon, number: str) -> None:
    request_id = f"number {number[:9]}"
    before = len(daemon.messages)
    daemon.write(
        frame(
            f'{{"jsonrpc":"2.0","id":"{request_id}","method":"agentd/status","params":{{"x":{number}}}}}'.encode()
        )
    )
    daemon.wait(lambda message: "method" not in message and message["id"] in (None, request_id), since=before)
    assert daemon.serves()


def test_a_frame_above_the_limit_is_skipped_and_the_daemon_serves_on(daemon: Daemon) -> None:
    before = len(refusals(daemon))
    size = LIMIT + 1
    daemon.write(b"Content-Length: %d\r\n\r\n" % size)
    piece = b" " * MIB
    for _ in range(size // MIB):
        daemon.write(piece)
    daemon.write(b" " * (size % MIB))
    assert daemon.serves()
    answers = refusals(daemon)[before:]
    assert len(answers) == 1
    error = error_of(answers[0])
    assert error["code"] == -32600
    assert daemon.resident_bytes() < 300 * MIB


def test_a_prompt_of_five_megabytes_is_taken(daemon: Daemon, shared_home: Home) -> None:
    big = "x" * (5 * MIB)
    daemon.send(request("big", "agentd/session/new", {"title": "t", "unknown": big}))
    daemon.response("big", timeout=60)
    assert daemon.serves()


def test_fifty_thousand_objects_do_not_freeze_the_daemon(daemon: Daemon) -> None:
    daemon.send(request("objects", "agentd/status", {"many": [{"a": number} for number in range(50_000)]}))
    assert "result" in daemon.response("objects")


# --- bad framing ends the daemon -----------------------------------------------------------------------

BROKEN = {
    "no-length": b"Content-Type: x\r\n\r\n",
    "no-number": b"Content-Length: abc\r\n\r\n",
    "negative": b"Content-Length: -5\r\n\r\n",
    "two-lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
    "over-one-gib": b"Content-Length: 1073741825\r\n\r\n",
    "5000-digits": b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "endless-header": b"x" * 100_000,
    "json-lines": b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n\n',
}


def assert_ends_with_a_word(daemon: Daemon, data: bytes) -> None:
    """Broken framing is answered, logged, and ends the daemon with exit code 2 while stdin is still open."""
    with contextlib.suppress(BrokenPipeError):
        daemon.write(data)
    assert daemon.exit_code() == 2
    error = error_of(refusals(daemon)[-1])
    assert error["code"] == -32700
    assert daemon.errors.strip()
    assert daemon.torn == b""


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_broken_framing_before_initialize_ends_the_daemon_with_two(home: Home, data: bytes) -> None:
    assert_ends_with_a_word(home.spawn(), data)


def test_broken_framing_of_an_initialized_daemon_ends_it_with_two(home: Home) -> None:
    daemon = home.start()
    assert daemon.serves()
    assert_ends_with_a_word(daemon, b"Content-Length: abc\r\n\r\n")


@pytest.mark.parametrize("wrong", [-5, +5])
def test_a_length_wrong_by_five_ends_the_daemon_and_never_leaves_it_deaf(home: Home, wrong: int) -> None:
    daemon = home.start()
    body = json.dumps(request("wrong", "agentd/status")).encode()
    daemon.write(b"Content-Length: %d\r\n\r\n%b" % (len(body) + wrong, body))
    assert_ends_with_a_word(daemon, frame(request("next", "agentd/status")) * 2)


def test_requests_before_broken_framing_are_still_answered(home: Home) -> None:
    daemon = home.start()
    daemon.write(frame(request("before", "agentd/status")) + b"rubbish: 1\r\n\r\n")
    assert "result" in daemon.response("before")
    assert daemon.exit_code() == 2
