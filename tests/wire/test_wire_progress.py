"""A prompt with a `workDoneToken` shows its steps as progress of the editor, and can be stopped there."""

from wire.harness import Daemon, Json
from wire.home import Home
from wire.runs import chat_with
from wire.scripts import reply, text, tool


def steps(daemon: Daemon, token: str) -> list[Json]:
    return [
        message["params"]["value"]
        for message in daemon.messages
        if message.get("method") == "$/progress" and message["params"]["token"] == token
    ]


def test_the_steps_of_a_prompt_are_told_and_end_before_its_response(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(
        daemon, shared_home, reply(text("I look."), tool("list_directory", {"path": "."})), reply("done")
    )
    prompt = chat.start(workDoneToken="steps")
    assert chat.result(prompt)["stopReason"] == "stop"
    told = steps(daemon, "steps")
    assert [step["kind"] for step in told] == ["begin", "report", "end"]
    assert told[0]["cancellable"] is True
    assert "List" in told[1]["message"]
    order = [m for m in daemon.messages if m.get("method") == "$/progress" or m.get("id") == prompt]
    assert order[-1].get("id") == prompt


def test_stopping_the_progress_cancels_its_prompt(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("abc", hang=True))
    prompt = chat.start(workDoneToken="stop")
    chat.event("message_update")
    daemon.notify("window/workDoneProgress/cancel", {"token": "another"})
    assert daemon.serves()
    daemon.notify("window/workDoneProgress/cancel", {"token": "stop"})
    assert chat.result(prompt)["stopReason"] == "aborted"
    assert steps(daemon, "stop")[-1] == {"kind": "end"}
    daemon.notify("window/workDoneProgress/cancel", {"token": "stop"})
    assert daemon.serves()


def test_a_prompt_that_never_began_shows_no_progress(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("never"))
    params = chat.prompt_params("x", model="none/x", workDoneToken="none")
    assert daemon.refused("agentd/prompt", params)["data"]["kind"] == "noModel"
    assert steps(daemon, "none") == []
