"""Whether a model server leaves out the beginning of prompts that are too long for it, without a word.

Ollama does (ollama/ollama#3839, #17427): a prompt longer than `num_ctx`, 4096 tokens unless somebody set
more, is cut to half of that or to all of it, and `/v1` takes no `num_ctx`. The answer is a 200 from a model
that has seen neither the question nor its tools. The only trace is the count of prompt tokens, taken after
the cut.

No false alarm is worth a true one, and two things make a count look too small:

* nobody here has the model's tokens, so a count is compared with a number that no tokenizer stays below;
* a server may leave cached tokens out of its count (Ollama before 0.4, and 0.30 until its #16428). What is
  cached is a beginning of what was sent before, so the count is then that of a prompt's end.

Three signs are proof enough. They are numbers only, and `is_cut` is their whole rule.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentd.protocol.events import Notice
from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from agentd.providers.base import ModelRequest

_CHARACTERS_PER_TOKEN = 8
"""More than any tokenizer makes of text on average; English and code have 3 to 5. Runs of one character, of
which some make a single token, are counted as one."""
_RUN = re.compile(r"(.)\1+", re.DOTALL)
_TEMPLATE = 64
"""The most tokens that a template puts around a message."""
_SMALLEST_POWER = 11
"""2048 tokens, half of Ollama's smallest default: a smaller context is no use to an agent."""
_BELOW, _ABOVE = 2, 8
"""How far a count is from a power of two where a server has cut there: it keeps some of the first tokens."""
_STALLED = 3
"""How many counts in a row must stand still while what is sent grows."""
_GROWTH = 64
"""The least tokens by which what is sent has to grow each time."""


Sizes = dict[str, tuple[Sequence[object], int]]
"""By a message's id what it says, which a compaction may make less of, and the least tokens that is."""


@dataclass(frozen=True)
class Exchanged:
    """One request and what its server counted, in tokens.

    At least `sent` were in the whole of it, and at least `fresh` of them the server cannot have had before.
    At most `tail` come after the longest beginning that it can have had: None where nobody can tell.
    """

    sent: int
    fresh: int
    tail: int | None
    counted: int


def is_cut(exchanges: Sequence[Exchanged]) -> bool:
    """Whether the last of these, all with one model and in order, shows that the server cuts prompts."""
    last = exchanges[-1]
    if last.counted <= 0 or last.counted >= last.sent:
        return False
    return last.counted < last.fresh or _is_at_power(last) or _is_stalled(exchanges[-_STALLED:])


def _is_at_power(exchange: Exchanged) -> bool:
    """The count is a power of two, and more than what a cache can have left of the prompt."""
    if exchange.tail is None or exchange.counted <= exchange.tail:
        return False
    power = 1 << (exchange.counted + _BELOW).bit_length() - 1
    return power >= 1 << _SMALLEST_POWER and -_BELOW <= exchange.counted - power <= _ABOVE


def _is_stalled(exchanges: Sequence[Exchanged]) -> bool:
    """What was sent grew, and the count did not grow with it; and a cache can have left no such count.

    Had the server left the same beginning out of each count, they would have grown by more than `sent` did.
    """
    if len(exchanges) < _STALLED:
        return False
    if any(each.tail is None or not each.tail < each.counted < each.sent for each in exchanges):
        return False
    grew = all(later.sent - earlier.sent >= _GROWTH for earlier, later in pairwise(exchanges))
    first, last, counts = exchanges[0], exchanges[-1], [each.counted for each in exchanges]
    stood = last.counted - first.counted < last.sent - first.sent and 2 * min(counts) >= max(counts)
    return grew and stood


