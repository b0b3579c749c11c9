"""What is known of models: windows, limits, abilities and prices, from `catalog.json`.

The file is made by `.scripts/make_model_catalog.py` and holds for each provider and model a list, shorter
where nothing follows: the most tokens of a prompt, the output limit in tokens, `i` for images and `r` for
reasoning, the efforts as positions in `EFFORTS`, prices in USD for a million tokens (input, output, read from
the cache, written to it), and for each tier the prompt tokens above which it holds, and its prices. All of
these models call tools.

It is read at the first question and never at start-up.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from agentd.protocol.messages import Effort
from agentd.providers.prices import Prices, Rates

EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")

_VENDORS = {
    "openai": "openai", "anthropic": "anthropic", "google": "google", "x-ai": "xai", "xai": "xai",
    "deepseek": "deepseek", "deepseek-ai": "deepseek", "mistralai": "mistral", "mistral": "mistral",
    "moonshotai": "moonshot", "z-ai": "zai", "zai-org": "zai", "zai": "zai",
}  # fmt: skip
"""The vendors in the model names of gateways (`x-ai/grok-4.7`), and the providers that they are here."""

_DATE = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d)$")


@dataclass(frozen=True)
class Facts:
    """What is known of a model; sizes are tokens, None and empty where nothing is."""

    context_window: int | None = None
    max_output: int | None = None
    images: bool = False
    reasoning: bool = False
    efforts: tuple[Effort, ...] = ()
    prices: Prices | None = None


UNKNOWN = Facts()
"""What to suppose of a model that nobody has described: no images, no effort, no limit of its own."""


def facts_of(provider: str, model: str) -> Facts:
    """What is known of a model, `UNKNOWN` where nothing is.

    A gateway's model that is listed under its vendor's name only is taken to be able to do the same. What it
    costs there is not known.
    """
    listed = _table().get(provider, {})
    fields = listed.get(model) or listed.get(model.lower())
    if fields is not None:
        return _facts(fields)
    vendor, slash, name = model.partition("/")
    vendor = _VENDORS.get(vendor.lower(), "") if slash else "openai" if provider == "azure" else ""
    fields = _by_plain_name(vendor).get(_plain(name if slash else model))
    if fields is None:
        return UNKNOWN
    facts = _facts(fields)
    return Facts(facts.context_window, facts.max_output, facts.images, facts.reasoning, facts.efforts)


def models_of(provider: str) -> Sequence[str]:
    """The models of a provider that are known by name."""
    return tuple(_table().get(provider, ()))


def providers_of(model: str) -> Iterator[str]:
    """The providers that have a model of exactly that name."""
    return (provider for provider, models in _table().items() if model in models)


def preload() -> None:
    """Read the file, which takes some milliseconds. May run in a thread."""
    _table()


@cache
def _table() -> Mapping[str, Mapping[str, Sequence[Any]]]:
    text = resources.files(__package__).joinpath("catalog.json").read_text("utf-8")
    models: Mapping[str, Mapping[str, Sequence[Any]]] = json.loads(text)["models"]
    return models


@cache
def _by_plain_name(vendor: str) -> Mapping[str, Sequence[Any]]:
    return {_plain(name): fields for name, fields in _table().get(vendor, {}).items()}


def _plain(name: str) -> str:
    """A name without what gateways write differently: `claude-opus-4.6:beta` is `claude-opus-4-6`."""
    return _DATE.sub("", name.lower().partition(":")[0]).replace(".", "-")


def _facts(fields: Sequence[Any]) -> Facts:
    padded: list[Any] = [*fields, *[None] * (5 - len(fields))]
    window, output, flags, efforts, prices, *tiers = padded
    dearer = tuple((tier[0], Rates(*tier[1:])) for tier in tiers)
    return Facts(
        context_window=window,
        max_output=output,
        images="i" in (flags or ""),
        reasoning="r" in (flags or ""),
        efforts=tuple(EFFORTS[int(digit)] for digit in efforts or ""),
        prices=Prices(Rates(*prices), dearer) if prices else None,
    )
