"""A raw frame client: a real daemon process, any bytes in, every message out in order.

Nothing here waits without a deadline, and nothing is tolerant: bytes on stdout that are no frame are kept in
`Daemon.stray` and fail the test when it ends.
"""

import contextlib
import fcntl
import itertools
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from wire.processes import DEADLINE, until

Json = dict[str, Any]

END_OF_LIFE = 30.0
"""Seconds a daemon may take to end; the protocol says 2, the rest is for a loaded machine, and no measure."""

SLOW_SECONDS = 0.01
"""The pause of a client that reads slowly before each kilobyte."""

OPTIONS: Json = {"trusted": True, "permission": True}
"""What the client says of itself where a test does not care."""

_HEADER = re.compile(rb"Content-Length: ([0-9]+)\r\n\r\n")


def _no_json(constant: str) -> None:
    raise AssertionError(f"the daemon sent {constant}, which is no JSON")


def frame(message: Any) -> bytes:
    """The frame of a message; bytes are taken as a body as it stands."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def request(request_id: Any, method: str, params: Any = None) -> Json:
    """A JSON-RPC request; params that are None are left out."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else {**message, "params": params}


def notification(method: str, params: Any = None) -> Json:
    """A JSON-RPC notification."""
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


# --- one process ---------------------------------------------------------------------------------------


