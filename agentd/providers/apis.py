"""From a provider's settings to the provider. Providers are imported when they are first used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from agentd.providers.base import Provider, ProviderError

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


def open_provider(address: ProviderAddress, api_key: str | None) -> Provider:
    """The provider at an address. Nothing is sent before its first request.

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

    timeouts = Timeouts(**address.timeouts)
    name, base_url, dialect = address.name, address.base_url, address.dialect
    if address.api == "openai-chat":
        from agentd.providers.openai_chat import ChatDialect, OpenAIChat

        return OpenAIChat(name, base_url, api_key, dialect=ChatDialect(**dialect), timeouts=timeouts)
    if address.api == "openai-responses":
        from agentd.providers.openai_responses import OpenAIResponses, ResponsesDialect

        return OpenAIResponses(
            name, base_url, api_key, dialect=ResponsesDialect(**dialect), timeouts=timeouts
        )
    if address.api == "anthropic":
        from agentd.providers.anthropic import Anthropic, Dialect

        return Anthropic(name, base_url, api_key, dialect=Dialect(**dialect), timeouts=timeouts)
    from agentd.providers.gemini import Gemini, GeminiDialect

    return Gemini(name, base_url, api_key, dialect=GeminiDialect(**dialect), timeouts=timeouts)
