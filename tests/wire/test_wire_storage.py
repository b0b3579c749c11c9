"""A disk that is full, a journal that is damaged, a folder that is gone: said clearly, and nothing lost."""

import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.scripts import reply, tool

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def journal_of(home: Home, chat: Chat) -> Path:
    """The file that holds a session."""
    (path,) = [p for p in home.data.rglob("*") if p.is_file() and p.stem == chat.id and p.suffix == ".jsonl"]
    return path


def fill_disk(daemon: Daemon, path: Path, room: int = 0) -> None:
    """Let no file of the daemon grow beyond what this one has now, and a little."""
    size = path.stat().st_size + room
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def free_disk(daemon: Daemon) -> None:
    """Let files grow again."""
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, UNLIMITED)


@pytest.fixture
def daemon(home: Home) -> Daemon:
    """A daemon of this test alone; its process is ill-treated. Every tool may run."""
    return home.start("--allow-full")


@pytest.fixture
def silent(home: Home) -> Daemon:
    """The same, writing nothing but its journals: a limit on files is a limit on these."""
    daemon = home.spawn("--allow-full", AGENTD_SCRIPT_REQUESTS="")
    daemon.initialize()
    return daemon


def test_a_full_disk_is_told_and_the_session_goes_on_when_there_is_room_again(
    home: Home, silent: Daemon
) -> None:
    chats = []
    for room in (0, 40, 300, 700, 1500):
        model = home.script(*(reply(f"answer {number} " + "x" * 200) for number in range(5)))
        chat = Chat(silent, home.workspace(), model=model)
        chat.run("first words")
        fill_disk(silent, journal_of(home, chat), room)
        answer = silent.response(chat.start("second words", promptId="full"))
        if "error" in answer:
            assert (answer["error"]["code"], answer["error"]["data"]["kind"]) == (-32803, "storage")
        else:
            result = answer["result"]
            assert (result["stopReason"], result["error"]["kind"]) == ("error", "storage")
        assert silent.serves()
        free_disk(silent)
        assert chat.run("third words", model=home.script(reply("room again")))["text"] == "room again"
        assert_well_formed(chat.notifications())
        chats.append(chat)
    silent.kill()
    later = home.start()
    for chat in chats:
        got = later.call("agentd/session/get", {"sessionId": chat.id})
        assert got["messages"][0]["content"][0]["text"] == "first words"
        assert got["messages"][-1]["content"][0]["text"] == "room again"


def test_a_tool_does_not_run_when_its_start_cannot_be_journaled(home: Home, silent: Daemon) -> None:
    call = tool("bash", {"command": "echo ran > ran.txt", "timeout_ms": 1000}, "call-1")
    model = home.script(reply("x" * 200, call, chunkSize=1, delayMs=5))
    chat = Chat(silent, home.workspace(), model=model, mode="full")
    prompt = chat.start("run it")
    chat.event("message_update")
    fill_disk(silent, journal_of(home, chat))
    answer = silent.response(prompt)
    assert "error" in answer or answer["result"]["stopReason"] == "error"
    assert not (chat.root / "ran.txt").exists()
    free_disk(silent)
    assert chat.run(model=home.script(reply("room again")))["text"] == "room again"


def test_no_session_can_be_made_where_state_cannot_be_written(home: Home) -> None:
    home.data.write_text("a file where a folder should be")
    daemon = home.start()
    error = daemon.refused("agentd/session/new", {"workspaceUri": home.workspace().as_uri()})
    assert (error["code"], error["data"]["kind"]) == (-32803, "storage")
    assert daemon.serves()


def broken_in_the_middle(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0x55]) + content[middle + 1 :]


Damage = Callable[[bytes], bytes]

DAMAGES: dict[str, Damage] = {
    "flipped": broken_in_the_middle,
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "no-header": lambda content: content.split(b"\n", 1)[1],
    "header-only": lambda content: content.split(b"\n", 1)[0] + b"\n",
    "not-json": lambda content: b"hello\n" * 20,
    "binary": lambda content: b"\xff\xfe\x00" * 100,
}


def test_damaged_journals_harm_no_other_session(home: Home, daemon: Daemon) -> None:
    chats = {
        name: Chat(daemon, home.workspace(), model=home.script(reply("x"))) for name in (*DAMAGES, "whole")
    }
    for chat in chats.values():
        chat.run("some words")
    daemon.kill()
    for name, damage in DAMAGES.items():
        path = journal_of(home, chats[name])
        path.write_bytes(damage(path.read_bytes()))
    whole = chats.pop("whole")
    later = home.start()
    listed = {session["sessionId"] for session in later.call("agentd/session/list")["sessions"]}
    assert whole.id in listed
    for chat in chats.values():
        answer = later.response(later.request("agentd/session/get", {"sessionId": chat.id}))
        if "error" in answer:
            assert answer["error"]["code"] == -32803
            assert answer["error"]["data"]["kind"] in ("storage", "sessionNotFound", "unsupported")
    following: Json = {"sessionId": whole.id, "prompt": "on", "model": home.script(reply("still here"))}
    assert later.call("agentd/prompt", following)["text"] == "still here"


