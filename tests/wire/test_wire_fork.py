"""A session that goes on from a message of another one, which nothing happens to."""

from copy import copy
from pathlib import Path

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.rewinding import Author, edit, read, told, write
from wire.scripts import reply, tool

from agentd.sessions.journal_form import encode, record_of


@pytest.fixture
def author(daemon: Daemon, shared_home: Home) -> Author:
    author = Author(daemon, shared_home)
    author.does("one", write("one.txt", "1\n"))
    author.does("two", write("two.txt", "2\n"))
    return author


def journal(home: Home, author: Author) -> bytes:
    (path,) = home.data.rglob(f"{author.chat.id}.jsonl")
    return path.read_bytes()


def forked(author: Author, daemon: Daemon | None = None, **params: str) -> Author:
    """A fork of the session, made by the session's own daemon or by another one."""
    fork = copy(author)
    fork.chat = copy(author.chat)
    fork.chat.daemon = daemon or author.daemon
    made = fork.daemon.call("agentd/session/fork", {"sessionId": author.chat.id, **params})
    fork.chat.id = made["session"]["sessionId"]
    return fork


def test_a_fork_has_the_messages_of_its_parent_under_their_ids(author: Author) -> None:
    before = journal(author.home, author)
    parent = author.chat.get()
    fork = forked(author)
    got = fork.chat.get()
    assert got["messages"] == parent["messages"]
    session = got["session"]
    assert session["forkedFrom"] == {
        "sessionId": author.chat.id,
        "messageId": parent["messages"][-1]["messageId"],
    }
    assert (session["seq"], session["messageCount"]) == (1, len(parent["messages"]))
    assert (session["title"], session["workspaceUri"]) == (
        parent["session"]["title"],
        parent["session"]["workspaceUri"],
    )
    assert "usage" not in session
    introduced = fork.chat.event("session_changed")
    assert introduced["session"] == {**session, "updatedAt": introduced["session"]["updatedAt"]}
    assert journal(author.home, author) == before, "nothing happens to the parent"


def test_both_go_on_without_a_word_of_each_other(author: Author) -> None:
    fork = forked(author)
    author.does("three")
    fork.does("three", read("one.txt"), edit("one.txt", "1", "fork"))
    assert author.texts() == ["do one", "done one", "do two", "done two", "do three", "done three"]
    assert len(fork.chat.get()["messages"]) == 14
    assert "do one" in str(author.home.model_requests("do three")[-1])
    for each in (author, fork):
        assert_well_formed(each.chat.notifications())
        numbers = [event["seq"] for event in each.chat.notifications() if "seq" in event]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_fork_from_a_message_ends_with_it_and_the_results_of_its_calls(author: Author) -> None:
    messages = author.chat.get()["messages"]
    fork = forked(author, messageId=messages[3]["messageId"])
    assert fork.chat.get()["messages"] == messages[:4]
    calling = forked(author, messageId=messages[1]["messageId"])
    assert [each["role"] for each in calling.chat.get()["messages"]] == ["user", "assistant", "tool_result"]
    assert author.refused("fork", messageId="none")["data"]["kind"] == "invalidParams"


def test_a_fork_of_a_busy_session_ends_with_its_last_whole_turn(author: Author) -> None:
    wait = tool("bash", {"command": "while ! [ -e go ]; do sleep 0.02; done"})
    model = author.home.script(reply(read("one.txt")), reply(wait), reply("end"))
    running = author.chat.start("do busy", promptId="busy", model=model)
    author.chat.event("tool_execution_start", toolName="bash")
    fork = forked(author)
    messages = fork.chat.get()["messages"]
    assert [each["role"] for each in messages[-3:]] == ["user", "assistant", "tool_result"]
    fork.does("on")
    assert author.chat.get()["session"]["state"] == "running"
    (author.root / "go").touch()
    assert author.chat.result(running)["text"] == "end"


def test_a_fork_of_an_empty_session_is_an_empty_session(daemon: Daemon, shared_home: Home) -> None:
    fork = forked(Author(daemon, shared_home))
    assert fork.chat.get()["messages"] == []
    fork.does("one")


def test_a_session_that_another_process_holds_can_be_forked(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("one.txt", "1\n"))
    later = home.start("--allow-full")
    fork = forked(author, later)
    assert fork.texts() == ["do one", "done one"]
    fork.does("two")
    author.does("two")