class PromptWatch:
    """Looks at the exchanges of a session, and warns once for each model."""

    def __init__(self, warned: Iterable[str] = ()) -> None:
        """`warned` are the ids of the models for which the user knows it."""
        self._warned = set(warned)
        self._exchanges: dict[str, deque[Exchanged]] = {}
        self._sizes: Sizes = {}  # counting a long history anew each time takes too long

    def notice(
        self, request: ModelRequest, transcript: Sequence[Message], usage: Usage | None, *, resent: bool
    ) -> Notice | None:
        """What to tell the user after an answer, if anything. A request that was `resent` proves less."""
        model = request.model
        if not model.cuts_prompts or usage is None or model.id in self._warned:
            return None
        exchange = measured(request, transcript, usage, resent=resent, sizes=self._sizes)
        exchanges = self._exchanges.setdefault(model.id, deque(maxlen=_STALLED))
        exchanges.append(exchange)
        if not is_cut(tuple(exchanges)):
            return None
        self._warned.add(model.id)
        del self._exchanges[model.id]
        return Notice(severity="warning", message=_WARNING.format(model=model.id, exchange=exchange))


_WARNING = (
    "{model} does not see the whole conversation: its server counted {exchange.counted:,} tokens of a prompt "
    "that has at least {exchange.sent:,}. It leaves out the beginning of what does not fit into its context, "
    "instructions and tools first, and reports no error. Give it a larger context: for Ollama start the "
    "server with OLLAMA_CONTEXT_LENGTH=32768 or more, or set `PARAMETER num_ctx` in the model's Modelfile; "
    "for LM Studio load the model with a larger context length. Then set context_window of the model in the "
    "configuration to the same number."
)


# --- measuring ------------------------------------------------------------------------------------


def measured(
    request: ModelRequest,
    transcript: Sequence[Message],
    usage: Usage,
    *,
    resent: bool = False,
    sizes: Sizes | None = None,
) -> Exchanged:
    """A request and its usage as numbers. `transcript` tells what an earlier request has sent already.

    Of a message counts what the request shows of it: nothing where a compaction took it out. `sizes` keeps
    what was measured.
    """
    sizes = {} if sizes is None else sizes

    def least_of(message: Message) -> int:
        known = sizes.get(message.message_id)
        if known is None or known[0] != message.content:
            known = sizes[message.message_id] = (message.content, _least_of(message))
        return known[1]

    # How a template writes parameters nobody knows, but names and descriptions it has to show.
    texts = [request.system, *(f"{tool.name} {tool.description}" for tool in request.tools)]
    sent = sum(map(_least, texts)) + sum(map(least_of, request.messages))
    new = {message.message_id for message in _after_last_answer(transcript)}
    fresh = 0 if resent else sum(least_of(each) for each in request.messages if each.message_id in new)
    start = next((n for n in range(len(request.messages) - 1, -1, -1) if _is_answer(request.messages[n])), 0)
    counted = usage.input + usage.cache_read + usage.cache_write
    return Exchanged(sent, fresh, _most(request.messages[start:]), counted)


def _after_last_answer(transcript: Sequence[Message]) -> Sequence[Message]:
    """What no request can have held: an answer, even one that failed, means that all before it was sent."""
    last = next((n for n in range(len(transcript) - 1, -1, -1) if _is_answer(transcript[n])), -1)
    return transcript[last + 1 :]


def _is_answer(message: Message) -> bool:
    return isinstance(message, AssistantMessage)


def _least(text: str) -> int:
    return len(_RUN.sub(r"\1", text)) // _CHARACTERS_PER_TOKEN


def _least_of(message: Message) -> int:
    """Thinking is left out: many templates do so too."""
    blocks = (block for block in message.content if not isinstance(block, ThinkingContent))
    return sum(_least(_text(block)) for block in blocks)


def _most(messages: Sequence[Message]) -> int | None:
    """No token is less than a byte, and no template makes more of a text than JSON does.

    What an image makes nobody knows.
    """
    total = 0
    for message in messages:
        if any(isinstance(block, ImageContent) for block in message.content):
            return None
        total += _TEMPLATE + sum(len(json.dumps(_text(block))) for block in message.content)
    return total


def _text(block: ContentBlock | ThinkingContent | ToolCall) -> str:
    if isinstance(block, TextContent | ThinkingContent):
        return block.text
    if isinstance(block, ToolCall):
        return f"{block.name} {json.dumps(block.arguments, ensure_ascii=False)}"
    return ""  # by now resources and commands are text
