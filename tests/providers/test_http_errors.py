"""What servers' errors mean, in the words that servers use."""

import json

import pytest

from agentd.providers.http_errors import Peer, error_from_payload, error_from_response

PEER = Peer("local", "m", "http://127.0.0.1/v1/chat/completions", secret="sk-canary")

OVERFLOWS = [
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000",
    "Your input exceeds the context window of this model.",
    "This model's maximum context length is 1048565 tokens. However, you requested 1250025 tokens",
    "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
    "Please reduce the length of the messages or completion.",
    "Prompt contains 9 tokens, too large for model with 8 maximum context length",
    "prompt too long; exceeded max context length by 1119046 tokens",
    "tokens to keep from the initial prompt is greater than the context length",
    "Context size has been exceeded.",
    "Input Tokens Exceeded: 9",
    "Input is too long for requested model.",
    "prompt token count of 9 exceeds the limit of 8",
    "Your request exceeded model token limit: 8 (requested: 9)",
    "context window exceeds limit",
    "Range of input length should be [1, 30720]",
    "Input too long: 9 input tokens, limit is 8",
    "Token limit reached",
]


@pytest.mark.parametrize("words", OVERFLOWS)
def test_a_prompt_that_is_too_long_is_known_by_its_words(words: str) -> None:
    body = json.dumps({"error": {"message": words}}).encode()
    assert error_from_response(PEER, 400, {}, body, now=0).kind == "context_overflow"
    busy = json.dumps({"error": {"message": f"{words} (tokens per minute)"}}).encode()
    assert error_from_response(PEER, 429, {}, busy, now=0).kind == "rate_limit"
    assert error_from_payload(PEER, {"error": {"message": words}}).kind == "context_overflow"


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        ("This model's maximum context length is 8 tokens, you requested 9", None, "context_overflow"),
        ("prompt is too long: 9 tokens > 8 maximum", "invalid_request_error", "context_overflow"),
        ("maximum context length is 8", "rate_limit_exceeded", "rate_limit"),
        ("Please reduce the length of the messages. Please try again in 2s.", None, "rate_limit"),
        ("request count of 9 exceeds the limit of 8 for this prompt", None, "rate_limit"),
        ("Token limit reached", None, "rate_limit"),
        ("Too many", None, "rate_limit"),
    ],
)
def test_too_many_requests_are_an_overflow_only_where_the_words_say_so(
    words: str, code: str | None, kind: str
) -> None:
    body = json.dumps({"error": {"message": words, "code": code}}).encode()
    assert error_from_response(PEER, 429, {}, body, now=0).kind == kind


def test_too_many_requests_without_a_word_are_no_overflow() -> None:
    assert error_from_response(PEER, 429, {}, b"", now=0).kind == "rate_limit"


def test_of_a_servers_words_an_error_has_at_most_300_characters() -> None:
    error = error_from_response(PEER, 400, {}, ("x" * 5000).encode(), now=0)
    assert error.message.endswith(f": {'x' * 299}…")


@pytest.mark.parametrize(
    "words",
    [
        "messages.3: tool_use ids were found without tool_result blocks",
        "max_tokens is too large: 99999",
        "Unsupported parameter: input_tokens",
        "context is not a known field",
    ],
)
def test_other_bad_requests_are_not_taken_for_an_overflow(words: str) -> None:
    body = json.dumps({"error": {"message": words}}).encode()
    assert error_from_response(PEER, 400, {}, body, now=0).kind == "bad_request"


def test_a_date_to_wait_for_counts_from_now() -> None:
    headers = {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}
    error = error_from_response(PEER, 429, headers, b"{}", now=784111777 - 30)
    assert error.retry_after_ms == 30_000


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{}", b"3", b'""', b'{"error":null}', b'{"error":[]}', b"\xff\xfe", b"[" * 9999],
)
@pytest.mark.parametrize("status", [400, 418, 500, 599])
def test_no_body_leaves_the_message_without_its_facts(body: bytes, status: int) -> None:
    error = error_from_response(PEER, status, {}, body, now=0)
    assert error.message.startswith(f"local: HTTP {status}")


