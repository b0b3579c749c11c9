"""Connecting to the very addresses that were checked."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore

_CONNECT_SECONDS = 5.0  # for each address, of which the next is tried


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """A network on which a host is where `addresses` says, which raises for one that may not be reached.

    TLS is the connection pool's: it still asks for a certificate of the host's name.
    """

    def __init__(self, addresses: Callable[[str, int], Awaitable[Sequence[str]]]) -> None:
        self._addresses = addresses
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first of the host's addresses that answers."""
        error: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in await self._addresses(host, port):
            try:
                return await self._network.connect_tcp(address, port, timeout=_CONNECT_SECONDS)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failure:
                error = failure
        raise error

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Never: there is nothing public behind one."""
        raise httpcore.ConnectError("no Unix sockets")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._network.sleep(seconds)
