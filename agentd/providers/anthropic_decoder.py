"""Decoder of the Messages API's answers, sans I/O: bytes in, stream events out.

Bytes go into `feed`, and into nothing after `done`; `close` says that there are no more; `end` then gives the
`StreamEnd` or raises what went wrong. `feed` and `close` never raise: what was said before a failure counts.

The grammar: `message_start`, then for each block `content_block_start`, its deltas and `content_block_stop`,
then `message_delta` with the stop and the usage, then `message_stop`; `ping` anywhere, `error` anywhere and
last. What servers make of it:

* a message may begin with content, and a tool call with its input, for which no deltas come;
* a second `message_start` of the same message says nothing, one of another means that answers were mixed up;
* only `message_stop` ends an answer; without it nobody knows whether more was to come;
* everything may be absent, null or of a wrong type; what cannot be used is passed over, the rest is used.

Blocks that are neither text nor thinking nor a call are not shown and are kept for the next request.
"""

from collections.abc import Iterable
from typing import Any, Literal

from agentd.providers.answer_payloads import AnswerPayloads, Payload
from agentd.providers.anthropic_blocks import Block, replay_data
from agentd.providers.anthropic_usage import UsageSoFar
from agentd.providers.base import ProviderError, StreamEnd, StreamEvent
from agentd.providers.http_errors import (
    Peer,
    error_from_payload,
    truncated_error,
    unanswered_error,
    wrong_page_error,
)
from agentd.providers.surrogates import SurrogatePairs

_STOPS: dict[str, Literal["stop", "length", "tool_use", "refusal"]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_use",
    "refusal": "refusal",
}
_SHOWN_BY_DELTA = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}


