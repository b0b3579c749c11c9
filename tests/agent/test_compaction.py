"""A run whose history gets too long for its model: made shorter in time, once, or left as it was."""

import itertools
from typing import Any

import pytest
from agent.event_order import AnyEvent, assert_whole_run, words
from agent.histories import answer, call, result, user
from agent.loop_host import FakeTool, MemoryHost, Play, calls, text
from agent.strict_history import faults

from agentd.agent.request import project
from agentd.agent.tokens import of_messages
from agentd.config.compaction_settings import CompactionSettings
from agentd.protocol.events import (
    AgentEnd,
    CompactionEnd,
    CompactionStart,
    Retry,
)
from agentd.protocol.messages import (
    AssistantMessage,
    EditDetails,
    FileChange,
    Message,
    ReadDetails,
    TodoItem,
    Usage,
)
from agentd.providers.base import Model, ModelRequest, ProviderError, StreamEnd, TextDelta
from agentd.providers.prices import Prices, Rates
from agentd.tools.base import ToolResult

WINDOW = 100_000
OVERFLOW = ProviderError("context_overflow", "prompt is too long: 2 tokens > 1 maximum")
SUMMARY = "## Goal\nTo go on."


def sized(count: int) -> Usage:
    return Usage(input=count, total=count, context_tokens=count)


def saying(said: str, count: int) -> list[Play]:
    """A response of that text, which fills so much of the window."""
    return [TextDelta(0, said), StreamEnd("stop", sized(count))]


def history(turns: int = 12, size: int = 40) -> list[Message]:
    """A prompt with turns of a call each, and its answer."""
    messages: list[Message] = [user("the first prompt", message_id="h0")]
    for n in range(turns):
        messages.append(answer(f"I look {n}", call(f"h{n}"), stop="tool_use", message_id=f"ha{n}"))
        messages.append(result(f"h{n}", f"found {n} " + "x" * size, message_id=f"hr{n}"))
    return [*messages, answer("all seen", message_id="hlast")]


def full_host(*responses: list[Play], count: int = 90_000, turns: int = 12, **options: Any) -> MemoryHost:
    """A session whose last answer filled so much of the window of its model."""
    host = MemoryHost(*responses, **options)
    host.model = Model("fake", "one", context_window=WINDOW)
    host.messages = history(turns)
    last = host.messages[-1]
    host.messages[-1] = last.model_copy(update={"usage": sized(count)})
    return host


def compactions(events: list[AnyEvent]) -> list[AnyEvent]:
    return [event for event in events if isinstance(event, CompactionStart | CompactionEnd)]


def ends(host: MemoryHost) -> list[CompactionEnd]:
    return [event for event in host.events if isinstance(event, CompactionEnd)]


def said(request: ModelRequest) -> str:
    return "\n".join(getattr(b, "text", "") for m in request.messages for b in m.content)


# --- when it reaches the threshold ----------------------------------------------------------------


@pytest.mark.parametrize(("count", "happens"), [(84_999, False), (85_000, True)])
async def test_it_happens_from_the_threshold_on(count: int, happens: bool) -> None:
    host = full_host(*([text(SUMMARY)] if happens else []), text("done"), count=count - 5)
    await host.run("go")  # which is estimated at 5
    assert bool(compactions(host.events)) is happens
    assert host.provider.left == []


async def test_what_was_summed_up_is_gone_from_requests_and_stays_in_the_transcript() -> None:
    host = full_host(text(SUMMARY), text("done"))
    before = list(host.messages)
    end = await host.run("and now?")
    assert end.stop_reason == "stop"
    assert end.turns == 1
    asked, last = host.provider.requests
    assert (asked.tools, len(asked.messages)) == ((), 1)
    assert "found 0" in said(asked)
    assert "found 0" not in said(last)
    assert SUMMARY in said(last)
    assert "and now?" in said(last)
    assert faults(last.messages) == []
    assert host.messages[: len(before)] == before
    start, ended = compactions(host.events)
    assert start.reason == "threshold"  # type: ignore[union-attr]  # a start
    assert ended.tokens_before == start.tokens_before >= 90_000  # type: ignore[union-attr]
    assert ended.tokens_after < 10_000  # type: ignore[union-attr, operator]


