"""Queue, attach, export and delete as clients see them, and what happens to sessions from outside.

The fault rows F5, F6, F7, F9, E8 and E9 of the plan are here; J7 is the race of a cancel with the end.
"""

import os
import random
import time
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json, request
from wire.home import Home
from wire.order import LIVE, assert_well_formed, shape
from wire.processes import until
from wire.runs import chat_with
from wire.scripts import reply, text, tool

from agentd.sessions.journal_form import encode, record_of

PROMPT = "agentd/prompt"


def journal_of(home: Home, chat: Chat) -> Path:
    (path,) = home.data.rglob(f"{chat.id}.jsonl")
    return path


def busy_chat(daemon: Daemon, home: Home, *then: Json) -> tuple[Chat, int]:
    """A session whose first prompt runs a command until there is a file `go`; gives its request."""
    wait = tool("bash", {"command": "while ! [ -e go ]; do sleep 0.02; done"}, "wait")
    chat = chat_with(daemon, home, reply(wait), *then)
    first = chat.start("first", promptId="first")
    chat.event("tool_execution_start")
    return chat, first


def release(chat: Chat) -> None:
    (chat.root / "go").touch()


# --- while another prompt runs --------------------------------------------------------------------


def test_prompts_queue_steer_and_are_told_how_they_were_taken(daemon: Daemon, shared_home: Home) -> None:
    chat, first = busy_chat(daemon, shared_home, reply("with the steer"), reply("of the queue"))
    accepted = [
        chat.run("later", promptId="queued", whenBusy="queue", wait="accepted"),
        chat.run("by the way", promptId="steer", whenBusy="steer", wait="accepted"),
    ]
    assert [each["outcome"] for each in accepted] == ["queued", "steered"]
    steer = chat.start("by the way", promptId="steer", whenBusy="steer")
    got = chat.get()
    assert [(q["promptId"], q["kind"], q["prompt"]) for q in got["queue"]] == [
        ("queued", "queue", [text("later")]),
        ("steer", "steer", [text("by the way")]),
    ]
    release(chat)
    assert chat.result(first)["text"] == "with the steer"
    told = chat.result(steer)
    assert (told["promptId"], told["outcome"], told["runPromptId"]) == ("steer", "steered", "first")
    assert (told["text"], told["stopReason"]) == ("with the steer", "stop")
    assert chat.run("later", promptId="queued")["text"] == "of the queue"
    assert chat.get()["queue"] == []
    assert_well_formed(chat.notifications())


def test_a_cancel_gives_the_queue_back_in_the_order_of_the_protocol(
    daemon: Daemon, shared_home: Home
) -> None:
    chat, first = busy_chat(daemon, shared_home)
    queued = chat.start("later", promptId="queued", whenBusy="queue")
    chat.event("queue_changed")
    since = len(daemon.messages)
    answer = chat.cancel()
    assert [each["promptId"] for each in answer["restored"]] == ["queued"]
    never = chat.result(queued)
    assert (never["stopReason"], never["turns"], never["text"], never["messageId"]) == (
        "aborted",
        0,
        "",
        None,
    )
    assert shape(chat.notifications("first"))[-2:] == ["queue_changed", "agent_end(aborted)"]
    ids = [message["id"] for message in daemon.messages[since:] if "method" not in message]
    assert ids.index(first) < len(ids) - 1, "the prompt is answered before the cancel"


def test_an_interruption_goes_before_the_queue(daemon: Daemon, shared_home: Home) -> None:
    chat, first = busy_chat(daemon, shared_home, reply("now"), reply("later"))
    queued = chat.start("later", promptId="queued", whenBusy="queue")
    chat.event("queue_changed")
    assert chat.run("now", promptId="urgent", whenBusy="interrupt")["text"] == "now"
    assert chat.result(first)["stopReason"] == "aborted"
    assert chat.result(queued)["text"] == "later"
    assert_well_formed(chat.notifications())


