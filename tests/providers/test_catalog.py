"""The catalogue of models: sound, small, read late, and careful about what it does not know."""

import subprocess
import sys
from importlib import resources
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from agentd.config.builtin import BUILT_IN
from agentd.providers import catalog
from agentd.providers.catalog import UNKNOWN, facts_of, models_of, providers_of

ROOT = Path(__file__).parents[2]
HOSTED = [name for name, known in BUILT_IN.items() if not known.is_local]
LISTED = [name for name in HOSTED if models_of(name)]


def test_it_is_small_and_has_the_models_of_most_hosted_providers() -> None:
    data = resources.files("agentd.providers").joinpath("catalog.json").read_bytes()
    assert len(data) < 200_000
    assert {"openai", "anthropic", "google", "mistral", "deepseek", "xai", "groq"} <= set(LISTED)
    assert 200 < sum(len(models_of(name)) for name in LISTED) < 1000
    assert all(models_of(name) == () for name, known in BUILT_IN.items() if known.is_local)


@pytest.mark.parametrize("provider", LISTED)
def test_every_entry_is_sound(provider: str) -> None:
    for name in models_of(provider):
        facts = facts_of(provider, name)
        window, limit = facts.context_window, facts.max_output
        assert window is None or 1000 < window <= 20_000_000, name
        assert limit is None or 0 < limit <= (window or limit) / (2 if window else 1), name
        assert not facts.efforts or facts.reasoning, name
        rank = [catalog.EFFORTS.index(effort) for effort in facts.efforts]
        assert rank == sorted(set(rank)), name
        if facts.prices is None:
            continue
        tiers = facts.prices.tiers
        assert [above for above, _ in tiers] == sorted({above for above, _ in tiers}), name
        for rates in (facts.prices.rates, *(rates for _, rates in tiers)):
            prices = (rates.input, rates.output, rates.cache_read, rates.cache_write)
            assert all(price is None or 0 <= price < 1000 for price in prices), name


def test_a_model_is_what_its_provider_says() -> None:
    facts = facts_of("openai", "gpt-5.1")
    assert (facts.context_window, facts.max_output) == (272_000, 128_000)
    assert facts.images
    assert facts.reasoning
    assert facts.efforts == ("low", "medium", "high")
    assert facts.prices is not None
    assert (facts.prices.rates.input, facts.prices.rates.cache_read) == (1.25, 0.125)
    assert facts_of("openai", "GPT-5.1") == facts


def test_a_model_that_nobody_knows_can_do_nothing_special() -> None:
    for provider, name in [
        ("openai", "gpt-0"),
        ("nobody", "gpt-5"),
        ("openrouter", "nobody/x"),
        ("openrouter", "/"),
    ]:
        assert facts_of(provider, name) == UNKNOWN
    assert (UNKNOWN.images, UNKNOWN.reasoning, UNKNOWN.efforts) == (False, False, ())
    assert (UNKNOWN.context_window, UNKNOWN.max_output, UNKNOWN.prices) == (None, None, None)


@pytest.mark.parametrize(
    ("provider", "name", "original"),
    [
        ("openrouter", "anthropic/claude-opus-4.6", ("anthropic", "claude-opus-4-6")),
        ("openrouter", "openai/gpt-5.1:free", ("openai", "gpt-5.1")),
        ("github", "openai/gpt-5", ("openai", "gpt-5")),
        ("huggingface", "anthropic/claude-opus-4-5-20251101", ("anthropic", "claude-opus-4-5")),
    ],
)
def test_a_gateways_model_can_do_what_its_vendors_can_at_a_price_of_its_own(
    provider: str, name: str, original: tuple[str, str]
) -> None:
    facts, own = facts_of(provider, name), facts_of(*original)
    assert own.prices is not None
    assert facts.prices is None
    assert (facts.context_window, facts.images, facts.efforts) == (
        own.context_window,
        own.images,
        own.efforts,
    )
    assert facts.context_window


def test_the_providers_of_a_bare_name_are_found() -> None:
    assert "openai" in set(providers_of("gpt-5"))
    assert list(providers_of("gpt-0")) == []


def test_what_is_kept_of_the_published_table() -> None:
    spec = spec_from_file_location("make_model_catalog", ROOT / ".scripts" / "make_model_catalog.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    facts = {
        "mode": "chat",
        "supports_function_calling": True,
        "supports_reasoning": True,
        "supports_max_reasoning_effort": True,
        "max_input_tokens": 1000,
        "max_output_tokens": 501,
        "input_cost_per_token": 1.5e-06,
        "output_cost_per_token": 2e-06,
        "cache_creation_input_token_cost": 0.0,
        "input_cost_per_token_above_200k_tokens": 3e-06,
        "output_cost_per_token_above_200k_tokens": 4e-06,
    }
    assert script.is_wanted("m", facts)
    for other in (
        {"mode": "embedding"},
        {"supports_function_calling": False},
        {"deprecation_date": "2020-01-01"},
    ):
        assert not script.is_wanted("m", facts | other)
    assert not script.is_wanted("ft:m", facts)
    assert not script.is_wanted("m-audio-preview", facts)
    assert script.entry("openai", facts) == [1000, None, "r", "1235", [1.5, 2, None, 0], [200_000, 3, 4]]
    assert script.entry("xai", facts | {"reasoning_effort_levels": ["none", "high"]})[3] == "3"
    assert script.entry("openai", {"max_input_tokens": 1000}) == [1000]


def test_nothing_reads_it_before_it_is_asked() -> None:
    code = (
        "import agentd.server.app, agentd.providers.catalog as c, agentd.config.settings as s;"
        "s.load({'AGENTD_CONFIG': '/dev/null'}); print(c._table.cache_info().currsize);"
        "c.preload(); print(c._table.cache_info().currsize)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["0", "1"]
