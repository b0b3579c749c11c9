"""The to-do list over the wire: told as it changes, and there again after a `kill -9`."""

from wire.chat import Chat
from wire.home import Home
from wire.scripts import reply, tool


def test_the_list_is_told_inside_the_call_and_stands_in_readings_after_a_kill(home: Home) -> None:
    items = [{"text": "look", "status": "completed"}, {"text": "mend", "status": "in_progress"}]
    daemon = home.start()
    chat = Chat(
        daemon,
        home.workspace(),
        model=home.script(
            reply(tool("todo_write", {"items": items})),
            reply(tool("todo_write", {"items": items})),
            reply("ok"),
        ),
        mode="plan",
    )
    chat.run("plan it")
    kept = [{"id": "1", **items[0]}, {"id": "2", **items[1]}]
    events = [note["event"] for note in chat.notifications()]
    told = [n for n, event in enumerate(events) if event["type"] == "todo_changed"]
    assert [events[n]["items"] for n in told] == [kept], "the same list again is no news"
    assert [events[told[0] + step]["type"] for step in (-1, 1)] == [
        "tool_execution_start",
        "tool_execution_end",
    ]
    assert chat.get()["todo"] == kept
    daemon.kill()
    other = home.start()
    assert other.call("agentd/session/get", {"sessionId": chat.id})["todo"] == kept
    params = {
        "sessionId": chat.id,
        "prompt": "what is left?",
        "model": home.script(reply(tool("todo_read")), reply("ok")),
    }
    other.call("agentd/prompt", params)
    assert "[>] 2: mend" in str(home.model_requests("what is left?")[-1])
