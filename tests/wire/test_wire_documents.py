"""Open documents: the model reads what the user sees, and disk is never written under a dirty buffer."""

import os
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.scripts import reply, tool


class Editor:
    """An editor with one document of a workspace."""

    def __init__(self, daemon: Daemon, home: Home, on_disk: str | bytes, name: str = "a.txt") -> None:
        self.daemon = daemon
        self.home = home
        self.root = home.workspace()
        self.path = self.root / name
        self.path.write_bytes(on_disk if isinstance(on_disk, bytes) else on_disk.encode())
        self.uri = self.path.as_uri()
        self.version = 0

    def open(self, text: str) -> None:
        document = {"uri": self.uri, "languageId": "plaintext", "version": self.version, "text": text}
        self.daemon.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, *changes: Json) -> None:
        self.version += 1
        document = {"uri": self.uri, "version": self.version}
        self.daemon.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def close(self) -> None:
        self.daemon.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})

    def save(self, text: str) -> None:
        self.path.write_bytes(text.encode())
        self.daemon.notify("textDocument/didSave", {"textDocument": {"uri": self.uri}})

    def results(self, *calls: Json) -> list[Json]:
        """The results of these calls, made in one run that is allowed every write."""
        model = self.home.script(*(reply(call) for call in calls), reply("done"))
        chat = Chat(self.daemon, self.root, model=model, mode="edit")
        assert chat.run()["text"] == "done"
        return [
            p["event"]["result"] for p in chat.notifications() if p["event"]["type"] == "tool_execution_end"
        ]

    def read(self) -> list[str]:
        """The lines of the document as the model reads them."""
        (result,) = self.results(tool("read_file", {"file_path": self.path.name}))
        assert result["isError"] is False, result
        return [line.split(" | ", 1)[1] for line in text_of(result).split("\n")[1:]]


def text_of(result: Json) -> str:
    return "".join(block["text"] for block in result["content"])


def spot(line: int, start: int, end: int) -> Json:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


@pytest.fixture(scope="module")
def utf_8(shared_home: Home) -> Daemon:
    """A daemon that agreed on utf-8 positions."""
    return shared_home.start(capabilities={"general": {"positionEncodings": ["utf-8", "utf-16"]}})


def test_an_open_document_is_read_from_the_buffer(daemon: Daemon, shared_home: Home) -> None:
    editor = Editor(daemon, shared_home, "on disk\n")
    assert editor.read() == ["on disk"]
    editor.open("in the buffer\nsecond\n")
    assert editor.read() == ["in the buffer", "second"]
    editor.close()
    assert editor.read() == ["on disk"]


def test_an_open_document_is_read_as_it_is_in_the_write_that_carries_the_prompt(
    daemon: Daemon, shared_home: Home
) -> None:
    editor = Editor(daemon, shared_home, "on disk\n")
    editor.open("first")
    for number in range(20):
        editor.change({"text": f"version {number}"})
    assert editor.read() == ["version 19"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8"])
def test_incremental_changes_count_in_the_agreed_encoding(
    daemon: Daemon, utf_8: Daemon, shared_home: Home, encoding: str
) -> None:
    def width(text: str) -> int:
        return len(text.encode("utf-8")) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2

    editor = Editor(utf_8 if encoding == "utf-8" else daemon, shared_home, "on disk\n")
    editor.open("a😀é|x\r\nsecond € line\n")
    before = "a😀é"
    editor.change({"range": spot(0, width(before), width(before) + 1), "text": "#"})
    editor.change(
        {"range": spot(1, width("second "), width("second €")), "text": "euro"},
        {"range": spot(1, 0, 0), "text": "the "},
    )
    assert editor.read() == ["a😀é#x", "the second euro line"]


def test_a_change_without_a_range_is_the_whole_document(daemon: Daemon, shared_home: Home) -> None:
    editor = Editor(daemon, shared_home, "on disk\n")
    editor.open("one")
    editor.change({"text": "two\nthree"})
    assert editor.read() == ["two", "three"]


def test_a_document_that_is_not_on_disk_is_read_from_the_buffer(daemon: Daemon, shared_home: Home) -> None:
    editor = Editor(daemon, shared_home, "soon gone\n")
    editor.path.unlink()
    editor.open("only in the buffer\n")
    assert editor.read() == ["only in the buffer"]


def test_search_sees_the_buffer(daemon: Daemon, shared_home: Home) -> None:
    editor = Editor(daemon, shared_home, "needle on disk\n")
    editor.open("another needle in the buffer\n")
    (result,) = editor.results(tool("search_files", {"pattern": "needle"}))
    assert "needle in the buffer" in text_of(result)
    assert "on disk" not in text_of(result)


WRITES = {
    "write_file": {"content": "from the model\n"},
    "edit_file": {"old_string": "typed", "new_string": "changed"},
}


@pytest.mark.parametrize("name", WRITES)
def test_a_dirty_open_document_is_never_written(daemon: Daemon, shared_home: Home, name: str) -> None:
    editor = Editor(daemon, shared_home, "on disk\n")
    editor.open("typed, not saved\n")
    look = tool("read_file", {"file_path": "a.txt"})
    _, result = editor.results(look, tool(name, {"file_path": "a.txt", **WRITES[name]}))
    assert result["isError"] is True
    assert "Save or close a.txt first." in text_of(result)
    assert editor.path.read_text() == "on disk\n"


def test_a_document_that_became_dirty_after_it_was_read_is_never_written(
    daemon: Daemon, shared_home: Home
) -> None:
    editor = Editor(daemon, shared_home, "on disk\n")
    editor.open("on disk\n")
    call = tool("write_file", {"file_path": "a.txt", "content": "from the model\n"}, "call-2")
    model = shared_home.script(
        reply(tool("read_file", {"file_path": "a.txt"}, "call-1")), reply(call), reply("done")
    )
    chat = Chat(daemon, editor.root, model=model, mode="ask")
    prompt = chat.start()
    asked = daemon.wait(
        lambda m: m.get("method") == "agentd/permission/request" and m["params"]["sessionId"] == chat.id
    )
    editor.change({"range": spot(0, 0, 0), "text": "typed "})
    allow = next(o["optionId"] for o in asked["params"]["options"] if o["kind"] == "allow_once")
    daemon.answer(asked, {"optionId": allow})
    assert chat.result(prompt)["text"] == "done"
    assert editor.path.read_text() == "on disk\n"


@pytest.mark.parametrize("how", ["saved", "closed"])
def test_a_document_that_was_saved_or_closed_may_be_written(
    daemon: Daemon, shared_home: Home, how: str
) -> None:
    editor = Editor(daemon, shared_home, "on disk\n")
    editor.open("on disk\n")
    editor.change({"range": spot(0, 0, 2), "text": "saved to"})
    if how == "saved":
        editor.save("saved to disk\n")
    else:
        editor.close()
    look = tool("read_file", {"file_path": "a.txt"})
    _, result = editor.results(look, tool("write_file", {"file_path": "a.txt", "content": "new\n"}))
    assert result["isError"] is False, text_of(result)
    assert editor.path.read_text() == "new\n"


def test_a_file_outside_the_workspace_stays_unread_also_when_it_is_open(
    daemon: Daemon, shared_home: Home
) -> None:
    editor = Editor(daemon, shared_home, "x\n")
    outside = shared_home.path / "outside.txt"
    outside.write_text("outside\n")
    document = {"uri": outside.as_uri(), "languageId": "plaintext", "version": 0, "text": "outside buffer"}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    (result,) = editor.results(tool("read_file", {"file_path": "../outside.txt"}))
    assert result["isError"] is True
    assert 'Path "../outside.txt" is outside the working directory.' in text_of(result)


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "git:/a.txt?ref=x", "vscode-notebook-cell:/a.ipynb#1", "file:", "%%%", ""]
)
def test_documents_that_are_no_files_do_no_harm(daemon: Daemon, uri: str) -> None:
    document = {"uri": uri, "languageId": "x", "version": 1, "text": "text"}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "other"}]}
    daemon.notify("textDocument/didChange", change)
    daemon.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert daemon.serves()


