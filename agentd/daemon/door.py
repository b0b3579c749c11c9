"""The front door: JSON-RPC, strictly. Every request is answered once, whatever is wrong.

The door knows nothing of agents. It is given methods by name, each with the type of its params, and sends
what they return. What LSP and ACP say differently is a `Dialect`. pygls has a door of its own; this one is
there because it must be open before pygls and lsprotocol could be imported, and because of the faults
of that door listed in ARCHITECTURE.md.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup
from pydantic_core import to_json

from agentd.daemon.outbox import Outbox
from agentd.daemon.parsing import BadMessage, Call, MessageId, Reply, parse, validate
from agentd.protocol.capabilities import LIMITS
from agentd.protocol.errors import RpcError
from agentd.protocol.frames import Oversized
from agentd.protocol.text import clean_text
from agentd.protocol.wire import Encoded, Wire

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dialect:
    """How a protocol speaks JSON-RPC.

    `cancel` is its notification that cancels a request, which `cancelled_id` names. Before the request
    `begin` nothing else is served; after `end`, where there is one, only the notification `leave`. `codes`
    are those of errors that have others than `RpcError.code` in it, by their kind.
    """

    cancel: str
    cancelled_id: str
    begin: str
    end: str | None = None
    leave: str | None = None
    codes: Mapping[str, int] = field(default_factory=dict)


class Watcher(Protocol):
    """Is told of each message that comes in, and of each answer."""

    def received(self, call: Call) -> None:
        """A request or notification has come in."""
        ...

    def answered(self, method: str | None, message_id: Any, error: str | None) -> None:
        """A request has its answer; `method` is None where what came in was no request."""
        ...


class _Nobody:
    """Nobody wants to know."""

    def received(self, call: Call) -> None: ...

    def answered(self, method: str | None, message_id: Any, error: str | None) -> None: ...


@dataclass
class Request:
    """A request that is being served."""

    id: MessageId
    method: str
    scope: CancelScope = field(default_factory=CancelScope)
    cancelled: bool = False
    answered: bool = False
    _on_cancel: Callable[[], None] | None = None
    _after: list[Callable[[], None]] = field(default_factory=list)

    def on_cancel(self, function: Callable[[], None]) -> None:
        """What a cancel does instead of cutting the handler short: it still gives its result.

        Where the cancel came before, it is done now.
        """
        self._on_cancel = function
        if self.cancelled:
            function()

    def after(self, function: Callable[[], None]) -> None:
        """Something to do right behind the response."""
        self._after.append(function)

    def cancel(self) -> None:
        """The client wants no answer any more, or the best there is by now."""
        self.cancelled = True
        if self._on_cancel is not None:
            self._on_cancel()


@dataclass(frozen=True)
class Method:
    """A request that is served.

    `graceful`: a cancel does not cut the handler short, it calls `Request.on_cancel` and gives its result.
    """

    params: type[Wire]
    serve: Callable[[Any, Request], Awaitable[Any]]
    graceful: bool = False
    always_admitted: bool = False


@dataclass(frozen=True)
class Notice:
    """A notification that is acted on."""

    params: type[Wire]
    act: Callable[[Any], None]


class ClientError(Exception):
    """The client answered a request of ours with an error, of this code."""

    def __init__(self, message: str, code: object = None) -> None:
        super().__init__(message)
        self.code = code


class Door:
    """One connection. All methods belong to the event loop."""

    def __init__(
        self,
        outbox: Outbox,
        tasks: TaskGroup,
        dialect: Dialect,
        on_leave: Callable[[bool], None] = lambda clean: None,
        watcher: Watcher | None = None,
    ) -> None:
        """`on_leave` is called when the client leaves, with whether it said before that it would."""
        self._watcher = watcher or _Nobody()
        self._dialect = dialect
        self._outbox = outbox
        self._tasks = tasks
        self._on_leave = on_leave
        self._methods: Mapping[str, Method] = {}
        self._notices: Mapping[str, Notice] = {}
        self._editor_notice: Callable[[str, Any], bool] = lambda method, params: False
        self._serving: dict[tuple[type, MessageId], Request] = {}
        self._unwritten = 0  # responses that are not out yet
        self._asked: dict[str, _Question] = {}
        self._last_id = 0
        self._answered = anyio.Event()
        self.initialized = False
        self.shut_down = False

    def serve(
        self,
        methods: Mapping[str, Method],
        notices: Mapping[str, Notice],
        editor_notice: Callable[[str, Any], bool],
    ) -> None:
        """What is behind the door. `editor_notice` says whether it takes a notification of LSP's own."""
        self._methods = methods
        self._notices = notices
        self._editor_notice = editor_notice

    # --- in ---------------------------------------------------------------------------------------

    def receive(self, frame: bytes | Oversized, *, answered: bool = False) -> None:
        """One frame. `answered`: it is the dialect's first request, and has had its answer."""
        try:
            if isinstance(frame, Oversized):
                limit = LIMITS["maxMessageBytes"]
                raise BadMessage(
                    None, RpcError("request", f"The message has {frame.size} bytes; the limit is {limit}.")
                )
            message = parse(frame)
        except BadMessage as bad:
            log.warning("refused: %s", bad.error.message)
            self._send_error(bad.id, bad.error)
            return
        if isinstance(message, Reply):
            self._take_reply(message)
            return
        self._watcher.received(message)
        if message.id is None:
            self._take_notification(message)
        else:
            self._take_request(message, message.id, answered)

    def _take_request(self, call: Call, message_id: MessageId, answered: bool) -> None:
        try:
            method = self._admit(call, message_id)
            params = validate(method.params, call.params)
        except RpcError as error:
            if answered:
                log.error("initialize was answered although %s", error.message)
            else:
                self._send_error(message_id, error, method=call.method)
            return
        if call.method == self._dialect.begin:
            self.initialized = True
        elif call.method == self._dialect.end:
            self.shut_down = True  # now, and not when its task begins: `exit` may be the next frame
        request = Request(message_id, call.method, answered=answered)
        self._serving[_key(message_id)] = request
        self._tasks.start_soon(self._serve, method, params, request)

    def _admit(self, call: Call, message_id: MessageId) -> Method:
        """The method of a request that may be served now. Raises `RpcError`."""
        if _key(message_id) in self._serving:
            raise RpcError("request", f"Invalid request: id {message_id!r} is in flight.")
        if self.shut_down:
            raise RpcError("request", "Invalid request: the server is shut down; only exit is left.")
        begins = call.method == self._dialect.begin
        if begins and self.initialized:
            raise RpcError("request", "Invalid request: the server is initialized already.")
        if not begins and not self.initialized:
            first = f"send {self._dialect.begin} first"
            raise RpcError("notInitialized", f"The server is not initialized: {first}.")
        method = self._methods.get(call.method)
        if method is None:
            raise RpcError("methodNotFound", f'There is no method "{call.method[:100]}".')
        if len(self._serving) + self._unwritten >= LIMITS["maxInFlight"] and not method.always_admitted:
            limit = LIMITS["maxInFlight"]
            raise RpcError("overloaded", f"More than {limit} requests are in flight.", retryable=True)
        return method

    def _take_notification(self, call: Call) -> None:
        if call.method == self._dialect.leave:
            self._on_leave(self.shut_down)
        elif not self.initialized or self.shut_down:
            log.info("%s came before the beginning or behind the end: dropped", call.method)
        elif call.method == self._dialect.cancel:
            self._take_cancel(call.params)
        elif (notice := self._notices.get(call.method)) is not None:
            try:
                notice.act(validate(notice.params, call.params))
            except RpcError as error:
                log.warning("%s: %s", call.method, error.message)
            except Exception:
                log.exception("%s failed", call.method)
        elif not self._editor_notice(call.method, call.params):
            log.debug("nothing is done about %s", call.method)

    def _take_cancel(self, params: Any) -> None:
        message_id = params.get(self._dialect.cancelled_id) if isinstance(params, dict) else None
        request = self._serving.get(_key(message_id)) if isinstance(message_id, int | str) else None
        if request is not None:
            request.cancel()
            if not self._methods[request.method].graceful:
                request.scope.cancel()

    def refuse(self, error: RpcError) -> None:
        """Answer something that was no message."""
        self._send_error(None, error)

    async def answer_all(self, seconds: float) -> None:
        """The daemon ends: let requests finish for so long, then tell who still waits."""
        with anyio.move_on_after(seconds):
            while self._serving:
                self._answered = anyio.Event()
                await self._answered.wait()
        for request in tuple(self._serving.values()):
            self._send_error(request.id, RpcError("cancelled", "The daemon is ending."), request)

    # --- serving ----------------------------------------------------------------------------------

    async def _serve(self, method: Method, params: Any, request: Request) -> None:
        """The task of a request: whatever happens, it is answered."""
        try:
            with request.scope:
                self._respond(request, await method.serve(params, request))
        except Exception as error:
            if request.method == self._dialect.begin:
                self.initialized = False
            self._send_error(request.id, _rpc_error(error, request), request)
        finally:
            if not request.answered:
                self._send_error(request.id, RpcError("cancelled", "The request was cancelled."), request)
            self._serving.pop(_key(request.id), None)

    def _respond(self, request: Request, result: Any) -> None:
        try:
            encoded = result.body if isinstance(result, Encoded) else to_json(result)
        except Exception:
            log.exception("the result of %s cannot be encoded", request.method)
            error = RpcError("internal", f"agentd failed: the result of {request.method} cannot be encoded.")
            self._send_error(request.id, error, request)
            return
        if self._send_response(request.id, b'"result":' + encoded, request):
            self._watcher.answered(request.method, request.id, None)

    def _send_error(
        self,
        message_id: MessageId | None,
        error: RpcError,
        request: Request | None = None,
        method: str | None = None,
    ) -> None:
        if self._send_response(message_id, b'"error":' + self._encoded(error), request):
            method = request.method if request is not None else method
            self._watcher.answered(method, message_id, f"{error.kind}: {error.message}")

    def _send_response(self, message_id: MessageId | None, member: bytes, request: Request | None) -> bool:
        """Send a response; False where the request has had one."""
        if request is not None:
            if request.answered:
                return False
            request.answered = True
            self._serving.pop(_key(request.id), None)
            self._answered.set()
        self._unwritten += 1
        body = b'{"jsonrpc":"2.0","id":%b,%b}' % (to_json(message_id), member)
        self._outbox.respond(body, self._response_is_out)
        for function in request._after if request is not None else ():
            function()
        return True

    def _encoded(self, error: RpcError) -> bytes:
        code = self._dialect.codes.get(error.kind, error.code)
        try:
            return to_json({**error.to_wire(), "code": code})
        except Exception:  # it names something that is no Unicode, such as a folder
            plain = RpcError(error.kind, clean_text(error.message), retryable=error.retryable)
            return to_json({**plain.to_wire(), "code": code})

    def _response_is_out(self) -> None:
        self._unwritten -= 1

    # --- out --------------------------------------------------------------------------------------

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._outbox.send(to_json({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, method: str, params: Any) -> Any:
        """Send a request to the client and give its result.

        Raises `ClientError` when the client answers with an error. Cancelling tells the client so; an answer
        that comes later is dropped.
        """
        self._last_id += 1
        question = self._asked[str(self._last_id)] = _Question()
        message_id = self._last_id
        body = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}
        self._outbox.send(to_json(body))
        try:
            await question.answered.wait()
        except anyio.get_cancelled_exc_class():
            self.notify(self._dialect.cancel, {self._dialect.cancelled_id: message_id})
            raise
        finally:
            del self._asked[str(message_id)]
        if question.error is not None:
            code = question.error.get("code")
            raise ClientError(f"{method}: {code} {question.error.get('message')}", code)
        return question.result

    def _take_reply(self, reply: Reply) -> None:
        """An answer to a request of ours. Its id is matched as text: some clients answer 5 as "5"."""
        question = self._asked.get(str(reply.id))
        if question is None:
            log.info("an answer to a request that nobody waits for: id %r", reply.id)
            if reply.is_empty:
                self.refuse(RpcError("request", "Invalid request: no method, and no result or error."))
            return
        if not question.answered.is_set():  # the first answer counts
            question.result, question.error = reply.result, reply.error
            question.answered.set()


@dataclass
class _Question:
    answered: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: dict[str, Any] | None = None


def _key(message_id: MessageId) -> tuple[type, MessageId]:
    """1 and "1" are two ids."""
    return (type(message_id), message_id)


def _rpc_error(error: Exception, request: Request) -> RpcError:
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RpcError):
        return error
    log.error("%s failed", request.method, exc_info=error)
    return RpcError("internal", f"agentd failed in {request.method}. Its log says more.")
