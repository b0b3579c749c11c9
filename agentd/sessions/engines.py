"""Models by name: from the user's configuration and keys to a provider that can be asked."""

from collections.abc import Callable, Iterator

import anyio.to_thread

from agentd.agent.host import Engine
from agentd.config.builtin import BUILT_IN
from agentd.config.settings import ModelSettings, ProviderSettings, Settings
from agentd.config.toml_table import meant, shown
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Effort
from agentd.protocol.methods import ModelInfo, Problem
from agentd.providers import catalog
from agentd.providers.apis import SCRIPTED, load, open_provider, open_scripted
from agentd.providers.base import Model, Provider
from agentd.providers.prices import Prices, Rates

ANY = "*"
"""Stands for all models of a provider where none is known by name, or none can be asked."""

_MOST_OUTPUT = 32_000
"""The most tokens of an answer to ask for unless the user says otherwise: servers count them as if used."""


class ConfiguredEngines:
    """The models that there are. Providers are made when first used, and anew when their key changes."""

    def __init__(
        self,
        settings: Settings,
        secret: Callable[[str], str | None],
        open_provider: Callable[[ProviderSettings, str | None], Provider] = open_provider,
    ) -> None:
        """`secret` gives the value of an environment variable that holds a key."""
        self._settings = settings
        self._known = settings.all_providers
        self._secret = secret
        self._open_provider = open_provider
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
        """Read what a model's first prompt needs, in a thread, so that it need not wait."""
        provider = self._known.get((model or "").partition("/")[0])
        if provider is not None:
            await anyio.to_thread.run_sync(_read_for, provider, abandon_on_cancel=True)

    def engine(self, model: str | None, effort: Effort | None) -> Engine:
        """The model of that name and its provider. Raises `RpcError` noModel, saying the way out."""
        if model is None:
            raise self._no_model("No model is chosen.")
        provider_name, _, name = model.partition("/")
        if not name or name == ANY:
            raise self._no_model(f"{shown(model)} names no model: {_form(model)}.")
        if provider_name == SCRIPTED:
            return Engine(_scripted_model(name), self._provider(SCRIPTED), effort)
        provider = self._known.get(provider_name)
        if provider is None:
            if (wrong := self._wrong_variable(provider_name)) is not None:
                raise self._no_model(f'Model "{model}" cannot be asked: {wrong}.')
            near = meant(provider_name, self._known)
            raise self._no_model(f'There is no provider "{provider_name}" for model "{model}"{near}.')
        if (lack := self._lack(provider)) is not None:
            raise self._no_model(f'Model "{model}" cannot be asked: {lack}.')
        return Engine(_model(provider, name), self._provider(provider_name), effort)

    def _no_model(self, why: str) -> RpcError:
        errors = [problem.message for problem in self._settings.problems if problem.severity == "error"]
        message = " ".join([why, *(f"The configuration has an error: {error}" for error in errors)])
        return RpcError("noModel", message, hint=f"{self._way_out()} `agentd models` lists all.")

    def _way_out(self) -> str:
        if usable := self._usable():
            return (
                'Set model = "provider/model" in your configuration, or AGENTD_MODEL. '
                f"Providers that can be asked now: {', '.join(usable)}."
            )
        local = [f"{name}/<model>" for name, known in BUILT_IN.items() if known.is_local]
        keys = [known.keys[0] for known in list(BUILT_IN.values())[:4]]
        return (
            f"Set the key of a provider, such as {', '.join(keys)}, and then model or AGENTD_MODEL to "
            f'"provider/model". For a server on this machine name {", ".join(local[:-1])} or {local[-1]}; '
            "for any other describe it as [providers.<name>] in your configuration."
        )

    def _usable(self) -> list[str]:
        """The providers that can be asked now. A local one counts where the user describes it: none is asked
        whether it runs.
        """
        return [
            provider.name
            for provider in self._known.values()
            if self._lack(provider) is None
            and (not provider.is_local or provider.name in self._settings.providers)
        ]

    def _lack(self, provider: ProviderSettings) -> str | None:
        """What keeps a provider from being asked, with the way out; None where nothing does."""
        if provider.base_url is None:
            return f"its address is not known: set {' or '.join(provider.base_url_variables)}"
        if provider.needs_key and self._key(provider) is None:
            return f"{' or '.join(provider.key_variables)} is not set"
        return None

    def _wrong_variable(self, name: str) -> str | None:
        """What is wrong with the variable that a built-in provider was left out for."""
        variables = BUILT_IN[name].base_urls if name in BUILT_IN else ()
        said = (problem.message for problem in self._settings.problems if problem.severity == "warning")
        return next((message for message in said if message.partition(":")[0] in variables), None)

    def _provider(self, name: str) -> Provider:
        provider = self._providers.get(name)
        if provider is None:
            if name == SCRIPTED:
                provider = open_scripted()
            else:
                settings = self._known[name]
                provider = self._open_provider(settings, self._key(settings))
            self._providers[name] = provider
        return provider

    def _key(self, provider: ProviderSettings) -> str | None:
        if (given := self._credentials.get(provider.name)) is not None:
            return given
        return next((key for name in provider.key_variables if (key := self._secret(name))), None)

    # --- what there is ----------------------------------------------------------------------------

    def models(self) -> tuple[ModelInfo, ...]:
        """What can be named, and for the rest why not. No server is asked.

        A provider that cannot be asked, or whose models nobody here knows, stands there once, as
        "provider/*", which cannot be named.
        """
        found = [info for provider in self._known.values() for info in self._listed(provider)]
        found.sort(key=lambda info: not info.available)
        return (*found, _demo())

    def _listed(self, provider: ProviderSettings) -> Iterator[ModelInfo]:
        lack = self._lack(provider)
        names = dict.fromkeys(provider.models)
        default, _, name = (self._settings.model or "").partition("/")
        if default == provider.name and name:
            names[name] = None
        if lack is None and provider.is_original:
            names |= dict.fromkeys(catalog.models_of(provider.name))
        for name in names:
            yield _info(provider, name, lack)
        if not names:
            hint = f"name one as in {provider.name}/<model>"
            if provider.tells_models:
                hint += f"; `agentd models {provider.name}` asks {provider.base_url} which there are"
            yield _info(provider, ANY, lack or hint)

    def problems(self) -> Iterator[Problem]:
        """Keys that the configuration names and nobody has set."""
        for provider in self._settings.providers.values():
            if provider.key_variables and self._key(provider) is None and not provider.is_local:
                variables = " or ".join(provider.key_variables)
                message = f"{variables} is not set: requests to {provider.name} carry no key."
                yield Problem(severity="warning", message=message)

    async def aclose(self) -> None:
        """Give back all connections."""
        for provider in (*self._providers.values(), *self._retired):
            await provider.aclose()


