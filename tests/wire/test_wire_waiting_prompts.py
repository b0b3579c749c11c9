"""A prompt counts from the reading of its frame, also one that names no session or has to wait its turn."""

from wire.chat import Chat
from wire.harness import Daemon, Json, request
from wire.home import Home
from wire.scripts import reply


def test_a_cancel_in_the_frame_behind_a_prompt_that_names_no_session_counts(
    daemon: Daemon, shared_home: Home
) -> None:
    for number in range(20):
        chat = Chat(daemon, shared_home.workspace(), model=shared_home.script(reply("never", delayMs=5)))
        prompt, cancel = f"prompt {number}", f"cancel {number}"
        params: Json = {"workspaceUri": chat.root.as_uri(), "prompt": "go"}
        daemon.send(
            request(prompt, "agentd/prompt", params),
            request(cancel, "agentd/cancel", {"sessionId": chat.id}),
        )
        assert daemon.response(cancel)["result"]["state"] == "cancelled"
        result = daemon.response(prompt)["result"]
        assert (result["stopReason"], result["turns"], result["text"]) == ("aborted", 0, "")


def test_a_reading_of_a_session_does_not_take_it_away_from_others(home: Home) -> None:
    one, two = home.start(), home.start()
    chat = Chat(one, home.workspace(), model=home.script(reply("hello"), reply("again")))
    assert chat.run("first")["text"] == "hello"
    one.call("agentd/session/close", {"sessionId": chat.id})
    reading = two.call("agentd/session/get", {"sessionId": chat.id})
    assert [message["role"] for message in reading["messages"]] == ["user", "assistant"]
    assert chat.run("second", model=home.script(reply("still mine")))["text"] == "still mine"
    assert two.call("agentd/session/get", {"sessionId": chat.id})["session"]["lockedBy"] == one.process.pid
