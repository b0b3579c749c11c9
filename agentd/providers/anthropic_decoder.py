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

import logging
from typing import Any, Literal

from agentd.providers.anthropic_blocks import Block, replay_data
from agentd.providers.anthropic_usage import UsageSoFar
from agentd.providers.base import ProviderError, StreamEnd, StreamEvent
from agentd.providers.http_errors import Peer, error_from_payload, truncated_error, wrong_page_error
from agentd.providers.json_text import parse_json
from agentd.providers.sse import EventStream, ServerSentEvent, TruncatedEventStream
from agentd.providers.surrogates import SurrogatePairs

_log = logging.getLogger(__name__)

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
        self._stream = EventStream()
        self._json: bytearray | None = None
        self._began_reading = False
        self._message_id: str | None = None
        self._began = False
        self._complete = False
        self._failure: ProviderError | None = None
        self._usage = UsageSoFar()
        self._blocks: list[Block] = []
        self._by_index: dict[Any, Block] = {}
        self._shown = 0
        self._stop_details: Any = None
        self._pairs = SurrogatePairs()
        self._logged_noise = False

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take the next bytes; give what they say."""
        if not self._began_reading:
            data = data.lstrip()
            if not data:
                return []
            self._begin_reading(data[:1])
        if self.done:
            return []
        if self._json is not None:
            self._json += data
            return []
        return self._take_events(self._stream.feed(data))

    def close(self) -> list[StreamEvent]:
        """The connection has ended; give what its last bytes say."""
        if self.done:
            return []
        if self._json is not None:
            events = self._take_json(bytes(self._json))
        else:
            try:
                events = self._take_events(self._stream.close())
            except TruncatedEventStream as error:
                _log.warning("%s: %s", self._peer.provider, error)
                events = []
        self.done = True
        return events

    def end(self, lost: str = "") -> StreamEnd:
        """The end of the answer. Raises `ProviderError`; `lost` says how the connection broke, if it did."""
        if self._failure is not None:
            raise self._failure
        usage = self._usage.read()
        if not self._complete:
            raise truncated_error(self._peer, lost or ("" if self._began else "it was empty"), usage)
        raw = self.finish_reason
        calls = any(block.type == "tool_use" for block in self._blocks)
        stop = _STOPS.get(raw or "", "stop")
        if stop == "stop" and calls:
            stop = "tool_use"
        return StreamEnd(stop, usage, raw, replay_data(self._blocks, self._stop_details))

    def _begin_reading(self, first: bytes) -> None:
        """Tell by the first byte what is coming: a stream, plain JSON or a page of HTML."""
        self._began_reading = True
        if first in (b"{", b"["):
            self._json = bytearray()
        elif first == b"<":
            self._fail(wrong_page_error(self._peer, 200, "what looks like HTML"))

    def _fail(self, failure: ProviderError) -> None:
        self._failure = failure
        self.done = True

    # --- payloads ---------------------------------------------------------------------------------

    def _take_json(self, body: bytes) -> list[StreamEvent]:
        """A whole message that was not streamed, or an error that came with HTTP 200."""
        payload = parse_json(body.decode(errors="replace"))
        events: list[StreamEvent] = []
        if isinstance(payload, dict) and isinstance(payload.get("content"), list):
            self._take_message(payload, events)
            self._finish(payload)
            self._complete = True
        elif payload is not None:
            self._fail(error_from_payload(self._peer, payload))
        return events

    def _take_events(self, received: list[ServerSentEvent]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for event in received:
            if self.done:
                break
            self._take_data(event.event, event.data, events)
        return events

    def _take_data(self, name: str, data: str, events: list[StreamEvent]) -> None:
        payload = parse_json(data)
        if isinstance(payload, dict):
            kind = payload.get("type")
            if name == "error" or kind == "error" or (kind is None and payload.get("error")):
                self._fail(error_from_payload(self._peer, payload, self._usage.read()))
            else:
                self._take_event(kind or name, payload, events)
        elif name == "error":
            self._fail(error_from_payload(self._peer, payload or data, self._usage.read()))
        elif payload is None and data.strip() not in ("", "[DONE]") and not self._logged_noise:
            self._logged_noise = True
            _log.warning("%s: skipped data that is no JSON (%d characters)", self._peer.provider, len(data))

    def _take_event(self, kind: Any, event: dict[str, Any], events: list[StreamEvent]) -> None:
        if kind == "content_block_delta":
            self._take_delta(event.get("index"), event.get("delta"), events)
        elif kind == "content_block_start":
            self._open(event.get("index"), event.get("content_block"), events)
        elif kind == "content_block_stop":
            if (block := self._by_index.get(_index(event.get("index")))) is not None:
                self._close_block(block, events)
        elif kind == "message_start":
            self._take_message(event.get("message"), events)
        elif kind == "message_delta":
            self._usage.add(event.get("usage"))
            self._finish(event.get("delta"))
        elif kind == "message_stop":
            for block in self._blocks:
                self._close_block(block, events)
            self._complete = self.done = True

    # --- the message ------------------------------------------------------------------------------

    def _take_message(self, message: Any, events: list[StreamEvent]) -> None:
        """The beginning of the message, which may hold some of it, or all."""
        if not isinstance(message, dict):
            message = {}
        id = message.get("id")
        if self._began:
            if id and self._message_id and id != self._message_id:
                self._fail(self._mixed_up())
            return
        self._began = True
        self._message_id = id if isinstance(id, str) else None
        self._usage.add(message.get("usage"))
        content = message.get("content")
        for index, raw in enumerate(content if isinstance(content, list) else ()):
            block = self._open(("start", index), raw, events)
            if block is not None:
                self._close_block(block, events)
        self._stop_details = message.get("stop_details")
        reason = message.get("stop_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason

    def _mixed_up(self) -> ProviderError:
        return ProviderError(
            "protocol",
            f"{self._peer.provider}: the answer was mixed up with another one: a second message began in it.",
            retryable=True,
            usage=self._usage.read(),
        )

    def _finish(self, delta: Any) -> None:
        if not isinstance(delta, dict):
            return
        self._stop_details = delta.get("stop_details") or self._stop_details
        reason = delta.get("stop_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason

    # --- blocks -----------------------------------------------------------------------------------

    def _open(self, index: Any, raw: Any, events: list[StreamEvent]) -> Block | None:
        """Begin a block, and say what it begins with."""
        if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
            return None
        block = Block(raw)
        self._began = True
        self._blocks.append(block)
        self._by_index[_index(index)] = block
        self._say(block, block.begin(), events)
        return block

    def _take_delta(self, index: Any, delta: Any, events: list[StreamEvent]) -> None:
        if not isinstance(delta, dict):
            return
        kind = delta.get("type")
        block = self._by_index.get(_index(index))
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


def _index(raw: Any) -> Any:
    """A block's index as a key; what is no index stands for the one block that has none."""
    return raw if isinstance(raw, int | tuple) and not isinstance(raw, bool) else None
