"""The variables of the environment that the user's configuration names: keys, and what to pass on."""

import logging
from collections.abc import Mapping, MutableMapping

from agentd.config.secrets import Secrets
from agentd.config.settings import Settings

log = logging.getLogger(__name__)


def take_keys(settings: Settings, secrets: Secrets, environ: MutableMapping[str, str]) -> None:
    """Take the keys of all providers out of the environment, those whose names do not look secret too."""
    for name in _key_names(settings):
        secrets.take(name, environ)


def passed_variables(settings: Settings, secrets: Secrets, environ: Mapping[str, str]) -> dict[str, str]:
    """What commands get by the user's word, but for keys of providers, under whatever name they stand."""
    keys = {secrets.get(name) for name in _key_names(settings)} - {None}
    passed = {}
    for name in settings.passed:
        value = secrets.get(name) or environ.get(name)
        if value in keys:
            log.warning("%s is not passed to commands: it holds the same key as a provider's variable", name)
        elif value is not None:
            passed[name] = value
    return passed


def _key_names(settings: Settings) -> set[str]:
    return {name for provider in settings.all_providers.values() for name in provider.key_variables}
