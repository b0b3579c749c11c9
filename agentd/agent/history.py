"""A transcript as requests show it, how long that is, and where it can be parted."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from agentd.agent import tokens
from agentd.agent.host import Conversation, Engine
from agentd.agent.memory import first_kept, is_answer, is_aside, note, recalled, shown
from agentd.agent.request import project, tool_specs
from agentd.protocol.events import Memory
from agentd.protocol.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

KEPT_SHARE = 5
"""A fifth of the history is kept whole: its last turns, and the very last one however long it is."""

_WORTH_CLEARING = 2  # times the note that stands for it
_GROWTH = 20  # a twentieth of the threshold must be added before what did not help is tried again
_MOST_REPEATED = 2000  # tokens of a prompt that are said again word for word


class History:
    """A transcript with what requests show of it now, and how long that is."""

    def __init__(self, conversation: Conversation, engine: Engine) -> None:
        self.engine = engine
        self.transcript: tuple[Message, ...] = tuple(conversation.transcript)
        self.memory = conversation.memory
        self._start = first_kept(self.transcript, self.memory)
        self._gone = frozenset(self.memory.cleared) if self.memory is not None else frozenset()
        self._conversation = conversation
        self._estimates: dict[Memory | None, int] = {}
        self.tokens = self._tokens()

    def is_due(self, limit: int) -> bool:
        """Whether it is too long, and making it shorter would help: it does not where it just has not."""
        if self.tokens < limit or self.memory is None:
            return self.tokens >= limit
        added = _size(self.transcript[self.memory.seen :])
        first = tokens.counted(self.transcript, self.memory.seen, latest=False)
        was_short = (first[0] if first is not None else self.tokens - added) < limit
        return was_short or added >= limit // _GROWTH

    def _tokens(self) -> int:
        """What the next request fills: as the server counted last, and an estimate of what came since."""
        seen = self.memory.seen if self.memory is not None else 0
        counted = tokens.counted(self.transcript, seen)
        if counted is None:
            return self.estimate
        count, place = counted
        return count + _size(self.transcript[place:])

    @property
    def estimate(self) -> int:
        """What the next request fills, all of it estimated."""
        return self._estimate(self.memory)

    def _estimate(self, memory: Memory | None) -> int:
        if memory not in self._estimates:
            self._estimates[memory] = self._preamble() + _size(recalled(self.transcript, memory))
        return self._estimates[memory]

    def _preamble(self) -> int:
        told = self._conversation
        return tokens.of_preamble(told.system_prompt(), tool_specs(told.toolbox))

    def size_with(self, memory: Memory) -> int:
        """What requests would fill with this memory: what was counted, less what is estimated to be gone.

        With another summary, of which little was counted, no more than is estimated for it alone.
        """
        estimate = self._estimate(memory)
        rest = max(self.tokens - self.estimate + estimate, 1)
        has_same_text = memory.text == (self.memory.text if self.memory is not None else None)
        return rest if has_same_text else min(rest, estimate)

    def cut(self) -> int | None:
        """Where the part begins that is kept whole; None where no summary would say anything new."""
        if self.memory is not None and self.memory.text and all(map(is_aside, self._since(self.memory))):
            return None
        said = [n for n, message in enumerate(self.transcript) if n >= self._start and is_answer(message)]
        places = [place for place in cuts(self.transcript, self._start) if said and place > said[0]]
        if not places:
            return None
        sizes = [tokens.of_message(shown(message, self._gone)) for message in self.transcript[self._start :]]
        behind = list(accumulate(reversed(sizes)))[::-1]  # the size of all from a message on
        room = behind[0] // KEPT_SHARE
        return next((place for place in places if behind[place - self._start] <= room), places[-1])

    def _since(self, memory: Memory) -> Sequence[Message]:
        """What was said since a memory was made."""
        return self.transcript[memory.seen :]

    def shown_before(self, place: int) -> Sequence[Message]:
        """What requests show of the messages before `place`, an earlier summary among it."""
        return project(self.transcript[:place], self.memory, images=self.engine.model.images)

    def cut_prompt(self, place: int) -> str | None:
        """The user's last message before `place`, where none comes behind it and it can be repeated."""
        if any(_is_said(message) for message in self.transcript[place:]):
            return None
        last = next((m for m in reversed(self.transcript[:place]) if _is_said(m)), None)
        short = last is not None and tokens.of_message(last) <= _MOST_REPEATED
        return last.message_id if last is not None and short else None

    def cleared(self, place: int) -> Memory | None:
        """The memory without the output of tools before `place`; None where there is none worth it."""
        found = tuple(
            message.message_id
            for message in self.transcript[self._start : place]
            if isinstance(message, ToolResultMessage)
            and message.message_id not in self._gone
            and tokens.of_message(message) > _WORTH_CLEARING * tokens.of_text(note(message))
        )
        if not found:
            return None
        memory = self.memory or Memory(seen=0)
        return memory.model_copy(update={"seen": len(self.transcript), "cleared": (*memory.cleared, *found)})

    def remembered(self, place: int, text: str, prompt: str | None) -> Memory:
        """The memory in which `text` stands for all before `place`."""
        return Memory(
            seen=len(self.transcript),
            text=text,
            through=self.transcript[place - 1].message_id,
            prompt=prompt,
            cleared=tuple(m.message_id for m in self.transcript[place:] if m.message_id in self._gone),
        )


def _is_said(message: Message) -> bool:
    return isinstance(message, UserMessage) and not is_aside(message)


def _size(messages: Iterable[Message]) -> int:
    """An estimate for what requests show of these messages. Faster than to make a request of them."""
    return tokens.of_messages(
        message
        for message in messages
        if is_answer(message) or not (isinstance(message, AssistantMessage) or is_aside(message))
    )


def cuts(transcript: Sequence[Message], start: int) -> list[int]:
    """The places behind `start` where a history can be parted: before what the user or the model says.

    Never with a call on one side and its result on the other, in whatever order a damaged history has them.
    """
    last = {call_id: place for place, message in enumerate(transcript) for call_id in _call_ids(message)}
    places: list[int] = []
    whole = start  # up to here nothing can be parted
    for place in range(start, len(transcript)):
        message = transcript[place]
        if place > whole and not isinstance(message, ToolResultMessage):
            places.append(place)
        whole = max([whole, *(last[call_id] for call_id in _call_ids(message))])
    return places


def _call_ids(message: Message) -> Iterable[str]:
    """The calls that a message is about."""
    if isinstance(message, AssistantMessage):
        return (call.id for call in message.calls)
    return (message.tool_call_id,) if isinstance(message, ToolResultMessage) else ()
