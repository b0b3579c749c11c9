"""Where a history is parted: whatever it holds, what is kept and what is summed up stay valid."""

import json
from collections.abc import Sequence
from itertools import pairwise

from agent.histories import answer, call, is_asked, numbered_histories, result, runs, user
from agent.loop_host import MemoryHost
from agent.strict_history import faults
from fakes.every_server import refusals
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.history import KEPT_SHARE, History, cuts
from agentd.agent.memory import current, note, recalled
from agentd.agent.request import project
from agentd.agent.summary import cut, rendered, summary_request
from agentd.agent.tokens import of_message, of_text
from agentd.protocol.events import Memory
from agentd.protocol.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolResultMessage,
)
from agentd.providers.anthropic_models import Dialect
from agentd.providers.anthropic_request import messages_body
from agentd.providers.base import Model, ModelRequest
from agentd.providers.gemini_request import generate_body
from agentd.providers.openai_chat_request import chat_body
from agentd.providers.openai_responses_request import responses_body

MODEL = Model("p", "m", context_window=100_000, images=True)
any_history = st.one_of(numbered_histories, runs)


def history_of(messages: Sequence[Message], memory: Memory | None = None) -> History:
    """These messages as the loop's host has them."""
    host = MemoryHost()
    host.model = MODEL
    host.messages = list(messages)
    host.memories = [] if memory is None else [memory]
    return History(host, host.engine())


def ids_of(messages: Sequence[Message]) -> set[str]:
    """The calls that messages make or answer."""
    made = {call.id for m in messages if isinstance(m, AssistantMessage) for call in m.calls}
    return made | {m.tool_call_id for m in messages if isinstance(m, ToolResultMessage)}


def summed_up(messages: Sequence[Message], place: int, memory: Memory | None = None) -> Memory:
    """The memory of a summary of all before `place`."""
    history = history_of(messages, memory)
    return history.remembered(place, "## Goal\nTo go on.", history.cut_prompt(place))


# --- every place, twice in a row ------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(any_history)
def test_at_no_place_is_a_call_parted_from_its_result(messages: list[Message]) -> None:
    for place in cuts(messages, 0):
        assert 0 < place < len(messages)
        assert not ids_of(messages[:place]) & ids_of(messages[place:])
        assert not isinstance(messages[place], ToolResultMessage)


@settings(max_examples=60, deadline=None)
@given(runs)
def test_a_sound_history_can_be_parted_before_whatever_the_user_or_the_model_says(
    messages: list[Message],
) -> None:
    said = [n for n, m in enumerate(messages) if n and not isinstance(m, ToolResultMessage)]
    assert cuts(messages, 0) == said


@settings(max_examples=60, deadline=None)
@given(any_history)
def test_what_is_kept_behind_each_place_is_a_request_that_every_server_takes(messages: list[Message]) -> None:
    for place in cuts(messages, 0):
        kept = project(messages, summed_up(messages, place), images=True)
        assert faults(kept) == []
        assert refusals(ModelRequest(MODEL, "system", kept, ())) == {}


@settings(max_examples=60, deadline=None)
@given(any_history)
def test_the_request_for_a_summary_is_one_that_every_server_takes(messages: list[Message]) -> None:
    for place in cuts(messages, 0):
        shown = history_of(messages).shown_before(place)
        if shown:
            request = summary_request(history_of(messages).engine, shown, 500, "Keep \ud800 the names.")
            assert refusals(request) == {}


@settings(max_examples=60, deadline=None)
@given(any_history, st.data())
def test_two_compactions_in_a_row_are_valid_at_every_place(
    messages: list[Message], data: st.DataObject
) -> None:
    places = cuts(messages, 0)
    if not places:
        return
    first = data.draw(st.sampled_from(places))
    memory = summed_up(messages, first)
    for second in cuts(messages, first):
        again = summed_up(messages, second, memory)
        kept = project(messages, again, images=True)
        assert faults(kept) == []
        assert refusals(ModelRequest(MODEL, "system", kept, ())) == {}
        shown = history_of(messages, memory).shown_before(second)
        assert "To go on." in str(shown[0].content[0]), "the first summary is summed up again"
        assert refusals(summary_request(history_of(messages).engine, shown, None, None)) == {}