def _read_for(provider: ProviderSettings) -> None:
    load(provider.api)
    if _is_in_catalog(provider):
        catalog.preload()


def _form(model: str) -> str:
    """How a model is named, by its own example where a provider is known to have it."""
    found = [f'"{provider}/{model}"' for provider in catalog.providers_of(model)]
    return 'it takes the form "provider/model"' + (f", as in {' or '.join(found[:3])}" if found else "")


def _is_in_catalog(provider: ProviderSettings) -> bool:
    """Whether the catalogue speaks of a provider's models. A server of one's own may serve them otherwise."""
    return provider.name in BUILT_IN and not provider.is_local


def _facts(provider: ProviderSettings, name: str) -> catalog.Facts:
    return catalog.facts_of(provider.name, name) if _is_in_catalog(provider) else catalog.UNKNOWN


def _model(provider: ProviderSettings, name: str) -> Model:
    """What is known of a model: what the user says, else the catalogue, else careful defaults."""
    said, known = provider.models.get(name, ModelSettings(name)), _facts(provider, name)
    limit = min(known.max_output, _MOST_OUTPUT) if provider.asks_limit and known.max_output else None
    return Model(
        provider.name,
        name,
        context_window=said.context_window or known.context_window,
        max_output=said.max_output or limit,
        images=known.images if said.images is None else said.images,
        reasoning=known.reasoning if said.reasoning is None else said.reasoning,
        efforts=known.efforts if said.efforts is None else said.efforts,
        prices=known.prices if said.prices is None else Prices(Rates(**said.prices)),
    )


def _info(provider: ProviderSettings, name: str, lack: str | None) -> ModelInfo:
    model = _model(provider, name)
    return ModelInfo(
        id=model.id,
        provider=provider.name,
        name=name,
        context_window=model.context_window,
        max_output=model.max_output or _facts(provider, name).max_output,
        images=model.images,
        reasoning=model.reasoning,
        efforts=model.efforts,
        available=lack is None,
        reason=lack,
    )


def _scripted_model(name: str) -> Model:
    return Model(SCRIPTED, name, images=True)


def _demo() -> ModelInfo:
    return ModelInfo(
        id=f"{SCRIPTED}/demo",
        provider=SCRIPTED,
        name="demo",
        images=False,
        reasoning=False,
        efforts=(),
        available=True,
    )
