"""From settings to providers."""

import pytest

from agentd.config.settings import APIS, ProviderSettings
from agentd.providers.base import ProviderError
from agentd.providers.catalog import open_provider, open_scripted
from agentd.providers.openai_chat import OpenAIChat
from agentd.providers.scripted import Scripted


@pytest.mark.parametrize("api", APIS)
def test_every_api_that_the_configuration_allows_can_be_opened(api: str) -> None:
    provider = open_provider(ProviderSettings("local", api, "http://127.0.0.1:1/v1"), None)
    assert isinstance(provider, OpenAIChat)


def test_an_unknown_api_is_refused_by_name() -> None:
    with pytest.raises(ProviderError, match='"local" has the unknown api "smoke"') as caught:
        open_provider(ProviderSettings("local", "smoke", "http://127.0.0.1:1"), None)
    assert caught.value.kind == "bad_request"


def test_the_scripted_provider_needs_no_settings() -> None:
    assert isinstance(open_scripted(), Scripted)