def test_a_fork_is_the_same_after_a_restart_and_is_listed_at_once(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("one.txt", "1\n"))
    fork = forked(author)
    expected = fork.chat.get()
    author.daemon.kill()
    daemon = home.start("--allow-full")
    fork.moved_to(daemon)
    listed = daemon.call("agentd/session/list")["sessions"]
    assert expected["session"] in listed
    assert fork.chat.get() == expected
    replay = fork.ask("attach")
    assert [event["event"]["type"] for event in replay["events"]] == ["session_changed"]
    fork.does("two")
    daemon.kill()
    fork.moved_to(home.start("--allow-full"))
    assert fork.texts() == ["do one", "done one", "do two", "done two"]
    page = fork.ask("get", limit=2)
    assert page["hasMore"]
    assert page["session"]["messageCount"] == 6


def test_the_messages_of_a_parent_can_be_rewound_in_a_fork(author: Author) -> None:
    fork = forked(author)
    fork.does("three", write("three.txt", "3\n"))
    result = fork.rewind("two", "both")
    assert told(result) == {"three.txt": "deleted"}, "what the parent did to files is the parent's"
    assert fork.texts() == ["do one", "done one"]
    assert author.texts() == ["do one", "done one", "do two", "done two"]
    fork.undo()
    assert fork.texts()[-1] == "done three"
    assert told(author.rewind("one", "files")) == {"one.txt": "deleted", "two.txt": "deleted"}


def test_what_providers_want_back_goes_with_a_fork(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one")
    (path,) = home.data.rglob(f"{author.chat.id}.jsonl")
    author.daemon.kill()
    with_provider_data(path)
    author.moved_to(home.start("--allow-full"))
    fork = forked(author)
    (copy,) = home.data.rglob(f"{fork.chat.id}.jsonl")
    assert b'"providerData":{"signature":"sig-1"}' in copy.read_bytes()
    assert "sig-1" not in str(fork.chat.get())


def with_provider_data(path: Path) -> None:
    """Give the journal's answer what a provider would have signed."""
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        record = record_of(line)
        assert record is not None
        event: Json = record.get("event") or {}
        if event.get("type") == "message_end" and event.get("message", {}).get("role") == "assistant":
            lines[number] = encode({**record, "providerData": {"signature": "sig-1"}})
    path.write_bytes(b"".join(lines))


def test_a_fork_of_a_session_that_was_summed_up_is_whole_and_asks_with_the_summary(author: Author) -> None:
    author.does("three")
    author.ask("update", model=author.home.script(reply("a summary of one and two")))
    assert author.ask("compact")["outcome"] == "compacted"
    messages = author.chat.get()["messages"]
    fork = forked(author)
    assert fork.chat.get()["messages"] == messages
    fork.does("four-fork")
    asked = str(author.home.model_requests("do four-fork")[-1]["messages"])
    assert "a summary of one and two" in asked
    early = forked(author, messageId=messages[3]["messageId"])
    early.does("five-fork")
    asked = str(author.home.model_requests("do five-fork")[-1]["messages"])
    assert "a summary of one and two" not in asked
    assert "do one" in asked
    assert fork.rewind("one", "conversation")["removedMessageIds"][: len(messages)] == [
        message["messageId"] for message in messages
    ]
    fork.does("six-fork")
    asked = str(author.home.model_requests("do six-fork")[-1]["messages"])
    assert "a summary of one and two" not in asked


def test_a_fork_is_exported_diffed_and_deleted_by_itself(author: Author) -> None:
    fork = forked(author)
    fork.does("three", write("three.txt", "3\n"))
    assert [file["action"] for file in fork.ask("diff")["files"]] == ["created"]
    assert len(author.ask("diff")["files"]) == 2
    text = fork.ask("export")["text"]
    assert "do one" in text
    assert "do three" in text
    assert "do three" not in author.ask("export")["text"]
    uri = (author.root / "one.txt").as_uri()
    assert fork.ask("original", promptId="one", uri=uri) == {"text": "1\n"}, "the fork has not changed it"
    assert author.ask("original", promptId="one", uri=uri) == {"text": None}
    fork.ask("delete")
    for what in ("get", "diff", "export", "fork", "delete"):
        assert fork.refused(what)["data"]["kind"] == "sessionNotFound"
    assert author.texts() == ["do one", "done one", "do two", "done two"]
    assert told(author.rewind("two")) == {"two.txt": "deleted"}
