"""The commands beside `run`: the demonstration, the doctor, the schema, and what a daemon is asked."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from fakes.skill_files import put, raw

from agentd import __version__
from agentd.cli import COMMANDS
from agentd.protocol.schema import json_schema
from agentd.protocol.typescript import typescript

AGENTD = [sys.executable, "-P", "-m", "agentd"]
WITH_FAKE = [sys.executable, str(Path(__file__).parent / "agentd_with_fake_daemon.py")]
DEADLINE = 60


def run(
    *arguments: str, command: list[str] = AGENTD, env: dict[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    done = subprocess.run(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        start_new_session=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration file of the test's own; empty."""
    path = tmp_path / "config.toml"
    path.touch()
    return path


@pytest.fixture
def own(tmp_path: Path, config: Path) -> dict[str, str]:
    """An environment in which nothing of the user's is read or written."""
    return {"AGENTD_CONFIG": str(config), "AGENTD_DATA": str(tmp_path / "data"), "AGENTD_MODEL": ""}


# --- the command itself ---------------------------------------------------------------------------


def test_help_names_every_command() -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert set(COMMANDS) <= set(re.findall(r"^  (\w+)  ", out, re.MULTILINE))


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "serve"])
def test_every_command_has_a_help_text(command: str) -> None:
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: agentd {command}")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["schema", "--nonsense"], ["sessions", "-C", "/no/such"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


# --- demo -----------------------------------------------------------------------------------------


def test_the_demo_repairs_the_project_and_cleans_up(tmp_path: Path) -> None:
    code, out, err = run("demo", env={"TMPDIR": str(tmp_path), "AGENTD_CONFIG": "/no/such/file"})
    assert (code, err) == (0, "")
    failed, edited, passed = (out.index(word) for word in ("(exit code 1", "(+1 -1", "The tests pass."))
    assert failed < edited < passed
    assert "\n-    return total(numbers) // len(numbers)\n+    return total(numbers) / len(numbers)\n" in out
    assert re.search(r"^6 turns, [\d,]+ tokens in", out, re.MULTILINE)
    assert "agentd run -m" in out.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_the_demo_keeps_the_folder_on_demand(tmp_path: Path) -> None:
    code, out, _ = run("demo", "--keep", env={"TMPDIR": str(tmp_path)})
    assert code == 0
    (folder,) = tmp_path.iterdir()
    assert f"kept in {folder}" in out
    assert "/ len(numbers)" in (folder / "calculator.py").read_text()


def test_a_demo_that_repairs_nothing_does_not_succeed(tmp_path: Path) -> None:
    code, out, _ = run("demo", command=WITH_FAKE, env={"TMPDIR": str(tmp_path)})
    assert code == 1
    assert "The tests still fail." in out


def test_a_demo_without_a_daemon_says_why(tmp_path: Path) -> None:
    env = {"TMPDIR": str(tmp_path), "FAKE_GREETING": "die"}
    code, _, err = run("demo", command=WITH_FAKE, env=env)
    assert code == 1
    assert "exit code 7" in err
    assert "no room" in err
    assert list(tmp_path.iterdir()) == []


def test_a_demo_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*AGENTD, "demo"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if b"List ." in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert err == b""
    assert list(tmp_path.iterdir()) == []


# --- doctor ---------------------------------------------------------------------------------------


