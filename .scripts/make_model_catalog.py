#!/usr/bin/env python3
"""Make `agentd/providers/catalog.json` from the model table of the package litellm. Run by hand for a
release.

    .venv/bin/python .scripts/make_model_catalog.py

The table (`model_prices_and_context_window_backup.json`, MIT licence) is taken out of the wheel that pip
downloads; nothing of the package is installed or run. Kept are the models of the built-in providers that
chat, call tools and are not switched off. `agentd/providers/catalog.py` says what the fields of an entry
mean.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

TABLE = "litellm/model_prices_and_context_window_backup.json"
TARGET = Path(__file__).parents[1] / "agentd" / "providers" / "catalog.json"
MAX_BYTES = 200_000

PROVIDERS = {
    "openai": "openai",
    "azure": "azure",
    "anthropic": "anthropic",
    "gemini": "google",
    "mistral": "mistral",
    "xai": "xai",
    "deepseek": "deepseek",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "cerebras": "cerebras",
    "groq": "groq",
    "moonshot": "moonshot",
    "zai": "zai",
    "vercel_ai_gateway": "vercel",
}
"""The table's names of providers, and ours."""

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
USUAL_EFFORTS = dict.fromkeys(
    ("openai", "azure", "anthropic", "google", "cerebras", "groq"), ("low", "medium", "high")
) | {"deepseek": ("low", "high", "max")}
"""What the reasoning models of a provider take, where the table does not say."""

ODD = ("audio", "realtime", "search", "robotics", "computer-use", "deep-research", "live", "image", "tts")
"""Parts of the names of models that are made for something else than this."""


def main() -> int:
    """Write the catalogue. Exit code 1 where it came out too large or lacks a provider."""
    version, table = downloaded()
    models: dict[str, dict[str, list[Any]]] = {name: {} for name in PROVIDERS.values()}
    for id, facts in table.items():
        provider = PROVIDERS.get(facts.get("litellm_provider", ""))
        if provider is not None and is_wanted(id, facts):
            name = id.removeprefix(f"{facts['litellm_provider']}/")
            if provider != "azure" or "/" not in name:  # the others are regions of the same model
                models[provider][name] = entry(provider, facts)
    lines = (
        f'"{provider}":{{\n'
        + ",\n".join(f"{compact(name)}:{compact(fields)}" for name, fields in sorted(found.items()))
        + "\n}"
        for provider, found in models.items()
    )
    text = f'{{"source":"litellm {version}","models":{{\n' + ",\n".join(lines) + "\n}}\n"
    json.loads(text)
    TARGET.write_text(text, encoding="utf-8")
    print(f"{sum(map(len, models.values()))} models, {len(text.encode())} bytes, from litellm {version}")
    return 1 if len(text.encode()) > MAX_BYTES or not all(models.values()) else 0


def downloaded() -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    """The version of the package and its table, without the sample entry."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-d", folder]
        subprocess.run([*pip, "litellm"], check=True, stdout=subprocess.DEVNULL)
        (wheel,) = Path(folder).glob("litellm-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            table = json.loads(archive.read(TABLE))
    return wheel.name.split("-")[1], {id: facts for id, facts in table.items() if id != "sample_spec"}


def is_wanted(id: str, facts: Mapping[str, Any]) -> bool:
    """Whether an entry is a model that can do an agent's work."""
    return (
        facts.get("mode") in ("chat", "responses")
        and bool(facts.get("supports_function_calling"))
        and facts.get("deprecation_date", "9999") > date.today().isoformat()
        and not id.startswith("ft:")
        and not any(part in id for part in ODD)
    )


def entry(provider: str, facts: Mapping[str, Any]) -> list[Any]:
    """The fields of a model, without empty ones at the end."""
    flags = "".join(
        letter for letter, name in (("i", "vision"), ("r", "reasoning")) if facts.get(f"supports_{name}")
    )
    fields = [
        facts.get("max_input_tokens") or None,
        output_limit(facts),
        flags,
        "".join(str(EFFORTS.index(effort)) for effort in efforts(provider, facts)),
        prices(facts),
        *tiers(facts),
    ]
    while fields and not fields[-1]:
        fields.pop()
    return fields


def output_limit(facts: Mapping[str, Any]) -> int | None:
    """The output limit; None for one that leaves no room for a prompt, which servers refuse."""
    window, limit = facts.get("max_input_tokens"), facts.get("max_output_tokens")
    return limit if limit and (not window or limit * 2 <= window) else None


def efforts(provider: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """The efforts that a model takes, from the least to the most."""
    if not facts.get("supports_reasoning"):
        return
    named = facts.get("reasoning_effort_levels")
    usual = USUAL_EFFORTS.get(provider, ())
    for effort in EFFORTS:
        if effort in (usual if named is None else named) or (
            named is None and facts.get(f"supports_{effort}_reasoning_effort")
        ):
            yield effort


def prices(facts: Mapping[str, Any], above: str = "") -> list[float | None]:
    """USD for a million tokens: of input, output, read from the cache, written to it."""
    names = (
        f"input_cost_per_token{above}",
        f"output_cost_per_token{above}",
        f"cache_read_input_token_cost{above}",
        f"cache_creation_input_token_cost{above}",
    )
    found = [per_million(facts.get(name)) for name in names]
    if found[0] is None or found[1] is None:
        return []
    while found[-1] is None:
        found.pop()
    return found


def per_million(price: float | None) -> float | None:
    """The table's price of a token as one that people write."""
    if price is None:
        return None
    million = round(price * 1_000_000, 6)
    return int(million) if million == int(million) else million


def tiers(facts: Mapping[str, Any]) -> Iterator[list[float | None]]:
    """What requests with more prompt tokens than the first number cost instead."""
    prefix, suffix = "input_cost_per_token_above_", "k_tokens"
    found = (name for name in facts if name.startswith(prefix) and name.endswith(suffix))
    for thousands in sorted(int(name.removeprefix(prefix).removesuffix(suffix)) for name in found):
        if costs := prices(facts, f"_above_{thousands}k_tokens"):
            yield [thousands * 1000, *costs]


def compact(value: object) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main())
