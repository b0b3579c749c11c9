"""`kill -9` at random moments of runs with tools, streams, questions, steers and a queue (faults C1 and C3).

Each life of a daemon reads what the last one left, holds it against what that one had acknowledged, and is
killed in the middle of its own work.
"""

import json
import random
import time

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import LIVE, assert_well_formed
from wire.processes import processes_with, until
from wire.runs import assert_paired
from wire.scripts import reply, tool

UNKNOWN = "Outcome unknown: the daemon stopped while this ran."


class Life:
    """A daemon that works on a session of its own until it is killed."""

    def __init__(self, home: Home, daemon: Daemon, number: int, chance: random.Random) -> None:
        self.daemon = daemon
        self.marker = f"life{number}-{chance.randrange(10**9)}"
        self.mark = len(daemon.messages)
        effect = f"echo {self.marker} >> effects.txt; sleep 0.0{chance.randrange(1, 9)} # {self.marker}"
        slow = {"chunkSize": 3, "delayMs": chance.choice([0, 1, 3])}
        model = home.script(
            reply("I look around", tool("list_directory"), **slow),
            reply("and run it", tool("bash", {"command": effect}, "the-call"), **slow),
            reply("and once more", tool("write_file", {"file_path": "b.txt", "content": "x"}), **slow),
            *[reply("a longer answer that streams for a while", **slow) for _ in range(9)],
        )
        mode = chance.choice(["full", "full", "ask"])
        self.chat = Chat(daemon, home.workspace(), model=model, mode=mode)
        self.accepted: list[str] = []

    def work(self, chance: random.Random) -> None:
        """Send prompts and answer questions until the moment comes, and kill."""
        end = time.monotonic() + chance.random() ** 2 * 0.9
        say = [("first", "reject"), ("queued", "queue"), ("steer", "steer"), ("queued too", "queue")]
        asked = [(words, self._prompt(words, busy)) for words, busy in say[: chance.randrange(1, 5)]]
        answered: set[int] = set()
        while time.monotonic() < end:
            for message in self.daemon.messages[self.mark :]:
                if message.get("method") == "agentd/permission/request" and message["id"] not in answered:
                    answered.add(message["id"])
                    if chance.random() < 0.7:
                        self.daemon.answer(message, {"optionId": "allow_once"})
            time.sleep(0.002)
        self.daemon.kill()
        responses = {
            message.get("id"): message for message in self.daemon.messages if "method" not in message
        }
        self.accepted = [words for words, request in asked if "result" in responses.get(request, {})]

    def _prompt(self, words: str, busy: str) -> int:
        return self.chat.start(
            f"{words} {self.marker}", whenBusy=busy, wait="accepted", promptId=f"{words[:2]}-x"
        )

    # --- afterwards ---

    @property
    def seen(self) -> list[Json]:
        """The durable events that the client had."""
        return [params for params in self.chat.notifications() if params["event"]["type"] not in LIVE]

    def assert_survived(self, home: Home, later: Daemon) -> None:
        """Nothing acknowledged is missing, nothing ran twice, the next request is valid."""
        until(lambda: not processes_with(self.marker), "the tool's processes die with the daemon")
        seen, chat = self.seen, self.chat
        listed = later.call("agentd/session/list", {"workspaceUri": chat.root.as_uri()})["sessions"]
        assert [(each["sessionId"], each["state"]) for each in listed] == [(chat.id, "idle")]
        assert "lockedBy" not in listed[0]
        told = later.call("agentd/session/attach", {"sessionId": chat.id})
        assert told["kind"] == "replay"
        assert [each["seq"] for each in told["events"]] == list(range(1, told["seq"] + 1))
        assert told["events"][: len(seen)] == seen, "what was sent is there as it was sent"
        assert_well_formed(told["events"])
        got = later.call("agentd/session/get", {"sessionId": chat.id})
        said = [block["text"] for m in got["messages"] if m["role"] == "user" for block in m["content"]]
        waiting = [block["text"] for queued in got["queue"] for block in queued["prompt"]]
        for words in self.accepted:
            assert (said + waiting).count(f"{words} {self.marker}") == 1, (words, said, waiting)
        self._assert_effects(got["messages"])
        self._assert_goes_on(home, later)

    def _assert_effects(self, messages: list[Json]) -> None:
        """The command ran at most once, and where it may have run it is answered."""
        effects = self.chat.root / "effects.txt"
        count = effects.read_text().count(self.marker) if effects.exists() else 0
        results = [m for m in messages if m["role"] == "tool_result" and m["toolCallId"] == "the-call"]
        assert count <= 1
        assert len(results) <= 1
        if count:
            assert results, "a call that ran has its result"

    def _assert_goes_on(self, home: Home, later: Daemon) -> None:
        about = f"after {self.marker}"
        params = {"sessionId": self.chat.id, "prompt": about, "model": home.script(reply("here again"))}
        result = later.call("agentd/prompt", params)
        assert (result["stopReason"], result["text"]) == ("stop", "here again"), result
        (asked,) = home.model_requests(about)
        assert_paired(asked["messages"])


def kills(home: Home, count: int, seed: int) -> None:
    chance = random.Random(seed)
    daemon = home.start("--allow-full")
    unknown = 0
    for number in range(count):
        life = Life(home, daemon, number, chance)
        life.work(chance)
        daemon = home.start("--allow-full")
        life.assert_survived(home, daemon)
        unknown += UNKNOWN in json.dumps(daemon.messages)
        home.asked_models.unlink(missing_ok=True)
    print(f"{count} kills, {unknown} of them in a tool")
    assert unknown >= count // 50, "some of them hit a tool"


def test_twelve_kills_at_random_moments(home: Home) -> None:
    kills(home, 12, seed=20261130)


@pytest.mark.nightly
def test_two_hundred_kills_at_random_moments(home: Home) -> None:
    kills(home, 200, seed=1)
