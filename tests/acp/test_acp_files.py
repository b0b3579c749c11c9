"""The client's buffers over ACP: read before the disk, written through it, believed when read back."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.acp_agent import AcpHome, Agent
from wire.scripts import reply, tool

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
READ = tool("read_file", {"file_path": "a.txt"}, "r1")
EDIT = tool("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "2"}, "e1")


class Buffers:
    """A client's editor. `text` are its buffers, other files are on the disk; what it writes it saves."""

    def __init__(self) -> None:
        self.text: dict[str, str] = {}
        self.written: list[str] = []
        self.sessions: set[str] = set()
        self.result: Any = None

    def read(self, path: str) -> Any:
        if path in self.text:
            return {"content": self.text[path]}
        file = Path(path)
        return {"content": file.read_bytes().decode()} if file.is_file() else None

    def write(self, path: str, content: str) -> Any:
        self.written.append(path)
        self.text[path] = content
        Path(path).write_bytes(content.encode())
        return self.result


@contextmanager
def answering(agent: Agent, buffers: Any) -> Iterator[None]:
    """Answer questions for files, in the order in which they come, and allow what is asked."""
    ended = threading.Event()

    done = len(agent.messages)

    def serve() -> None:
        nonlocal done
        while not ended.is_set():
            with agent._arrived:
                if len(agent.messages) == done:
                    agent._arrived.wait(0.05)
                new, done = agent.messages[done:], len(agent.messages)
            for message in new:
                if "method" in message and "id" in message:
                    answer(message)

    def answer(message: dict[str, Any]) -> None:
        params = message["params"]
        buffers.sessions.add(params["sessionId"])
        if message["method"] == "session/request_permission":
            agent.answer(message, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        elif message["method"] == "fs/read_text_file":
            result = buffers.read(params["path"])
            missing = {"code": -32002, "message": "Resource not found"}
            agent.answer(message, result, error=None if result is not None else missing)
        elif message["method"] == "fs/write_text_file":
            agent.answer(message, buffers.write(params["path"], params["content"]))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(
    acp_home: AcpHome,
    buffers: Any,
    *responses: Any,
    content: bytes = b"one\ntwo\n",
    abilities: Any = FILES,
    prepare: Callable[[Path], None] = lambda path: None,
) -> tuple[Agent, str, Path]:
    """One prompt that works on `a.txt`."""
    acp_home.trust()
    folder = acp_home.workspace()
    path = folder / "a.txt"
    path.write_bytes(content)
    prepare(path)
    agent = acp_home.begun(*responses, reply("Done."), abilities=abilities)
    session = agent.new(folder)
    with answering(agent, buffers):
        assert agent.ask(session, "go")["stopReason"] == "end_turn"
    return agent, session, path


def told_model(acp_home: AcpHome) -> str:
    return str(acp_home.model_requests()[-1]["messages"])


@pytest.mark.parametrize("result", [None, {}])
def test_a_file_is_changed_through_the_client_whatever_it_calls_success(
    acp_home: AcpHome, result: Any
) -> None:
    buffers = Buffers()
    buffers.result = result
    agent, session, path = run(acp_home, buffers, reply(READ), reply(EDIT))
    assert buffers.written == [str(path)]
    assert path.read_text() == "one\n2\n"
    assert agent.call_of(session, "e1")["status"] == "completed"
    assert "not saved" not in told_model(acp_home)
    assert buffers.sessions == {session}


def test_unsaved_text_is_what_the_model_reads_and_changes(acp_home: AcpHome) -> None:
    buffers = Buffers()

    def typed(path: Path) -> None:
        buffers.text[str(path)] = "typed\ntwo\n"

    _, _, path = run(acp_home, buffers, reply(READ), reply(EDIT), prepare=typed)
    assert "typed" in told_model(acp_home)
    assert path.read_text() == "typed\n2\n"


def test_an_editor_that_does_not_save_keeps_the_change_in_its_buffer(acp_home: AcpHome) -> None:
    class Unsaved(Buffers):
        def write(self, path: str, content: str) -> Any:
            self.text[path] = content
            return {}

    buffers = Unsaved()
    agent, session, path = run(acp_home, buffers, reply(READ), reply(EDIT))
    assert path.read_text() == "one\ntwo\n"
    assert buffers.text[str(path)] == "one\n2\n"
    assert agent.call_of(session, "e1")["status"] == "completed"
    assert "not saved yet" in told_model(acp_home)


def test_a_client_that_only_says_it_wrote_is_not_believed(acp_home: AcpHome) -> None:
    class Liar(Buffers):
        def write(self, path: str, content: str) -> Any:
            return {}

    agent, session, path = run(acp_home, Liar(), reply(READ), reply(EDIT))
    assert path.read_text() == "one\ntwo\n"
    assert agent.call_of(session, "e1")["status"] == "failed"
    assert "its text is the same" in told_model(acp_home)


def test_a_client_that_writes_something_else_is_found_out(acp_home: AcpHome) -> None:
    class Meddler(Buffers):
        def write(self, path: str, content: str) -> Any:
            return super().write(path, "something else\n")

    agent, session, _ = run(acp_home, Meddler(), reply(READ), reply(EDIT))
    assert agent.call_of(session, "e1")["status"] == "failed"
    assert "something else" in told_model(acp_home)


def test_a_refused_write_is_told_with_its_reason(acp_home: AcpHome) -> None:
    class Refusing(Buffers):
        pass

    acp_home.trust()
    folder = acp_home.workspace(a_txt="one\ntwo\n")
    agent = acp_home.begun(reply(READ), reply(EDIT), reply("Done."), abilities=FILES)
    session = agent.new(folder)
    prompt = agent.prompt(session, "go")
    seen = 0
    while not any(message.get("id") == prompt and "result" in message for message in agent.messages):
        asked = agent.wait(
            lambda message: ("method" in message and "id" in message) or message.get("id") == prompt, seen
        )
        seen = agent.messages.index(asked) + 1
        if asked.get("method") == "fs/read_text_file":
            agent.answer(asked, {"content": (folder / "a.txt").read_text()})
        elif asked.get("method") == "fs/write_text_file":
            agent.answer(asked, error={"code": -32000, "message": "read-only here"})
    assert (folder / "a.txt").read_text() == "one\ntwo\n"
    assert "read-only here" in told_model(acp_home)


@pytest.mark.parametrize(
    ("abilities", "reads"), [({}, False), ({"fs": {"writeTextFile": True}}, False), ({"fs": 5}, False)]
)
def test_a_client_that_shows_no_files_gets_the_disk(acp_home: AcpHome, abilities: Any, reads: bool) -> None:
    agent, _, path = run(acp_home, Buffers(), reply(READ), reply(EDIT), abilities=abilities)
    assert path.read_text() == "one\n2\n"
    assert not agent.count(lambda message: str(message.get("method", "")).startswith("fs/"))


def test_a_client_that_only_shows_files_keeps_what_its_user_typed(acp_home: AcpHome) -> None:
    buffers = Buffers()

    def typed(path: Path) -> None:
        buffers.text[str(path)] = "typed\ntwo\n"

    only_reads = {"fs": {"readTextFile": True}}
    agent, session, path = run(
        acp_home, buffers, reply(READ), reply(EDIT), abilities=only_reads, prepare=typed
    )
    assert path.read_text() == "one\ntwo\n"
    assert agent.call_of(session, "e1")["status"] == "failed"
    assert "Save or close" in told_model(acp_home)


@pytest.mark.parametrize(
    ("content", "codec_"),
    [
        (b"\xef\xbb\xbfone\ntwo\n", "utf-8-sig"),
        (b"one\xff\ntwo\n", "utf-8"),
        (b"one\xff\ntwo\n", "latin-1"),
        (b"one\r\ntwo\n\n", "utf-8"),
    ],
    ids=["byte order mark", "no UTF-8", "another encoding", "mixed line ends"],
)
def test_bytes_that_a_client_would_not_give_back_are_written_by_agentd(
    acp_home: AcpHome, content: bytes, codec_: str
) -> None:
    class Plain(Buffers):
        codec = codec_

        def read(self, path: str) -> Any:
            text = Path(path).read_bytes().decode(self.codec, "replace")
            return {"content": text.replace("\r\n", "\n")}

    buffers = Plain()
    _, _, path = run(acp_home, buffers, reply(READ), reply(EDIT), content=content)
    assert buffers.written == []
    assert path.read_bytes() == content.replace(b"two", b"2")


def test_a_buffer_that_the_client_has_not_reloaded_is_no_unsaved_text(acp_home: AcpHome) -> None:
    buffers = Buffers()

    def opened(path: Path) -> None:
        buffers.text[str(path)] = "one\ntwo\n"

    write = tool("bash", {"command": "printf 'three\\ntwo\\n' > a.txt"}, "b1")
    again = tool("read_file", {"file_path": "a.txt"}, "r2")
    run(acp_home, buffers, reply(READ), reply(write), reply(again), prepare=opened)
    assert "three" in told_model(acp_home), "the disk has changed since both were the same"


def test_a_client_that_never_answers_is_asked_no_more(acp_home: AcpHome) -> None:
    acp_home.trust()
    folder = acp_home.workspace(a_txt="one\ntwo\n")
    agent = acp_home.begun(reply(READ), reply(EDIT), reply("Done."), abilities=FILES)
    session = agent.new(folder)
    assert agent.ask(session, "go")["stopReason"] == "end_turn"
    assert (folder / "a.txt").read_text() == "one\n2\n"
    assert agent.count(lambda message: message.get("method") == "fs/read_text_file") == 1


def test_a_cancel_does_not_wait_for_a_client_that_never_answers(acp_home: AcpHome) -> None:
    acp_home.trust()
    folder = acp_home.workspace(a_txt="one\ntwo\n")
    agent = acp_home.begun(reply(READ), abilities=FILES)
    session = agent.new(folder)
    prompt = agent.prompt(session, "go")
    asked = agent.asked("fs/read_text_file")
    agent.notify("session/cancel", {"sessionId": session})
    assert agent.response(prompt)["result"]["stopReason"] == "cancelled"
    withdrawn = agent.wait(lambda message: message.get("method") == "$/cancel_request")
    assert withdrawn["params"]["requestId"] == asked["id"]


def test_undo_goes_through_the_client_as_well(acp_home: AcpHome) -> None:
    buffers = Buffers()
    agent, session, path = run(acp_home, buffers, reply(READ), reply(EDIT))
    with answering(agent, buffers):
        agent.ask(session, "/undo")
    assert path.read_text() == "one\ntwo\n"
    assert len(buffers.written) == 2


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        ({"action": "accept", "content": {"answer": "run"}}, True),
        ({"action": "accept", "content": {"answer": "saved"}}, True),
        ({"action": "accept", "content": {"answer": "cancel"}}, False),
        ({"action": "decline"}, False),
        ({"action": "cancel"}, False),
    ],
)
def test_before_a_command_the_user_is_asked_about_unsaved_files_by_a_form(
    acp_home: AcpHome, answer: Any, runs: bool
) -> None:
    acp_home.trust()
    folder = acp_home.workspace(a_txt="one\ntwo\n")
    abilities = {**FILES, "elicitation": {"form": {}}}
    agent = acp_home.begun(
        reply(READ), reply(tool("bash", {"command": "touch ran"}, "b1")), reply("Done."), abilities=abilities
    )
    session = agent.new(folder)
    buffers = Buffers()
    buffers.text[str(folder / "a.txt")] = "typed\n"
    prompt = agent.prompt(session, "go")
    with answering(agent, buffers):
        form = agent.asked("elicitation/create")
        assert str(folder / "a.txt") in form["params"]["message"]
        agent.answer(form, answer)
        assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert (folder / "ran").exists() is runs
    if runs:
        assert "unsaved in the editor" in told_model(acp_home)


