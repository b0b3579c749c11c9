"""A place of its own for daemons: configuration, state, scripts and workspaces."""

import itertools
import json
import os
from collections.abc import Iterable
from pathlib import Path

from fakes.every_server import logged, refusals
from wire.harness import OPTIONS, Daemon, Json


class Home:
    """Configuration, state, scripts and workspaces of a test, and the daemons that it starts there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.config.write_text("")
        self.data = path / "data"
        self.asked_models = path / "requests.jsonl"
        self.daemons: list[Daemon] = []
        self._numbers = itertools.count(1)

    def workspace(self, **files: str) -> Path:
        """A fresh workspace folder; the keys name files with `_` for the dot before the extension."""
        folder = self.path / f"workspace-{next(self._numbers)}"
        folder.mkdir()
        for name, content in files.items():
            (folder / name.replace("_", ".")).write_text(content)
        return folder

    def script(self, *responses: Json) -> str:
        """A script for the scripted provider; gives the id of the model that plays it."""
        path = self.path / f"script-{next(self._numbers)}.json"
        path.write_text(json.dumps(responses))
        return f"scripted/{path}"

    def environment(self, **more: str) -> dict[str, str]:
        """All that a daemon inherits: nothing of the user's own configuration."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "AGENTD_CONFIG": str(self.config),
            "AGENTD_DATA": str(self.data),
            "AGENTD_SCRIPT_REQUESTS": str(self.asked_models),
            **more,
        }

    def spawn(self, *args: str, deaf: bool = False, **env: str) -> Daemon:
        """Start a daemon that has been told nothing yet."""
        daemon = Daemon(*args, env=self.environment(**env), cwd=self.path, deaf=deaf)
        self.daemons.append(daemon)
        return daemon

    def start(
        self,
        *args: str,
        options: Json | None = OPTIONS,
        capabilities: Json | None = None,
        folders: Iterable[Path] = (),
        process_id: int | None = None,
    ) -> Daemon:
        """Start a daemon and initialize it."""
        daemon = self.spawn(*args)
        daemon.initialize(options, capabilities, folders, process_id)
        return daemon

    def model_requests(self, about: str = "") -> list[Json]:
        """The requests that the scripted provider got, or those of them whose JSON holds `about`."""
        if not self.asked_models.exists():
            return []
        lines = self.asked_models.read_text().splitlines()
        return [json.loads(line) for line in lines if about in line]

    def journal(self) -> bytes:
        """Everything below the state folder, in one piece."""
        return b"".join(path.read_bytes() for path in sorted(self.data.rglob("*")) if path.is_file())

    def close(self) -> None:
        """End the daemons and hold against them what no daemon may do.

        What the scripted provider was asked, strict servers of all APIs must take.
        """
        for daemon in self.daemons:
            daemon.stop()
        for daemon in self.daemons:
            assert daemon.stray == b"", f"stdout held what is no frame: {daemon.stray[:200]!r}"
            said = daemon.errors.decode(errors="replace")
            assert "Traceback" not in said, said[-4000:]
            assert "Exception ignored" not in said, said[-4000:]
        for request in self.model_requests():
            assert refusals(logged(request)) == {}, request
