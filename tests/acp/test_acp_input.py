"""Bad input, slow readers and ends of life over ACP: one answer per request, and nothing is left behind."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest
from fakes.acp_agent import AcpHome, error_of, text
from wire.processes import sleepers, unique_sleep, until
from wire.scripts import reply, tool


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"NaN", -32700),
        (b"[" * 5000, -32700),
        (b"[]", -32600),
        (b"42", -32600),
        (b'{"id":1,"method":"session/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"session/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"session/list"}', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]', -32600),
    ],
)
def test_a_bad_line_is_answered_and_the_next_one_served(acp_home: AcpHome, line: bytes, code: int) -> None:
    agent = acp_home.begun()
    agent.send(line)
    bad = agent.wait(lambda message: "error" in message)
    assert bad["error"]["code"] == code
    assert agent.call("session/list", {})["sessions"] == []


def test_blank_lines_and_carriage_returns_are_no_messages(acp_home: AcpHome) -> None:
    agent = acp_home.spawn()
    agent.write(b"\n\r\n  \n")
    params = {"protocolVersion": 1}
    agent.methods[1] = "initialize"
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
    agent.write(line[:20])
    agent.write(line[20:] + b"\r\n")
    assert agent.response(1)["result"]["protocolVersion"] == 1
    assert len(agent.messages) == 1


def test_an_oversized_line_is_skipped_and_answered(acp_home: AcpHome) -> None:
    agent = acp_home.begun()
    agent.write(b'{"jsonrpc":"2.0","id":9,"method":"x","params":"' + b"x" * (65 * 1024 * 1024), timeout=60)
    agent.write(b'"}\n')
    bad = agent.wait(lambda message: "error" in message, timeout=60)
    assert bad["error"]["code"] == -32600
    assert "limit" in bad["error"]["message"]
    assert agent.call("session/list", {})["sessions"] == []


@pytest.mark.parametrize("size", [65_535, 65_537, 5_000_000])
def test_a_long_line_is_a_message_like_any_other(acp_home: AcpHome, size: int) -> None:
    agent = acp_home.begun(reply("Read."))
    session = agent.new(acp_home.workspace())
    assert agent.ask(session, "x" * size)["stopReason"] == "end_turn"
    assert len(str(acp_home.model_requests()[0])) > size


@pytest.mark.parametrize("method", ["session/fork", "shutdown", "agentd/status", "logout", "terminal/create"])
def test_what_is_not_served_is_not_found(acp_home: AcpHome, method: str) -> None:
    assert acp_home.begun().refused(method, {})["code"] == -32601


def test_nothing_is_served_before_initialize_nor_initialize_twice(acp_home: AcpHome) -> None:
    agent = acp_home.spawn()
    assert agent.refused("session/list", {})["code"] == -32600
    agent.begin()
    assert agent.refused("initialize", {"protocolVersion": 1})["code"] == -32600


@pytest.mark.parametrize("version", ["1", None, -1, 65536, 1.5, True])
def test_a_version_that_is_none_is_refused_and_the_next_one_taken(acp_home: AcpHome, version: Any) -> None:
    agent = acp_home.spawn()
    assert agent.refused("initialize", {"protocolVersion": version})["code"] == -32602
    assert agent.begin()["protocolVersion"] == 1


def test_an_id_in_flight_is_refused_and_the_first_goes_on(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("So far", hang=True))
    session = agent.new(acp_home.workspace())
    prompt = agent.prompt(session, "go")
    agent.told(session, lambda update: update["sessionUpdate"] == "agent_message_chunk")
    agent.send({"jsonrpc": "2.0", "id": prompt, "method": "session/list", "params": {}})
    refused = agent.wait(lambda message: message.get("id") == prompt and "error" in message)
    assert refused["error"]["code"] == -32600
    agent.notify("session/cancel", {"sessionId": session})
    done = agent.wait(lambda message: message.get("id") == prompt and "result" in message)
    assert done["result"]["stopReason"] == "cancelled"


def test_too_many_requests_are_overloaded_and_cancel_still_works(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("So far", hang=True))
    session = agent.new(acp_home.workspace())
    prompts = [agent.prompt(session, "go") for _ in range(300)]
    for refused in [agent.response(prompt) for prompt in prompts[256:]]:
        assert error_of(refused)["data"]["kind"] in ("overloaded", "queueFull")
    agent.notify("session/cancel", {"sessionId": session})
    assert agent.response(prompts[0])["result"]["stopReason"] == "cancelled"


def test_a_client_that_reads_nothing_slows_the_run_and_still_cancels(acp_home: AcpHome) -> None:
    much = "word " * 400_000
    agent = acp_home.begun(reply(much, chunkSize=4096), reply("never"))
    session = agent.new(acp_home.workspace())
    agent.stop_reading()
    prompt = agent.prompt(session, "go")
    agent.notify("session/cancel", {"sessionId": session})
    agent.wait_until_read()
    agent.read_on()
    assert agent.response(prompt)["result"]["stopReason"] == "cancelled"
    assert len(agent.said(session)) < len(much)


def test_a_slow_client_gets_every_word_in_order(acp_home: AcpHome) -> None:
    much = "".join(f"{number} " for number in range(60_000))
    agent = acp_home.begun(reply(much, chunkSize=512))
    session = agent.new(acp_home.workspace())
    agent.stop_reading()
    prompt = agent.prompt(session, "go")
    agent.wait_until_read()
    agent.read_on()
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert agent.said(session) == much


def running(acp_home: AcpHome) -> tuple[Any, str, int, str]:
    """A prompt whose command runs."""
    acp_home.trust()
    sleep = unique_sleep()
    agent = acp_home.begun(reply("Now.", tool("bash", {"command": sleep}, "c1")))
    session = agent.new(acp_home.workspace())
    prompt = agent.prompt(session, "go")
    until(lambda: sleepers(sleep), "the command runs")
    return agent, session, prompt, sleep


def is_ended(acp_home: AcpHome) -> bool:
    return b'"agent_end"' in acp_home.journal() and b'"interrupted"' in acp_home.journal()


def test_the_end_of_input_ends_all_and_answers_the_prompt(acp_home: AcpHome) -> None:
    agent, _, prompt, sleep = running(acp_home)
    agent.close_stdin()
    assert agent.exit_code() == 0
    answer = agent.response(prompt)["result"]
    assert answer["stopReason"] == "cancelled"
    assert answer["_meta"]["agentd"]["stopReason"] == "interrupted"
    assert not sleepers(sleep)
    assert is_ended(acp_home)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_all_in_good_order(acp_home: AcpHome, number: signal.Signals, code: int) -> None:
    agent, _, _, sleep = running(acp_home)
    agent.process.send_signal(number)
    assert agent.exit_code() == code
    assert not sleepers(sleep)
    assert is_ended(acp_home)


def test_a_closed_stdout_ends_it(acp_home: AcpHome) -> None:
    agent, _, _, sleep = running(acp_home)
    agent.close_stdout()
    assert agent.exit_code() == 1
    assert not sleepers(sleep)


def test_it_ends_although_a_question_for_a_file_stands_open(acp_home: AcpHome) -> None:
    acp_home.trust()
    folder = acp_home.workspace(a_txt="one\n")
    agent = acp_home.begun(
        reply(tool("read_file", {"file_path": "a.txt"})), abilities={"fs": {"readTextFile": True}}
    )
    agent.prompt(agent.new(folder), "go")
    agent.asked("fs/read_text_file")
    agent.close_stdin()
    assert agent.exit_code() == 0


def test_a_process_that_was_told_nothing_ends_with_its_input(acp_home: AcpHome) -> None:
    agent = acp_home.spawn()
    agent.close_stdin()
    assert agent.exit_code() == 0
    assert agent.messages == []


def test_commands_cannot_reach_the_wire_or_the_keys(acp_home: AcpHome) -> None:
    acp_home.trust()
    call = reply(tool("bash", {"command": "cat; echo stray; env"}, "c1"))
    acp_home.config.write_text(f'model = "{acp_home.script(call, reply("x"))}"\n' + acp_home.settings)
    agent = acp_home.spawn(OPENAI_API_KEY="sk-very-secret-key-of-mine")
    agent.begin()
    session = agent.new(acp_home.workspace())
    assert agent.ask(session, "go")["stopReason"] == "end_turn"
    said = str(agent.call_of(session, "c1")["content"])
    assert "stray" in said
    assert "very-secret" not in said


def test_wrong_use_is_said_on_stderr(acp_home: AcpHome) -> None:
    agent = acp_home.spawn("--no-such-option")
    assert agent.exit_code() == 2
    assert b"agentd acp --help" in agent.errors
    command = [sys.executable, "-m", "agentd", "acp", "--help"]
    helped = subprocess.run(command, env=acp_home.environment(), capture_output=True, text=True, timeout=60)
    assert helped.returncode == 0
    assert "usage: agentd acp" in helped.stdout


def test_prompts_of_two_sessions_run_side_by_side(acp_home: AcpHome) -> None:
    acp_home.trust()
    one, other = acp_home.workspace(), acp_home.workspace()
    agent = acp_home.begun(
        reply(tool("bash", {"command": "until [ -e go ]; do sleep 0.05; done"})), *[reply("Done.")] * 2
    )
    first, second = agent.new(one), agent.new(other)
    waits = agent.prompt(first, "wait")
    agent.told(first, lambda update: update.get("status") == "in_progress")
    assert agent.response(agent.prompt(second, text("go")))["result"]["stopReason"] == "end_turn"
    (one / "go").touch()
    assert agent.response(waits)["result"]["stopReason"] == "end_turn"


def test_what_it_needs_to_serve_is_what_every_face_needs(acp_home: AcpHome) -> None:
    """Start-up imports are counted: neither ACP's SDK nor what only the language server needs."""
    code = "import sys, agentd.acp.app; print(sorted({name.split('.')[0] for name in sys.modules}))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=acp_home.environment()
    )
    for name in ("acp", "httpx", "pygls", "lsprotocol", "pathspec", "jsonschema_rs"):
        assert f"'{name}'" not in found.stdout