def test_the_progress_of_a_queued_prompt_begins_with_its_run(daemon: Daemon, shared_home: Home) -> None:
    chat, _ = busy_chat(daemon, shared_home, reply("one"), reply("two"))
    queued = chat.start("later", whenBusy="queue", workDoneToken="of-the-queue")
    chat.event("queue_changed")

    def is_progress(message: Json) -> bool:
        return message.get("method") == "$/progress" and message["params"]["token"] == "of-the-queue"

    assert daemon.count(is_progress) == 0
    release(chat)
    assert chat.result(queued)["text"] == "two"
    kinds = [m["params"]["value"]["kind"] for m in daemon.messages if is_progress(m)]
    assert (kinds[0], kinds[-1]) == ("begin", "end")


def test_a_cancel_that_races_with_the_end_gives_one_end(daemon: Daemon, shared_home: Home) -> None:
    """Two hundred tries, each with a prompt behind the cancel, which it must not touch (CAN-09)."""
    chance = random.Random(7)
    chat = chat_with(daemon, shared_home, *[reply("x", chunkSize=1)] * 401)
    for number in range(200):
        prompt = chat.start("go", promptId=f"race-{number}")
        time.sleep(chance.random() * 0.004)
        cancel, following = f"cancel-{number}", f"after-{number}"
        daemon.send(
            request(cancel, "agentd/cancel", {"sessionId": chat.id, "promptId": f"race-{number}"}),
            request(following, PROMPT, chat.prompt_params("on", promptId=following, whenBusy="queue")),
        )
        state = daemon.response(cancel)["result"]["state"]
        result = chat.result(prompt)
        assert (state, result["stopReason"]) in (("cancelled", "aborted"), ("notRunning", "stop"))
        assert daemon.response(following)["result"]["stopReason"] == "stop"
    assert_well_formed(chat.notifications())


# --- attach ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_a_client_that_comes_back_gets_the_rest_and_then_what_follows(home: Home, end: str) -> None:
    first = home.start("--allow-full")
    chat, _ = busy_chat(first, home, reply("unsaid"))
    seen = [params for params in chat.notifications() if params["event"]["type"] not in LIVE]
    if end == "kill":
        first.kill()
    else:
        first.close_stdin()
        first.exit_code()
        seen = seen[:-2]
    later = home.start("--allow-full")
    chat.daemon = later
    told = later.call("agentd/session/attach", {"sessionId": chat.id, "afterSeq": seen[-1]["seq"]})
    assert (told["kind"], told["pending"]) == ("replay", [])
    whole = [*seen, *told["events"]]
    assert_well_formed(whole)
    assert whole[-1]["event"]["stopReason"] == "interrupted"
    assert not chat.notifications(), "the replay tells it, and nothing else does"
    params = {"sessionId": chat.id, "prompt": "on", "model": home.script(reply("here"))}
    assert later.call(PROMPT, params)["text"] == "here"
    assert_well_formed([*whole, *chat.notifications()])


def test_a_second_view_attaches_to_an_open_question(home: Home) -> None:
    daemon = home.start()
    ask = reply(tool("bash", {"command": "echo x"}, "call"))
    chat = Chat(daemon, home.workspace(), model=home.script(ask, reply("done")))
    prompt = chat.start()
    asked = daemon.asked("agentd/permission/request")
    told = daemon.call("agentd/session/attach", {"sessionId": chat.id})
    (pending,) = told["pending"]
    assert pending["requestId"] == asked["params"]["requestId"]
    answer = {"requestId": pending["requestId"], "optionId": "allow_once"}
    assert daemon.call("agentd/permission/respond", answer) == {}
    assert chat.result(prompt)["text"] == "done"


# --- from outside ---------------------------------------------------------------------------------


def changed(lines: list[bytes], number: int, how: str) -> bytes:
    """A journal whose line of this number is bad."""
    bad = {
        "nul": b"\0" * len(lines[number]),
        "garbage": b"\xff\xfe garbage \x1b[2J\n",
        "check": lines[number].replace(b"one answer", b"two answer"),
    }[how]
    return b"".join([*lines[:number], bad, *lines[number + 1 :]])


