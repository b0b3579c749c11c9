"""Journals with one bad line, at every place and in every way: it costs that line, and nothing fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sessions.session_home import calling, home, page_of, prompt, tool_call

from agentd.protocol.methods import (
    PromptResult,
    SessionAttachParams,
    SessionGetParams,
    SessionListParams,
)
from agentd.sessions.journal import read
from agentd.sessions.journal_form import encode

Record = dict[str, Any]

BYTES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "garbage": lambda line, _: b"\xff\x00garbage\n",
    "gone": lambda line, _: b"",
    "twice": lambda line, _: line + line,
    "nul bytes": lambda line, _: b"\0" * len(line) + b"\n",
    "half of it": lambda line, _: line[: len(line) // 2] + b"\n",
    "a bit turned over": lambda line, _: line[:-9] + bytes([line[-9] ^ 1]) + line[-8:],
    "the next one in its place": lambda line, after: after,
}
"""What a disk does to a line, which is followed by another one."""

RECORDS: dict[str, Callable[[Record], Record]] = {
    "nothing in it": lambda record: {},
    "a text for a number": lambda record: {**record, "seq": "x"},
    "a negative number": lambda record: {**record, "seq": -5},
    "a number beyond all": lambda record: {**record, "seq": 2**70},
    "no event": lambda record: {**record, "event": None},
    "an event that is a list": lambda record: {**record, "event": []},
    "an event without a type": lambda record: {**record, "event": {}},
    "an event with a type only": lambda record: {**record, "event": {"type": record["event"]["type"]}},
    "an event of a later version": lambda record: {**record, "event": {"type": "from_the_future", "x": 1}},
    "a result that is no id": lambda record: {**record, "event": {"type": "message_end", "resultId": [1]}},
    "no time": lambda record: {key: value for key, value in record.items() if key != "time"},
    "no prompt": lambda record: {key: value for key, value in record.items() if key != "promptId"},
    "a prompt that is no id": lambda record: {**record, "promptId": 7},
    "what a fork carries": lambda record: {**record, "carried": {"messages": 5}},
    "prompts that are none": lambda record: {**record, "prompts": [1]},
    "a digest that is none": lambda record: {**record, "promptDigest": []},
    "other things beside it": lambda record: {**record, "steer": {}, "refused": 3, "damage": 5, "kept": 7},
    "a summary that is none": lambda record: {**record, "summary": 3, "todo": 5, "waiting": "x"},
}
"""What a fault of ours, or a later version, may have written with a check value that fits."""


async def worked(folder: Path) -> tuple[str, Path]:
    """A closed session of three prompts with calls and a summary; its id and its journal."""
    async with home(folder) as living:
        looks = calling(tool_call("a"), tool_call("b"), text="I look")
        session = await living.new(looks, "seen", "fine", "## Goal\nTo look.", "more")
        await session.prompt(prompt("one", prompt_id="p1"))
        await session.prompt(prompt("two", prompt_id="p2"))
        await session.compact(None)
        await session.prompt(prompt("three", prompt_id="p3"))
        path = living.journal(session.session_id)
        await living.sessions.close(session.session_id)
        return session.session_id, path


async def assert_lost_at_most_one(folder: Path, session_id: str, ids: list[str]) -> None:
    """Everything that can be done with the session works, and no more than one message is missing."""
    wanted = SessionGetParams(session_id=session_id)
    async with home(folder) as living:
        listed = (await living.sessions.listing(SessionListParams(), living.root)).sessions
        assert [each.session_id for each in listed] == [session_id]
        found = [message.message_id for message in page_of(await living.sessions.get(wanted)).messages]
        assert len(set(ids) - set(found)) <= 1
        assert len(found) == len(set(found)), "none is there twice"
        told = await living.sessions.attach(SessionAttachParams(session_id=session_id, after_seq=3))
        assert told.kind in ("replay", "snapshot")
        if told.events is not None:
            numbers = [event["seq"] for event in told.events]
            assert numbers == list(range(4, told.seq + 1))
        session = await living.sessions.open(session_id)
        result = await session.prompt(prompt("again", model=living.script("here")))
        assert isinstance(result, PromptResult)
        assert (result.stop_reason, result.text) == ("stop", "here"), result.error
        assert "again" in (await living.sessions.export(session_id)).text


async def message_ids(folder: Path, session_id: str) -> list[str]:
    async with home(folder) as living:
        told = page_of(await living.sessions.get(SessionGetParams(session_id=session_id)))
    return [message.message_id for message in told.messages]


@pytest.mark.parametrize("how", BYTES)
async def test_a_line_that_a_disk_has_spoilt_costs_that_line(tmp_path: Path, how: str) -> None:
    session_id, path = await worked(tmp_path)
    ids = await message_ids(tmp_path, session_id)
    lines = path.read_bytes().splitlines(keepends=True)
    for place, line in enumerate(lines[:-1]):
        spoilt = BYTES[how](line, lines[place + 1])
        path.write_bytes(b"".join([*lines[:place], spoilt, *lines[place + 1 :]]))
        try:
            await assert_lost_at_most_one(tmp_path, session_id, ids)
        except BaseException as error:
            error.add_note(f"line {place + 1}: {line[:150]!r}")
            raise


@pytest.mark.parametrize("how", RECORDS)
async def test_a_record_that_is_none_of_ours_costs_that_record(tmp_path: Path, how: str) -> None:
    session_id, path = await worked(tmp_path)
    ids = await message_ids(tmp_path, session_id)
    lines = path.read_bytes().splitlines(keepends=True)
    for place, record in enumerate(read(path).records, 1):
        path.write_bytes(b"".join([*lines[:place], encode(RECORDS[how](record)), *lines[place + 1 :]]))
        try:
            await assert_lost_at_most_one(tmp_path, session_id, ids)
        except BaseException as error:
            error.add_note(f"record {place}: {record['event']['type']}")
            raise


async def test_a_session_whose_first_event_is_lost_is_told_by_what_is_left(tmp_path: Path) -> None:
    session_id, path = await worked(tmp_path)
    header, first, *rest = path.read_bytes().splitlines(keepends=True)
    upto = next(n for n, line in enumerate(rest) if b"tool_execution_start" in line)
    for left in (
        [header, b"spoilt\n", *rest],
        [header[:-1] + first, *rest],
        [header, b"spoilt\n", *rest[:upto]],
    ):
        path.write_bytes(b"".join(left))
        mode = "full" if b'"summary"' in b"".join(left) else "ask"
        async with home(tmp_path) as living:
            (info,) = (await living.sessions.listing(SessionListParams(), living.root)).sessions
            opened = await living.sessions.open(session_id)
            assert opened.root == living.root
            for each in (info, opened.info):
                assert (each.session_id, each.title) == (session_id, "one")
                assert each.mode == mode
                assert each.model is not None
            told = [p.message for p in living.sessions.problems]
            assert any(session_id in message for message in told), "the loss is told"
