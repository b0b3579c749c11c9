"""The answer that `boot.py` gives to `initialize` is the one the server would have given, or none."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from daemon.pipes import Sent
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.boot import _LSP, _answer_early
from agentd.config.secrets import Secrets
from agentd.config.settings import load
from agentd.config.trust import Trust
from agentd.daemon.door import Door
from agentd.daemon.lifetime import Lifetime
from agentd.daemon.start import Start
from agentd.permissions.store import RuleStore
from agentd.protocol.capabilities import FEATURES, METHODS, NOTIFICATIONS
from agentd.protocol.frames import FrameReader, Oversized, encode
from agentd.server.configuration import EditorConfiguration
from agentd.server.connection import Connection
from agentd.server.dialect import LSP
from agentd.server.editor import ClientEditor
from agentd.server.language_server import LanguageServer
from agentd.server.methods import Methods
from agentd.server.trace import Trace


def early(body: bytes) -> Any:
    """What boot answers to this first frame; None where it leaves the answer to the server."""
    read_end, write_end = os.pipe()
    start = Start(-1, write_end, FrameReader(10**6), Secrets(), frames=[body])
    answered = _answer_early(start, _LSP)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        sent = pipe.read()
    assert answered == bool(sent)
    if not answered:
        return None
    (frame,) = FrameReader(10**6).feed(sent)
    assert isinstance(frame, bytes)
    assert sent == encode(frame)
    return json.loads(frame)


class Home:
    """A server's door with `initialize` behind it, and no client."""

    def __init__(self, folder: Path, tasks: Any) -> None:
        self.sent = Sent()
        environment = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        connection = Connection(
            load(environment), False, Trust(folder / "trust.json"), RuleStore(folder / "permissions")
        )
        self.door = Door(self.sent, tasks, LSP)  # type: ignore[arg-type]  # in place of a pipe
        self.lifetime = Lifetime(tasks.start_soon)
        editor = ClientEditor(LanguageServer(lambda: "utf-16"), self.door)
        configuration = EditorConfiguration(self.door, connection, _Face())  # type: ignore[arg-type]
        self.methods = Methods(
            connection, _Face(), _House(tasks), _Engines(), None, self.lifetime, self.door, Secrets(),
            editor, configuration, Trace(self.sent, str),
        )  # type: ignore[arg-type]  # what initialize uses  # fmt: skip
        self.door.serve(self.methods.requests(), self.methods.notices(), lambda method, params: False)

    async def answer(self, body: bytes, *, answered: bool = False) -> list[Any]:
        self.door.receive(body, answered=answered)
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        return self.sent.bodies


class _Face:
    options: Any = None


class _House:
    def __init__(self, tasks: Any) -> None:
        self.start_soon = tasks.start_soon

    def check_mode(self, mode: Any) -> None:
        assert mode not in ("auto", "full"), "boot leaves one to the server, and sessions judge the other"

    async def find_out(self, *modes: Any) -> None:
        """There is no sandbox to ask for."""


class _Engines:
    def set_credential(self, provider: str, secret: str | None) -> None:
        """Kept nowhere."""

    async def warm_up(self, model: str | None) -> None:
        """Nothing to import."""


@asynccontextmanager
async def server(folder: Path) -> AsyncIterator[Home]:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            yield Home(folder, tasks)
            tasks.cancel_scope.cancel()


def initialize(message_id: Any = 1, **params: Any) -> bytes:
    params = {"capabilities": {}, **params}
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "method": "initialize", "params": params}).encode()


def agentd(**options: Any) -> dict[str, Any]:
    return {"initializationOptions": {"agentd": options}}


PLAIN = [
    {},
    {"processId": None, "rootUri": None},
    {"processId": os.getpid(), "clientInfo": {"name": "e"}, "locale": "en", "trace": "off"},
    {"capabilities": {"general": {"positionEncodings": ["utf-8", "utf-16"]}}},
    {"capabilities": {"general": {"positionEncodings": ["utf-32"]}}},
    {"capabilities": {"general": None, "experimental": None}},
    {"workspaceFolders": None, "rootUri": "file:///tmp"},
    {"workspaceFolders": []},
    {"workspaceFolders": [{"uri": "file:///tmp", "name": "tmp"}, {"uri": "file:///nowhere"}]},
    {
        "workspaceFolders": [
            {"uri": "untitled:1"},
            {"uri": ""},
            {"uri": "file:///a%00b"},
            {"uri": "file:///%ff"},
        ]
    },
    {"rootPath": "/tmp"},
    {"rootPath": None},
    {"rootUri": "file:///a%00b"},
    agentd(),
    agentd(mode="auto"),
    agentd(mode="edit", updates="none", trusted=True, permission=True, model="p/m", unknown=[1]),
    agentd(credentials={"anthropic": "sk-é😀"}),
    {"capabilities": {"experimental": {"agentd": {"mode": "plan"}, "other": 1}}},
    {"initializationOptions": None},
    {"initializationOptions": "text"},
    {"initializationOptions": {"other": 1}},
]