def assert_reads_and_goes_on(home: Home, daemon: Daemon, chat: Chat, about: str) -> None:
    """The session, whose file was changed while it was closed, is whole enough for another prompt."""
    got = chat.get()
    assert got["session"]["state"] == "idle"
    assert not got["messages"] or got["messages"][-1]["role"] == "assistant"
    following = {"sessionId": chat.id, "prompt": about, "model": home.script(reply("on we go"))}
    assert daemon.call("agentd/prompt", following)["text"] == "on we go"
    (asked,) = home.model_requests(about)
    rest = list(asked["messages"])
    while rest:
        message = rest.pop(0)
        assert message["role"] != "tool_result"
        for block in message["content"]:
            if block["type"] == "tool_call":
                assert rest.pop(0)["toolCallId"] == block["id"]
    again = chat.get()
    assert [m["messageId"] for m in again["messages"][: len(got["messages"])]] == [
        m["messageId"] for m in got["messages"]
    ]
    daemon.call("agentd/session/close", {"sessionId": chat.id})
    assert chat.get()["messages"] == again["messages"], "opening it twice changes nothing"
    daemon.call("agentd/session/close", {"sessionId": chat.id})


def recorded(home: Home, daemon: Daemon) -> tuple[Chat, bytes]:
    """A closed session of two turns with three calls, one of them refused, and its journal."""
    calls = [
        tool("write_file", {"file_path": "a.txt", "content": "x"}, "call-1"),
        tool("missing", {}, "call-2"),
        tool("list_directory", {}, "call-3"),
    ]
    model = home.script(reply("thinking aloud", *calls[:2]), reply("more", calls[2]), reply("done"))
    chat = Chat(daemon, home.workspace(), model=model, mode="full")
    assert chat.run("do all that")["text"] == "done"
    path = journal_of(home, chat)
    daemon.call("agentd/session/close", {"sessionId": chat.id})
    return chat, path.read_bytes()


def test_a_journal_that_ends_after_any_of_its_records_opens_and_goes_on(home: Home, daemon: Daemon) -> None:
    chat, whole = recorded(home, daemon)
    path = journal_of(home, chat)
    lines = whole.splitlines(keepends=True)
    assert len(lines) > 20
    for count in range(2, len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        assert_reads_and_goes_on(home, daemon, chat, f"after record {count}.")


def test_a_journal_that_ends_inside_a_record_opens_and_goes_on(home: Home, daemon: Daemon) -> None:
    chat, whole = recorded(home, daemon)
    path = journal_of(home, chat)
    introduced = len(b"".join(whole.splitlines(keepends=True)[:2]))
    for cut in range(introduced + 1, len(whole), 211):
        path.write_bytes(whole[:cut])
        assert_reads_and_goes_on(home, daemon, chat, f"after byte {cut}.")


@pytest.mark.parametrize("depth", [100, 180, *range(190, 202), 250, 300, 600, 5000])
def test_arguments_of_any_depth_are_journaled_so_that_they_can_be_read(
    shared_home: Home, shared: Daemon, depth: int
) -> None:
    arguments = '{"path": ".", "deep": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}"
    call: Json = {"type": "tool_call", "name": "list_directory", "rawArguments": arguments, "id": "call-1"}
    chat = Chat(shared, shared_home.workspace(), model=shared_home.script(reply(call), reply("done")))
    assert chat.run(f"depth {depth}.")["text"] == "done"
    before = chat.get()["messages"]
    shared.call("agentd/session/close", {"sessionId": chat.id})
    assert chat.get()["messages"] == before
    assert chat.run("and on", model=shared_home.script(reply("on we go")))["text"] == "on we go"


@pytest.fixture(scope="module")
def shared(shared_home: Home) -> Daemon:
    """A daemon for what does it no harm."""
    return shared_home.start("--allow-full")


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": ".", "n": 1e999}',
        '{"path": ".", "n": -1e999}',
        '{"path": ".", "n": 1' + "0" * 400 + "}",
        '{"path": ".", "n": 1' + "0" * 5000 + "}",
        '{"path": ".", "n": 1.' + "0" * 400 + "1}",
        '{"path": ".", "s": "\\ud800"}',
        '{"path": "\\u0000"}',
        '{"path": ".", "path": ".", "": {"": ""}}',
        '{"path": ".", "__proto__": {"a": 1}, "$ref": "#"}',
        "[" * 100_000,
    ],
    ids=["inf", "-inf", "1e400", "1e5000", "long", "surrogate", "nul", "twice", "names", "brackets"],
)
def test_odd_arguments_break_neither_the_run_nor_the_journal(
    shared_home: Home, shared: Daemon, arguments: str
) -> None:
    call: Json = {"type": "tool_call", "name": "list_directory", "rawArguments": arguments, "id": "call-1"}
    chat = Chat(shared, shared_home.workspace(), model=shared_home.script(reply(call), reply("done")))
    assert chat.run("odd")["text"] == "done"
    assert_well_formed(chat.notifications())
    before = chat.get()["messages"]
    shared.call("agentd/session/close", {"sessionId": chat.id})
    assert chat.get()["messages"] == before
    assert chat.run("and on", model=shared_home.script(reply("on we go")))["text"] == "on we go"


def test_a_workspace_that_is_gone_is_named_in_the_error(home: Home, daemon: Daemon) -> None:
    chat = Chat(daemon, home.workspace(), model=home.script(reply("one")))
    chat.run()
    shutil.rmtree(chat.root)
    error = daemon.refused("agentd/prompt", chat.prompt_params())
    assert (error["code"], error["data"]["kind"]) == (-32803, "outsideWorkspace")
    assert str(chat.root) in error["message"]
    assert len(chat.get()["messages"]) == 2


def test_sessions_of_a_removed_workspace_folder_are_closed(home: Home) -> None:
    root = home.workspace()
    daemon = home.start(folders=[root])
    chat = Chat(daemon, root, model=home.script(reply("so far", hang=True)))
    prompt = chat.start()
    chat.event("message_update")
    removed = {"added": [], "removed": [{"uri": root.as_uri(), "name": root.name}]}
    daemon.notify("workspace/didChangeWorkspaceFolders", {"event": removed})
    assert chat.result(prompt)["stopReason"] == "aborted"
    assert_well_formed(chat.notifications())