async def test_usage_of_before_does_not_make_it_happen_again() -> None:
    host = full_host(text(SUMMARY), text("done"), text("again"))
    await host.run()
    await host.run()
    assert len(ends(host)) == 1


async def test_it_happens_again_once_the_history_has_grown_again() -> None:
    host = full_host(
        text(SUMMARY), saying("short", 5_000), saying("long", 90_000), text("## Goal\n2."), text("x")
    )
    for _ in range(4):
        await host.run()
    assert [end.outcome for end in ends(host)] == ["compacted"] * 2
    assert SUMMARY in said(host.provider.requests[3]), "the first summary is summed up with the rest"
    assert faults(host.provider.requests[-1].messages) == []


async def test_a_history_that_stays_too_long_is_not_summed_up_over_and_over() -> None:
    """Each turn says that the window is full: what is kept alone is too much for it."""
    tool = FakeTool()
    turns = [[*calls((f"c{n}", "echo", "{}"))[:-1], StreamEnd("tool_use", sized(95_000))] for n in range(6)]
    host = full_host(text(SUMMARY), *turns, text("done"), tools=[tool])
    end = await host.run()
    assert end.stop_reason == "stop"
    assert len(ends(host)) == 1
    assert len(tool.ran) == 6


@pytest.mark.parametrize("off", ["window", "auto"])
async def test_it_never_happens_by_itself_without_a_window_or_where_it_is_switched_off(off: str) -> None:
    host = full_host(text("done"))
    if off == "window":
        host.model = Model("fake", "one")
    else:
        host.compaction = CompactionSettings(auto=False)
    await host.run()
    assert compactions(host.events) == []


async def test_the_share_of_the_window_can_be_chosen() -> None:
    host = full_host(text(SUMMARY), text("done"), count=30_000)
    host.compaction = CompactionSettings(at=0.3)
    await host.run()
    assert len(ends(host)) == 1


async def test_without_a_count_of_the_server_the_history_is_estimated() -> None:
    host = MemoryHost(text(SUMMARY), text("done"))
    host.model = Model("fake", "one", context_window=10_000)
    host.messages = [*history(), user("y" * 40_000, message_id="big"), answer("fine", message_id="a")]
    await host.run()
    assert [end.outcome for end in ends(host)] == ["compacted"]
    assert ends(host)[0].tokens_before > 10_000


async def test_a_smaller_model_in_the_middle_of_a_run_sums_up_before_its_first_turn() -> None:
    async def switch(arguments: Any, context: Any) -> ToolResult:
        host.model = Model("fake", "small", context_window=50_000)
        return ToolResult.text("switched")

    tool = FakeTool(run=switch)
    big = [*calls(("c", "echo", "{}"))[:-1], StreamEnd("tool_use", sized(60_000))]
    host = full_host(big, text(SUMMARY), text("done"), count=50_000, tools=[tool])
    end = await host.run()
    assert end.turns == 2
    assert [request.model.name for request in host.provider.requests] == ["one", "small", "small"]
    assert "switched" in said(host.provider.requests[-1]), "the last turn is kept whole"
    assert "found 0" not in said(host.provider.requests[-1])


# --- the cheaper stage ----------------------------------------------------------------------------


async def test_output_of_old_turns_is_left_out_first_and_no_summary_asked_for_where_that_is_enough() -> None:
    host = full_host(text("done"), text("again"))
    host.messages = [
        *history(30, size=12_000)[:-1],
        answer("all seen", message_id="hlast").model_copy(update={"usage": sized(90_000)}),
    ]
    await host.run()
    (end,) = ends(host)
    assert end.outcome == "compacted"
    assert end.tokens_after is not None
    assert end.tokens_after < WINDOW * 0.85 * 0.6
    request = host.provider.requests[0]
    assert "Output of read, 12,008 characters: left out" in said(request)
    assert "x" * 12_000 in said(request), "that of recent turns is there"
    assert len(request.messages) == len(host.messages) - 1, "every message is still there"
    await host.run()
    assert host.provider.requests[1].messages[: len(request.messages)] == request.messages


