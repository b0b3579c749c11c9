"""What tests read out of the events of one run."""

from pathlib import Path
from typing import Any

from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.scripts import reply


def chat_with(
    daemon: Daemon, home: Home, *responses: Json, root: Path | None = None, **settings: Any
) -> Chat:
    """A session whose model plays these responses; every tool runs without a question."""
    settings = {"mode": "full", **settings}
    return Chat(daemon, root or home.workspace(), model=home.script(*responses), **settings)


def run_events(chat: Chat) -> list[Json]:
    """The events of the only run of a session, without the one that introduces the session."""
    notifications = chat.notifications()
    assert_well_formed(notifications)
    return notifications[1:]


def of_type(notifications: list[Json], kind: str) -> list[Json]:
    return [params["event"] for params in notifications if params["event"]["type"] == kind]


def result_texts(notifications: list[Json]) -> list[str]:
    """The texts of the tool results, in order."""
    ends = of_type(notifications, "tool_execution_end")
    return ["".join(block["text"] for block in end["result"]["content"]) for end in ends]


def assert_takes_the_next_prompt(chat: Chat, home: Home, about: str) -> list[Json]:
    """The session goes on; gives the messages of its next request."""
    assert chat.run(about, model=home.script(reply("on we go")))["text"] == "on we go"
    assert_well_formed(chat.notifications())
    messages: list[Json] = home.model_requests(about)[-1]["messages"]
    return messages


def assert_paired(messages: list[Json]) -> None:
    """Each call has exactly one result right behind its message, in call order, and there are no others."""
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        assert message["role"] != "tool_result"
        if message["role"] == "assistant":
            for block in message["content"]:
                if block["type"] == "tool_call":
                    assert rest.pop(0)["toolCallId"] == block["id"]
