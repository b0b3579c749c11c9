"""What Gemini wants to see again with a message: signatures and ids, each on the part it came with.

A `thoughtSignature` may sit on any part, also on an empty text that says nothing else, and Gemini 3 refuses a
call that comes back without it. The texts are in the message already; kept beside it (`provider_data`) is
only how its parts lie in them:

    {"parts": [
        {"chars": 120, "thought": true},
        {"chars": 0, "thoughtSignature": "…"},
        {"call": true, "id": "…", "thoughtSignature": "…"}
    ]}

`chars` counts into the message's texts (or, with `thought`, its thinking), one after the other. Texts that
are blank are left out there, as requests leave them out; they are kept whole, under "text". A part of another
kind, such as code that Google ran, is kept as it came, under "part".
https://ai.google.dev/gemini-api/docs/thought-signatures
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.protocol.messages import AssistantMessage, TextContent, ThinkingContent
from agentd.providers.json_text import storable

SIGNATURE = "thoughtSignature"


@dataclass
class _Piece:
    """Text or a thought, as long as nothing signed lies between."""

    block: int | None
    thought: bool
    chars: int
    blank: str | None
    signature: str | None = None


class KeptParts:
    """The parts of one response, in order."""

    def __init__(self) -> None:
        self._parts: list[_Piece | dict[str, Any]] = []
        self._worth = False

    def add_text(self, block: int | None, text: str, signature: str | None, *, thought: bool) -> None:
        """Text of a content block as it was emitted, perhaps empty; `block` is None where none is open."""
        self._worth = self._worth or signature is not None
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Piece) and last.signature is None and last.block == block and signature is None:
            last.chars += len(text)
            if last.blank is not None:
                last.blank = last.blank + text if not text.strip() else None
        elif text or signature:
            blank = text if not text.strip() else None
            self._parts.append(_Piece(block, thought, len(text), blank, signature))

    def add_call(self, id_: str | None, signature: str | None) -> None:
        """The beginning of a call."""
        self._worth = self._worth or signature is not None or id_ is not None
        told = {"id": id_, SIGNATURE: signature}
        self._parts.append({"call": True} | {key: value for key, value in told.items() if value is not None})

    def sign_last(self, signature: str) -> None:
        """A signature that came with a later piece of the last call."""
        last = self._parts[-1] if self._parts else None
        if isinstance(last, dict) and "call" in last and SIGNATURE not in last:
            last[SIGNATURE] = signature
            self._worth = True

    def add_other(self, part: Mapping[str, Any]) -> None:
        """A part that is neither text nor call."""
        self._worth = True
        self._parts.append({"part": dict(part)})

    def replay(self) -> dict[str, Any] | None:
        """What `replayed` needs; None where the message says it all."""
        if not self._worth:
            return None
        spoken = {part.block for part in self._parts if isinstance(part, _Piece) and part.blank is None}
        parts = [_told(part, spoken) if isinstance(part, _Piece) else part for part in self._parts]
        return storable({"parts": parts})


def _told(piece: _Piece, spoken: set[int | None]) -> dict[str, Any]:
    told: dict[str, Any] = {"chars": piece.chars}
    if piece.blank is not None and not piece.thought and piece.block not in spoken:
        told = {"text": piece.blank}
    if piece.thought:
        told["thought"] = True
    if piece.signature is not None:
        told[SIGNATURE] = piece.signature
    return told


def replayed(kept: Mapping[str, Any] | None, message: AssistantMessage) -> Iterator[dict[str, Any]]:
    """The parts of a message as its server wants them back: signed where they were.

    A call is `{"functionCall": {"id"?}}`, for the caller to fill in, and so it is where nothing was kept.
    Thoughts go back only when signed, blank texts only then.
    """
    parts = kept.get("parts") if kept else None
    if not isinstance(parts, list) or not _fits(parts, message):
        yield from _plain(message)
        return
    texts = "".join(_texts(message))
    thoughts = "".join(_thoughts(message))
    text_at = thought_at = 0
    for part in parts:
        signature = {SIGNATURE: part[SIGNATURE]} if SIGNATURE in part else {}
        chars = part.get("chars", 0)
        if "part" in part:
            yield dict(part["part"])
        elif "call" in part:
            yield {"functionCall": {"id": part["id"]} if "id" in part else {}} | signature
        elif part.get("thought"):
            if signature:
                yield {"text": thoughts[thought_at : thought_at + chars], "thought": True} | signature
            thought_at += chars
        else:
            text = part.get("text", texts[text_at : text_at + chars])
            if signature or text.strip():
                yield {"text": text} | signature
            text_at += chars


def _plain(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    for block in message.content:
        if isinstance(block, TextContent):
            if block.text.strip():
                yield {"text": block.text}
        elif not isinstance(block, ThinkingContent):
            yield {"functionCall": {}}


def _fits(parts: Sequence[Any], message: AssistantMessage) -> bool:
    """Whether the message is still the one that the parts were kept for."""
    if not all(isinstance(part, Mapping) for part in parts):
        return False
    kinds = {False: 0, True: 0}
    for part in parts:
        chars = part.get("chars", 0)
        if not isinstance(chars, int):
            return False
        kinds[bool(part.get("thought"))] += chars
    return (
        kinds[False] == sum(map(len, _texts(message)))
        and kinds[True] == sum(map(len, _thoughts(message)))
        and sum("call" in part for part in parts) == len(message.calls)
    )


def _texts(message: AssistantMessage) -> Iterator[str]:
    return (block.text for block in message.content if isinstance(block, TextContent) and block.text.strip())


def _thoughts(message: AssistantMessage) -> Iterator[str]:
    return (block.text for block in message.content if isinstance(block, ThinkingContent))
