"""What a model server has read it finds in its cache: each request begins with the one before, to the byte.

Compared are the bodies that a server of each API got. Cache markers are no part of what is cached:
they move with every request. They are taken off first, and one test says where they go.
"""

import re
from typing import Any

import pytest
from e2e.every_api import SERVERS, Stage, stages, start
from fakes.model_server import Recorded
from fakes.prefix import assert_each_begins_with_the_one_before, parts
from wire.chat import Chat
from wire.home import Home
from wire.scripts import reply, tool

SMALL = {"input": 1000, "output": 10}
FULL = {"input": 180_000, "output": 100}
THOUGHT = {"type": "thinking", "text": "let me see"}


def assert_grows(api: str, requests: list[Recorded]) -> None:
    assert_each_begins_with_the_one_before(api, [request.raw for request in requests])


def look(number: int, *, usage: Any = None) -> list[Any]:
    """A prompt's responses: two turns with calls side by side, and an answer."""
    calls = [tool("read_file", {"file_path": "note.txt"}, f"c{number}-{i}") for i in range(2)]
    return [
        reply(THOUGHT, "I look", *calls, usage=SMALL),
        reply(
            "and there",
            tool("list_directory", {}, f"d{number}"),
            tool("missing", {}, f"e{number}"),
            usage=SMALL,
        ),
        reply(THOUGHT, f"answer {number}", usage=usage or SMALL),
    ]


@pytest.fixture(params=list(SERVERS))
def own_stage(request: pytest.FixtureRequest, home: Home) -> Any:
    """A server of each API in turn, with a daemon that a test may end."""
    with stages(home) as found:
        yield found[request.param]
        assert found[request.param].server.faults == []


def test_requests_grow_from_turn_to_turn_and_prompt_to_prompt_and_after_a_restart(own_stage: Stage) -> None:
    stage = own_stage
    root = stage.home.workspace(note_txt="one line\n")
    chat = stage.chat(*look(0), root=root)
    chat.run("first\n\nwith é, 😀 and \u2028")
    stage.server.push(*look(1))
    chat.run("second")
    stage.daemon.kill()
    chat.daemon = start(stage.home)
    stage.server.push(*look(2))
    assert chat.run("third", promptId="after")["text"] == "answer 2"
    assert len(stage.server.requests) == 9
    assert_grows(stage.api, stage.server.requests)


def test_a_run_cut_short_and_gone_on_with_changes_nothing_before_it(stage: Stage) -> None:
    """An answer that the output limit cut is asked on, in the next prompt and ever after."""
    chat = stage.chat(reply("a long ans", stopReason="length", usage=SMALL))
    chat.run("tell me")
    stage.server.push(reply("wer", usage=SMALL))
    assert chat.run([])["text"] == "wer"
    stage.server.push(reply("yes", usage=SMALL))
    chat.run("really?")
    assert_grows(stage.api, stage.server.requests)


def test_after_output_was_left_out_requests_grow_again(own_stage: Stage) -> None:
    stage = own_stage
    root = stage.home.workspace(long_txt="a line of some length\n" * 1500, note_txt="one line\n")
    reads = [reply(tool("read_file", {"file_path": "long.txt"}, f"r{n}"), usage=SMALL) for n in range(28)]
    stage.server.push(*reads, reply("all read", usage={"input": 171_000, "output": 10}))
    chat = Chat(stage.daemon, root, model=stage.model, mode="full")
    chat.run("read it, again and again")
    stage.server.push(*look(1))
    chat.run("second")
    ends = [p["event"] for p in chat.notifications() if p["event"]["type"] == "compaction_end"]
    assert [end["outcome"] for end in ends] == ["compacted"]
    assert len(stage.server.requests) == 32, "no summary was asked for"
    assert b"left out to save room" in stage.server.requests[29].raw
    stage.daemon.kill()
    chat.daemon = start(stage.home)
    stage.server.push(*look(2))
    chat.run("third", promptId="after")
    assert_grows(stage.api, stage.server.requests[:29])
    assert_grows(stage.api, stage.server.requests[29:])


def test_after_a_summary_requests_grow_again(own_stage: Stage) -> None:
    stage = own_stage
    root = stage.home.workspace(note_txt="one line\n")
    chat = stage.chat(*look(0, usage=FULL), root=root)
    chat.run("first")
    stage.server.push(reply("## Goal\nTo look."), *look(1))
    chat.run("second")
    stage.daemon.kill()
    chat.daemon = start(stage.home)
    stage.server.push(*look(2))
    chat.run("third", promptId="after")
    assert b"To look." in stage.server.requests[4].raw
    assert_grows(stage.api, stage.server.requests[:3])
    assert_grows(stage.api, stage.server.requests[4:])
    assert parts(stage.api, stage.server.requests[2].raw)[1].count("parameters") == parts(
        stage.api, stage.server.requests[4].raw
    )[1].count("parameters")


def test_two_sessions_in_one_folder_share_system_prompt_and_tools(stage: Stage) -> None:
    """Also to the byte: no clock, no id and no order of the moment is in them."""
    root = stage.home.workspace()
    for number in range(2):
        stage.chat(reply("hello"), root=root).run(f"prompt {number}")
    first, second = (parts(stage.api, request.raw)[1] for request in stage.server.requests)
    cache_key = re.compile(r'"prompt_cache_key": ?"[^"]*"')
    assert cache_key.sub("", first) == cache_key.sub("", second)


def test_anthropics_markers_stand_at_the_end_of_what_the_next_request_begins_with(
    all_stages: dict[str, Stage],
) -> None:
    """Last tool, system prompt, the last block of the last user message and of the one before."""
    stage = all_stages["anthropic"]
    stage.server.start_anew()
    chat = stage.chat(*look(0), root=stage.home.workspace(note_txt="one line\n"))
    chat.run("first")
    for number, request in enumerate(stage.server.requests):
        body = request.body
        marked = [
            (kind, place)
            for kind, blocks in (
                ("tool", body["tools"]),
                ("system", body["system"]),
                ("message", [m["content"][-1] for m in body["messages"] if m["role"] == "user"]),
            )
            for place, block in enumerate(blocks)
            if "cache_control" in block
        ]
        users = [("message", place) for place in range(max(number - 1, 0), number + 1)]
        assert marked == [("tool", len(body["tools"]) - 1), ("system", 0), *users]
        assert request.raw.count(b"cache_control") == len(marked)
