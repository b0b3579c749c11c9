"""What a failed HTTP exchange with a model server means: a `ProviderError` with a kind and a clear message.

Servers agree on little. The status is the first witness, the body's code and words the second, because many
use 400 or 429 for what is neither a bad request nor a rate. Messages say provider, status and the server's
own words in short: never a page of HTML, never the key, even when the server repeats it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from agentd.protocol.messages import ErrorKind, Usage
from agentd.providers.base import ProviderError
from agentd.providers.context_limit import context_limit_in
from agentd.providers.google_status import details_in_words
from agentd.providers.retry_delay import asks_to_wait, retry_after_ms

EXCERPT = 300
"""The most characters of a server's own words in a message."""

RETRYABLE: frozenset[ErrorKind] = frozenset({"rate_limit", "overloaded", "network", "timeout", "server"})
"""The kinds that may be gone on a second try."""

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|too_many_prompt_tokens"
    r"|prompt (?:is )?too long|input (?:is )?too long|input tokens exceeded"
    r"|exceed(?:s|ed)?[^.]{0,40}context|context (?:window|length|size)[^.]{0,40}exceed"
    r"|maximum (?:context|prompt|model) length|maximum number of (?:input )?tokens allowed"
    r"|exceeds the limit of \d|loaded with context length of only|max_new_tokens`? must be <="
    r"|exceeded model token limit|token limit reached|reduce the length of the messages"
    r"|greater than the context length|range of input length|model_context_window_exceeded",
    re.IGNORECASE,
)
_OF_A_PROMPT = re.compile(r"context|prompt|length|too long|model token limit", re.IGNORECASE)
_OF_A_RATE = re.compile(
    r"rate[-_ ]?limit|too many requests|quota|resource_exhausted|request count|number of requests"
    r"|per[-_ ]?(?:second|minute|hour|day)|\b[TR]P[SMD]\b|(?:retry|try again) in\b",
    re.IGNORECASE,
)
"""With HTTP 429 an overflow has to speak of the prompt, and not of how much may be sent in a time."""
_QUOTA = re.compile(
    r"insufficient_quota|insufficient[_ ]balance|exceeded your current quota|billing|credit balance"
    r"|insufficient credits|payment required",
    re.IGNORECASE,
)
_DAILY = re.compile(r"PerDay")
"""In the name of a Google quota: it is not back before tomorrow, whatever delay the answer names."""
_BAD_REQUEST = re.compile(
    r"invalid[-_ ](?:request|prompt|image|base64)|bad[-_ ]request|not[-_ ]found"
    r"|(?:empty|unsupported|download)_image|image_(?:too|parse|file)",
    re.IGNORECASE,
)
_TELLING_STATUS: dict[int | None, ErrorKind] = {
    401: "auth", 403: "auth", 407: "auth", 408: "timeout", 409: "server", 429: "rate_limit",
    499: "server",  # Google: the answer was cancelled, and not by us
    503: "overloaded", 504: "timeout", 524: "timeout", 529: "overloaded",
}  # fmt: skip
_TELLING_WORDS: tuple[tuple[re.Pattern[str], ErrorKind], ...] = (
    (
        re.compile(r"content_filter|content management policy|content_policy|usage polic", re.IGNORECASE),
        "refusal",
    ),
    # Groq: the model wrote a call that does not parse; a second try often does.
    (re.compile(r"tool_use_failed"), "server"),
    (
        re.compile(
            r"(?:invalid|incorrect|missing|no) api[-_ ]?key|invalid_api_key|unauthori[sz]ed"
            r"|authentication_error|api key (?:not valid|expired)",
            re.IGNORECASE,
        ),
        "auth",
    ),
    (re.compile(r"rate[-_ ]?limit|too many requests|resource_exhausted", re.IGNORECASE), "rate_limit"),
    (
        re.compile(
            r"overloaded|at capacity|no capacity|service[-_ ]unavailable|slow[-_ ]down", re.IGNORECASE
        ),
        "overloaded",
    ),
    (re.compile(r"timed?[-_ ]?out", re.IGNORECASE), "timeout"),
)
_NO_TOOLS = re.compile(
    r"(?:does not|doesn't) support (?:tools|tool us|tool call|function call)"
    r"|support tool use|tools? (?:is|are) not supported"
    r"|function calling is not (?:enabled|supported)|tool calling`? is not supported"
    r"|--enable-auto-tool-choice|requires --jinja",
    re.IGNORECASE,
)
_REQUEST_IDS = (
    "x-request-id", "request-id", "x-goog-request-id", "apim-request-id", "x-amzn-requestid", "x-ds-trace-id",
    "cf-ray",
)  # fmt: skip
"""The headers in which servers name a request, the one that support asks for first."""
_WORD = re.compile(r"[\w.:/@+=-]{1,128}", re.ASCII)
_STATUS = re.compile(r"[1-5]\d\d")
_USERINFO = re.compile(r"//[^/\s@]{1,500}@")
_TAGS = re.compile(r"<\s*(?:!doctype|html|head|body)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Peer:
    """Whom we talk to, as error messages need it. `secret`, the key, is taken out of every message.

    So are the `hidden` values of headers. `usual_end` is how a base_url of the API mostly ends.
    `thinking_tag` is the model's, `content_type` that of its answer.
    """

    provider: str
    model: str
    url: str
    secret: str | None = None
    usual_end: str = "/v1"
    hidden: tuple[str, ...] = field(default=(), repr=False)
    thinking_tag: str | None = None
    content_type: str = ""

    def excerpt(self, text: str) -> str:
        """A server's own words in short, on one line, without markup and without the secret."""
        if _TAGS.search(text[:2000]):
            return "the server answered with an HTML page"
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = _USERINFO.sub("//", text)
        text = " ".join("".join(c if c.isprintable() else " " for c in text[: 20 * EXCERPT]).split())
        return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"

    def word(self, text: object) -> str | None:
        """A server's name for something, such as a code; None where it is none, or holds a secret."""
        if not isinstance(text, str) or not _WORD.fullmatch(text):
            return None
        return None if any(secret in text for secret in self._secrets) else text

    @property
    def _secrets(self) -> tuple[str, ...]:
        return tuple(secret for secret in (self.secret, *self.hidden) if secret)


def error_from_response(
    peer: Peer, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> ProviderError:
    """The failure that an HTTP answer means.

    `headers` has lower-case names; `body` may be only the beginning; `now` is in seconds since the epoch.
    """
    text = body.decode(errors="replace").strip()
    payload = _json_or_text(text)
    words, codes = _words(payload)
    evidence = " ".join((*codes, words, details_in_words(payload)))
    kind = _kind(status, evidence, blank=not text)
    advice = _advice(peer, status, kind, words)
    message = f"{peer.provider}: HTTP {status}{_reason(status)}"
    if words:
        message += f": {peer.excerpt(words)}"
    if advice:
        message += f" ({advice})"
    retryable = kind in RETRYABLE
    if headers.get("x-should-retry") in ("true", "false"):
        retryable = headers["x-should-retry"] == "true"
    return ProviderError(
        kind,
        message,
        retryable=retryable,
        status=status,
        code=_code(peer, codes),
        request_id=request_id_in(peer, headers, payload),
        retry_after_ms=retry_after_ms(headers, now, evidence, status),
        context_limit=context_limit_in(payload, words) if kind == "context_overflow" else None,
    )


def error_from_payload(peer: Peer, payload: Any, usage: Usage | None = None) -> ProviderError:
    """The failure that an error object inside an HTTP 200 answer means."""
    words, codes = _words(payload)
    status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), None)
    evidence = " ".join((*codes, words, details_in_words(payload)))
    kind = _kind(status, evidence, blank=False)
    told = ", ".join(code for code in codes if code not in words)
    message = f"{peer.provider}: {peer.excerpt(words) or 'the server reported an error'}"
    if told:
        message += f" ({peer.excerpt(told)})"
    if advice := _advice(peer, status, kind, words):
        message += f" ({advice})"
    return ProviderError(
        kind,
        message,
        retryable=kind in RETRYABLE,
        status=status,
        code=_code(peer, codes),
        request_id=request_id_in(peer, {}, payload),
        retry_after_ms=retry_after_ms({}, 0.0, evidence),
        context_limit=context_limit_in(payload, words) if kind == "context_overflow" else None,
        usage=usage,
        words=evidence,
    )


