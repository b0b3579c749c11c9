"""Decoder of OpenAI-compatible chat answers, sans I/O: bytes in, stream events out.

Bytes go into `feed`, and into nothing after `done`; `close` says that there are no more; `end` then gives the
`StreamEnd` or raises what went wrong. `feed` and `close` never raise: what was said before a failure counts.

What servers do to this format is in the tests, stream by stream. The rules that follow from it:

* everything may be absent, null or of a wrong type; what cannot be used is passed over, the rest is used;
* only choice 0 is read; the last usage stands, wherever it is, and it often comes after `finish_reason`;
* `finish_reason` does not end the reading, `[DONE]` does; either may be missing, but not both;
* `finish_reason` may stand in every chunk; one behind which the answer goes on was none;
* an answer that is plain JSON, not a stream, is one big chunk whose `message` is its delta.
"""

import logging
from dataclasses import replace
from typing import Any

from agentd.protocol.messages import Usage
from agentd.providers.base import (
    ProviderError,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)
from agentd.providers.http_errors import (
    Peer,
    error_from_payload,
    truncated_error,
    unanswered_error,
    wrong_page_error,
)
from agentd.providers.json_text import parse_json, storable
from agentd.providers.openai_stop import stop_of
from agentd.providers.openai_usage import usage_of_chunk
from agentd.providers.reasoning import Reasoning
from agentd.providers.sse import EventStream, Lead, ServerSentEvent, TruncatedEventStream
from agentd.providers.surrogates import SurrogatePairs
from agentd.providers.tool_fragments import ToolFragments

_log = logging.getLogger(__name__)

_OF_A_CALL = frozenset(("index", "id", "type", "function"))
"""The fields of a call that are read here. What a server has beside them it wants to see again."""


