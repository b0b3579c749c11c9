"""Secrets stay inside: no key on stderr, in the state folder, in a frame or in a child's environment."""

import itertools
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import initialize_params
from wire.home import Home
from wire.processes import until
from wire.scripts import reply, tool

CANARY = "sk-canary-0123456789abcdef"


# What every process above a command was started with: the warden, the keeper, the daemon.
ANCESTORS = (
    "pid=$PPID; for level in 1 2 3; do echo stands above it: $pid; "
    "cat /proc/$pid/environ /proc/$pid/cmdline | tr '\\0' ' '; pid=$(ps -o ppid= $pid | tr -d ' '); done"
)


@pytest.fixture
def canaries(home: Home) -> dict[str, str]:
    """Environment with keys, and a configuration that names one of them."""
    home.config.write_text(
        '[providers.local]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'api_key_env = "MODEL_LOGIN"\n[providers.local.models.some]\ncontext_window = 1000\n'
        '[environment]\npass = ["PASSED_ON", "SECOND_NAME"]\n'
    )
    names = ("MODEL_LOGIN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "HF_TOKEN")
    return {name: f"{CANARY}-{name}" for name in names}


def test_no_key_leaves_the_daemon(home: Home, canaries: dict[str, str]) -> None:
    record = home.path / "recorded.jsonl"
    daemon = home.spawn("--allow-full", f"--record={record}", **canaries)
    daemon.keep_bytes = True
    options = {"trusted": True, "credentials": {"anthropic": f"{CANARY}-option"}}
    daemon.call("initialize", initialize_params(options))
    daemon.notify("initialized", {})
    secret = {"provider": "openai", "secret": f"{CANARY}-set"}
    assert daemon.call("agentd/credentials/set", secret) == {}
    daemon.refused("agentd/credentials/set", {"provider": ["x"], "secret": f"{CANARY}-bad"})
    daemon.refused("agentd/credentials/set", {"provider": "x", "secret": {"value": f"{CANARY}-bad"}})
    commands = ["env", "cat /proc/self/environ", f"{ANCESTORS}; ps eaxww; seq 100000"]
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
    assert "stands above it" in json.dumps(outputs[2])
    assert b"-m agentd --allow-full" in home.journal(), "the daemon itself was looked at"
    for place in (daemon.received, daemon.errors, home.journal(), record.read_bytes()):
        assert CANARY.encode() not in place
    assert not [path for path in home.path.rglob("*") if CANARY in path.name]


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="reads /proc of a closed process as root"
)
def test_the_environment_that_the_daemon_was_started_with_holds_no_key_any_more(
    home: Home, canaries: dict[str, str]
) -> None:
    """Before the first prompt: a key that nobody has asked for yet is a key as well."""
    daemon = home.spawn(**canaries)
    daemon.initialize({"trusted": True, "credentials": {"anthropic": f"{CANARY}-option"}})
    daemon.call("agentd/credentials/set", {"provider": "openai", "secret": f"{CANARY}-set"})
    seen = Path(f"/proc/{daemon.pid}/environ").read_bytes()
    assert b"MODEL_LOGIN=\0" in seen
    assert f"AGENTD_DATA={home.data}".encode() in seen, "the rest stands where it stood"
    assert CANARY.encode() not in seen
    assert CANARY.encode() not in Path(f"/proc/{daemon.pid}/cmdline").read_bytes()


def test_variables_that_the_user_passes_on_reach_commands_and_keys_of_providers_do_not(
    home: Home, canaries: dict[str, str]
) -> None:
    same = canaries["OPENAI_API_KEY"]
    daemon = home.spawn("--allow-full", **canaries, PASSED_ON="to commands", SECOND_NAME=same, OTHER="x")
    daemon.initialize()
    chat = Chat(
        daemon,
        home.workspace(),
        model=home.script(reply(tool("bash", {"command": "env"})), reply("x")),
        mode="full",
    )
    chat.run()
    said = json.dumps(chat.event("tool_execution_end"))
    assert "PASSED_ON=to commands" in said
    assert "OTHER=" not in said
    assert CANARY not in said
    until(lambda: b"SECOND_NAME is not passed to commands" in daemon.errors, "the log says so")


def test_a_dying_daemon_leaves_no_core_file(home: Home, canaries: dict[str, str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        ordinary = [sys.executable, "-c", "import os; os.abort()"]
        subprocess.run(ordinary, cwd=home.path, capture_output=True, check=False)
        if not list(home.path.glob("core*")):
            pytest.skip("the system writes no core files into the working directory")
        for core in home.path.glob("core*"):
            core.unlink()
        daemon = home.spawn(**canaries)
        daemon.initialize()
        daemon.process.send_signal(signal.SIGABRT)
        assert daemon.exit_code() == -signal.SIGABRT
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert not list(home.path.glob("core*"))


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
