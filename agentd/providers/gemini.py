"""Provider for every server that speaks Gemini's generateContent: the Gemini API, Vertex AI, gateways.

The request is built in `gemini_request`, the answer read in `gemini_decoder`, what HTTP is about is in
`http_endpoint` and `http_answer`; here they meet.
"""

import logging
import re
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import quote, urlsplit

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.gemini_decoder import GeminiDecoder
from agentd.providers.gemini_dialect import GEMINI, VERTEX, GeminiDialect, bare_name
from agentd.providers.gemini_request import generate_body, told_to_think
from agentd.providers.http_answer import Answer
from agentd.providers.http_endpoint import DEFAULT_TIMEOUTS, Endpoint, OpenClient, Timeouts
from agentd.providers.http_errors import Peer

__all__ = ["BASE_URL", "GEMINI", "VERTEX", "Gemini", "GeminiDialect", "Timeouts"]

BASE_URL = "https://generativelanguage.googleapis.com"

_VERSION = re.compile(r"/v\d+[a-z0-9]*(?=/|$)")
_LAST_WAIT_SECONDS = 0.8
"""How long what follows a finishReason may take: nothing should, and no end mark says so."""

_log = logging.getLogger(__name__)


class Gemini:
    """A `Provider` over one base URL, for example "https://generativelanguage.googleapis.com/v1beta".

    `name` is the provider's name in the configuration and in messages. Without `api_key` no key is sent.
    The version may be left out of the address. A faulty address or key is told by the first request, before
    anything is sent.
    """

    def __init__(
        self,
        name: str = "google",
        base_url: str = BASE_URL,
        api_key: str | None = None,
        *,
        dialect: GeminiDialect = GEMINI,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        open_client: OpenClient = httpx.AsyncClient,
    ) -> None:
        timeouts = replace(timeouts, tail=min(timeouts.tail, _LAST_WAIT_SECONDS))
        self._endpoint = Endpoint(
            name, base_url, api_key, timeouts, usual_end=f"/{dialect.version}", open_client=open_client
        )
        self._dialect = dialect
        self._prefix = "" if _names_version(base_url) else f"/{dialect.version}"
        self._refused: dict[str, set[str]] = {}  # what models do not take of a thinkingConfig, by their names

    def stream(self, request: ModelRequest) -> Answer:
        """See `Provider.stream`."""
        path = self._prefix + self._dialect.path.format(model=quote(bare_name(request.model.name), safe="/"))
        return Answer(
            self._endpoint,
            lambda: self._endpoint.peer(request.model.name, path),
            lambda peer: self._send(peer, path, request),
            GeminiDecoder,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    async def _send(self, peer: Peer, path: str, request: ModelRequest) -> httpx.Response:
        """Send a request; give the answer's head if it is one to read. Raises `ProviderError`.

        A model may refuse how much it was asked to think, and a server the form of the schemas: what was
        refused is left out from then on.
        """
        while True:
            dialect, refused = self._dialect, self._refused.get(request.model.name, set())
            body = generate_body(request, dialect, without=refused)
            response = await self._endpoint.post(peer, path, body, self._headers(peer))
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                return response
            bad = refusal.error.status == HTTPStatus.BAD_REQUEST
            if bad and "parametersJsonSchema" in refusal.text and dialect.schemas == "json":
                self._dialect = replace(dialect, schemas="subset")
            elif bad and "thinking" in refusal.text.lower() and (told := told_to_think(body)):
                self._refused[request.model.name] = refused | told
            else:
                raise refusal.error
            _log.warning("%s; asking again without that", refusal.error.message)

    def _headers(self, peer: Peer) -> dict[str, str]:
        if not peer.secret:
            return {}
        if self._dialect.auth == "bearer":
            return {"Authorization": f"Bearer {peer.secret}"}
        return {"x-goog-api-key": peer.secret}


def _names_version(base_url: str) -> bool:
    """Whether an address names a version of the API, such as "/v1beta". A faulty one is told by others."""
    try:
        return _VERSION.search(urlsplit(base_url.strip()).path) is not None
    except ValueError:
        return False
