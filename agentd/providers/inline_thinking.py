"""Thinking that a model writes into its text: `<think>…</think>` and then the answer.

Local servers that do not know a model's template pass it on like that. Where the user says so (`thinking_tag`
of a model), a block of that tag at the very beginning of an answer is its thinking, wherever the stream cuts
it. What is inside is never more than thinking: no call in it is run. A tag later in the text is text. A block
that the answer's end left open is thinking too.

How it came is kept beside the message (`provider_data`), so that it can go back in the same form:

    {"inlineThinking": {"open": "<think>", "close": "</think>\\n\\n"}}
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from agentd.providers.base import StreamEnd, StreamEvent, TextDelta, ThinkingDelta

_KEY = "inlineThinking"
_Place = Literal["before", "inside", "after", "text"]


class InlineThinking:
    """Takes the events of one answer, and gives them with its thinking apart."""

    def __init__(self, tag: str) -> None:
        """`tag` is the name alone, as in "think"."""
        self._open, self._close = f"<{tag}>", f"</{tag}>"
        self._place: _Place = "before"
        self._held = ""  # what may be the beginning of a tag, or blanks before the next text
        self._lead = self._gap = ""  # the blanks before the block, and after it
        self._found = False  # whether there was a block at all
        self._source = 0  # the block that the held text is of
        self._numbers: dict[tuple[int, type], int] = {}

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Take the next event; give what can be said now. What came before the end is told before it."""
        if isinstance(event, StreamEnd):
            yield from self.flush()
            if self._found:
                kept = {_KEY: {"open": self._lead + self._open, "close": self._close + self._gap}}
                event = replace(event, provider_data=(event.provider_data or {}) | kept)
            yield event
        elif isinstance(event, TextDelta):
            self._source = event.index
            yield from self._text(event.text)
        else:
            yield from self.flush()
            yield self._numbered(event)

    def flush(self) -> Iterator[StreamEvent]:
        """What was held back: something else comes, or nothing more."""
        held, self._held = self._held, ""
        if self._place == "inside":
            yield from self._said(ThinkingDelta, held)
        elif self._place == "before":
            self._place = "text" if held else "before"
            yield from self._said(TextDelta, held)
        elif self._place == "after":
            self._gap += held

    def _text(self, text: str) -> Iterator[StreamEvent]:
        text, self._held = self._held + text, ""
        if self._place == "before":
            begun = text.lstrip()
            if begun.startswith(self._open):
                self._lead = text[: len(text) - len(begun)]
                self._place, self._found, text = "inside", True, begun[len(self._open) :]
            elif self._open.startswith(begun):  # also where there is nothing but blanks yet
                self._held = text
                return
            else:
                self._place = "text"
        if self._place == "inside":
            thought, tag, text = text.partition(self._close)
            if not tag:
                cut = len(thought) - _begun(thought, self._close)
                thought, self._held = thought[:cut], thought[cut:]
            yield from self._said(ThinkingDelta, thought)
            if not tag:
                return
            self._place = "after"
        if self._place == "after":
            answer = text.lstrip()
            if not answer:
                self._held = text
                return
            self._gap += text[: len(text) - len(answer)]
            text, self._place = answer, "text"
        yield from self._said(TextDelta, text)

    def _said(self, kind: type[TextDelta] | type[ThinkingDelta], text: str) -> Iterator[StreamEvent]:
        if text:
            yield self._numbered(kind(self._source, text))

    def _numbered(self, event: StreamEvent) -> StreamEvent:
        """The event with the number of its block among those told: one of the server's may be two."""
        assert not isinstance(event, StreamEnd)
        number = self._numbers.setdefault((event.index, type(event)), len(self._numbers))
        return event if number == event.index else replace(event, index=number)


def inlined(kept: Mapping[str, Any], thinking: str, text: str) -> str | None:
    """The text of an answer as its server wrote it, thinking and all; None where the two came apart."""
    tags = kept.get(_KEY)
    if not isinstance(tags, Mapping) or not thinking:
        return None
    return f"{tags.get('open', '')}{thinking}{tags.get('close', '')}{text}"


def _begun(text: str, tag: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    return next((n for n in range(min(len(text), len(tag) - 1), 0, -1) if tag.startswith(text[-n:])), 0)
