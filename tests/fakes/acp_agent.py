"""A real `agentd acp` process, and a client of it that says just what a test has it say."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes import acp_schema
from wire.harness import Daemon, Json, _no_json, error_of
from wire.home import Home

CANCELLED: Json = {"outcome": {"outcome": "cancelled"}}


def selected(option_id: str) -> Json:
    """The answer to a question of permission that names an option."""
    return {"outcome": {"outcome": "selected", "optionId": option_id}}


def text(said: str) -> list[Json]:
    """A prompt that is a text."""
    return [{"type": "text", "text": said}]


class Agent(Daemon):
    """The process. Every line on its stdout has to be a message; `Daemon.stray` keeps what is none."""

    def __init__(self, *args: str, **kwargs: Any) -> None:
        self.methods: dict[Any, str] = {}  # of our requests
        super().__init__("acp", *args, **kwargs)

    def _cut(self, buffer: bytearray) -> None:
        while (end := buffer.find(b"\n")) >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            try:
                message = json.loads(line.decode("utf-8"), parse_constant=_no_json)
                assert isinstance(message, dict)
            except (ValueError, AssertionError):
                self.stray += line
                continue
            with self._arrived:
                self.messages.append(message)
                self._arrived.notify_all()

    def send(self, *messages: Any) -> None:
        """Write messages in one go; bytes are taken as a line as it stands."""
        lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in messages]
        for each in messages:
            if isinstance(each, dict) and "method" in each and isinstance(each.get("id"), int | str):
                self.methods.setdefault(each["id"], each["method"])
        self.write(b"".join(line + b"\n" for line in lines))

    def begin(self, abilities: Json | None = None) -> Json:
        """`initialize`."""
        params = {"protocolVersion": 1, "clientCapabilities": abilities or {}}
        result: Json = self.call("initialize", params)
        return result

    def new(self, folder: Path) -> str:
        """A new session."""
        session_id: str = self.call("session/new", {"cwd": str(folder), "mcpServers": []})["sessionId"]
        return session_id

    def prompt(self, session_id: str, prompt: str | list[Json], **more: Any) -> int:
        """Send a prompt."""
        blocks = text(prompt) if isinstance(prompt, str) else prompt
        return self.request("session/prompt", {"sessionId": session_id, "prompt": blocks, **more})

    def ask(self, session_id: str, prompt: str | list[Json]) -> Json:
        """Run a prompt to its end and give its result."""
        response = self.response(self.prompt(session_id, prompt))
        assert "result" in response, response
        result: Json = response["result"]
        return result

    def updates(self, session_id: str, *kinds: str, since: int = 0) -> list[Json]:
        """What has been told of a session so far, of these kinds or of all."""
        told = [m["params"] for m in self.messages[since:] if m.get("method") == "session/update"]
        found = [each["update"] for each in told if each["sessionId"] == session_id]
        return [each for each in found if not kinds or each["sessionUpdate"] in kinds]

    def said(self, session_id: str, kind: str = "agent_message_chunk", since: int = 0) -> str:
        """All that was said in pieces."""
        pieces = [each["content"] for each in self.updates(session_id, kind, since=since)]
        return "".join(each["text"] for each in pieces if each["type"] == "text")

    def told(self, session_id: str, predicate: Callable[[Json], Any], since: int = 0) -> Json:
        """The first update for which the predicate holds, waited for."""
        message = self.wait(
            lambda message: (
                message.get("method") == "session/update"
                and message["params"]["sessionId"] == session_id
                and predicate(message["params"]["update"])
            ),
            since,
        )
        update: Json = message["params"]["update"]
        return update

    def call_of(self, session_id: str, call_id: str) -> Json:
        """A tool call as a client knows it that was told all updates so far."""
        known: Json = {}
        for update in self.updates(session_id, "tool_call", "tool_call_update"):
            if update["toolCallId"] == call_id:
                assert known or update["sessionUpdate"] == "tool_call", "it was not told of before"
                known |= update
        return known

    def question(self, since: int = 0) -> Json:
        """The first question of permission."""
        return self.asked("session/request_permission", since)


class AcpHome(Home):
    """A place for `agentd acp`: what it sends is held against ACP's schema when the test ends."""

    def spawn(self, *args: str, deaf: bool = False, **env: str) -> Agent:
        """Start a process that has been told nothing yet."""
        agent = Agent(*args, env=self.environment(**env), cwd=self.path, deaf=deaf)
        self.daemons.append(agent)
        return agent

    def begun(self, *responses: Json, abilities: Json | None = None, args: tuple[str, ...] = ()) -> Agent:
        """Start one and begin; its model plays this script, where there is one."""
        if responses:
            self.config.write_text(f'model = "{self.script(*responses)}"\n' + self.settings)
        agent = self.spawn(*args)
        agent.begin(abilities)
        return agent

    settings = ""
    """More of the configuration, after the model."""

    def trust(self, mode: str = "full") -> None:
        """Trust every workspace, and begin sessions in this mode."""
        folders = [str(self.path / f"workspace-{number}") for number in range(1, 10)]
        self.settings = f'mode = "{mode}"\ntrusted = {json.dumps(folders)}\n'

    def close(self) -> None:
        """End all, and hold what was sent against the schema."""
        super().close()
        for agent in self.daemons:
            assert isinstance(agent, Agent)
            acp_schema.check(copy.deepcopy(agent.messages), agent.methods)


__all__ = ["CANCELLED", "AcpHome", "Agent", "error_of", "selected", "text"]
