"""Headers of a provider in the configuration: what counts, and what has no place in that file."""

from pathlib import Path

import pytest

from agentd.config.headers import HeaderSettings
from agentd.config.settings import Settings, load

PROVIDER = '[providers.own]\napi = "openai-chat"\nbase_url = "https://models.test/v1"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agentd.toml"


def loaded(path: Path, text: str) -> Settings:
    path.write_text(PROVIDER + text, encoding="utf-8")
    return load({"AGENTD_CONFIG": str(path)})


def test_plain_headers_stand_in_the_file_and_secret_ones_in_variables(path: Path) -> None:
    text = 'headers = { "HTTP-Referer" = "https://example.test", "X-Title" = "agentd" }\n'
    settings = loaded(path, f'{text}headers_env = {{ "Cf-Access-Client-Secret" = "GATE_SECRET" }}\n')
    assert settings.problems == ()
    assert settings.providers["own"].headers == HeaderSettings(
        {"HTTP-Referer": "https://example.test", "X-Title": "agentd"},
        {"Cf-Access-Client-Secret": "GATE_SECRET"},
    )


def test_a_built_in_provider_takes_headers_too(path: Path) -> None:
    path.write_text('[providers.openrouter.headers]\n"X-Title" = "mine"\n')
    settings = load({"AGENTD_CONFIG": str(path), "OPENROUTER_API_KEY": "sk-x"})
    assert settings.problems == ()
    assert settings.providers["openrouter"].headers.plain == {"X-Title": "mine"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "anything"),
        ("authorization", "Basic dXNlcjpwYXNz"),
        ("Proxy-Authorization", "canary"),
        ("Cookie", "session=1"),
        ("cf-aig-authorization", "abc"),
        ("Helicone-Auth", "abc"),
        ("X-Api-Key", "abc"),
        ("api-key", "abc"),
        ("X-Auth-Token", "abc"),
        ("Ocp-Apim-Subscription-Key", "abc"),
        ("X-Client-Secret", "abc"),
        ("X-Other", "Bearer canary-0123456789"),
        ("X-Other", "token canary-0123456789"),
        ("X-Other", "sk-canary-0123456789"),
        ("X-Other", "ghp_canary0123456789"),
        ("X-Other", "eyJhbGciOiJIUzI1.canary.x"),
        ("X-Other", "https://user:canary@host/"),
    ],
)
def test_what_looks_like_a_credential_is_refused_with_the_way_out_and_never_shown(
    path: Path, name: str, value: str
) -> None:
    settings = loaded(path, f'[providers.own.headers]\n"{name}" = "{value}"\n')
    assert "own" not in settings.providers, "a request without it would be another than was meant"
    (problem,) = settings.problems
    assert (problem.severity, problem.line) == ("error", 4)
    assert "headers_env" in problem.message
    assert "api_key_env" in problem.message
    assert value not in problem.message
    assert "canary" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OpenAI-Organization", "org-abc123def456ghi789jkl012"),
        ("OpenAI-Project", "proj_abc123"),
        ("HTTP-Referer", "https://example.test/a?b=c"),
        ("X-Trace", "3f9f3a8e-6f0e-4f0b-9a53-0d2c7a9a1b11"),
        ("User-Agent", "mine/1.0"),
        ("anthropic-beta", "token-efficient-tools-2025-02-19"),
    ],
)
def test_what_anybody_may_see_is_taken(path: Path, name: str, value: str) -> None:
    settings = loaded(path, f'[providers.own.headers]\n"{name}" = "{value}"\n')
    assert settings.problems == ()
    assert settings.providers["own"].headers.plain == {name: value}


@pytest.mark.parametrize("table", ["headers", "headers_env"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Host", "agentd sets itself"),
        ("content-length", "agentd sets itself"),
        ("Transfer-Encoding", "agentd sets itself"),
        ("Connection", "agentd sets itself"),
        ("Accept-Encoding", "agentd sets itself"),
        ("two words", "cannot be the name of a header"),
        ("X:Y", "cannot be the name of a header"),
        ("", "cannot be the name of a header"),
        ("Ümlaut", "cannot be the name of a header"),
    ],
)
def test_a_header_that_could_only_break_a_request_is_left_out(
    path: Path, table: str, name: str, words: str
) -> None:
    settings = loaded(path, f'[providers.own.{table}]\n"{name}" = "X"\n"X-Good" = "Y"\n')
    (problem,) = settings.problems
    assert words in problem.message
    headers = settings.providers["own"].headers
    assert {**headers.plain, **headers.variables} == {"X-Good": "Y"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('headers = { X-A = "a\\r\\nX-B: b" }', "characters that no header can have"),
        ('headers = { X-A = "é" }', "characters that no header can have"),
        ('headers = { X-A = " " }', "is empty"),
        ("headers = { X-A = 3 }", "has to be a string"),
        ('headers = "X-A: b"', "has to be a table"),
        ('headers_env = { X-A = "not a name" }', "name of an environment variable"),
        ('headers = { X-A = "1", x-a = "2" }', "is set twice"),
        ('headers = { X-A = "1" }\nheaders_env = { x-a = "B" }', "is set twice"),
    ],
)
def test_a_wrong_header_is_named_and_costs_itself_only(path: Path, text: str, words: str) -> None:
    settings = loaded(path, text + "\n")
    (problem,) = settings.problems
    assert words in problem.message
    assert ("own" in settings.providers) == ("has to be a table" not in words)
    if "own" in settings.providers:
        headers = settings.providers["own"].headers
        assert [*headers.plain, *headers.variables] in ([], ["X-A"])


@pytest.mark.parametrize(
    ("tag", "is_right"), [("think", True), ("seed:think", True), ("<think>", False), ("a b", False)]
)
def test_a_thinking_tag_is_the_name_of_a_tag(path: Path, tag: str, is_right: bool) -> None:
    settings = loaded(path, f'[providers.own.models.m]\nthinking_tag = "{tag}"\n')
    assert (settings.problems == ()) is is_right
    if is_right:
        assert settings.providers["own"].models["m"].thinking_tag == tag


def test_a_server_that_cuts_prompts_does_so_in_each_of_its_apis(path: Path) -> None:
    path.write_text('[providers.ollama]\napi = "anthropic"\nbase_url = "http://127.0.0.1:11434"\n')
    assert load({"AGENTD_CONFIG": str(path)}).providers["ollama"].dialect == {"cuts_prompts": True}
