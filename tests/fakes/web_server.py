"""A site on loopback, and a `Web` for which names lead to it: what stands for the public Internet in tests.

with WebServer({"/": page("text/plain", b"hello")}) as server:
    await web_for().fetch(parse(server.url("/")))
"""

import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from agentd.workspace.web import Web

HOST = "site.example"
Answer = Callable[[BaseHTTPRequestHandler], None]


def page(content_type: str, body: bytes, status: int = 200, **headers: str) -> Answer:
    """An answer with a body; an empty `content_type` is not sent."""

    def answer(exchange: BaseHTTPRequestHandler) -> None:
        exchange.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in (({"content-type": content_type} if content_type else {}) | named).items():
            exchange.send_header(name, value)
        exchange.end_headers()
        with contextlib.suppress(OSError):  # the client has had enough
            exchange.wfile.write(body)

    return answer


def moved(location: str, status: int = 302) -> Answer:
    """A redirect."""
    return page("text/html", b"moved", status, location=location)


def dripping(seconds: float) -> Answer:
    """A body of which a byte comes now and then, until the client leaves or the time is over."""

    def answer(exchange: BaseHTTPRequestHandler) -> None:
        page("text/plain", b"")(exchange)
        end = time.monotonic() + seconds
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                exchange.wfile.write(b".")
                exchange.wfile.flush()
                time.sleep(0.05)

    return answer


class WebServer:
    """The site: an answer for each path. `requests` holds the head of each request, as it came."""

    def __init__(self, answers: Mapping[str, Answer], tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self.answers = dict(answers)
        site = self

        class Exchange(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append(f"{self.requestline}\n{self.headers}")
                site.answers.get(self.path, page("text/plain", b"nothing here", 404))(self)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing is said."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, path: str = "/", host: str = HOST) -> str:
        """The URL of a path."""
        return f"{self._scheme}://{host}:{self._server.server_address[1]}{path}"


def web_for(
    *,
    names: Mapping[str, Sequence[str]] | None = None,
    looked_up: list[str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Web:
    """A `Web` for which 127.0.0.1 is public, and to which each name leads unless `names` says else."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        if looked_up is not None:
            looked_up.append(host)
        return (names or {}).get(host, ["127.0.0.1"])

    return Web(resolve, is_allowed=lambda address: address == "127.0.0.1", tls=tls)
