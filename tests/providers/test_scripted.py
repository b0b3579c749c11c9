"""The scripted provider: what it plays, what it refuses, and what it keeps."""

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import anyio
import pytest
from conversation import Reading, assistant, call, read, request, result, user

from agentd.protocol.messages import Message, Usage
from agentd.providers.base import (
    Model,
    ModelRequest,
    ProviderError,
    StreamEnd,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from agentd.providers.script import load_script
from agentd.providers.scripted import Scripted


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.json"


def ask(script: Path | str, *messages: Message, **fields: Any) -> ModelRequest:
    return request(*messages, model=Model("scripted", str(script)), **fields)


def write(script: Path, *responses: Any) -> Path:
    script.write_text(json.dumps(responses), encoding="utf-8")
    return script


async def refused(provider: Scripted, asked: ModelRequest) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await read(provider, asked)
    return caught.value


async def test_blocks_are_played_in_order_and_in_pieces_of_the_size_given(script: Path) -> None:
    content = [
        {"type": "thinking", "text": "hmm"},
        {"type": "text", "text": "hello"},
        {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
    ]
    usage = {"input": 3, "output": 4, "total": 7, "contextTokens": 7}
    write(script, {"content": content, "chunkSize": 4, "usage": usage})
    reading = await read(Scripted(), ask(script))
    assert reading.events == [
        ThinkingDelta(0, "hmm"),
        TextDelta(1, "hell"),
        TextDelta(1, "o"),
        ToolCallDelta(2, '{"a"', "c1", "f"),
        ToolCallDelta(2, ": 1}"),
        StreamEnd("tool_use", Usage(input=3, output=4, total=7, context_tokens=7)),
    ]


async def test_a_piece_has_sixteen_characters_unless_the_script_says_otherwise(script: Path) -> None:
    write(script, {"content": [{"type": "text", "text": "x" * 40}]})
    reading = await read(Scripted(), ask(script))
    assert [len(event.text) for event in reading.events if isinstance(event, TextDelta)] == [16, 16, 8]


async def test_a_call_may_lack_its_id_and_have_broken_arguments(script: Path) -> None:
    write(
        script,
        {"content": [{"type": "tool_call", "name": "f", "rawArguments": '{"a'}], "stopReason": "length"},
    )
    reading = await read(Scripted(), ask(script))
    assert reading.calls == [{"id": None, "name": "f", "arguments": '{"a'}]
    assert reading.end.stop == "length"


async def test_an_error_comes_after_the_content_before_it(script: Path) -> None:
    error = {"kind": "overloaded", "message": "busy", "status": 529, "retryAfterMs": 20}
    write(script, {"content": [{"type": "text", "text": "half"}], "error": error})
    reading = Reading()
    with pytest.raises(ProviderError) as caught:
        await reading.read(Scripted(), ask(script))
    assert reading.text == "half"
    told = caught.value
    assert (told.kind, told.message, told.status) == ("overloaded", "busy", 529)
    assert (told.retry_after_ms, told.retryable) == (20, True)


async def test_a_response_that_hangs_can_be_cancelled(script: Path) -> None:
    write(script, {"content": [{"type": "text", "text": "wait"}], "hang": True})
    said = ""
    with anyio.CancelScope() as scope:
        async with Scripted().stream(ask(script)) as events:
            async for event in events:
                said += event.text if isinstance(event, TextDelta) else ""
                if said == "wait":
                    scope.cancel()
    assert scope.cancelled_caught


async def test_each_request_gets_the_next_response_and_then_no_more(script: Path) -> None:
    write(script, *({"content": [{"type": "text", "text": text}]} for text in "ab"))
    provider = Scripted()
    assert [(await read(provider, ask(script))).text for _ in range(2)] == ["a", "b"]
    error = await refused(provider, ask(script))
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "the script has no more responses" in error.message


async def test_variables_are_replaced_in_arguments_only(script: Path) -> None:
    arguments = {"command": "${PYTHON} ${WHO} ${OTHER}", "list": ["${WHO}"], "n": 1}
    content = [{"type": "text", "text": "${WHO}"}, {"type": "tool_call", "name": "f", "arguments": arguments}]
    write(script, {"content": content})
    reading = await read(Scripted(variables={"WHO": "me"}), ask(script))
    assert reading.text == "${WHO}"
    played = json.loads(reading.calls[0]["arguments"])
    assert played == {"command": f"{sys.executable} me ${{OTHER}}", "list": ["me"], "n": 1}


FINE = (user("Hi"), assistant("On it.", call("c1"), call("c2")), result("c1", "x"), result("c2", "y"))


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ((assistant("Hi"), user("Hi")), "the first message is from assistant"),
        ((*FINE, assistant("Done.")), "the last message is from the assistant"),
        (FINE[:3], 'call "c2" of the last message has no result'),
        ((*FINE[:3], user("Go on")), 'call "c2" has no result right after'),
        ((*FINE[:2], FINE[3], FINE[2]), 'result "c2" is not in the order'),
        ((*FINE, result("c2", "again")), 'result "c2" answers no call'),
        ((user("Hi"), result("c9", "x")), 'result "c9" answers no call'),
        ((*FINE, *FINE[1:]), 'call id "c1" is used twice'),
        ((user("Hi", " \n"),), "messages[0]: a text block is blank"),
        ((user(),), "messages[0]: the content is empty"),
        ((user("Hi"), assistant(), user("Hi")), "messages[1]: the content is empty"),
        ((user("a\ud800"),), "messages[0]: a text block holds a lone surrogate"),
        (
            (user("Hi"), assistant(call("c1", path="\udfff")), result("c1", "x")),
            "a tool_call block holds a lone surrogate",
        ),
    ],
)
async def test_a_request_that_a_strict_server_would_refuse_is_refused(
    script: Path, messages: tuple[Message, ...], fault: str
) -> None:
    write(script, {"content": [{"type": "text", "text": "ok"}]})
    provider = Scripted()
    error = await refused(provider, ask(script, *messages))
    assert (error.kind, error.retryable, error.status) == ("bad_request", False, 400)
    assert fault in error.message
    assert (await read(provider, ask(script, *FINE))).text == "ok"
    assert len(provider.requests) == 2


