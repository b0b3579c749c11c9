"""A model server on loopback that plays a script: real HTTP, real sockets, no model.

As a context manager, or with the fixture `model_server` (import it in a conftest):

    with ModelServer([{"content": [{"type": "text", "text": "Hello"}]}]) as server:
        ...  # point a provider of api "openai-chat" at server.base_url
        server.wait_for_requests(1)
        assert server.requests[0].body["messages"][-1]["content"] == "Hi"

Each `POST {base_url}/chat/completions` is answered with the next response of the script. A response is one of

* a dict in the form of a scripted response (`agentd/providers/script.py`): `content`, `stopReason`, `usage`,
  `chunkSize` (characters per delta, 16), `delayMs` (before each delta), `error`, `hang`. An error with no
  content is an HTTP error with its `status` (or that of its kind), after content one inside the stream;
* a `Raw`: bytes, status and headers as given, cut, slowed, stalled or broken off as it says;
* a function that takes the `Recorded` request and gives one of these.

A request that breaks the rules of strict servers (`wire_fault`) gets a 400 that names the fault, uses up no
response, and is in `server.faults`: a test that ends with `assert not server.faults` shows that the history
was valid all along. Pass `strict=False` for requests that are not about history. `repeat=True` plays the
last response for ever.
All requests are in `server.requests`, the refused ones too.

`wait_for_requests` and `wait_for_disconnects` wait for what the client does, with a deadline.
"""

import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest
from fakes.openai_wire import chat_events, http_error, wire_fault

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
DEADLINE = 10.0


@dataclass(frozen=True)
class Recorded:
    """A request as it came: header names in lower case, `body` parsed, None where it is no JSON."""

    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes
    connection: int
    """The client's port: equal for requests over one connection."""


@dataclass(frozen=True)
class Raw:
    """An answer byte by byte.

    `chunk` bytes per write (0: all at once) with `delay` seconds between writes. Of the body, `cut_after`
    bytes are sent and then the connection is closed in the middle; or `stall_after` bytes and then nothing,
    with the connection open, until the client leaves. With `linger` the whole body is sent and the
    connection stays open in the same way. `answer=False` sends nothing at all, not even a status.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: EVENT_STREAM)
    chunk: int = 0
    delay: float = 0.0
    cut_after: int | None = None
    stall_after: int | None = None
    linger: bool = False
    answer: bool = True


Response = Mapping[str, Any] | Raw | Callable[[Recorded], "Mapping[str, Any] | Raw"]


def sse(*payloads: Any, done: bool = True) -> bytes:
    """A stream of chunks, each a dict or text as it stands, with `[DONE]` at its end."""
    texts = [payload if isinstance(payload, str) else json.dumps(payload) for payload in payloads]
    return "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]).encode()


def json_answer(payload: Any, status: int = 200, **headers: str) -> Raw:
    """An answer that is no stream but JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw(json.dumps(payload).encode(), status, {"content-type": "application/json"} | named)


