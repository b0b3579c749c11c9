"""From a model's name to its provider, or to a way out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentd.agent.host import Engine
from agentd.config.builtin import BUILT_IN
from agentd.config.settings import load
from agentd.protocol.errors import RpcError
from agentd.protocol.methods import ModelInfo
from agentd.providers.anthropic import Anthropic
from agentd.providers.gemini import Gemini
from agentd.providers.openai_chat import OpenAIChat
from agentd.providers.openai_responses import OpenAIResponses
from agentd.providers.prices import Rates
from agentd.providers.scripted import Scripted
from agentd.sessions.engines import ConfiguredEngines

KEY = "sk-CANARY"
Make = Callable[..., ConfiguredEngines]


@pytest.fixture
def engines(tmp_path: Path) -> Make:
    """Engines of a configuration's text and an environment."""

    def make(text: str = "", **environ: str) -> ConfiguredEngines:
        config = tmp_path / "config.toml"
        config.write_text(text)
        return ConfiguredEngines(load({"AGENTD_CONFIG": str(config), **environ}), environ.get)

    return make


def way_out(engines: ConfiguredEngines, model: str | None) -> tuple[str, str]:
    with pytest.raises(RpcError) as caught:
        engines.engine(model, None)
    assert caught.value.kind == "noModel"
    said = (caught.value.message, caught.value.hint or "")
    assert KEY not in "".join(said)
    return said


def listed(engines: ConfiguredEngines) -> dict[str, ModelInfo]:
    return {info.id: info for info in engines.models()}


# --- built-in providers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "model", "kind"),
    [
        ("OPENAI_API_KEY", "openai/gpt-5.1", OpenAIResponses),
        ("ANTHROPIC_API_KEY", "anthropic/claude-opus-5-5", Anthropic),
        ("GEMINI_API_KEY", "google/gemini-2.5-pro", Gemini),
        ("GOOGLE_API_KEY", "google/gemini-2.5-pro", Gemini),
        ("OPENROUTER_API_KEY", "openrouter/anthropic/claude-opus-5.5", OpenAIChat),
        ("HF_TOKEN", "huggingface/openai/gpt-oss-120b:groq", OpenAIChat),
    ],
)
def test_a_key_in_the_environment_is_all_that_a_built_in_provider_needs(
    engines: Make, variable: str, model: str, kind: type
) -> None:
    way_out(engines(), model)
    engine = engines(**{variable: KEY}).engine(model, "low")
    assert isinstance(engine.provider, kind)
    assert (engine.model.id, engine.effort) == (model, "low")


def test_a_key_from_the_client_does_as_well_until_it_is_taken_back(engines: Make) -> None:
    living = engines()
    living.set_credential("anthropic", KEY)
    first = living.engine("anthropic/claude-opus-5-5", None)
    assert listed(living)["anthropic/claude-opus-5-5"].available
    living.set_credential("anthropic", f"{KEY}-2")
    assert living.engine("anthropic/claude-opus-5-5", None).provider is not first.provider
    living.set_credential("anthropic", None)
    message, _ = way_out(living, "anthropic/claude-opus-5-5")
    assert "ANTHROPIC_API_KEY is not set" in message


@pytest.mark.parametrize("name", [name for name, known in BUILT_IN.items() if known.is_local])
def test_a_server_on_this_machine_needs_no_key(engines: Make, name: str) -> None:
    engine = engines().engine(f"{name}/some/model", None)
    assert isinstance(engine.provider, OpenAIChat)
    assert engine.model.name == "some/model"


