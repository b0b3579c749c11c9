"""A run as the user sees it: the answer on one stream, what the agent does on the other.

On a terminal the answer appears as it is written and a live line says what goes on. Elsewhere the answer is
written once, when it is known to be the answer, and the activity is plain lines. Whatever a model or a tool
says is made visible first: it never steers the terminal.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from agentd.cli.terminal import Output, cut, one_line
from agentd.protocol.events import (
    CompactionEnd,
    CompactionStart,
    Event,
    MessageEnd,
    MessageReset,
    MessageUpdate,
    Notice,
    Retry,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnStart,
)
from agentd.protocol.messages import (
    AssistantMessage,
    CommandDetails,
    EditDetails,
    SearchDetails,
    ToolResultMessage,
    Usage,
)
from agentd.protocol.methods import PromptResult
from agentd.protocol.text import visible

TICK_SECONDS = 0.25
TITLE_COLUMNS = 200
"""A title that is longer, such as a whole script, is cut; questions show everything."""
_GREEN, _RED, _DIM, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[m"
_CLEAR_LINE = "\r\x1b[K"


class RunView:
    """Shows events in order. `answer` and `activity` may be the same terminal."""

    def __init__(self, answer: Output, activity: Output) -> None:
        self.answer = answer
        self._activity = activity
        self._turn = anyio.Lock()  # the clock and the events write to the same line
        self._doing: str | None = None
        self._since = 0.0
        self._title: dict[str, str] = {}
        self._live_line = False
        self._midline = False  # the answer's last line has no end yet
        self._told: str | None = None  # the message whose text was shown as it came
        fancy = activity.can_show("→✓✗")
        self._arrow, self._good, self._bad = ("→", "✓", "✗") if fancy else (">", "ok", "failed:")

    async def show(self, event: Event) -> None:
        """Show what happened."""
        async with self._turn:
            match event:
                case TurnStart():
                    self._begin("thinking")
                case MessageUpdate() if event.update.kind == "text" and self.answer.is_terminal:
                    await self._text(event.message_id, event.update.delta)
                case MessageEnd(message=AssistantMessage() as message):
                    await self._message(message)
                case MessageReset() if event.message_id == self._told:
                    self._told = None
                    await self._line("(the connection broke: the answer starts over)")
                case ToolExecutionStart():
                    await self._tool_started(event)
                case ToolExecutionUpdate() if event.update.channel == "progress":
                    for line in event.update.delta.splitlines():
                        await self._line(self._dim(cut(f"  {one_line(line)}", TITLE_COLUMNS)))
                case ToolExecutionEnd():
                    await self._tool_ended(event)
                case Retry():
                    seconds = f"{event.delay_ms / 1000:.1f} s"
                    await self._line(f"{one_line(event.reason)} Trying again in {seconds}.")
                case CompactionStart():
                    self._begin("summarising the conversation")
                case CompactionEnd():
                    self._begin("thinking")
                    if (told := _shortened(event)) is not None:
                        await self._line(told)
                case Notice():
                    await self._line(f"{event.severity}: {one_line(event.message)}")
                case _:
                    pass

    @asynccontextmanager
    async def clock(self) -> AsyncIterator[None]:
        """On a terminal, say during the block what goes on and for how long."""
        leaving: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_time)
            try:
                yield
            except Exception as error:  # kept out of the task group, which would wrap it in a group
                leaving = error
            tasks.cancel_scope.cancel()
        if leaving is not None:
            raise leaving

    async def _keep_time(self) -> None:
        with suppress(BrokenPipeError):  # whoever shows the next event hears of it again
            while self._activity.is_terminal:
                async with self._turn:
                    await self._live()
                await anyio.sleep(TICK_SECONDS)

    async def note(self, text: str) -> None:
        """Something to say beside the run, perhaps with words of others in it."""
        async with self._turn:
            await self._line(visible(text))

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Nothing is written during the block: somebody else has the terminal."""
        async with self._turn:
            await self._clear()
            yield

    async def finish(self, result: PromptResult, *, usage: bool = True) -> None:
        """Show the answer where it was not shown yet, and on a terminal what it took (`usage`)."""
        async with self._turn:
            self._doing = None
            await self._clear()
            if result.text and result.message_id != self._told:
                text = visible(result.text) if self.answer.is_terminal else result.text
                await self.answer.write(text if text.endswith("\n") else text + "\n")
            if usage and self._activity.is_terminal:
                await self._line(self._dim(usage_line(result.turns, result.usage)))

    async def _live(self) -> None:
        if self._doing is not None and not self._midline:
            shown = cut(f"{self._arrow} {self._doing}", self._activity.columns - 12)
            seconds = time.monotonic() - self._since
            self._live_line = True
            await self._activity.write(f"{_CLEAR_LINE}{self._dim(f'{shown} ({seconds:.0f} s)')}")

    # --- one event each ---------------------------------------------------------------------------

    async def _text(self, message_id: str, delta: str) -> None:
        await self._clear() if self._told != message_id else None
        self._doing, self._told = None, message_id
        await self.answer.write(visible(delta))
        self._midline = not delta.endswith("\n") if delta else self._midline

    async def _message(self, message: AssistantMessage) -> None:
        """Text beside tool calls is no answer: it is shown as activity where it was not shown as it came."""
        if message.calls and message.text.strip() and message.message_id != self._told:
            await self._line(visible(message.text.strip()))

    async def _tool_started(self, event: ToolExecutionStart) -> None:
        title = cut(one_line(event.title), TITLE_COLUMNS) or one_line(event.tool_name)
        self._title[event.tool_call_id] = title
        self._begin(title)
        if self._activity.is_terminal:
            await self._clear()
            await self._live()
        else:
            await self._line(f"{self._arrow} {title}")

    async def _tool_ended(self, event: ToolExecutionEnd) -> None:
        title = self._title.pop(event.tool_call_id, one_line(event.tool_name))
        failed = event.result.is_error
        mark = self._coloured(self._bad if failed else self._good, _RED if failed else _GREEN)
        facts = [*_facts(event.result), f"{event.duration_ms / 1000:.2f} s"]
        self._begin("thinking")
        await self._line(f"{mark} {title} ({', '.join(facts)})")

    # --- the two streams --------------------------------------------------------------------------

    def _begin(self, doing: str) -> None:
        self._doing, self._since = doing, time.monotonic()

    async def _line(self, text: str) -> None:
        await self._clear()
        await self._activity.write(text + "\n")

    async def _clear(self) -> None:
        """Make room for a whole line: take the live line away, end the answer's open line."""
        if self._live_line:
            self._live_line = False
            await self._activity.write(_CLEAR_LINE)
        if self._midline:
            self._midline = False
            await self.answer.write("\n")

    def _dim(self, text: str) -> str:
        return self._coloured(text, _DIM)

    def _coloured(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._activity.has_colour else text


def _facts(result: ToolResultMessage) -> list[str]:
    """What is worth saying about a result in a word or two."""
    match result.details:
        case CommandDetails(exit_code=code, signal=signal) if code is None or code != 0:
            return [f"ended by {signal}" if code is None else f"exit code {code}"]
        case EditDetails(files=files):
            return [f"+{sum(file.additions for file in files)} -{sum(file.deletions for file in files)}"]
        case SearchDetails(matches=matches):
            return ["1 match" if matches == 1 else f"{matches} matches"]
        case None if result.is_error:
            text = "".join(block.text for block in result.content if block.type == "text")
            return [cut(one_line(text.strip().partition("\n")[0]), 100)]
        case _:
            return []


def _shortened(event: CompactionEnd) -> str | None:
    """What became of making the conversation shorter, where that is worth a line."""
    if event.error is not None:
        return f"The conversation could not be made shorter: {one_line(event.error.message)}"
    if event.tokens_after is None:
        return None
    return f"(the conversation was made shorter: {event.tokens_before:,} to {event.tokens_after:,} tokens)"


def usage_line(turns: int, usage: Usage | None) -> str:
    """What a run took, in words: turns, tokens and money as far as they are known."""
    words = ["1 turn" if turns == 1 else f"{turns} turns"]
    if usage is not None:
        cached = f" ({usage.cache_read:,} from the cache)" if usage.cache_read else ""
        words.append(f"{usage.input + usage.cache_read + usage.cache_write:,} tokens in{cached}")
        words.append(f"{usage.output:,} out")
        if usage.cost is not None:
            words.append(f"${usage.cost.total:.4f}")
    return ", ".join(words)
