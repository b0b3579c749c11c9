"""What stays when prompts, cancels and sessions come and go, and what does not: the daemon at length."""

import itertools
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.questions import ASK, option
from wire.rewinding import bash
from wire.runs import result_texts, run_events
from wire.scripts import reply, text
from wire.subagents import Parent, job, of

COMMAND = "echo ran >> ran.txt"


def asked(chat: Chat) -> list[Json]:
    return [
        m
        for m in list(chat.daemon.messages)
        if m.get("method") == ASK and m["params"]["sessionId"] == chat.id
    ]


def test_a_cancel_costs_neither_permissions_nor_folder_nor_transcript(
    daemon: Daemon, shared_home: Home
) -> None:
    """A cancel is what the user does, and no failure: all that was agreed on still holds behind it."""
    root = shared_home.workspace()
    (root / "sub").mkdir()
    script = [reply(bash("cd sub")), reply(bash(COMMAND)), reply("half", hang=True)]
    chat = Chat(daemon, root, model=shared_home.script(*script), mode="ask")
    prompt = chat.start("work")
    for number in range(2):
        until(lambda count=number: len(asked(chat)) > count, "it asks")  # type: ignore[misc]
        question = asked(chat)[number]
        daemon.answer(question, {"optionId": option(question, "allow_always")})
    until((root / "sub" / "ran.txt").exists, "it ran")
    until(
        lambda: chat.get().get("partial", {}).get("message", {}).get("content") == [text("half")], "it speaks"
    )
    assert chat.cancel()["state"] == "cancelled"
    assert chat.result(prompt)["stopReason"] == "aborted"
    before = chat.get()["messages"]
    again = shared_home.script(reply(bash(COMMAND)), reply("done"))
    assert chat.run("go on", model=again)["text"] == "done"
    assert len(asked(chat)) == 2, "nothing is asked again"
    assert (root / "sub" / "ran.txt").read_text() == "ran\n" * 2, "in the folder where it was"
    assert chat.get()["messages"][: len(before)] == before


def test_an_answer_for_another_sessions_question_answers_that_one_alone(
    daemon: Daemon, shared_home: Home
) -> None:
    chats = [
        Chat(
            daemon,
            shared_home.workspace(),
            model=shared_home.script(reply(bash(COMMAND)), reply("done")),
            mode="ask",
        )
        for _ in range(2)
    ]
    prompts = [chat.start() for chat in chats]
    first, second = (chat.event("permission_requested") for chat in chats)
    params = {"sessionId": chats[0].id, "requestId": second["requestId"]}
    allow = next(o["optionId"] for o in second["options"] if o["kind"] == "allow_once")
    daemon.call("agentd/permission/respond", {**params, "optionId": allow})
    assert chats[1].result(prompts[1])["text"] == "done"
    assert [each["requestId"] for each in chats[0].get()["pending"]] == [first["requestId"]]
    assert not (chats[0].root / "ran.txt").exists()
    chats[0].cancel()
    chats[0].result(prompts[0])


@pytest.mark.parametrize("how", ["open", "restarted"])
def test_a_session_whose_folder_was_moved_writes_nowhere(home: Home, how: str) -> None:
    """Neither where the folder was, which would be made anew, nor in the folder that it is by now."""
    daemon = home.start("--allow-full")
    script = home.script(reply("one"), reply(bash(COMMAND)), reply("done"))
    chat = Chat(daemon, home.workspace(), model=script, mode="full")
    chat.run()
    moved = chat.root.with_name("moved")
    chat.root.rename(moved)
    if how == "restarted":
        daemon.kill()
        chat.daemon = daemon = home.start("--allow-full", folders=[moved])
    error = daemon.refused("agentd/prompt", chat.prompt_params())
    assert error["data"]["kind"] == "outsideWorkspace"
    assert str(chat.root) in error["message"]
    assert not chat.root.exists()
    assert list(moved.iterdir()) == []
    assert len(chat.get()["messages"]) == 2, "it is read all the same"
    fresh = {"workspaceUri": moved.as_uri(), "prompt": "anew", "model": home.script(reply("here"))}
    result = daemon.call("agentd/prompt", fresh)
    assert (result["text"], result["sessionId"] == chat.id) == ("here", False)
    shutil.rmtree(moved)


def held(daemon: Daemon) -> tuple[int, int]:
    """How many descriptors and tasks of the system the daemon has."""
    process = Path("/proc", str(daemon.process.pid))
    return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))


