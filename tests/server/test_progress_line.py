"""What the model writes, as progress tells it: the line that it is at, cut to what a status line holds."""

from typing import Any, cast

import anyio
import pytest

from agentd.daemon.door import Door
from agentd.protocol.events import MessageDelta, MessageHead, MessageStart, MessageUpdate
from agentd.server import progress as module
from agentd.server.progress import Progress


class Told:
    """A door that keeps the messages of progress."""

    def __init__(self) -> None:
        self.said: list[str | None] = []

    def notify(self, method: str, params: Any) -> None:
        self.said.append(params["value"].get("message"))


def said(*deltas: str, kind: Any = "text") -> list[str | None]:
    """What is told while these are written, after the beginning."""
    door = Told()

    async def write() -> None:
        progress = Progress(cast(Door, door), "token")
        progress.begin()
        for delta in deltas:
            update = MessageDelta(kind=kind, index=0, offset=0, delta=delta)
            progress.hear(MessageUpdate(message_id="m_1", update=update))

    anyio.run(write)
    return door.said[1:]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0.0)


def test_a_line_grows_and_gives_way_to_the_next() -> None:
    assert said("It ", "is a list.\n", "\n", "* one") == ["It", "It is a list.", "* one"]


def test_of_a_long_line_its_end_is_told() -> None:
    (told,) = said("x" * 5000 + "end")
    assert told is not None
    assert len(told) == 80
    assert told.startswith("…")
    assert told.endswith("end")


def test_neither_thoughts_nor_what_steers_a_terminal_are_told() -> None:
    assert said("secret", kind="thinking") == []
    assert said("\x1b[2Jred\u202e") == ["[2Jred"]


def test_no_more_often_than_a_user_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 3600.0)
    assert said("It ", "is ", "a list.") == ["It"]


def test_a_new_message_begins_with_an_empty_line() -> None:
    door = Told()

    async def write() -> None:
        progress = Progress(cast(Door, door), "token")
        progress.begin()
        for text in ("one", "two"):
            head = MessageHead(role="assistant", message_id="m_1")
            progress.follow(MessageStart(message=head))
            update = MessageDelta(kind="text", index=0, offset=0, delta=text)
            progress.hear(MessageUpdate(message_id="m_1", update=update))

    anyio.run(write)
    assert door.said[1:] == ["one", "two"]
