"""From a provider's settings to the provider. Providers are imported when they are first used."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from agentd.providers.base import NO_HEADERS, Headers, Provider, ProviderError

if TYPE_CHECKING:
    from agentd.providers.http_endpoint import OpenClient
    from agentd.providers.recording import Recording

SCRIPTED = "scripted"
"""The name of the provider that always exists, and the only one that needs no settings."""

_MODULES = {
    "openai-chat": "agentd.providers.openai_chat",
    "openai-responses": "agentd.providers.openai_responses",
    "anthropic": "agentd.providers.anthropic",
    "gemini": "agentd.providers.gemini",
}
APIS = tuple(_MODULES)
"""The wire APIs that a provider's settings can name."""


class ProviderAddress(Protocol):
    """What of a provider's settings says how to reach it."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def api(self) -> str:
        """The wire API that it speaks, one of `APIS`."""
        ...

    @property
    def base_url(self) -> str | None:
        """Where it is, without what the API itself adds, such as "/chat/completions" or "/v1/messages"."""
        ...

    @property
    def dialect(self) -> Mapping[str, Any]:
        """Fields of the API's dialect that differ from its defaults."""
        ...

    @property
    def timeouts(self) -> Mapping[str, float]:
        """Fields of `Timeouts` that differ from the defaults, in seconds."""
        ...


def open_scripted() -> Provider:
    """The provider `scripted`."""
    from agentd.providers.scripted import Scripted

    return Scripted()


def load(api: str) -> None:
    """Import what providers of an API need, which takes a while. May run in a thread."""
    if api in _MODULES:
        import_module(_MODULES[api])


def open_provider(
    address: ProviderAddress,
    api_key: str | None,
    headers: Headers = NO_HEADERS,
    open_client: "OpenClient | None" = None,
) -> Provider:
    """The provider at an address. Nothing is sent before its first request.

    `headers` go with each request. `open_client` makes its HTTP client where that is not the usual one.
    Raises `ProviderError` for an API that there is not, and for an address that is not known.
    """
    if address.api not in _MODULES:
        raise ProviderError(
            "bad_request",
            f'Provider "{address.name}" has the unknown api "{address.api}". Known: {", ".join(APIS)}.',
        )
    if address.base_url is None:
        raise ProviderError(
            "bad_request", f'It is not known where provider "{address.name}" is: set base_url.'
        )
    from agentd.providers.http_endpoint import Timeouts

    where = (address.name, address.base_url, api_key)
    how: dict[str, Any] = {"timeouts": Timeouts(**address.timeouts), "headers": headers}
    if open_client is not None:
        how["open_client"] = open_client
    if address.api == "openai-chat":
        from agentd.providers.openai_chat import ChatDialect, OpenAIChat

        return OpenAIChat(*where, dialect=ChatDialect(**address.dialect), **how)
    if address.api == "openai-responses":
        from agentd.providers.openai_responses import OpenAIResponses, ResponsesDialect

        return OpenAIResponses(*where, dialect=ResponsesDialect(**address.dialect), **how)
    if address.api == "anthropic":
        from agentd.providers.anthropic import Anthropic, Dialect

        return Anthropic(*where, dialect=Dialect(**address.dialect), **how)
    from agentd.providers.gemini import Gemini, GeminiDialect

    return Gemini(*where, dialect=GeminiDialect(**address.dialect), **how)


def open_recorded(
    address: ProviderAddress, api_key: str | None, headers: Headers = NO_HEADERS, *, recording: "Recording"
) -> Provider:
    """The same, with all that is said to the server and by it written into a recording."""
    from agentd.providers.recorded_http import RecordingClient

    return open_provider(address, api_key, headers, partial(RecordingClient, recording, address))
