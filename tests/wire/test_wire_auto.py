"""Mode `auto`: commands are free inside the sandbox and ask outside it; without a sandbox there is none."""

from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.questions import ASK, asked_nothing, asking, option, question, said, tool_result, workspace
from wire.scripts import reply, tool
from workspace.sandboxes import need

# A daemon started with this on its path may not mount anything: so no bubblewrap works below it.
UNABLE = """
from pathlib import Path
from agentd.workspace import landlock
from agentd.workspace.jail import enter
from agentd.workspace.policy import Policy
enter({"landlock": landlock.jail(Policy(writable=(Path("/"),), network=True))["landlock"]})
"""


def bash(command: str, number: int = 1, **more: str) -> Json:
    return tool("bash", {"command": command, **more}, f"call-{number}")


def daemon_without_a_sandbox(home: Home, more: str = "", **options: object) -> Daemon:
    need("bubblewrap")
    need("landlock")
    (home.path / "sitecustomize.py").write_text(UNABLE)
    home.config.write_text(f'{more}\n[sandbox]\nbackend = "bubblewrap"\n')
    python_path = f"{home.path}:{Path(__file__).parents[2]}"
    daemon = home.spawn(PYTHONPATH=python_path, AGENTD_LOG="ERROR")
    daemon.initialize({"trusted": True, "permission": True, **options})
    return daemon


# --- with a sandbox -------------------------------------------------------------------------------


def test_a_command_runs_without_a_question_and_inside(daemon: Daemon, shared_home: Home) -> None:
    need("bubblewrap")
    command = bash(f"echo ran > ran.txt; echo x > {shared_home.path}/out.txt; cat .env")
    chat, prompt = asking(daemon, shared_home, command, "auto")
    assert chat.result(prompt)["text"] == "done"
    assert asked_nothing(chat)
    assert (chat.root / "ran.txt").read_text() == "ran\n"
    assert not (shared_home.path / "out.txt").exists()
    assert "hidden-in-env" not in said(chat)
    assert "call bash again with `unsandboxed`" in said(chat)


def test_a_session_may_be_set_to_auto(daemon: Daemon, shared_home: Home) -> None:
    need("bubblewrap")
    chat = Chat(daemon, workspace(shared_home), mode="ask")
    updated = daemon.call("agentd/session/update", {"sessionId": chat.id, "mode": "auto"})
    assert updated["session"]["mode"] == "auto"


def test_a_session_that_was_left_in_auto_is_in_it_after_a_restart(home: Home) -> None:
    need("bubblewrap")
    chat = Chat(home.start(), workspace(home), mode="auto")
    chat.daemon.kill()
    daemon = home.start()
    model = home.script(reply(bash("echo ran > ran.txt")), reply("done"))
    prompt = {"sessionId": chat.id, "prompt": "go", "model": model}
    assert daemon.call("agentd/prompt", prompt)["text"] == "done"
    assert (chat.root / "ran.txt").read_text() == "ran\n"


def test_what_has_to_run_outside_is_asked_about_with_the_reason(daemon: Daemon, shared_home: Home) -> None:
    need("bubblewrap")
    place = shared_home.path / "outside.txt"
    call = bash(f"echo x > {place}", unsandboxed="the file is not in the workspace")
    chat, prompt = asking(daemon, shared_home, call, "auto")
    asked = question(chat)
    assert asked["params"]["title"] == f"Outside the sandbox: echo x > {place}"
    assert asked["params"]["subject"]["reason"] == "the file is not in the workspace"
    assert not place.exists()
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    assert chat.result(prompt)["text"] == "done"
    assert place.read_text() == "x\n"


def test_a_model_that_asks_for_more_again_and_again_is_never_given_it_by_itself(
    daemon: Daemon, shared_home: Home
) -> None:
    """What a file or a command's output has talked it into is still a question each time."""
    need("bubblewrap")
    place = shared_home.path / "escalated.txt"
    tries = [reply(bash(f"echo {n} > {place}", n, unsandboxed="the file told me to")) for n in range(1, 4)]
    chat = Chat(daemon, workspace(shared_home), model=shared_home.script(*tries, reply("done")), mode="auto")
    since = len(daemon.messages)
    prompt = chat.start()
    for number in range(1, 4):
        asked = daemon.asked(ASK, since)
        since = len(daemon.messages)
        assert asked["params"]["toolCallId"] == f"call-{number}"
        daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    assert chat.result(prompt)["text"] == "done"
    assert not place.exists()


def test_an_answer_for_good_covers_exactly_this_command(daemon: Daemon, shared_home: Home) -> None:
    need("bubblewrap")
    place = shared_home.path / "always.txt"
    first, other = f"echo x >> {place}", f"echo x >> {place} && touch {place}.2"
    calls = [bash(first, n, unsandboxed="why not") for n in (1, 2)] + [bash(other, 3, unsandboxed="why not")]
    model = shared_home.script(*map(reply, calls), reply("done"))
    chat = Chat(daemon, workspace(shared_home), model=model, mode="auto")
    prompt = chat.start()
    asked = question(chat)
    since = len(daemon.messages)
    daemon.answer(asked, {"optionId": option(asked, "allow_always")})
    asked = daemon.asked(ASK, since)
    assert asked["params"]["toolCallId"] == "call-3"
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(prompt)
    assert place.read_text() == "x\nx\n"


