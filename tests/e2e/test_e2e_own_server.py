"""A server of the user's own: what it hides, tells and is sent, over a real daemon and sockets."""

import json
from typing import Any

import pytest
from fakes.anthropic_server import AnthropicServer
from fakes.model_server import ModelServer, Raw, Recorded, json_answer, sse
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.runs import of_type
from wire.scripts import reply, tool

CANARY = "canary-0123456789"


@pytest.fixture
def server() -> Any:
    with ModelServer(strict=True) as server:
        yield server


def daemon_at(home: Home, server: ModelServer, config: str = "", name: str = "ollama", **env: str) -> Daemon:
    """A daemon that knows the server as a provider of that name; mode `full` is allowed in it."""
    api = "" if name == "ollama" else 'api = "openai-chat"\n'
    home.config.write_text(f'[providers.{name}]\n{api}base_url = "{server.base_url}"\n{config}')
    daemon = home.spawn("--allow-full", **env)
    daemon.initialize()
    return daemon


def chat_at(daemon: Daemon, home: Home, model: str = "ollama/qwen3", **files: str) -> Chat:
    return Chat(daemon, home.workspace(**files), model=model, mode="full")


def notices(chat: Chat) -> list[str]:
    found = of_type(chat.notifications(), "notice")
    assert {notice["severity"] for notice in found} <= {"warning"}
    return [notice["message"] for notice in found]


# --- prompts that are cut -------------------------------------------------------------------------


def cutting(limit: int, *blocks: Any) -> Any:
    """An answer with the count of a server that cuts a prompt of more than `limit` tokens to half of that."""

    def answer(request: Recorded) -> Json:
        tokens = len(json.dumps(request.body["messages"])) // 4
        counted = tokens if tokens <= limit else limit // 2 + 3
        return reply(*blocks, usage={"input": counted, "output": 3, "total": counted + 3})

    return answer


def test_a_prompt_that_a_server_cuts_is_told_once_for_each_session_and_model(
    home: Home, server: ModelServer
) -> None:
    daemon = daemon_at(home, server)
    text = "the quick brown fox jumps over a lazy dog\n" * 1500
    chat = chat_at(daemon, home, big_txt=text)
    read = [tool("read_file", {"file_path": "big.txt"}, f"call-{number}") for number in range(4)]
    server.push(*(cutting(8192, call) for call in read), cutting(8192, "done"))
    assert chat.run("what is in it?")["stopReason"] == "stop"
    (said,) = notices(chat)
    assert "ollama/qwen3 does not see the whole conversation" in said
    assert "OLLAMA_CONTEXT_LENGTH" in said
    assert_well_formed(chat.notifications())
    server.push(cutting(8192, "yes"))
    chat.run("and now?")
    assert len(notices(chat)) == 1
    server.push(cutting(8192, "me too"))
    chat.run("and you?", model="ollama/gemma")
    server.push(cutting(8192, tool("read_file", {"file_path": "big.txt"}, "more")), cutting(8192, "me too"))
    chat.run("and you?", model="ollama/gemma")
    assert [message.split()[0] for message in notices(chat)] == ["ollama/qwen3", "ollama/gemma"]
    assert server.faults == []
    daemon.close_stdin()
    assert daemon.exit_code() == 0
    again = home.spawn("--allow-full")
    again.initialize()
    server.push(cutting(8192, tool("read_file", {"file_path": "big.txt"}, "again")), cutting(8192, "done"))
    since = len(again.messages)
    result = again.call(
        "agentd/prompt", {"sessionId": chat.id, "prompt": "once more", "model": "ollama/qwen3"}
    )
    assert result["stopReason"] == "stop"
    events = [m["params"]["event"] for m in again.messages[since:] if m.get("method") == "agentd/event"]
    assert [event for event in events if event["type"] == "notice"] == []


def test_the_warning_is_told_before_the_answer_ends_and_is_no_part_of_it(
    home: Home, server: ModelServer
) -> None:
    chat = chat_at(daemon_at(home, server), home)
    server.push(cutting(4096, "done"))
    chat.run("the quick brown fox jumps over a lazy dog\n" * 3000)
    kinds = [params["event"]["type"] for params in chat.notifications() if "seq" in params]
    assert kinds[-5:] == ["message_start", "notice", "message_end", "turn_end", "agent_end"]
    assert "does not see" not in json.dumps(chat.get()["messages"])


