"""Fetching from the web: one GET, without cookies, credentials, or anything else of the user's.

- A name is looked up here, each address it has must be public, and the connection goes to one of those very
  addresses. A second look-up, which could answer otherwise, does not happen; a redirect is judged anew.
- A redirect to another place is told and not followed, since the user was asked about one place.
- There is a limit to everything: the whole call's time, the body as it is sent, and as it is unpacked.
- No proxy is used, whatever the environment says: it would look names up by itself, and reach what it likes.
"""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from socket import AI_NUMERICSERV, SOCK_STREAM, gaierror
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from agentd import __version__
from agentd.workspace.web_address import WebAddress, WebError, closed, is_public, parse

if TYPE_CHECKING:
    import ssl

    import httpcore

MAX_BYTES = 5 * 1024 * 1024
MAX_SECONDS = 30.0
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_USER_AGENT = f"agentd/{__version__}"
_HEADERS = (
    ("User-Agent", _USER_AGENT),
    ("Accept", "text/markdown, text/html;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1"),
    ("Accept-Encoding", "gzip"),
)
_GZIP = zlib.MAX_WBITS | 16  # how zlib is told

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True)
class Page:
    """What a server gave. `url` is where it came from in the end, `content_type` as sent ("" for none)."""

    url: str
    status: int
    content_type: str
    data: bytes
    truncated: bool


@dataclass(frozen=True)
class Moved:
    """Where a server sends one to that is not the place that was asked for."""

    status: int
    url: str


class Web:
    """Fetches pages. What looks names up and judges addresses can be replaced here and nowhere else."""

    def __init__(
        self,
        resolve: Resolve | None = None,
        is_allowed: Callable[[str], bool] = is_public,
        tls: "ssl.SSLContext | None" = None,
    ) -> None:
        self._resolve = resolve or _look_up
        self._is_allowed = is_allowed
        self._tls = tls

    async def fetch(self, address: WebAddress, seconds: float = MAX_SECONDS) -> Page | Moved:
        """The page at an address, redirects within its place followed. Raises WebError."""
        with anyio.move_on_after(seconds):
            for _ in range(_MAX_REDIRECTS + 1):
                found = await self._get(address)
                if isinstance(found, Page):
                    return found
                target = _target_within(address, found)
                if target is None:
                    return found
                address = target
            raise WebError(f"{address.origin} redirects more than {_MAX_REDIRECTS} times.")
        raise WebError(
            f"{address.origin} took longer than {seconds:.0f} s. Try again later, or another source."
        )

    async def _get(self, address: WebAddress) -> Page | Moved:
        """One request. Raises WebError."""
        import httpcore  # with httpx, not before the first fetch

        try:
            async with self._response(address) as response:
                headers = {name.lower(): value for name, value in response.headers}
                if response.status in _REDIRECTS and b"location" in headers:
                    return Moved(response.status, _joined(address.url, headers[b"location"]))
                encoding = headers.get(b"content-encoding", b"").decode("latin-1")
                data, truncated = await _body(response.aiter_stream(), encoding, address)
                content_type = headers.get(b"content-type", b"").decode("latin-1")
                return Page(address.url, response.status, content_type, data, truncated)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise WebError(f"{address.origin} could not be fetched: {_reason(error)}.") from error

    @asynccontextmanager
    async def _response(self, address: WebAddress) -> AsyncIterator["httpcore.Response"]:
        import httpcore  # as above
        import httpx

        from agentd.workspace.web_connection import CheckedNetwork

        if self._tls is None:  # reading the certificates of all authorities takes a while
            self._tls = await anyio.to_thread.run_sync(httpx.create_ssl_context)
        network = CheckedNetwork(self._addresses)
        async with (
            httpcore.AsyncConnectionPool(ssl_context=self._tls, network_backend=network, retries=0) as pool,
            pool.stream("GET", address.url.encode("ascii"), headers=list(_HEADERS)) as response,
        ):
            yield response

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host, each of which is public. Raises WebError."""
        try:
            found = await self._resolve(host, port)
        except (gaierror, UnicodeError) as error:
            raise WebError(f"The host {host} is not known: {_reason(error)}.") from error
        for address in found:
            if not self._is_allowed(address):
                raise closed(host, address)
        if not found:
            raise WebError(f"The host {host} has no address.")
        return found


def _target_within(address: WebAddress, moved: Moved) -> WebAddress | None:
    """Where a redirect leads, if that is the same place, or the same host encrypted. Raises WebError."""
    try:
        target = parse(moved.url)
    except WebError as error:
        raise WebError(f"{address.url} redirects to what cannot be fetched: {error}") from error
    is_upgrade = (address.scheme, address.port, target.scheme, target.port) == ("http", 80, "https", 443)
    return target if target.origin == address.origin or (is_upgrade and target.host == address.host) else None


def _joined(base: str, location: bytes) -> str:
    import httpx  # as above

    try:
        return str(httpx.URL(base).join(location.decode("utf-8")).copy_with(fragment=None))
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise WebError("The server redirects to something that is no URL.") from error


async def _body(chunks: Any, encoding: str, address: WebAddress) -> tuple[bytes, bool]:
    """The body unpacked, at most MAX_BYTES of it, and whether it goes on. Raises WebError."""
    unpack = _unpacker(encoding, address)
    data = bytearray()
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        for piece in unpack(chunk):
            data += piece
            if len(data) > MAX_BYTES:
                return bytes(data[:MAX_BYTES]), True
        if received > MAX_BYTES:  # a packed body that says nothing
            return bytes(data), True
    return bytes(data), False


def _unpacker(encoding: str, address: WebAddress) -> Callable[[bytes], Iterable[bytes]]:
    """What takes a chunk apart; never more than the limit at once, however much a chunk holds."""
    names = [name for part in encoding.split(",") if (name := part.strip().lower()) not in ("", "identity")]
    if not names:
        return lambda chunk: (chunk,)
    if names not in (["gzip"], ["x-gzip"]):
        raise WebError(
            f"{address.origin} sends its content packed in a way that was not asked for: {encoding}."
        )
    unpacker = zlib.decompressobj(_GZIP)

    def unpack(chunk: bytes) -> Iterable[bytes]:
        try:
            return (unpacker.decompress(chunk, MAX_BYTES + 1),)
        except zlib.error as error:
            raise WebError(f"{address.origin} sends content that cannot be unpacked: {error}.") from error

    return unpack


async def _look_up(host: str, port: int) -> Sequence[str]:
    found = await anyio.getaddrinfo(host, port, type=SOCK_STREAM, flags=AI_NUMERICSERV)
    return [str(each[4][0]) for each in found]


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