class MessagesDecoder:
    """Reads one answer of `peer`."""

    def __init__(self, peer: Peer) -> None:
        self.done = False
        """Whether all has been said, so that the connection can be left without waiting for its end."""
        self.finish_reason: str | None = None
        """The server's own word for why it stopped, when it has said one."""
        self._peer = peer
        self._payloads = AnswerPayloads(peer.provider)
        self._message_id: str | None = None
        self._early_reason: str | None = None
        self._began = False
        self._complete = False
        self._failure: ProviderError | None = None
        self._usage = UsageSoFar()
        self._blocks: list[Block] = []
        self._by_index: dict[int, Block] = {}
        self._shown = 0
        self._stop_details: Any = None
        self._pairs = SurrogatePairs()

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take the next bytes; give what they say."""
        return [] if self.done else self._take_payloads(self._payloads.feed(data))

    def close(self) -> list[StreamEvent]:
        """The connection has ended; give what its last bytes say."""
        events = [] if self.done else self._take_payloads(self._payloads.close())
        self.done = True
        return events

    def end(self, lost: str = "") -> StreamEnd:
        """The end of the answer. Raises `ProviderError`; `lost` says how the connection broke, if it did."""
        if self._failure is not None:
            raise self._failure
        usage = self._usage.read()
        if not (self._began or self._blocks):
            raise unanswered_error(self._peer, lost, usage, has_words=self._payloads.has_words)
        if not self._complete:
            raise truncated_error(self._peer, lost, usage)
        raw = self.finish_reason or self._early_reason
        calls = any(block.type == "tool_use" for block in self._blocks)
        stop = _STOPS.get(raw or "", "stop")
        if stop == "stop" and calls:
            stop = "tool_use"
        reason = self._refusal() if stop == "refusal" else None
        return StreamEnd(stop, usage, raw, replay_data(self._blocks, self._stop_details), reason)

    def _refusal(self) -> str | None:
        """Why the model refused, of which `stop_details` tell a category and perhaps an explanation."""
        details = self._stop_details if isinstance(self._stop_details, dict) else {}
        category, explanation = _word(details.get("category")), _word(details.get("explanation"))
        if not (category or explanation):
            return None
        said = explanation or "it does not answer this"
        return self._peer.excerpt(f"{self._peer.provider}: {said}" + (f" ({category})" if category else ""))

    def _fail(self, failure: ProviderError) -> None:
        self._failure = failure
        self.done = True

    # --- payloads ---------------------------------------------------------------------------------

    def _take_payloads(self, received: Iterable[Payload]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for payload in received:
            self._take_payload(payload, events)
            if self.done:
                break
        if self._payloads.is_page:
            self._fail(wrong_page_error(self._peer, 200, "what looks like HTML"))
        return events

    def _take_payload(self, payload: Payload, events: list[StreamEvent]) -> None:
        value = payload.value
        fields = value if isinstance(value, dict) else {}
        kind = fields.get("type")
        if payload.whole and isinstance(fields.get("content"), list):
            self._take_message(fields, events)
            self._take_stop(fields)
            self._complete = True
        elif payload.whole or "error" in (payload.event, kind) or (kind is None and fields.get("error")):
            self._fail(error_from_payload(self._peer, value, self._usage.read()))
        elif isinstance(value, dict):
            self._take_event(kind or payload.event, fields, events)

    def _take_event(self, kind: Any, event: dict[str, Any], events: list[StreamEvent]) -> None:
        if kind == "content_block_delta":
            self._take_delta(event.get("index"), event.get("delta"), events)
        elif kind == "content_block_start":
            self._open(event.get("index"), event.get("content_block"), events)
        elif kind == "content_block_stop":
            if (block := self._find(event.get("index"))) is not None:
                self._close_block(block, events)
        elif kind == "message_start":
            self._take_message(event.get("message"), events)
        elif kind == "message_delta":
            self._usage.add(event.get("usage"))
            self._take_stop(event.get("delta"))
        elif kind == "message_stop":
            for block in self._blocks:
                self._close_block(block, events)
            self._complete = self.done = True

    # --- the message ------------------------------------------------------------------------------

    def _take_message(self, message: Any, events: list[StreamEvent]) -> None:
        """The beginning of the message, which may hold some of it, or all."""
        if not isinstance(message, dict):
            message = {}
        id = _word(message.get("id"))
        if self._began:
            if id and self._message_id and id != self._message_id:
                self._fail(self._mixed_up())
            return
        self._began = True
        self._message_id = id
        self._usage.add(message.get("usage"))
        content = message.get("content")
        for index, raw in enumerate(content if isinstance(content, list) else ()):
            if (block := self._open(index, raw, events)) is not None:
                self._close_block(block, events)
        self._stop_details = message.get("stop_details")
        self._early_reason = _word(message.get("stop_reason"))

    def _mixed_up(self) -> ProviderError:
        return ProviderError(
            "protocol",
            f"{self._peer.provider}: the answer was mixed up with another one: a second message began in it.",
            retryable=True,
            usage=self._usage.read(),
        )

    def _take_stop(self, delta: Any) -> None:
        if not isinstance(delta, dict):
            return
        self._stop_details = delta.get("stop_details") or self._stop_details
        self.finish_reason = _word(delta.get("stop_reason")) or self.finish_reason

    # --- blocks -----------------------------------------------------------------------------------

    def _open(self, index: Any, raw: Any, events: list[StreamEvent]) -> Block | None:
        """Begin a block, and say what it begins with."""
        if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
            return None
        block = self._by_index.get(index) if isinstance(index, int) else None
        if block is not None and block.is_same_call(raw):
            return block
        block = Block(raw)
        self._blocks.append(block)
        if isinstance(index, int):
            self._by_index[index] = block
        self._say(block, block.begin(), events)
        return block

    def _find(self, index: Any) -> Block | None:
        """The block with an index; without one, the block that began last."""
        if isinstance(index, int):
            return self._by_index.get(index)
        return self._blocks[-1] if self._blocks else None

    def _take_delta(self, index: Any, delta: Any, events: list[StreamEvent]) -> None:
        if not isinstance(delta, dict):
            return
        kind = delta.get("type")
        block = self._find(index)
        shown = _SHOWN_BY_DELTA.get(kind) if isinstance(kind, str) else None
        if block is None or (shown and block.is_shown and block.type != shown):
            if shown is None:
                return
            # What a server says without beginning it is said all the same.
            block = self._open(index, {"type": shown}, events)
            assert block is not None
        self._say(block, block.add(delta), events)

    def _close_block(self, block: Block, events: list[StreamEvent]) -> None:
        self._say(block, block.close(), events)

    def _say(self, block: Block, text: str | None, events: list[StreamEvent]) -> None:
        """Tell of new text in a block that is shown; None: there is nothing new."""
        if text is None or not block.is_shown:
            return
        if block.number is None:
            block.number = self._shown
            self._shown += 1
        text = self._pairs.join(block.number, text)
        if (event := block.event(text)) is not None:
            events.append(event)


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