@pytest.mark.parametrize(
    ("config", "warned"), [("", 0), ("[providers.own.dialect]\ncuts_prompts = true\n", 1)]
)
def test_another_server_is_watched_where_the_user_says_so(
    home: Home, server: ModelServer, config: str, warned: int
) -> None:
    chat = chat_at(daemon_at(home, server, config, "own"), home, "own/m")
    server.push(cutting(4096, "done"))
    chat.run("the quick brown fox jumps over a lazy dog\n" * 3000)
    assert len(notices(chat)) == warned


def test_a_long_prompt_that_is_read_as_a_whole_is_no_reason_to_warn(home: Home, server: ModelServer) -> None:
    chat = chat_at(daemon_at(home, server), home)
    server.push(*[cutting(10**9, "done")] * 4)
    for _ in range(4):
        chat.run("the quick brown fox jumps over a lazy dog\n" * 3000)
    assert notices(chat) == []


# --- what errors tell -----------------------------------------------------------------------------

OVERFLOW = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001."


def overflow(**headers: str) -> Raw:
    error = {"message": OVERFLOW, "type": "invalid_request_error", "code": "context_length_exceeded"}
    return json_answer({"error": error}, 400, **headers)


def window_of(daemon: Daemon, name: str) -> int | None:
    (model,) = [each for each in daemon.call("agentd/models", {})["models"] if each["id"] == name]
    found: int | None = model.get("contextWindow")
    return found


USAGE = {"input": 7, "output": 5, "total": 12}


def test_a_window_that_an_overflow_told_counts_from_then_on(home: Home, server: ModelServer) -> None:
    daemon = daemon_at(home, server, "[providers.own.models.m]\nimages = true\n", "own")
    chat = chat_at(daemon, home, "own/m")
    assert window_of(daemon, "own/m") is None
    server.push(reply("hi", usage=USAGE), overflow(), reply("## Goal"), reply("ok", usage=USAGE))
    server.push(reply("ok", usage=USAGE))
    assert "contextWindow" not in chat.run("hi")["usage"]
    assert chat.run("too much")["usage"]["contextWindow"] == 8192, "in the very turn that was made shorter"
    assert window_of(daemon, "own/m") == 8192
    other = chat_at(daemon, home, "own/m")
    assert other.run("hi")["usage"]["contextWindow"] == 8192


def test_a_window_that_the_user_configured_is_not_overridden(home: Home, server: ModelServer) -> None:
    daemon = daemon_at(home, server, "[providers.own.models.m]\ncontext_window = 4096\n", "own")
    chat = chat_at(daemon, home, "own/m")
    server.push(overflow(), reply("ok", usage=USAGE))
    chat.run("too much")
    assert chat.run("less")["usage"]["contextWindow"] == 4096
    assert window_of(daemon, "own/m") == 4096


def test_an_error_tells_status_code_and_request_id_on_the_wire_and_in_the_journal(
    home: Home, server: ModelServer
) -> None:
    daemon = daemon_at(home, server, name="own")
    chat = chat_at(daemon, home, "own/m")
    server.push(overflow(x_request_id="req_42"))
    error = chat.run("too much")["error"]
    assert (error["status"], error["code"], error["requestId"]) == (400, "context_length_exceeded", "req_42")
    (ended,) = of_type(chat.notifications(), "agent_end")
    assert ended["error"] == error
    assert b'"requestId":"req_42"' in home.journal()
    broken = {"error": {"message": "boom", "code": "invalid_prompt"}}
    server.push(Raw(sse(broken), headers={"content-type": "text/event-stream", "x-request-id": "req_43"}))
    error = chat.run("again")["error"]
    assert (error["code"], error["requestId"], "status" in error) == ("invalid_prompt", "req_43", False)


# --- which models it has --------------------------------------------------------------------------


class Listing(ModelServer):
    """A server that tells its models too."""

    models: Any = ()

    def receive(self, request: Recorded) -> Any:
        if request.path.endswith("/models"):
            self.requests.append(request)
            return self.models if isinstance(self.models, Raw) else json_answer({"data": self.models})
        return super().receive(request)


