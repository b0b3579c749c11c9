"""A set-up that is wrong is told, and nothing is done in another place or way than the user meant."""

import subprocess
import sys
from pathlib import Path

from wire.chat import Chat
from wire.harness import Daemon
from wire.home import Home
from wire.scripts import reply


def test_a_broken_configuration_is_told_at_the_first_prompt_and_not_again(home: Home, tmp_path: Path) -> None:
    config = tmp_path / "broken.toml"
    config.write_text('mode = "ask"\nbogus = 1\n')
    daemon = home.spawn(AGENTD_CONFIG=str(config))
    daemon.initialize()
    (problem,) = daemon.call("agentd/status")["problems"]
    assert "broken.toml:2" in problem["message"]
    assert "bogus" in problem["message"]
    chat = Chat(daemon, home.workspace(), model=home.script(reply("one"), reply("two")))
    assert chat.run("first")["problems"] == [problem]
    assert "problems" not in chat.run("second")
    told = [p["event"] for p in chat.notifications() if p["event"]["type"] == "notice"]
    assert [(event["severity"], event["message"]) for event in told] == [("error", problem["message"])]


def test_a_client_that_waits_for_acceptance_only_is_told_too(home: Home, tmp_path: Path) -> None:
    config = tmp_path / "broken.toml"
    config.write_text("model = 7\n")
    daemon = home.spawn(AGENTD_CONFIG=str(config))
    daemon.initialize()
    chat = Chat(daemon, home.workspace(), model=home.script(reply("one")))
    (problem,) = chat.run("first", wait="accepted")["problems"]
    assert ("broken.toml:1" in problem["message"], problem["line"]) == (True, 0)


def test_an_image_for_a_model_that_sees_none_is_refused_and_the_session_goes_on(
    home: Home, tmp_path: Path
) -> None:
    config = tmp_path / "local.toml"
    config.write_text('[providers.l]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n')
    daemon = home.spawn(AGENTD_CONFIG=str(config))
    daemon.initialize()
    chat = Chat(daemon, home.workspace(), model=home.script(reply("fine")))
    image = [{"type": "image", "mimeType": "image/png", "data": "aGk="}]
    error = daemon.refused("agentd/prompt", chat.prompt_params(image, model="l/q"))
    assert error["data"]["kind"] == "invalidParams"
    assert error["message"].startswith("/prompt/0: ")
    assert chat.get()["messages"] == []
    assert chat.run("go on")["text"] == "fine"


def test_a_workspace_that_cannot_be_used_is_never_replaced_by_another(home: Home, tmp_path: Path) -> None:
    daemon = home.spawn()
    gone = (tmp_path / "gone").as_uri()
    params = {"capabilities": {}, "rootUri": gone, "initializationOptions": {"agentd": {"trusted": True}}}
    daemon.call("initialize", params)
    prompt = {"prompt": "go", "model": home.script(reply("never"))}
    error = daemon.refused("agentd/prompt", prompt)
    assert (error["data"]["kind"], gone in error["message"]) == ("invalidParams", True)
    assert any(gone in problem["message"] for problem in daemon.call("agentd/status")["problems"])


def ended(shell: str) -> int:
    command = ["sh", "-c", f"exec {sys.executable} -m agentd {shell}"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, timeout=60, check=False).returncode


def test_a_daemon_started_without_stdin_or_stdout_ends_in_good_order() -> None:
    assert ended("<&-") == 0
    assert ended("</dev/null >&-") == 1


def test_the_process_named_on_the_command_line_is_followed(home: Home) -> None:
    done = subprocess.Popen(["true"])
    done.wait()
    daemon = home.spawn(f"--clientProcessId={done.pid}")
    daemon.initialize()
    assert daemon.exit_code() == 0


def test_a_user_without_a_home_folder_can_read_and_is_told_why_nothing_is_kept(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import pwd\ndef getpwuid(uid): raise KeyError(uid)\npwd.getpwuid = getpwuid\n"
    )
    spared = ("HOME", "AGENTD_CONFIG", "AGENTD_DATA")
    env = {name: value for name, value in home.environment().items() if name not in spared}
    daemon = Daemon(env={**env, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path)
    home.daemons.append(daemon)
    daemon.initialize()
    assert daemon.call("agentd/session/list") == {"sessions": []}
    prompt = {"prompt": "go", "model": home.script(reply("never"))}
    error = daemon.refused("agentd/prompt", prompt)
    assert error["data"]["kind"] == "storage"
    problems = [problem["message"] for problem in daemon.call("agentd/status")["problems"]]
    assert any("set AGENTD_DATA" in problem for problem in problems), problems
