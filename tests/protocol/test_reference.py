"""The examples of the protocol reference are what a real daemon does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import agentd.protocol
from agentd.protocol.capabilities import FEATURES, METHODS, NOTIFICATIONS
from agentd.protocol.errors import KINDS
from agentd.protocol.frames import FrameReader, encode
from agentd.protocol.schema import json_schema

REFERENCE = Path(agentd.protocol.__file__).with_name("README.md")
ANYTHING = "…"
SCRIPT = [
    {
        "chunkSize": 100,
        "content": [
            {"type": "text", "text": "Let me look."},
            {"type": "tool_call", "id": "call_1", "name": "list_directory", "arguments": {"path": "."}},
        ],
    },
    {"chunkSize": 100, "content": [{"type": "text", "text": "One file."}]},
    {"content": [{"type": "text", "text": "## Goal\nTo know what is in the folder."}]},
]


def exchanges() -> list[tuple[str, Any]]:
    blocks = re.findall(r"```session\n(.*?)```", REFERENCE.read_text("utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return [(line[:2], json.loads(line[3:])) for line in lines]


def matches(expected: Any, got: Any) -> bool:
    """Whether `got` is what the reference shows; it may hold more fields."""
    if expected == ANYTHING:
        return True
    if isinstance(expected, dict):
        return isinstance(got, dict) and all(k in got and matches(v, got[k]) for k, v in expected.items())
    if isinstance(expected, list):
        same_length = isinstance(got, list) and len(expected) == len(got)
        return same_length and all(matches(e, g) for e, g in zip(expected, got, strict=True))
    return bool(expected == got)


def test_every_example_of_the_reference_is_what_the_daemon_does(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "hello.txt").write_text("hello\n")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    config = tmp_path / "config.toml"
    config.write_text(f'model = "scripted/{script}"\n')
    environment = {**os.environ, "AGENTD_CONFIG": str(config), "AGENTD_DATA": str(tmp_path / "data")}
    daemon = subprocess.Popen(
        [sys.executable, "-m", "agentd"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=workspace,
        env=environment,
    )
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    try:
        reader, inbox, session = FrameReader(1 << 20), [], ""
        for direction, message in exchanges():
            if direction == "->":
                daemon.stdin.write(encode(json.dumps(message).replace("$session", session).encode()))
                daemon.stdin.flush()
                continue
            while not inbox:
                data = os.read(daemon.stdout.fileno(), 65536)
                assert data, f"the daemon ended before {message}"
                inbox += [json.loads(frame) for frame in reader.feed(data) if isinstance(frame, bytes)]
            got = inbox.pop(0)
            session = got.get("params", {}).get("sessionId", session)
            assert matches(message, got), f"the reference says\n{message}\nand the daemon\n{got}"
        assert daemon.wait(timeout=20) == 0
        assert not inbox
    finally:
        daemon.kill()
        daemon.wait()


def test_the_reference_names_every_method_that_is_announced() -> None:
    text = REFERENCE.read_text("utf-8")
    assert [name for name in (*METHODS, *NOTIFICATIONS) if f"`{name}" not in text] == []


def test_the_reference_names_no_error_kind_that_there_is_not() -> None:
    section = REFERENCE.read_text("utf-8").split("## Errors")[1].split("```")[0]
    named = {
        kind for row in section.splitlines() if row.startswith("| -") for kind in re.findall(r"`(\w+)`", row)
    }
    assert named <= set(KINDS)
    assert {"noModel", "storage", "sessionLocked"} <= named


def test_every_feature_and_every_field_of_the_wire_is_told() -> None:
    fields = {name for each in json_schema()["$defs"].values() for name in each.get("properties", {})}
    assert "rawArguments" in fields
    text = REFERENCE.read_text("utf-8")
    assert [name for name in sorted(fields | FEATURES.keys()) if not re.search(rf"\b{name}\b", text)] == []
