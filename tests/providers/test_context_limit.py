"""The size of a context window, in the words in which servers refuse a prompt that is longer."""

import json
from typing import Any

import pytest

from agentd.providers.context_limit import context_limit_in
from agentd.providers.http_errors import Peer, error_from_payload, error_from_response

PEER = Peer("local", "m", "http://127.0.0.1/v1/chat/completions")

TOLD = [
    ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001.", 8192),
    ("This model's maximum context length is 1048565 tokens. However, you requested 1250025 tokens", 1048565),
    ("This endpoint's maximum context length is 200,000 tokens. However, you requested about 250000", 200000),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
    ("prompt is too long: 213462 tokens > 200000 maximum", 200000),
    ("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease", 200000),
    ("The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).", 1048576),
    ("The input token count exceeds the maximum number of input tokens allowed 1048576.", 1048576),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens", 131072),
    ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32768),
    ("request (20001 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192),
    ("Requested tokens (5234) exceed context window of 4096", 4096),
    ("However, the model is loaded with context length of only 4096 tokens, which is not enough", 4096),
    ("prompt token count of 140000 exceeds the limit of 128000", 128000),
    ("Your request exceeded model token limit: 131072 (requested: 140000)", 131072),
    ("Range of input length should be [1, 30720]", 30720),
    ("Input too long: 300000 input tokens, limit is 262144", 262144),
    ("`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens", 4097),
]  # fmt: skip


@pytest.mark.parametrize(("words", "limit"), TOLD)
def test_the_limit_is_read_in_each_servers_words(words: str, limit: int) -> None:
    assert context_limit_in({"error": {"message": words}}, words) == limit
    body = json.dumps({"error": {"message": words, "code": "context_length_exceeded"}}).encode()
    assert error_from_response(PEER, 400, {}, body, now=0).context_limit == limit
    assert (
        error_from_payload(
            PEER, {"error": {"message": words, "code": "context_length_exceeded"}}
        ).context_limit
        == limit
    )


@pytest.mark.parametrize(("words", "limit"), TOLD)
def test_those_words_are_known_for_an_overflow(words: str, limit: int) -> None:
    assert error_from_payload(PEER, {"error": {"message": words}}).kind == "context_overflow"


@pytest.mark.parametrize(
    "words",
    [
        "Your input exceeds the context window of this model.",
        "prompt too long; exceeded max context length by 1119046 tokens",
        "Request too large for model `m` on tokens per minute (TPM): Limit 8000, Requested 8547",
        "tokens to keep from the initial prompt is greater than the context length",
        "Please reduce the length of the messages or completion.",
        "maximum context length is 0 tokens",
        "maximum context length is 12 tokens",
        "maximum context length is 99999999999999999999999 tokens",
        "maximum context length is " + "9" * 100_000,
        "prompt token count exceeds the limit",
        "",
    ],
)
def test_where_none_is_told_none_is_made_up(words: str) -> None:
    assert context_limit_in({"error": {"message": words}}, words) is None


@pytest.mark.parametrize(
    ("payload", "limit"),
    [
        ({"error": {"message": "exceeds", "n_prompt_tokens": 14429, "n_ctx": 8192}}, 8192),
        ({"error": "exceeds", "n_ctx": 4096}, 4096),
        ([{"error": {"message": "exceeds", "n_ctx": 4096}}], 4096),
        ({"error": {"n_ctx": "4096"}}, None),
        ({"error": {"n_ctx": True}}, None),
        ({"error": None}, None),
        ([], None),
        (None, None),
        ("text", None),
    ],
)
def test_a_field_tells_it_too(payload: Any, limit: int | None) -> None:
    assert context_limit_in(payload, "") == limit


def test_another_failure_tells_no_limit() -> None:
    words = "rate limit reached; the maximum context length is 8192 tokens"
    body = json.dumps({"error": {"message": words}}).encode()
    error = error_from_response(PEER, 429, {}, body, now=0)
    assert (error.kind, error.context_limit) == ("rate_limit", None)
