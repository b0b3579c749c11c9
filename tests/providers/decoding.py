"""The decoder of every API, and an answer read by it in chunks of any size."""

from collections.abc import Callable

from agentd.providers.anthropic_decoder import MessagesDecoder
from agentd.providers.base import StreamEnd, StreamEvent
from agentd.providers.gemini_decoder import GeminiDecoder
from agentd.providers.http_answer import Decoder
from agentd.providers.http_errors import Peer
from agentd.providers.openai_chat_decoder import ChatDecoder
from agentd.providers.openai_responses_decoder import ResponsesDecoder

PEER = Peer("local", "m", "http://127.0.0.1/v1")
WHOLE = 10**9
"""More bytes than any answer has."""
DECODERS: dict[str, Callable[[Peer], Decoder]] = {
    "openai-chat": ChatDecoder,
    "openai-responses": ResponsesDecoder,
    "anthropic": MessagesDecoder,
    "gemini": GeminiDecoder,
}


def decode(api: str, body: bytes, chunk: int = WHOLE) -> tuple[list[StreamEvent], StreamEnd]:
    """All that an answer says, and its end. Raises `ProviderError`."""
    decoder, events = DECODERS[api](PEER), list[StreamEvent]()
    for start in range(0, len(body), chunk):
        if decoder.done:
            break
        events += decoder.feed(body[start : start + chunk])
    events += decoder.close()
    return events, decoder.end()