async def test_a_summary_follows_where_leaving_out_output_is_not_enough() -> None:
    host = full_host(text(SUMMARY), text("done"))
    host.messages = [
        user("y" * 200_000, message_id="big"),
        *history(10, size=12_000)[:-1],
        answer("all seen", message_id="hlast").model_copy(update={"usage": sized(90_000)}),
    ]
    await host.run()
    (end,) = ends(host)
    assert end.outcome == "compacted"
    assert end.kept is not None
    assert end.kept.memory is not None
    assert end.kept.memory.text is not None


async def test_what_the_server_counted_is_believed_before_what_is_estimated_to_be_left() -> None:
    """By the estimate hardly anything is in there; by the count hardly anything is gone."""
    host = full_host(text(SUMMARY), text("done"))
    host.messages = [*history(12, size=2000)[:-1], host.messages[-1]]
    await host.run()
    (end,) = ends(host)
    assert end.kept is not None
    assert end.kept.memory is not None
    assert end.kept.memory.text is not None


# --- when the server says so ----------------------------------------------------------------------


async def test_an_overflow_is_summed_up_and_asked_again_in_the_same_turn() -> None:
    host = full_host([OVERFLOW], text(SUMMARY), text("done"), count=10)
    end = await host.run()
    assert (end.stop_reason, end.turns) == ("stop", 1)
    assert words(host.events)[4:] == [
        "compaction_start", "compaction_end", "start(assistant)", "end(assistant)", "turn_end",
        "agent_end(stop)",
    ]  # fmt: skip
    start = compactions(host.events)[0]
    assert start.reason == "overflow"  # type: ignore[union-attr]


async def test_an_overflow_is_met_also_where_the_window_is_not_known() -> None:
    host = full_host([OVERFLOW], text(SUMMARY), text("done"))
    host.model = Model("fake", "one")
    assert (await host.run()).stop_reason == "stop"


@pytest.mark.parametrize("window", [None, 1_000_000])
async def test_after_an_overflow_the_request_for_a_summary_is_much_shorter(window: int | None) -> None:
    """The window is smaller than was known, whatever was counted."""
    host = full_host([OVERFLOW], text(SUMMARY), text("done"))
    host.model = Model("fake", "one", context_window=window)
    host.messages = [user("y" * 400_000, message_id="big"), *history()[:-1], answer("so", message_id="last")]
    await host.run()
    first, asked, _ = host.provider.requests
    assert of_messages(asked.messages) < of_messages(first.messages) * 0.6


async def test_a_short_history_goes_whole_into_the_request_for_a_summary() -> None:
    host = full_host([OVERFLOW], text(SUMMARY), text("done"), count=10)
    host.model = Model("fake", "one")
    await host.run()
    assert "found 0 " + "x" * 40 in said(host.provider.requests[1])


async def test_what_was_said_before_an_overflow_is_taken_back() -> None:
    host = full_host([TextDelta(0, "I beg"), OVERFLOW], text(SUMMARY), text("done"), count=10)
    end = await host.run()
    assert end.stop_reason == "stop"
    assert words(host.events)[4:] == [
        "start(assistant)", "compaction_start", "compaction_end", "message_reset", "end(assistant)",
        "turn_end", "agent_end(stop)",
    ]  # fmt: skip
    assert host.messages[-1].content[0].text == "done"  # type: ignore[union-attr]


async def test_a_second_overflow_is_the_error() -> None:
    host = full_host([OVERFLOW], text(SUMMARY), [OVERFLOW], count=10)
    end = await host.run()
    assert end.error is not None
    assert end.error.kind == "context_overflow"
    assert host.provider.left == []
    assert len(ends(host)) == 1


async def test_where_the_summary_overflows_too_nothing_more_is_tried_and_all_is_as_it_was() -> None:
    host = full_host([OVERFLOW], [OVERFLOW], count=10)
    before = project(host.messages)[:-1]  # the last of it asks the model to go on
    end = await host.run()
    assert end.error is not None
    assert end.error.kind == "context_overflow"
    assert "Making the conversation shorter failed" in end.error.message
    (failed,) = ends(host)
    assert (failed.outcome, failed.error is not None) == ("failed", True)
    assert host.memories == []
    assert project(host.messages)[: len(before)] == before


