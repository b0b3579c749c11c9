"""Lives of daemons that are killed in the middle of their work: what they do, and what must be left of it.

The model is a real server on loopback that refuses what strict servers refuse, so that each request after a
kill is known to be valid.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakes.model_server import ModelServer, Recorded
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import LIVE, assert_well_formed
from wire.processes import processes_with, until
from wire.scripts import reply, tool

from agentd.sessions.loading import read_state
from agentd.sessions.state import SessionState

UNKNOWN = "Outcome unknown: the daemon stopped while this ran."
WINDOW = 64_000
FULL: Json = {"input": WINDOW * 9 // 10, "output": 10}
SMALL: Json = {"input": 1000, "output": 10}
TOO_LONG: Json = {
    "content": [],
    "error": {
        "kind": "context_overflow",
        "message": f"This model's maximum context length is {WINDOW} tokens.",
    },
}
MODEL = "server/model"


def configure(home: Home, server: ModelServer) -> None:
    """The provider that these lives use."""
    home.config.write_text(
        f'[providers.server]\napi = "openai-chat"\nbase_url = "{server.base_url}"\n'
        f"[providers.server.models.model]\ncontext_window = {WINDOW}\n"
    )


def aims(marker: str) -> dict[str, Any]:
    """Moments at which to strike: for each, whether this event begins it."""

    def waits(event: Json, kind: str) -> bool:
        return any(each["kind"] == kind for each in event.get("queue", ()))

    return {
        "compaction by request": lambda e: e["type"] == "compaction_start" and e["reason"] == "request",
        "compaction unasked": lambda e: e["type"] == "compaction_start" and e["reason"] != "request",
        "question": lambda e: e["type"] == "permission_requested",
        "tool": lambda e: e["type"] == "tool_execution_start" and marker in json.dumps(e["arguments"]),
        "stream": lambda e: e["type"] == "message_update",
        "steer": lambda e: e["type"] == "queue_changed" and waits(e, "steer"),
        "queue": lambda e: e["type"] == "queue_changed" and waits(e, "queue"),
    }


class Brain:
    """What the model of one life answers: two quick words first, then tools and long answers, then little."""

    def __init__(self, marker: str, effect: str, chance: random.Random) -> None:
        self._marker = marker
        self._slow = {"chunkSize": 3, "delayMs": chance.choice([0, 1, 3])}
        self._plan = self._answers(effect, chance)

    def __call__(self, request: Recorded) -> Json:
        if not request.body.get("tools"):
            return reply(f"## Goal\nSummed up {self._marker}, and a good deal more of it.", **self._slow)
        if f"after {self._marker}" in json.dumps(request.body["messages"][-1]):
            return reply("here again", usage=SMALL)
        return next(self._plan)

    def _answers(self, effect: str, chance: random.Random) -> Iterator[Json]:
        def told() -> Json:
            return {"usage": FULL if chance.random() < 0.35 else SMALL, **self._slow}

        yield reply("a word", usage=SMALL)
        yield reply("another word", usage=SMALL)
        if chance.random() < 0.5:
            yield reply("I look around", tool("list_directory", {}, "look"), **told())
        if chance.random() < 0.4:
            yield TOO_LONG
        yield reply("and run it", tool("bash", {"command": effect}, "the-call"), **told())
        yield reply("and once more", tool("write_file", {"file_path": "b.txt", "content": "x"}), **told())
        while True:
            yield reply("a longer answer that streams for a while", **told())


class Life:
    """A daemon that works on a session of its own until it is killed."""

    def __init__(
        self, home: Home, server: ModelServer, daemon: Daemon, number: int, chance: random.Random
    ) -> None:
        self.home = home
        self.daemon = daemon
        self.server = server
        self.marker = f"life{number}-{chance.randrange(10**9)}"
        server.start_anew()
        effect = f"echo {self.marker} >> effects.txt; sleep 0.0{chance.randrange(1, 9)} # {self.marker}"
        server.push(Brain(self.marker, effect, chance))
        mode = chance.choice(["full", "full", "ask"])
        self.chat = Chat(daemon, home.workspace(), model=MODEL, mode=mode)
        self.chat.run("warm up")
        self.chat.run("and once more")
        self.mark = len(daemon.messages)
        self.aim = chance.choice([None, None, *aims("")])
        if self.aim == "question" and mode != "ask":
            self.aim = "tool"
        self.accepted: list[str] = []
        self.was_summed_up = False

    def work(self, chance: random.Random) -> None:
        """Send prompts and answer questions until the moment comes, and kill."""
        compacts = self.aim == "compaction by request" or chance.random() < 0.25
        if compacts:
            self.daemon.request("agentd/session/compact", {"sessionId": self.chat.id})
        say = [("first", "queue" if compacts else "reject"), ("queued", "queue"), ("steer", "steer")]
        say = [*say, ("queued too", "queue"), ("urgent", "interrupt")][: chance.randrange(1, 6)]
        asked = [(words, self._prompt(words, busy)) for words, busy in say]
        self._until_the_moment(chance)
        self.daemon.kill()
        responses = {
            message.get("id"): message for message in self.daemon.messages if "method" not in message
        }
        self.accepted = [words for words, request in asked if "result" in responses.get(request, {})]
        self.was_summed_up = any(
            each["event"]["type"] == "compaction_end" and each["event"]["outcome"] == "compacted"
            for each in self.seen
        )

    def _until_the_moment(self, chance: random.Random) -> None:
        start = time.monotonic()
        strike = None if self.aim else start + chance.random() ** 2 * 0.9
        later = chance.random() ** 2 * 0.06
        begins = aims(self.marker).get(self.aim or "")
        place = self.mark
        while (strike is None or time.monotonic() < strike) and time.monotonic() < start + 2.0:
            for message in self.daemon.messages[place:]:
                place += 1
                if message.get("method") == "agentd/permission/request" and chance.random() < 0.7:
                    option = chance.choice(["allow_once", "allow_once", "reject_once"])
                    self.daemon.answer(message, {"optionId": option})
                event = message.get("params", {}).get("event")
                if strike is None and begins and event and begins(event):
                    strike = time.monotonic() + later
            time.sleep(0.001)

    def _prompt(self, words: str, busy: str) -> int:
        return self.chat.start(
            f"{words} {self.marker}", whenBusy=busy, wait="accepted", promptId=_id_of(words)
        )

    # --- afterwards ---

    @property
    def seen(self) -> list[Json]:
        """The durable events that the client had."""
        return [params for params in self.chat.notifications() if params["event"]["type"] not in LIVE]

    @property
    def journal(self) -> Path:
        """The file that the life has left."""
        (path,) = (self.home.data / "sessions").glob(f"*/{self.chat.id}.jsonl")
        return path

    def left(self) -> SessionState:
        """How the journal stands before anybody closes what is open in it."""
        return read_state(self.journal, self.chat.id)[0]

    def assert_survived(self, left: SessionState, later: Daemon) -> None:
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
        self._assert_closed(left, told["events"])
        got = later.call("agentd/session/get", {"sessionId": chat.id})
        self._assert_prompts(got, later)
        self._assert_effects(got["messages"])
        self._assert_goes_on(later)

    def _assert_closed(self, left: SessionState, events: list[Json]) -> None:
        """A run that was cut short is `interrupted`, unless its last word had been said; so is a summary."""
        kinds = [each["event"]["type"] for each in events]
        assert kinds.count("compaction_start") == kinds.count("compaction_end")
        if left.compacting is not None:
            last = [each["event"] for each in events if each["event"]["type"] == "compaction_end"][-1]
            assert last["outcome"] == "aborted"
        run = left.run
        if run is not None and (run.answer is None or run.answer.calls):
            (end,) = (
                each["event"]
                for each in events
                if each["event"]["type"] == "agent_end" and each["promptId"] == run.prompt_id
            )
            assert end["stopReason"] == "interrupted"

    def _assert_prompts(self, got: Json, later: Daemon) -> None:
        """Each that was accepted was said, waits, or was given back to the client: one of them."""
        said = [block["text"] for m in got["messages"] if m["role"] == "user" for block in m["content"]]
        waiting = [block["text"] for queued in got["queue"] for block in queued["prompt"]]
        for words in self.accepted:
            text = f"{words} {self.marker}"
            count = (said + waiting).count(text)
            if not count:
                again = {"sessionId": self.chat.id, "promptId": _id_of(words), "prompt": text}
                result = later.call("agentd/prompt", again)
                assert (result["stopReason"], result["turns"]) == ("aborted", 0), (words, said, waiting)
            assert count <= 1, (words, said, waiting)

    def _assert_effects(self, messages: list[Json]) -> None:
        """The command ran at most once, and where it may have run it is answered."""
        effects = self.chat.root / "effects.txt"
        count = effects.read_text().count(self.marker) if effects.exists() else 0
        results = [m for m in messages if m["role"] == "tool_result" and m["toolCallId"] == "the-call"]
        assert count <= 1
        assert len(results) <= 1
        if count:
            assert results, "a call that ran has its result"

    def _assert_goes_on(self, later: Daemon) -> None:
        about = f"after {self.marker}"
        result = later.call("agentd/prompt", {"sessionId": self.chat.id, "prompt": about})
        assert (result["stopReason"], result["text"]) == ("stop", "here again"), result
        assert not self.server.faults, self.server.faults
        if self.was_summed_up:
            last = json.dumps(self.server.requests[-1].body)
            assert f"Summed up {self.marker}" in last, "a summary that was told stands for the history"


def _id_of(words: str) -> str:
    return f"{words.replace(' ', '-')}-x"


def moment(left: SessionState) -> str:
    """What a kill met, from what the journal says."""
    run = left.run
    if left.compacting is not None:
        return f"compaction ({left.compacting.reason})"
    if run is None:
        return "no run"
    if run.questions:
        return "question"
    if run.calls:
        return "tool"
    if run.message is not None:
        return f"message ({run.message.role})"
    return "between two steps" if run.turn else "begin of a run"