class ChatDecoder:
    """Reads one answer of `peer`."""

    def __init__(self, peer: Peer) -> None:
        self.done = False
        """Whether all has been said, so that the connection can be left without waiting for its end."""
        self._finish: str | None = None
        self._goes_on = False  # whether more was said behind a finish
        self._peer = peer
        self._stream = EventStream()
        self._json: bytearray | None = None
        self._began_reading = False
        self._lead = Lead()
        self._chunks = 0
        self._complete = False
        self._failure: ProviderError | None = None
        self._usage: Usage | None = None
        self._blocks = 0
        self._open: type[TextDelta] | type[ThinkingDelta] | None = None
        self._refused = False
        self._reasoning = Reasoning()
        self._calls = ToolFragments(self._new_block)
        self._call_extras: dict[int, dict[str, Any]] = {}
        self._extra: Any = None
        self._pairs = SurrogatePairs()
        self._logged_noise = False

    @property
    def finish_reason(self) -> str | None:
        """The server's own word for why it stopped, once it seems to have; None where it goes on."""
        return None if self._goes_on and not self._complete else self._finish

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take the next bytes; give what they say."""
        if not self._began_reading:
            data = self._lead.without(data)
            if not data:
                return []
            self._begin(data[:1])
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
        if not self._chunks:
            raise unanswered_error(self._peer, lost, self._usage, has_words=self._stream.has_words)
        is_cut = self._finish is None or (self._goes_on and lost)
        if is_cut and not self._complete:
            raise truncated_error(self._peer, lost, self._usage)
        stop = stop_of(
            self._peer,
            self._finish,
            calls=bool(self._calls.count),
            refused=self._refused,
            usage=self._usage,
        )
        return StreamEnd(stop, self._usage, self._finish, self._provider_data() or None)

    def _provider_data(self) -> dict[str, Any]:
        data = self._reasoning.replay()
        if self._call_extras:
            data["callExtras"] = [self._call_extras.get(n) for n in range(self._calls.count)]
        if self._extra:
            data["extraContent"] = self._extra
        return storable(data)

    def _begin(self, first: bytes) -> None:
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
        """A whole answer that was not streamed, or an error that came with HTTP 200."""
        events: list[StreamEvent] = []
        payload = parse_json(body.decode(errors="replace"))
        if payload is None:
            return events
        if (
            isinstance(payload, dict)
            and isinstance(payload.get("choices"), list)
            and not payload.get("error")
        ):
            self._take_chunk(payload, events)
            self._complete = True
        else:
            self._fail(error_from_payload(self._peer, payload))
        return events

    def _take_events(self, received: list[ServerSentEvent]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for event in received:
            if self.done:
                break
            if event.event == "error":
                payload = parse_json(event.data)
                self._fail(error_from_payload(self._peer, payload or event.data, self._usage))
            else:
                self._take_data(event.data, events)
        return events

    def _take_data(self, data: str, events: list[StreamEvent]) -> None:
        data = data.strip()
        if data == "[DONE]":
            self._complete = self.done = True
        elif (payload := parse_json(data)) is not None:
            if isinstance(payload, list) and payload:
                payload = payload[0]
            if isinstance(payload, dict):
                self._take_chunk(payload, events)
        elif "\n" in data:  # events that a server forgot to part by a blank line
            for line in data.split("\n"):
                if not self.done:
                    self._take_data(line, events)
        elif data and not self._logged_noise:
            self._logged_noise = True
            _log.warning("%s: skipped data that is no JSON (%d characters)", self._peer.provider, len(data))

    def _take_chunk(self, chunk: dict[str, Any], events: list[StreamEvent]) -> None:
        choices = [choice for choice in _list(chunk.get("choices")) if isinstance(choice, dict)]
        first = next((choice for choice in choices if choice.get("index") in (None, 0)), {})
        usage = usage_of_chunk(chunk, first)
        if usage is not None:
            self._usage = usage
            # A usage of its own comes after everything else; it ends what has no finish_reason (Snowflake).
            self._complete = not choices
        if first:
            self._chunks += 1
            self._complete = False
            self._take_choice(first, events)
        if chunk.get("error") or "error" in (chunk.get("object"), chunk.get("type")):
            self._fail(error_from_payload(self._peer, chunk, self._usage))
        elif first.get("error"):
            self._fail(error_from_payload(self._peer, first, self._usage))

    # --- choices ----------------------------------------------------------------------------------

    def _take_choice(self, choice: dict[str, Any], events: list[StreamEvent]) -> None:
        before = len(events)
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            self._take_delta(delta, events)
        elif isinstance(message, dict) and not self._blocks:
            self._take_delta(_as_delta(message), events)
        has_said = len(events) > before
        reason = choice.get("finish_reason")
        is_reason = isinstance(reason, str) and bool(reason)
        if has_said or is_reason:
            self._goes_on = has_said and self._finish is not None
        if is_reason:
            self._finish = reason

    def _take_delta(self, delta: dict[str, Any], events: list[StreamEvent]) -> None:
        self._say(ThinkingDelta, self._reasoning.add(delta), events)
        content = delta.get("content")
        if isinstance(content, str):
            self._say(TextDelta, content, events)
        for part in _list(content):
            self._take_part(part, events)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._say(TextDelta, refusal, events)
        self._extra = delta.get("extra_content") or self._extra  # of Gemini's text: also a signature
        for fragment in _list(delta.get("tool_calls")):
            if isinstance(fragment, dict):
                self._take_fragment(fragment, events)

    def _take_part(self, part: Any, events: list[StreamEvent]) -> None:
        """A part of a content list, which Mistral sends for thinking."""
        if isinstance(part, str):
            self._say(TextDelta, part, events)
        elif isinstance(part, dict):
            self._say(ThinkingDelta, _text(part.get("thinking")), events)
            self._say(TextDelta, _text(part.get("text")), events)

    def _take_fragment(self, fragment: dict[str, Any], events: list[StreamEvent]) -> None:
        delta = self._calls.add(fragment)
        if delta is not None:
            events.append(replace(delta, arguments=self._pairs.join(delta.index, delta.arguments)))
        # Gemini behind this API has the signature in one of these without which it refuses the next turn.
        extra = {name: value for name, value in fragment.items() if value and name not in _OF_A_CALL}
        position = self._calls.last_position
        if extra and position is not None:
            self._call_extras[position] = self._call_extras.get(position, {}) | extra

    def _say(self, kind: type[TextDelta] | type[ThinkingDelta], text: str, events: list[StreamEvent]) -> None:
        if not text:
            return
        if self._open is not kind:
            self._new_block()
            self._open = kind
        block = self._blocks - 1
        if text := self._pairs.join(block, text):
            events.append(kind(block, text))

    def _new_block(self) -> int:
        self._open = None
        self._blocks += 1
        return self._blocks - 1


def _as_delta(message: dict[str, Any]) -> dict[str, Any]:
    """A whole message in the form of a delta: its calls, each whole, get the index they lack."""
    calls = [
        {"index": index} | call
        for index, call in enumerate(_list(message.get("tool_calls")))
        if isinstance(call, dict)
    ]
    return message | {"tool_calls": calls}


def _text(value: Any) -> str:
    """Text, or the texts in a list of parts."""
    if isinstance(value, str):
        return value
    return "".join(_text(part.get("text")) for part in _list(value) if isinstance(part, dict))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