@pytest.mark.parametrize("why", ["nothing left", "auto = false"])
async def test_the_error_says_why_nothing_could_be_done(why: str) -> None:
    host = full_host([OVERFLOW], count=10)
    if why == "auto = false":
        host.compaction = CompactionSettings(auto=False)
    else:
        host.messages = []
    end = await host.run()
    assert end.error is not None
    assert (end.error.kind, why in end.error.message) == ("context_overflow", True)
    assert compactions(host.events) == []


# --- when no summary is given ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ([ProviderError("auth", "no key")], "auth"),
        ([StreamEnd("stop")], "protocol"),
        ([TextDelta(0, " \n"), StreamEnd("stop")], "protocol"),
        ([TextDelta(0, "I will not"), StreamEnd("refusal")], "refusal"),
        ([*[TextDelta(0, "word " * 1000)] * 60, StreamEnd("stop")], "protocol"),
        ([ValueError("a fault of ours")], "internal"),
    ],
)
async def test_a_run_goes_on_as_it_was_where_no_summary_is_given(response: list[Play], kind: str) -> None:
    tool = FakeTool()
    turn = calls(("c", "echo", "{}"))
    host = full_host(response, turn, text("done"), tools=[tool])
    end = await host.run()
    assert (end.stop_reason, end.turns) == ("stop", 2)
    (failed,) = ends(host)
    assert failed.error is not None
    assert (failed.outcome, failed.error.kind) == ("failed", kind)
    assert "found 0" in said(host.provider.requests[-1])


