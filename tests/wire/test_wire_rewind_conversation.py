"""Messages taken back to before a prompt: what reads the session, what goes on in it, what comes later."""

import json

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.rewinding import Author, bash, edit, read, told, write
from wire.scripts import reply, tool


@pytest.fixture
def author(daemon: Daemon, shared_home: Home) -> Author:
    author = Author(daemon, shared_home)
    author.does("one", write("one.txt", "1\n"))
    author.does("two", write("two.txt", "2\n"))
    return author


def asked_about(author: Author, about: str) -> str:
    """The messages of the last request to the model that says this, as text."""
    return json.dumps(author.home.model_requests(about)[-1]["messages"])


def test_messages_from_a_prompt_on_leave_readings_and_requests(author: Author) -> None:
    ids = [message["messageId"] for message in author.chat.get()["messages"]]
    result = author.rewind("two", "conversation")
    assert result == {"files": [], "removedMessageIds": ids[4:]}
    got = author.chat.get()
    assert [message["messageId"] for message in got["messages"]] == ids[:4]
    assert got["session"]["messageCount"] == 4
    assert author.files() == {"one.txt": "1\n", "two.txt": "2\n"}
    assert author.chat.event("session_rewound")["removedMessageIds"] == ids[4:]
    author.does("three", read("one.txt"))
    request = asked_about(author, "do three")
    assert "do one" in request
    assert "do two" not in request
    assert author.texts() == ["do one", "done one", "do three", "done three"]
    assert_well_formed(author.chat.notifications())


def test_files_and_messages_go_back_together_and_come_again_together(author: Author) -> None:
    messages, files = author.chat.get()["messages"], author.files()
    result = author.rewind("one", "both")
    assert told(result) == {"one.txt": "deleted", "two.txt": "deleted"}
    assert result["removedMessageIds"] == [message["messageId"] for message in messages]
    assert (author.chat.get()["messages"], author.files()) == ([], {})
    undone = author.undo()
    assert undone["removedMessageIds"] == []
    assert undone["restoredMessageIds"] == result["removedMessageIds"]
    assert (author.chat.get()["messages"], author.files()) == (messages, files)
    event = author.chat.event("session_rewound", undo=True)
    assert event["restoredMessageIds"] == result["removedMessageIds"]
    again = author.undo()
    assert again == result
    assert (author.chat.get()["messages"], author.files()) == ([], {})
    author.undo()
    assert author.rewind("two", "both")["removedMessageIds"] == result["removedMessageIds"][4:]


def test_a_conversation_that_went_on_is_not_undone_into(author: Author) -> None:
    author.rewind("two", "both")
    author.does("three")
    error = author.refused("rewind", undo=True)
    assert error["data"]["kind"] == "invalidParams"
    assert author.texts() == ["do one", "done one", "do three", "done three"]


def test_a_prompt_that_is_gone_cannot_be_gone_back_to_until_that_is_undone(author: Author) -> None:
    author.rewind("one", "both")
    for scope in ("files", "conversation", "both"):
        error = author.refused("rewind", promptId="two", scope=scope)
        assert (error["data"]["kind"], "hint" in error["data"]) == ("promptNotFound", True)
    author.undo()
    assert told(author.rewind("two", "both")) == {"two.txt": "deleted"}


def test_after_a_rewind_of_files_alone_a_later_prompt_stands_for_the_files_before_it(author: Author) -> None:
    author.does("three", read("two.txt"), edit("two.txt", "2", "3"))
    author.rewind("one", "files")
    assert author.files() == {}
    assert told(author.rewind("three", "files")) == {"one.txt": "created", "two.txt": "created"}
    assert author.files() == {"one.txt": "1\n", "two.txt": "2\n"}


def test_ids_of_rewound_prompts_stay_used_and_give_their_result(author: Author) -> None:
    author.rewind("two", "both")
    again = author.chat.run("do two", promptId="two")
    assert again["text"] == "done two"
    assert author.files() == {"one.txt": "1\n"}
    asked = {"sessionId": author.chat.id, "promptId": "two", "prompt": "something else"}
    assert author.daemon.refused("agentd/prompt", asked)["data"]["kind"] == "invalidParams"


def test_the_to_do_list_goes_back_with_the_messages_that_made_it(author: Author) -> None:
    def todo(text: str) -> Json:
        return tool("todo_write", {"items": [{"text": text, "status": "pending"}]})

    author.does("three", todo("first"))
    author.does("four", todo("second"))
    assert [item["text"] for item in author.chat.get()["todo"]] == ["second"]
    since = len(author.daemon.messages)
    author.rewind("four", "conversation")
    assert [item["text"] for item in author.chat.get()["todo"]] == ["first"]
    assert [item["text"] for item in author.chat.event("todo_changed", since)["items"]] == ["first"]
    author.undo()
    assert [item["text"] for item in author.chat.get()["todo"]] == ["second"]


def test_the_model_has_to_read_again_what_it_read_in_messages_that_are_gone(author: Author) -> None:
    author.rewind("two", "conversation")
    author.does("three", tool("edit_file", {"file_path": "one.txt", "old_string": "1", "new_string": "x"}))
    assert author.files()["one.txt"] == "1\n"


