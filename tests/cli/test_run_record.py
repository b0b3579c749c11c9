"""`agentd run --record`: a run with real tools over HTTP, and the same run again with no server."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.anthropic_server import AnthropicServer
from fakes.gemini_server import GeminiServer
from fakes.model_server import ModelServer, Raw
from fakes.responses_server import ResponsesServer

AGENTD = [sys.executable, "-P", "-m", "agentd"]
DEADLINE = 60
KEY = "sk-canary-0123456789abcdef"
SERVERS: dict[str, type[ModelServer]] = {
    "openai-chat": ModelServer,
    "openai-responses": ResponsesServer,
    "anthropic": AnthropicServer,
    "gemini": GeminiServer,
}


class Place:
    """A project folder, a configuration with one provider `local`, and a folder to call agentd from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.project = path / "project"
        self.project.mkdir()
        self.tape = path / "bug.jsonl"
        self.env = {
            **os.environ,
            "AGENTD_CONFIG": str(path / "config.toml"),
            "AGENTD_DATA": str(path / "data"),
            "LOCAL_API_KEY": KEY,
        }
        (path / "config.toml").touch()

    def configure(self, server: ModelServer, api: str = "openai-chat") -> None:
        (self.path / "config.toml").write_text(
            f'[providers.local]\napi = "{api}"\nbase_url = "{server.base_url}"\n'
            'api_key_env = "LOCAL_API_KEY"\n'
        )

    def start(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*AGENTD, "run", "Please.", "-C", str(self.project), "--trust", "--json", *options],
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            start_new_session=True,
        )

    def run(self, *options: str) -> tuple[int, list[dict[str, Any]], str]:
        """Exit code, events and result, and stderr."""
        process = self.start(*options)
        out, err = process.communicate(timeout=DEADLINE)
        return process.returncode, [json.loads(line) for line in out.splitlines()], err


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def said(lines: list[dict[str, Any]]) -> list[Any]:
    """What the messages of a run say, and what its tools gave, without ids, times and names of models."""
    ends = [line["event"]["message"] for line in lines[:-1] if line["event"]["type"] == "message_end"]
    return [(message["role"], [_plain(block) for block in message["content"]]) for message in ends]


def _plain(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name not in ("id", "durationMs")}


@pytest.mark.parametrize("api", SERVERS)
def test_a_recorded_run_runs_again_without_a_server(api: str, place: Place) -> None:
    write = {"type": "tool_call", "name": "write_file", "arguments": {"file_path": "a", "content": "hi\n"}}
    done = {"type": "text", "text": "Done."}
    usage = {"input": 7, "output": 5, "total": 12}
    with SERVERS[api]([{"content": [each], "usage": usage} for each in (write, done)]) as server:
        place.configure(server, api)
        code, lines, err = place.run("-m", "local/m", "--mode", "edit", "--record", "bug.jsonl")
        assert not server.faults
    assert (code, lines[-1]["text"]) == (0, "Done."), err
    assert f"agentd run -m scripted/{place.tape}" in err
    assert stat.S_IMODE(place.tape.stat().st_mode) == 0o600
    assert KEY not in place.tape.read_text()
    (place.project / "a").unlink()
    (place.path / "config.toml").write_text("")
    code, again, err = place.run("-m", f"scripted/{place.tape}", "--mode", "edit")
    assert (code, again[-1]["text"]) == (0, "Done."), err
    assert said(again) == said(lines)
    assert again[-1]["usage"]["output"] == lines[-1]["usage"]["output"] == 10
    assert (place.project / "a").read_text() == "hi\n", "tools really run"


def test_a_failed_run_fails_again_in_the_same_words(place: Place) -> None:
    with ModelServer([{"error": {"kind": "auth", "message": f"Bad key {KEY}."}}]) as server:
        place.configure(server)
        code, lines, _ = place.run("-m", "local/m", "--record", "bug.jsonl")
    assert code == 1
    assert KEY not in place.tape.read_text()
    code, again, _ = place.run("-m", f"scripted/{place.tape}")
    assert code == 1
    told, retold = lines[-1]["error"], again[-1]["error"]
    assert retold["kind"] == told["kind"] == "auth"
    assert retold["message"].replace("*" * len(KEY), "[key]") == told["message"]


def test_a_recording_survives_the_death_of_its_daemon(place: Place) -> None:
    chunk = {"choices": [{"delta": {"content": "Half of"}}]}
    body = f"data: {json.dumps(chunk)}\n\n".encode()
    with ModelServer([Raw(body, linger=True)]) as server:
        place.configure(server)
        process = place.start("-m", "local/m", "--record", str(place.tape))
        deadline = time.monotonic() + DEADLINE
        while not (place.tape.exists() and "Half of" in place.tape.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), 9)
        process.communicate(timeout=DEADLINE)
    code, lines, _ = place.run("-m", f"scripted/{place.tape}")
    assert code == 1
    assert "agentd was killed after" in lines[-1]["error"]["message"]
    assert "Half of" in json.dumps(said(lines))


def test_an_existing_file_is_not_overwritten(place: Place) -> None:
    place.tape.write_text("precious")
    code, _, err = place.run("-m", "scripted/demo", "--record", "bug.jsonl")
    assert code == 2
    assert "exists already" in err
    assert place.tape.read_text() == "precious"


def test_a_folder_that_is_not_there_is_wrong_usage(place: Place) -> None:
    code, _, err = place.run("-m", "scripted/demo", "--record", "nowhere/bug.jsonl")
    assert code == 2
    assert f"there is no folder '{place.path}/nowhere'" in err


def test_a_run_that_asked_no_server_says_that_nothing_is_recorded(place: Place) -> None:
    script = place.path / "script.json"
    script.write_text(json.dumps([{"content": [{"type": "text", "text": "hello"}]}]))
    code, _, err = place.run("-m", f"scripted/{script}", "--record", "bug.jsonl")
    assert code == 0
    assert f"Nothing is recorded in {place.tape}" in err


@pytest.mark.parametrize("file", ["", "nowhere/bug.jsonl", "taken"])
def test_a_daemon_that_cannot_record_does_not_start(file: str, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    daemon = subprocess.run(
        [*AGENTD, f"--record={file}"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (daemon.returncode, daemon.stdout) == (1, "")
    assert daemon.stderr.startswith(f"agentd: cannot record to {file!r}: ")
