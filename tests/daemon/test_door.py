"""The front door: each request is answered once, in its own type of id, whatever comes and whoever fails."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from daemon.pipes import Sent
from pydantic_core import to_json

from agentd.daemon.door import ClientError, Door, Method, Notice, Request
from agentd.protocol.capabilities import LIMITS
from agentd.protocol.errors import RpcError
from agentd.protocol.frames import Oversized
from agentd.protocol.wire import Wire
from agentd.server.dialect import LSP


class Number(Wire):
    """Params with one number."""

    n: int = 0


class House:
    """A door with a few methods behind it."""

    def __init__(self, tasks: Any) -> None:
        self.sent = Sent()
        self.exits: list[bool] = []
        self.log: list[Any] = []
        self.release = anyio.Event()
        self.door = Door(self.sent, tasks, LSP, self.exits.append)  # type: ignore[arg-type]  # in place of a pipe
        self.door.serve(
            {
                "initialize": Method(Number, self.initialize),
                "shutdown": Method(Number, self.answer, always_admitted=True),
                "echo": Method(Number, self.answer),
                "wait": Method(Number, self.wait),
                "prompt": Method(Number, self.prompt, graceful=True),
                "agentd/cancel": Method(Number, self.answer, always_admitted=True),
                "fail": Method(Number, self.fail),
                "odd": Method(Number, self.odd),
                "after": Method(Number, self.after),
            },
            {"note": Notice(Number, self.note), "break": Notice(Number, self.break_)},
            self.editor,
        )

    async def initialize(self, params: Number, request: Request) -> Any:
        if params.n < 0:
            raise RpcError("unsupported", "no")
        return {"capabilities": {}}

    async def answer(self, params: Number, request: Request) -> Any:
        return params.n

    async def wait(self, params: Number, request: Request) -> Any:
        self.log.append("waiting")
        await self.release.wait()
        return "waited"

    async def prompt(self, params: Number, request: Request) -> Any:
        stop = anyio.Event()
        request.on_cancel(stop.set)
        self.log.append("prompted")
        await stop.wait()
        await anyio.lowlevel.checkpoint()
        return "aborted"

    async def fail(self, params: Number, request: Request) -> Any:
        faults: dict[int, BaseException] = {
            0: RuntimeError("secret detail"),
            1: RpcError("sessionBusy", "busy", retryable=True, hint="wait", pid=5),
            2: ExceptionGroup("g", [ExceptionGroup("h", [RpcError("noModel", "none")])]),
            3: RpcError("outsideWorkspace", "the folder /w/\udcff is gone"),
        }
        raise faults[params.n]

    async def odd(self, params: Number, request: Request) -> Any:
        return [object(), {"a": "\udcff"}][params.n]

    async def after(self, params: Number, request: Request) -> Any:
        request.after(lambda: self.door.notify("behind", {}))
        if params.n:
            request.after(lambda: 1 / 0)
        return "first"

    def note(self, params: Number) -> None:
        self.log.append(params.n)

    def break_(self, params: Number) -> None:
        raise RuntimeError("a fault of ours")

    def editor(self, method: str, params: Any) -> bool:
        self.log.append(method)
        return method.startswith("textDocument/")

    def send(self, method: str, message_id: Any = None, **params: Any) -> None:
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        self.door.receive(to_json(body if message_id is None else {**body, "id": message_id}))

    def reply(self, message_id: Any, **member: Any) -> None:
        self.door.receive(to_json({"jsonrpc": "2.0", "id": message_id, **member}))

    async def settle(self) -> None:
        """Let every task do what it can do now."""
        for _ in range(20):
            await anyio.lowlevel.checkpoint()

    @property
    def answers(self) -> list[tuple[Any, Any]]:
        """Each response: its id, and its result or the kind of its error."""
        return [
            (body["id"], body["error"]["data"]["kind"] if "error" in body else body["result"])
            for body in self.sent.bodies
            if "method" not in body
        ]

    def out(self) -> None:
        """Everything is written."""
        for written in self.sent.unwritten:
            written()
        self.sent.unwritten.clear()


@asynccontextmanager
async def house(*, initialized: bool = True) -> AsyncIterator[House]:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            made = House(tasks)
            if initialized:
                made.send("initialize", "init")
                await made.settle()
                made.out()
                made.sent.bodies.clear()
            yield made
            await made.settle()
            tasks.cancel_scope.cancel()


# --- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message_id", [0, 1, -1, 2**60, "1", "", "é"])
async def test_a_request_is_answered_under_its_own_id(message_id: Any) -> None:
    async with house() as home:
        home.send("echo", message_id, n=7)
        await home.settle()
        assert home.answers == [(message_id, 7)]
        assert type(home.answers[0][0]) is type(message_id)


async def test_one_and_the_text_one_are_two_ids() -> None:
    async with house() as home:
        home.send("wait", 1)
        home.send("echo", "1", n=3)
        await home.settle()
        assert home.answers == [("1", 3)]
        home.release.set()
        await home.settle()
        assert home.answers == [("1", 3), (1, "waited")]


async def test_an_id_in_flight_is_refused_and_the_first_request_goes_on() -> None:
    async with house() as home:
        home.send("wait", 1)
        home.send("echo", 1, n=3)
        await home.settle()
        assert home.answers == [(1, "request")]
        home.release.set()
        await home.settle()
        assert home.answers == [(1, "request"), (1, "waited")]


async def test_an_id_may_be_used_again_once_it_is_answered() -> None:
    async with house() as home:
        for number in range(3):
            home.send("echo", 1, n=number)
            await home.settle()
        assert home.answers == [(1, 0), (1, 1), (1, 2)]


# --- the life of a server -------------------------------------------------------------------------


async def test_nothing_is_served_before_initialize() -> None:
    async with house(initialized=False) as home:
        home.send("echo", 1)
        home.send("note", n=1)
        home.send("shutdown", 2)
        home.send("textDocument/didOpen")
        await home.settle()
        assert home.answers == [(1, "notInitialized"), (2, "notInitialized")]
        assert home.log == []


async def test_what_follows_initialize_in_the_same_read_is_served() -> None:
    async with house(initialized=False) as home:
        home.send("initialize", 1)
        home.send("echo", 2, n=5)
        await home.settle()
        assert home.answers == [(1, {"capabilities": {}}), (2, 5)]


async def test_a_second_initialize_is_refused() -> None:
    async with house() as home:
        home.send("initialize", 2)
        await home.settle()
        assert home.answers == [(2, "request")]


async def test_an_initialize_that_failed_may_be_sent_again() -> None:
    async with house(initialized=False) as home:
        home.send("initialize", 1, n=-1)
        await home.settle()
        home.send("echo", 2)
        home.send("initialize", 3)
        await home.settle()
        assert home.answers == [(1, "unsupported"), (2, "notInitialized"), (3, {"capabilities": {}})]


async def test_an_initialize_that_has_its_answer_gets_no_second_one() -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    for params in ({}, {"n": -1}, {"n": "wrong"}):
        async with house(initialized=False) as home:
            home.door.receive(to_json({**body, "params": params}), answered=True)
            await home.settle()
            assert home.answers == [], params


async def test_after_shutdown_only_exit_is_left() -> None:
    async with house() as home:
        home.send("shutdown", 1)
        home.send("echo", 2)
        home.send("note", n=1)
        await home.settle()
        assert sorted(home.answers) == [(1, 0), (2, "request")]
        assert home.log == []
        home.send("exit")
        assert home.exits == [True]


async def test_exit_tells_whether_shutdown_came_before_also_in_the_same_read() -> None:
    async with house() as home:
        home.send("exit")
        home.send("shutdown", 1)
        home.send("exit")
        assert home.exits == [False, True]


async def test_exit_works_before_initialize() -> None:
    async with house(initialized=False) as home:
        home.send("exit")
        assert home.exits == [False]


# --- what can be wrong ----------------------------------------------------------------------------


async def test_unknown_methods_and_wrong_params_have_their_own_errors() -> None:
    async with house() as home:
        home.send("agentd/none", 1)
        home.send("echo", 2, n="x")
        home.send("$/unknown", 3)
        await home.settle()
        assert home.answers == [(1, "methodNotFound"), (2, "invalidParams"), (3, "methodNotFound")]
        assert "/n" in home.sent.bodies[1]["error"]["message"]


async def test_a_body_that_is_no_message_fails_alone() -> None:
    async with house() as home:
        for frame in (b"{", b"[]", b"", Oversized(10**8)):
            home.door.receive(frame)
        home.send("echo", 1)
        await home.settle()
        assert home.answers == [
            (None, "parse"),
            (None, "request"),
            (None, "parse"),
            (None, "request"),
            (1, 0),
        ]


async def test_broken_framing_is_answered_without_an_id() -> None:
    async with house() as home:
        home.door.refuse(RpcError("parse", "Broken framing."))
        assert home.answers == [(None, "parse")]


async def test_a_method_that_fails_is_an_internal_error_without_its_words() -> None:
    async with house() as home:
        home.send("fail", 1, n=0)
        await home.settle()
        assert home.answers == [(1, "internal")]
        assert "secret detail" not in str(home.sent.bodies)


async def test_an_error_keeps_all_that_it_tells() -> None:
    async with house() as home:
        home.send("fail", 1, n=1)
        home.send("fail", 2, n=2)
        await home.settle()
        assert home.sent.bodies[0]["error"] == {
            "code": -32803,
            "message": "busy",
            "data": {"kind": "sessionBusy", "retryable": True, "pid": 5, "hint": "wait"},
        }
        assert home.answers[1] == (2, "noModel")


async def test_an_error_that_no_json_can_hold_is_still_an_error() -> None:
    """A folder's name may be bytes that are no UTF-8, and an error may name it."""
    async with house() as home:
        home.send("fail", 1, n=3)
        await home.settle()
        assert [message_id for message_id, _ in home.answers] == [1]
        home.send("echo", 2)
        await home.settle()
        assert home.answers[-1] == (2, 0)


