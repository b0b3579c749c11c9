"""`agentd models`: what can be named with `--model`."""

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from agentd.cli.inquiry import Rows, inquire, parse, show

if TYPE_CHECKING:  # imported when they are needed
    from agentd.client import Client
    from agentd.config.settings import ProviderSettings
    from agentd.protocol.methods import ModelInfo, ModelsResult

_DESCRIPTION = (
    "List the models that can be used and what keeps the others away; * marks the default. A server on this "
    "machine, or one that your configuration describes, is asked for its models when it is named."
)


def main(argv: list[str]) -> int:
    """Print the models, the default marked with a star."""
    said = parse("models", _DESCRIPTION, argv, operand=("PROVIDER", "list only the models of this provider"))
    if said.provider is None:
        return inquire(said, _ask, _rows)
    from agentd.config.settings import load

    providers = load(os.environ).all_providers
    if said.provider not in providers:
        known = ", ".join(providers)
        print(f"agentd: there is no provider {said.provider!r}; there are: {known}.", file=sys.stderr)
        return 1
    provider = providers[said.provider]
    return _ask_server(said, provider) if provider.tells_models else _ask_about(said)


def _ask_about(said: Namespace) -> int:
    async def ask(client: "Client") -> "ModelsResult":
        answer = await client.models()
        of_it = tuple(model for model in answer.models if model.provider == said.provider)
        return answer.model_copy(update={"models": of_it})

    return inquire(said, ask, _rows)


def _ask_server(said: Namespace, provider: "ProviderSettings") -> int:
    import anyio

    from agentd.providers.base import ProviderError
    from agentd.providers.server_models import served_models

    assert provider.base_url is not None
    key = next((key for name in provider.key_variables if (key := os.environ.get(name))), None)
    try:
        served = anyio.run(served_models, provider.name, provider.base_url, key)
    except ProviderError as error:
        print(f"agentd: {error.message}", file=sys.stderr)
        return 1
    show(said, _result(provider, {model.name: model.context_window for model in served}), _rows)
    return 0


def _result(provider: "ProviderSettings", served: "dict[str, int | None]") -> "ModelsResult":
    """What a server has, with what the user says of it."""
    from agentd.config.settings import ModelSettings
    from agentd.protocol.methods import ModelInfo, ModelsResult

    models = []
    for name, window in served.items():
        said = provider.models.get(name, ModelSettings(name))
        models.append(
            ModelInfo(
                id=f"{provider.name}/{name}",
                provider=provider.name,
                name=name,
                context_window=said.context_window or window,
                max_output=said.max_output,
                images=said.images or False,
                reasoning=said.reasoning or False,
                efforts=said.efforts or (),
                available=True,
            )
        )
    return ModelsResult(models=tuple(models), default=None)


async def _ask(client: "Client") -> "ModelsResult":
    return await client.models()


def _rows(answer: "ModelsResult") -> Rows:
    return [("*" if model.id == answer.default else " ", model.id, _state(model)) for model in answer.models]


def _state(model: "ModelInfo") -> str:
    if not model.available:
        return f"not available: {model.reason or 'no reason was given'}"
    return f"{model.context_window:,} tokens" if model.context_window else ""
