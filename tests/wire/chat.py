"""One session of a daemon, as its tests talk to it."""

import itertools
from pathlib import Path
from typing import Any

from wire.harness import Daemon, Json


class Chat:
    """A session of a daemon, in a workspace folder of its own."""

    def __init__(self, daemon: Daemon, root: Path, **settings: Any) -> None:
        self.daemon = daemon
        self.root = root
        made = daemon.call("agentd/session/new", {"workspaceUri": root.as_uri(), **settings})
        self.id: str = made["session"]["sessionId"]
        self._numbers = itertools.count(1)

    def prompt_params(self, prompt: Any = "go on", **params: Any) -> Json:
        """Params of `agentd/prompt` for this session, with an id unless the test names one."""
        return {"sessionId": self.id, "promptId": f"p{next(self._numbers)}", "prompt": prompt, **params}

    def start(self, prompt: Any = "go on", **params: Any) -> int:
        """Send a prompt and give the id of its request."""
        return self.daemon.request("agentd/prompt", self.prompt_params(prompt, **params))

    def run(self, prompt: Any = "go on", **params: Any) -> Json:
        """Run a prompt to its end and give its result."""
        return self.result(self.start(prompt, **params))

    def result(self, request_id: int) -> Json:
        """The result of a prompt that was sent."""
        response = self.daemon.response(request_id)
        assert "result" in response, response
        result: Json = response["result"]
        return result

    def cancel(self, **params: Any) -> Json:
        """Cancel, and give the answer."""
        answer: Json = self.daemon.call("agentd/cancel", {"sessionId": self.id, **params})
        return answer

    def get(self) -> Json:
        """The session with its messages."""
        got: Json = self.daemon.call("agentd/session/get", {"sessionId": self.id})
        return got

    def notifications(self, prompt_id: str | None = None) -> list[Json]:
        """The params of every `agentd/event` of this session so far, or of one of its prompts."""
        return [
            message["params"]
            for message in list(self.daemon.messages)
            if message.get("method") == "agentd/event"
            and message["params"]["sessionId"] == self.id
            and (prompt_id is None or message["params"].get("promptId") == prompt_id)
        ]

    def event(self, kind: str, since: int = 0, **fields: Any) -> Json:
        """Wait for an event of this type whose fields are as given."""

        def is_it(message: Json) -> bool:
            params = message.get("params", {})
            if message.get("method") != "agentd/event" or params["sessionId"] != self.id:
                return False
            event = params["event"]
            return event["type"] == kind and all(event.get(name) == value for name, value in fields.items())

        event: Json = self.daemon.wait(is_it, since)["params"]["event"]
        return event
