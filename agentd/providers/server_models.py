"""Asking a server which models it has, in the way of the API that it speaks.

OpenAI's `GET /models` is what every local server answers; Anthropic's and Gemini's lists come from proxies
and gateways of their kind.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import httpx

from agentd.providers.apis import ProviderAddress
from agentd.providers.base import NO_HEADERS, Headers, ProviderError
from agentd.providers.http_endpoint import Endpoint, Timeouts, describe
from agentd.providers.http_provider import key_header

_MOST_BYTES = 4 * 1024 * 1024
_WINDOW_FIELDS = (
    "max_model_len", "loaded_context_length", "max_context_length", "context_length", "n_ctx",
    "inputTokenLimit", "max_input_tokens",
)  # fmt: skip
"""What vLLM, LM Studio, gateways, llama.cpp, Gemini and Anthropic call the context window; not all tell."""


@dataclass(frozen=True)
class ServedModel:
    """A model that a server has; `context_window` in tokens, None where it does not say."""

    name: str
    context_window: int | None = None


@dataclass(frozen=True)
class _Form:
    """How an API lists its models: at `path`, under the key `models`, each under its `name`."""

    path: str
    auth: str = "bearer"
    models: str = "data"
    name: str = "id"
    headers: Mapping[str, str] | None = None


async def served_models(
    address: ProviderAddress, api_key: str | None, headers: Headers = NO_HEADERS, *, seconds: float = 5.0
) -> tuple[ServedModel, ...]:
    """The models of a server, in its own order, after at most `seconds`. Raises `ProviderError`."""
    assert address.base_url is not None
    form, waits = _form(address), Timeouts(connect=seconds, first_byte=seconds)
    endpoint = Endpoint(address.name, address.base_url, api_key, waits, headers=headers)
    where = endpoint.peer("", form.path).url
    try:
        with anyio.fail_after(seconds):
            listed = _list_in(await _body(endpoint, form), form)
    except TimeoutError:
        raise endpoint.too_slow(f"{where} was not answered within {seconds:g} s") from None
    except ValueError as error:
        raise ProviderError("protocol", f"{address.name}: {where} {error}.") from None
    finally:
        await endpoint.aclose()
    return tuple(_models(listed, form))


def _form(address: ProviderAddress) -> _Form:
    """How a server's own dialect of its API lists models."""
    if address.api == "anthropic":
        from agentd.providers.anthropic_models import Dialect

        anthropic = Dialect(**address.dialect)
        version = {"anthropic-version": anthropic.version}
        return _Form("/v1/models?limit=1000", anthropic.auth, headers=version)
    if address.api == "gemini":
        from agentd.providers.gemini_dialect import GeminiDialect, version_prefix

        gemini = GeminiDialect(**address.dialect)
        path = f"{version_prefix(address.base_url or '', gemini)}/models?pageSize=1000"
        return _Form(path, gemini.auth, "models", "name")
    return _Form("/models", address.dialect.get("auth", "bearer"))


async def _body(endpoint: Endpoint, form: _Form) -> bytes:
    peer = endpoint.peer("", form.path)
    headers = {"Accept": "application/json", **(form.headers or {}), **key_header(peer.secret, form.auth)}
    response = await endpoint.get(peer, form.path, headers)
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


def _list_in(body: bytes, form: _Form) -> list[Any]:
    """The entries of an answer. Raises `ValueError` with the end of a sentence about it."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("gave no JSON") from None
    listed = answer.get(form.models) if isinstance(answer, Mapping) else None
    if not isinstance(listed, list):
        raise ValueError("gave no list of models")
    return listed


def _models(listed: list[Any], form: _Form) -> Iterator[ServedModel]:
    for entry in listed:
        name = entry.get(form.name) if isinstance(entry, Mapping) else None
        if isinstance(name, str) and name.strip():
            yield ServedModel(name.removeprefix("models/"), _window(entry))


def _window(entry: Mapping[str, Any]) -> int | None:
    meta = entry.get("meta")
    for place in (entry, meta if isinstance(meta, Mapping) else {}):
        for field in _WINDOW_FIELDS:
            value = place.get(field)
            if type(value) is int and value > 0:
                return value
    return None
