"""Random prompts, steers, interruptions, cancels, changes of the queue and restarts, on a real daemon.

Whatever came in which order: every request is answered once, events have no gap, every run is whole, and
every prompt that was taken is said once, or was given back; never twice, never in a run that is not its own.
"""

import random
import time
from collections import Counter

import pytest
from wire.chat import Chat
from wire.harness import Json
from wire.home import Home
from wire.order import LIVE, assert_well_formed
from wire.runs import assert_paired
from wire.scripts import reply, tool

BUSY = ["reject", "queue", "queue", "steer", "steer", "interrupt"]
END = ("stop", "length", "aborted", "error", "interrupted", "max_turns", "refusal")


class Driver:
    """One session, and a user who does not know what they want. `home` holds what several daemons share."""

    def __init__(self, home: Home, seed: int) -> None:
        self.chance = random.Random(seed)
        self.home = home
        self.daemon = home.start("--allow-full")
        self.model = home.script(*self._responses())
        self.chat = Chat(self.daemon, home.workspace(), model=self.model, mode="full")
        self.texts: dict[str, str] = {}  # prompt id -> what it says
        self.sent: dict[int, str] = {}  # request of this daemon -> prompt id
        self.others: set[int] = set()
        self.results: dict[str, Json] = {}
        self.taken: set[str] = set()  # prompts that were acknowledged
        self.given: list[str] = []  # prompts that came back

    def _responses(self) -> list[Json]:
        chance = self.chance
        pace = [
            {"delayMs": chance.choice([0, 1, 2]), "chunkSize": chance.choice([2, 5, 50])} for _ in range(400)
        ]
        return [
            reply("so", tool(chance.choice(["list_directory", "missing"])), **each)
            if chance.random() < 0.4
            else reply("some answer", **each)
            for each in pace
        ]

    # --- what the user does ---

    def act(self) -> None:
        acts = [self.prompt] * 8 + [
            self.cancel,
            self.change,
            self.change,
            self.withdraw,
            self.read,
            self.pause,
        ]
        self.chance.choice(acts)()

    def prompt(self) -> None:
        again = self.texts and self.chance.random() < 0.15
        number = len(self.texts)
        prompt_id = self.chance.choice(list(self.texts)) if again else f"p{number}"
        said = self.texts.setdefault(prompt_id, f"say {prompt_id} once")
        params = {
            "whenBusy": self.chance.choice(BUSY),
            "wait": self.chance.choice(["completed", "accepted"]),
        }
        self.sent[self.chat.start(said, promptId=prompt_id, **params)] = prompt_id

    def some_prompt(self) -> str:
        return self.chance.choice([*self.texts, "nobody"])

    def cancel(self) -> None:
        params: Json = {"sessionId": self.chat.id, "keepQueue": self.chance.random() < 0.5}
        if self.chance.random() < 0.4:
            params["promptId"] = self.some_prompt()
        self.others.add(self.daemon.request("agentd/cancel", params))

    def change(self) -> None:
        op = self.chance.choice(["remove", "move", "run", "run", "clear"])
        params: Json = {"sessionId": self.chat.id, "op": op}
        if op in ("remove", "move"):
            params["promptId"] = self.some_prompt()
        if op == "move":
            params["index"] = self.chance.randrange(4)
        self.others.add(self.daemon.request("agentd/queue/update", params))

    def withdraw(self) -> None:
        if self.sent:
            self.daemon.notify("$/cancelRequest", {"id": self.chance.choice(list(self.sent))})

    def read(self) -> None:
        method = self.chance.choice(["agentd/session/get", "agentd/session/attach"])
        self.others.add(self.daemon.request(method, {"sessionId": self.chat.id}))

    def pause(self) -> None:
        time.sleep(self.chance.random() * 0.05)

    # --- restarts ---

    def restart(self) -> None:
        """Kill the daemon, or end it in good order, and go on with the next one."""
        if self.chance.random() < 0.6:
            self.daemon.kill()
        else:
            self.daemon.close_stdin()
            assert self.daemon.exit_code() == 0
            self._assert_answered()
        self._collect()
        last = self._durable()
        self.daemon = self.chat.daemon = self.home.start("--allow-full")
        self.sent, self.others = {}, set()
        told = self.daemon.call("agentd/session/attach", {"sessionId": self.chat.id})
        assert told["events"][: last[-1]["seq"] if last else 0][-len(last) :] == last
        assert_well_formed(told["events"])

    def _durable(self) -> list[Json]:
        """What this daemon sent of the session, without a gap."""
        sent = [each for each in self.chat.notifications() if each["event"]["type"] not in LIVE]
        numbers = [each["seq"] for each in sent]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
        return sent

    # --- what must be so ---

    def _responses_by_id(self) -> dict[int, list[Json]]:
        found: dict[int, list[Json]] = {}
        for message in list(self.daemon.messages):
            if "method" not in message:
                found.setdefault(message["id"], []).append(message)
        return found

    def _assert_answered(self) -> None:
        answers = self._responses_by_id()
        assert all(len(answers.get(request, ())) == 1 for request in {*self.sent, *self.others})

    def _collect(self) -> None:
        for request, answers in self._responses_by_id().items():
            (answer,) = answers
            result = answer.get("result")
            if result is None or not isinstance(result, dict):
                continue
            self.given += [queued["promptId"] for queued in result.get("restored") or ()]
            if request not in self.sent:
                continue
            prompt_id = self.sent[request]
            self.taken.add(prompt_id)
            if "stopReason" in result:
                told = {key: value for key, value in result.items() if key != "restored"}
                assert self.results.setdefault(prompt_id, told) == told, "a prompt has one result"

    def finish(self) -> None:
        """Let all come to rest, and hold it against what was promised."""
        for _ in range(3):
            self.daemon.call("agentd/queue/update", {"sessionId": self.chat.id, "op": "run"})
            end = time.monotonic() + 20
            while time.monotonic() < end:
                got = self.chat.get()
                if got["session"]["state"] == "idle" and not got["queue"]:
                    break
                time.sleep(0.02)
            for request in (*self.sent, *self.others):
                self.daemon.response(request)
        self._assert_answered()
        self._collect()
        self._durable()
        told = self.daemon.call("agentd/session/attach", {"sessionId": self.chat.id})
        assert told["seq"] == len(told["events"])
        assert_well_formed(told["events"])
        self._assert_said_once(told["events"])
        for asked in self.home.model_requests("say p"):
            assert_paired(asked["messages"])
        assert not any(r["stopReason"] == "error" and r["turns"] for r in self.results.values()), self.results

    def _assert_said_once(self, events: list[Json]) -> None:
        said: Counter[str] = Counter()
        places: dict[str, str] = {}
        for params in events:
            event = params["event"]
            if event["type"] == "message_end" and event["message"]["role"] == "user":
                for block in event["message"]["content"]:
                    said[block["text"]] += 1
                    places[block["text"]] = params["promptId"]
        assert max(said.values(), default=0) <= 1, said
        for prompt_id, result in self.results.items():
            words = self.texts[prompt_id]
            assert result["stopReason"] in END
            if result.get("outcome") == "steered":
                assert places[words] == result["runPromptId"]
            elif result["messageId"] is None and result["turns"] == 0:
                assert said[words] == 0, "it was taken out"
            else:
                assert places[words] == prompt_id
        starts = Counter(p["promptId"] for p in events if p["event"]["type"] == "agent_start")
        assert max(starts.values(), default=0) <= 1
        given = set(self.given)
        for prompt_id in self.taken:
            answered = self.results.get(prompt_id)
            gone = answered is not None and answered["messageId"] is None and answered["turns"] == 0
            removed = prompt_id in given or gone or self._was_removed(prompt_id)
            assert said[self.texts[prompt_id]] == (0 if removed else 1), (prompt_id, answered, removed)

    def _was_removed(self, prompt_id: str) -> bool:
        """Whether the prompt was taken out of the queue, as the daemon itself tells whoever asks again."""
        params = {"sessionId": self.chat.id, "prompt": self.texts[prompt_id], "promptId": prompt_id}
        result = self.daemon.call("agentd/prompt", params)
        return result["messageId"] is None and result["turns"] == 0


def drive(home: Home, seed: int, acts: int = 60) -> None:
    driver = Driver(home, seed)
    for number in range(acts):
        driver.act()
        if driver.chance.random() < 0.4:
            time.sleep(driver.chance.random() * 0.02)
        if number % 25 == 24:
            driver.restart()
    driver.finish()


@pytest.mark.parametrize("seed", range(6))
def test_random_prompts_are_each_said_once(home: Home, seed: int) -> None:
    drive(home, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_prompts_are_each_said_once(home: Home, seed: int) -> None:
    drive(home, seed, acts=120)