def test_changes_that_fit_no_document_do_no_harm(daemon: Daemon, shared_home: Home) -> None:
    editor = Editor(daemon, shared_home, "on disk\n")
    editor.change({"text": "never opened"})
    editor.close()
    editor.open("short")
    editor.change({"range": spot(99, 5, 9), "text": "far away"})
    assert daemon.serves()
    editor.change({"text": "whole again"})
    assert editor.read() == ["whole again"]


def test_a_uri_with_escapes_is_the_same_file(daemon: Daemon, shared_home: Home) -> None:
    editor = Editor(daemon, shared_home, "on disk\n", name="ä b+c.txt")
    editor.uri = editor.uri.replace("+", "%2B")
    editor.open("in the buffer\n")
    assert editor.read() == ["in the buffer"]


def test_a_document_reached_through_a_link_is_the_same_file(daemon: Daemon, shared_home: Home) -> None:
    editor = Editor(daemon, shared_home, "on disk\n")
    link = Path(editor.root / "link.txt")
    link.symlink_to(editor.path)
    editor.open("in the buffer\n")
    (result,) = editor.results(tool("read_file", {"file_path": "link.txt"}))
    assert "in the buffer" in text_of(result)


def test_a_document_that_is_not_on_disk_is_found_by_name(daemon: Daemon, shared_home: Home) -> None:
    editor = Editor(daemon, shared_home, "soon gone\n", name="only-here.txt")
    editor.path.unlink()
    editor.open("a needle\n")
    results = editor.results(
        tool("find_files", {"glob": "only-*"}), tool("search_files", {"pattern": "needle"})
    )
    assert [text_of(result).split("\n")[0] for result in results] == [
        "only-here.txt", "only-here.txt:1: a needle"
    ]  # fmt: skip


def test_an_open_document_whose_file_gave_way_to_a_folder_stops_nothing(home: Home) -> None:
    """Neither what is done elsewhere nor what is asked about it, and no descriptor is kept."""
    daemon = home.start("--allow-full")
    root = home.workspace(a_txt="a\n", b_txt="b\n")
    uri = (root / "a.txt").as_uri()
    document = {"uri": uri, "languageId": "plaintext", "version": 0, "text": "a\n"}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    change = {"textDocument": {"uri": uri, "version": 1}, "contentChanges": [{"text": "typed\n"}]}
    daemon.notify("textDocument/didChange", change)
    calls = [
        tool("read_file", {"file_path": "a.txt"}),
        tool("write_file", {"file_path": "new.txt", "content": "new\n"}),
    ]
    chat = Chat(daemon, root, model=home.script(reply(*calls), reply("done")), mode="full")
    assert chat.run(promptId="one")["text"] == "done", "the daemon knows the document by now"
    (root / "a.txt").unlink()
    (root / "a.txt").mkdir()
    rewind = {"sessionId": chat.id, "promptId": "one", "scope": "files"}

    def look() -> int:
        """Whoever asks which documents are not saved looks at all of them."""
        (file,) = daemon.call("agentd/session/rewind", {**rewind, "dryRun": True})["files"]
        assert file["action"] == "deleted"
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))

    descriptors = look()
    assert [look() for _ in range(5)] == [descriptors] * 5