def test_what_was_rewound_is_the_same_after_a_restart_however_it_is_read(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("one.txt", "1\n"))
    author.does("two", write("two.txt", "2\n"))
    author.rewind("two", "both")
    expected = author.chat.get()
    author.daemon.kill()
    author.moved_to(home.start("--allow-full"))
    (listed,) = author.daemon.call("agentd/session/list")["sessions"]
    assert listed == expected["session"]
    assert author.chat.get() == expected
    assert author.texts() == ["do one", "done one"]
    author.undo()
    assert author.texts() == ["do one", "done one", "do two", "done two"]
    author.undo()
    author.does("three")
    author.daemon.kill()
    author.moved_to(home.start("--allow-full"))
    assert author.texts() == ["do one", "done one", "do three", "done three"]
    (listed,) = author.daemon.call("agentd/session/list")["sessions"]
    assert listed["messageCount"] == 6
    page = author.ask("get", limit=3)
    assert [message["role"] for message in page["messages"]] == ["assistant", "user", "assistant"]
    assert page["hasMore"]
    assert "do two" not in author.ask("export")["text"]


def test_a_replay_tells_the_rewind_in_its_place(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("one.txt", "1\n"))
    author.does("two", write("two.txt", "2\n"))
    author.rewind("two", "both")
    author.undo()
    author.rewind("one", "conversation")
    author.does("three")
    told_live = [event for event in author.chat.notifications() if "seq" in event]
    author.daemon.kill()
    author.moved_to(home.start("--allow-full"))
    replay = author.ask("attach")
    assert replay["kind"] == "replay"
    assert replay["events"] == told_live
    numbers = [event["seq"] for event in replay["events"]]
    assert numbers == list(range(1, len(numbers) + 1)), "seq never goes back"
    kinds = [event["event"]["type"] for event in replay["events"]]
    assert kinds.count("session_rewound") == 3


def steered(author: Author) -> None:
    """Run prompt `first`, which writes two files, with `steer` said in between, which adds to one of them."""
    go = author.root.with_name(f"{author.root.name}-go")
    wait = bash(f"while ! [ -e {go} ]; do sleep 0.02; done")
    before = [write("first.txt", "1\n"), write("both.txt", "1\n")]
    after = [edit("both.txt", "1", "2"), bash("echo 3 >> both.txt"), write("second.txt", "2\n")]
    model = author.home.script(*map(reply, (*before, wait, *after)), reply("done first"))
    first = author.chat.start("do first", promptId="first", model=model)
    author.chat.event("tool_execution_start", toolName="bash")
    author.chat.run("do steer", promptId="steer", whenBusy="steer", wait="accepted")
    go.touch()
    author.chat.result(first)


def test_a_rewind_to_a_steer_goes_back_to_just_before_it_was_said(author: Author) -> None:
    steered(author)
    whole, files = author.chat.get(), author.files()
    assert files["both.txt"] == "2\n3\n"
    said = [message["messageId"] for message in whole["messages"]]
    place = next(n for n, m in enumerate(whole["messages"]) if m["content"][0].get("text") == "do steer")
    result = author.rewind("steer", "both")
    assert told(result) == {"both.txt": "changed", "second.txt": "deleted"}
    assert result["removedMessageIds"] == said[place:]
    assert author.chat.get()["messages"] == whole["messages"][:place]
    assert author.files() == {"one.txt": "1\n", "two.txt": "2\n", "first.txt": "1\n", "both.txt": "1\n"}
    author.undo()
    assert (author.chat.get()["messages"], author.files()) == (whole["messages"], files)
    author.undo()
    author.does("other", read("both.txt"))
    assert author.texts()[-3:] == ["do first", "do other", "done other"]
    assert_well_formed(author.chat.notifications())
    assert set(told(author.rewind("first", "both"))) == {"first.txt", "both.txt"}
    assert author.files() == {"one.txt": "1\n", "two.txt": "2\n"}


def test_a_steer_has_its_part_of_the_diff_of_its_run_and_an_original_of_its_own(author: Author) -> None:
    steered(author)
    both = (author.root / "both.txt").as_uri()
    names = [f["uri"].rsplit("/", 1)[1] for f in author.ask("diff", promptId="first")["files"]]
    assert names == ["both.txt", "first.txt", "second.txt"]
    names = [f["uri"].rsplit("/", 1)[1] for f in author.ask("diff", promptId="steer")["files"]]
    assert names == ["both.txt", "second.txt"]
    assert author.ask("original", promptId="steer", uri=both) == {"text": "1\n"}
    assert author.ask("original", promptId="first", uri=both) == {"text": None}


def test_a_steer_is_rewound_after_a_restart_and_in_a_fork_as_before(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    steered(author)
    dry = author.rewind("steer", "both", dryRun=True)
    fork = author.ask("fork")["session"]["sessionId"]
    asked = {"sessionId": fork, "promptId": "steer", "scope": "conversation"}
    removed = author.daemon.call("agentd/session/rewind", asked)["removedMessageIds"]
    assert removed == dry["removedMessageIds"]
    author.daemon.kill()
    author.moved_to(home.start("--allow-full"))
    assert author.rewind("steer", "both") == dry


def test_a_summary_of_what_is_gone_counts_no_more(author: Author) -> None:
    author.does("three")
    model = author.home.script(reply("a summary of one and two"))
    author.ask("update", model=model)
    outcome = author.ask("compact")
    if outcome["outcome"] != "compacted":
        pytest.skip("this history is too short to be summed up")
    author.does("four")
    assert "a summary of one and two" in asked_about(author, "do four")
    author.rewind("one", "conversation")
    author.does("five")
    assert "a summary of one and two" not in asked_about(author, "do five")
