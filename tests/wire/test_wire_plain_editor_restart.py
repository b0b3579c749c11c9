"""An editor without a plugin whose daemon was killed: it knows no session ids, and yet work goes on."""

import json
from pathlib import Path

import pytest
from wire.harness import Daemon
from wire.home import Home
from wire.processes import until
from wire.scripts import reply, tool
from wire.test_wire_kill import assert_request_is_valid
from wire.test_wire_plain_editor import PLAIN, execute, message, plain_editor, refused, take_progress


def again(home: Home, root: Path, *responses: object) -> Daemon:
    """Another daemon for the same folder, whose model, the session's own, now plays these responses."""
    next(home.path.glob("script-*.json")).write_text(json.dumps(responses))
    return home.start(options=None, capabilities=PLAIN, folders=[root])


def killed_in_the_middle(home: Home) -> tuple[Path, str]:
    """The folder and the session of a daemon that was killed while a prompt ran."""
    daemon, root = plain_editor(home, reply("half of it", hang=True))
    session: str = execute(daemon, "agentd.prompt", "the first words")["sessionId"]
    take_progress(daemon)
    daemon.kill()
    return root, session


@pytest.mark.parametrize("number", range(2))
def test_the_session_of_a_killed_daemon_goes_on(home: Home, number: int) -> None:
    """Also after the second kill."""
    root, session = killed_in_the_middle(home)
    for _ in range(number):
        daemon = again(home, root, reply("half", hang=True))
        execute(daemon, "agentd.prompt", "go on")
        take_progress(daemon)
        daemon.kill()
    daemon = again(home, root, reply("now all of it"))
    assert execute(daemon, "agentd.prompt", "and on")["sessionId"] == session
    assert '"the first words" goes on' in message(daemon, "goes on")["message"]
    take_progress(daemon)
    message(daemon, "now all of it")
    assert "the first words" in str(home.model_requests()[-1]["messages"])


@pytest.mark.parametrize("moment", ["a question", "a tool"])
def test_a_session_goes_on_whatever_the_kill_met(home: Home, moment: str) -> None:
    """The model is sent a history that it takes, and what ran does not run again."""
    command = "echo ran >> ran.txt; sleep 600"
    daemon, root = plain_editor(home, reply("I run it", tool("bash", {"command": command}, "the-call")))
    session = execute(daemon, "agentd.prompt", "the first words")["sessionId"]
    take_progress(daemon)
    daemon.asked("window/showMessageRequest")
    if moment != "a question":
        execute(daemon, "agentd.approve")
        until((root / "ran.txt").exists, "the command runs")
    daemon.kill()
    daemon = again(home, root, reply("now all of it"))
    assert execute(daemon, "agentd.prompt", "and on")["sessionId"] == session
    take_progress(daemon)
    message(daemon, "now all of it")
    asked = home.model_requests("and on")[-1]["messages"]
    assert_request_is_valid(asked)
    (result,) = (each for each in asked if each["role"] == "tool_result")
    assert (result["toolCallId"], result["isError"]) == ("the-call", True)
    if moment == "a question":
        assert not (root / "ran.txt").exists()
    else:
        assert (root / "ran.txt").read_text() == "ran\n"


def killed_while_two_wait(home: Home) -> tuple[Path, str]:
    """The folder and the session of a daemon that was killed while two prompts waited in it."""
    daemon, root = plain_editor(home, reply("half of it", hang=True))
    session: str = execute(daemon, "agentd.prompt", "the first words")["sessionId"]
    take_progress(daemon)
    execute(daemon, "agentd.prompt", "words that wait")
    execute(daemon, "agentd.prompt", "more words that wait")
    daemon.kill()
    return root, session


@pytest.mark.parametrize("answer", ["Run", "Drop", "Leave", None])
def test_what_waited_for_a_killed_daemon_runs_if_the_user_says_so(home: Home, answer: str | None) -> None:
    """The answers are shown, in their order; what is left waits on, and no word is lost unsaid."""
    root, session = killed_while_two_wait(home)
    daemon = again(home, root, reply("now all of it"), reply("one"), reply("two"))
    execute(daemon, "agentd.prompt", "and on")
    question = daemon.asked("window/showMessageRequest")
    said = 'agentd had ended before 2 prompts began: "words that wait", "more words that wait". Run them now?'
    assert question["params"]["message"] == said
    assert [each["title"] for each in question["params"]["actions"]] == ["Run", "Drop", "Leave"]
    message(daemon, "now all of it")
    daemon.answer(question, answer and {"title": answer})
    if answer == "Run":
        message(daemon, "one")
        message(daemon, "two")
        asked = str(home.model_requests()[-1]["messages"])
        assert asked.index("and on") < asked.index("'words that wait") < asked.index("more words that wait")
    else:
        if answer is None:
            assert '"words that wait", "more words that wait"' in message(daemon, "has not run")["message"]
        execute(daemon, "agentd.prompt", "and then")
        message(daemon, "one")
        assert "words that wait" not in str(home.model_requests()[-1]["messages"])
    waits = [] if answer in ("Run", "Drop") else ["words that wait", "more words that wait"]

    def left() -> bool:
        queue = daemon.call("agentd/session/get", {"sessionId": session})["queue"]
        return [each["prompt"][0]["text"] for each in queue] == waits

    until(left, "what waits is as the user has said")