def test_the_doctor_tells_what_is_in_force_and_where_it_comes_from(config: Path, own: dict[str, str]) -> None:
    config.write_text('mode = "edit"\n[providers.local]\napi = "openai-chat"\n'
                      'base_url = "http://127.0.0.1:9/v1"\napi_key_env = "LOCAL_API_KEY"\n'
                      '[environment]\npass = ["PGPASSWORD"]\n')  # fmt: skip
    keys = {"LOCAL_API_KEY": "sk-canary", "PGPASSWORD": "sk-canary-too"}
    code, out, err = run("doctor", env={**own, "AGENTD_MODEL": "local/some-model", **keys})
    assert (code, err) == (0, "")
    for fact in (
        __version__,
        "local/some-model (environment AGENTD_MODEL)",
        f"edit ({config}:1)",
        "at 85% of the context window (default)",
        f"openai-chat at http://127.0.0.1:9/v1 ({config}:2)",
        "key from LOCAL_API_KEY, which is set",
        f"PGPASSWORD ({config}:7)",
        own["AGENTD_DATA"],
    ):
        assert fact in out
    assert "sk-canary" not in out


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")
def test_the_doctor_tries_the_sandbox_and_tells_what_it_leaves_open(
    config: Path, own: dict[str, str], tmp_path: Path
) -> None:
    config.write_text('[sandbox]\nbackend = "landlock"\nnetwork = true\nwritable = ["/srv/cache"]\n')
    root = tmp_path / "workspace"
    subprocess.run(["git", "init", "-q", "-b", "trunk", root], check=True)
    _, out, _ = run("doctor", env=own, cwd=root)
    section = out.partition("\nsandbox\n")[2]
    assert re.search(r"^  commands +(landlock|none) \(", section)
    if "  commands       landlock" in section:
        assert section.count("leaves open: ") == 4
        assert f"this folder is in {root} on trunk, without a commit" in section
    assert re.search(r"^  network +on$", section, re.MULTILINE)
    assert re.search(r"^  writable +/srv/cache beside the workspace$", section, re.MULTILINE)


def test_the_doctor_lists_skills_and_tells_what_is_wrong_with_some(
    config: Path, own: dict[str, str], tmp_path: Path
) -> None:
    config.write_text("")
    mine = put(config.parent / "skills", "mine")
    broken = raw(config.parent / "skills", "broken", "no front matter")
    root = tmp_path / "workspace"
    theirs = put(root / ".agents/skills", "theirs")
    code, out, _ = run("doctor", env=own, cwd=root)
    assert code == 0
    assert re.search(rf"^  mine +{re.escape(str(mine))}$", out, re.MULTILINE)
    assert f"{broken / 'SKILL.md'} is not loaded: it does not begin with front matter" in out
    assert "1 skill of the workspace: not loaded, as the workspace is not trusted." in out
    config.write_text(f'trusted = ["{root}"]')
    _, out, _ = run("doctor", env=own, cwd=root)
    assert re.search(rf"^  theirs +{re.escape(str(theirs))}$", out, re.MULTILINE)
    assert re.search(r"^  images +with pillow ", out, re.MULTILINE)


def test_the_doctor_lists_commands_and_tells_what_is_wrong_with_some(
    config: Path, own: dict[str, str], tmp_path: Path
) -> None:
    config.write_text("")
    root = tmp_path / "workspace"
    for file, text in {
        config.parent / "commands/mine.md": "Do mine.",
        config.parent / "commands/broken.md": "---\nmode: fast\n---\nDo it.",
        root / ".agentd/commands/git/theirs.md": "Do theirs.",
    }.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    code, out, _ = run("doctor", env=own, cwd=root)
    assert code == 0
    assert re.search(r"^  /mine +Do mine\.$", out, re.MULTILINE)
    assert "/git:theirs" not in out
    assert f"{root / '.agentd/commands'} is not read: the workspace is not trusted." in out
    assert re.search(rf"warning +{re.escape(str(config.parent / 'commands/broken.md'))}", out)
    config.write_text(f'trusted = ["{root}"]')
    _, out, _ = run("doctor", env=own, cwd=root)
    assert re.search(r"^  /git:theirs +Do theirs\.$", out, re.MULTILINE)


@pytest.mark.parametrize("trusted", [True, False])
def test_the_doctor_tells_what_is_wrong_with_the_file_of_a_trusted_folder(
    tmp_path: Path, own: dict[str, str], trusted: bool
) -> None:
    file = tmp_path / "project" / ".agentd" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("max_turns = 0\n")
    if trusted:
        assert run("trust", "add", str(tmp_path / "project"), env=own)[0] == 0
    code, out, _ = run("doctor", env=own, cwd=tmp_path / "project")
    assert (code, f"{file}:1: max_turns: is 0" in out) == (int(trusted), trusted)


def test_the_doctor_tells_problems_by_line_and_by_its_exit_code(config: Path, own: dict[str, str]) -> None:
    config.write_text('\nmdoe = "edit"\n')
    code, out, _ = run("doctor", env=own)
    assert code == 1
    assert re.search(rf"error +{re.escape(str(config))}:2: mdoe", out)


