"""Commands and files in prompts, against a strict server of each API: requests grow and nothing is spoilt."""

from typing import Any

import pytest
from e2e.every_api import SERVERS, Stage, stages, start
from e2e.test_e2e_request_prefix import SMALL, assert_grows, look
from wire.home import Home
from wire.scripts import reply, text


def command(name: str, arguments: str = "") -> Any:
    return {"type": "command", "name": name, "arguments": arguments}


@pytest.fixture(params=list(SERVERS))
def stage(request: pytest.FixtureRequest, home: Home) -> Any:
    """A server of each API in turn, with a daemon that a test may end."""
    with stages(home) as found:
        yield found[request.param]
        assert found[request.param].server.faults == []


def test_requests_grow_though_templates_and_files_change_and_built_in_commands_come_between(
    stage: Stage,
) -> None:
    root = stage.home.workspace(note_txt="one line\n", other_txt="old\n")
    commands = stage.home.config.parent / "commands"
    commands.mkdir(exist_ok=True)
    (commands / "fix.md").write_text("Fix $1, see @other.txt")
    note = {"type": "resource", "uri": (root / "note.txt").as_uri()}
    chat = stage.chat(*look(0), root=root)
    assert chat.run([command("help")])["stopReason"] == "stop"
    chat.run([text("first"), note])
    chat.run([command("cost")])
    stage.server.push(*look(1))
    chat.run([command("fix", "that")])
    (commands / "fix.md").unlink()
    (root / "note.txt").write_text("another\n")
    (root / "other.txt").unlink()
    stage.daemon.kill()
    chat.daemon = start(stage.home)
    chat.run([command("diff")], promptId="built-in")
    stage.server.push(*look(2))
    assert chat.run("third", promptId="after")["text"] == "answer 2"
    assert len(stage.server.requests) == 9
    assert_grows(stage.api, stage.server.requests)
    assert b"Fix that, see @other.txt" in stage.server.requests[-1].raw


def test_a_summary_that_is_asked_for_keeps_the_commands_text_and_goes_on(stage: Stage) -> None:
    root = stage.home.workspace(note_txt="one line\n")
    commands = stage.home.config.parent / "commands"
    commands.mkdir(exist_ok=True)
    (commands / "fix.md").write_text("Fix it as the template says.")
    chat = stage.chat(*look(0), root=root)
    chat.run([command("fix")])
    stage.server.push(*look(1))
    chat.run("second")
    stage.server.push(reply("## Goal\nTo fix it.", usage=SMALL))
    assert chat.run([command("compact")])["text"].startswith("Summed up")
    assert b"Fix it as the template says." in stage.server.requests[-1].raw, "it is summed up as it was said"
    count = len(stage.server.requests)
    for number in (2, 3):
        stage.server.push(*look(number))
        chat.run(f"prompt {number}")
    assert_grows(stage.api, stage.server.requests[count:])