async def test_a_request_without_messages_is_refused(script: Path) -> None:
    write(script, {})
    asked = ModelRequest(Model("scripted", str(script)), "", (), ())
    assert "there are no messages" in (await refused(Scripted(), asked)).message


async def test_requests_are_logged_for_those_outside_the_process(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(script, {"content": []}, {"content": []})
    log = tmp_path / "requests.jsonl"
    monkeypatch.setenv("AGENTD_SCRIPT_REQUESTS", str(log))
    provider = Scripted()
    await read(provider, ask(script, *FINE))
    await read(provider, ask(script, effort="high"))
    first, second = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    assert (first["system"], first["tools"], second["effort"]) == ("Be brief.", ["read_file"], "high")
    assert first["messages"][2]["toolCallId"] == "c1"
    assert provider.requests[0].messages == FINE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "is not valid"),
        ('{"content": []}', "array"),
        ('[{"content": []}, {"content": [{"type": "text"}]}]', "at [1].content[0].text.text"),
        ('[{"contents": []}]', "at [0].contents"),
        ('[{"chunkSize": 0}]', "at [0].chunkSize"),
        ('[{"error": {"kind": "odd", "message": "x"}}]', "at [0].error.kind"),
        ("\x00", "is not valid"),
    ],
)
def test_a_malformed_script_is_told_with_file_and_place(script: Path, text: str, words: str) -> None:
    script.write_text(text, encoding="utf-8")
    with pytest.raises(ProviderError) as caught:
        load_script(str(script))
    assert caught.value.kind == "bad_request"
    assert str(script) in caught.value.message
    assert words in caught.value.message


async def test_a_script_that_is_not_there_is_named(script: Path) -> None:
    assert f"Cannot read the script {script}" in (await refused(Scripted(), ask(script))).message
    assert 'There is no script "nothing"' in (await refused(Scripted(), ask("nothing"))).message


# --- the demo -------------------------------------------------------------------------------------


def run_tests(project: Path, command: str) -> int:
    return subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, timeout=60).returncode


async def test_the_demo_finds_and_fixes_the_fault_of_its_project(tmp_path: Path) -> None:
    for source in (resources.files("agentd") / "demo_project").iterdir():
        if source.is_file():
            (tmp_path / source.name).write_bytes(source.read_bytes())
    calculator = tmp_path / "calculator.py"
    provider, names, outcomes = Scripted(), [], []
    for _ in range(6):
        reading = await read(provider, ask("demo"))
        for played in reading.calls:
            names.append(played["name"])
            arguments = json.loads(played["arguments"])
            if played["name"] == "bash":
                outcomes.append(run_tests(tmp_path, arguments["command"]))
            elif played["name"] == "edit_file":
                text = calculator.read_text(encoding="utf-8")
                assert text.count(arguments["old_string"]) == 1
                changed = text.replace(arguments["old_string"], arguments["new_string"])
                calculator.write_text(changed, encoding="utf-8")
    assert names == ["list_directory", "read_file", "bash", "edit_file", "bash"]
    assert outcomes == [1, 0]
    assert reading.end.stop == "stop"
    assert reading.text


def test_scripts_are_played_without_an_http_client() -> None:
    code = "import sys, agentd.providers.apis as c; c.open_scripted(); sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


async def test_conversations_that_a_response_is_kept_for_get_those_and_no_others(script: Path) -> None:
    def said(text: str, **more: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": text}], **more}

    write(
        script,
        said("one"),
        said("b1", when="job b"),
        said("a1", when="job a"),
        said("two"),
        said("b2", when="job b"),
    )
    provider = Scripted()

    async def answer(words: str) -> str:
        reading = await read(provider, ask(script, user(words)))
        return "".join(event.text for event in reading.events if isinstance(event, TextDelta))

    order = ["do job b", "anything", "do job b", "do job a", "anything"]
    assert [await answer(words) for words in order] == ["b1", "one", "b2", "a1", "two"]
    for words in ("do job a", "anything"):
        error = await refused(provider, ask(script, user(words)))
        assert error.message.endswith("the script has no more responses.")