class Daemon:
    """A daemon process and the client's end of its three pipes; nobody reads stderr with `deaf`."""

    def __init__(self, *args: str, env: dict[str, str], cwd: Path, deaf: bool = False) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agentd", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=env,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.pid = self.process.pid
        self.messages: list[Json] = []
        self.received = bytearray()
        """Every byte of stdout so far, but only where a test asked for it with `keep_bytes`."""
        self.keep_bytes = False
        self.stray = b""
        self.torn = b""
        self.errors = b""
        self._ids = itertools.count(1001)
        self._arrived = threading.Condition()
        self._ended = False
        self._stdin = self.process.stdin.fileno()
        os.set_blocking(self._stdin, False)
        self._orders, self._order = os.pipe()
        self._obeyed = threading.Event()
        self._threads = [
            threading.Thread(target=self._read_stdout, daemon=True),
            *([] if deaf else [threading.Thread(target=self._read_stderr, daemon=True)]),
        ]
        for thread in self._threads:
            thread.start()

    # --- reading ---

    def _read_stdout(self) -> None:
        assert self.process.stdout
        out = self.process.stdout.fileno()
        buffer = bytearray()
        paused, slow = False, False
        while True:
            ready, _, _ = select.select([self._orders] if paused else [self._orders, out], [], [])
            if self._orders in ready:
                order = os.read(self._orders, 1)
                if order == b"c":
                    break
                paused, slow = order == b"p", order == b"s"
                self._obeyed.set()
                continue
            if slow:
                time.sleep(SLOW_SECONDS)
            data = os.read(out, 1024 if slow else 1 << 16)
            if not data:
                break
            if self.keep_bytes:
                self.received += data
            buffer += data
            self._cut(buffer)
        self.process.stdout.close()
        with self._arrived:
            self.torn = bytes(buffer)
            self._ended = True
            self._arrived.notify_all()
        self._obeyed.set()

    def _cut(self, buffer: bytearray) -> None:
        while header := _HEADER.search(buffer):
            if header.start():
                self.stray += bytes(buffer[: header.start()])
            end = header.end() + int(header[1])
            if len(buffer) < end:
                return
            body = bytes(buffer[header.end() : end]).decode("utf-8")
            message = json.loads(body, parse_constant=_no_json)
            del buffer[:end]
            with self._arrived:
                self.messages.append(message)
                self._arrived.notify_all()

    def _read_stderr(self) -> None:
        assert self.process.stderr
        while data := self.process.stderr.read(1 << 16):
            self.errors += data

    def _give_order(self, order: bytes) -> None:
        self._obeyed.clear()
        os.write(self._order, order)
        assert self._obeyed.wait(DEADLINE)

    def stop_reading(self) -> None:
        """Read no more from stdout; what the pipe holds stays there."""
        self._give_order(b"p")

    def read_slowly(self) -> None:
        """Read stdout a kilobyte at a time, with a pause before each."""
        self._give_order(b"s")

    def read_on(self) -> None:
        """Read stdout again."""
        self._give_order(b"r")

    def close_stdout(self) -> None:
        """Close our end of the daemon's stdout for good."""
        self._give_order(b"c")

    # --- writing ---

    def write(self, data: bytes, timeout: float = DEADLINE) -> None:
        """Write raw bytes; it is a failure when the daemon does not read them."""
        view = memoryview(data)
        end = time.monotonic() + timeout
        while view:
            _, ready, _ = select.select([], [self._stdin], [], max(0.0, end - time.monotonic()))
            assert ready, f"the daemon did not read stdin for {timeout} s"
            view = view[os.write(self._stdin, view[: 1 << 16]) :]

    def send(self, *messages: Any) -> None:
        """Write messages in one go."""
        self.write(b"".join(map(frame, messages)))

    def unread(self) -> int:
        """How many bytes of what we wrote the daemon has not read yet."""
        return struct.unpack("i", fcntl.ioctl(self._stdin, termios.FIONREAD, b"\0" * 4))[0]

    def wait_until_read(self) -> None:
        """Wait until the daemon has taken every byte written so far out of its pipe."""
        until(lambda: not self.unread(), "the daemon reads its stdin")

    def request(self, method: str, params: Any = None) -> int:
        """Send a request under a fresh id and give the id."""
        request_id = next(self._ids)
        self.send(request(request_id, method, params))
        return request_id

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.send(notification(method, params))

    def answer(self, asked: Json, result: Any = None, error: Json | None = None) -> None:
        """Answer a request of the daemon."""
        outcome = {"result": result} if error is None else {"error": error}
        self.send({"jsonrpc": "2.0", "id": asked["id"], **outcome})

    # --- waiting ---

    def wait(self, predicate: Callable[[Json], Any], since: int = 0, timeout: float = DEADLINE) -> Json:
        """The first message from number `since` on for which the predicate holds."""
        end = time.monotonic() + timeout
        with self._arrived:
            seen = since
            while True:
                for message in self.messages[seen:]:
                    if predicate(message):
                        return message
                seen = len(self.messages)
                assert not self._ended, self._say("stdout ended before it came")
                assert self._arrived.wait(end - time.monotonic()), self._say(
                    f"it did not come in {timeout} s"
                )

    def _say(self, what: str) -> str:
        last = "\n".join(json.dumps(message)[:300] for message in self.messages[-12:])
        return f"{what}; last messages:\n{last}\nstderr:\n{self.errors[-3000:].decode(errors='replace')}"

    def response(self, request_id: Any, timeout: float = DEADLINE) -> Json:
        """The response with this id: equal in type and value."""
        wanted = json.dumps(request_id)
        return self.wait(
            lambda message: "method" not in message and json.dumps(message.get("id")) == wanted,
            timeout=timeout,
        )

    def asked(self, method: str, since: int = 0) -> Json:
        """The daemon's first request of this method from message `since` on."""
        return self.wait(lambda message: message.get("method") == method and "id" in message, since)

    def call(self, method: str, params: Any = None) -> Any:
        """Send a request and give its result."""
        response = self.response(self.request(method, params))
        assert "result" in response, response
        return response["result"]

    def refused(self, method: str, params: Any = None) -> Json:
        """Send a request and give the error it is answered with."""
        return error_of(self.response(self.request(method, params)))

    def serves(self) -> bool:
        """Whether an ordinary request is still answered."""
        return "version" in self.call("agentd/status")

    def count(self, predicate: Callable[[Json], Any]) -> int:
        """How many messages so far the predicate holds for."""
        return sum(1 for message in self.messages if predicate(message))

    # --- the ends ---

    def initialize(
        self,
        options: Json | None = OPTIONS,
        capabilities: Json | None = None,
        folders: Iterable[Path] = (),
        process_id: int | None = None,
    ) -> Json:
        """`initialize` and `initialized`; gives the InitializeResult."""
        params = initialize_params(options, capabilities, folders, process_id)
        result: Json = self.call("initialize", params)
        self.notify("initialized", {})
        return result

    def close_stdin(self) -> None:
        """The client's end of input."""
        assert self.process.stdin
        self.process.stdin.close()

    def exit_code(self, timeout: float = END_OF_LIFE) -> int:
        """Wait for the end of the process and of its output."""
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return code

    def kill(self) -> None:
        """`kill -9`."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(DEADLINE)

    def resident_bytes(self) -> int:
        """Resident memory of the process."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1]) * 1024

    def stop(self) -> None:
        """End the process, whatever it does, and give back the pipes."""
        assert self.process.stdin
        assert self.process.stderr
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(END_OF_LIFE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(DEADLINE)
        with contextlib.suppress(OSError):
            os.write(self._order, b"r")
        for thread in self._threads:
            thread.join(DEADLINE)
        self.process.stderr.close()
        os.close(self._order)
        os.close(self._orders)


def initialize_params(
    options: Json | None = OPTIONS,
    capabilities: Json | None = None,
    folders: Iterable[Path] = (),
    process_id: int | None = None,
) -> Json:
    """The params of `initialize`; no `agentd` object where `options` is None."""
    params: Json = {
        "processId": process_id,
        "rootUri": None,
        "capabilities": {} if capabilities is None else capabilities,
        "workspaceFolders": [{"uri": path.as_uri(), "name": path.name} for path in folders] or None,
    }
    if options is not None:
        params["initializationOptions"] = {"agentd": options}
    return params


def error_of(response: Json) -> Json:
    """The error of a response, which must have the form that every error has."""
    assert "result" not in response, response
    error: Json = response["error"]
    assert isinstance(error["code"], int)
    assert error["message"].strip()
    assert isinstance(error["data"]["kind"], str)
    assert isinstance(error["data"]["retryable"], bool)
    assert "Traceback" not in json.dumps(error)
    assert '.py"' not in json.dumps(error)
    return error