ODD = [
    {"capabilities": None},
    {"capabilities": []},
    {"processId": "1"},
    {"processId": True},
    {"processId": 2**40},
    {"processId": 2**70},
    {"processId": -1},
    {"rootUri": 5},
    {"rootPath": 5},
    {"rootPath": "a\0b"},
    {"rootPath": "/a\0b"},
    {"rootPath": "relative"},
    {"workspaceFolders": {}},
    {"workspaceFolders": ["file:///tmp"]},
    {"workspaceFolders": [{}]},
    {"workspaceFolders": [{"uri": "file:///tmp", "name": 5}]},
    {"workspaceFolders": [{"uri": "file:///tmp", "name": None}]},
    {"initializationOptions": {"agentd": None}},
    {"initializationOptions": {"agentd": "x"}},
    agentd(mode="yolo"),
    agentd(mode=None),
    agentd(model=None),
    agentd(model=5),
    agentd(trusted="yes"),
    agentd(trusted=None),
    agentd(updates="some"),
    agentd(credentials={"a": None}),
    agentd(credentials=None),
    agentd(credentials=[]),
    {"capabilities": {"experimental": {"agentd": 5}}},
    {**agentd(mode="ask"), "capabilities": {"experimental": {"agentd": {"mode": "yolo"}}}},
]


@pytest.mark.parametrize("params", PLAIN, ids=range(len(PLAIN)))
async def test_what_is_plain_is_answered_early_just_as_the_server_would(tmp_path: Path, params: Any) -> None:
    answer = early(initialize(**params))
    assert answer is not None
    async with server(tmp_path) as home:
        assert await home.answer(initialize(**params)) == [answer]


@pytest.mark.parametrize("params", [*PLAIN, *ODD], ids=range(len(PLAIN) + len(ODD)))
async def test_what_was_answered_early_is_accepted_by_the_server(tmp_path: Path, params: Any) -> None:
    """One response per request: where boot answered, the server takes the request and is ready."""
    answer = early(initialize(**params))
    async with server(tmp_path) as home:
        sent = await home.answer(initialize(**params), answered=answer is not None)
        assert len(sent) == (0 if answer is not None else 1)
        assert home.door.initialized == (answer is not None or "result" in sent[0])


@pytest.mark.parametrize("message_id", [0, 1, -5, 2**70, "1", "", "é😀"])
async def test_the_early_answer_has_the_id_of_the_request(tmp_path: Path, message_id: Any) -> None:
    answer = early(initialize(message_id))
    assert answer["id"] == message_id
    assert type(answer["id"]) is type(message_id)
    async with server(tmp_path) as home:
        assert await home.answer(initialize(message_id)) == [answer]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"\xef\xbb\xbf" + initialize(),
        initialize().decode().encode("utf-16"),
        initialize(x=float("nan")),
        b"[" * 100_000,
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "shutdown"}).encode(),
        json.dumps({"jsonrpc": "2.0", "method": "initialize", "params": {"capabilities": {}}}).encode(),
        json.dumps(
            {"jsonrpc": "1.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
        ).encode(),
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize"}).encode(),
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": []}).encode(),
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": ["initialize"], "params": {"capabilities": {}}}
        ).encode(),
        initialize(None),
        initialize(1.5),
        initialize(True),
        initialize(deep=json.loads("[" * 600 + "]" * 600)),
    ],
    ids=range(19),
)
async def test_what_is_not_plain_is_left_to_the_server_which_answers_it_once(
    tmp_path: Path, body: bytes
) -> None:
    assert early(body) is None
    async with server(tmp_path) as home:
        sent = await home.answer(body)
        assert len(sent) == (0 if b'"id"' not in body and body.startswith(b'{"jsonrpc": "2.0"') else 1)


def test_a_frame_that_was_skipped_is_left_to_the_server() -> None:
    start = Start(-1, -1, FrameReader(10), Secrets(), frames=[Oversized(100)])
    assert not _answer_early(start, _LSP)
    assert not _answer_early(Start(-1, -1, FrameReader(10), Secrets()), _LSP)


KEYS = st.sampled_from(
    [
        "agentd",
        "experimental",
        "general",
        "positionEncodings",
        "uri",
        "name",
        "mode",
        "model",
        "trusted",
        "credentials",
    ]
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["", "ask", "file:///tmp", "é"])),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
PARAMS = st.fixed_dictionaries(
    {"capabilities": st.dictionaries(KEYS, JSON, max_size=3)},
    optional={
        "processId": st.one_of(st.none(), st.just("x"), st.booleans()),
        "rootUri": JSON,
        "rootPath": JSON,
        "workspaceFolders": JSON,
        "initializationOptions": JSON,
    },
)


@settings(max_examples=60, deadline=None)
@given(PARAMS)
def test_whatever_the_params_there_is_one_answer_and_boot_and_server_agree(params: dict[str, Any]) -> None:
    async def both() -> tuple[Any, list[Any]]:
        answer = early(initialize(**params))
        async with server(Path("/nonexistent")) as home:
            return answer, await home.answer(initialize(**params))

    answer, sent = anyio.run(both)
    assert len(sent) == 1
    if answer is not None:
        assert sent == [answer]


# --- what is announced ----------------------------------------------------------------------------


async def test_exactly_what_is_served_is_announced(tmp_path: Path) -> None:
    async with server(tmp_path) as home:
        served = set(home.methods.requests()) - {"initialize", "shutdown"}
        assert set(METHODS) == {method for method in served if method.startswith("agentd/")}
        noticed = {method for method in home.methods.notices() if method.startswith("agentd/")}
        assert set(NOTIFICATIONS) == noticed
        assert len(METHODS) == len(set(METHODS))


def test_features_and_methods_reach_the_client() -> None:
    announced = early(initialize())["result"]["capabilities"]["experimental"]["agentd"]
    assert set(announced["methods"]) == {*METHODS, *NOTIFICATIONS}
    assert announced["features"] == FEATURES
    assert announced["protocol"] == 1
