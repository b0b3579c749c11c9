"""Real editors: where they are, and a place in which one runs against a real daemon."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CACHE = Path(
    os.environ.get("EDITORS_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentd-editors"
)
DAEMON = [sys.executable, "-m", "agentd", "--stdio", "--allow-full"]


def editor(name: str) -> str:
    """The program of an editor as `fetch` gets it; skips the test where it is not here."""
    found = shutil.which(name) if name == "emacs" else str(CACHE / name / "start")
    if found is None or not Path(found).exists():
        pytest.skip(f"{name} is not here; `tests/editors/fetch {name}` gets it")
    return found


@dataclass(frozen=True)
class Place:
    """Folders and variables of one run of an editor: nothing of the user's own is read or written."""

    folder: Path

    @property
    def config(self) -> Path:
        """The daemon's configuration."""
        return self.folder / "config.toml"

    @property
    def environment(self) -> dict[str, str]:
        """All that the editor inherits."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "AGENTD_TEST_HOME": str(self.folder / "home"),
            "AGENTD_TEST_COMMAND": json.dumps(DAEMON),
            "AGENTD_CONFIG": str(self.config),
            "AGENTD_DATA": str(self.folder / "data"),
            **{f"XDG_{name}_HOME": str(self.folder / name) for name in ("STATE", "DATA", "CONFIG", "CACHE")},
        }