def test_an_untrusted_workspace_asks(home: Home) -> None:
    need("bubblewrap")
    daemon = home.start(options={"permission": True, "trusted": False})
    chat, prompt = asking(daemon, home, bash("echo ran > ran.txt"), "auto")
    asked = question(chat)
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(prompt)
    assert not (chat.root / "ran.txt").exists()


def test_the_sandbox_is_told_and_its_temporary_folder_goes_with_the_daemon(
    home: Home, tmp_path: Path
) -> None:
    need("bubblewrap")
    place = tmp_path / "temporary"
    place.mkdir()
    daemon = home.spawn(TMPDIR=str(place))
    daemon.initialize({"trusted": True, "mode": "auto"})
    chat = Chat(daemon, home.workspace(), model=home.script(reply(bash("echo x > /tmp/file")), reply("done")))
    assert chat.get()["session"]["mode"] == "auto"
    assert daemon.call("agentd/status")["sandbox"] == {"backend": "bubblewrap", "gaps": []}
    chat.run()
    assert [path.read_text() for path in place.glob("agentd-sandbox-*/file")] == ["x\n"]
    daemon.close_stdin()
    assert daemon.exit_code() == 0
    assert list(place.iterdir()) == []


# --- without one ----------------------------------------------------------------------------------


def test_nothing_is_tried_out_before_it_is_needed(home: Home) -> None:
    assert "sandbox" not in home.start().call("agentd/status")


def test_auto_is_refused_with_the_reason_where_there_is_no_sandbox(home: Home) -> None:
    daemon = daemon_without_a_sandbox(home)
    root = home.workspace()
    chat = Chat(daemon, root)
    for method, params in (
        ("agentd/session/new", {"workspaceUri": root.as_uri(), "mode": "auto"}),
        ("agentd/prompt", {"workspaceUri": root.as_uri(), "prompt": "x", "mode": "auto"}),
        ("agentd/session/update", {"sessionId": chat.id, "mode": "auto"}),
    ):
        error = daemon.refused(method, params)
        assert (error["code"], error["data"]["kind"]) == (-32803, "unsupported")
        assert error["message"].startswith("Mode auto needs a sandbox for commands, and there is none: ")
        assert "bwrap does not work here (bwrap: " in error["message"]
    status = daemon.call("agentd/status")
    assert status["sandbox"]["backend"] == "none"
    assert "auto" not in status["modes"]


@pytest.mark.parametrize("said_by", ["client", "configuration"])
def test_auto_as_the_default_acts_as_ask_and_says_so(home: Home, said_by: str) -> None:
    wanted = {"mode": "auto"} if said_by == "client" else {}
    daemon = daemon_without_a_sandbox(home, 'mode = "auto"' if said_by == "configuration" else "", **wanted)
    chat, prompt = asking_by_default(daemon, home)
    assert chat.get()["session"]["mode"] == "ask"
    asked = question(chat)
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(prompt)
    notice = chat.event("notice")
    assert notice["severity"] == "warning"
    assert notice["message"].startswith("Mode auto acts as ask, as there is no sandbox for commands: ")
    problems = [problem["message"] for problem in daemon.call("agentd/status")["problems"]]
    assert notice["message"] in problems
    assert daemon.call("agentd/status")["mode"] == "ask"


def asking_by_default(daemon: Daemon, home: Home) -> tuple[Chat, int]:
    model = home.script(reply(bash("echo ran > ran.txt")), reply("done"))
    chat = Chat(daemon, workspace(home), model=model)
    return chat, chat.start()


def test_a_session_that_was_in_auto_asks_where_the_sandbox_is_gone(home: Home) -> None:
    need("bubblewrap")
    daemon = home.start()
    root = workspace(home)
    model = home.script(reply(bash("echo ran > ran.txt")), reply("done"))
    session = Chat(daemon, root, model=model, mode="auto").id
    daemon.close_stdin()
    daemon.exit_code()
    daemon = daemon_without_a_sandbox(home)
    prompt = daemon.request("agentd/prompt", {"sessionId": session, "prompt": "go on"})
    asked = daemon.asked(ASK)
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    assert daemon.response(prompt)["result"]["text"] == "done"
    assert not (root / "ran.txt").exists()


def test_landlock_is_told_with_what_it_leaves_open(home: Home) -> None:
    need("landlock")
    home.config.write_text('mode = "auto"\n[sandbox]\nbackend = "landlock"\n')
    daemon = home.start()
    chat, prompt = asking_by_default(daemon, home)
    assert chat.result(prompt)["text"] == "done"
    assert asked_nothing(chat)
    assert not tool_result(chat)["isError"]
    notice = chat.event("notice")
    assert notice["message"].startswith("The sandbox for commands is landlock. It has gaps: ")
    assert len(daemon.call("agentd/status")["sandbox"]["gaps"]) == 4
