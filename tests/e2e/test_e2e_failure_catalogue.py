"""What servers and networks have done to other agents, the whole way from the socket to the files."""

import json
from typing import Any

import pytest
from e2e.every_api import MODELS, SERVERS, Stage, start
from fakes.answers import answer
from fakes.model_server import Raw, Recorded, sse
from wire.chat import Chat
from wire.order import assert_well_formed
from wire.runs import of_type, result_texts, run_events
from wire.scripts import reply, text, tool

PAGE = b"<!DOCTYPE html><html><body>Your IP: 203.0.113.9" + b" filler" * 30_000
SOON = {"retry-after-ms": "1"}


@pytest.fixture
def chat_stage(all_stages: dict[str, Stage]) -> Stage:
    """The server that speaks chat completions, with nothing to play."""
    stage = all_stages["openai-chat"]
    stage.server.start_anew()
    return stage


def streamed(stage: Stage, *blocks: Any, **fields: Any) -> bytes:
    return answer(stage.api, *blocks, model=MODELS[stage.api], **fields)


# --- every API ------------------------------------------------------------------------------------


def test_characters_cut_by_the_network_reach_text_and_file_byte_for_byte(stage: Stage) -> None:
    content = "你好🌍, é\n"
    root = stage.home.workspace()
    call = tool("write_file", {"file_path": "hello.txt", "content": content}, "call-1")
    body = streamed(stage, text(content), call, chunkSize=5)
    chat = stage.chat(Raw(body, chunk=1), reply("done"), root=root)
    assert chat.run()["text"] == "done"
    assert (root / "hello.txt").read_bytes() == content.encode()
    first = of_type(run_events(chat), "message_end")[1]["message"]
    assert first["content"][0] == text(content)
    stage.assert_goes_on(chat)


@pytest.mark.parametrize("cut", ["clean-end", "broken-off"])
def test_half_a_call_is_never_run_however_the_connection_ended(stage: Stage, cut: str) -> None:
    root = stage.home.workspace()
    call = tool("write_file", {"file_path": "never.txt", "content": "x" * 60}, "call-1")
    half = streamed(stage, "I write", call, hang=True)
    broken = Raw(half) if cut == "clean-end" else Raw(half + b"data: {", cut_after=len(half) + 3)
    chat = stage.chat(broken, reply("I do not"), root=root)
    result = chat.run()
    assert (result["stopReason"], result["text"]) == ("stop", "I do not")
    events = run_events(chat)
    assert of_type(events, "tool_execution_start") == []
    assert list(root.iterdir()) == []
    kinds = [params["event"]["type"] for params in events]
    assert kinds.index("message_reset") < kinds.index("retry")
    assert kinds.count("message_start") == 2
    stage.assert_goes_on(chat)
    assert b"I write" not in stage.server.requests[-1].raw


def test_an_empty_answer_is_tried_again_with_one_message(stage: Stage) -> None:
    chat = stage.chat(Raw(b""), reply("here it is"))
    assert chat.run()["text"] == "here it is"
    events = run_events(chat)
    heads = [event["message"]["role"] for event in of_type(events, "message_start")]
    assert heads == ["user", "assistant"]
    assert len(of_type(events, "retry")) == 1
    stage.assert_goes_on(chat)


def test_nothing_of_a_gateways_page_gets_into_the_history(stage: Stage) -> None:
    page = Raw(PAGE, 520, {"content-type": "text/html", **SOON})
    chat = stage.chat(*[page] * 5)
    result = chat.run()
    assert (result["stopReason"], result["error"]["kind"]) == ("error", "server")
    assert "520" in result["error"]["message"]
    assert len(result["error"]["message"]) < 600
    assert b"203.0.113.9" not in stage.home.journal()
    stage.assert_goes_on(chat)
    assert b"520" not in stage.server.requests[-1].raw