@pytest.mark.parametrize("how", ["nul", "garbage", "check"])
def test_a_bad_line_costs_itself_and_user_and_model_are_told(home: Home, how: str) -> None:
    daemon = home.start()
    chat = chat_with(daemon, home, reply("one answer"), reply("another answer"), mode="edit")
    chat.run("first")
    chat.run("second")
    daemon.kill()
    path = journal_of(home, chat)
    lines = path.read_bytes().splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if b"one answer" in line)
    path.write_bytes(changed(lines, number, how))
    later = home.start()
    chat.daemon = later
    listed = later.call("agentd/session/list")["sessions"]
    assert [each["sessionId"] for each in listed] == [chat.id]
    got = chat.get()
    assert [m["content"] for m in got["messages"]] == [
        [text("first")],
        [text("second")],
        [text("another answer")],
    ]
    following = {"sessionId": chat.id, "prompt": "what was lost", "model": home.script(reply("on"))}
    assert later.call(PROMPT, following)["text"] == "on"
    told = later.call("agentd/session/attach", {"sessionId": chat.id, "afterSeq": got["seq"] - 1})["events"]
    notices = [p["event"]["message"] for p in told if p["event"]["type"] == "notice"]
    assert [f"line {number + 1} " in each for each in notices] == [True]
    problems = later.call("agentd/status")["problems"]
    assert [chat.id in each["message"] for each in problems] == [True]
    (asked,) = home.model_requests("what was lost")
    assert "were lost" in asked["system"]


def test_a_session_of_a_newer_agentd_is_read_and_not_written(home: Home) -> None:
    daemon = home.start()
    chat = chat_with(daemon, home, reply("an answer"), mode="edit")
    chat.run("first")
    daemon.kill()
    path = journal_of(home, chat)
    lines = path.read_bytes().splitlines(keepends=True)
    header = record_of(lines[0])
    assert header is not None
    path.write_bytes(b"".join([encode({**header, "schema": 99, "minReader": 99}), *lines[1:]]))
    before = path.read_bytes()
    later = home.start()
    chat.daemon = later
    assert [each["sessionId"] for each in later.call("agentd/session/list")["sessions"]] == [chat.id]
    assert len(chat.get()["messages"]) == 2
    assert "an answer" in later.call("agentd/session/export", {"sessionId": chat.id})["text"]
    for method, more in (
        (PROMPT, {"prompt": "x"}),
        ("agentd/session/attach", {}),
        ("agentd/session/update", {}),
    ):
        error = later.refused(method, {"sessionId": chat.id, **more})
        assert error["data"]["kind"] == "unsupported"
        assert "update agentd" in error["message"]
    assert path.read_bytes() == before
    assert later.call("agentd/session/delete", {"sessionId": chat.id}) == {}
    assert later.call("agentd/session/list")["sessions"] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for the superuser")
def test_a_journal_that_cannot_be_written_can_be_read(home: Home) -> None:
    daemon = home.start()
    chat = chat_with(daemon, home, reply("an answer"), mode="edit")
    chat.run("first")
    daemon.kill()
    path = journal_of(home, chat)
    path.chmod(0o400)
    later = home.start()
    assert len(later.call("agentd/session/get", {"sessionId": chat.id})["messages"]) == 2
    assert later.refused(PROMPT, {"sessionId": chat.id, "prompt": "x"})["data"]["kind"] == "storage"
    assert later.serves()


def test_the_folder_of_sessions_may_go_while_they_are_open(home: Home) -> None:
    own = home.start()
    chat = chat_with(own, home, reply("one"), reply("two"), mode="edit")
    chat.run("first")
    (home.data / "sessions").rename(home.data / "elsewhere")
    assert own.call("agentd/session/list")["sessions"] != []
    assert own.refused("agentd/session/get", {"sessionId": "s_unknown"})["data"]["kind"] == "sessionNotFound"
    assert own.serves()


def test_two_editors_on_one_workspace_have_sessions_of_their_own(home: Home) -> None:
    root = home.workspace()
    one, two = home.start(), home.start()
    model = home.script(reply("x"))
    chats = [Chat(each, root, model=model) for each in (one, two)]
    assert [chat.run("go")["text"] for chat in chats] == ["x", "x"]
    assert chats[0].id != chats[1].id
    listed = {each["sessionId"]: each for each in one.call("agentd/session/list")["sessions"]}
    assert listed[chats[1].id]["lockedBy"] == two.pid
    assert "lockedBy" not in listed[chats[0].id]
    for method in ("agentd/session/delete", "agentd/session/attach", "agentd/queue/update"):
        params = {"sessionId": chats[1].id, **({"op": "clear"} if "queue" in method else {})}
        error = one.refused(method, params)
        assert (error["data"]["kind"], error["data"]["pid"]) == ("sessionLocked", two.pid)
        assert error["message"] == f"session locked by pid {two.pid}"
    two.kill()
    until(lambda: "lockedBy" not in str(one.call("agentd/session/list")), "the lock is free after a kill")
    assert one.call("agentd/session/attach", {"sessionId": chats[1].id})["kind"] == "replay"


