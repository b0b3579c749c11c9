"""A cancel behind every single event of a run: each moment ends well, and everyone is told the same."""

from wire.harness import Daemon
from wire.home import Home
from wire.runs import assert_paired, assert_takes_the_next_prompt, chat_with
from wire.scripts import reply, tool


def test_a_cancel_at_any_moment_leaves_all_closed(daemon: Daemon, shared_home: Home) -> None:
    calls = [
        tool("bash", {"command": "echo a; sleep 0.005"}),
        tool("missing"),
        tool("write_file", {"file_path": "a.txt", "content": "x"}),
    ]
    chat = chat_with(daemon, shared_home)
    states = set()
    for number in range(45):
        model = shared_home.script(
            reply("said", *calls, chunkSize=8, delayMs=1), reply("done", chunkSize=1, delayMs=1)
        )
        since = len(daemon.messages)
        prompt = chat.start(promptId=f"moment-{number}", model=model)
        # The cancel follows the message of this number: some prompt reaches every event of a run.
        daemon.wait(
            lambda m, since=since, number=number, prompt=prompt: (
                m.get("id") == prompt or len(daemon.messages) > since + number
            ),
            since,
        )
        state = chat.cancel()["state"]
        result = chat.result(prompt)
        assert (state, result["stopReason"]) in (("cancelled", "aborted"), ("notRunning", "stop"))
        states.add(state)
    assert states == {"cancelled", "notRunning"}
    assert_paired(assert_takes_the_next_prompt(chat, shared_home, "after every moment"))


def test_a_cancel_while_words_stream_says_the_same_to_everyone(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home)
    for number in range(100):
        prompt_id = f"words-{number}"
        model = shared_home.script(reply("0123456789", chunkSize=1, delayMs=1))
        since = len(daemon.messages)
        prompt = chat.start(promptId=prompt_id, model=model)
        daemon.wait(
            lambda m, since=since, place=number % 17, prompt=prompt: (
                m.get("id") == prompt or len(daemon.messages) > since + place
            ),
            since,
        )
        state, result = chat.cancel()["state"], chat.result(prompt)
        assert (state, result["stopReason"]) in (("cancelled", "aborted"), ("notRunning", "stop"))
        streamed = [
            params["event"]["update"]["delta"]
            for params in chat.notifications(prompt_id)
            if params["event"]["type"] == "message_update"
        ]
        assert "".join(streamed) == result["text"]
