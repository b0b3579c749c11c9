"""The size of a model's context window, as the error for a prompt that was too long tells it.

Each server has its own words, and most name two numbers: what was sent, and what is the most. The patterns
here name the second. Sources: the servers' own answers, and for llama.cpp its `server-task.cpp`.
"""

import re
from collections.abc import Mapping
from typing import Any

_N = r"(\d{1,3}(?:[,_]\d{3})+|\d+)"
_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # OpenAI, OpenRouter, DeepSeek, vLLM, xAI: "maximum context length is 8192 tokens"
        rf"maximum (?:context|prompt|model|input) (?:length|size)(?: is|:| of)(?: only)? {_N}\b",
        # Anthropic: "213462 tokens > 200000 maximum", "exceed context limit: 178959 + 64000 > 200000"
        rf"> {_N} maximum",
        rf"context limit: {_N} \+ {_N} > {_N}",
        # Google: "exceeds the maximum number of tokens allowed (1048576)"
        rf"maximum number of (?:input )?tokens allowed \(?{_N}",
        # Mistral: "too large for model with 32768 maximum context length"
        rf"\bwith {_N} maximum context length",
        # llama.cpp, llama-cpp-python, LM Studio, rkllm: "the available context size (4096 tokens)"
        rf"context (?:size|window|length)(?: of| is|:)?(?: only)? \(?{_N}",
        # Copilot: "prompt token count of 9 exceeds the limit of 8"
        rf"exceeds the limit of {_N}\b",
        # Kimi: "exceeded model token limit: 131072 (requested: 140000)"
        rf"model token limit: ?{_N}",
        # Alibaba: "Range of input length should be [1, 30720]"
        rf"range of input length should be \[\d+, ?{_N}\]",
        # Vercel: "Input too long: 9 input tokens, limit is 8"
        rf"input tokens, limit is {_N}",
        # Hugging Face: "`inputs` tokens + `max_new_tokens` must be <= 4097"
        rf"tokens`?[^.]{{0,40}} must be <= ?{_N}",
    )
)
_FIELDS = ("n_ctx", "max_context_length", "context_length")
"""Where servers tell it beside their words."""
_OF_A_RATE = re.compile(r"tokens per (?:minute|day)|\bTP[MD]\b", re.IGNORECASE)
_LEAST, _MOST = 128, 100_000_000
"""What can be a context window, in tokens."""


def context_limit_in(payload: Any, words: str) -> int | None:
    """The context window that an overflow error tells, in tokens; None where it tells none.

    `payload` is the error's body where that is JSON, `words` the message in it. A limit on a rate is none on
    a prompt.
    """
    if _OF_A_RATE.search(words):
        return None
    found = [*_fields(payload), *_told(words)]
    return next((limit for limit in found if _LEAST <= limit <= _MOST), None)


def _fields(payload: Any) -> list[int]:
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, Mapping):
        return []
    inner = payload.get("error")
    bodies = (payload, inner if isinstance(inner, Mapping) else {})
    values = [body.get(name) for body in bodies for name in _FIELDS]
    return [value for value in values if type(value) is int]


def _told(words: str) -> list[int]:
    matches = (pattern.search(words[:4000]) for pattern in _LIMITS)
    # Of a sum the last number is the most; in all others there is one.
    last = (match.group(match.lastindex or 0) for match in matches if match is not None)
    return [int(re.sub(r"[,_]", "", number)) for number in last if len(number) <= len("100,000,000")]