def request_id_in(peer: Peer, headers: Mapping[str, str], payload: Any = None) -> str | None:
    """A server's name for a request, from the body of an error or an answer's headers, in lower case."""
    said = payload if isinstance(payload, Mapping) else {}
    inner = said.get("error")
    bodies = (said, inner if isinstance(inner, Mapping) else {})
    ids = (body.get(name) for body in bodies for name in ("request_id", "requestId"))
    named = (headers.get(name) for name in _REQUEST_IDS)
    return next((word for word in map(peer.word, (*ids, *named)) if word is not None), None)


def _code(peer: Peer, codes: Sequence[str]) -> str | None:
    """The server's own code for a failure: the first that is no mere HTTP status."""
    told = (peer.word(code) for code in codes if not _STATUS.fullmatch(code))
    return next((code for code in told if code is not None), None)


def redirect_error(peer: Peer, status: int, location: str) -> ProviderError:
    """A redirect, which is not followed: the key goes to the configured host and no other."""
    target = peer.excerpt(location.split("?")[0]) or "nowhere"
    return ProviderError(
        "bad_request",
        f"{peer.provider}: HTTP {status}: {peer.url} redirects to {target}. Redirects are not followed, so "
        "that no other host gets the key: set base_url to the final address.",
        status=status,
    )


