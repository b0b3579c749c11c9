"""One tool call: find, validate, prepare, permit, execute, normalise. Nothing a tool does breaks the loop.

A tool runs in a task of its own, beside the run and not inside it. So a tool that does not heed its
cancellation cannot hold the run: it is given some patience, then left behind, and what it says later is
logged and dropped.
"""

import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import anyio
from anyio import CancelScope, get_cancelled_exc_class

from agentd.agent.host import Host, NotJournaled
from agentd.agent.validation import validated
from agentd.protocol.events import ToolDelta, ToolExecutionStart, ToolExecutionUpdate
from agentd.protocol.messages import AnyDetails, ImageContent, TextContent, ToolCall, ToolResultMessage
from agentd.protocol.text import clean_text, utf16_length, without_unseen
from agentd.tools.base import Action, Channel, Description, Tool, ToolContext, ToolResult

log = logging.getLogger(__name__)

ABANDON_SECONDS = 3.0
ENDING_SECONDS = 0.5
"""The same when the daemon itself is ending, and has two seconds for everything."""
LIVE_BYTES_PER_SECOND = 64 * 1024

_MAX_NAME = 64

ABORTED = "Tool execution aborted."
OUTPUT_LIMIT = (
    'Tool "{name}" was not run: the response was cut off by the output limit, so the call is not whole. '
    "Make the call smaller, for example by writing the file in several steps."
)


def failed(name: str, error: BaseException) -> str:
    """What the model is told of a tool that raised."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    try:
        message = str(error)
    except Exception:  # an error that cannot even say what it is
        message = ""
    return f'Tool "{shown(name)}" failed: {message or type(error).__name__}'


def shown(name: str) -> str:
    """A tool's name as the model wrote it, however much that was."""
    return name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "..."


class LiveUpdates:
    """What a running tool says, passed on to the client as it comes, up to a rate.

    What exceeds the rate is in the result; the gap shows in `offset`.
    """

    def __init__(self, host: Host, call_id: str) -> None:
        self._host = host
        self._call_id = call_id
        self._offsets: dict[Channel, int] = {}
        self._second = -1
        self._sent = 0
        self.closed = False

    async def __call__(self, channel: Channel, text: str, left_out: int = 0) -> None:
        """See `tools.base.LiveOutput`. Silent once the call has ended."""
        text = clean_text(text)
        offset = self._offsets.get(channel, 0)
        self._offsets[channel] = offset + utf16_length(text) + left_out
        text = self._within_rate(text)
        if self.closed or not text:
            return
        await self._host.room()
        if self.closed:
            return
        delta = ToolDelta(channel=channel, offset=offset, delta=text)
        await self._host.emit(ToolExecutionUpdate(tool_call_id=self._call_id, update=delta))

    def _within_rate(self, text: str) -> str:
        """The beginning of the text that may still be sent in this second."""
        second = math.floor(self._host.sources.monotonic())
        if second != self._second:
            self._second, self._sent = second, 0
        data = text.encode()
        room = max(LIVE_BYTES_PER_SECOND - self._sent, 0)
        self._sent += min(len(data), room)
        return text if len(data) <= room else data[:room].decode(errors="ignore")


@dataclass
class RunningCall:
    """A tool call from its start event to its result.

    `started` is monotonic, in seconds; `patience` is how many seconds a cancelled tool is given to return;
    `quiescent` is false once it had to be left behind. `made` is what the tool has done already, whatever
    becomes of the call: a cancel takes no change back.
    """

    call: ToolCall
    started: float
    output: LiveUpdates
    patience: float = field(default_factory=lambda: ABANDON_SECONDS)
    result: ToolResult | None = None
    made: ToolResult | None = None
    quiescent: bool = True

    def take_made(self, made: ToolResult) -> None:
        """See `ToolContext.made`."""
        self.made = made

    def cut(self) -> ToolResult:
        """Its result where it was cancelled."""
        return self.result or self.made or ToolResult.error(ABORTED)

    def with_made(self, result: ToolResult) -> ToolResult:
        """What it came to in the end: a failure behind a change does not hide the change."""
        if self.made is None or not result.is_error:
            return result
        return replace(self.made, content=(*self.made.content, *result.content))