@settings(max_examples=60, deadline=None)
@given(any_history)
def test_leaving_out_output_keeps_a_request_valid(messages: list[Message]) -> None:
    results = tuple(m.message_id for m in messages if isinstance(m, ToolResultMessage))
    kept = project(messages, Memory(seen=len(messages), cleared=results), images=True)
    assert faults(kept) == []
    assert not kept or refusals(ModelRequest(MODEL, "system", kept, ())) == {}


# --- what is kept ---------------------------------------------------------------------------------


def turns(count: int, size: int = 400) -> list[Message]:
    """A prompt and so many turns, each with a result of that many characters."""
    messages: list[Message] = [user("do it", message_id="u")]
    for n in range(count):
        messages.append(answer(call(f"c{n}"), stop="tool_use", message_id=f"a{n}"))
        messages.append(result(f"c{n}", "x" * size, message_id=f"r{n}"))
    return messages


def test_the_last_fifth_is_kept_whole() -> None:
    messages = turns(20)
    place = history_of(messages).cut()
    assert place is not None
    whole = sum(map(of_message, messages))
    assert sum(map(of_message, messages[place:])) <= whole // KEPT_SHARE
    assert sum(map(of_message, messages[place - 2 :])) > whole // KEPT_SHARE


def test_the_last_turn_is_kept_however_long_it_is() -> None:
    messages = turns(3)
    messages[-1] = result("c2", "x" * 1_000_000, message_id="r2")
    assert history_of(messages).cut() == len(messages) - 2


def test_a_prompt_that_is_most_of_the_history_is_summed_up_with_the_first_answer_to_it() -> None:
    messages = [user("x" * 400_000, message_id="u"), *turns(20)[1:]]
    assert history_of(messages).cut() == 3


def test_the_prompt_of_a_run_that_is_cut_is_said_again_word_for_word() -> None:
    messages = turns(20)
    history = history_of(messages)
    place = history.cut()
    assert place is not None
    memory = summed_up(messages, place)
    assert memory.prompt == "u"
    head = recalled(messages, memory)[0]
    assert [getattr(block, "text", "") for block in head.content] == ["## Goal\nTo go on.", "do it"]


def test_a_prompt_that_is_kept_or_very_long_is_not_said_again() -> None:
    long = [user("x" * 100_000, message_id="u"), *turns(20)[1:]]
    assert history_of(long).cut_prompt(10) is None
    asked = [*turns(20), user("and now", message_id="v")]
    assert history_of(asked).cut_prompt(10) is None


def test_there_is_nothing_to_sum_up_where_the_model_has_said_nothing_yet() -> None:
    assert history_of([]).cut() is None
    assert history_of([user("a", message_id="u1"), user("b", message_id="u2")]).cut() is None
    failed = [user("a", message_id="u1"), answer("no", stop="error"), user("b", message_id="u2")]
    assert history_of(failed).cut() is None


def test_what_was_summed_up_is_not_summed_up_again_before_something_is_new() -> None:
    messages = turns(20)
    place = history_of(messages).cut()
    assert place is not None
    memory = summed_up(messages, place)
    assert history_of(messages, memory).cut() is None
    assert history_of([*messages, user("more", message_id="v")], memory).cut() is not None


def test_what_was_left_out_before_stays_so_and_a_summary_stays_when_more_is_left_out() -> None:
    messages = turns(20)
    first = Memory(seen=10, text="The summary.", through="r4", prompt="u", cleared=("r5", "r18", "r19"))
    more = history_of(messages, first).cleared(15)
    assert more == Memory(
        seen=len(messages), text="The summary.", through="r4", prompt="u", cleared=("r5", "r18", "r19", "r6")
    )
    place = next(n for n, m in enumerate(messages) if m.message_id == "a18")
    assert summed_up(messages, place, first).cleared == ("r18", "r19")