def test_sessions_that_are_closed_leave_no_descriptor_and_no_task(home: Home) -> None:
    daemon = home.start("--allow-full")
    root = home.workspace()
    model = home.script(reply(bash("true")), reply("done"))

    def round_trip() -> None:
        chat = Chat(daemon, root, model=model, mode="full")
        chat.run()
        daemon.call("agentd/session/close", {"sessionId": chat.id})

    for _ in range(3):
        round_trip()
    descriptors, tasks = held(daemon)
    for _ in range(30):
        round_trip()
    assert held(daemon)[0] <= descriptors
    assert held(daemon)[1] <= tasks + 2, "workers for what blocks may come and go"
    assert daemon.call("agentd/status")["sessions"] == []


@pytest.fixture
def few_files() -> Iterator[int]:
    """The limit of open files that macOS has by default, for what is started in the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    yield 256
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_sessions_are_open_than_a_process_may_have_files_by_default(home: Home, few_files: int) -> None:
    daemon = home.start("--allow-full")
    root = home.workspace()
    for _ in range(few_files + 10):
        daemon.call("agentd/session/new", {"workspaceUri": root.as_uri()})
    chat = Chat(daemon, root, model=home.script(reply(bash("ulimit -n")), reply("done")), mode="full")
    assert chat.run()["text"] == "done"
    assert str(few_files) in result_texts(run_events(chat))[0], "a command gets what the daemon was given"


def first_free(daemon: Daemon) -> int:
    """The number that the next descriptor of the daemon gets: numbers are limited, not how many there are."""
    taken = {int(each.name) for each in Path("/proc", str(daemon.pid), "fd").iterdir()}
    return next(number for number in itertools.count() if number not in taken)


def test_a_daemon_that_can_open_no_more_files_says_what_helps(home: Home) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    daemon = home.start()
    daemon.call("agentd/session/new", {"workspaceUri": home.workspace().as_uri()})
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (first_free(daemon), hard))
    error = daemon.refused("agentd/session/new", {"workspaceUri": home.workspace().as_uri()})
    assert error["data"]["kind"] == "storage"
    assert "Close sessions" in error["message"]
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (soft, hard))
    daemon.call("agentd/session/new", {"workspaceUri": home.workspace().as_uri()})


def switches(daemon: Daemon) -> int:
    """How often the daemon has waited for something, in all of its threads."""
    found = 0
    for status in Path("/proc", str(daemon.process.pid), "task").glob("*/status"):
        lines = status.read_text().splitlines()
        found += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return found


@pytest.mark.parametrize("after", ["an answer", "a cancel", "sub-agents"])
def test_a_daemon_with_nothing_to_do_does_nothing(home: Home, after: str) -> None:
    """It wakes up no more than about once in a second, whatever it did before."""
    daemon = home.start("--allow-full", process_id=os.getpid())
    if after == "sub-agents":
        Parent(daemon, home, [job("a")], of("a", reply("ok"))).run()
    else:
        chat = Chat(daemon, home.workspace(), model=home.script(reply("x", hang=after == "a cancel")))
        prompt = chat.start()
        if after == "a cancel":
            chat.event("message_update")
            chat.cancel()
        chat.result(prompt)
    assert daemon.serves()
    time.sleep(1)  # what it still has to write to the disk
    before = switches(daemon)
    time.sleep(4)
    assert switches(daemon) - before <= 8


def test_what_a_library_prints_is_no_frame(home: Home) -> None:
    """Once the daemon runs, what is written to stdout by whomever goes to stderr."""
    libraries, go = home.path / "libraries", home.path / "go"
    libraries.mkdir()
    (libraries / "sitecustomize.py").write_text(
        "import os, threading, time\n"
        "def chatter():\n"
        f"    while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "    os.write(1, b'noise of a library\\n')\n"
        "    print('and more of it', flush=True)\n"
        "threading.Thread(target=chatter, daemon=True).start()\n"
    )
    daemon = home.spawn(PYTHONPATH=str(libraries))
    daemon.initialize()
    go.touch()
    until(lambda: b"and more of it" in daemon.errors, "it was printed")
    assert b"noise of a library" in daemon.errors
    assert daemon.serves()
    assert daemon.stray == b""


def test_what_costs_time_to_import_is_not_imported_to_tell_a_version() -> None:
    """And so neither before the answer to `initialize`, which the same few modules give."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agentd", "--version"], capture_output=True, check=True
    ).stderr.decode()
    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in told.splitlines() if "|" in line}
    assert "agentd" in imported
    heavy = {"anyio", "asyncio", "httpx", "lsprotocol", "PIL", "pydantic", "pygls", "ssl", "yaml"}
    assert imported & heavy == set()
