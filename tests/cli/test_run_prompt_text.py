"""`agentd run` with commands and files in its prompt: what is sent, and what is refused before that."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AGENTD = [sys.executable, "-P", "-m", "agentd"]
DEADLINE = 60


class Place:
    """A project folder and an agentd of its own, whose model tells nothing but what it was asked."""

    def __init__(self, path: Path) -> None:
        self.project = path / "project"
        self.project.mkdir()
        self.config = path / "config"
        self.config.mkdir()
        (self.config / "config.toml").touch()
        (path / "outside.txt").write_text("not yours")
        self.requests = path / "requests.jsonl"
        script = path / "script.json"
        script.write_text(json.dumps([{"content": [{"type": "text", "text": "ok"}]}]))
        self.env = {
            **os.environ,
            "AGENTD_CONFIG": str(self.config / "config.toml"),
            "AGENTD_DATA": str(path / "data"),
            "AGENTD_MODEL": f"scripted/{script}",
            "AGENTD_SCRIPT_REQUESTS": str(self.requests),
        }

    def run(self, prompt: str, *options: str, stdin: str = "") -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        process = subprocess.run(
            [*AGENTD, "run", *options, "-C", str(self.project), "--", prompt],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.env,
            timeout=DEADLINE,
            check=False,
        )
        return process.returncode, process.stdout, process.stderr

    def said(self) -> list[str]:
        """What the model was told by the user."""
        if not self.requests.exists():
            return []
        request: Any = json.loads(self.requests.read_text().splitlines()[-1])
        return [block["text"] for message in request["messages"] for block in message["content"]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_file_in_the_prompt_is_shown_to_the_model(place: Place) -> None:
    (place.project / "a b.py").write_text("one\ntwo\nthree\n")
    assert place.run('why does @"a b.py":2-3 fail? ask jo@example.org and @decorator')[:2] == (0, "ok\n")
    asked, shown = place.said()
    assert asked == 'why does @"a b.py":2-3 fail? ask jo@example.org and @decorator'
    assert "a b.py, lines 2-3" in shown
    assert "    2 | two\n    3 | three" in shown
    assert "one" not in shown


def test_a_folder_and_a_file_are_shown_once_each_in_order(place: Place) -> None:
    (place.project / "src").mkdir()
    (place.project / "src" / "a.py").write_text("x = 1\n")
    place.run("see @src, @src/a.py. And @src again.")
    _, folder, file = place.said()
    assert "a listing of the folder" in folder
    assert "    1 | x = 1" in file


@pytest.mark.parametrize(
    "name", ["src/missing.py", '"no such file"', "../outside.txt", "nothing:3", "/etc/passwd"]
)
def test_a_file_that_cannot_be_shown_is_an_error_before_anything_is_sent(place: Place, name: str) -> None:
    code, out, err = place.run(f"look at @{name}")
    assert (code, out) == (2, "")
    assert name.strip('"').partition(":")[0] in err
    assert "Write \\@" in err
    assert place.said() == []
    assert not (Path(place.env["AGENTD_DATA"]) / "sessions").exists()


def test_a_backslash_makes_it_text(place: Place) -> None:
    assert place.run("look at \\@src/missing.py")[0] == 0
    assert place.said() == ["look at \\@src/missing.py"]


def test_a_command_is_run_with_the_files_in_its_arguments(place: Place) -> None:
    (place.config / "commands").mkdir()
    (place.config / "commands" / "fix.md").write_text("Fix $1 in $2.")
    (place.project / "a.py").write_text("x = 1\n")
    assert place.run("/fix 'the bug' @a.py")[0] == 0
    asked, shown = place.said()
    assert asked == "Fix the bug in @a.py."
    assert "    1 | x = 1" in shown
    assert place.run("/fix it in @missing.py")[0] == 2


def test_a_built_in_command_asks_no_model(place: Place) -> None:
    code, out, _ = place.run("/help")
    assert code == 0
    assert "/compact" in out
    assert place.said() == []


def test_a_command_that_there_is_not_says_how_to_mean_text(place: Place) -> None:
    code, _, err = place.run("/modle x")
    assert code == 1
    assert "Did you mean /mode or /model?" in err
    assert "a blank before the /" in err
    assert place.run(" /modle x")[0] == 0
    assert place.said() == [" /modle x"]


@pytest.mark.parametrize("prompt", ["/etc/hosts is wrong", "/ is full"])
def test_a_path_at_the_beginning_is_no_command(place: Place, prompt: str) -> None:
    assert place.run(prompt)[0] == 0
    assert place.said() == [prompt]


def test_what_comes_from_stdin_is_text_whatever_it_says(place: Place) -> None:
    (place.project / ".env").write_text("TOKEN=hidden")
    assert place.run("-", stdin="/mode full @.env @missing.py")[0] == 0
    assert place.said() == ["/mode full @.env @missing.py"]


def test_a_secret_is_not_shown_where_nobody_can_be_asked(place: Place) -> None:
    (place.project / ".env").write_text("TOKEN=hidden")
    code, out, _ = place.run("look at @.env")
    assert (code, out) == (0, "ok\n")
    assert "has not allowed to show it" in place.said()[1]
    assert "hidden" not in place.requests.read_text()
