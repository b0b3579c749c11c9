"""The editor as sessions see it: events at the pace it asked for, questions in the richest way it knows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from daemon.pipes import Client, all_sent, outbox
from pydantic_core import to_json

from agentd.daemon.door import Door
from agentd.daemon.outbox import Outbox
from agentd.permissions.rules import Rules
from agentd.protocol.events import EventNotification, MessageDelta, MessageUpdate, TurnStart
from agentd.protocol.messages import CommandSubject, EditSubject, PermissionRequest
from agentd.protocol.methods import ClientOptions, PermissionAnswer, SessionGetParams
from agentd.server.dialect import LSP
from agentd.server.face import EditorFace
from agentd.server.methods import Methods

TIME = "2026-01-01T00:00:00.000Z"


def said(delta: str, offset: int = 0, index: int = 0) -> EventNotification:
    update = MessageDelta(kind="text", index=index, offset=offset, delta=delta)
    return EventNotification(
        session_id="s1", prompt_id="p", time=TIME, event=MessageUpdate(message_id="m1", update=update)
    )


def durable(seq: int) -> EventNotification:
    return EventNotification(session_id="s1", prompt_id="p", seq=seq, time=TIME, event=TurnStart(turn=1))


class Editor:
    """A client that reads all, the door and the face behind it."""

    def __init__(self, tasks: Any) -> None:
        self.client = Client()
        self.box: Outbox = outbox(self.client)
        self.door = Door(self.box, tasks, LSP)
        self.face = EditorFace(self.door, self.box, tasks.start_soon)
        self.client.read_all()

    async def told(self) -> list[Any]:
        """All that came: events by number or text, responses by id, the rest by method."""
        words = []
        for message in await all_sent(self.client, self.box):
            params = message.get("params", {})
            event = params.get("event")
            if event is None:
                words.append(message.get("method", f"response {message.get('id')}"))
            else:
                words.append(event["update"]["delta"] if "update" in event else params["seq"])
        return words

    async def asked(self) -> Any:
        """The question that came."""
        await self.client.until(lambda: self.client.messages)
        return self.client.messages[-1]

    def reply(self, message_id: Any, result: Any = None, **member: Any) -> None:
        self.door.receive(to_json({"jsonrpc": "2.0", "id": message_id, **(member or {"result": result})}))


@asynccontextmanager
async def editor(**options: Any) -> AsyncIterator[Editor]:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            made = Editor(tasks)
            if options:
                options.pop("agentd", None)
                made.face.options = ClientOptions(**options)
            yield made
            tasks.cancel_scope.cancel()
        await made.box.close(5)
        made.client.close()


# --- events ---------------------------------------------------------------------------------------


async def test_an_editor_that_knows_nothing_of_agentd_gets_no_events() -> None:
    async with editor() as home:
        home.face.publish(durable(1))
        home.face.publish(said("a"))
        assert await home.told() == []


async def test_a_client_that_sent_an_agentd_object_even_an_empty_one_gets_all() -> None:
    async with editor(agentd=True) as home:
        for event in (durable(1), said("a"), durable(2)):
            home.face.publish(event)
        assert await home.told() == [1, "a", 2]


async def test_a_client_may_do_without_updates() -> None:
    async with editor(updates="none") as home:
        for event in (durable(1), said("a"), durable(2)):
            home.face.publish(event)
        assert await home.told() == [1, 2]


async def test_coalesced_updates_come_as_one_and_before_what_follows_them() -> None:
    async with editor(updates="coalesced") as home:
        for offset, piece in enumerate("abc"):
            home.face.publish(said(piece, offset))
            await anyio.lowlevel.checkpoint()
        home.face.publish(said("x", 0, index=1))
        home.face.publish(durable(1))
        assert await home.told() == ["abc", "x", 1]


async def test_coalesced_updates_come_though_nothing_follows_them() -> None:
    async with editor(updates="coalesced") as home:
        home.face.publish(said("a"))
        home.face.publish(said("b", 1))
        await home.client.until(lambda: home.client.messages)
        assert await home.told() == ["ab"]


async def test_a_reading_never_tells_what_held_updates_tell_again_behind_it() -> None:
    """The next update goes on at the offsets of the reading, also for a client that wants them coalesced."""
    async with editor(updates="coalesced") as home:

        class Sessions:
            """A reading that takes a while, during which the model speaks."""

            async def get(self, params: SessionGetParams) -> Any:
                await anyio.lowlevel.checkpoint()
                home.face.publish(said("b", 1))
                return {"partial": "ab"}

        none: Any = None
        sessions: Any = Sessions()
        methods = Methods(none, home.face, none, none, sessions, none, home.door, none, none, none, none)
        home.door.serve(methods.requests(), {}, lambda method, params: False)
        home.door.initialized = True
        home.face.publish(said("a"))
        body = {"jsonrpc": "2.0", "id": 1, "method": "agentd/session/get", "params": {"sessionId": "s1"}}
        home.door.receive(to_json(body))
        await home.client.until(lambda: any(m.get("id") == 1 for m in home.client.messages))
        told = await home.told()
        assert told[-1] == "response 1"
        assert "".join(told[:-1]) == "ab"


async def test_a_run_gives_way_to_others_however_fast_its_model_speaks() -> None:
    async with editor(agentd=True) as home:
        turns: list[int] = []

        async def other() -> None:
            while True:
                turns.append(1)
                await anyio.lowlevel.checkpoint()

        home.door._tasks.start_soon(other)
        for _ in range(1000):
            await home.face.room()
        assert len(turns) > 10


# --- questions ------------------------------------------------------------------------------------


def question(subject: Any = None) -> PermissionRequest:
    subject = subject or CommandSubject(command="make\nrm -rf x", cwd="/w")
    return PermissionRequest(
        session_id="s1",
        prompt_id="p1",
        request_id="q1",
        tool_call_id="c1",
        tool_name="bash",
        title="make",
        kind="execute",
        subject=subject,
        options=Rules().options("bash", subject),
    )


async def answered(home: Editor, *, subject: Any = None, **member: Any) -> tuple[Any, Any]:
    """What came as the question, and what the session hears of this reply."""
    heard: list[Any] = []

    async def ask() -> None:
        heard.append(await home.face.ask(question(subject)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        asked = await home.asked()
        home.reply(asked["id"], **member)
    return asked, heard[0]


async def test_a_plain_editor_is_told_that_a_command_would_run_outside_the_sandbox_and_why() -> None:
    async with editor(permission=False) as home:
        subject = CommandSubject(command="make", cwd="/w", reason="it writes\x1b to .git")
        asked, _ = await answered(home, subject=subject, result=None)
        assert asked["params"]["message"] == (
            "agentd wants to run in /w:\nmake\n\nIt would run outside the sandbox. "
            "The model gives this reason: it writes\\x1b to .git"
        )


async def test_a_client_that_can_is_asked_with_the_whole_question() -> None:
    async with editor(permission=True) as home:
        asked, heard = await answered(home, result={"optionId": "reject_once", "feedback": "no"})
        assert asked["method"] == "agentd/permission/request"
        assert asked["params"]["subject"] == {"type": "command", "command": "make\nrm -rf x", "cwd": "/w"}
        assert heard == PermissionAnswer(option_id="reject_once", feedback="no")


@pytest.mark.parametrize(
    "member",
    [
        {"result": None},
        {"result": "allow_once"},
        {"result": []},
        {"result": {"optionId": 5}},
        {"result": {"optionId": "a b"}},
        {"error": {"code": -32601, "message": "no"}},
        {"error": {}},
    ],
    ids=range(7),
)
async def test_a_reply_that_is_no_answer_is_none(member: Any) -> None:
    async with editor(permission=True) as home:
        assert (await answered(home, **member))[1] is None


async def test_any_other_editor_is_asked_with_buttons_and_sees_all_that_would_happen() -> None:
    async with editor() as home:
        asked, heard = await answered(home, result={"title": "Allow once"})
        assert asked["method"] == "window/showMessageRequest"
        assert "make\nrm -rf x" in asked["params"]["message"]
        assert [action["title"] for action in asked["params"]["actions"]] == [
            "Allow once",
            "Allow for this session",
            "Reject",
        ]
        assert heard == PermissionAnswer(option_id="allow_once")


async def test_an_edit_is_shown_with_its_diff() -> None:
    async with editor(agentd=True) as home:
        subject = EditSubject(uri="file:///w/a", patch="-old\n+new")
        asked, _ = await answered(home, subject=subject, result=None)
        assert "-old\n+new" in asked["params"]["message"]


@pytest.mark.parametrize(
    "result", [None, {}, {"title": "Yes"}, "Allow once", ["Allow once"], {"title": None}]
)
async def test_a_button_that_there_is_not_is_no_answer(result: Any) -> None:
    async with editor() as home:
        assert (await answered(home, result=result))[1] is None
