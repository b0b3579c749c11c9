"""The variables that the configuration names: keys are taken out, others passed on."""

from pathlib import Path

import pytest

from agentd.config.secrets import Secrets
from agentd.config.settings import Settings, load
from agentd.config.variables import passed_variables, take_keys

KEY = "sk-canary-0123456789abcdef"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "config.toml").write_text(
        '[providers.own]\napi = "openai-chat"\nbase_url = "https://models.test/v1"\n'
        'api_key_env = "MODEL_LOGIN"\n'
        '[environment]\npass = ["DB_PASSWORD", "PLAIN", "ABSENT", "SAME"]\n'
    )
    return load({"AGENTD_CONFIG": str(tmp_path / "config.toml")})


def test_keys_of_every_provider_are_taken_whatever_their_names(settings: Settings) -> None:
    environ = {"MODEL_LOGIN": KEY, "PLAIN": "x"}
    secrets = Secrets.take_from(environ)
    assert environ["MODEL_LOGIN"] == KEY, "its name does not look secret"
    take_keys(settings, secrets, environ)
    assert environ == {"PLAIN": "x"}
    assert secrets.get("MODEL_LOGIN") == KEY


def test_what_is_passed_on_may_be_a_secret_but_no_key_of_a_provider(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {"MODEL_LOGIN": KEY, "DB_PASSWORD": "hunter2", "PLAIN": "x", "SAME": KEY, "OTHER": "y"}
    secrets = Secrets.take_from(environ)
    take_keys(settings, secrets, environ)
    assert "DB_PASSWORD" not in environ
    assert passed_variables(settings, secrets, environ) == {"DB_PASSWORD": "hunter2", "PLAIN": "x"}
    (warning,) = caplog.messages
    assert warning.startswith("SAME is not passed to commands")
    assert KEY not in warning
