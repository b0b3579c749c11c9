"""The daemon with a model server on HTTP: the whole way from a prompt to a socket and back."""

import contextlib
import json
import signal
import socket
from collections.abc import Iterator

import pytest
from fakes.model_server import ModelServer, Raw, http_error_answer, sse
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import SAID, USER, assert_well_formed, called, shape, turn
from wire.processes import sleepers, unique_sleep, until
from wire.scripts import reply, text, tool

KEY = "sk-key-of-the-http-tests"
MODEL = "local/some-model"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A strict model server with an empty script."""
    with ModelServer() as server:
        yield server
        assert server.faults == []


@pytest.fixture
def daemon(home: Home, server: ModelServer) -> Daemon:
    """A daemon whose default model is on that server; mode `full` is allowed in it."""
    configure(home, server.base_url)
    return start(home)


def configure(home: Home, base_url: str) -> None:
    home.config.write_text(
        f'model = "{MODEL}"\n[providers.local]\napi = "openai-chat"\nbase_url = "{base_url}"\n'
        'api_key_env = "LOCAL_API_KEY"\n[providers.local.models.some-model]\ncontext_window = 32768\n'
    )


def start(home: Home) -> Daemon:
    daemon = home.spawn("--allow-full", LOCAL_API_KEY=KEY)
    daemon.initialize()
    return daemon


def said(chat: Chat, role: str) -> list[Json]:
    """The whole messages of this role."""
    ends = [p["event"] for p in chat.notifications() if p["event"]["type"] == "message_end"]
    return [event["message"] for event in ends if event["message"]["role"] == role]


def test_a_prompt_runs_tools_over_http(home: Home, server: ModelServer, daemon: Daemon) -> None:
    usage = {"input": 7, "output": 5, "cacheRead": 2, "total": 14}
    server.push(
        reply(
            "I look: ", tool("read_file", {"file_path": "note.txt"}, "look"), tool("missing", {"x": "é😀"})
        ),
        reply("It says hello 😀.", usage=usage, chunkSize=1),
    )
    chat = Chat(daemon, home.workspace(note_txt="hello 😀\n"), mode="full")
    result = chat.run("What does the note say?")
    assert (result["text"], result["stopReason"], result["turns"]) == ("It says hello 😀.", "stop", 2)
    assert (result["usage"]["input"], result["usage"]["cacheRead"], result["usage"]["output"]) == (7, 2, 5)
    notifications = chat.notifications()
    assert_well_formed(notifications)
    ids = [p["event"]["toolCallId"] for p in notifications if p["event"]["type"] == "tool_execution_start"]
    assert ids[0] == "look"
    assert shape(notifications)[1:] == [
        "agent_start",
        *turn(USER, SAID, called("look"), called(ids[1])),
        *turn(SAID),
        "agent_end(stop)",
    ]
    first, second = server.requests
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.body["model"] == "some-model"
    assert {"read_file", "bash"} <= {offered["function"]["name"] for offered in first.body["tools"]}
    assert "hello 😀" in second.raw.decode() or "hello \\ud83d" in second.raw.decode()
    assert 'Unknown tool "missing".' in json.dumps(second.body["messages"]).replace('\\"', '"')


def test_the_history_after_every_kind_of_cancel_is_still_valid(
    home: Home, server: ModelServer, daemon: Daemon
) -> None:
    sleep = unique_sleep()
    calls = [tool("bash", {"command": sleep}, "call-1"), tool("bash", {"command": "true"}, "call-2")]
    chat = Chat(daemon, home.workspace(), mode="full")
    server.push(reply("half a sentence", hang=True))
    prompt = chat.start("first")
    chat.event("message_update")
    chat.cancel()
    assert chat.result(prompt)["text"] == "half a sentence"
    server.wait_for_disconnects(1)
    server.push(reply("I run two", *calls))
    prompt = chat.start("second")
    until(lambda: sleepers(sleep), "the command runs")
    chat.cancel()
    assert chat.result(prompt)["stopReason"] == "aborted"
    server.push(reply(hang=True))
    prompt = chat.start("third")
    server.wait_for_requests(3)
    chat.cancel()
    assert chat.result(prompt)["text"] == ""
    server.push(reply("All well."))
    assert chat.run("fourth")["text"] == "All well."
    assert_well_formed(chat.notifications())


@pytest.mark.parametrize(
    "answer",
    [Raw(answer=False), Raw(sse({"choices": []}), stall_after=0), Raw(sse({"choices": []}), stall_after=9)],
    ids=["no-answer", "headers-only", "half-a-line"],
)
def test_a_cancel_closes_the_socket_of_a_server_that_stalls(
    home: Home, server: ModelServer, daemon: Daemon, answer: Raw
) -> None:
    chat = Chat(daemon, home.workspace())
    server.push(answer)
    prompt = chat.start()
    server.wait_for_requests(1)
    assert chat.cancel()["state"] == "cancelled"
    assert chat.result(prompt)["stopReason"] == "aborted"
    server.wait_for_disconnects(1)
    assert shape(chat.notifications())[1:] == ["agent_start", *turn(USER, SAID), "agent_end(aborted)"]


def test_the_end_of_the_daemon_closes_its_sockets(home: Home, server: ModelServer, daemon: Daemon) -> None:
    chat = Chat(daemon, home.workspace())
    server.push(reply("so far", hang=True))
    prompt = chat.start()
    chat.event("message_update")
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.exit_code() == 143
    assert chat.result(prompt)["stopReason"] == "interrupted"
    server.wait_for_disconnects(1)


def test_a_kill_in_the_middle_of_a_tool_leaves_a_history_that_a_strict_server_takes(
    home: Home, server: ModelServer, daemon: Daemon
) -> None:
    sleep = unique_sleep()
    server.push(reply("I run", tool("bash", {"command": sleep}, "call-1"), tool("bash", {"command": "true"})))
    chat = Chat(daemon, home.workspace(), mode="full")
    chat.start("run it")
    until(lambda: sleepers(sleep), "the command runs")
    daemon.kill()
    server.push(reply("here again"))
    later = start(home)
    assert later.call("agentd/prompt", {"sessionId": chat.id, "prompt": "and now?"})["text"] == "here again"
    assert "Outcome unknown" in json.dumps(server.requests[-1].body)


def test_a_refused_key_is_an_error_of_kind_auth_and_is_not_repeated(
    home: Home, server: ModelServer, daemon: Daemon
) -> None:
    server.push(http_error_answer(401, f"Incorrect API key provided: {KEY}"))
    chat = Chat(daemon, home.workspace())
    daemon.keep_bytes = True
    result = chat.run()
    assert (result["stopReason"], result["error"]["kind"], result["error"]["retryable"]) == (
        "error",
        "auth",
        False,
    )
    assert len(server.requests) == 1
    assert KEY.encode() not in daemon.received
    assert KEY.encode() not in home.journal()
    assert said(chat, "assistant")[-1]["stopReason"] == "error"


def test_a_stream_that_breaks_off_is_taken_back_and_asked_for_again(
    home: Home, server: ModelServer, daemon: Daemon
) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "as far as it came"}, "finish_reason": None}]}
    body = sse(chunk, done=False)
    server.push(Raw(body + b"data: {", cut_after=len(body) + 3), reply("the whole"))
    chat = Chat(daemon, home.workspace())
    assert chat.run()["text"] == "the whole"
    kinds = [params["event"]["type"] for params in chat.notifications()]
    at = kinds.index("message_reset")
    assert kinds[at - 1 : at + 2] == ["message_update", "message_reset", "retry"]
    assert said(chat, "assistant")[-1]["content"] == [text("the whole")]
    assert len(server.requests) == 2


def test_a_server_that_is_not_there_is_a_network_error_that_names_it(home: Home) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as unused:
        port = unused.getsockname()[1]
    configure(home, f"http://127.0.0.1:{port}/v1")
    daemon = start(home)
    chat = Chat(daemon, home.workspace())
    result = chat.run()
    assert (result["stopReason"], result["error"]["kind"]) == ("error", "network")
    assert str(port) in result["error"]["message"]
    told = shape(chat.notifications())[1:]
    assert [each for each in told if each != "retry"] == [
        "agent_start",
        *turn(USER, SAID),
        "agent_end(error)",
    ]
    assert told.count("retry") == 4


def test_a_key_that_the_client_sets_comes_before_the_environment(
    home: Home, server: ModelServer, daemon: Daemon
) -> None:
    server.push(reply("one"), reply("two"))
    chat = Chat(daemon, home.workspace())
    daemon.call("agentd/credentials/set", {"provider": "local", "secret": "sk-set-by-client"})
    chat.run("first")
    daemon.call("agentd/credentials/set", {"provider": "local", "secret": None})
    chat.run("second")
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer sk-set-by-client", f"Bearer {KEY}"]


def test_a_server_may_stream_at_its_own_pace_while_others_run(
    home: Home, server: ModelServer, daemon: Daemon
) -> None:
    server.push(reply("slow " * 20, chunkSize=5, delayMs=40))
    slow = Chat(daemon, home.workspace())
    prompt = slow.start("slow one")
    slow.event("message_update")
    server.push(reply("quick"))
    quick = Chat(daemon, home.workspace())
    assert quick.run("quick one")["text"] == "quick"
    assert slow.get()["session"]["state"] == "running"
    assert slow.result(prompt)["text"] == "slow " * 20
