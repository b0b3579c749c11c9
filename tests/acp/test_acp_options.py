"""Modes, options and commands over ACP."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.acp_agent import AcpHome, Agent, error_of, selected
from wire.scripts import reply, tool

PROVIDER = """
[providers.local]
api = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
[providers.local.models.thinker]
efforts = ["low", "high"]
reasoning = true
[providers.local.models.plain]
"""


def opened(agent: Agent, folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = agent.call("session/new", {"cwd": str(folder), "mcpServers": []})
    return result


def option(options: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [each for each in options if each["id"] == name]
    return found


def test_full_is_offered_only_where_it_is_allowed(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    strict, free = acp_home.begun(), acp_home.begun(args=("--allow-full",))
    modes = {
        agent: [each["id"] for each in opened(agent, folder)["modes"]["availableModes"]]
        for agent in (strict, free)
    }
    assert "full" not in modes[strict]
    assert "full" in modes[free]
    assert {"plan", "ask", "edit"} <= set(modes[strict])
    session = strict.new(folder)
    error = strict.refused("session/set_mode", {"sessionId": session, "modeId": "full"})
    assert error["data"]["kind"] == "unsupported"
    assert strict.refused("session/set_mode", {"sessionId": session, "modeId": "yolo"})["code"] == -32602


def test_a_mode_is_told_of_and_counts(acp_home: AcpHome) -> None:
    agent = acp_home.begun(
        reply(tool("write_file", {"file_path": "a.txt", "content": "a"}, "c1")), reply("Done.")
    )
    folder = acp_home.workspace()
    made = opened(agent, folder)
    session = made["sessionId"]
    assert made["modes"]["currentModeId"] == "ask"
    agent.call("session/set_mode", {"sessionId": session, "modeId": "plan"})
    assert agent.updates(session, "current_mode_update")[0]["currentModeId"] == "plan"
    (update,) = agent.updates(session, "config_option_update")
    assert option(update["configOptions"], "mode")["currentValue"] == "plan"
    agent.ask(session, "write it")
    assert not (folder / "a.txt").exists()
    assert agent.call_of(session, "c1")["status"] == "failed"


def test_options_choose_model_effort_and_mode(acp_home: AcpHome) -> None:
    acp_home.config.write_text('model = "local/plain"\n' + PROVIDER)
    agent = acp_home.spawn()
    agent.begin()
    made = opened(agent, acp_home.workspace())
    session, options = made["sessionId"], made["configOptions"]
    assert {each["id"]: each["category"] for each in options} == {"mode": "mode", "model": "model"}
    models = option(options, "model")
    assert models["currentValue"] == "local/plain"
    assert {"local/plain", "local/thinker"} <= {each["value"] for each in models["options"]}
    params = {"sessionId": session, "configId": "model", "value": "local/thinker"}
    options = agent.call("session/set_config_option", params)["configOptions"]
    effort = option(options, "effort")
    assert effort["category"] == "thought_level"
    assert effort["currentValue"] == "default"
    for value in ("high", "default", "high"):
        params = {"sessionId": session, "configId": "effort", "value": value}
        options = agent.call("session/set_config_option", params)["configOptions"]
        assert option(options, "effort")["currentValue"] == value
    params = {"sessionId": session, "configId": "mode", "value": "edit"}
    options = agent.call("session/set_config_option", params)["configOptions"]
    assert option(options, "mode")["currentValue"] == "edit"
    told = agent.updates(session, "config_option_update")[-1]["configOptions"]
    assert told == options


@pytest.mark.parametrize(
    ("config_id", "value"),
    [
        ("colour", "red"),
        ("mode", "yolo"),
        ("model", "nowhere/none"),
        ("model", ""),
        ("effort", "high"),
        ("mode", True),
    ],
)
def test_a_choice_that_there_is_not_is_refused_and_changes_nothing(
    acp_home: AcpHome, config_id: str, value: Any
) -> None:
    agent = acp_home.begun(reply("never"))
    made = opened(agent, acp_home.workspace())
    params = {"sessionId": made["sessionId"], "configId": config_id, "value": value}
    error_of(agent.response(agent.request("session/set_config_option", params)))
    assert not agent.updates(made["sessionId"], "config_option_update", "current_mode_update")


def test_without_a_model_the_choice_says_so(acp_home: AcpHome) -> None:
    agent = acp_home.begun()
    model = option(opened(agent, acp_home.workspace())["configOptions"], "model")
    assert model["currentValue"] == ""
    assert model["options"][0]["name"] == "None chosen"


# --- commands ---------------------------------------------------------------------------------------


def test_a_built_in_command_is_typed_as_text(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("never"))
    session = agent.new(acp_home.workspace())
    assert agent.ask(session, "/mode plan")["stopReason"] == "end_turn"
    assert "`plan`" in agent.said(session)
    assert agent.updates(session, "current_mode_update")[0]["currentModeId"] == "plan"
    assert acp_home.model_requests() == []


def test_undo_brings_back_what_a_prompt_changed(acp_home: AcpHome) -> None:
    acp_home.trust("edit")
    folder = acp_home.workspace(a_txt="one\n")
    agent = acp_home.begun(
        reply(tool("read_file", {"file_path": "a.txt"})),
        reply(tool("edit_file", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        reply("Done."),
    )
    session = agent.new(folder)
    agent.ask(session, "change it")
    assert (folder / "a.txt").read_text() == "two\n"
    agent.ask(session, "/undo")
    assert (folder / "a.txt").read_text() == "one\n"


def test_a_command_of_the_users_folder_runs_with_its_arguments(acp_home: AcpHome) -> None:
    commands = acp_home.path / "commands"
    commands.mkdir()
    (commands / "review.md").write_text("---\ndescription: Look hard\n---\nReview $1 for $2.\n")
    folder = acp_home.workspace(a_txt="the text\n")
    agent = acp_home.begun(reply("Reviewed."))
    session = agent.new(folder)
    told = agent.told(session, lambda update: update["sessionUpdate"] == "available_commands_update")
    assert ("review", "Look hard") in [
        (each["name"], each["description"]) for each in told["availableCommands"]
    ]
    link = {"type": "resource_link", "uri": (folder / "a.txt").as_uri(), "name": "a.txt"}
    agent.ask(session, [{"type": "text", "text": "/review this faults"}, link])
    (request,) = acp_home.model_requests()
    assert "Review this for faults." in str(request)
    assert "the text" in str(request)


@pytest.mark.parametrize("trusted", [True, False])
def test_commands_of_a_workspace_count_only_where_it_is_trusted(acp_home: AcpHome, trusted: bool) -> None:
    folder = acp_home.workspace()
    (folder / ".agentd" / "commands").mkdir(parents=True)
    (folder / ".agentd" / "commands" / "ship.md").write_text("Ship $ARGUMENTS now.\n")
    if trusted:
        acp_home.trust("ask")
    agent = acp_home.begun(reply("Shipped."))
    session = agent.new(folder)
    told = agent.told(session, lambda update: update["sessionUpdate"] == "available_commands_update")
    assert ("ship" in [each["name"] for each in told["availableCommands"]]) is trusted
    response = agent.response(agent.prompt(session, "/ship it"))
    if trusted:
        assert response["result"]["stopReason"] == "end_turn"
        assert "Ship it now." in str(acp_home.model_requests())
    else:
        assert "counts once you trust it" in error_of(response)["message"]
        assert acp_home.model_requests() == []


def test_a_wrong_command_names_what_is_near_and_a_blank_makes_it_text(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("A text."))
    session = agent.new(acp_home.workspace())
    error = error_of(agent.response(agent.prompt(session, "/hlep")))
    assert "/help" in error["message"]
    assert agent.ask(session, " /hlep")["stopReason"] == "end_turn"


def test_a_path_is_no_command(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("A text."))
    session = agent.new(acp_home.workspace())
    assert agent.ask(session, "/usr/bin/env fails")["stopReason"] == "end_turn"


def test_a_new_command_is_told_of_with_the_next_prompt(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("Hello."))
    session = agent.new(acp_home.workspace())
    agent.told(session, lambda update: update["sessionUpdate"] == "available_commands_update")
    (acp_home.path / "commands").mkdir()
    (acp_home.path / "commands" / "later.md").write_text("Later.\n")
    agent.ask(session, "hi")
    agent.told(session, lambda update: "later" in str(update.get("availableCommands")))


def test_the_commands_of_a_workspace_come_and_go_with_trust(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    (folder / ".agentd" / "commands").mkdir(parents=True)
    (folder / ".agentd" / "commands" / "ship.md").write_text("Ship it.\n")
    agent = acp_home.begun(*[reply("Hello.")] * 2)
    session = agent.new(folder)
    agent.told(session, lambda update: update["sessionUpdate"] == "available_commands_update")
    for verb, counts in (("add", True), ("remove", False)):
        since = len(agent.messages)
        command = [sys.executable, "-m", "agentd", "trust", verb, str(folder)]
        subprocess.run(command, env=acp_home.environment(), capture_output=True, check=True, timeout=60)
        agent.ask(session, verb)
        told = agent.told(session, lambda update: "availableCommands" in update, since)
        assert ("ship" in [each["name"] for each in told["availableCommands"]]) is counts


def test_an_untrusted_workspace_asks_whatever_the_mode(acp_home: AcpHome) -> None:
    acp_home.settings = 'mode = "full"\n'
    agent = acp_home.begun(reply(tool("bash", {"command": "true"}, "c1")), reply("Done."))
    session = agent.new(acp_home.workspace())
    prompt = agent.prompt(session, "go")
    agent.answer(agent.question(), selected("reject_once"))
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
