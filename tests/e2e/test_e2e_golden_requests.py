"""What a model is told before a conversation, and the form of its first turns, as each API's server gets it.

The bodies lie in `golden/`, so that a change of the system prompt, of a tool or of a request's form is seen
by whoever reviews it: it costs every session that goes on the cache of its model server, and may change what
models do. A text of several lines is a list of them there.
"""

import difflib
import json
import platform
from pathlib import Path
from typing import Any

import pytest
from e2e.every_api import Stage
from wire.chat import Chat
from wire.home import Home
from wire.scripts import reply, tool

GOLDEN = Path(__file__).parent / "golden"
RENEW = "pytest -n 0 tests/e2e/test_e2e_golden_requests.py --renew-golden"
"""What writes the files anew; look at the difference before it is committed."""


def told(stage: Stage, home: Home) -> Any:
    """Path and body of the second request of a prompt, with a call and its result."""
    root = home.workspace(AGENTS_md="Use tabs.\n", note_txt="one line\n")
    (home.config.parent / "AGENTS.md").write_text("Be brief.\n")
    call = tool("read_file", {"file_path": "note.txt"}, "call_1")
    stage.server.push(reply({"type": "thinking", "text": "let me see"}, "I look.", call), reply("One line."))
    Chat(stage.daemon, root, model=stage.model, mode="full").run("What is in note.txt?")
    request = stage.server.requests[-1]
    system = f"Operating system: {platform.system()}"
    text = request.raw.decode().replace(str(root), "/workspace").replace(system, "Operating system: Linux")
    body = json.loads(text)
    if "prompt_cache_key" in body:
        body["prompt_cache_key"] = "of the session"
    return {"path": request.path, "body": _in_lines(body)}


def _in_lines(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_lines(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_in_lines(item) for item in value]
    return value.split("\n") if isinstance(value, str) and "\n" in value else value


def test_requests_are_as_they_were_reviewed(
    stage: Stage, shared_home: Home, request: pytest.FixtureRequest
) -> None:
    said = json.dumps(told(stage, shared_home), ensure_ascii=False, indent=1) + "\n"
    file = GOLDEN / f"{stage.api}.json"
    if request.config.getoption("--renew-golden"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(said)
    reviewed = file.read_text()
    change = "\n".join(difflib.unified_diff(reviewed.splitlines(), said.splitlines(), "reviewed", "now", n=1))
    assert said == reviewed, f"{file.name} is another now. If that is meant, renew it:\n  {RENEW}\n{change}"