def test_a_cancel_closes_the_form(acp_home: AcpHome) -> None:
    acp_home.trust()
    folder = acp_home.workspace(a_txt="one\ntwo\n")
    abilities = {**FILES, "elicitation": {"form": {}}}
    agent = acp_home.begun(reply(READ), reply(tool("bash", {"command": "touch ran"})), abilities=abilities)
    session = agent.new(folder)
    buffers = Buffers()
    buffers.text[str(folder / "a.txt")] = "typed\n"
    prompt = agent.prompt(session, "go")
    with answering(agent, buffers):
        form = agent.asked("elicitation/create")
        agent.notify("session/cancel", {"sessionId": session})
        assert agent.response(prompt)["result"]["stopReason"] == "cancelled"
    withdrawn = agent.wait(lambda message: message.get("method") == "$/cancel_request")
    assert withdrawn["params"]["requestId"] == form["id"]
    assert not (folder / "ran").exists()


def test_a_name_that_is_no_unicode_is_left_to_the_disk(acp_home: AcpHome) -> None:
    acp_home.trust()
    folder = acp_home.workspace()
    (folder / os.fsdecode(b"\xff.txt")).write_text("one\n")
    command = reply(tool("bash", {"command": "mv *.txt b$(ls).txt"}, "b1"))
    agent = acp_home.begun(command, reply("Done."), abilities=FILES)
    session = agent.new(folder)
    assert agent.ask(session, "go")["stopReason"] == "end_turn"
    assert agent.call_of(session, "b1")["status"] == "completed"


def test_what_a_tool_says_cannot_steer_a_terminal(acp_home: AcpHome) -> None:
    folder = acp_home.workspace(a_txt="red: \x1b[31m\n")
    agent = acp_home.begun(reply(READ), reply("Done."))
    session = agent.new(folder)
    agent.ask(session, "go")
    told = agent.call_of(session, "r1")["content"][0]["content"]["text"]
    assert "\\x1b[31m" in told
    assert "\x1b" not in told