@pytest.mark.parametrize(("window", "words"), [(WINDOW, 40_000), (2000, 3800), (None, 3800)])
async def test_a_summary_may_be_long_as_long_as_it_makes_the_history_shorter(
    window: int | None, words: int
) -> None:
    """In a window of nonsense, or one that is not known, as much as in a small one."""
    summary = [TextDelta(0, "word " * 10)] * (words // 10)
    first: list[list[Play]] = [[OVERFLOW]] if window is None else []
    host = full_host(*first, [*summary, StreamEnd("stop")], text("done"))
    host.model = Model("fake", "one", context_window=window)
    if window is None:
        host.messages[-1] = host.messages[-1].model_copy(update={"usage": None})
    await host.run()
    assert [end.outcome for end in ends(host)] == ["compacted"]


async def test_a_summary_without_end_is_not_read_to_its_end() -> None:
    read = 0

    async def count() -> None:
        nonlocal read
        read += 1

    endless: list[Play] = [count, TextDelta(0, "word " * 1000)] * 1000
    host = full_host(endless, text("done"))
    assert (await host.run()).stop_reason == "stop"
    assert [end.outcome for end in ends(host)] == ["failed"]
    assert read < 60


async def test_the_next_run_tries_again() -> None:
    host = full_host([ProviderError("auth", "no key")], text("done"), text(SUMMARY), text("done"))
    await host.run()
    await host.run()
    assert [end.outcome for end in ends(host)] == ["failed", "compacted"]


async def test_a_summary_that_fails_in_passing_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    host = full_host(
        [TextDelta(0, "half"), ProviderError("overloaded", "busy", retryable=True, retry_after_ms=0)],
        text(SUMMARY),
        text("done"),
    )
    assert (await host.run()).stop_reason == "stop"
    assert [event.reason for event in host.events if isinstance(event, Retry)] == ["busy"]
    assert "half" not in said(host.provider.requests[-1])


async def test_a_summary_that_the_output_limit_cut_counts_and_says_so() -> None:
    host = full_host([TextDelta(0, "## Goal\nTo ru"), StreamEnd("length")], text("done"))
    await host.run()
    assert "To ru\n(The note was cut off here.)" in said(host.provider.requests[-1])


# --- what it takes, and what stays ----------------------------------------------------------------


async def test_what_the_summary_took_counts_in_the_run_and_its_context_does_not() -> None:
    used = Usage(input=1000, output=100, total=1100)
    host = full_host(
        [TextDelta(0, SUMMARY), StreamEnd("stop", used)],
        [TextDelta(0, "done"), StreamEnd("stop", Usage(input=10, output=1, total=11))],
    )
    host.model = Model("fake", "one", context_window=WINDOW, prices=Prices(Rates(input=1000, output=1000)))
    end = await host.run()
    assert end.usage is not None
    assert end.usage.cost is not None
    assert (end.usage.input, end.usage.output, end.usage.total) == (1010, 101, 1111)
    assert end.usage.cost.total == pytest.approx(1.111)
    assert end.usage.context_tokens == 11


async def test_what_a_failed_summary_took_counts_too() -> None:
    used = Usage(input=1000, total=1000)
    host = full_host([ProviderError("server", "broke", usage=used)], text("done"))
    end = await host.run()
    assert end.usage is not None
    assert (end.usage.input, end.usage.context_tokens) == (1000, 0)


async def test_the_files_that_were_read_and_changed_stay_by_name() -> None:
    host = full_host(text(SUMMARY), text("done"))

    def read(uri: str) -> ReadDetails:
        return ReadDetails(uri=uri, start_line=1, end_line=2, total_lines=2)

    def edit(uri: str, action: Any) -> EditDetails:
        change = FileChange(uri=uri, action=action, patch="", additions=1, deletions=0)
        return EditDetails(files=(change,))

    details = [
        read("file:///a"),
        read("file:///b"),
        edit("file:///b", "changed"),
        edit("file:///new", "created"),
        edit("file:///new", "changed"),
        edit("file:///gone", "deleted"),
    ]
    for n, each in enumerate(details):
        host.messages[2 + 2 * n] = host.messages[2 + 2 * n].model_copy(update={"details": each})
    await host.run()
    shown = said(host.provider.requests[-1])
    assert "Files changed:\n- file:///b (changed)\n- file:///new (created)\n- file:///gone (deleted)" in shown
    assert "Files read:\n- file:///a\n" in shown


async def test_the_to_do_list_stays_as_it_is() -> None:
    class WithList(MemoryHost):
        @property
        def todo(self) -> tuple[TodoItem, ...]:
            return (TodoItem(id="1", text="test it", status="in_progress"),)

    host = WithList(text(SUMMARY), text("done"))
    host.model = Model("fake", "one", context_window=WINDOW)
    host.messages = full_host().messages
    await host.run()
    assert "To-do list:\n- [in_progress] test it" in said(host.provider.requests[-1])


# --- a cancel at every wait -----------------------------------------------------------------------


def with_retry() -> MemoryHost:
    busy = ProviderError("overloaded", "busy", retryable=True, retry_after_ms=0)
    return full_host([TextDelta(0, "ha"), busy], text(SUMMARY), text("done"), text("next"))


def after_overflow() -> MemoryHost:
    return full_host([TextDelta(0, "I beg"), OVERFLOW], text(SUMMARY), text("done"), text("next"), count=10)


@pytest.mark.parametrize("make", [with_retry, after_overflow])
async def test_a_cancel_at_any_wait_closes_all_and_leaves_half_a_summary_nowhere(make: Any) -> None:
    outcomes = set()
    for number in itertools.count(1):
        host: MemoryHost = make()
        before = len(host.messages)
        loop = host.loop()
        host.at_wait = lambda at, number=number, loop=loop: loop.cancel() if at == number else None
        end = await host.play(loop)
        host.at_wait = lambda at: None
        assert_whole_run(host.events)
        assert faults(project(host.messages, host.memory)) == []
        told = [each.outcome for each in ends(host)]
        outcomes.update(told)
        assert (host.memory is not None) == (told == ["compacted"])
        assert len(host.messages) == before + 2
        assert isinstance(host.messages[-1], AssistantMessage)
        if host.waits < number:
            assert end.stop_reason == "stop"
            break
        due = make is with_retry and told != ["compacted"]
        host.provider.left = [text(SUMMARY), text("next")] if due else [text("next")]
        assert isinstance(await host.run("and on"), AgentEnd)
        assert host.messages[-1].content[0].text == "next"  # type: ignore[union-attr]
    assert outcomes == {"aborted", "compacted"}