def test_prompts_that_come_at_once_after_a_restart_ask_once(home: Home) -> None:
    root, session = killed_while_two_wait(home)
    daemon = again(home, root, reply("now all of it"), reply("that, too"))
    prompts = [{"command": "agentd.prompt", "arguments": [words]} for words in ("and on", "and then")]
    asked = [daemon.request("workspace/executeCommand", params) for params in prompts]
    assert [daemon.response(each)["result"]["sessionId"] for each in asked] == [session, session]
    message(daemon, "now all of it")
    message(daemon, "that, too")
    questions = [m["params"] for m in daemon.messages if m.get("method") == "window/showMessageRequest"]
    assert len(questions) == 1
    assert "and then" not in questions[0]["message"]
    goes_on = [m for m in daemon.messages if "goes on" in str(m.get("params", {}).get("message"))]
    assert len(goes_on) == 1


def test_its_changes_can_be_undone_and_its_transcript_be_read(home: Home) -> None:
    write = tool("write_file", {"file_path": "new.txt", "content": "hello\n"})
    daemon, root = plain_editor(home, reply(write), reply("half of it", hang=True))
    execute(daemon, "agentd.prompt", "the first words")
    take_progress(daemon)
    daemon.asked("window/showMessageRequest")
    execute(daemon, "agentd.approve")
    until(lambda: len(home.model_requests()) == 2, "the model is told of it")
    daemon.kill()
    daemon = again(home, root, reply("x"))
    shown = Path(execute(daemon, "agentd.showTranscript")["uri"].removeprefix("file://"))
    assert "the first words" in shown.read_text()
    execute(daemon, "agentd.undo")
    message(daemon, "new.txt")
    assert not (root / "new.txt").exists()


def test_after_an_orderly_end_a_new_session_begins(home: Home) -> None:
    daemon, root = plain_editor(home, reply("done"))
    first = execute(daemon, "agentd.prompt", "the first words")["sessionId"]
    take_progress(daemon)
    message(daemon, "done")
    daemon.close_stdin()
    assert daemon.exit_code() == 0
    daemon = again(home, root, reply("new"))
    assert refused(daemon, "agentd.showTranscript")["data"]["kind"] == "sessionNotFound"
    assert execute(daemon, "agentd.prompt", "other words")["sessionId"] != first


def test_a_session_that_another_editor_works_in_is_left_to_it(home: Home) -> None:
    daemon, root = plain_editor(home, reply("for ever", hang=True))
    first = execute(daemon, "agentd.prompt", "the first words")["sessionId"]
    take_progress(daemon)
    other = again(home, root, reply("new"))
    assert execute(other, "agentd.prompt", "other words")["sessionId"] != first
    take_progress(other)
    message(other, "new")


def test_a_killed_sub_agent_is_not_what_goes_on(home: Home) -> None:
    task = {"description": "job", "prompt": "Do the job."}
    daemon, root = plain_editor(
        home, reply(tool("task", {"tasks": [task]})), reply("working", hang=True, when="Do the job.")
    )
    session = execute(daemon, "agentd.prompt", "hand it out")["sessionId"]
    until(lambda: len(list(home.data.rglob("*.jsonl.pid"))) == 2, "the sub-agent works")
    daemon.kill()
    daemon = again(home, root, reply("now all of it"))
    assert execute(daemon, "agentd.prompt", "and on")["sessionId"] == session


def test_one_that_cannot_be_opened_is_in_nobodys_way(home: Home) -> None:
    root, session = killed_in_the_middle(home)
    journal = next(home.data.rglob(f"{session}.jsonl"))
    journal.write_text("no journal\n")
    daemon = again(home, root, reply("new"))
    assert execute(daemon, "agentd.prompt", "other words")["sessionId"] != session
    take_progress(daemon)
    message(daemon, "new")
