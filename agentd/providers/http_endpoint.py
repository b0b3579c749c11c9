"""A model server as an HTTP endpoint: its address, its key, its connections, and what can go wrong on them.

Everything that every HTTP provider needs and no wire format decides. The environment's proxies and
`SSL_CERT_FILE` or `SSL_CERT_DIR` count as httpx reads them, except that a server on this machine is never
asked through a proxy. The authorities in the bundles that other programs are told of (`EXTRA_BUNDLES`) are
trusted beside those. Redirects are not followed: the key goes to the configured host and to no other.
"""

import ipaddress
import json
import os
import ssl
import string
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx

from agentd import __version__
from agentd.providers.base import NO_HEADERS, Headers, ProviderError
from agentd.providers.http_errors import Peer, error_from_response, redirect_error

_HEADERS = {
    "Accept": "text/event-stream",
    "Accept-Encoding": "identity",  # compression buffers, and a stream must not wait
    "Content-Type": "application/json",
    "User-Agent": f"agentd/{__version__}",
}
EXTRA_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Variables that name certificates of a company's own, set for other programs on the same machine."""
_AROUND_KEYS = "\"'\ufeff\u200b\u00a0" + string.whitespace
_ERROR_BODY_BYTES = 64 * 1024
_ERROR_BODY_SECONDS = 10.0


@dataclass(frozen=True)
class Timeouts:
    """How long to wait, in seconds.

    There is no limit on a whole answer. `first_byte` is long because a local server reads the whole prompt
    first; `idle` runs between bytes, and a server's keep-alive comments count as bytes. `tail` is the wait
    for usage and end mark after the server has said why it stopped, `close` for giving back a connection.
    """

    connect: float = 15.0
    first_byte: float = 300.0
    idle: float = 180.0
    tail: float = 5.0
    close: float = 2.0


DEFAULT_TIMEOUTS = Timeouts()

MODEL, THINKING_TAG = "agentd.model", "agentd.thinking_tag"
"""The extensions of an `httpx.Request` that say which model it is for, and its tag for thinking."""


OpenClient = Callable[..., httpx.AsyncClient]
"""What makes an endpoint's client from settings of `httpx.AsyncClient`: that class, or one that records or
replays."""


@dataclass(frozen=True)
class Refusal:
    """An answer other than success: the error it means, and the server's own text."""

    error: ProviderError
    text: str