@pytest.mark.parametrize("number", [0, 1])
async def test_a_result_that_cannot_be_encoded_is_an_internal_error(number: int) -> None:
    async with house() as home:
        home.send("odd", 1, n=number)
        await home.settle()
        assert home.answers == [(1, "internal")]
        home.send("echo", 1)
        await home.settle()
        assert home.answers[-1] == (1, 0)


async def test_a_notification_that_fails_harms_nobody() -> None:
    async with house() as home:
        home.send("break")
        home.send("note", n="wrong")
        home.send("note", n=5)
        await home.settle()
        assert home.log == [5]
        assert home.answers == []


async def test_notifications_nobody_knows_go_to_the_editor_and_then_nowhere() -> None:
    async with house() as home:
        home.send("textDocument/didOpen")
        home.send("$/unknown")
        assert home.log == ["textDocument/didOpen", "$/unknown"]
        assert home.sent.bodies == []


# --- what follows a response ----------------------------------------------------------------------


async def test_what_is_to_follow_a_response_follows_it_at_once() -> None:
    async with house() as home:
        home.send("after", 1)
        home.send("echo", 2)
        await home.settle()
        assert [body.get("method", body.get("id")) for body in home.sent.bodies] == [1, "behind", 2]


async def test_a_fault_behind_a_response_is_no_second_response() -> None:
    async with house() as home:
        home.send("after", 1, n=1)
        await home.settle()
        assert home.answers == [(1, "first")]


