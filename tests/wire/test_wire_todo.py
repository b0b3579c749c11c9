"""The to-do list over the wire: told as it changes, and there again after a `kill -9`."""

from wire.chat import Chat
from wire.harness import Json
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


def test_a_fork_has_the_list_of_its_place_in_the_history_and_changes_only_its_own(home: Home) -> None:
    def write(what: str) -> Json:
        return reply(tool("todo_write", {"items": [{"text": what, "status": "pending"}]}))

    daemon = home.start()
    model = home.script(write("first"), reply("a"), write("second"), reply("b"))
    chat = Chat(daemon, home.workspace(), model=model, mode="plan")
    chat.run("one")
    place = chat.get()["messages"][-1]["messageId"]
    chat.run("two")

    def fork(**where: str) -> str:
        made = daemon.call("agentd/session/fork", {"sessionId": chat.id, **where})
        fork_id: str = made["session"]["sessionId"]
        return fork_id

    def todo(session: str) -> list[str]:
        got = daemon.call("agentd/session/get", {"sessionId": session})
        return [item["text"] for item in got["todo"]]

    early, late = fork(messageId=place), fork()
    assert (todo(early), todo(late)) == (["first"], ["second"])
    script = home.script(write("third"), reply("c"))
    daemon.call("agentd/prompt", {"sessionId": early, "prompt": "three", "model": script})
    assert (todo(early), todo(chat.id)) == (["third"], ["second"])
