"""Prompts that a server cuts without a word: told from its counts, and never where it has cut none.

The servers here make tokens of characters at a rate of their own, count them or leave cached ones out, and
cut prompts in the ways in which Ollama has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from providers.conversation import PIXEL, assistant, result, thinking, user

from agentd.agent.prompt_cut import Exchanged, PromptWatch, Sizes, is_cut, measured
from agentd.protocol.events import Notice
from agentd.protocol.messages import Message, TextContent, Usage
from agentd.providers.base import Model, ModelRequest, ToolSpec

OLLAMA = Model("ollama", "qwen3", cuts_prompts=True)
TOOLS = (ToolSpec("read_file", "Read a file. " * 40, {"type": "object"}),)
SYSTEM = "You are an agent that works in a folder of the user's. " * 20


_TEXT = "the quick brown fox jumps over a lazy dog " * 12_000


def words(characters: int) -> str:
    """A text of that many characters with no runs in it."""
    return _TEXT[:characters]


# --- the rule, in numbers -------------------------------------------------------------------------


def told(sent: int, counted: int, *, fresh: int = 0, tail: int | None = 500) -> Exchanged:
    return Exchanged(sent, fresh, tail, counted)


@pytest.mark.parametrize(
    ("exchanges", "cut"),
    [
        # as measured on Ollama: half of 4096, of 32768 and of 65536 tokens and a few, or all of 4096
        ([told(9000, 2051)], True),
        ([told(40_000, 16_386)], True),
        ([told(80_000, 32_770)], True),
        ([told(5000, 4096)], True),
        ([told(5000, 4095)], True),
        ([told(5000, 8000)], False),
        ([told(4096, 4096)], False),  # all that was sent
        ([told(4000, 4096)], False),
        ([told(9000, 2300)], False),  # no power of two, and once is no proof
        ([told(9000, 1026)], False),  # smaller than any context that an agent is used with
        ([told(9000, 2051, tail=2100)], False),  # as much as a cache may have left
        ([told(9000, 2051, tail=None)], False),  # an image: nobody knows how much that is
        ([told(9000, 0)], False),  # nothing was counted
        ([told(9000, 1)], False),  # all of it was cached
        # what is new is more than what was counted, whatever was cached
        ([told(30_000, 4000, fresh=20_000, tail=160_000)], True),
        ([told(30_000, 4000, fresh=20_000, tail=None)], True),
        ([told(30_000, 20_000, fresh=20_000, tail=160_000)], False),
        # what is sent grows, and the count stands still
        ([told(5000, 3900), told(5500, 3700), told(6000, 4000)], True),
        ([told(5000, 3900), told(5500, 3700)], False),
        ([told(5000, 3900), told(5500, 4700), told(6000, 5900)], False),  # a beginning that stays cached
        ([told(5000, 3900), told(5010, 3900), told(5020, 3900)], False),  # it hardly grows
        ([told(5000, 400), told(5500, 420), told(6000, 410)], False),  # only what is new is counted
        ([told(5000, 3900), told(5500, 900), told(6000, 1000)], False),  # a cache comes and goes
        ([told(5000, 3900), told(5500, 3800, tail=None), told(6000, 4000)], False),
        ([told(2000, 3900), told(5500, 3700), told(6000, 4000)], False),  # the first was whole
    ],
)  # fmt: skip
def test_three_signs_are_proof_and_nothing_else_is(exchanges: Sequence[Exchanged], cut: bool) -> None:
    assert is_cut(exchanges) is cut


@given(st.integers(1, 200_000), st.integers(0, 200_000), st.none() | st.integers(0, 200_000))
def test_a_count_of_at_least_what_was_sent_is_never_a_cut(sent: int, more: int, tail: int | None) -> None:
    assert not is_cut([Exchanged(sent, sent, tail, sent + more)] * 3)


# --- conversations --------------------------------------------------------------------------------


@dataclass
class Conversation:
    """A session with one model. `rate` is how many characters its tokens have."""

    count: Callable[["Conversation"], int]
    rate: float = 4.0
    model: Model = OLLAMA
    watch: PromptWatch = field(default_factory=PromptWatch)
    transcript: list[Message] = field(default_factory=list)
    seen: int = 0  # how many messages the server has had
    first: int = 0  # tokens of system prompt and tools

    def ask(self, *messages: Message, resent: bool = False) -> Notice | None:
        self.transcript += [self.new(message) for message in messages]
        request = ModelRequest(self.model, SYSTEM, tuple(self.transcript), TOOLS)
        self.first = self.tokens_of(SYSTEM + TOOLS[0].description)
        usage = Usage(input=self.count(self))
        notice = self.watch.notice(request, self.transcript, usage, resent=resent)
        self.transcript.append(self.new(assistant("All right, let me see what there is to see here.")))
        self.seen = len(self.transcript)
        return notice

    def new(self, message: Message) -> Message:
        return message.model_copy(update={"message_id": f"m{len(self.transcript)}-{id(message)}"})

    def tokens_of(self, text: str) -> int:
        return -int(-len(text) // self.rate) + 4

    def tokens(self, messages: Sequence[Message]) -> int:
        texts = ["".join(getattr(block, "text", "") for block in message.content) for message in messages]
        return sum(map(self.tokens_of, texts))


def whole(talk: Conversation) -> int:
    """Every token counts."""
    return talk.first + talk.tokens(talk.transcript)


def uncached(talk: Conversation) -> int:
    """What was there before does not count, and neither does the answer to it."""
    return max(1, talk.tokens(talk.transcript[talk.seen :]) + (0 if talk.seen else talk.first))


def uncached_after_first(talk: Conversation) -> int:
    """System prompt and tools, which other sessions have sent too, do not count."""
    return talk.tokens(talk.transcript)


def halved(limit: int) -> Callable[[Conversation], int]:
    """A prompt that does not fit is cut to half of what does, with some of the first tokens kept."""
    return lambda talk: whole(talk) if whole(talk) <= limit else limit // 2 + 3


def filled(limit: int) -> Callable[[Conversation], int]:
    """A prompt that does not fit is cut to what does."""
    return lambda talk: min(whole(talk), limit)


def dropped(limit: int) -> Callable[[Conversation], int]:
    """The oldest messages are left out until the rest fits."""

    def count(talk: Conversation) -> int:
        start = 0
        while start < len(talk.transcript) - 1 and talk.first + talk.tokens(talk.transcript[start:]) > limit:
            start += 1
        return min(limit, talk.first + talk.tokens(talk.transcript[start:]))

    return count


SIZES = st.lists(st.integers(0, 30_000), min_size=1, max_size=12)


@given(SIZES, st.floats(1.0, 7.9), st.sampled_from([whole, uncached]))
def test_a_server_that_cuts_nothing_is_never_accused(
    sizes: list[int], rate: float, count: Callable[[Conversation], int]
) -> None:
    talk = Conversation(count, rate)
    assert [talk.ask(user(words(size))) for size in sizes] == [None] * len(sizes)


@given(SIZES, st.floats(1.0, 7.9))
def test_a_beginning_that_other_sessions_share_is_no_cut(sizes: list[int], rate: float) -> None:
    def count(talk: Conversation) -> int:
        counted = uncached_after_first(talk)
        assume(all(not -2 <= counted - (1 << power) <= 8 for power in range(11, 20)))  # see the module's text
        return counted

    talk = Conversation(count, rate)
    assert [talk.ask(user(words(size))) for size in sizes] == [None] * len(sizes)


@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=6))
def test_a_request_that_was_sent_again_may_be_cached_as_a_whole(sizes: list[int]) -> None:
    talk = Conversation(lambda _: 1)
    assert [talk.ask(user(words(size)), resent=True) for size in sizes] == [None] * len(sizes)


@pytest.mark.parametrize("rate", [1.5, 3.0, 4.0, 5.5])
@pytest.mark.parametrize("limit", [4096, 8192, 32_768, 10_000, 6000])
@pytest.mark.parametrize("cutting", [halved, filled, dropped])
def test_a_server_that_cuts_is_found_out_once(
    cutting: Callable[[int], Callable[[Conversation], int]], limit: int, rate: float
) -> None:
    talk = Conversation(cutting(limit), rate)
    notices = [talk.ask(user(words(limit // 8 + 97 * (number % 3)))) for number in range(80)]
    assert len([notice for notice in notices if notice is not None]) == 1
    assert notices[0] is None


def test_a_file_that_is_read_at_once_is_found_out_at_once() -> None:
    talk = Conversation(halved(4096))
    assert talk.ask(user("what is in it?")) is None
    notice = talk.ask(result("c", words(87_000)))
    assert notice is not None
    assert notice.severity == "warning"
    for said in ("ollama/qwen3", "2,051 tokens", "num_ctx", "OLLAMA_CONTEXT_LENGTH", "context_window"):
        assert said in notice.message


# --- what is measured -----------------------------------------------------------------------------


def measure(
    *messages: Message, transcript: Sequence[Message] | None = None, resent: bool = False
) -> Exchanged:
    request = ModelRequest(OLLAMA, "", messages, ())
    return measured(
        request, transcript or messages, Usage(input=1, cache_read=2, cache_write=4), resent=resent
    )


def test_what_was_cached_counts_where_the_server_tells_it_apart() -> None:
    assert measure(user("x")).counted == 7


def test_runs_of_one_character_may_be_a_single_token() -> None:
    assert measure(user("=" * 80_000 + " " * 80_000)).sent == 0
    assert measure(user(words(80_000))).sent == 10_000


def test_thinking_that_templates_leave_out_is_not_held_against_the_server() -> None:
    assert measure(user("x"), assistant(thinking(words(80_000)), "y")).sent == 0


def test_what_a_failed_answer_stands_behind_was_sent_before() -> None:
    failed = assistant("").model_copy(update={"stop_reason": "error", "content": ()})
    asked = user(words(80_000))
    assert measure(asked).fresh == 10_000
    assert measure(asked, transcript=[asked, failed]).fresh == 0
    assert measure(asked, resent=True).fresh == 0


def test_of_what_a_compaction_left_out_only_the_note_counts() -> None:
    output = result("c", words(80_000)).model_copy(update={"message_id": "r1"})
    cleared = output.model_copy(update={"content": (TextContent(text="[left out]"),)})
    asked, sizes = user("what is in it?"), Sizes()
    transcript = [asked, output]
    whole = ModelRequest(OLLAMA, "", (asked, output), ())
    first = measured(whole, transcript, Usage(input=1), sizes=sizes)
    assert (first.sent, first.fresh) == (10_001, 10_001)
    left = measured(
        replace(whole, messages=(asked, cleared)), [*transcript, user("?")], Usage(input=1), sizes=sizes
    )
    assert (left.sent, left.fresh) == (2, 2)
    gone = measured(replace(whole, messages=(asked,)), transcript, Usage(input=1), sizes=sizes)
    assert (gone.sent, gone.fresh) == (1, 1)


def test_of_an_image_nobody_knows_how_many_tokens_it_is() -> None:
    assert measure(user("x", PIXEL)).tail is None
    assert measure(user("x", PIXEL), assistant("y"), user("z")).tail is not None


def test_a_tail_is_the_last_answer_and_what_came_after_it_in_bytes() -> None:
    tail = measure(user(words(9000)), assistant("ok"), user("é\n")).tail
    assert tail is not None
    assert len("ok") + len("\\u00e9\\n") <= tail <= 200


# --- whom it concerns -----------------------------------------------------------------------------


def test_only_servers_that_are_known_to_cut_are_watched_and_each_model_by_itself() -> None:
    talk = Conversation(lambda _: 100)
    plain, other = replace(OLLAMA, cuts_prompts=False), replace(OLLAMA, name="gemma")
    talk.model = plain
    assert talk.ask(user(words(87_000))) is None
    for model in (OLLAMA, other):
        talk.model = model
        assert talk.ask(user(words(87_000))) is not None
        assert talk.ask(user(words(87_000))) is None


def test_a_user_who_was_told_in_an_earlier_life_is_not_told_again() -> None:
    talk = Conversation(lambda _: 100, watch=PromptWatch(["ollama/qwen3"]))
    assert talk.ask(user(words(87_000))) is None


def test_a_server_that_counts_nothing_is_not_judged() -> None:
    request = ModelRequest(OLLAMA, SYSTEM, (user(words(87_000)),), TOOLS)
    assert PromptWatch().notice(request, request.messages, None, resent=False) is None