@pytest.mark.parametrize("payload", [None, 3, "", [], {}, {"error": {}}, {"error": True}, {"code": 1e400}])
def test_no_payload_leaves_the_message_empty(payload: object) -> None:
    error = error_from_payload(PEER, payload)
    assert error.message.startswith("local: ")
    assert len(error.message) > len("local: ")


def test_secrets_in_a_servers_words_are_taken_out() -> None:
    words = "key sk-canary refused by http://user:hunter2@proxy/"
    error = error_from_payload(PEER, {"error": {"message": words}})
    assert "sk-canary" not in error.message
    assert "hunter2" not in error.message
    assert "http://proxy/" in error.message


def test_what_the_server_behind_a_gateway_said_is_told() -> None:
    raw = {"message": "Provider returned error", "code": 502, "metadata": {"raw": "GPU on fire"}}
    assert "GPU on fire" in error_from_payload(PEER, {"error": raw}).message


# --- code and request id --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"message": "m", "type": "invalid_request", "code": "no_model"}}, "no_model"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "overloaded_error"),
        ({"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}, "INVALID_ARGUMENT"),
        ([{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}], "RESOURCE_EXHAUSTED"),
        ({"code": "invalid-argument", "error": "m"}, "invalid-argument"),
        ({"object": "error", "message": "m", "type": "x_type", "code": "3230"}, "3230"),
        ({"detail": "Invalid API Key"}, None),
        ({"error": {"code": 502, "message": "m"}}, None),
        ({"error": {"code": "sk-canary", "message": "m"}}, None),
        ({"error": {"code": "<html>two words", "message": "m"}}, None),
        ({"error": {"code": "x" * 129, "message": "m"}}, None),
    ],
)  # fmt: skip
def test_the_code_is_the_servers_own_word(body: object, code: str | None) -> None:
    assert error_from_response(PEER, 418, {}, json.dumps(body).encode(), now=0).code == code
    assert error_from_payload(PEER, body).code == code


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"x-request-id": "req_1"}, {}, "req_1"),
        ({"request-id": "req_2"}, {}, "req_2"),
        ({"x-request-id": "req_1", "cf-ray": "ray"}, {}, "req_1"),
        ({"apim-request-id": "a-b"}, {}, "a-b"),
        ({"cf-ray": "8f-FRA"}, {}, "8f-FRA"),
        ({"x-request-id": "req_1"}, {"error": {"message": "m"}, "request_id": "req_3"}, "req_3"),
        ({}, {"error": {"message": "m", "request_id": "req_4"}}, "req_4"),
        ({"x-request-id": "holds sk-canary"}, {}, None),
        ({"x-request-id": "sk-canary"}, {"request_id": 3}, None),
        ({"x-request-id": "<b>"}, {}, None),
        ({}, {}, None),
    ],
)
def test_the_request_id_is_told_where_a_server_gives_one(
    headers: dict[str, str], body: object, expected: str | None
) -> None:
    assert error_from_response(PEER, 500, headers, json.dumps(body).encode(), now=0).request_id == expected


def test_the_wire_tells_status_code_and_request_id_only_where_there_are_any() -> None:
    body = json.dumps({"error": {"message": "m", "code": "c"}}).encode()
    error = error_from_response(PEER, 500, {"x-request-id": "r"}, body, now=0).to_run_error()
    told = error.model_dump(mode="json")
    assert (told["status"], told["code"], told["requestId"]) == (500, "c", "r")
    bare = error_from_payload(PEER, {"error": {"message": "m"}}).to_run_error().model_dump(mode="json")
    assert not {"status", "code", "requestId"} & set(bare)


def test_the_values_of_secret_headers_are_taken_out_of_a_servers_words() -> None:
    peer = Peer("local", "m", "http://127.0.0.1/", hidden=("header-canary",))
    error = error_from_payload(peer, {"error": {"message": "bad header-canary", "code": "header-canary"}})
    assert "header-canary" not in error.message
    assert error.code is None
    assert "canary" not in repr(peer)