def test_a_list_tells_what_other_editors_do_with_their_sessions(home: Home) -> None:
    one, two = home.start(), home.start("--allow-full")

    def state() -> tuple[str, int | None]:
        (session,) = one.call("agentd/session/list")["sessions"]
        return session["state"], session.get("lockedBy")

    chat, first = busy_chat(two, home, reply("done"), reply(tool("bash", {"command": "true"})), reply("x"))
    assert state() == ("running", two.pid)
    two.call("agentd/session/update", {"sessionId": chat.id, "title": "named meanwhile"})
    assert state() == ("running", two.pid)
    release(chat)
    chat.result(first)
    assert state() == ("idle", two.pid)
    chat.start("ask", promptId="asks", mode="ask")
    chat.event("permission_requested")
    assert state() == ("waiting", two.pid)
    two.call("agentd/cancel", {"sessionId": chat.id})
    assert state() == ("idle", two.pid)
    two.call("agentd/session/rewind", {"sessionId": chat.id, "promptId": "asks", "scope": "both"})
    assert state() == ("idle", two.pid)
    two.call("agentd/session/update", {"sessionId": chat.id, "title": "named again"})
    assert state() == ("idle", two.pid)


@pytest.mark.parametrize("size", [6_000, 300_000])
def test_a_list_tells_what_they_do_though_their_journals_grow(home: Home, size: int) -> None:
    """Of these the end alone is read: of the one no more than what was said beside the run, of the other no
    beginning of it, but the end of the run before."""
    one, two = home.start(), home.start("--allow-full")
    long = tool("bash", {"command": f": {'x' * 5_000}; while ! [ -e go ]; do sleep 0.02; done"}, "wait")
    more = [reply("x" * 60_000 + str(n), tool("bash", {"command": "true"})) for n in range(size // 60_000)]
    chat = chat_with(two, home, reply("done"), *more, reply(long), reply("x"))
    chat.run("before")
    second = chat.start("second", promptId="second")
    until(lambda: long["arguments"]["command"] in str(chat.get()["messages"]), "the command is called")
    two.call("agentd/session/update", {"sessionId": chat.id, "title": "named meanwhile"})
    (session,) = one.call("agentd/session/list")["sessions"]
    assert session["state"] == "running"
    release(chat)
    chat.result(second)
    (session,) = one.call("agentd/session/list")["sessions"]
    assert session["state"] == "idle"


@pytest.mark.parametrize("count", [6, pytest.param(20, marks=pytest.mark.nightly)])
def test_a_storm_of_window_reloads_leaves_nothing_behind(home: Home, count: int) -> None:
    """So many daemons are started at once on one workspace; each attaches, and is killed or left."""
    root = home.workspace()
    first = home.start()
    chat = Chat(first, root, model=home.script(*[reply("x")] * 3))
    chat.run("go")
    seq = chat.get()["seq"]
    first.kill()
    daemons = [home.spawn() for _ in range(count)]
    for daemon in daemons:
        daemon.initialize()
    told = [
        daemon.response(daemon.request("agentd/session/attach", {"sessionId": chat.id})) for daemon in daemons
    ]
    kinds = [
        answer["result"]["kind"] if "result" in answer else answer["error"]["data"]["kind"] for answer in told
    ]
    assert sorted(kinds) == ["replay"] + ["sessionLocked"] * (count - 1)
    for number, daemon in enumerate(daemons):
        if number % 2:
            daemon.kill()
        else:
            daemon.close_stdin()
            assert daemon.exit_code() == 0
    last = home.start()
    answer = last.call("agentd/session/attach", {"sessionId": chat.id})
    assert (answer["kind"], answer["seq"], len(answer["events"])) == ("replay", seq, seq)
    last.close_stdin()
    last.exit_code()
    left = sorted(path.name for path in journal_of(home, chat).parent.iterdir())
    assert left == [f"{chat.id}.jsonl"]
