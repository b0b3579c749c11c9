"""JSON-RPC 2.0 over framed byte streams, from the client's side.

Strategy: one task writes, so that a cancelled call never leaves half a frame; one task reads, and hands each
answer to the call that waits for it. What the server asks of us runs in tasks of its own, so that reading
never waits for an answer of ours. What the server tells us is awaited: a slow listener slows the server down.
"""

import json
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, TaskGroup

from agentd.client.pulse import Pulse
from agentd.protocol.errors import RpcError
from agentd.protocol.frames import BrokenFraming, FrameReader, Oversized, encode

MAX_BODY_BYTES = 256 * 1024 * 1024
"""A larger message from the server is no message: it ends the connection."""

Json = dict[str, Any]

_NOBODY_READS = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
"""How a pipe to a server that is gone fails. The reading side learns of it too and tells the callers."""


class ConnectionLost(Exception):
    """The server can no longer be talked to; the text says why."""


class Call:
    """A request of ours and what became of it.

    `number` is its place among all changes on the connection. `on_answer` is called when the answer arrives,
    before anything that the server sent later is looked at.
    """

    def __init__(self, request_id: int, number: int, on_answer: Callable[[], None] | None) -> None:
        self.request_id = request_id
        self.number = number
        self.done = anyio.Event()
        self._on_answer = on_answer
        self._result: Any = None
        self._error: Exception | None = None

    def settle(self, result: Any, error: Exception | None) -> None:
        """The answer is here."""
        self._result, self._error = result, error
        self.done.set()
        if self._on_answer is not None:
            self._on_answer()

    def result(self) -> Any:
        """The answer, once `done`. Raises `RpcError` or `ConnectionLost` where it is none."""
        if self._error is not None:
            raise self._error
        return self._result


