"""Provider for every server that speaks Gemini's generateContent: the Gemini API, Vertex AI, gateways.

The request is built in `gemini_request`, the answer read in `gemini_decoder`, what HTTP is about is in
`http_endpoint` and `http_answer`; here they meet.
"""

import logging
import re
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from urllib.parse import quote

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.gemini_decoder import GeminiDecoder
from agentd.providers.gemini_dialect import GEMINI, VERTEX, GeminiDialect, bare_name, version_prefix
from agentd.providers.gemini_request import (
    BAD_SIGNATURE,
    NO_SIGNATURE,
    Signatures,
    generate_body,
    told_to_think,
)
from agentd.providers.http_endpoint import Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.http_provider import HttpProvider, key_header

__all__ = ["GEMINI", "VERTEX", "Gemini", "GeminiDialect", "Timeouts"]

_LAST_WAIT_SECONDS = 0.8
"""How long what follows a finishReason may take: nothing should, and no end mark says so."""

_BAD_SIGNATURE = re.compile(BAD_SIGNATURE, re.IGNORECASE)
_NO_SIGNATURE = re.compile(NO_SIGNATURE, re.IGNORECASE)

_log = logging.getLogger(__name__)


class Gemini(HttpProvider[GeminiDialect]):
    """A `Provider` over one base URL, for example "https://generativelanguage.googleapis.com/v1beta".

    The version may be left out of the address.
    """

    @cached_property
    def _refused(self) -> dict[str, set[str]]:
        """What models do not take of a thinkingConfig, by their names."""
        return {}

    def _plain(self) -> GeminiDialect:
        return GEMINI

    def _path(self, model: str) -> str:
        prefix = version_prefix(self._base_url, self._dialect)
        return prefix + self._dialect.path.format(model=quote(bare_name(model), safe="/"))

    def _decoder(self, peer: Peer) -> GeminiDecoder:
        return GeminiDecoder(peer)

    def _timeouts(self, timeouts: Timeouts) -> Timeouts:
        return replace(timeouts, tail=min(timeouts.tail, _LAST_WAIT_SECONDS))

    def _usual_end(self) -> str:
        return f"/{self._dialect.version}"

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """See `HttpProvider`.

        A model may refuse how much it was asked to think, and a server the form of the schemas: what was
        refused is left out from then on. Signatures can become worthless, as another key or another server
        behind the same address did not make them: a request that is refused for one is sent again without
        them, or the session could not go on.
        """
        path, headers = self._path(request.model.name), key_header(peer.secret, self._dialect.auth)
        signatures: Signatures = "kept"
        while True:
            dialect, refused = self._dialect, self._refused.get(request.model.name, set())
            body = generate_body(request, dialect, without=refused, signatures=signatures)
            response = await self._endpoint.post(peer, path, body, headers)
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                return response
            bad = refusal.error.status == HTTPStatus.BAD_REQUEST
            if bad and "parametersJsonSchema" in refusal.text and dialect.schemas == "json":
                self._dialect = replace(dialect, schemas="subset")
            elif bad and signatures == "kept" and _BAD_SIGNATURE.search(refusal.text):
                signatures = "dropped"
            elif bad and signatures != "made" and _NO_SIGNATURE.search(refusal.text):
                signatures = "made"
            elif bad and "thinking" in refusal.text.lower() and (told := told_to_think(body)):
                self._refused[request.model.name] = refused | told
            else:
                raise refusal.error
            _log.warning("%s; asking again without that", refusal.error.message)