def test_a_login_page_names_the_address_and_is_asked_for_once(stage: Stage) -> None:
    chat = stage.chat(Raw(PAGE, headers={"content-type": "text/html"}))
    result = chat.run()
    assert (result["error"]["kind"], result["error"]["retryable"]) == ("protocol", False)
    assert stage.server.base_url in result["error"]["message"]
    assert len(stage.server.requests) == 1
    stage.assert_goes_on(chat)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"[]", b'{"error": {}}', b'{"error": {"message": ""}}', b"\xff\xfe"]
)
def test_an_error_is_never_without_words(stage: Stage, body: bytes) -> None:
    chat = stage.chat(Raw(body, 403, {"content-type": "application/json"}))
    result = chat.run()
    assert "403" in result["error"]["message"]
    assert result["error"]["kind"]
    message = of_type(run_events(chat), "message_end")[-1]["message"]
    assert message["errorMessage"] == result["error"]["message"]
    stage.assert_goes_on(chat)


def test_a_call_in_the_text_is_not_run(stage: Stage) -> None:
    said = '<tool_call>{"name": "write_file", "arguments": {"file_path": "x", "content": ""}}</tool_call>'
    root = stage.home.workspace()
    chat = stage.chat(reply(said), root=root)
    assert chat.run()["text"] == said
    assert list(root.iterdir()) == []
    (notice,) = of_type(run_events(chat), "notice")
    assert notice["severity"] == "warning"
    assert "was not run" in notice["message"]
    assert stage.model in notice["message"]
    stage.assert_goes_on(chat)


def test_a_call_in_the_thoughts_is_not_run(stage: Stage) -> None:
    said = '<tool_call>{"name": "bash", "arguments": {"command": "touch x"}}</tool_call>'
    root = stage.home.workspace()
    chat = stage.chat(reply({"type": "thinking", "text": said}, "Hello"), root=root)
    assert chat.run()["text"] == "Hello"
    assert list(root.iterdir()) == []
    stage.assert_goes_on(chat)


# --- fragments of calls, to the tools that they run -----------------------------------------------


def fragment(arguments: str | None = None, name: str | None = None, **fields: Any) -> Any:
    function = {"name": name, "arguments": arguments}
    told = {key: value for key, value in function.items() if value is not None}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{**fields, "function": told}]}}]}


def touch(name: str) -> str:
    return json.dumps({"file_path": name, "content": name})


WRITE, A, B = "write_file", touch("a"), touch("b")
FRAGMENTS: dict[str, list[Any]] = {
    "no-index": [fragment(A, WRITE, id="c1"), fragment(B, WRITE, id="c2")],
    "index-0-for-every-call": [fragment(A, WRITE, index=0, id="c1"), fragment(B, WRITE, index=0, id="c2")],
    "empty-ids": [fragment(A, WRITE, index=0, id=""), fragment(B, WRITE, index=1, id="")],
    "null-ids": [fragment(A, WRITE, index=0, id=None), fragment(B, WRITE, index=1, id=None)],
    "no-ids": [fragment(A, WRITE, index=0), fragment(B, WRITE, index=1)],
    "the-same-id-twice": [fragment(A, WRITE, index=0, id="c"), fragment(B, WRITE, index=1, id="c")],
    "id-in-every-fragment": [
        fragment("", WRITE, index=0, id="0"),
        fragment(A[:9], index=0, id="0"),
        fragment(A[9:], "", index=0, id=""),
        fragment(B, WRITE, index=1, id="1"),
    ],
    "the-name-comes-late": [
        fragment(A[:9], index=0, id="c1"),
        fragment(A[9:], WRITE, index=0),
        fragment(B, WRITE, index=1, id="c2"),
    ],
    "interleaved": [
        fragment(A[:9], WRITE, index=0, id="c1"),
        fragment(B[:9], WRITE, index=1, id="c2"),
        fragment(A[9:], index=0),
        fragment(B[9:], index=1),
    ],
    "with-side-fields-of-wrong-types": [
        fragment(A, WRITE, index=0, id="c1") | {"usage": "n/a", "created": "yesterday", "model": None},
        fragment(B, WRITE, index=1, id="c2") | {"usage": [], "id": 7},
    ],
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_two_calls_in_any_form_are_both_run_once(chat_stage: Stage, name: str) -> None:
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    root = chat_stage.home.workspace()
    chat = chat_stage.chat(Raw(sse(*FRAGMENTS[name], finish)), reply("done"), root=root)
    assert chat.run()["text"] == "done"
    ids = [event["toolCallId"] for event in of_type(run_events(chat), "tool_execution_start")]
    assert len(set(ids)) == len(ids) == 2
    assert {path.name: path.read_text() for path in root.iterdir()} == {"a": "a", "b": "b"}
    chat_stage.assert_goes_on(chat)


def test_a_call_whose_name_never_came_is_answered_and_the_run_goes_on(chat_stage: Stage) -> None:
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    chat = chat_stage.chat(Raw(sse(fragment("{}", index=0, id="c1"), finish)), reply("done"))
    assert chat.run()["text"] == "done"
    assert len(result_texts(run_events(chat))) == 1
    chat_stage.assert_goes_on(chat)


def test_arguments_that_the_limit_cut_under_a_finish_of_calls_are_not_run(chat_stage: Stage) -> None:
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 64, "total_tokens": 73}}
    root = chat_stage.home.workspace()
    half = fragment(A[:-6], WRITE, index=0, id="c1")
    chat = chat_stage.chat(Raw(sse(half, finish, usage)), reply("done"), root=root)
    assert chat.run()["text"] == "done"
    (ended,) = of_type(run_events(chat), "tool_execution_end")
    assert ended["result"]["isError"] is True
    assert list(root.iterdir()) == []
    chat_stage.assert_goes_on(chat)