class Endpoint:
    """One model server. Nothing is checked or opened before the first request."""

    def __init__(
        self,
        provider: str,
        base_url: str,
        api_key: str | None,
        timeouts: Timeouts,
        *,
        usual_end: str = "/v1",
        headers: Headers = NO_HEADERS,
        open_client: OpenClient = httpx.AsyncClient,
    ) -> None:
        """`usual_end` is how a base_url of this API mostly ends, for the advice in error messages."""
        self.provider = provider
        self.timeouts = timeouts
        self._base_url = base_url
        self._api_key = api_key
        self._usual_end = usual_end
        self._headers = headers
        self._new_client = open_client
        self._client: httpx.AsyncClient | None = None
        self._urls: dict[str, httpx.URL] = {}  # taking an address apart costs as much as the rest

    def peer(self, model: str, path: str) -> Peer:
        """The endpoint in the words of error messages. Raises `ProviderError` for a faulty address or key."""
        url = self._url(path)
        address, key = str(url.copy_with(query=None)), self._key()
        hidden = tuple(self._headers.secret.values())
        return Peer(self.provider, model, address, key, self._usual_end, hidden)

    async def post(
        self, peer: Peer, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> httpx.Response:
        """Send a request and wait for the head of the answer, whatever it says; the caller closes it.

        Raises `ProviderError` when no answer comes.
        """
        # Lone surrogates have no place in a request; should one get here, it must not stop the rest.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        request = self._open_client().build_request(
            "POST",
            self._url(path),
            content=content,
            headers=self._all_headers(headers),
            extensions={MODEL: peer.model, THINKING_TAG: peer.thinking_tag},
        )
        return await self._answer(peer, request)

    async def get(self, peer: Peer, path: str, headers: Mapping[str, str]) -> httpx.Response:
        """Ask for what lies at a path, as `post` does."""
        request = self._open_client().build_request(
            "GET", self._url(path), headers=self._all_headers(headers)
        )
        return await self._answer(peer, request)

    def _all_headers(self, own: Mapping[str, str]) -> httpx.Headers:
        """An API's headers of a request and the user's, which go before. Raises `ProviderError`."""
        headers = httpx.Headers(own)
        for name, value in {**self._headers.plain, **self._headers.secret}.items():
            if not value.isascii() or not value.isprintable():
                raise ProviderError(
                    "bad_request",
                    f"{self.provider}: the value of header {name} holds characters that no header can have. "
                    "Set it again.",
                )
            headers[name] = value
        return headers

    async def _answer(self, peer: Peer, request: httpx.Request) -> httpx.Response:
        client = self._open_client()
        try:
            with anyio.fail_after(self.timeouts.first_byte):
                return await client.send(request, stream=True)
        except TimeoutError:
            raise self.too_slow(f"no answer from {peer.url} for {self.timeouts.first_byte:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._unreachable(peer, error) from error

    async def refusal(self, peer: Peer, response: httpx.Response) -> Refusal | None:
        """What an answer means that is no success, or None for one that can be read. Closes a refused one.

        A success may be anything, whatever its head says of it: small servers stream as text/html.
        """
        if response.is_success:
            return None
        try:
            body = await self._beginning(response)
        finally:
            await self.close(response)
        status = response.status_code
        if response.has_redirect_location:
            return Refusal(redirect_error(peer, status, response.headers["location"]), "")
        error = error_from_response(peer, status, response.headers, body, now=time.time())
        return Refusal(error, body.decode(errors="replace"))

    def too_slow(self, what: str) -> ProviderError:
        """The error for a wait that took too long."""
        return ProviderError("timeout", f"{self.provider}: {what}.", retryable=True)

    async def close(self, response: httpx.Response) -> None:
        """Give a connection back, or close it when its answer was not read to the end; not for long."""
        with anyio.move_on_after(self.timeouts.close, shield=True):
            await response.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            with anyio.move_on_after(self.timeouts.close, shield=True):
                await client.aclose()

    async def _beginning(self, response: httpx.Response) -> bytes:
        """The first part of a body, for an error message: as much as comes in a short time."""
        body = bytearray()
        try:
            with anyio.move_on_after(_ERROR_BODY_SECONDS):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) >= _ERROR_BODY_BYTES:
                        break
        except (httpx.HTTPError, OSError):
            pass  # the status says enough; its error is about to be raised
        return bytes(body[:_ERROR_BODY_BYTES])

    def _url(self, path: str) -> httpx.URL:
        """The address of a path below base_url, which may end in a slash or in a part of the path."""
        if path not in self._urls:
            self._urls[path] = self._checked_url(path)
        return self._urls[path]

    def _checked_url(self, path: str) -> httpx.URL:
        try:
            urlsplit(self._base_url)  # refuses the brackets that httpx takes for a part of the name
            base = httpx.URL(self._base_url.strip()).copy_with(fragment=None)
        except (ValueError, httpx.InvalidURL) as error:
            raise self._bad_address(f"is no URL ({error})") from None
        if base.scheme not in ("http", "https") or not base.host:
            raise self._bad_address('must be like "http://127.0.0.1:11434/v1"')
        if base.userinfo:
            raise self._bad_address("holds a user name or password: remove it, and set api_key_env instead")
        path, _, query = path.partition("?")
        url = base.copy_with(path=_joined(base.path.rstrip("/"), path))
        return url.copy_merge_params(query) if query else url

    def _bad_address(self, reason: str) -> ProviderError:
        return ProviderError(
            "bad_request", f'{self.provider}: base_url of provider "{self.provider}" {reason}.'
        )

    def _key(self) -> str | None:
        """The key without what copying adds to it: blanks, a byte order mark, quotes. Empty is none."""
        key = (self._api_key or "").strip(_AROUND_KEYS)
        if any(not "!" <= character <= "~" for character in key):
            raise ProviderError(
                "auth",
                f'{self.provider}: the API key of provider "{self.provider}" holds characters that no key '
                "has (blanks, control characters or letters outside ASCII). Set it again.",
            )
        return key or None

    def _open_client(self) -> httpx.AsyncClient:
        if self._client is None:
            url = self._url("")
            # Plain HTTP needs no certificates, and reading the bundle takes longer than a local answer.
            plain = url.scheme == "http"
            timeout = httpx.Timeout(None, connect=self.timeouts.connect, pool=self.timeouts.connect)
            try:
                verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else _trust()
                self._client = self._new_client(
                    verify=verify,
                    timeout=timeout,
                    limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
                    headers=_HEADERS,
                    trust_env=not _is_loopback(url.host),  # what is on this machine is behind no proxy
                )
            except (OSError, ValueError, httpx.InvalidURL) as error:
                raise ProviderError("network", f"{self.provider}: {_environment_fault(error)}") from error
        return self._client

    def _unreachable(self, peer: Peer, error: Exception) -> ProviderError:
        """The error for a request that got no answer."""
        reason = peer.excerpt(describe(error))
        if isinstance(error, httpx.TimeoutException):
            return self.too_slow(f"cannot connect to {peer.url} ({reason})")
        if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError | httpx.InvalidURL):
            return ProviderError("bad_request", f"{self.provider}: cannot ask {peer.url}: {reason}.")
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            hint = "For a private certificate authority, set SSL_CERT_FILE to its bundle."
            return ProviderError("network", f"{self.provider}: cannot trust {peer.url}: {reason}. {hint}")
        return ProviderError(
            "network", f"{self.provider}: cannot reach {peer.url}: {reason}.", retryable=True
        )


def describe(error: BaseException) -> str:
    """An exception in words, which are never empty."""
    words = str(error).strip()
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _trust() -> ssl.SSLContext:
    """Whom to trust. Raises `OSError`."""
    context = httpx.create_ssl_context()
    for name in EXTRA_BUNDLES:
        if bundle := os.environ.get(name):
            is_folder = os.path.isdir(bundle)
            context.load_verify_locations(
                cafile=None if is_folder else bundle, capath=bundle if is_folder else None
            )
    return context


def _environment_fault(error: Exception) -> str:
    """Why no client could be made: a fault in the environment, as no other setting of ours can cause one."""
    if isinstance(error, OSError):
        named = [name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", *EXTRA_BUNDLES) if os.environ.get(name)]
        # The one that is not there, else the first: OpenSSL does not say which it could not read.
        for name in sorted(named, key=lambda name: os.path.exists(os.environ[name])):
            return f"cannot read the certificates that {name} names ({os.environ[name]}): {describe(error)}."
    return (
        f"cannot use the proxy that the environment names: {type(error).__name__}. "
        "Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY."
    )


def _joined(base: str, path: str) -> str:
    """`path` below `base`, where what `base` already holds of its beginning is not said twice.

    "/v1" and "/v1/messages" make "/v1/messages".
    """
    ends = [len(path), *(end for end in range(len(path) - 1, 0, -1) if path[end] == "/")]
    held = next((end for end in ends if base.endswith(path[:end])), 0)
    return base + path[held:]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