def test_a_server_is_asked_for_its_models_only_when_it_is_named(home: Home) -> None:
    with Listing() as server:
        server.models = [{"id": "m", "max_model_len": 4096}, {"id": "new", "max_model_len": 2048}]
        config = 'headers = {"X-Team" = "blue"}\n[providers.own.models.m]\nimages = true\n'
        daemon = daemon_at(home, server, config, "own")
        daemon.call("agentd/models", {})
        assert server.requests == []
        answer = daemon.call("agentd/models", {"provider": "own"})
        told = [
            (each["id"], each["contextWindow"], each["images"], each["available"])
            for each in answer["models"]
        ]
        assert told == [("own/m", 4096, True, True), ("own/new", 2048, False, True)]
        assert [request.headers["x-team"] for request in server.requests] == ["blue"]
        server.push(overflow())
        chat_at(daemon, home, "own/m").run("too much")
        answer = daemon.call("agentd/models", {"provider": "own"})
        assert [each["contextWindow"] for each in answer["models"]] == [8192, 2048], (
            "the error told the one in use"
        )


def test_a_server_that_is_down_is_the_reason_in_the_list(home: Home) -> None:
    with Listing() as server:
        daemon = daemon_at(home, server, "[providers.own.models.m]\n", "own")
        server.models = json_answer({"error": {"message": "loading"}}, 503)
        (model,) = daemon.call("agentd/models", {"provider": "own"})["models"]
        assert (model["id"], model["available"]) == ("own/m", False)
        assert "own: HTTP 503" in model["reason"]
    (model,) = daemon.call("agentd/models", {"provider": "own"})["models"]
    assert "own: cannot reach http://127.0.0.1" in model["reason"]
    (model,) = daemon_at(home, server).call("agentd/models", {"provider": "ollama"})["models"]
    assert (model["id"], model["available"]) == ("ollama/*", False)


def test_a_provider_that_there_is_not_is_named(home: Home, server: ModelServer) -> None:
    error = daemon_at(home, server).refused("agentd/models", {"provider": "olama"})
    assert error["data"]["kind"] == "invalidParams"
    assert error["message"].startswith("/provider: there is no provider 'olama' (did you mean \"ollama\"?)")


def test_a_hosted_provider_that_is_named_is_told_from_the_catalogue(home: Home, server: ModelServer) -> None:
    daemon = daemon_at(home, server, ANTHROPIC_API_KEY="sk-key-of-nobody")
    models = daemon.call("agentd/models", {"provider": "anthropic"})["models"]
    assert {each["provider"] for each in models} == {"anthropic"}
    assert all(each["available"] for each in models)
    (lacking,) = daemon.call("agentd/models", {"provider": "xai"})["models"]
    assert (lacking["id"], lacking["reason"]) == ("xai/*", "XAI_API_KEY is not set")


# --- headers --------------------------------------------------------------------------------------

HEADERS = (
    '[providers.own.headers]\n"X-Team" = "blue"\n[providers.own.headers_env]\n"X-Gate" = "GATE_SECRET"\n'
)


def test_headers_go_with_each_request_and_secret_ones_stay_secret(home: Home, server: ModelServer) -> None:
    tape = home.path / "tape.jsonl"
    home.config.write_text(f'[providers.own]\napi = "openai-chat"\nbase_url = "{server.base_url}"\n{HEADERS}')
    daemon = home.spawn(f"--record={tape}", GATE_SECRET=CANARY)
    daemon.initialize()
    chat = chat_plain(daemon, home)
    server.push(
        reply("hi"),
        json_answer({"error": {"message": f"bad {CANARY}", "code": CANARY}}, 401, x_request_id=CANARY),
    )
    assert chat.run("hi")["text"] == "hi"
    error = chat.run("again")["error"]
    assert error["kind"] == "auth"
    assert not {"code", "requestId"} & set(error)
    sent = [(each.headers["x-team"], each.headers["x-gate"]) for each in server.requests]
    assert sent == [("blue", CANARY)] * 2
    daemon.close_stdin()
    assert daemon.exit_code() == 0
    for text in (json.dumps(daemon.messages).encode(), home.journal(), tape.read_bytes(), daemon.errors):
        assert CANARY.encode() not in text


def test_headers_do_not_follow_to_another_host(home: Home, server: ModelServer) -> None:
    with ModelServer() as other:
        chat = chat_plain(daemon_at(home, server, HEADERS, "own", GATE_SECRET=CANARY), home)
        server.push(Raw(b"", 307, {"location": f"{other.base_url}/chat/completions"}))
        assert "redirects to" in chat.run("hi")["error"]["message"]
        assert other.requests == []


