"""The HTTP client that writes all it sends and receives into a recording."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import httpx

from agentd.providers.apis import ProviderAddress
from agentd.providers.http_endpoint import MODEL, THINKING_TAG, Timeouts
from agentd.providers.recording import Recording, Witness


class RecordingClient(httpx.AsyncClient):
    """A client for the requests of one provider. `settings` are those of `httpx.AsyncClient`."""

    def __init__(self, recording: Recording, address: ProviderAddress, **settings: Any) -> None:
        super().__init__(**settings)
        self._recording = recording
        self._provider = {
            "provider": address.name,
            "api": address.api,
            "base_url": (address.base_url or "").partition("?")[0],
            "dialect": dict(address.dialect),
            "timeouts": asdict(Timeouts(**address.timeouts)),
        }

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request. The answer is like the server's own, and is written while it is read."""
        witness = self._begin(request)
        try:
            response = await super().send(request, **options)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            witness.broken(error)
            raise
        except BaseException:  # cancelled, perhaps because the wait was too long
            witness.left()
            raise
        try:
            witness.head(response.status_code, response.headers)
        except BaseException:
            await response.aclose()
            raise
        headers = response.headers.copy()
        headers.pop("content-encoding", None)  # what is read from now on is decoded
        return httpx.Response(
            response.status_code, headers=headers, stream=_Witnessed(response, witness), request=request
        )

    def _begin(self, request: httpx.Request) -> Witness:
        about = {
            **self._provider,
            "model": request.extensions.get(MODEL, ""),
            "thinking_tag": request.extensions.get(THINKING_TAG),
            "url": str(request.url.copy_with(query=None)),
            "headers": request.headers,
        }
        return self._recording.begin(about, request.content)


class _Witnessed(httpx.AsyncByteStream):
    """A body that is written down while it is read."""

    def __init__(self, response: httpx.Response, witness: Witness) -> None:
        self._response = response
        self._witness = witness

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._response.aiter_bytes():
                self._witness.chunk(data)
                yield data
        except (httpx.HTTPError, OSError) as error:
            self._witness.broken(error)
            raise
        self._witness.whole()

    async def aclose(self) -> None:
        self._witness.left()
        await self._response.aclose()
