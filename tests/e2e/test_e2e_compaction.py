"""A conversation that outgrows its model, at a strict server of each API: it goes on, and stays valid."""

import json
from typing import Any

import anyio
import pytest
from e2e.every_api import SMALL_MODELS, Stage
from fakes.model_server import Recorded
from wire.chat import Chat
from wire.home import Home
from wire.order import SAID, USER, assert_well_formed, called, shape
from wire.scripts import reply, tool

from agentd.client import Client, ClientOptions
from agentd.protocol.methods import SessionCompactResult

WINDOW = 200_000
FULL = {"input": WINDOW * 9 // 10, "output": 100}
SMALL = {"input": 1000, "output": 10}


def overflow(stage: Stage) -> dict[str, Any]:
    """The answer of a server to a request that is too long, in words that each API is known for."""
    said = {
        "openai-chat": "This model's maximum context length is 128000 tokens.",
        "openai-responses": "Your input exceeds the context window of this model.",
        "anthropic": "prompt is too long: 213462 tokens > 200000 maximum",
        "gemini": "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
    }[stage.api]
    return {"content": [], "error": {"kind": "context_overflow", "message": said}}


def work(chat: Chat, stage: Stage, prompts: int = 2) -> None:
    """Some prompts with calls side by side, small enough for every window."""
    for number in range(prompts):
        calls = [tool("read_file", {"file_path": "note.txt"}, f"c{number}-{i}") for i in range(2)]
        stage.server.push(reply("I look", *calls, usage=SMALL), reply(f"answer {number}", usage=SMALL))
        assert chat.run(f"prompt {number}")["text"] == f"answer {number}"


def text_of(request: Any) -> str:
    return json.dumps(request.body, ensure_ascii=False)


def test_a_history_at_the_threshold_is_summed_up_before_the_next_request(stage: Stage) -> None:
    root = stage.home.workspace(note_txt="one line\n")
    chat = stage.chat(root=root)
    work(chat, stage)
    stage.server.push(
        reply("a full window", usage=FULL), reply("## Goal\nTo read the note."), reply("on", usage=SMALL)
    )
    chat.run("fill it")
    before = len(stage.server.requests)
    assert chat.run("and now?")["text"] == "on"
    asked, after = stage.server.requests[before:]
    assert "hand-over note" in text_of(asked)
    assert not asked.body.get("tools")
    assert "prompt 0" in text_of(asked)
    assert "prompt 0" not in text_of(after)
    assert "To read the note." in text_of(after)
    assert "Files read:\\n- note.txt\\n" in text_of(after)
    assert "and now?" in text_of(after)
    run = chat.notifications("p4")
    events = [params["event"] for params in run]
    (begun,) = [event for event in events if event["type"] == "compaction_start"]
    (ended,) = [event for event in events if event["type"] == "compaction_end"]
    assert begun["reason"] == "threshold"
    assert begun["tokensBefore"] == ended["tokensBefore"] >= FULL["input"]
    assert ended["tokensAfter"] < WINDOW // 5
    assert shape(run) == [
        "agent_start", "turn_start", *USER, "compaction_start", "compaction_end", *SAID, "turn_end",
        "agent_end(stop)",
    ]  # fmt: skip
    stage.assert_goes_on(chat)
    assert [m["content"][0]["text"] for m in chat.get()["messages"] if m["role"] == "user"] == [
        "prompt 0", "prompt 1", "fill it", "and now?", "and then?",
    ]  # fmt: skip


def test_an_overflow_inside_a_run_is_summed_up_once_and_asked_again(stage: Stage) -> None:
    root = stage.home.workspace(note_txt="one line\n")
    chat = stage.chat(root=root)
    work(chat, stage, 3)
    stage.server.push(
        reply("I look", tool("list_directory", {}, "last"), usage=SMALL),
        overflow(stage),
        reply("## State\nAll is read."),
        reply("done", usage=SMALL),
    )
    result = chat.run("and the folder?")
    assert (result["text"], result["stopReason"], result["turns"]) == ("done", "stop", 2)
    last = text_of(stage.server.requests[-1])
    assert "All is read." in last
    assert "and the folder?" in last
    assert "prompt 0" not in last
    assert shape(chat.notifications("p4"))[-7:] == [
        "turn_start", "compaction_start", "compaction_end", *SAID, "turn_end", "agent_end(stop)"
    ]  # fmt: skip
    assert called("last")[0] in shape(chat.notifications("p4"))
    stage.assert_goes_on(chat)


def test_a_second_overflow_is_the_error(stage: Stage) -> None:
    root = stage.home.workspace(note_txt="one line\n")
    chat = stage.chat(root=root)
    work(chat, stage)
    before = len(stage.server.requests)
    stage.server.push(overflow(stage), reply("## Goal\nNone."), overflow(stage))
    result = chat.run("more")
    assert (result["stopReason"], result["error"]["kind"]) == ("error", "context_overflow")
    assert len(stage.server.requests) - before == 3
    stage.assert_goes_on(chat)


def test_a_server_that_calls_everything_too_long_is_asked_twice_and_no_more(stage: Stage) -> None:
    root = stage.home.workspace(note_txt="one line\n")
    chat = stage.chat(root=root)
    work(chat, stage)
    told = chat.get()["messages"]
    before = len(stage.server.requests)
    stage.server.push(overflow(stage), overflow(stage))
    result = chat.run("more")
    assert (result["stopReason"], result["error"]["kind"]) == ("error", "context_overflow")
    assert len(stage.server.requests) - before == 2
    (end,) = [p["event"] for p in chat.notifications() if p["event"]["type"] == "compaction_end"]
    assert (end["outcome"], end["error"]["kind"]) == ("failed", "context_overflow")
    assert chat.get()["messages"][: len(told)] == told
    stage.assert_goes_on(chat)
    assert "prompt 0" in text_of(stage.server.requests[-1]), "the transcript is as it was"


def test_many_compactions_in_one_session_keep_every_request_valid(stage: Stage) -> None:
    """Each prompt fills the window anew: the boundary falls on calls, results and answers alike."""
    root = stage.home.workspace(note_txt="one line\n" * 40)
    chat = stage.chat(root=root)
    thought = {"type": "thinking", "text": "hm"}
    for number in range(8):
        turns = [
            reply(
                thought,
                "I look",
                *(tool("read_file", {"file_path": "note.txt"}, f"c{number}-{at}-{i}") for i in range(1 + at)),
                usage=SMALL,
            )
            for at in range(number % 4)
        ]
        summary = [reply(f"## State\nSummary {number}.")] if number else []
        stage.server.push(
            *summary, *turns, reply(thought, "short again", usage=SMALL), reply("full", usage=FULL)
        )
        assert chat.run(f"prompt {number}")["stopReason"] == "stop"
        assert chat.run("and fill it")["text"] == "full"
    ends = [p["event"] for p in chat.notifications() if p["event"]["type"] == "compaction_end"]
    assert [end["outcome"] for end in ends] == ["compacted"] * 7
    assert_well_formed(chat.notifications())


@pytest.mark.parametrize("counts", [True, False])
def test_a_long_run_in_a_small_window_never_meets_its_end(all_stages: dict[str, Stage], counts: bool) -> None:
    """A server that means it: what is longer than its window is refused. The run fills it many times over."""
    stage = all_stages["openai-chat"]
    stage.server.start_anew()
    root = stage.home.workspace(long_txt="some text of a line\n" * 250)
    turns, summaries, refused = 0, 0, 0

    def respond(request: Recorded) -> dict[str, Any]:
        nonlocal turns, summaries, refused
        size = len(request.raw) // 4
        usage = {"usage": {"input": size, "output": 20}} if counts else {}
        if size > 20_000:
            refused += 1
            return overflow(stage)
        if b"hand-over note" in request.raw:
            summaries += 1
            return reply(f"## Goal\nTo read. {summaries}", **usage)
        turns += 1
        if turns == 60:
            return reply("all read", **usage)
        call = tool("read_file", {"file_path": "long.txt"}, f"r{turns}")
        return reply(f"reading {turns}" + " and thinking" * 100, call, **usage)

    stage.server.push(*[respond] * 200)
    chat = Chat(stage.daemon, root, model=f"at-{stage.api}/tiny", mode="full")
    result = chat.run("Read it sixty times.")
    assert (result["stopReason"], result["text"], result["turns"]) == ("stop", "all read", 60)
    assert refused == 0
    assert stage.server.faults == []
    ends = [p["event"] for p in chat.notifications() if p["event"]["type"] == "compaction_end"]
    assert {end["outcome"] for end in ends} == {"compacted"}
    assert 5 < len(ends) < 30
    assert 0 < summaries < len(ends), "most of it is old output"
    assert "Read it sixty times." in text_of(stage.server.requests[-1])
    stage.server.start_anew()


def test_the_python_client_sums_up_a_session(home: Home) -> None:
    async def talk() -> SessionCompactResult:
        model = home.script(reply("one"), reply("two"), reply("## Goal\nTo talk."))
        async with Client.start(
            home.workspace(), env=home.environment(), options=ClientOptions(model=model)
        ) as client:
            for prompt in ("first", "second"):
                session_id = (await client.prompt(prompt)).session_id
            return await client.compact_session(session_id, "Keep the numbers.")

    result = anyio.run(talk)
    assert result.outcome == "compacted"
    assert home.model_requests("Keep the numbers.")


def test_a_change_to_a_model_with_a_smaller_window_sums_up_at_the_next_turn(stage: Stage) -> None:
    chat = stage.chat(reply("so far", usage={"input": 60_000, "output": 10}))
    chat.run("first")
    stage.server.push(reply("still fits", usage={"input": 60_000, "output": 10}))
    chat.run("second")
    stage.server.push(reply("## Goal\nTo fit."), reply("fits", usage=SMALL))
    assert chat.run("third", model=f"at-{stage.api}/{SMALL_MODELS[stage.api]}")["text"] == "fits"
    assert "To fit." in text_of(stage.server.requests[-1])