def test_a_header_whose_variable_is_not_set_is_left_out_and_told(home: Home, server: ModelServer) -> None:
    daemon = daemon_at(home, server, HEADERS, "own")
    server.push(reply("hi"))
    chat_plain(daemon, home).run("hi")
    assert "x-gate" not in server.requests[0].headers
    problems = [each["message"] for each in daemon.call("agentd/status")["problems"]]
    assert "GATE_SECRET is not set: requests to own carry no header X-Gate." in problems


def test_a_header_that_no_request_can_carry_is_refused_without_its_value(
    home: Home, server: ModelServer
) -> None:
    daemon = daemon_at(home, server, HEADERS, "own", GATE_SECRET=f"{CANARY}\u00fc")
    error = chat_plain(daemon, home).run("hi")["error"]
    assert error["kind"] == "bad_request"
    assert "X-Gate" in error["message"]
    assert CANARY not in json.dumps(daemon.messages)
    assert server.requests == []


def chat_plain(daemon: Daemon, home: Home) -> Chat:
    return Chat(daemon, home.workspace(), model="own/m")


# --- thinking in the text -------------------------------------------------------------------------


def test_thinking_in_the_text_is_apart_in_events_and_messages_and_goes_back_as_it_came(
    home: Home, server: ModelServer
) -> None:
    daemon = daemon_at(home, server, '[providers.own.models.m]\nthinking_tag = "think"\n', "own")
    chat = chat_at(daemon, home, "own/m")
    said = '<think>I could <tool_call>{"name": "bash"}</tool_call></think>\n\n'
    call = tool("list_directory", {}, "call-1")
    server.push(reply(f"{said}I look.", call, chunkSize=3), reply("done"))
    assert chat.run("look")["text"] == "done"
    first = of_type(chat.notifications(), "message_end")[1]["message"]
    assert [(block["type"], block.get("text")) for block in first["content"]] == [
        ("thinking", 'I could <tool_call>{"name": "bash"}</tool_call>'),
        ("text", "I look."),
        ("tool_call", None),
    ]
    assert_well_formed(chat.notifications())
    assert [each["toolName"] for each in of_type(chat.notifications(), "tool_execution_start")] == [
        "list_directory"
    ]
    back = server.requests[1].body["messages"]
    assert [message["content"] for message in back if message["role"] == "assistant"] == [f"{said}I look."]
    assert server.faults == []


# --- what it costs --------------------------------------------------------------------------------

PRICES = "[providers.own.models.m.prices]\ninput = 3.0\noutput = 15.0\ncache_read = 0.3\ncache_write = 3.75\n"


def test_usage_tells_each_kind_of_token_and_what_they_cost(home: Home) -> None:
    with AnthropicServer() as server:
        home.config.write_text(
            f'[providers.own]\napi = "anthropic"\nbase_url = "{server.base_url}"\n{PRICES}'
        )
        daemon = home.spawn("--allow-full")
        daemon.initialize()
        chat = chat_at(daemon, home, "own/m")
        usage = {"input": 7, "output": 5, "cacheRead": 2, "cacheWrite": 1, "total": 15}
        server.push(reply(tool("list_directory", {}, "call-1"), usage=usage), reply("done", usage=usage))
        told = chat.run("look")["usage"]
    kinds = ("input", "output", "cacheRead", "cacheWrite", "total")
    once = of_type(chat.notifications(), "turn_end")[0]["usage"]
    assert [once[kind] for kind in kinds] == [7, 5, 2, 1, 15]
    assert [told[kind] for kind in kinds] == [14, 10, 4, 2, 30]
    price = (7 * 3.0 + 5 * 15.0 + 2 * 0.3 + 1 * 3.75) / 1_000_000
    assert once["cost"] == {"total": pytest.approx(price), "currency": "USD"}
    assert told["cost"] == {"total": pytest.approx(2 * price), "currency": "USD"}
    assert told["contextTokens"] == 15, "what the last response filled"


def test_without_a_price_no_cost_is_told(home: Home, server: ModelServer) -> None:
    chat = chat_at(daemon_at(home, server, name="own"), home, "own/m")
    server.push(reply("hi", usage=USAGE))
    assert "cost" not in chat.run("hi")["usage"]