# --- which memory counts --------------------------------------------------------------------------


def test_a_memory_counts_while_the_last_message_that_it_sums_up_is_there() -> None:
    messages = turns(20)
    first, second = (Memory(seen=n, text=f"{n}", through=messages[n].message_id) for n in (10, 20))
    assert current([first, second], messages) is second
    assert current([first, second], messages[:21]) is second
    assert current([first, second], messages[:20]) is first, "a rewind took a message away"
    assert current([first, second], messages[:10]) is None
    assert current([], messages) is None


# --- the text of it -------------------------------------------------------------------------------


def test_tool_output_and_arguments_are_cut_in_a_request_for_a_summary() -> None:
    messages = [
        user("u" * 5000),
        answer("a" * 5000, call("c", content="w" * 50_000)),
        result("c", "f" * 1000 + "o" * 50_000 + "the end"),
    ]
    text = rendered(project(messages), None)
    assert "u" * 5000 in text
    assert "a" * 5000 in text
    assert "f" * 900 in text
    assert "the end" in text
    assert text.count("o") < 2000
    assert text.count("w") < 2000
    assert len(text) < 10_000 + 2 * 2000 + 200


@given(st.text(max_size=500), st.integers(100, 400))
def test_a_cut_text_is_never_longer_than_the_limit(text: str, limit: int) -> None:
    assert len(cut(text, limit)) <= limit
    assert cut(text, None) == text


def test_a_request_for_a_summary_fits_into_its_room_however_long_the_history_is() -> None:
    messages = project([user("é" * 100_000), *turns(200, 4000)[1:]])
    for room in (100_000, 10_000, 1_000, 200):
        assert of_text(rendered(messages, room)) <= room
    assert rendered(messages, 10_000) == rendered(messages, 10_000)


def test_a_note_names_the_tool_and_the_size_of_what_was_left_out() -> None:
    assert "Output of read, 12,345 characters:" in note(result("c", "x" * 12_345))


# --- what a server finds in its cache -------------------------------------------------------------


def spoken(messages: list[Message]) -> list[Message]:
    """The same where every answer came and says something: no two messages of the user stand together."""
    return [
        message.model_copy(
            update={
                "content": (TextContent(text="so"), *message.content),
                "stop_reason": "tool_use" if message.calls else "length",
            }
        )
        if isinstance(message, AssistantMessage)
        else message
        for message in messages
    ]


def bodies(request: ModelRequest) -> dict[str, list[object]]:
    """What grows in the body of a request of each API, without markers for the cache."""
    anthropic = json.loads(json.dumps(messages_body(request, Dialect(cache_markers=0))))
    return {
        "openai-chat": chat_body(request)["messages"],
        "openai-responses": responses_body(request)["input"],
        "anthropic": anthropic["messages"],
        "gemini": generate_body(request)["contents"],
    }


@settings(max_examples=100, deadline=None)
@given(runs.map(spoken), st.integers(0, 40))
def test_the_body_of_a_request_begins_with_the_one_before_for_every_api(
    messages: list[Message], shortened: int
) -> None:
    place = next((p for p in cuts(messages, 0) if p >= shortened), None)
    memory = None if place is None else summed_up(messages, place)
    asked = [n for n in range(place or 1, len(messages)) if is_asked(messages[n])]
    requests = [project(messages[:n], memory) for n in asked if project(messages[:n], memory)]
    grown = [bodies(ModelRequest(MODEL, "system", request, ())) for request in requests]
    for before, after in pairwise(grown):
        for api in before:
            assert after[api][: len(before[api])] == before[api]
            assert len(after[api]) > len(before[api])
