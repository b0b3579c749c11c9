"""Decoder of OpenAI Responses answers, sans I/O: bytes in, stream events out.

Bytes go into `feed`, and into nothing after `done`; `close` says that there are no more; `end` then gives the
`StreamEnd` or raises what went wrong. `feed` and `close` never raise: what was said before a failure counts.

What an event means is in its payload's `type`; the `event:` line may be absent (OpenRouter). The answer is
over at the first of `response.completed`, `.incomplete`, `.failed` and `error`, and at nothing else: a
connection that ends before one of them, with or without `[DONE]`, has lost the rest. An answer that is plain
JSON, not a stream, is the response that a terminal event would hold. Unknown events are passed over.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agentd.protocol.messages import Usage
from agentd.providers.answer_payloads import AnswerPayloads, Payload
from agentd.providers.base import ProviderError, StreamEnd, StreamEvent
from agentd.providers.http_errors import (
    Peer,
    error_from_payload,
    truncated_error,
    unanswered_error,
    wrong_page_error,
)
from agentd.providers.openai_responses_output import REPLAY_KEY, Output, PartKind
from agentd.providers.openai_stop import stop_of
from agentd.providers.openai_usage import read_usage

_DELTAS: dict[str, tuple[PartKind, str]] = {
    "response.output_text.delta": ("text", "content_index"),
    "response.refusal.delta": ("refusal", "content_index"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index"),
    "response.reasoning_text.delta": ("reasoning", "content_index"),
    "response.function_call_arguments.delta": ("arguments", ""),
}
_WHOLES: dict[str, tuple[PartKind, str, str]] = {
    "response.output_text.done": ("text", "content_index", "text"),
    "response.refusal.done": ("refusal", "content_index", "refusal"),
    "response.reasoning_summary_text.done": ("summary", "summary_index", "text"),
    "response.reasoning_text.done": ("reasoning", "content_index", "text"),
    "response.function_call_arguments.done": ("arguments", "", "arguments"),
}
_TERMINAL = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}


class ResponsesDecoder:
    """Reads one answer of `peer`."""

    def __init__(self, peer: Peer) -> None:
        self.done = False
        """Whether all has been said, so that the connection can be left without waiting for its end."""
        self.finish_reason: str | None = None
        """The server's own word for why it stopped: its status, or what an incomplete answer lacks."""
        self._peer = peer
        self._payloads = AnswerPayloads(peer.provider)
        self._output = Output()
        self._heard = False
        self._incomplete = False
        self._failure: ProviderError | None = None
        self._usage: Usage | None = None

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take the next bytes; give what they say."""
        return [] if self.done else self._take_all(self._payloads.feed(data))

    def close(self) -> list[StreamEvent]:
        """The connection has ended; give what its last bytes say."""
        events = [] if self.done else self._take_all(self._payloads.close())
        self.done = True
        return events

    def end(self, lost: str = "") -> StreamEnd:
        """The end of the answer. Raises `ProviderError`; `lost` says how the connection broke, if it did."""
        if self._failure is not None:
            raise self._failure
        if self.finish_reason is None and not self._heard:
            raise unanswered_error(self._peer, lost, self._usage, has_words=self._payloads.has_words)
        if self.finish_reason is None:
            raise truncated_error(self._peer, lost, self._usage)
        if self._output.conflict is not None:
            raise ProviderError(
                "protocol",
                f"{self._peer.provider}: the server sent two different versions of the arguments for the "
                f'tool "{self._peer.excerpt(self._output.conflict)}"; the call was not run.',
                retryable=True,
                usage=self._usage,
            )
        stop = stop_of(
            self._peer,
            self.finish_reason if self._incomplete else None,
            calls=self._output.has_calls,
            refused=self._output.refused,
            usage=self._usage,
        )
        if self._incomplete and stop in ("stop", "tool_use"):
            stop = "length"  # whatever it is that cut the answer, the answer is cut
        kept = self._output.kept()
        return StreamEnd(stop, self._usage, self.finish_reason, {REPLAY_KEY: kept} if kept else None)

    # --- payloads ---------------------------------------------------------------------------------

    def _take_all(self, payloads: Iterable[Payload]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for payload in payloads:
            self._take(payload, events)
            if self.done:
                break
        if self._payloads.is_page:
            self._fail(wrong_page_error(self._peer, 200, "what looks like HTML"))
        self.done = self.done or self._payloads.ended
        return events

    def _take(self, payload: Payload, events: list[StreamEvent]) -> None:
        value = payload.value[0] if isinstance(payload.value, list) and payload.value else payload.value
        if not isinstance(value, dict):
            if payload.event == "error":
                self._fail(error_from_payload(self._peer, value, self._usage))
            return
        self._heard = True
        type = value.get("type")
        if not isinstance(type, str):
            type = payload.event
        if (delta := _DELTAS.get(type)) is not None:
            kind, part = delta
            text = value.get("delta")
            if isinstance(text, str):
                self._output.grow(value.get("output_index"), kind, value.get(part), text, events)
        elif (whole := _WHOLES.get(type)) is not None:
            kind, part, name = whole
            text = value.get(name)
            if isinstance(text, str):
                self._output.settle(value.get("output_index"), kind, value.get(part), text, events)
        else:
            self._take_rare(type, value, payload, events)

    def _take_rare(
        self, type: str, value: dict[str, Any], payload: Payload, events: list[StreamEvent]
    ) -> None:
        item = value.get("item")
        if type == "response.output_item.added" and isinstance(item, dict):
            self._output.add(value.get("output_index"), item, events)
        elif type == "response.output_item.done" and isinstance(item, dict):
            self._output.finish(value.get("output_index"), item, events)
        elif type in _TERMINAL:
            response = value.get("response")
            self._take_end(_TERMINAL[type], response if isinstance(response, dict) else {}, events)
        elif payload.whole and isinstance(value.get("output"), list):
            self._take_end("completed", value, events)
        elif payload.whole or "error" in (type, payload.event) or ("error" in value and "type" not in value):
            self._fail(error_from_payload(self._peer, value, self._usage))

    def _take_end(self, status: str, response: Mapping[str, Any], events: list[StreamEvent]) -> None:
        if response.get("status") in ("incomplete", "failed", "cancelled"):
            status = response["status"]
        self._usage = read_usage(_in_chat_terms(response.get("usage")))
        self._output.complete(response.get("output"), events)
        if status in ("failed", "cancelled"):
            error = response.get("error") or {"message": f"the response {_TOLD[status]}"}
            self._fail(error_from_payload(self._peer, error, self._usage))
            return
        self._incomplete = status == "incomplete"
        self.finish_reason = (self._incomplete and _reason(response)) or status
        self.done = True

    def _fail(self, failure: ProviderError) -> None:
        self._failure = self._failure or failure
        self.done = True


_TOLD = {"failed": "failed, and the server does not say why", "cancelled": "was cancelled by the server"}


def _reason(response: Mapping[str, Any]) -> str | None:
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return reason if isinstance(reason, str) and reason else None


def _in_chat_terms(usage: Any) -> Any:
    """The usage under the names that chat completions has for the same counts.

    Input includes what was cached, and output includes reasoning, always: so there is no total to compare.
    """
    if not isinstance(usage, Mapping):
        return None
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }
