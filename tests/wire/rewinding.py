"""Sessions whose prompts change files, and the requests that look at that and take it back."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import DEADLINE
from wire.scripts import reply, tool


def write(name: str, content: str) -> Json:
    """A call that writes a file."""
    return tool("write_file", {"file_path": name, "content": content})


def edit(name: str, old: str, new: str) -> Json:
    """A call that replaces text in a file."""
    return tool("edit_file", {"file_path": name, "old_string": old, "new_string": new})


def read(name: str) -> Json:
    """A call that reads a file."""
    return tool("read_file", {"file_path": name})


def bash(command: str) -> Json:
    """A call that runs a command."""
    return tool("bash", {"command": command})


class Author:
    """A session in a workspace folder; each of its prompts makes the calls that the test says."""

    def __init__(self, daemon: Daemon, home: Home, root: Path | None = None) -> None:
        self.home = home
        self.root = root or home.workspace()
        self.chat = Chat(
            daemon, self.root, model=home.script(*[reply("## Goal\nTo work.")] * 100), mode="full"
        )

    @property
    def daemon(self) -> Daemon:
        """The daemon that has the session."""
        return self.chat.daemon

    def does(self, prompt_id: str, *calls: Json) -> Json:
        """Run a prompt that makes these calls, each in a turn of its own; gives its result."""
        model = self.home.script(*(reply(call) for call in calls), reply(f"done {prompt_id}"))
        result = self.chat.run(f"do {prompt_id}", promptId=prompt_id, model=model)
        assert result["text"] == f"done {prompt_id}", result
        return result

    def moved_to(self, daemon: Daemon) -> "Author":
        """The same session in a later daemon."""
        self.chat.daemon = daemon
        return self

    def ask(self, what: str, **params: Any) -> Any:
        """A request `agentd/session/<what>` about the session."""
        return self.daemon.call(f"agentd/session/{what}", {"sessionId": self.chat.id, **params})

    def refused(self, what: str, **params: Any) -> Json:
        """The error of such a request."""
        return self.daemon.refused(f"agentd/session/{what}", {"sessionId": self.chat.id, **params})

    def rewind(self, prompt_id: str, scope: str = "files", **params: Any) -> Json:
        """Go back to before a prompt."""
        result: Json = self.ask("rewind", promptId=prompt_id, scope=scope, **params)
        return result

    def rewinds_until(self, is_reached: Callable[[], bool], **params: Any) -> None:
        """Ask to go back, and wait for a moment of that, or for its end where that comes first.

        Without a pause: the moment is what is looked for, and on a busy machine it may be over before a look.
        """
        asking = self.daemon.request("agentd/session/rewind", {"sessionId": self.chat.id, **params})
        end = time.monotonic() + DEADLINE

        def is_answered() -> bool:
            return any(each.get("id") == asking and "method" not in each for each in self.daemon.messages)

        while not self.plans() and not is_answered():
            assert time.monotonic() < end, "the rewind begins"
        while self.plans() and not is_reached():
            assert time.monotonic() < end, "the rewind goes on"

    def plans(self) -> list[Path]:
        """The plan of a rewind that has not ended."""
        return list(self.home.data.rglob("rewind.json"))

    def undo(self) -> Json:
        """Undo the last rewind."""
        result: Json = self.ask("rewind", undo=True)
        return result

    def files(self) -> dict[str, str]:
        """The files of the workspace, by name, with their content."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_text() for path in sorted(found)}

    def texts(self) -> list[str]:
        """What is said in the session, first and last things of each prompt."""
        said = []
        for message in self.chat.get()["messages"]:
            said += [block["text"] for block in message["content"] if block["type"] == "text"]
        return [text for text in said if text.startswith(("do ", "done "))]


def told(result: Json) -> dict[str, str]:
    """What became of files, by name: the action, or `conflict`."""
    return {
        file["uri"].rsplit("/", 1)[-1]: "conflict" if "conflict" in file else file["action"]
        for file in result["files"]
    }