def test_no_model_is_a_warning_only(own: dict[str, str]) -> None:
    code, out, _ = run("doctor", env=own)
    assert code == 0
    assert re.search(r"warning +No model is configured", out)


def test_a_model_whose_key_is_missing_is_told_with_the_variable(own: dict[str, str]) -> None:
    env = {**own, "AGENTD_MODEL": "groq/some-model", "GROQ_API_KEY": "", "GROQ_BASE_URL": ""}
    code, out, _ = run("doctor", env=env)
    assert code == 0
    assert re.search(r"warning +Model .groq/some-model. cannot be asked: GROQ_API_KEY is not set", out)
    assert re.search(r"groq: openai-chat at https://api.groq.com/openai/v1 \(built in\)", out)
    code, out, _ = run("doctor", env={**env, "GROQ_API_KEY": "sk-canary"})
    assert "key from GROQ_API_KEY, which is set" in out
    assert "sk-canary" not in out
    assert "cannot be asked" not in out


def test_a_data_folder_that_cannot_be_is_an_error(tmp_path: Path, own: dict[str, str]) -> None:
    (tmp_path / "file").touch()
    code, out, _ = run("doctor", env={**own, "AGENTD_DATA": str(tmp_path / "file" / "data")})
    assert code == 1
    assert "Sessions cannot be kept" in out


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server that wants a key; its `requests` are counted in the path it logs."""

    class Locked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Locked) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/v1"
        http.shutdown()


def test_a_probe_tells_who_answers(config: Path, own: dict[str, str], server: str) -> None:
    near = f'[providers.near]\napi = "openai-chat"\nbase_url = "{server}"\n'
    far = '[providers.far]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
    config.write_text(f'model = "near/m"\n{near}{far}')
    proxy = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    code, out, _ = run("doctor", "--probe", env={**own, **proxy})
    assert code == 1
    assert re.search(r"near +answers \(HTTP 401\)", out)
    assert re.search(r"far +no answer", out)
    assert "Provider 'far' cannot be reached" in out
    assert "HTTP 401" not in run("doctor", env=own)[1]


# --- schema ---------------------------------------------------------------------------------------


def test_schema_prints_what_the_daemon_would_answer() -> None:
    code, out, _ = run("schema")
    assert code == 0
    assert json.loads(out) == json_schema()


def test_schema_prints_typescript() -> None:
    assert run("schema", "--typescript") == (0, typescript(json_schema()), "")


@pytest.mark.parametrize("command", ["schema", "--help", "--version"])
def test_a_reader_that_has_seen_enough_is_no_error(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen([*AGENTD, command], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    _, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, err) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize(
    "command",
    [["schema"], ["--help"], ["--version"], ["models"], ["sessions"], ["run", "go"], ["run", "--json", "go"]],
    ids=" ".join,
)
def test_a_full_disk_behind_stdout_is_said_in_a_sentence(
    command: list[str], tmp_path: Path, own: dict[str, str]
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"content": [{"type": "text", "text": "It is 4."}]}] * 2))
    environment = {**os.environ, **own, "AGENTD_MODEL": f"scripted/{script}", "PYTHONUNBUFFERED": "1"}
    assert run("run", "first", env=environment, cwd=tmp_path)[0] == 0
    with Path("/dev/full").open("wb") as full:
        process = subprocess.Popen(
            [*AGENTD, *command], stdout=full, stderr=subprocess.PIPE, env=environment, cwd=tmp_path
        )
        _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert err == b"agentd: what it says could not be written: No space left on device.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_what_cannot_be_said_on_stderr_is_no_end_of_a_run(tmp_path: Path, own: dict[str, str]) -> None:
    script = tmp_path / "script.json"
    call = {"type": "tool_call", "name": "list_directory", "arguments": {"path": "."}}
    script.write_text(json.dumps([{"content": [call]}, {"content": [{"type": "text", "text": "It is 4."}]}]))
    environment = {**os.environ, **own, "AGENTD_MODEL": f"scripted/{script}"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*AGENTD, "run", "go"],
            stdout=subprocess.PIPE,
            stderr=full,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, b"It is 4.\n")


@pytest.mark.parametrize(
    "command",
    [["run", "go"], ["sessions"], ["doctor"], ["models"], ["trust", "add", "."], ["permissions"]],
    ids=" ".join,
)
def test_a_folder_that_was_removed_is_no_place_to_stand_in(
    command: list[str], tmp_path: Path, own: dict[str, str]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    there = f'rmdir "{folder}" && exec "$@"'
    code, out, err = run("-c", there, "sh", *AGENTD, *command, command=["sh"], env=own, cwd=folder)
    assert (code, out) == (1, "")
    assert err == "agentd: The folder that you stand in does not exist any more; go to another one.\n"


def test_an_error_names_no_place_in_a_request_that_nobody_typed(own: dict[str, str]) -> None:
    code, _, err = run("permissions", "revoke", "r_none", env=own)
    assert (code, err.startswith('agentd: there is no rule "r_none"')) == (1, True)
    code, _, err = run("run", "/no-such-command", "-m", "scripted/demo", env=own)
    assert (code, err.startswith('agentd: There is no command "/no-such-command".')) == (1, True)


# --- sessions and models --------------------------------------------------------------------------


def test_sessions_are_listed_after_a_run(tmp_path: Path, own: dict[str, str]) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"content": [{"type": "text", "text": "It is 4."}]}]))
    project = tmp_path / "project"
    project.mkdir()
    assert run("sessions", "-C", str(project), env=own) == (0, "", "")
    code, out, err = run("run", "What is 2 + 2?", "-m", f"scripted/{script}", "-C", str(project), env=own)
    assert (code, out, err) == (0, "It is 4.\n", "")
    code, out, _ = run("sessions", env=own, cwd=project)
    assert code == 0
    assert "What is 2 + 2?" in out
    listed = json.loads(run("sessions", "--json", "-C", str(project), env=own)[1])
    assert out.startswith(listed["sessions"][0]["sessionId"])
    assert len(listed["sessions"]) == 1


def test_what_is_listed_cannot_steer_the_terminal() -> None:
    code, out, _ = run("sessions", command=WITH_FAKE)
    assert code == 0
    assert "A \\x1b[31mtitle" in out
    assert "\x1b" not in out


def test_models_are_listed_with_what_keeps_them_away() -> None:
    code, out, _ = run("models", command=WITH_FAKE)
    assert code == 0
    assert out.splitlines() == ["*  fake/model  8,192 tokens", "   fake/far    not available: no key"]


def test_models_of_the_configuration_are_listed(config: Path, own: dict[str, str]) -> None:
    config.write_text('model = "local/m"\n[providers.local]\napi = "openai-chat"\n'
                      'base_url = "http://127.0.0.1:9/v1"\n'
                      "[providers.local.models.m]\ncontext_window = 4096\n")  # fmt: skip
    code, out, err = run("models", env=own)
    assert (code, err) == (0, "")
    assert re.search(r"^\*  local/m +4,096 tokens$", out, re.MULTILINE)


def test_a_local_server_that_is_named_tells_its_models(config: Path, own: dict[str, str]) -> None:
    class Models(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"data": [{"id": "qwen", "max_model_len": 4096}, {"id": "gemma"}]}'
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body if self.path == "/v1/models" else b"{}")

        def log_message(self, *arguments: object) -> None:
            pass

    config.write_text("[providers.vllm.models.gemma]\nimages = true\ncontext_window = 8192\n")
    with HTTPServer(("127.0.0.1", 0), Models) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        env = {**own, "VLLM_BASE_URL": f"http://127.0.0.1:{http.server_port}", "VLLM_API_KEY": ""}
        code, out, err = run("models", "vllm", env=env)
        listed = json.loads(run("models", "vllm", "--json", env=env)[1])
        http.shutdown()
    assert (code, err) == (0, "")
    assert out.splitlines() == ["  vllm/qwen   4,096 tokens", "  vllm/gemma  8,192 tokens"]
    assert [model["images"] for model in listed["models"]] == [False, True]


def test_a_daemon_that_cannot_answer_is_one_sentence() -> None:
    code, out, err = run("models", command=WITH_FAKE, env={"FAKE_GREETING": "die"})
    assert (code, out) == (1, "")
    assert err.startswith("agentd: agentd ended with exit code 7")
