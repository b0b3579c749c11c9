"""Where the user looks is one line for the model: no text of files that nobody asked for."""

import pytest
from wire.chat import Chat
from wire.editing import results_of
from wire.harness import Daemon, Json
from wire.home import Home
from wire.scripts import reply, tool


def spots(start: int, end: int, character: int = 0) -> Json:
    return {"start": {"line": start, "character": 0}, "end": {"line": end, "character": character}}


def said(home: Home, chat: Chat) -> list[str]:
    """What the user says in the last request of a chat, as the model gets it."""
    (message,) = [m for m in chat.get()["messages"] if m["role"] == "user"]
    request = home.model_requests(message["messageId"])[-1]
    found = next(m for m in request["messages"] if m.get("messageId") == message["messageId"])
    texts = [block["text"] for block in found["content"]]
    assert texts == [block["text"] for block in message["content"]], "the transcript says the same"
    return texts


def ask(daemon: Daemon, home: Home, *, name: str | None, **focus: Json) -> list[str]:
    root = home.workspace(a_py="SECRET TEXT\n", **{"_env": "KEY=1\n"})
    if name is not None:
        focus["uri"] = name if ":" in name else (root / name).as_uri()
    daemon.notify("agentd/focus", focus)
    chat = Chat(daemon, root, model=home.script(reply("done")))
    chat.run("look")
    return said(home, chat)


@pytest.mark.parametrize(
    ("focus", "line"),
    [
        ({}, "[In the editor the user looks at a.py]"),
        (
            {"selection": spots(2, 5, 3), "visible": spots(0, 40)},
            "[In the editor the user looks at a.py; lines 1-40 can be seen; lines 3-6 selected]",
        ),
        ({"selection": spots(2, 3)}, "[In the editor the user looks at a.py; line 3 selected]"),
        ({"selection": spots(2, 2)}, "[In the editor the user looks at a.py; the cursor is in line 3]"),
    ],
)
def test_the_model_is_told_where_the_user_looks(
    daemon: Daemon, shared_home: Home, focus: Json, line: str
) -> None:
    assert ask(daemon, shared_home, name="a.py", **focus) == ["look", line]


@pytest.mark.parametrize("name", [".env", "/etc/passwd", "../other.py", None])
def test_nothing_is_told_of_secrets_of_files_elsewhere_and_of_no_file(
    daemon: Daemon, shared_home: Home, name: str | None
) -> None:
    assert ask(daemon, shared_home, name=name) == ["look"]


def test_junk_does_no_harm(daemon: Daemon, shared_home: Home) -> None:
    daemon.notify("agentd/focus", {})
    for params in (None, [], {"uri": 1}, {"uri": "file:///a", "selection": {"start": -1}}):
        daemon.notify("agentd/focus", params)
    assert daemon.serves()
    daemon.notify("agentd/focus", {"uri": "%%%"})
    assert daemon.serves()


def test_a_document_that_was_never_saved_can_be_read(daemon: Daemon, shared_home: Home) -> None:
    uri = "untitled:Untitled-1"
    document = {"uri": uri, "languageId": "x", "version": 1, "text": "draft\n"}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "newer draft\n"}]}
    daemon.notify("textDocument/didChange", change)
    assert ask(daemon, shared_home, name=uri)[1] == f"[In the editor the user looks at {uri}]"
    look = tool("read_file", {"file_path": uri})
    chat = Chat(daemon, shared_home.workspace(), model=shared_home.script(reply(look), reply("done")))
    chat.run()
    assert results_of(chat) == [
        f"File: {uri} (1 lines total, showing 1-1)\n"
        "(not a file: a document in the editor that was never saved)\n    1 | newer draft"
    ]
    daemon.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    daemon.notify("agentd/focus", {})