class ModelServer:
    """The server; see the module's text. It listens from the start and until `close`."""

    def __init__(
        self, responses: Iterable[Response] = (), *, strict: bool = True, repeat: bool = False
    ) -> None:
        self.requests: list[Recorded] = []
        self.faults: list[str] = []
        self.disconnects = 0
        self.closing = threading.Event()
        self._responses = deque(responses)
        self._strict = strict
        self._repeat = repeat
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Exchange)
        self._server.daemon_threads = True
        self._server.model_server = self  # type: ignore[attr-defined]  # the way to it from an exchange
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def base_url(self) -> str:
        """What to configure as the provider's base_url."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def unused(self) -> int:
        """How many responses nobody has asked for yet."""
        return len(self._responses)

    def push(self, *responses: Response) -> None:
        """Add responses to the end of the script."""
        with self._changed:
            self._responses.extend(responses)

    def start_anew(self) -> None:
        """Forget all that has come and all that was to be played, for the next test of a shared server."""
        with self._changed:
            self._responses.clear()
            self.requests, self.faults, self.disconnects = [], [], 0

    def close(self) -> None:
        """Stop listening and let every stalled answer go."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_for_requests(self, count: int, timeout: float = DEADLINE) -> None:
        """Wait until that many requests have come."""
        self._wait(lambda: len(self.requests) >= count, timeout, f"{count} requests")

    def wait_for_last(self, timeout: float = DEADLINE) -> None:
        """Wait until the last response of the script was asked for."""
        self._wait(lambda: not self._responses, timeout, "request for the last response")

    def wait_for_disconnects(self, count: int = 1, timeout: float = DEADLINE) -> None:
        """Wait until that many answers were left by the client before their end."""
        self._wait(lambda: self.disconnects >= count, timeout, f"{count} disconnects")

    def _wait(self, reached: Callable[[], bool], timeout: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(reached, timeout):
                raise AssertionError(f"no {what} within {timeout:g} s: {len(self.requests)} requests came")

    # --- the wire format, which a server of another API has its own of ----------------------------

    path = "/chat/completions"

    def fault_of(self, request: Recorded) -> str | None:
        """The first thing that a strict server would refuse in a request, or None."""
        return wire_fault(request.body)

    def events(self, response: Mapping[str, Any], request: Recorded) -> Iterator[bytes]:
        """A scripted response as the events of a stream."""
        return chat_events(response, request.body)

    def failure(self, failure: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """A scripted error as status, headers and body of an HTTP answer."""
        return http_error(failure)

    def refusal(self, status: int, message: str) -> Raw:
        """The answer to a request that is not one to play the script for."""
        return http_error_answer(status, message)

    # --- for the exchanges ------------------------------------------------------------------------

    def receive(self, request: Recorded) -> Mapping[str, Any] | Raw:
        """Take a request; give what to answer."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            if not request.path.split("?")[0].endswith(self.path):
                return self.refusal(404, f"no such path: {request.path}")
            fault = self.fault_of(request) if self._strict else None
            if fault is not None:
                self.faults.append(fault)
                return self.refusal(400, f"invalid request: {fault}")
            if not self._responses:
                return self.refusal(400, "the script has no more responses")
            last = self._repeat and len(self._responses) == 1
            response = self._responses[0] if last else self._responses.popleft()
        return response(request) if callable(response) else response

    def note_disconnect(self) -> None:
        """A client has left."""
        with self._changed:
            self.disconnects += 1
            self._changed.notify_all()


def http_error_answer(status: int, message: str) -> Raw:
    """An error in OpenAI's form."""
    return json_answer({"error": {"message": message, "type": "invalid_request_error", "code": None}}, status)


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a delta must not wait for the acknowledgement of the one before

    def handle(self) -> None:
        with suppress(ConnectionResetError):  # a client that was killed between two requests
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        pass

    @property
    def model_server(self) -> ModelServer:
        return self.server.model_server  # type: ignore[attr-defined, no-any-return]  # set by ModelServer

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        if len(raw) < length:  # killed while it sent this: no request
            self._leave()
            return
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(self.path, headers, body, raw, self.client_address[1])
        answer = self.model_server.receive(request)
        try:
            if isinstance(answer, Raw):
                self._send_raw(answer)
            else:
                self._send_scripted(answer, request)
        except (BrokenPipeError, ConnectionResetError):
            self._leave()

    def do_GET(self) -> None:
        self.do_POST()

    def _send_raw(self, answer: Raw) -> None:
        if not answer.answer:
            self._stall()
            return
        self._send_head(answer.status, answer.headers)
        limits = [limit for limit in (answer.cut_after, answer.stall_after) if limit is not None]
        body = answer.body[: min(limits)] if limits else answer.body
        size = answer.chunk or len(body) or 1
        for start in range(0, len(body), size):
            self._write(body[start : start + size])
            if answer.delay:
                time.sleep(answer.delay)
        if answer.stall_after is not None or answer.linger:
            self._stall()
        elif answer.cut_after is not None:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _send_scripted(self, response: Mapping[str, Any], request: Recorded) -> None:
        failure = response.get("error")
        if failure and not response.get("content"):
            status, headers, payload = self.model_server.failure(failure)
            self._send_raw(Raw(payload, status, headers))
            return
        self._send_head(200, EVENT_STREAM)
        delay = response.get("delayMs", 0) / 1000
        for event in self.model_server.events(response, request):
            if delay:
                time.sleep(delay)
            self._write(event)
        if response.get("hang") and not failure:
            self._stall()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _write(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _stall(self) -> None:
        """Say nothing until the client leaves or the server closes."""
        while not self.model_server.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self._peek():
                self._leave()
                return
        self.close_connection = True

    def _peek(self) -> bytes:
        try:
            return self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return b""

    def _leave(self) -> None:
        self.close_connection = True
        self.model_server.note_disconnect()


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A strict server with an empty script: `push` responses to it."""
    with ModelServer() as server:
        yield server
