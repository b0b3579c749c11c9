"""The way out: in order, bounded, merging what belongs together, and never in the way of the event loop."""

import os
import select
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import pytest_asyncio
from daemon.pipes import Client, all_sent, outbox
from pydantic_core import to_json

from agentd.daemon import outbox as outbox_module
from agentd.daemon.outbox import HIGH, LOW, Outbox
from agentd.protocol.events import (
    EventNotification,
    MessageDelta,
    MessageUpdate,
    ToolDelta,
    ToolExecutionUpdate,
    TurnStart,
)
from agentd.server.event_updates import publish

TIME = "2026-01-01T00:00:00.000Z"
PIPE = 64 * 1024
"""What a pipe holds by itself on Linux."""


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    made = Client()
    yield made
    made.close()


def durable(seq: int, session_id: str = "s1") -> EventNotification:
    return EventNotification(
        session_id=session_id, prompt_id="p", seq=seq, time=TIME, event=TurnStart(turn=seq)
    )


def said(
    delta: str, *, offset: int = 0, index: int = 0, session_id: str = "s1", **fields: Any
) -> EventNotification:
    update = MessageDelta(kind="text", index=index, offset=offset, delta=delta, **fields)
    event = MessageUpdate(message_id="m1", update=update)
    return EventNotification(session_id=session_id, prompt_id="p", time=TIME, event=event)


def output(delta: str, *, offset: int = 0, channel: Any = "stdout", call: str = "c1") -> EventNotification:
    update = ToolDelta(channel=channel, offset=offset, delta=delta)
    event = ToolExecutionUpdate(tool_call_id=call, update=update)
    return EventNotification(session_id="s1", prompt_id="p", time=TIME, event=event)


def response(number: int, size: int = 0) -> bytes:
    return to_json({"jsonrpc": "2.0", "id": number, "result": "x" * size})


def nothing() -> None:
    """Nobody wants to know that it is out."""


def outline(messages: list[Any]) -> list[Any]:
    """Responses by id, durable events by number, updates by what they say."""
    told = []
    for message in messages:
        if "method" not in message:
            told.append(f"response {message['id']}")
        elif message["method"] != "agentd/event":
            told.append(message["method"])
        else:
            params = message["params"]
            update = params["event"].get("update")
            told.append((update["offset"], update["delta"]) if update else params["seq"])
    return told


async def sent(client: Client, box: Outbox) -> list[Any]:
    """The outline of everything that was sent."""
    return outline(await all_sent(client, box))


# --- order and merging ----------------------------------------------------------------------------


async def test_what_is_sent_arrives_in_order(client: Client) -> None:
    box = outbox(client)
    expected = []
    for number in range(200):
        publish(box, durable(number))
        box.respond(response(number), nothing)
        box.send(to_json({"jsonrpc": "2.0", "method": f"n/{number}"}))
        expected += [number, f"response {number}", f"n/{number}"]
    assert await sent(client, box) == expected


async def test_adjacent_updates_of_one_block_become_one(client: Client) -> None:
    box = outbox(client)
    for offset, piece in ((0, "a"), (1, "😀"), (3, "b")):
        publish(box, said(piece, offset=offset))
    assert await sent(client, box) == [(0, "a😀b")]


@pytest.mark.parametrize(
    "between",
    [
        said("x", index=1),
        said("x", tool_call_id="c1"),
        output("x"),
        durable(9),
    ],
    ids=["another block", "the call's id", "a tool's output", "a durable event"],
)
async def test_what_comes_between_two_updates_keeps_them_apart(client: Client, between: Any) -> None:
    box = outbox(client)
    publish(box, said("a"))
    publish(box, between)
    publish(box, said("b", offset=1))
    told = await sent(client, box)
    assert told[0] == (0, "a")
    assert told[-1] == (1, "b")
    assert len(told) == 3


async def test_the_two_channels_of_a_command_are_two_blocks(client: Client) -> None:
    box = outbox(client)
    for event in (output("a"), output("b", channel="stderr"), output("c", offset=1)):
        publish(box, event)
    assert await sent(client, box) == [(0, "a"), (0, "b"), (1, "c")]


async def test_updates_of_two_sessions_are_not_mixed(client: Client) -> None:
    box = outbox(client)
    for offset, piece in enumerate("ab"):
        publish(box, said(piece, offset=offset))
        publish(box, said(piece.upper(), offset=offset, session_id="s2"))
    told = await all_sent(client, box)
    by_session = {m["params"]["sessionId"]: m["params"]["event"]["update"]["delta"] for m in told}
    assert len(told) == 2
    assert by_session == {"s1": "ab", "s2": "AB"}


async def test_a_response_closes_merging(client: Client) -> None:
    """A reading holds what was said before it: that must not be told again behind it."""
    box = outbox(client)
    publish(box, said("a"))
    box.respond(response(1), nothing)
    publish(box, said("b", offset=1))
    assert await sent(client, box) == [(0, "a"), "response 1", (1, "b")]


async def test_a_gap_in_the_output_of_a_command_stays_a_gap(client: Client) -> None:
    """Output above the rate is not sent, and shows in `offset`: the pieces around it are not adjacent."""
    box = outbox(client)
    publish(box, output("before"))
    publish(box, output("after", offset=100_000))
    assert await sent(client, box) == [(0, "before"), (100_000, "after")]


async def test_a_name_that_comes_behind_the_id_of_a_call_is_not_lost(client: Client) -> None:
    box = outbox(client)
    publish(box, said("", tool_call_id="c1"))
    publish(box, said("{", tool_call_id="c1", tool_name="read"))
    names = [m["params"]["event"]["update"].get("toolName") for m in await all_sent(client, box)]
    assert "read" in names


