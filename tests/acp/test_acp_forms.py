"""What of ACP needs no process: lines, differences, content, and that what is announced is served."""

import json
from pathlib import Path
from typing import Any

import pytest
from acp import schema
from fakes import acp_schema
from hypothesis import example, given
from hypothesis import strategies as st

from agentd.acp import updates
from agentd.acp.abilities import Abilities
from agentd.acp.content import blocks_of, blocks_out
from agentd.acp.diffs import diff_blocks
from agentd.acp.greeting import initialize_result, is_plain
from agentd.acp.live import Output, Piece
from agentd.acp.params import InitializeParams, PromptParams
from agentd.daemon.parsing import validate
from agentd.protocol.errors import RpcError
from agentd.protocol.frames import Oversized
from agentd.protocol.lines import LineReader, encode_line
from agentd.protocol.messages import Cost, ResourceContent, TextContent, Usage
from agentd.protocol.typed_command import typed_command
from agentd.tools.diff import file_change
from agentd.workspace.paths import Place


@given(
    st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=8),
    st.data(),
)
def test_lines_are_the_same_wherever_the_stream_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(encode_line, lines))
    reader, read, rest = LineReader(20), [], stream
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        read += list(reader.feed(rest[:size]))
        rest = rest[size:]
    wanted = [
        Oversized(len(line)) if len(line) > 20 else line for line in lines if line.strip() or len(line) > 20
    ]
    assert read == wanted


VALUES = st.sampled_from([1, 0, 7, -1, 70_000, "1", None, True, 1.5, {}, {"fs": 5}, []])


@given(st.dictionaries(st.sampled_from(["protocolVersion", "clientCapabilities", "clientInfo"]), VALUES))
def test_whatever_is_answered_at_once_is_taken_afterwards(params: dict[str, Any]) -> None:
    if is_plain(params):
        validate(InitializeParams, json.loads(json.dumps(params)))
    else:
        with pytest.raises(RpcError):
            validate(InitializeParams, json.loads(json.dumps(params)))


def test_the_greeting_is_of_the_schema() -> None:
    acp_schema.check([{"jsonrpc": "2.0", "id": 1, "result": initialize_result()}], {1: "initialize"})


@pytest.mark.parametrize(
    "capabilities", [None, 5, [], {"fs": []}, {"fs": {"readTextFile": 1}}, {"elicitation": 1}]
)
def test_a_capability_that_is_not_well_said_is_none(capabilities: Any) -> None:
    assert Abilities.of(capabilities) == Abilities()


# --- differences ----------------------------------------------------------------------------------


def results(before: str, blocks: list[dict[str, Any]]) -> set[str]:
    """What a text can become, each old piece replaced by its new one, in order: one may stand there twice."""
    if not blocks:
        return {before}
    old, new = blocks[0]["oldText"] or "", blocks[0]["newText"]
    starts = [at for at in range(len(before) - len(old) + 1) if before.startswith(old, at)]
    return {
        before[:at] + new + rest for at in starts for rest in results(before[at + len(old) :], blocks[1:])
    }


OLD = st.lists(st.sampled_from(["a", "b", "", "  c"]), max_size=30)
NEW = st.lists(st.sampled_from(["a", "d", ""]), max_size=30)


@given(OLD, NEW, st.booleans(), st.booleans())
@example(old=["a"] * 5, new=[], ends=False, begins=True)
def test_the_pieces_of_a_patch_make_the_new_text_of_the_old(
    old: list[str], new: list[str], ends: bool, begins: bool
) -> None:
    before = "\n".join(old) + ("\n" if ends else "")
    after = "\n".join([*old[:3], *new, *old[3:]]) + ("\n" if begins else "")
    change = file_change(Place(Path("/w"), ("a.txt",), "a.txt"), before.encode(), after.encode())
    blocks = diff_blocks(change.uri, change.patch, change.action)
    assert after in results(before, blocks)
    assert all(block["path"] == "/w/a.txt" for block in blocks)