class Connection:
    """A JSON-RPC peer.

    `on_notification(method, params)` is awaited in order before more is read. `on_request(method, params)`
    gives the result for the server or raises `RpcError`; it is cancelled when the server takes the request
    back. `pulse` beats at every call and whenever something was taken from an event stream.
    """

    def __init__(
        self,
        incoming: ByteReceiveStream,
        outgoing: ByteSendStream,
        *,
        on_notification: Callable[[str, Json], Awaitable[None]],
        on_request: Callable[[str, Json], Awaitable[Any]],
        pulse: Pulse,
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._on_notification = on_notification
        self._on_request = on_request
        self._pulse = pulse
        self._calls: dict[int, Call] = {}
        self._serving: dict[str | int, anyio.CancelScope] = {}
        self._last_id = 0
        self._frames, self._frames_to_write = anyio.create_memory_object_stream[bytes](math.inf)
        self._lost: Exception | None = None

    # --- out --------------------------------------------------------------------------------------

    async def request(self, method: str, params: Json | None = None, *, settle_seconds: float = 0) -> Any:
        """Send a request and wait for its result.

        When the wait is cancelled the request is taken back, and its answer is waited for up to
        `settle_seconds` more. Raises `RpcError`, or `ConnectionLost` when no answer can come any more.
        """
        call = self.begin(method, params)
        try:
            await call.done.wait()
            return call.result()
        except anyio.get_cancelled_exc_class():
            await self.withdraw(call, settle_seconds)
            raise
        finally:
            self.forget(call)

    def begin(
        self, method: str, params: Json | None = None, on_answer: Callable[[], None] | None = None
    ) -> Call:
        """Send a request without waiting. Whoever begins a call has to `forget` it."""
        self._last_id += 1
        call = Call(self._last_id, self._pulse.beat(), on_answer)
        if self._lost is not None:
            call.settle(None, self._lost)
            return call
        self._send({"id": call.request_id, "method": method, **_params(params)})
        self._calls[call.request_id] = call
        return call

    async def withdraw(self, call: Call, settle_seconds: float = 0) -> None:
        """Take a request back and wait for its answer at most `settle_seconds`, whatever is cancelled."""
        if call.done.is_set():
            return
        self.notify("$/cancelRequest", {"id": call.request_id})
        call.number = self._pulse.beat()  # as urgent as a new request
        with anyio.move_on_after(settle_seconds, shield=True):
            await call.done.wait()

    def forget(self, call: Call) -> None:
        """The call is over: an answer that still comes is ignored."""
        self._calls.pop(call.request_id, None)

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification; on a lost connection there is nobody to hear it."""
        if self._lost is None:
            self._send({"method": method, **_params(params)})

    def waits_for_answer_since(self, number: int) -> bool:
        """Whether a call begun after change `number` still has no answer."""
        return any(call.number > number for call in self._calls.values())

    def finish_sending(self) -> None:
        """Nothing more will be sent: the server's stdin is closed behind the last frame."""
        self._frames.close()

    def fail(self, error: Exception) -> None:
        """The connection is lost: every call that waits, and every later one, raises `error`."""
        if self._lost is None:
            self._lost = error
            for call in list(self._calls.values()):
                call.settle(None, error)
            self._calls.clear()
            for scope in self._serving.values():
                scope.cancel()
            self._pulse.beat()

    def _send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
        frame = encode(body.encode())
        with suppress(*_NOBODY_READS):
            self._frames.send_nowait(frame)

    async def write(self) -> None:
        """The writing task: ends with `finish_sending` or when the server no longer reads."""
        async with self._outgoing, self._frames_to_write:
            with suppress(*_NOBODY_READS):
                async for frame in self._frames_to_write:
                    await self._outgoing.send(frame)

    # --- in ---------------------------------------------------------------------------------------

    async def read(self, tasks: TaskGroup) -> None:
        """The reading task: ends at the end of the server's output. Raises `ConnectionLost` on nonsense."""
        frames = FrameReader(MAX_BODY_BYTES)
        while True:
            try:
                data = await self._incoming.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            try:
                for body in frames.feed(data):
                    await self._receive(_message(body), tasks)
            except BrokenFraming as broken:
                raise ConnectionLost(f"The server's output is no sequence of messages: {broken}.") from broken

    async def _receive(self, message: Json, tasks: TaskGroup) -> None:
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            self._answer_arrived(message)
        elif "id" in message:
            # started at once, so that a withdrawal in the next frame finds it
            scope = self._serving[message["id"]] = anyio.CancelScope()
            tasks.start_soon(self._serve, message["id"], method, params, scope)
        elif method == "$/cancelRequest":
            if (served := self._serving.get(params.get("id", ""))) is not None:
                served.cancel()
        else:
            await self._on_notification(method, params)

    def _answer_arrived(self, message: Json) -> None:
        request_id = message.get("id")
        call = self._calls.pop(request_id, None) if isinstance(request_id, int) else None
        if call is not None:  # otherwise nobody waits any more
            error = message.get("error")
            call.settle(message.get("result"), None if error is None else RpcError.from_wire(error))

    async def _serve(
        self, request_id: str | int, method: str, params: Json, scope: anyio.CancelScope
    ) -> None:
        answer: Json = {"error": RpcError("cancelled", "The request was taken back.").to_wire()}
        try:
            with scope:
                answer = {"result": await self._on_request(method, params)}
        except RpcError as error:
            answer = {"error": error.to_wire()}
        finally:
            self._serving.pop(request_id, None)
            if self._lost is None:
                self._send({"id": request_id, **answer})


def _params(params: Json | None) -> Json:
    """`shutdown` and `exit` have no params at all."""
    return {} if params is None else {"params": params}


def _message(body: bytes | Oversized) -> Json:
    if isinstance(body, Oversized):
        raise ConnectionLost(f"The server sent a message of {body.size} bytes, more than {MAX_BODY_BYTES}.")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ConnectionLost(f"The server sent a message that is no JSON: {error}.") from error
    if not isinstance(message, dict):
        raise ConnectionLost("The server sent a message that is no JSON object.")
    return message
