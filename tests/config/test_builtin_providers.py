"""Providers: those that are built in, how variables and the file change them, and those of the user's own."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.config.addresses import completed, flaw, from_host
from agentd.config.builtin import BUILT_IN
from agentd.config.dialects import APIS, FLAGS
from agentd.config.secrets import looks_secret
from agentd.config.settings import ProviderSettings, Settings, load

CUSTOM = 'api = "openai-chat"\nbase_url = "https://models.test/v1"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agentd.toml"


def loaded(path: Path, text: str = "", **environ: str) -> Settings:
    path.write_text(text, encoding="utf-8")
    return load({"AGENTD_CONFIG": str(path), **environ})


def moved(path: Path, name: str, **environ: str) -> ProviderSettings:
    settings = loaded(path, **environ)
    assert settings.problems == ()
    return settings.built_in[name]


# --- the list -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_provider_is_sound(name: str) -> None:
    known = BUILT_IN[name]
    assert known.keys
    assert all(map(looks_secret, known.keys)), "a key's variable is taken out of the environment at the start"
    assert not any(map(looks_secret, known.base_urls)), "an address stays there"
    if known.base_url is not None:
        assert flaw(known.base_url) is None
        assert completed(known.base_url, known.usual_path) == known.base_url
        assert completed(f"{known.base_url}/", known.usual_path) == known.base_url
    for api in (known.api, known.elsewhere or known.api):
        assert api in APIS
    for flag, value in known.dialect.items():
        kind = FLAGS[known.api][flag]
        assert value in kind if isinstance(kind, tuple) else type(value) is kind
    assert known.is_local != known.needs_key


def test_the_providers_that_people_have_are_there() -> None:
    assert set(BUILT_IN) == {
        "openai", "anthropic", "google", "openrouter", "deepseek", "mistral", "groq", "xai", "together",
        "fireworks", "cerebras", "moonshot", "zai", "azure", "vercel", "huggingface", "github", "ollama",
        "lmstudio", "llamacpp", "vllm", "litellm",
    }  # fmt: skip


def test_nothing_of_a_workspace_or_the_default_environment_moves_one(path: Path) -> None:
    settings = loaded(path)
    assert (settings.providers, settings.problems) == ({}, ())
    assert {name: p.base_url for name, p in settings.built_in.items()} == {
        name: known.base_url for name, known in BUILT_IN.items()
    }
    assert not any(key.startswith("providers.") for key in settings.origins)


# --- variables ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["http://h:8", "http://h:8/", "http://h:8/v1", "http://h:8/v1/", " 'http://h:8/v1' "]
)
def test_a_base_url_counts_with_and_without_slash_and_version(path: Path, value: str) -> None:
    assert moved(path, "openai", OPENAI_BASE_URL=value).base_url == "http://h:8/v1"


def test_openais_variable_that_leads_elsewhere_means_a_chat_server_that_may_want_no_key(path: Path) -> None:
    there = moved(path, "openai", OPENAI_BASE_URL="http://h:8/v1")
    assert (there.api, there.needs_key, there.is_original, there.key_variables) == (
        "openai-chat", False, False, ("OPENAI_API_KEY",),
    )  # fmt: skip
    home = moved(path, "openai", OPENAI_BASE_URL="https://api.openai.com/v1/")
    assert (home.api, home.needs_key, home.is_original) == ("openai-responses", True, True)
    plain = moved(path, "openai", OPENAI_BASE_URL="")
    assert plain == home


def test_a_variable_is_told_as_the_origin(path: Path) -> None:
    settings = loaded(path, DEEPSEEK_BASE_URL="https://mirror.test/v1")
    assert settings.origins["providers.deepseek"] == "environment DEEPSEEK_BASE_URL"


def test_azure_is_where_its_variable_says(path: Path) -> None:
    assert loaded(path).built_in["azure"].base_url is None
    azure = moved(path, "azure", AZURE_OPENAI_ENDPOINT="https://mine.openai.azure.com/")
    assert azure.base_url == "https://mine.openai.azure.com/openai/v1"
    assert (azure.api, azure.needs_key) == ("openai-responses", True)


@pytest.mark.parametrize(
    ("value", "base_url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:9999", "http://127.0.0.1:9999/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":9999", "http://127.0.0.1:9999/v1"),
        ("[::1]:9999", "http://[::1]:9999/v1"),
        ("[::]", "http://[::1]:11434/v1"),
        ("box.lan", "http://box.lan:11434/v1"),
        ("https://box.lan", "https://box.lan/v1"),
        ("http://box.lan:1/ollama/", "http://box.lan:1/ollama"),
    ],
)
def test_ollamas_host_is_read_as_ollama_reads_it(path: Path, value: str, base_url: str) -> None:
    assert moved(path, "ollama", OLLAMA_HOST=value).base_url == base_url


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("https://user:CANARY@h/v1", "holds credentials"),
        ("https://h/v1?api_key=CANARY", "holds credentials"),
        ("h:8/CANARY", "has to begin with http:// or https://"),
        ("http://h:99999/CANARY", "is no valid address"),
        ("http://", "is no valid address"),
    ],
)
def test_a_wrong_variable_is_named_and_its_provider_left_out(path: Path, value: str, words: str) -> None:
    settings = loaded(path, OPENAI_BASE_URL=value)
    (problem,) = settings.problems
    assert problem.severity == "warning", "the variable may be meant for another program"
    assert problem.message == f"OPENAI_BASE_URL: {words}; correct or unset the variable"
    assert "openai" not in settings.all_providers, "its own address is not what the user meant"
    assert "anthropic" in settings.all_providers
    (problem,) = loaded(path, "[providers.openai]", OPENAI_BASE_URL=value).problems
    assert problem.severity == "error"


@pytest.mark.parametrize("value", ["h:port", "u:CANARY@h:1", ":99999"])
def test_a_wrong_host_is_named_too(path: Path, value: str) -> None:
    settings = loaded(path, OLLAMA_HOST=value)
    (problem,) = settings.problems
    assert problem.message.startswith("OLLAMA_HOST: ")
    assert "CANARY" not in str(settings)
    assert "ollama" not in settings.all_providers


@given(st.text(max_size=30) | st.text("h:/[]@.%19v?#= \t", max_size=20).map("http://h{}".format))
@settings(max_examples=100, deadline=None)
def test_no_value_of_a_variable_makes_loading_raise(value: str) -> None:
    environ = {"AGENTD_CONFIG": os.devnull, "OPENAI_BASE_URL": value, "OLLAMA_HOST": value}
    found = load(environ)
    for name in ("openai", "ollama"):
        if (provider := found.built_in.get(name)) is not None:
            assert provider.base_url is not None
            assert flaw(provider.base_url) is None
            assert not urlsplit(provider.base_url).path.endswith("/")


def test_a_host_with_everything_is_left_as_it_is() -> None:
    assert from_host("https://a.test/x", "http://127.0.0.1:1/v1") == "https://a.test/x"


# --- the file over a built-in provider ------------------------------------------------------------


def test_the_file_changes_single_fields_of_a_built_in_provider(path: Path) -> None:
    settings = loaded(
        path,
        '[providers.mistral]\napi_key_env = "WORK_KEY"\n[providers.mistral.timeouts]\nidle = 20\n'
        "[providers.mistral.dialect]\nparallel_tool_calls = false\n"
        '[providers.mistral.models."codestral-9"]\ncontext_window = 1000\n',
    )
    assert settings.problems == ()
    mistral, known = settings.providers["mistral"], BUILT_IN["mistral"]
    assert (mistral.api, mistral.base_url, mistral.key_variables) == (
        known.api,
        known.base_url,
        ("WORK_KEY",),
    )
    assert mistral.dialect == {**known.dialect, "parallel_tool_calls": False}
    assert mistral.timeouts == {"idle": 20.0}
    assert mistral.models["codestral-9"].context_window == 1000
    assert mistral.needs_key
    assert "mistral" not in settings.built_in


def test_another_api_starts_from_its_own_dialect(path: Path) -> None:
    settings = loaded(
        path, '[providers.deepseek]\napi = "anthropic"\nbase_url = "https://api.deepseek.com/anthropic"'
    )
    deepseek = settings.providers["deepseek"]
    assert (deepseek.api, deepseek.dialect) == ("anthropic", {})
    assert deepseek.base_url == "https://api.deepseek.com/anthropic"


def test_the_files_address_goes_before_the_variable(path: Path) -> None:
    text = '[providers.openai]\nbase_url = "https://proxy.test/"'
    openai = loaded(path, text, OPENAI_BASE_URL="http://u:p@wrong").providers["openai"]
    assert (openai.base_url, openai.api) == ("https://proxy.test/v1", "openai-responses")
    assert loaded(path, "[providers.openai]", OPENAI_BASE_URL="http://h").providers["openai"].base_url == (
        "http://h/v1"
    )


@pytest.mark.parametrize(
    "line", ['base_url = "proxy.test"', 'api = "smoke"', 'api_key = "CANARY"', "models = 3"]
)
def test_a_built_in_provider_that_is_described_wrongly_is_left_out(path: Path, line: str) -> None:
    settings = loaded(path, f"[providers.openai]\n{line}\n")
    (problem,) = settings.problems
    assert problem.message.startswith(f"{path}:2: providers.openai.")
    assert "openai" not in settings.all_providers
    assert "CANARY" not in problem.message


# --- providers of the user's own ------------------------------------------------------------------

EVERY_FLAG: dict[str, dict[str, Any]] = {
    api: {
        flag: kind[-1]
        if isinstance(kind, tuple)
        else {bool: False, int: 2, float: 2.5, str: "text", list: ("a", "b")}[kind]
        for flag, kind in flags.items()
    }
    for api, flags in FLAGS.items()
}


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else repr(value)


@pytest.mark.parametrize("api", APIS)
def test_a_custom_provider_speaks_any_api_with_any_flag(path: Path, api: str) -> None:
    flags = "\n".join(f"{flag} = {toml(value)}" for flag, value in EVERY_FLAG[api].items())
    settings = loaded(
        path, f'[providers.p]\napi = "{api}"\nbase_url = "http://h"\n[providers.p.dialect]\n{flags}\n'
    )
    assert settings.problems == ()
    provider = settings.providers["p"]
    assert (provider.api, dict(provider.dialect)) == (api, EVERY_FLAG[api])
    assert (provider.base_url, provider.needs_key, provider.is_original) == ("http://h", False, False)


@pytest.mark.parametrize(
    ("table", "entry", "words"),
    [
        ("dialect", "max_token_field = 1", 'is no known key (did you mean "max_tokens_field"?)'),
        ("dialect", "betas = ['x']", "is no flag of openai-chat, but of anthropic"),
        ("dialect", "call_ids = 'eight'", '"eight" is not known; use one of any, 64, 40, nine'),
        ("dialect", "images = 1", "has to be true or false, not a whole number"),
        ("dialect", "api_key = 'CANARY'", "keys do not belong into this file"),
        ("timeouts", "idel = 1", 'did you mean "idle"?'),
        ("timeouts", "idle = 0", "is 0; it has to be above 0"),
        ("timeouts", "idle = -1.5", "is -1.5; it has to be above 0"),
        ("timeouts", "idle = inf", "is inf; it has to be above 0"),
        ("timeouts", "idle = nan", "is nan; it has to be above 0"),
        ("timeouts", "idle = true", "has to be a number, not true or false"),
        ("timeouts", "idle = '3 s'", "has to be a number, not a string"),
    ],
)
def test_a_wrong_flag_or_wait_costs_that_key_only(path: Path, table: str, entry: str, words: str) -> None:
    settings = loaded(path, f"[providers.p]\n{CUSTOM}[providers.p.{table}]\n{entry}\n")
    (problem,) = settings.problems
    assert problem.message.startswith(f"{path}:5: providers.p.{table}.{entry.split(' ')[0]}: ")
    assert words in problem.message
    assert (settings.providers["p"].dialect, settings.providers["p"].timeouts) == ({}, {})
    assert "CANARY" not in str(settings)


def test_wrong_arrays_of_strings_are_named(path: Path) -> None:
    text = '[providers.p]\napi = "anthropic"\nbase_url = "http://h"\ndialect = { betas = ["a", 1] }'
    (problem,) = loaded(path, text).problems
    assert problem.message.startswith(f"{path}:4: providers.p.dialect.betas: has to be an array of strings")


def test_prices_of_a_model_are_usd_for_a_million_tokens(path: Path) -> None:
    prices = "prices = { input = 1, output = 2.5, cache_read = 0 }"
    settings = loaded(path, f"[providers.p]\n{CUSTOM}[providers.p.models.m]\n{prices}")
    assert settings.problems == ()
    assert settings.providers["p"].models["m"].prices == {"input": 1.0, "output": 2.5, "cache_read": 0.0}


@pytest.mark.parametrize(
    ("prices", "key", "words"),
    [
        ("{ input = 1 }", ".output", "is missing; write output ="),
        ("{ input = -1, output = 1 }", ".input", "is -1; it has to be 0 or more"),
        ("3", "", "has to be a table, not a whole number"),
    ],
)
def test_wrong_prices_are_none_at_all(path: Path, prices: str, key: str, words: str) -> None:
    settings = loaded(path, f"[providers.p]\n{CUSTOM}[providers.p.models.m]\nprices = {prices}")
    (problem,) = settings.problems
    assert problem.message.startswith(f"{path}:5: providers.p.models.m.prices{key}: ")
    assert words in problem.message
    models = settings.providers["p"].models
    assert "m" not in models or models["m"].prices is None