def test_a_new_file_has_no_old_text_and_a_removed_one_no_new() -> None:
    place = Place(Path("/w"), ("a.txt",), "a.txt")
    for data, wanted in ((b"x\n", "x\n"), (b"", "")):
        made = file_change(place, None, data)
        (block,) = diff_blocks(made.uri, made.patch, made.action)
        assert (block["oldText"], block["newText"]) == (None, wanted)
        gone = file_change(place, data, None)
        (block,) = diff_blocks(gone.uri, gone.patch, gone.action)
        assert (block["oldText"], block["newText"]) == (wanted, "")


# --- content --------------------------------------------------------------------------------------


def said(*blocks: dict[str, Any]) -> tuple[Any, ...]:
    params = validate(PromptParams, {"sessionId": "s", "prompt": list(blocks)})
    return blocks_of(params.prompt)


@pytest.mark.parametrize(
    ("fragment", "lines"),
    [("", None), ("#L3", (2, 3)), ("#L3:9", (2, 9)), ("#L3-L9", (2, 9)), ("#L9:3", (8, 9)), ("#top", None)],
)
def test_the_lines_of_a_link_are_in_its_fragment(fragment: str, lines: tuple[int, int] | None) -> None:
    (block,) = said({"type": "resource_link", "uri": f"file:///w/a%20b.txt{fragment}", "name": "a"})
    assert isinstance(block, ResourceContent)
    assert block.uri == "file:///w/a%20b.txt"
    assert (block.range and (block.range.start.line, block.range.end.line)) == lines


@pytest.mark.parametrize(
    "block",
    [
        {"type": "resource_link", "name": "a", "uri": "URI"},
        {"type": "resource", "resource": {"uri": "URI", "text": "x"}},
        {"type": "resource", "resource": {"uri": "URI", "blob": "AAAA"}},
    ],
)
def test_what_is_asked_of_a_file_is_no_part_of_its_name(block: dict[str, Any]) -> None:
    uri = "file:///w/a%3Fb.py?symbol=main#L3"
    (found,) = said(json.loads(json.dumps(block).replace("URI", uri)))
    assert isinstance(found, ResourceContent)
    assert found.uri == "file:///w/a%3Fb.py"


def test_bytes_that_are_no_image_are_named() -> None:
    resource = {"uri": "memo:/1", "blob": "AAAA", "mimeType": "application/pdf"}
    (block,) = said({"type": "resource", "resource": resource})
    assert isinstance(block, TextContent)
    assert "application/pdf" in block.text


def test_what_was_said_comes_back_as_it_was_typed() -> None:
    prompt = [{"type": "text", "text": "/review a b"}, {"type": "text", "text": "/not a command here"}]
    blocks = said(*prompt)
    assert blocks[0].type == "command"
    assert list(blocks_out(blocks)) == prompt


@pytest.mark.parametrize("typed", ["/a", "/a:b-c.d  x", "/help\n"])
def test_a_slash_and_a_name_is_a_command(typed: str) -> None:
    assert typed_command(typed) is not None


@pytest.mark.parametrize("typed", ["/", "//", "/a/b", " /a", "/a,b", "text", ""])
def test_other_text_is_text(typed: str) -> None:
    assert typed_command(typed) is None


# --- updates --------------------------------------------------------------------------------------


def test_pieces_of_one_message_join_and_output_replaces_itself() -> None:
    first = Piece("s", "agent_message_chunk", "m", "Hel")
    assert first.takes(Piece("s", "agent_message_chunk", "m", "lo"))
    assert not first.takes(Piece("s", "agent_thought_chunk", "m", "x"))
    assert not first.takes(Piece("s", "agent_message_chunk", "n", "x"))
    assert json.loads(first.body())["params"]["update"]["content"]["text"] == "Hello"
    output = Output("s", "c", "a")
    assert output.takes(Output("s", "c", "ab"))
    assert not output.takes(Output("s", "d", "x"))
    assert not output.takes(first)
    assert "ab" in json.loads(output.body())["params"]["update"]["content"][0]["content"]["text"]


def test_usage_is_told_where_the_window_is_known() -> None:
    used = Usage(context_tokens=10, context_window=100)
    cost = Usage(cost=Cost(total=0.5))
    update = updates.usage(used, cost)
    assert update == {
        "sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}
    }  # fmt: skip
    schema.UsageUpdate.model_validate(update)
    assert updates.usage(Usage(context_tokens=10), None) is None
