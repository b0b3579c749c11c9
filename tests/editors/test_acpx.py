"""acpx, a client of the Agent Client Protocol on the command line: another program's idea of `agentd acp`."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from editors.places import Place, editor
from wire.scripts import reply, tool

SECONDS = 90

LOOK = reply("I look.", tool("read_file", {"file_path": "a.txt"}, "c1"))
CHANGE = reply(
    tool("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "2"}, "c2"),
    tool("bash", {"command": "touch ran.txt"}, "c3"),
)


def acpx(place: Place, *arguments: str, responses: tuple[Any, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run acpx with agentd as its agent, whose model plays a script."""
    program = editor("acpx")
    if shutil.which("node") is None:
        pytest.skip("acpx needs Node, which is not here")
    script = place.folder / "script.json"
    script.write_text(json.dumps(responses))
    place.config.write_text(f'model = "scripted/{script}"\n')
    agent = shlex.join([sys.executable, "-m", "agentd", "acp"])
    command = [program, "--cwd", str(place.folder / "home"), "--agent", agent, *arguments]
    return subprocess.run(
        command, env=place.environment, capture_output=True, text=True, timeout=SECONDS, cwd=place.folder
    )


@pytest.fixture
def file(place: Place) -> Path:
    file = place.folder / "home" / "a.txt"
    file.write_text("one\ntwo\n")
    return file


def test_acpx_runs_a_prompt_with_edits_and_commands(place: Place, file: Path) -> None:
    done = acpx(
        place,
        "--approve-all",
        "--format",
        "json",
        "exec",
        "change it",
        responses=(LOOK, CHANGE, reply("Done.")),
    )
    assert done.returncode == 0, done.stderr
    assert file.read_text() == "one\n2\n"
    assert (file.parent / "ran.txt").exists()
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    methods = {line.get("method") for line in lines}
    assert {"session/request_permission", "fs/read_text_file", "fs/write_text_file"} <= methods
    assert any(line.get("result", {}).get("stopReason") == "end_turn" for line in lines)


def test_acpx_that_denies_lets_nothing_happen(place: Place, file: Path) -> None:
    done = acpx(place, "--deny-all", "exec", "change it", responses=(LOOK, CHANGE, reply("It was denied.")))
    assert "It was denied." in done.stdout, done.stderr
    assert file.read_text() == "one\ntwo\n"
    assert not (file.parent / "ran.txt").exists()


def test_acpx_without_its_files_gets_the_disk(place: Place, file: Path) -> None:
    done = acpx(
        place, "--approve-all", "--no-fs", "exec", "change it", responses=(LOOK, CHANGE, reply("Done."))
    )
    assert done.returncode == 0, done.stderr
    assert "Done." in done.stdout
    assert file.read_text() == "one\n2\n"


def test_acpx_types_a_command(place: Place, file: Path) -> None:
    done = acpx(place, "--approve-all", "exec", "/help", responses=(reply("never"),))
    assert done.returncode == 0, done.stderr
    assert "/undo" in done.stdout
