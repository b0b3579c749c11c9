"""What prompts and results may hold, said to a strict server of every wire API."""

import base64
import struct
import zlib

import pytest
from e2e.every_api import SERVERS, Stage
from wire.order import assert_well_formed
from wire.runs import of_type, run_events
from wire.scripts import reply, tool


def png() -> bytes:
    """A picture of one dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


PNG = base64.b64encode(png()).decode()
IMAGE = {"type": "image", "mimeType": "image/png", "data": PNG}


def test_an_image_in_a_prompt_is_shown_in_this_request_and_the_next(stage: Stage) -> None:
    chat = stage.chat(reply("a dot"), reply("still a dot"))
    assert chat.run([{"type": "text", "text": "What is this?"}, IMAGE])["text"] == "a dot"
    assert chat.run("And now?")["text"] == "still a dot"
    assert [PNG.encode() in request.raw for request in stage.server.requests] == [True, True]
    stage.assert_goes_on(chat)


def test_an_image_that_the_server_refuses_fails_one_prompt_and_no_other(stage: Stage) -> None:
    refusal = {"kind": "bad_request", "status": 400, "message": "image exceeds 5 MB maximum"}
    chat = stage.chat({"error": refusal}, reply("without it, then"))
    assert "5 MB" in chat.run([{"type": "text", "text": "What is this?"}, IMAGE])["error"]["message"]
    assert chat.run("And now?")["text"] == "without it, then"
    assert [PNG.encode() in request.raw for request in stage.server.requests] == [True, False]
    stage.assert_goes_on(chat)


@pytest.mark.parametrize(
    ("image", "place"),
    [
        ({"data": "!!"}, "data"),
        ({"data": ""}, "data"),
        ({"data": f"data:image/png;base64,{PNG}"}, "data"),
        ({"mimeType": "text/plain"}, "mimeType"),
        ({"mimeType": ""}, "mimeType"),
    ],
)
def test_what_is_no_image_never_gets_into_a_session(
    all_stages: dict[str, Stage], image: dict[str, str], place: str
) -> None:
    stage = all_stages["openai-chat"]
    chat = stage.chat()
    prompt = [{"type": "text", "text": "What is this?"}, IMAGE | image]
    error = stage.daemon.refused("agentd/prompt", chat.prompt_params(prompt))
    assert error["data"]["kind"] == "invalidParams"
    assert error["message"].startswith(f"/prompt/1/{place}: ")
    assert chat.get()["messages"] == []


def test_an_image_alone_is_a_prompt(stage: Stage) -> None:
    chat = stage.chat(reply("a dot"))
    assert chat.run([IMAGE])["text"] == "a dot"
    stage.assert_goes_on(chat)


def test_an_image_that_one_model_saw_is_shown_to_each_of_the_others(
    stage: Stage, all_stages: dict[str, Stage]
) -> None:
    chat = stage.chat(reply("a dot"))
    chat.run([IMAGE, {"type": "text", "text": "What is this?"}])
    for other in (all_stages[api] for api in SERVERS if api != stage.api):
        other.server.start_anew()
        other.server.push(reply("I see it too"))
        assert chat.run("And you?", model=other.model)["text"] == "I see it too"
        assert PNG.encode() in other.server.requests[0].raw
        assert other.server.faults == []
    assert_well_formed(chat.notifications())


@pytest.mark.parametrize(
    "command",
    [
        r"printf '\355\240\200 half a pair'",
        r"printf '\377\376\000\001'",
        "true",
        "printf '   \n\n'",
        "printf '\\033[31mred\\033[0m'",
        "head -c 300000 /dev/zero | tr '\\0' 'x'",
        "exit 3",
    ],
    ids=["half-a-pair", "no-text", "nothing", "blanks", "colours", "much", "failure"],
)
def test_whatever_a_command_says_makes_a_valid_request(stage: Stage, command: str) -> None:
    chat = stage.chat(reply(tool("bash", {"command": command}, "call-1")), reply("done"))
    assert chat.run()["text"] == "done"
    stage.assert_goes_on(chat)


@pytest.mark.parametrize(
    "arguments",
    [
        r'{"command": "echo \ud83d"}',
        r'{"command": "echo \u0000"}',
        r'{"command": "true", "\ud83d": 1}',
        '{"command": "true", "timeout": 1e400}',
        '{"command": "true", "timeout": 123456789012345678901234567890}',
        '{"command": "true", "command": "false"}',
        '{"command": "true"} trailing',
        '{"command": ' + "[" * 5000 + "]" * 5000 + "}",
    ],
    ids=["half-a-pair", "nul", "odd-key", "infinite", "big", "twice", "trailing", "deep"],
)
def test_whatever_a_model_says_as_arguments_makes_a_valid_request(stage: Stage, arguments: str) -> None:
    call = tool("bash", None, "call-1") | {"rawArguments": arguments}
    chat = stage.chat(reply(call), reply("done"))
    assert chat.run()["text"] == "done"
    assert len(of_type(run_events(chat), "tool_execution_end")) == 1
    stage.assert_goes_on(chat)


@pytest.mark.parametrize(
    "call_id",
    ["x" * 300, "with blank and ü", "a|b:c/d.e", "\u2028", "call_1\n", "0"],
    ids=["long", "letters", "signs", "separator", "line-end", "digit"],
)
def test_whatever_a_server_calls_a_call_it_is_answered_by_a_name_that_it_takes(
    stage: Stage, call_id: str, all_stages: dict[str, Stage]
) -> None:
    chat = stage.chat(reply(tool("list_directory", {}, call_id), tool("list_directory", {}, call_id)))
    stage.server.push(reply("done"))
    assert chat.run()["text"] == "done"
    for other in (all_stages[api] for api in SERVERS if api != stage.api):
        other.server.start_anew()
        other.server.push(reply("mine"))
        assert chat.run("And you?", model=other.model)["text"] == "mine"
        assert other.server.faults == []
    stage.assert_goes_on(chat)


@pytest.mark.parametrize(
    "text", ["\u0000", "\u2028 \ufeff", "a" * 200_000, "\U0001f469\u200d\U0001f4bb", "\\ud83d"]
)
def test_whatever_a_user_says_makes_a_valid_request(stage: Stage, text: str) -> None:
    chat = stage.chat(reply("so be it"))
    assert chat.run(f"say {text}")["text"] == "so be it"
    stage.assert_goes_on(chat)
