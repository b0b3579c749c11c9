"""From settings to providers."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from agentd.config.settings import APIS, ProviderSettings, Settings
from agentd.providers.anthropic import Anthropic
from agentd.providers.apis import load, open_provider, open_scripted
from agentd.providers.base import ProviderError
from agentd.providers.gemini import Gemini
from agentd.providers.openai_chat import OpenAIChat
from agentd.providers.openai_responses import OpenAIResponses
from agentd.providers.scripted import Scripted

CLASSES = {
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "anthropic": Anthropic,
    "gemini": Gemini,
}


@pytest.mark.parametrize("api", APIS)
def test_every_api_that_the_configuration_allows_can_be_opened(api: str) -> None:
    load(api)
    provider = open_provider(ProviderSettings("local", api, "http://127.0.0.1:1/v1"), None)
    assert type(provider) is CLASSES[api]


@pytest.mark.parametrize("name", Settings().built_in)
def test_every_built_in_provider_can_be_opened(name: str) -> None:
    settings = Settings().built_in[name]
    known = replace(settings, base_url=settings.base_url or "https://mine.test/openai/v1")
    assert type(open_provider(known, "key")) is CLASSES[known.api]


def test_an_unknown_api_is_refused_by_name() -> None:
    with pytest.raises(ProviderError, match='"local" has the unknown api "smoke"') as caught:
        open_provider(ProviderSettings("local", "smoke", "http://127.0.0.1:1"), None)
    assert caught.value.kind == "bad_request"


def test_a_provider_without_an_address_is_refused_by_name() -> None:
    with pytest.raises(ProviderError, match='provider "azure" is: set base_url') as caught:
        open_provider(Settings().built_in["azure"], "key")
    assert caught.value.kind == "bad_request"


def test_the_scripted_provider_needs_no_settings() -> None:
    assert isinstance(open_scripted(), Scripted)


@pytest.mark.parametrize(
    ("configured", "connect", "first_byte", "idle"),
    [({}, 15, 300, 180), ({"connect": 2.0, "first_byte": 3.0, "idle": 4.0}, 2, 3, 4)],
    ids=["as usual", "as configured"],
)
@pytest.mark.parametrize("api", APIS)
def test_each_wait_has_its_limit_and_a_whole_answer_has_none(
    api: str, configured: dict[str, float], connect: float, first_byte: float, idle: float
) -> None:
    given: list[dict[str, Any]] = []

    def open_client(**settings: Any) -> httpx.AsyncClient:
        given.append(settings)
        return httpx.AsyncClient(timeout=settings["timeout"])

    settings = ProviderSettings("local", api, "http://127.0.0.1:1/v1", timeouts=configured)
    endpoint = open_provider(settings, None, open_client=open_client)._endpoint  # type: ignore[attr-defined]
    endpoint._open_client()
    assert given[0]["timeout"] == httpx.Timeout(None, connect=connect, pool=connect)
    assert (endpoint.timeouts.first_byte, endpoint.timeouts.idle) == (first_byte, idle)
