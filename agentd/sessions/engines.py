"""Models by name: from the user's configuration and keys to a provider that can be asked."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import anyio.to_thread

from agentd.agent.host import Engine
from agentd.config.builtin import BUILT_IN
from agentd.config.settings import ProviderSettings, Settings
from agentd.config.toml_table import meant, shown
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Effort
from agentd.protocol.methods import ModelInfo, Problem
from agentd.providers import catalog
from agentd.providers.apis import SCRIPTED, load, open_provider, open_scripted
from agentd.providers.base import Headers, Model, Provider, ProviderError
from agentd.sessions.known_models import KnownModels, is_in_catalog

ANY = "*"
"""Stands for all models of a provider where none is known by name, or none can be asked."""


class ConfiguredEngines:
    """The models that there are. Providers are made when first used, and anew when their key changes."""

    def __init__(
        self,
        settings: Settings,
        secret: Callable[[str], str | None],
        open_provider: Callable[[ProviderSettings, str | None, Headers], Provider] = open_provider,
    ) -> None:
        """`secret` gives the value of an environment variable that holds a key or a secret header."""
        self._settings = settings
        self._known = settings.all_providers
        self._models = KnownModels()
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
        return Engine(self._models.model(provider, name), self._provider(provider_name), effort)

    def learn_window(self, model: Model, tokens: int) -> Model:
        """A server has said how large a model's context window is; gives the model as it is known now.

        It counts for all sessions until the daemon ends, unless the user has configured another.
        """
        provider = self._known.get(model.provider)
        if provider is None:
            return model
        self._models.learn_window(model.provider, model.name, tokens)
        return replace(model, context_window=self._models.model(provider, model.name).context_window)

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
                provider = self._open_provider(settings, self._key(settings), self._headers(settings))
            self._providers[name] = provider
        return provider

    def _key(self, provider: ProviderSettings) -> str | None:
        if (given := self._credentials.get(provider.name)) is not None:
            return given
        return next((key for name in provider.key_variables if (key := self._secret(name))), None)

    def _headers(self, provider: ProviderSettings) -> Headers:
        """The headers of a provider's configuration; one whose variable is not set is left out."""
        values = {name: self._secret(variable) for name, variable in provider.headers.variables.items()}
        return Headers(provider.headers.plain, {name: value for name, value in values.items() if value})

    # --- what there is ----------------------------------------------------------------------------

    def models(self) -> tuple[ModelInfo, ...]:
        """What can be named, and for the rest why not. No server is asked.

        A provider that cannot be asked, or whose models nobody here knows, stands there once, as
        "provider/*", which cannot be named.
        """
        found = [info for provider in self._known.values() for info in self._listed(provider)]
        found.sort(key=lambda info: not info.available)
        return (*found, _demo())

    async def models_of(self, name: str) -> tuple[ModelInfo, ...]:
        """The models of one provider. A server that is not a hosted one's own is asked which it has.

        Where it does not answer within seconds, the models that the user describes stand there with the
        reason, or "provider/*" where there are none. Raises `RpcError` invalidParams for an unknown provider.
        """
        if name == SCRIPTED:
            return (_demo(),)
        provider = self._known.get(name)
        if provider is None:
            near = meant(name, self._known)
            known = ", ".join(self._known)
            what = f"there is no provider {name!r}{near}; there are: {known}"
            raise RpcError("invalidParams", f"/provider: {what}")
        if not provider.tells_models or self._lack(provider) is not None:
            return tuple(self._listed(provider))
        from agentd.providers.server_models import served_models

        try:
            served = await served_models(provider, self._key(provider), self._headers(provider))
        except ProviderError as error:
            names = tuple(provider.models) or (ANY,)
            return tuple(self._models.info(provider, each, error.message) for each in names)
        windows = {model.name: model.context_window for model in served}
        return tuple(self._models.info(provider, each, None, window) for each, window in windows.items())

    def _listed(self, provider: ProviderSettings) -> Iterator[ModelInfo]:
        lack = self._lack(provider)
        names = dict.fromkeys(provider.models)
        default, _, name = (self._settings.model or "").partition("/")
        if default == provider.name and name:
            names[name] = None
        if lack is None and provider.is_original:
            names |= dict.fromkeys(catalog.models_of(provider.name))
        for name in names:
            yield self._models.info(provider, name, lack)
        if not names:
            hint = f"name one as in {provider.name}/<model>"
            if provider.tells_models:
                hint += f"; `agentd models {provider.name}` asks {provider.base_url} which there are"
            yield self._models.info(provider, ANY, lack or hint)

    def problems(self) -> Iterator[Problem]:
        """Keys that the configuration names and nobody has set."""
        for provider in self._settings.providers.values():
            if provider.key_variables and self._key(provider) is None and not provider.is_local:
                variables = " or ".join(provider.key_variables)
                message = f"{variables} is not set: requests to {provider.name} carry no key."
                yield Problem(severity="warning", message=message)
            for header, variable in provider.headers.variables.items():
                if self._secret(variable) is None:
                    message = f"{variable} is not set: requests to {provider.name} carry no header {header}."
                    yield Problem(severity="warning", message=message)

    async def aclose(self) -> None:
        """Give back all connections."""
        for provider in (*self._providers.values(), *self._retired):
            await provider.aclose()


def _read_for(provider: ProviderSettings) -> None:
    load(provider.api)
    if is_in_catalog(provider):
        catalog.preload()


def _form(model: str) -> str:
    """How a model is named, by its own example where a provider is known to have it."""
    found = [f'"{provider}/{model}"' for provider in catalog.providers_of(model)]
    return 'it takes the form "provider/model"' + (f", as in {' or '.join(found[:3])}" if found else "")


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