def test_azure_needs_its_address_and_then_its_key(engines: Make) -> None:
    message, _ = way_out(engines(AZURE_OPENAI_API_KEY=KEY), "azure/gpt-5")
    assert "set AZURE_OPENAI_ENDPOINT or AZURE_OPENAI_BASE_URL" in message
    there = {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com"}
    assert "AZURE_OPENAI_API_KEY is not set" in way_out(engines(**there), "azure/gpt-5")[0]
    engine = engines(AZURE_OPENAI_API_KEY=KEY, **there).engine("azure/gpt-5", None)
    assert isinstance(engine.provider, OpenAIResponses)


def test_a_server_in_openais_place_needs_no_key(engines: Make) -> None:
    living = engines(OPENAI_BASE_URL="http://127.0.0.1:9")
    assert isinstance(living.engine("openai/mine", None).provider, OpenAIChat)
    assert not any(info.available for info in living.models() if info.provider == "openai"), (
        "it may serve others"
    )


def test_a_provider_is_made_once(engines: Make) -> None:
    living = engines(OPENAI_API_KEY=KEY)
    assert living.engine("openai/a", None).provider is living.engine("openai/b", None).provider
    assert isinstance(living.engine("scripted/x", None).provider, Scripted)


# --- what is known of a model ---------------------------------------------------------------------

DESCRIBED = """
[providers.anthropic.models.claude-opus-5-5]
context_window = 5000
images = false
efforts = []
prices = { input = 1, output = 2 }
"""


def model_of(engine: Engine) -> tuple[object, ...]:
    model = engine.model
    return model.context_window, model.max_output, model.images, model.reasoning, model.efforts


def test_the_user_knows_better_than_the_catalogue_field_by_field(engines: Make) -> None:
    plain = engines(ANTHROPIC_API_KEY=KEY).engine("anthropic/claude-opus-5-5", None)
    all_efforts = ("low", "medium", "high", "xhigh", "max")
    assert model_of(plain) == (1_000_000, 32_000, True, True, all_efforts)
    said = engines(DESCRIBED, ANTHROPIC_API_KEY=KEY).engine("anthropic/claude-opus-5-5", None)
    assert model_of(said) == (5000, 32_000, False, True, ())
    assert plain.model.prices is not None
    assert said.model.prices is not None
    assert said.model.prices.rates == Rates(1, 2)


def test_a_limit_is_asked_for_only_where_a_server_would_cut_earlier(engines: Make) -> None:
    living = engines(OPENAI_API_KEY=KEY, ANTHROPIC_API_KEY=KEY)
    assert living.engine("openai/gpt-5.1", None).model.max_output is None
    assert listed(living)["openai/gpt-5.1"].max_output == 128_000
    text = '[providers.openai.models."gpt-5.1"]\nmax_output = 100'
    assert engines(text, OPENAI_API_KEY=KEY).engine("openai/gpt-5.1", None).model.max_output == 100


@pytest.mark.parametrize("model", ["openai/gpt-0", "ollama/openai/gpt-5", "own/openai/gpt-5"])
def test_a_model_that_nobody_described_gets_careful_defaults(engines: Make, model: str) -> None:
    own = '[providers.own]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9"'
    engine = engines(own, OPENAI_API_KEY=KEY).engine(model, None)
    assert model_of(engine) == (None, None, False, False, ())
    assert engine.model.prices is None


# --- what there is --------------------------------------------------------------------------------


def test_models_tell_what_can_be_used_now_and_why_the_rest_cannot(engines: Make) -> None:
    models = listed(engines(ANTHROPIC_API_KEY=KEY, OPENROUTER_API_KEY=KEY))
    opus = models["anthropic/claude-opus-5-5"]
    assert (opus.available, opus.reason, opus.context_window, opus.images) == (True, None, 1_000_000, True)
    reasons = {id: info.reason or "" for id, info in models.items() if not info.available}
    assert reasons["openai/*"] == "OPENAI_API_KEY is not set"
    assert reasons["google/*"] == "GEMINI_API_KEY or GOOGLE_API_KEY is not set"
    assert "AZURE_OPENAI_ENDPOINT" in reasons["azure/*"]
    assert reasons["openrouter/*"] == "name one as in openrouter/<model>"
    assert "`agentd models ollama` asks http://127.0.0.1:11434/v1" in reasons["ollama/*"]
    assert {info.provider for info in models.values()} == {*BUILT_IN, "scripted"}
    available = [info.available for info in engines(ANTHROPIC_API_KEY=KEY).models()][:-1]
    assert available == sorted(available, reverse=True), "what can be used stands first"


def test_what_stands_for_all_models_of_a_provider_cannot_be_named(engines: Make) -> None:
    message, _ = way_out(engines(), "ollama/*")
    assert '"ollama/*" names no model' in message


def test_described_models_of_a_provider_without_its_key_are_listed_with_that(engines: Make) -> None:
    models = listed(engines(DESCRIBED))
    assert models["anthropic/claude-opus-5-5"].reason == "ANTHROPIC_API_KEY is not set"
    assert "anthropic/*" not in models


def test_the_default_model_is_listed_even_where_nobody_knows_it(engines: Make) -> None:
    models = listed(engines(AGENTD_MODEL="openrouter/nobody/new", OPENROUTER_API_KEY=KEY))
    assert models["openrouter/nobody/new"].available
    assert "openrouter/*" not in models


def test_only_keys_that_the_configuration_names_are_missed(engines: Make) -> None:
    assert list(engines().problems()) == []
    own = '[providers.own]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9"\napi_key_env = "OWN_KEY"\n'
    (problem,) = engines(f"{own}[providers.ollama]\n").problems()
    assert problem.message == "OWN_KEY is not set: requests to own carry no key."
    assert list(engines(own, OWN_KEY=KEY).problems()) == []


# --- ways out -------------------------------------------------------------------------------------


def test_without_any_key_the_ways_to_a_model_are_told(engines: Make) -> None:
    message, hint = way_out(engines(), None)
    assert message == "No model is chosen."
    for word in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AGENTD_MODEL",
        "ollama/<model>",
        "[providers.<name>]",
    ):
        assert word in hint


