"""`agentd run` with the real daemon, its real tools and a scripted model."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

AGENTD = [sys.executable, "-P", "-m", "agentd"]
DEADLINE = 60


class Place:
    """A project folder and an agentd of its own."""

    def __init__(self, path: Path) -> None:
        self.project = path / "project"
        self.project.mkdir()
        self._script = path / "script.json"
        (path / "config.toml").touch()
        self.env = {
            **os.environ,
            "AGENTD_CONFIG": str(path / "config.toml"),
            "AGENTD_DATA": str(path / "data"),
            "AGENTD_MODEL": f"scripted/{self._script}",
        }

    def run(self, *replies: dict[str, Any], options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a run in which the model says this."""
        process = self.start(*replies, options=options)
        out, err = process.communicate(timeout=DEADLINE)
        return process.returncode, out, err

    def start(self, *replies: dict[str, Any], options: tuple[str, ...]) -> subprocess.Popen[str]:
        """The same, while it runs."""
        self._script.write_text(json.dumps(replies))
        return subprocess.Popen(
            [*AGENTD, "run", "Please.", "-C", str(self.project), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            start_new_session=True,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"content": [{"type": "tool_call", "name": name, "arguments": arguments}]}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def test_a_file_is_written_where_the_mode_allows_it(place: Place) -> None:
    write = call("write_file", file_path="new.txt", content="hello\n")
    code, out, err = place.run(write, text("Written."), options=("--mode", "edit", "--trust"))
    assert (code, out) == (0, "Written.\n")
    assert (place.project / "new.txt").read_text() == "hello\n"
    assert "✓" in err


def test_a_refused_write_says_which_option_would_allow_it(place: Place) -> None:
    write = call("write_file", file_path="new.txt", content="hello\n")
    code, out, err = place.run(write, text("I could not."), options=("--trust",))
    assert (code, out) == (0, "I could not.\n")
    assert not (place.project / "new.txt").exists()
    assert "--mode edit would allow it" in err


def test_a_command_runs_where_everything_is_allowed(place: Place) -> None:
    code, out, err = place.run(
        call("bash", command="echo ran > proof; exit 3"),
        text("Done."),
        options=("--mode", "full", "--allow-full", "--trust"),
    )
    assert (code, out) == (0, "Done.\n")
    assert (place.project / "proof").read_text() == "ran\n"
    assert "exit code 3" in err


def test_full_without_permission_is_an_error_in_one_sentence(place: Place) -> None:
    code, out, err = place.run(text("never"), options=("--mode", "full", "--trust"))
    assert (code, out) == (1, "")
    assert err.startswith("agentd: ")
    assert "full" in err


def test_ctrl_c_ends_the_command_that_runs(place: Place) -> None:
    process = place.start(
        call("bash", command="echo $$ > pid.new && mv pid.new pid && sleep 600"),
        options=("--mode", "full", "--allow-full", "--trust"),
    )
    deadline = time.monotonic() + DEADLINE
    while not (place.project / "pid").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert "Tool execution aborted." in err
    with pytest.raises(ProcessLookupError):
        os.kill(int((place.project / "pid").read_text()), 0)


def test_max_turns_is_exit_code_3(place: Place) -> None:
    look = call("list_directory", path=".")
    code, _, err = place.run(look, look, look, options=("--max-turns", "2"))
    assert code == 3
    assert "--max-turns" in err


def test_a_failing_model_server_is_exit_code_1(place: Place) -> None:
    code, out, err = place.run({"error": {"kind": "auth", "message": "The key was refused."}})
    assert (code, out) == (1, "")
    assert "The key was refused." in err


def test_json_has_the_protocols_events_and_result(place: Place) -> None:
    code, out, _ = place.run(call("list_directory", path="."), text("Done."), options=("--json",))
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    types = [line["event"]["type"] for line in lines[:-1]]
    assert types[:2] == ["session_changed", "agent_start"]
    assert types[-1] == "agent_end"
    assert [line["seq"] for line in lines[:-1] if "seq" in line] == list(
        range(1, sum("seq" in line for line in lines[:-1]) + 1)
    )
    assert (lines[-1]["type"], lines[-1]["text"], lines[-1]["turns"]) == ("result", "Done.", 2)


def test_keys_of_the_command_cannot_be_read_by_what_the_model_runs(place: Place) -> None:
    place.env["PROVIDER_API_KEY"] = place.env["MODEL_LOGIN"] = "canary-value"
    Path(place.env["AGENTD_CONFIG"]).write_text(
        '[providers.own]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'api_key_env = "MODEL_LOGIN"\n'
    )
    code, out, _ = place.run(
        call("bash", command="cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' > seen; env >> seen"),
        text("Done."),
        options=("--mode", "full", "--allow-full", "--trust"),
    )
    assert (code, out) == (0, "Done.\n")
    assert "canary-value" not in (place.project / "seen").read_text(errors="replace")


def test_a_refused_command_says_which_rule_would_allow_it_and_then_it_does(place: Place) -> None:
    ls = call("bash", command="ls | wc -l")
    code, _, err = place.run(ls, text("I could not."))
    assert code == 0
    rules = "`agentd permissions allow ls` with `agentd permissions allow wc` and --trust"
    assert f"{rules} or --mode full --allow-full --trust would allow it" in err
    for rule in ("ls", "wc"):
        subprocess.run(
            [*AGENTD, "permissions", "-C", place.project, "allow", rule], env=place.env, check=True
        )
    code, _, err = place.run(ls, text("Done."))
    assert "Refused" in err, "the folder is not trusted"
    subprocess.run([*AGENTD, "trust", "add", place.project], env=place.env, check=True)
    code, out, err = place.run(ls, text("Done."))
    assert (code, out) == (0, "Done.\n")
    assert "Refused" not in err


def test_a_command_that_no_rule_can_cover_says_so_by_naming_none(place: Place) -> None:
    _, _, err = place.run(call("bash", command="cat .env > x"), text("No."), options=("--trust",))
    assert "--mode full --allow-full would allow it" in err
    assert "agentd permissions" not in err


@pytest.mark.parametrize("works", [True, False])
def test_a_conversation_that_is_made_shorter_says_so_in_a_line(place: Place, works: bool) -> None:
    looks = [call("list_directory") for _ in range(3)]
    too_long = {"content": [], "error": {"kind": "context_overflow", "message": "The prompt is too long."}}
    more = [text("## Goal\nTo look."), text("Done.")] if works else [too_long]
    code, out, err = place.run(*looks, too_long, *more, options=("--trust",))
    assert (code, out) == ((0, "Done.\n") if works else (1, ""))
    if works:
        assert "(the conversation was made shorter: " in err
    else:
        assert "The conversation could not be made shorter: The prompt is too long." in err


def part(words: str, response: dict[str, Any]) -> dict[str, Any]:
    """A response for the sub-agent whose prompt holds these words."""
    return {**response, "when": words}


def test_sub_agents_are_heard_of_by_their_call_and_refused_by_name(place: Place) -> None:
    tasks = [{"description": "look around", "prompt": "Do the job."}]
    write = call("write_file", file_path="new.txt", content="hello\n")
    code, out, err = place.run(
        call("task", tasks=tasks),
        part("Do the job.", write),
        part("Do the job.", text("What nobody but the parent reads.")),
        text("Answered."),
    )
    assert (code, out) == (0, "Answered.\n")
    assert "Sub-agent: look around" in err
    assert "Refused: Sub-agent “look around”: Write new.txt." in err
    assert "What nobody but the parent reads." not in err


def test_json_lines_hold_the_events_of_sub_agents_under_their_own_session(place: Place) -> None:
    tasks = [{"description": "look around", "prompt": "Do the job."}]
    replies = [call("task", tasks=tasks), part("Do the job.", text("Done.")), text("Answered.")]
    code, out, _ = place.run(*replies, options=("--json",))
    assert code == 0
    *events, result = [json.loads(line) for line in out.splitlines()]
    assert result["text"] == "Answered."
    children = {e["sessionId"] for e in events} - {result["sessionId"]}
    assert len(children) == 1
