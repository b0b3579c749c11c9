"""Decoder of Gemini's `streamGenerateContent` answers, sans I/O: bytes in, stream events out.

Bytes go into `feed`, and into nothing after `done`; `close` says that there are no more; `end` then gives the
`StreamEnd` or raises what went wrong. `feed` and `close` never raise: what was said before a failure counts.

Every event is a whole GenerateContentResponse that holds the next parts. What follows from what servers do:

* there is no end mark: the end of the connection is the end, and right only once a `finishReason` was given;
* `finishReason` may stand in every chunk; the last one counts, and counts from the first on is the last;
* everything may be absent, null or of a wrong type; only candidate 0 is read;
* an error may come as JSON between the events and not in one, over many lines, in a list or not;
* an answer that is plain JSON is one chunk, or a list of them, as the API sends without `alt=sse`.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agentd.providers.answer_payloads import AnswerPayloads, Payload
from agentd.providers.base import ProviderError, StreamEnd, StreamEvent, TextDelta, ThinkingDelta
from agentd.providers.gemini_calls import FunctionCalls
from agentd.providers.gemini_parts import SIGNATURE, KeptParts
from agentd.providers.gemini_stop import blocked_error, empty_error, stop_of, word
from agentd.providers.gemini_usage import UsageCounts
from agentd.providers.http_errors import (
    Peer,
    error_from_payload,
    truncated_error,
    unanswered_error,
    wrong_page_error,
)
from agentd.providers.surrogates import SurrogatePairs

_READ = frozenset(("text", "functionCall", "thought", SIGNATURE, "thought_signature"))
"""The fields of a part that are read here; another that holds an object makes it one that is only kept."""
_BESIDE = frozenset(("partMetadata", "mediaResolution", "videoMetadata"))
"""Objects that only describe a part: one that holds nothing else is refused when it comes back."""


class GeminiDecoder:
    """Reads one answer of `peer`."""

    def __init__(self, peer: Peer) -> None:
        self.done = False
        """Whether all has been said, so that the connection can be left without waiting for its end."""
        self._peer = peer
        self._payloads = AnswerPayloads(peer.provider)
        self._chunks = 0
        self._failure: ProviderError | None = None
        self._finish: str | None = None
        self._finish_said = ""
        self._ends_soon = False
        self._block_reason: str | None = None
        self._block_said = ""
        self._counts = UsageCounts()
        self._blocks = 0
        self._open: type[TextDelta] | type[ThinkingDelta] | None = None
        self._calls = FunctionCalls(self._new_block)
        self._kept = KeptParts()
        self._has_other_parts = False
        self._pairs = SurrogatePairs()

    @property
    def finish_reason(self) -> str | None:
        """Why the server stopped, once it seems to have; None also where it says so and goes on."""
        return (self._finish or self._block_reason) if self._ends_soon else None

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take the next bytes; give what they say."""
        events: list[StreamEvent] = []
        if not self.done:
            self._take(self._payloads.feed(data), events)
        return events

    def close(self) -> list[StreamEvent]:
        """The connection has ended; give what its last bytes say."""
        events: list[StreamEvent] = []
        if not self.done:
            self._take(self._payloads.close(), events)
        if not self.done:
            self._complete(events)
        return events

    def end(self, lost: str = "") -> StreamEnd:
        """The end of the answer. Raises `ProviderError`; `lost` says how the connection broke, if it did."""
        usage = self._counts.usage
        if self._failure is not None:
            raise self._failure
        if self._block_reason is not None:
            raise blocked_error(self._peer, self._block_reason, self._block_said, usage)
        if not self._chunks:
            raise unanswered_error(self._peer, lost, usage, has_words=self._payloads.has_words)
        if self._finish is None:
            raise truncated_error(self._peer, lost, usage)
        stop = stop_of(
            self._peer, self._finish, calls=bool(self._calls.count), usage=usage, said=self._finish_said
        )
        if stop == "stop" and not self._blocks and not self._has_other_parts:
            raise empty_error(self._peer, usage)
        return StreamEnd(stop, usage, self._finish, self._kept.replay())

    def _complete(self, events: list[StreamEvent]) -> None:
        events += self._calls.close(cut=self._finish == "MAX_TOKENS")
        self.done = True

    def _fail(self, failure: ProviderError) -> None:
        self._failure = failure
        self.done = True

    # --- payloads ---------------------------------------------------------------------------------

    def _take(self, payloads: Iterable[Payload], events: list[StreamEvent]) -> None:
        for payload in payloads:
            if not self.done:
                self._take_payload(payload, events)
        if self._payloads.is_page:
            self._fail(wrong_page_error(self._peer, 200, "what looks like HTML"))
        elif self._payloads.ended and not self.done:  # no word of Google's, but proxies say it
            self._complete(events)

    def _take_payload(self, payload: Payload, events: list[StreamEvent]) -> None:
        if payload.event == "error":
            self._fail(error_from_payload(self._peer, payload.value, self._counts.usage))
            return
        for chunk in payload.value if isinstance(payload.value, list) else [payload.value]:
            if isinstance(chunk, dict) and not self.done:
                self._take_chunk(chunk, events)
        if payload.whole and not self._chunks and not self.done:
            self._fail(error_from_payload(self._peer, payload.value))

    def _take_chunk(self, chunk: dict[str, Any], events: list[StreamEvent]) -> None:
        has_counts = self._counts.add(chunk.get("usageMetadata"))
        if chunk.get("error"):
            self._fail(error_from_payload(self._peer, chunk, self._counts.usage))
            return
        feedback = chunk.get("promptFeedback")
        if isinstance(feedback, dict) and (reason := word(feedback.get("blockReason"))):
            self._block_reason, self._block_said = reason, _text(feedback.get("blockReasonMessage"))
            self._ends_soon = True
            self._chunks += 1
        candidates = [one for one in _list(chunk.get("candidates")) if isinstance(one, dict)]
        first = next((one for one in candidates if one.get("index") in (None, 0)), None)
        if first is None:
            return
        self._chunks += 1
        had_finished = self._finish is not None
        goes_on = self._take_content(first.get("content"), events) and had_finished
        if reason := word(first.get("finishReason")):
            self._finish, self._finish_said = reason, _text(first.get("finishMessage"))
        # Vertex marks what is not the last chunk by a usage that has no counts.
        self._ends_soon = not goes_on and (has_counts or not chunk.get("usageMetadata"))

    # --- parts ------------------------------------------------------------------------------------

    def _take_content(self, content: Any, events: list[StreamEvent]) -> bool:
        """Take the parts of a chunk; give whether they said anything."""
        before = len(events)
        for part in _list(content.get("parts")) if isinstance(content, dict) else ():
            if isinstance(part, dict):
                self._take_part(part, events)
        return len(events) > before

    def _take_part(self, part: Mapping[str, Any], events: list[StreamEvent]) -> None:
        signature = _text(part.get(SIGNATURE) or part.get("thought_signature")) or None
        text, call = part.get("text"), part.get("functionCall")
        if isinstance(call, dict):
            self._take_call(call, signature, events)
        elif not isinstance(text, str) and _is_other(part):
            self._open = None
            self._has_other_parts = True
            self._kept.add_other(part)
        elif text or signature is not None:
            kind = ThinkingDelta if part.get("thought") is True else TextDelta
            self._say(kind, _text(text), signature, events)

    def _take_call(self, call: Mapping[str, Any], signature: str | None, events: list[StreamEvent]) -> None:
        deltas, began = self._calls.add(call)
        events += deltas
        if began:
            self._kept.add_call(_text(call.get("id")) or None, signature)
        elif signature is not None:
            self._kept.sign_last(signature)

    def _say(
        self,
        kind: type[TextDelta] | type[ThinkingDelta],
        text: str,
        signature: str | None,
        events: list[StreamEvent],
    ) -> None:
        if text and self._open is not kind:
            self._new_block()
            self._open = kind
        block = self._blocks - 1 if self._open is kind else None
        if block is not None and text:
            text = self._pairs.join(block, text)
            if text:
                events.append(kind(block, text))
        self._kept.add_text(block, text, signature, thought=kind is ThinkingDelta)

    def _new_block(self) -> int:
        self._open = None
        self._blocks += 1
        return self._blocks - 1


def _is_other(part: Mapping[str, Any]) -> bool:
    return any(isinstance(part[name], dict) for name in part.keys() - _READ - _BESIDE)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
