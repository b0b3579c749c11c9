"""A disk that is full, a journal that is damaged, a folder that is gone: said clearly, and nothing lost."""

import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from wire.harness import Chat, Daemon, Home, Json, reply, tool
from wire.order import assert_well_formed

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


@pytest.mark.parametrize("room", [0, 40, 300, 700])
def test_a_full_disk_is_told_and_the_session_goes_on_when_there_is_room_again(
    home: Home, daemon: Daemon, room: int
) -> None:
    model = home.script(*(reply(f"answer {number} " + "x" * 200) for number in range(5)))
    chat = Chat(daemon, home.workspace(), model=model)
    chat.run("first words")
    fill_disk(daemon, journal_of(home, chat), room)
    answer = daemon.response(chat.start("second words", promptId="full"))
    if "error" in answer:
        assert (answer["error"]["code"], answer["error"]["data"]["kind"]) == (-32803, "storage")
    else:
        result = answer["result"]
        assert (result["stopReason"], result["error"]["kind"]) == ("error", "storage")
    assert daemon.serves()
    free_disk(daemon)
    assert chat.run("third words", model=home.script(reply("room again")))["text"] == "room again"
    assert_well_formed(chat.notifications())
    assert "first words" in json.dumps(home.model_requests("third words"))
    daemon.kill()
    later = home.start()
    got = later.call("agentd/session/get", {"sessionId": chat.id})
    assert got["messages"][-1]["content"][0]["text"] == "room again"


def test_a_tool_does_not_run_when_its_start_cannot_be_journaled(home: Home, daemon: Daemon) -> None:
    call = tool("bash", {"command": "echo ran > ran.txt", "timeout_ms": 1000}, "call-1")
    model = home.script(reply("x" * 200, call, chunkSize=1, delayMs=5))
    chat = Chat(daemon, home.workspace(), model=model, mode="full")
    prompt = chat.start("run it")
    chat.event("message_update")
    fill_disk(daemon, journal_of(home, chat))
    answer = daemon.response(prompt)
    assert "error" in answer or answer["result"]["stopReason"] == "error"
    assert not (chat.root / "ran.txt").exists()
    free_disk(daemon)
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


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_journal_harms_no_other_session(
    home: Home, daemon: Daemon, damage: Callable[[bytes], bytes]
) -> None:
    model = home.script(reply("one"), reply("two"))
    broken, whole = (Chat(daemon, home.workspace(), model=model) for _ in range(2))
    broken.run("hurt")
    whole.run("unhurt")
    daemon.kill()
    path = journal_of(home, broken)
    path.write_bytes(damage(path.read_bytes()))
    later = home.start()
    listed = {session["sessionId"] for session in later.call("agentd/session/list")["sessions"]}
    assert whole.id in listed
    answer = later.response(later.request("agentd/session/get", {"sessionId": broken.id}))
    if "error" in answer:
        assert answer["error"]["code"] == -32803
        assert answer["error"]["data"]["kind"] in ("storage", "sessionNotFound", "unsupported")
    following: Json = {"sessionId": whole.id, "prompt": "on", "model": home.script(reply("still here"))}
    assert later.call("agentd/prompt", following)["text"] == "still here"


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