def test_with_a_key_its_provider_is_the_way_out(engines: Make) -> None:
    _, hint = way_out(engines(MISTRAL_API_KEY=KEY), None)
    assert "Providers that can be asked now: mistral." in hint
    assert "`agentd models`" in hint


def test_a_bare_name_is_told_with_its_providers(engines: Make) -> None:
    message, _ = way_out(engines(), "gpt-5")
    assert 'as in "openai/gpt-5"' in message
    assert 'takes the form "provider/model".' in way_out(engines(), "nothing")[0]


def test_a_provider_that_there_is_not_is_told_with_the_nearest(engines: Make) -> None:
    message, _ = way_out(engines(), "antropic/claude-opus-5-5")
    assert 'There is no provider "antropic"' in message
    assert 'did you mean "anthropic"?' in message


def test_what_is_wrong_with_the_configuration_is_told_with_it(engines: Make) -> None:
    message, _ = way_out(engines('mode = "plann"'), None)
    assert "The configuration has an error: " in message
    assert '"plann" is not known' in message


def test_a_wrong_variable_is_told_to_whom_it_concerns(engines: Make) -> None:
    living = engines(OPENAI_BASE_URL="ftp://x", OPENAI_API_KEY=KEY)
    message, _ = way_out(living, "openai/gpt-5")
    assert "OPENAI_BASE_URL: has to begin with http://" in message
    assert "OPENAI_BASE_URL" not in "".join(way_out(living, "mistral/x"))


async def test_warming_up_reads_what_the_first_prompt_needs_and_takes_any_name(engines: Make) -> None:
    living = engines(ANTHROPIC_API_KEY=KEY)
    for model in ("anthropic/claude-opus-5-5", "ollama/x", "azure/x", "nobody/x", "", None):
        await living.warm_up(model)


async def test_closing_closes_the_retired_as_well(engines: Make) -> None:
    living = engines(OPENAI_API_KEY=KEY)
    living.engine("openai/a", None)
    living.set_credential("openai", KEY)
    living.engine("openai/a", None)
    await living.aclose()