def describe(call: ToolCall, tool: Tool | None, context: ToolContext) -> ToolExecutionStart:
    """The start event of a call, also of one to an unknown tool or with arguments that are none."""
    description = Description(title=call.name or "(no name)")
    if tool is not None:
        try:
            description = tool.describe(call.arguments, context)
        except Exception:
            log.exception("the description of a call to %s", call.name)
    return ToolExecutionStart(
        tool_call_id=call.id,
        tool_name=call.name,
        arguments=call.arguments,
        title=clean_text(description.title)[:200],
        kind=tool.kind if tool is not None else "other",
        locations=description.locations,
    )


async def execute(
    running: RunningCall, tool: Tool | None, context: ToolContext, title: str, host: Host
) -> ToolResult:
    """Do the call and give its result; only cancellation and `NotJournaled` are raised."""
    call = running.call
    if tool is None:
        return ToolResult.error(f'Unknown tool "{shown(call.name)}".')
    try:
        arguments = validated(call, tool.parameters)
        prepared = await _beside(lambda: tool.prepare(arguments, context), running, host)
        if not isinstance(prepared, Action):
            return _no_result(call.name) if not isinstance(prepared, ToolResult) else prepared
        verdict = await host.permit(call, tool, prepared, title)
        if not verdict.allowed:
            return ToolResult.error(verdict.reason)
        result = await _beside(prepared.in_manner(verdict.manner), running, host)
        return result if isinstance(result, ToolResult) else _no_result(call.name)
    except NotJournaled:
        raise
    except Exception as error:
        return ToolResult.error(failed(call.name, error))


def _no_result(name: str) -> ToolResult:
    return ToolResult.error(f'Tool "{shown(name)}" failed: it returned no result')


async def _beside(
    step: Callable[[], Awaitable[Action | ToolResult]], running: RunningCall, host: Host
) -> Action | ToolResult | None:
    """Run a step of a tool in a task of its own and wait for it, but not for ever once cancelled."""
    done = anyio.Event()
    scope = CancelScope()
    outcome: list[Action | ToolResult] = []

    async def task() -> None:
        try:
            with scope:
                outcome.append(await _contained(step, running.call.name, scope))
        finally:
            if running.output.closed:
                log.warning("%s returned after its call was given up", running.call.name)
            done.set()

    host.start_soon(task)
    try:
        await done.wait()
        # A result that comes with the cancellation is too late: whoever cancelled must not see it used.
        await anyio.lowlevel.checkpoint_if_cancelled()
    except get_cancelled_exc_class():
        scope.cancel()
        with CancelScope(shield=True), anyio.move_on_after(running.patience):
            await done.wait()
        running.quiescent = done.is_set()
        raise
    return (
        outcome[0]
        if outcome
        else ToolResult.error(f'Tool "{shown(running.call.name)}" failed: it was stopped')
    )


async def _contained(
    step: Callable[[], Awaitable[Action | ToolResult]], name: str, scope: CancelScope
) -> Action | ToolResult:
    """A tool may raise anything at all; only our own cancellation passes."""
    try:
        return await step()
    except get_cancelled_exc_class() as error:
        if scope.cancel_called or anyio.current_effective_deadline() == -math.inf:
            raise
        return ToolResult.error(failed(name, error))
    except BaseException as error:
        if not isinstance(error, Exception):
            log.exception("%s raised %s", name, type(error).__name__)
        return ToolResult.error(failed(name, error))


def normalise(result: ToolResult, call: ToolCall, message_id: str, timestamp: str) -> ToolResultMessage:
    """The result message of whatever a tool gave: junk, lone surrogates and hidden words included."""
    try:
        content = tuple(
            TextContent(text=without_unseen(clean_text(block.text)))
            if isinstance(block, TextContent)
            else block
            for block in result.content
            if isinstance(block, TextContent | ImageContent)
        )
        details = result.details if isinstance(result.details, AnyDetails) else None
    except Exception:
        log.exception("the result of %s is none", call.name)
        return normalise(_no_result(call.name), call, message_id, timestamp)
    return ToolResultMessage(
        message_id=message_id,
        tool_call_id=call.id,
        tool_name=call.name,
        content=content,
        is_error=bool(result.is_error),
        details=details,
        timestamp=timestamp,
    )