def wrong_page_error(peer: Peer, status: int, what: str) -> ProviderError:
    """A successful answer that is no model's answer, such as a login page; `what` it seems to be instead."""
    if "html" in peer.content_type.lower():
        what = peer.excerpt(peer.content_type)
    return ProviderError(
        "protocol",
        f"{peer.provider}: {peer.url} answered HTTP {status} with {what}, "
        f'not a model\'s stream. Check base_url: it usually ends in "{peer.usual_end}".',
        status=status,
    )


def truncated_error(peer: Peer, detail: str = "", usage: Usage | None = None) -> ProviderError:
    """A connection that ended before the answer did."""
    because = f" ({peer.excerpt(detail)})" if detail else ""
    return ProviderError(
        "network",
        f"{peer.provider}: the answer was truncated: the connection ended before the response was "
        f"complete{because}.",
        retryable=True,
        usage=usage,
    )


def unanswered_error(peer: Peer, lost: str, usage: Usage | None, *, has_words: bool) -> ProviderError:
    """A successful answer with nothing of a model in it: another server's words, or nothing at all."""
    if has_words and not lost:
        return wrong_page_error(peer, HTTPStatus.OK, "other words")
    return truncated_error(peer, lost or "it was empty", usage)


def _kind(status: int | None, text: str, *, blank: bool) -> ErrorKind:
    """The kind, from the most to the least telling witness."""
    if _is_overflow(status, text, blank=blank):
        return "context_overflow"
    if (
        status == HTTPStatus.PAYMENT_REQUIRED
        or _DAILY.search(text)
        or (_QUOTA.search(text) and not asks_to_wait(text))
    ):
        return "quota"
    if status in _TELLING_STATUS:
        return _TELLING_STATUS[status]
    for pattern, kind in _TELLING_WORDS:
        if pattern.search(text):
            return kind
    if status is None:
        return "bad_request" if _BAD_REQUEST.search(text) else "server"
    return "server" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "bad_request"


def _is_overflow(status: int | None, text: str, *, blank: bool) -> bool:
    says_so = _OVERFLOW.search(text) is not None
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return says_so and _OF_A_PROMPT.search(text) is not None and _OF_A_RATE.search(text) is None
    # Cerebras says no more than 400 when the prompt is too long.
    nothing_said = status == HTTPStatus.BAD_REQUEST and blank
    return says_so or nothing_said or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def _advice(peer: Peer, status: int | None, kind: ErrorKind, words: str) -> str:
    if _NO_TOOLS.search(words):
        return f'model "{peer.provider}/{peer.model}" has no tool support: choose a model that has'
    if kind == "auth":
        return f'check the API key of provider "{peer.provider}"'
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        asked = f'{peer.url} for model "{peer.model}"' if peer.model else peer.url
        return f'asked {asked}: check base_url, which usually ends in "{peer.usual_end}"'
    return ""


def _reason(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _words(payload: Any) -> tuple[str, tuple[str, ...]]:
    """The message and the codes in an error payload, whatever its shape; a list stands for its first item."""
    if isinstance(payload, list):
        payload = payload[0] if payload else ""
    if not isinstance(payload, Mapping):
        return (payload if isinstance(payload, str) else json.dumps(payload)), ()
    if isinstance(payload.get("error"), Mapping):
        return _words(payload["error"])
    words = next((payload[key] for key in ("message", "error", "detail", "msg") if payload.get(key)), "")
    if not isinstance(words, str):
        words = _words(words)[0]
    metadata = payload.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("raw"), str):
        words = f"{words}: {metadata['raw']}"  # OpenRouter: what the server behind it said
    codes = tuple(
        str(payload[key])
        for key in ("code", "type", "status")
        if isinstance(payload.get(key), str | int) and payload[key] not in ("", "error")
    )
    if not words and not codes:
        words = json.dumps(payload, ensure_ascii=False)
    return words, codes