# --- cancel ---------------------------------------------------------------------------------------


async def test_a_cancelled_request_is_answered_as_cancelled() -> None:
    async with house() as home:
        home.send("wait", 1)
        await home.settle()
        home.send("$/cancelRequest", id=1)
        await home.settle()
        assert home.answers == [(1, "cancelled")]
        assert home.sent.bodies[0]["error"]["code"] == -32800


async def test_a_cancel_before_the_request_began_is_not_forgotten() -> None:
    async with house() as home:
        home.send("wait", 1)
        home.send("$/cancelRequest", id=1)
        home.send("prompt", 2)
        home.send("$/cancelRequest", id=2)
        await home.settle()
        assert sorted(home.answers) == [(1, "cancelled"), (2, "aborted")]


async def test_a_prompt_that_is_cancelled_answers_with_its_result() -> None:
    async with house() as home:
        home.send("prompt", 1)
        await home.settle()
        home.send("$/cancelRequest", id=1)
        home.send("$/cancelRequest", id=1)
        await home.settle()
        assert home.answers == [(1, "aborted")]


@pytest.mark.parametrize("message_id", [1, "2", 99, None, True, 2.0, [], {}])
async def test_a_cancel_of_nothing_is_nothing(message_id: Any) -> None:
    async with house() as home:
        home.send("echo", 1)
        await home.settle()
        home.send("wait", 2)
        home.send("$/cancelRequest", id=message_id)
        home.door.receive(b'{"jsonrpc":"2.0","method":"$/cancelRequest"}')
        home.door.receive(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":[1]}')
        home.release.set()
        await home.settle()
        assert home.answers == [(1, 0), (2, "waited")]


async def test_when_the_daemon_ends_those_who_finish_answer_and_the_others_are_told() -> None:
    async with house() as home:
        home.send("wait", 1)
        home.send("prompt", 2)
        await home.settle()
        home.send("$/cancelRequest", id=2)
        await home.door.answer_all(0.05)
        assert sorted(home.answers) == [(1, "cancelled"), (2, "aborted")]
        home.release.set()
        await home.settle()
        assert len(home.answers) == 2


# --- how many -------------------------------------------------------------------------------------


async def test_above_the_limit_only_cancels_are_admitted() -> None:
    async with house() as home:
        for number in range(LIMITS["maxInFlight"]):
            home.send("wait", number)
        home.send("echo", "one too many")
        home.send("agentd/cancel", "cancel", n=1)
        await home.settle()
        assert sorted(home.answers, key=str) == [("cancel", 1), ("one too many", "overloaded")]
        assert home.sent.bodies[0]["error"]["data"]["retryable"] is True
        home.send("$/cancelRequest", id=0)
        home.send("$/cancelRequest", id=1)
        home.send("$/cancelRequest", id=2)
        await home.settle()
        home.out()
        home.send("echo", "again", n=2)
        await home.settle()
        assert home.answers[-1] == ("again", 2)


async def test_a_request_is_in_flight_until_its_response_is_written() -> None:
    async with house() as home:
        for number in range(LIMITS["maxInFlight"]):
            home.send("echo", number)
        await home.settle()
        home.send("echo", "late")
        assert home.answers[-1] == ("late", "overloaded")
        home.send("shutdown", "end")
        await home.settle()
        assert home.answers[-1] == ("end", 0), "a client can always leave"


async def test_requests_that_were_refused_count_too() -> None:
    """A client that reads nothing cannot fill the memory with its mistakes."""
    async with house() as home:
        for number in range(LIMITS["maxInFlight"]):
            home.send("none", number)
        home.send("echo", "late")
        assert home.answers[-1] == ("late", "overloaded")
        home.out()
        home.send("echo", "now")
        await home.settle()
        assert home.answers[-1] == ("now", 0)


# --- requests of ours -----------------------------------------------------------------------------


async def ask(home: House) -> tuple[Any, list[Any], anyio.CancelScope]:
    """Ask the client; give the id of the request, where its answer will be, and how to give up."""
    answers: list[Any] = []
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            try:
                answers.append(await home.door.ask("agentd/question", {"q": 1}))
            except ClientError as error:
                answers.append(str(error))

    home.door._tasks.start_soon(run)
    await home.settle()
    body = home.sent.bodies[-1]
    assert (body["method"], body["params"]) == ("agentd/question", {"q": 1})
    return body["id"], answers, scope


async def test_a_reply_reaches_who_asked_and_nobody_else() -> None:
    async with house() as home:
        first, second = await ask(home), await ask(home)
        assert first[0] != second[0]
        home.reply(second[0], result={"yes": True})
        await home.settle()
        assert (first[1], second[1]) == ([], [{"yes": True}])
        first[2].cancel()


async def test_a_reply_may_name_the_id_as_text() -> None:
    async with house() as home:
        message_id, answers, _ = await ask(home)
        home.reply(str(message_id), result=None)
        await home.settle()
        assert answers == [None]


async def test_an_error_of_the_client_is_told_to_who_asked() -> None:
    async with house() as home:
        message_id, answers, _ = await ask(home)
        home.reply(message_id, error={"code": -32601, "message": "no such method"})
        await home.settle()
        assert answers == ["agentd/question: -32601 no such method"]


async def test_the_first_reply_counts_also_when_two_come_in_one_read() -> None:
    async with house() as home:
        message_id, answers, _ = await ask(home)
        home.reply(message_id, result="first")
        home.reply(message_id, result="second")
        await home.settle()
        assert answers == ["first"]


async def test_a_reply_without_a_result_is_an_answer_and_never_taken_for_a_request() -> None:
    """A client in JavaScript that answers `undefined` leaves the result out."""
    async with house() as home:
        message_id, answers, _ = await ask(home)
        home.door.receive(to_json({"jsonrpc": "2.0", "id": message_id}))
        await home.settle()
        assert answers == [None]
        home.door.receive(to_json({"jsonrpc": "2.0", "id": 99}))
        assert home.answers[-1] == (None, "request")


async def test_giving_up_withdraws_the_question_and_a_late_reply_is_dropped() -> None:
    async with house() as home:
        message_id, answers, scope = await ask(home)
        scope.cancel()
        await home.settle()
        withdrawn = home.sent.bodies[-1]
        assert (withdrawn["method"], withdrawn["params"]) == ("$/cancelRequest", {"id": message_id})
        home.reply(message_id, result="late")
        home.reply("never asked", result=1)
        home.reply(None, error={"code": 1})
        home.send("echo", 1)
        await home.settle()
        assert answers == []
        assert home.answers == [(1, 0)]
