"""Asking a server of OpenAI's kind which models it has: `GET /models`, as every local server answers it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import httpx

from agentd.providers.base import ProviderError
from agentd.providers.http_endpoint import Endpoint, Timeouts, describe

_PATH = "/models"
_MOST_BYTES = 4 * 1024 * 1024
_WINDOW_FIELDS = ("max_model_len", "loaded_context_length", "max_context_length", "context_length", "n_ctx")
"""What vLLM, LM Studio, gateways and llama.cpp call the context window; not all tell it."""


@dataclass(frozen=True)
class ServedModel:
    """A model that a server has; `context_window` in tokens, None where it does not say."""

    name: str
    context_window: int | None = None


async def served_models(
    provider: str, base_url: str, api_key: str | None, *, seconds: float = 5.0
) -> tuple[ServedModel, ...]:
    """The models of a server, in its own order, after at most `seconds`. Raises `ProviderError`."""
    endpoint = Endpoint(provider, base_url, api_key, Timeouts(connect=seconds, first_byte=seconds))
    try:
        with anyio.fail_after(seconds):
            listed = _list_in(await _body(endpoint))
    except TimeoutError:
        raise endpoint.too_slow(f"{base_url}{_PATH} was not answered within {seconds:g} s") from None
    except ValueError as error:
        raise ProviderError("protocol", f"{provider}: {base_url}{_PATH} {error}.") from None
    finally:
        await endpoint.aclose()
    return tuple(_models(listed))


async def _body(endpoint: Endpoint) -> bytes:
    peer = endpoint.peer("", _PATH)
    headers = {"Accept": "application/json"}
    if peer.secret:
        headers["Authorization"] = f"Bearer {peer.secret}"
    response = await endpoint.get(peer, _PATH, headers)
    refusal = await endpoint.refusal(peer, response)
    if refusal is not None:
        raise refusal.error
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MOST_BYTES:
                raise ValueError("is too long to be a list of models")
    except (httpx.HTTPError, OSError) as error:
        raise ProviderError("network", f"{endpoint.provider}: {describe(error)}.", retryable=True) from error
    finally:
        await endpoint.close(response)
    return bytes(body)


def _list_in(body: bytes) -> list[Any]:
    """The entries of an answer. Raises `ValueError` with the end of a sentence about it."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("gave no JSON") from None
    listed = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(listed, list):
        raise ValueError("gave no list of models")
    return listed


def _models(listed: list[Any]) -> Iterator[ServedModel]:
    for entry in listed:
        name = entry.get("id") if isinstance(entry, Mapping) else None
        if isinstance(name, str) and name.strip():
            yield ServedModel(name, _window(entry))


def _window(entry: Mapping[str, Any]) -> int | None:
    meta = entry.get("meta")
    for place in (entry, meta if isinstance(meta, Mapping) else {}):
        for field in _WINDOW_FIELDS:
            value = place.get(field)
            if type(value) is int and value > 0:
                return value
    return None
