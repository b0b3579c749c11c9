"""Models by name: from the user's configuration and keys to a provider that can be asked."""

from collections.abc import Callable, Iterator

import anyio.to_thread

from agentd.agent.host import Engine
from agentd.config.settings import ModelSettings, ProviderSettings, Settings
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Effort
from agentd.protocol.methods import ModelInfo, Problem
from agentd.providers.base import Model, Provider
from agentd.providers.catalog import SCRIPTED, load, open_provider, open_scripted


class ConfiguredEngines:
    """The models of a configuration. Providers are made when first used, and anew when their key changes."""

    def __init__(self, settings: Settings, secret: Callable[[str], str | None]) -> None:
        """`secret` gives the value of an environment variable that the configuration names."""
        self._settings = settings
        self._secret = secret
        self._credentials: dict[str, str] = {}
        self._providers: dict[str, Provider] = {}
        self._retired: list[Provider] = []

    def set_credential(self, provider: str, secret: str | None) -> None:
        """A key from the client, in memory only and before the environment's; None takes it back."""
        if secret is None:
            self._credentials.pop(provider, None)
        else:
            self._credentials[provider] = secret
        if (old := self._providers.pop(provider, None)) is not None:
            self._retired.append(old)  # a run may still be using it

    async def warm_up(self, model: str | None) -> None:
        """Import what the provider of a model needs, in a thread, so that its first prompt need not wait."""
        provider = self._settings.providers.get((model or "").partition("/")[0])
        if provider is not None:
            await anyio.to_thread.run_sync(load, provider.api, abandon_on_cancel=True)

    def engine(self, model: str | None, effort: Effort | None) -> Engine:
        """The model of that name and its provider. Raises `RpcError` noModel, saying the way out."""
        if model is None:
            raise self._no_model("No model is chosen.")
        provider_name, _, name = model.partition("/")
        if not name:
            raise self._no_model(f'"{model}" names no model: it takes the form "provider/model".')
        if provider_name == SCRIPTED:
            return Engine(_scripted_model(name), self._provider(SCRIPTED), effort)
        provider = self._settings.providers.get(provider_name)
        if provider is None:
            known = ", ".join(sorted(self._settings.providers)) or "none"
            raise self._no_model(
                f'There is no provider "{provider_name}" for model "{model}" (there are: {known}).'
            )
        return Engine(_model(provider, name), self._provider(provider_name), effort)

    def _no_model(self, why: str) -> RpcError:
        errors = [problem.message for problem in self._settings.problems if problem.severity == "error"]
        message = " ".join([why, *(f"The configuration has an error: {error}" for error in errors)])
        hint = 'Set model = "provider/model" and [providers.<name>] in your configuration, or AGENTD_MODEL.'
        return RpcError("noModel", message, hint=hint)

    def _provider(self, name: str) -> Provider:
        provider = self._providers.get(name)
        if provider is None:
            if name == SCRIPTED:
                provider = open_scripted()
            else:
                settings = self._settings.providers[name]
                provider = open_provider(settings, self._key(settings))
            self._providers[name] = provider
        return provider

    def _key(self, provider: ProviderSettings) -> str | None:
        if (given := self._credentials.get(provider.name)) is not None:
            return given
        return self._secret(provider.api_key_env) if provider.api_key_env is not None else None

    def models(self) -> tuple[ModelInfo, ...]:
        """All models that the configuration describes."""
        return tuple(self._described())

    def _described(self) -> Iterator[ModelInfo]:
        for provider in self._settings.providers.values():
            for name in provider.models:
                model = _model(provider, name)
                yield ModelInfo(
                    id=model.id,
                    provider=provider.name,
                    name=name,
                    context_window=model.context_window,
                    max_output=model.max_output,
                    images=model.images,
                    reasoning=model.reasoning,
                    efforts=model.efforts,
                    available=True,
                )
        yield ModelInfo(
            id=f"{SCRIPTED}/demo",
            provider=SCRIPTED,
            name="demo",
            images=False,
            reasoning=False,
            efforts=(),
            available=True,
        )

    def problems(self) -> Iterator[Problem]:
        """Keys that the configuration names and nobody has set."""
        for provider in self._settings.providers.values():
            if provider.api_key_env is not None and self._key(provider) is None:
                message = f"{provider.api_key_env} is not set: requests to {provider.name} carry no key."
                yield Problem(severity="warning", message=message)

    async def aclose(self) -> None:
        """Give back all connections."""
        for provider in (*self._providers.values(), *self._retired):
            await provider.aclose()


def _model(provider: ProviderSettings, name: str) -> Model:
    """What is known of a model; one that is not described is asked with careful defaults."""
    known = provider.models.get(name, ModelSettings(name))
    return Model(
        provider.name,
        name,
        context_window=known.context_window,
        max_output=known.max_output,
        images=known.images,
        reasoning=known.reasoning,
        efforts=tuple(known.efforts),
    )


def _scripted_model(name: str) -> Model:
    return Model(SCRIPTED, name, images=True)
