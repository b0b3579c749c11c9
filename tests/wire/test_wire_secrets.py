"""Secrets stay inside: no key on stderr, in the state folder, in a frame or in a child's environment."""

import itertools
import json

import pytest
from wire.chat import Chat
from wire.harness import initialize_params
from wire.home import Home
from wire.scripts import reply, tool

CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture
def canaries(home: Home) -> dict[str, str]:
    """Environment with keys, and a configuration that names one of them."""
    home.config.write_text(
        '[providers.local]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'api_key_env = "LOCAL_API_KEY"\n[providers.local.models.some]\ncontext_window = 1000\n'
    )
    names = ("LOCAL_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
    return {name: f"{CANARY}-{name}" for name in names}


def test_no_key_leaves_the_daemon(home: Home, canaries: dict[str, str]) -> None:
    daemon = home.spawn("--allow-full", **canaries)
    daemon.keep_bytes = True
    options = {"trusted": True, "credentials": {"anthropic": f"{CANARY}-option"}}
    daemon.call("initialize", initialize_params(options))
    daemon.notify("initialized", {})
    secret = {"provider": "openai", "secret": f"{CANARY}-set"}
    assert daemon.call("agentd/credentials/set", secret) == {}
    daemon.refused("agentd/credentials/set", {"provider": ["x"], "secret": f"{CANARY}-bad"})
    daemon.refused("agentd/credentials/set", {"provider": "x", "secret": {"value": f"{CANARY}-bad"}})
    commands = ["env", "cat /proc/self/environ", "tr '\\0' '\\n' < /proc/$PPID/environ"]
    calls = [tool("bash", {"command": command}, f"call-{n}") for n, command in enumerate(commands)]
    chat = Chat(daemon, home.workspace(), model=home.script(reply(*calls), reply("done")), mode="full")
    assert chat.run()["text"] == "done"
    failed = chat.run("unreachable", model="local/some")
    assert failed["stopReason"] == "error"
    assert failed["error"]["message"]
    for method in ("agentd/status", "agentd/models", "agentd/tools", "agentd/session/list"):
        daemon.call(method)
    daemon.call("agentd/credentials/set", {"provider": "openai", "secret": None})
    daemon.call("shutdown")
    daemon.notify("exit")
    assert daemon.exit_code() == 0
    outputs = [p["event"] for p in chat.notifications() if p["event"]["type"] == "tool_execution_end"]
    assert "PATH=" in json.dumps(outputs[0])
    assert CANARY.encode() not in daemon.received
    assert CANARY.encode() not in daemon.errors
    assert CANARY.encode() not in home.journal()


def test_a_key_in_a_bad_option_is_not_echoed(home: Home) -> None:
    daemon = home.spawn()
    options = {"credentials": {"anthropic": [CANARY]}, "mode": CANARY}
    error = daemon.refused("initialize", initialize_params(options))
    assert CANARY not in json.dumps(error)
    assert CANARY.encode() not in daemon.errors


def test_prompts_and_answers_are_not_logged(home: Home) -> None:
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply(f"{CANARY} in the answer")))
    chat.run(f"{CANARY} in the prompt")
    daemon.refused("agentd/session/get", {"sessionId": CANARY * 20})
    daemon.write(b"Content-Length: 30\r\n\r\n" + CANARY.encode() + b"    ")
    daemon.call("shutdown")
    daemon.notify("exit")
    assert daemon.exit_code() == 0
    assert CANARY.encode() not in daemon.errors


def test_the_state_folder_is_for_its_owner_only(home: Home) -> None:
    daemon = home.start()
    Chat(daemon, home.workspace(), model=home.script(reply("x"))).run("private words")
    for path in itertools.chain([home.data], home.data.rglob("*")):
        if not path.is_symlink():
            assert path.stat().st_mode & 0o077 == 0, path


def test_errors_hold_no_traceback_and_no_path_of_ours(home: Home) -> None:
    daemon = home.start()
    daemon.refused("agentd/session/get", {"sessionId": "nothing"})
    daemon.refused("agentd/session/new", {"workspaceUri": "file:///no/such/folder"})
    daemon.refused("agentd/prompt", {"prompt": [{"type": "image", "mimeType": "x", "data": 7}]})
    daemon.refused("agentd/prompt", {"prompt": "x", "model": "no-slash"})
    daemon.refused("agentd/prompt", {"prompt": "x", "model": "unknown/model"})
    failed = daemon.call("agentd/prompt", {"prompt": "x", "model": "scripted//no/such/script.json"})
    assert failed["stopReason"] == "error"
    daemon.refused("agentd/no/such/method")
    said = json.dumps([failed, *(message for message in daemon.messages if "error" in message)])
    assert str(home.data) not in said
    assert "site-packages" not in said