# --- what must go back ----------------------------------------------------------------------------

EXTRA = {"google": {"thought_signature": "c2ln"}}


def extras(request: Recorded) -> list[Any]:
    """The extra content of each call in a request."""
    calls = [call for message in request.body["messages"] for call in message.get("tool_calls", ())]
    return [call.get("extra_content") for call in calls]


def test_a_calls_extra_content_goes_back_to_its_server_alone_also_after_a_restart(
    chat_stage: Stage, all_stages: dict[str, Stage]
) -> None:
    call = fragment("{}", "list_directory", index=0, id="c1")
    call["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = EXTRA
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    chat_stage.server.push(Raw(sse(call, finish)), reply("done"))
    first = start(chat_stage.home)
    chat = Chat(first, chat_stage.home.workspace(), model=chat_stage.model, mode="full")
    assert chat.run()["text"] == "done"
    assert extras(chat_stage.server.requests[-1]) == [EXTRA]
    first.close_stdin()
    first.exit_code()
    later = start(chat_stage.home)
    chat_stage.server.push(reply("again"))
    assert later.call("agentd/prompt", {"sessionId": chat.id, "prompt": "and now?"})["text"] == "again"
    assert extras(chat_stage.server.requests[-1]) == [EXTRA]
    for api in (api for api in SERVERS if api != "openai-chat"):
        other = all_stages[api]
        other.server.start_anew()
        other.server.push(reply("mine"))
        prompt = {"sessionId": chat.id, "prompt": "you?", "model": other.model}
        assert later.call("agentd/prompt", prompt)["text"] == "mine"
        assert b"c2ln" not in other.server.requests[-1].raw
        assert other.server.faults == []
    assert chat_stage.server.faults == []


def test_failed_prompts_and_cancels_of_all_kinds_in_one_session_leave_it_alive(stage: Stage) -> None:
    broke = {"kind": "bad_request", "message": "Invalid request.", "status": 400}
    cut = tool("write_file", None) | {"rawArguments": '{"file_path": "never.txt"'}
    chat = stage.chat(reply(error=broke), reply("half", tool("list_directory"), error=broke))
    chat.run("one")
    chat.run("two")
    stage.server.push(reply(cut, stopReason="length"), reply(tool("missing")), reply(error=broke))
    assert chat.run("three")["stopReason"] == "error"
    stage.server.push(reply({"type": "thinking", "text": "hm"}, hang=True))
    prompt = chat.start("four")
    stage.server.wait_for_requests(6)
    chat.cancel()
    assert chat.result(prompt)["stopReason"] == "aborted"
    stage.server.push(reply(" "), reply(tool("list_directory"), "behind the call"), reply("done"))
    chat.run("five")
    assert chat.run("six")["text"] == "done"
    stage.assert_goes_on(chat)
    assert_well_formed(chat.notifications())
