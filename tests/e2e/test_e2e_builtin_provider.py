"""A built-in provider from its variables to a socket, and the models of a server that is named."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fakes.model_server import ModelServer
from wire.chat import Chat
from wire.home import Home
from wire.scripts import reply

KEY = "sk-key-of-the-built-in-tests"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A strict model server with an empty script."""
    with ModelServer() as server:
        yield server
        assert server.faults == []


def test_two_variables_are_all_that_a_prompt_needs(home: Home, server: ModelServer) -> None:
    server.push(reply("Hello."))
    daemon = home.spawn(
        OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"{server.base_url}/", AGENTD_MODEL="openai/some-model"
    )
    daemon.initialize()
    assert Chat(daemon, home.workspace()).run("Hi")["text"] == "Hello."
    (asked,) = server.requests
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["model"] == "some-model"


def test_a_prompt_without_the_key_says_which_and_asks_nobody(home: Home) -> None:
    daemon = home.spawn(AGENTD_MODEL="anthropic/claude-opus-5-5")
    daemon.initialize()
    error = daemon.refused("agentd/prompt", {"prompt": "Hi"})
    assert error["data"]["kind"] == "noModel"
    assert "ANTHROPIC_API_KEY is not set" in error["message"]


def test_the_command_lists_one_provider_and_asks_a_server_that_is_named(home: Home) -> None:
    def models(*arguments: str, **env: str) -> tuple[int, str, str]:
        command = [sys.executable, "-P", "-m", "agentd", "models", *arguments]
        done = subprocess.run(
            command, env=home.environment(**env), capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout, done.stderr

    code, out, _ = models("anthropic", ANTHROPIC_API_KEY=KEY)
    assert code == 0
    assert re.search(r"^ +anthropic/claude-opus-5-5 +1,000,000 tokens$", out, re.MULTILINE)
    assert "openai" not in out
    code, out, err = models("ollama", OLLAMA_HOST="127.0.0.1:9")
    assert (code, out) == (1, "")
    assert err.startswith("agentd: ollama: cannot reach http://127.0.0.1:9/v1/models")
    code, _, err = models("olama")
    assert code == 1
    assert "there is no provider 'olama'" in err
