"""Nothing that a tool does breaks the loop: its call has one result, and the model is told."""

import asyncio
import json
import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest
from agent.event_order import words
from agent.loop_host import FakeTool, MemoryHost, calls, text
from agent.strict_history import faults

from agentd.agent.host import Verdict
from agentd.agent.request import NO_OUTPUT
from agentd.agent.tool_calls import LIVE_BYTES_PER_SECOND
from agentd.protocol.events import ToolExecutionStart, ToolExecutionUpdate
from agentd.protocol.messages import ImageContent, ReadDetails, TextContent
from agentd.tools.base import ToolError, ToolResult


class Mute(Exception):
    """An error that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


async def told(run: Any = None, before: Any = None) -> tuple[str, bool]:
    """What the model is told of a tool that does this. The run goes on and its next request is valid."""
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=run, before=before)])
    end = await host.run()
    assert end.stop_reason == "stop"
    assert faults(host.provider.requests[1].messages) == []
    ((call_id, said, is_error),) = host.results
    assert call_id == "a"
    return said, is_error


def raising(error: BaseException) -> Any:
    async def run(*_: Any) -> Any:
        raise error

    return run


def giving(result: Any) -> Any:
    async def run(*_: Any) -> Any:
        return result

    return run


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("disk offline"), 'Tool "echo" failed: disk offline'),
        (ToolError("no such file"), 'Tool "echo" failed: no such file'),
        (ValueError(), 'Tool "echo" failed: ValueError'),
        (ExceptionGroup("g", [ExceptionGroup("h", [OSError("deep")])]), 'Tool "echo" failed: deep'),
        (KeyboardInterrupt(), 'Tool "echo" failed: KeyboardInterrupt'),
        (SystemExit(3), 'Tool "echo" failed: 3'),
        (GeneratorExit(), 'Tool "echo" failed: GeneratorExit'),
        (asyncio.CancelledError(), 'Tool "echo" failed: CancelledError'),
        (BaseExceptionGroup("g", [KeyboardInterrupt()]), 'Tool "echo" failed: KeyboardInterrupt'),
        (RuntimeError("half a letter \udcff"), 'Tool "echo" failed: half a letter \ufffd'),
        (RecursionError("too deep"), 'Tool "echo" failed: too deep'),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_tool_that_raises_has_failed_whatever_it_raises(error: BaseException, message: str) -> None:
    assert await told(raising(error)) == (message, True)


async def test_an_error_that_cannot_be_shown_is_told_by_its_name() -> None:
    assert await told(raising(Mute())) == ('Tool "echo" failed: Mute', True)


@pytest.mark.parametrize(
    "error",
    [ToolError("no"), Mute(), KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()],
    ids=lambda error: type(error).__name__,
)
async def test_a_tool_may_raise_while_it_prepares_as_well(error: BaseException) -> None:
    said, is_error = await told(before=raising(error))
    assert said.startswith('Tool "echo" failed: ')
    assert is_error


@pytest.mark.parametrize("junk", [None, "text", 42, {"content": []}, object(), [TextContent(text="x")]])
async def test_what_is_no_result_is_a_failure(junk: Any) -> None:
    assert await told(giving(junk)) == ('Tool "echo" failed: it returned no result', True)


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(None),  # type: ignore[arg-type]  # junk
        ToolResult(5),  # type: ignore[arg-type]  # junk
        ToolResult("text"),  # type: ignore[arg-type]  # junk
        ToolResult((None, 5, "x")),  # type: ignore[arg-type]  # junk
        ToolResult((TextContent.model_construct(text=None),)),  # type: ignore[arg-type]  # junk
        ToolResult((TextContent(text="x"),), is_error="yes"),  # type: ignore[arg-type]  # junk
        ToolResult((TextContent(text="x"),), details={"type": "read"}),  # type: ignore[arg-type]  # junk
    ],
    ids=range(7),
)
async def test_a_result_with_junk_inside_is_still_one_result(result: ToolResult) -> None:
    await told(giving(result))


async def test_text_is_made_valid_and_images_and_details_are_kept() -> None:
    details = ReadDetails(uri="file:///a", start_line=1, end_line=1, total_lines=1)
    image = ImageContent(mime_type="image/png", data="aGk=")
    given = ToolResult((TextContent(text="a\udcffb"), image), details=details)
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=giving(given))])
    await host.run()
    result = host.messages[2]
    assert result.content == (TextContent(text="a\ufffdb"), image)
    assert result.details == details  # type: ignore[union-attr]  # it is the result


async def test_a_result_without_content_is_told_as_no_output() -> None:
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=giving(ToolResult(())))])
    await host.run()
    assert host.provider.requests[1].messages[2].content == (TextContent(text=NO_OUTPUT),)


async def test_a_tool_that_describes_itself_badly_still_runs() -> None:
    tool = FakeTool()
    tool.describe = lambda arguments, context: 1 / 0  # type: ignore[method-assign,return-value]  # the fault
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[tool])
    await host.run()
    assert host.results == [("a", "echo ", False)]
    start = next(event for event in host.events if isinstance(event, ToolExecutionStart))
    assert start.title == "echo"


async def test_a_call_without_a_name_is_shown_and_answered() -> None:
    host = MemoryHost(calls(("a", "", "{}")), text("ok"))
    await host.run()
    assert host.results == [("a", 'Unknown tool "".', True)]
    assert faults(host.provider.requests[1].messages) == []


async def test_a_tool_that_blocks_a_thread_holds_up_nothing_else() -> None:
    release = threading.Event()

    async def block(arguments: Any, context: Any) -> ToolResult:
        await anyio.to_thread.run_sync(release.wait, 10)
        return ToolResult.text("ran")

    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=block)])
    host.at_event = lambda event: host.start_soon(free) if words([event]) == ["run(a)"] else None

    async def free() -> None:
        release.set()

    await host.run()
    assert host.results == [("a", "ran", False)]


# --- arguments and permission ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "issue"),
    [
        ('{"value": 42}', "/value"),
        ('{"value":', "/: arguments must be valid JSON"),
        ("null", "/: arguments must be a JSON object"),
        ('"text"', "/: arguments must be a JSON object"),
    ],
)
async def test_wrong_arguments_run_nothing_and_have_all_their_events(arguments: str, issue: str) -> None:
    tool = FakeTool()
    host = MemoryHost(calls(("a", "echo", arguments)), text("ok"), tools=[tool])
    await host.run()
    ((_, said, is_error),) = host.results
    assert issue in said
    assert '"echo"' in said
    assert is_error
    assert tool.ran == []
    assert words(host.events)[6:10] == ["run(a)", "ran(a)", "start(tool_result)", "end(tool_result)"]


async def test_what_the_model_is_told_of_wrong_arguments_is_short_and_repeats_nothing() -> None:
    name = "n" * 64
    tool = FakeTool(name, parameters={"type": "object", "properties": {}, "additionalProperties": False})
    many = ", ".join(f'"unknown_{number}": "MARKER"' for number in range(300))
    host = MemoryHost(calls(("a", name, f"{{{many}}}")), text("ok"), tools=[tool])
    await host.run()
    ((_, said, _),) = host.results
    assert len(said) < 500
    assert "MARKER" not in said


@pytest.mark.parametrize("arguments", ["", " ", "{}"])
async def test_no_arguments_are_enough_where_none_is_required(arguments: str) -> None:
    tool = FakeTool()
    host = MemoryHost(calls(("a", "echo", arguments)), text("ok"), tools=[tool])
    await host.run()
    assert tool.ran == [{}]


async def test_a_call_that_is_not_permitted_is_told_why_and_the_run_goes_on() -> None:
    tool = FakeTool()
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[tool])
    host.verdict = giving(Verdict(False, "The user said no."))
    assert (await host.run()).stop_reason == "stop"
    assert host.results == [("a", "The user said no.", True)]
    assert tool.ran == []


async def test_two_hundred_calls_in_one_message_run_one_after_the_other_and_are_all_answered() -> None:
    tool = FakeTool()
    names = [f"c{number}" for number in range(200)]
    asked = calls(*((name, "echo", json.dumps({"value": name})) for name in names))
    host = MemoryHost(asked, text("ok"), tools=[tool])
    await host.run()
    assert [call_id for call_id, _, _ in host.results] == names
    assert [ran["value"] for ran in tool.ran] == names


async def test_a_call_runs_in_the_manner_in_which_it_is_permitted() -> None:
    async def inside() -> ToolResult:
        return ToolResult.text("from the sandbox")

    tool = FakeTool(sandboxed=inside)
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[tool])
    host.verdict = giving(Verdict(True, manner="sandboxed"))
    await host.run()
    assert host.results == [("a", "from the sandbox", False)]
    assert tool.ran == []


async def test_a_call_that_has_no_such_form_does_not_run_in_another() -> None:
    tool = FakeTool()
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[tool])
    host.verdict = giving(Verdict(True, manner="sandboxed"))
    await host.run()
    assert host.results == [("a", 'Tool "echo" failed: This call cannot run sandboxed.', True)]
    assert tool.ran == []


# --- live output ----------------------------------------------------------------------------------


def updates(host: MemoryHost) -> list[tuple[str, int, str]]:
    return [
        (event.update.channel, event.update.offset, event.update.delta)
        for event in host.events
        if isinstance(event, ToolExecutionUpdate)
    ]


async def test_what_a_running_tool_says_is_passed_on_with_offsets_per_channel() -> None:
    async def talk(arguments: Any, context: Any) -> ToolResult:
        for channel, said in (("stdout", "a😀"), ("stderr", "b"), ("stdout", "c\udcff"), ("stdout", "")):
            await context.output(channel, said)
        return ToolResult.text("ok")

    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=talk)])
    await host.run()
    assert updates(host) == [("stdout", 0, "a😀"), ("stderr", 0, "b"), ("stdout", 3, "c\ufffd")]


async def test_output_after_the_end_of_the_call_is_dropped() -> None:
    kept: list[Any] = []

    async def keep(arguments: Any, context: Any) -> ToolResult:
        await context.output("stdout", "in time")
        kept.append(context)
        return ToolResult.text("ok")

    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=keep)])
    await host.run()
    await kept[0].output("stdout", "late")
    assert updates(host) == [("stdout", 0, "in time")]


async def test_more_than_the_rate_is_not_sent_and_shows_as_a_gap_in_the_offsets() -> None:
    piece = "x" * 1024

    async def flood(arguments: Any, context: Any) -> ToolResult:
        host.sources = host.sources.__class__(
            now=host.sources.now, monotonic=lambda: seconds[0], new_id=host.sources.new_id
        )
        for _ in range(100):
            await context.output("stdout", piece)
        seconds[0] = 8.0
        await context.output("stdout", "later")
        return ToolResult.text("ok")

    seconds = [7.0]
    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=flood)])
    await host.run()
    sent = updates(host)
    assert sum(len(delta) for _, _, delta in sent[:-1]) == LIVE_BYTES_PER_SECOND
    assert sent[-1] == ("stdout", 100 * 1024, "later")


async def test_output_that_waited_for_a_slow_client_until_its_call_was_closed_is_dropped() -> None:
    stalled, waiting = anyio.Event(), anyio.Event()
    room = MemoryHost.room

    async def talk(arguments: Any, context: Any) -> ToolResult:
        host.start_soon(context.output, "stdout", "late")
        await waiting.wait()
        return ToolResult.text("ok")

    async def slow() -> None:
        if words(host.events)[-1:] == ["run(a)"] and not waiting.is_set():
            waiting.set()
            await stalled.wait()
        await room(host)

    host = MemoryHost(calls(("a", "echo", "{}")), text("ok"), tools=[FakeTool(run=talk)])
    host.room = slow  # type: ignore[method-assign]  # the slow client
    await host.play(host.loop(), after=stalled.set)
    assert host.results == [("a", "ok", False)]
    assert updates(host) == []