async def test_the_bytes_of_many_deltas_grow_with_their_text_alone(client: Client) -> None:
    box = outbox(client)
    for offset in range(5000):
        publish(box, said("x", offset=offset))
    await sent(client, box)
    assert client.bytes < 5000 * 2


# --- a client that does not read ------------------------------------------------------------------


async def fill(box: Outbox, piece: str = "x" * 1000) -> int:
    """Publish updates, as runs do, until they would have to wait; give how many bytes of text that were."""
    told = 0
    with anyio.fail_after(20):
        while box.is_open:
            publish(box, said(piece, offset=told, index=told % 7))
            told += len(piece)
            await anyio.lowlevel.checkpoint()
    return len(piece.encode()) * told // len(piece)


async def test_runs_wait_for_a_client_that_does_not_read_and_go_on_when_it_does(client: Client) -> None:
    box = outbox(client)
    told = await fill(box)
    assert told < HIGH + PIPE + 8192
    with anyio.move_on_after(0.05) as scope:
        await box.room()
    assert scope.cancelled_caught
    client.read_all()
    with anyio.fail_after(10):
        await box.room()
    assert box.is_open
    await box.close(10)
    await client.until(lambda: client.bytes >= told)
    assert LOW < HIGH


@pytest.mark.parametrize(
    "piece", ["😀" * 1000, "\x00" * 1000, "é" * 1000], ids=["emoji", "controls", "accents"]
)
async def test_the_bound_counts_bytes_not_letters(client: Client, piece: str) -> None:
    """Up to six bytes of a frame stand for one letter of text."""
    box = outbox(client)
    await fill(box, piece)
    await sent(client, box)
    assert client.bytes < HIGH + PIPE + 3 * len(to_json(piece)) + 8192


async def test_responses_pass_at_once_while_runs_wait(client: Client) -> None:
    box = outbox(client)
    await fill(box)
    written: list[int] = []
    box.respond(response(1), lambda: written.append(1))
    await anyio.lowlevel.checkpoint()
    assert written == [], "in flight until it is written"
    told = await sent(client, box)
    assert told[-1] == "response 1"
    assert written == [1]


async def test_a_response_is_out_as_soon_as_a_client_that_reads_has_it(client: Client) -> None:
    client.read_all()
    box = outbox(client)
    written: list[int] = []
    for number in range(3):
        box.respond(response(number), lambda number=number: written.append(number))
    await client.until(lambda: len(client.messages) == 3 and len(written) == 3)
    assert written == [0, 1, 2]
    box.respond(response(3, 500_000), lambda: written.append(3))
    await client.until(lambda: 3 in written)
    await client.until(lambda: len(client.messages) == 4)
    await box.close(1)


async def test_a_client_that_leaves_too_many_responses_unread_is_given_up(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "MAX_RESPONSE_BYTES", 300_000)
    lost: list[bool] = []
    box = outbox(client, lost)
    written: list[int] = []
    for number in range(4):
        box.respond(response(number, 100_000), lambda number=number: written.append(number))
        await anyio.lowlevel.checkpoint()
    assert lost == [True]
    assert written == [0, 1, 2, 3], "nobody waits for what will never be written"
    client.read_all()
    await box.close(5)


async def test_responses_that_were_read_do_not_count(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "MAX_RESPONSE_BYTES", 300_000)
    client.read_all()
    lost: list[bool] = []
    box = outbox(client, lost)
    written: list[int] = []
    for number in range(10):
        box.respond(response(number, 100_000), lambda number=number: written.append(number))
        await client.until(lambda number=number: number in written)
    assert lost == []
    await box.close(5)


# --- a client that is gone ------------------------------------------------------------------------


async def test_a_client_that_leaves_is_noticed_once_and_lets_go_of_all_who_wait(client: Client) -> None:
    lost: list[bool] = []
    box = outbox(client, lost)
    await fill(box)
    written: list[int] = []
    box.respond(response(1), lambda: written.append(1))
    client.leave()
    with anyio.fail_after(10):
        await box.room()
    await client.until(lambda: lost and written)
    assert (lost, written) == ([True], [1])
    publish(box, durable(1))
    box.respond(response(2), lambda: written.append(2))
    assert written == [1, 2]
    assert box.is_open
    with anyio.fail_after(5):
        await box.close(10)
    assert lost == [True]


async def test_a_client_that_was_gone_before_the_first_word_is_noticed(client: Client) -> None:
    client.leave()
    lost: list[bool] = []
    box = outbox(client, lost)
    publish(box, durable(1))
    await client.until(lambda: lost)
    await box.close(1)


async def test_a_pipe_that_does_not_block_is_no_lost_client(client: Client) -> None:
    """Whoever started the daemon may have left O_NONBLOCK on the pipe: it belongs to both ends' processes."""
    os.set_blocking(client.write_end, False)
    lost: list[bool] = []
    box = outbox(client, lost)
    for number in range(40):
        box.respond(response(number, 10_000), nothing)
    await client.until(lambda: not select.select([], [client.write_end], [], 0)[1])
    assert await sent(client, box) == [f"response {number}" for number in range(40)]
    assert lost == []


# --- the end --------------------------------------------------------------------------------------


async def test_closing_does_not_wait_for_ever_for_a_client_that_never_reads(client: Client) -> None:
    box = outbox(client)
    await fill(box)
    with anyio.fail_after(5):
        await box.close(0.05)
    client.leave()


async def test_closing_an_outbox_with_nothing_to_say_ends_at_once(client: Client) -> None:
    with anyio.fail_after(5):
        await outbox(client).close(1000)
