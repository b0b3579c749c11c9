"""A notebook that is open and not saved is saved before agentd touches its file, or left alone."""

from pathlib import Path

import pytest
from wire.chat import Chat
from wire.editing import results_of
from wire.harness import OPTIONS, Daemon, Json
from wire.home import Home
from wire.rewinding import Author, bash, told
from wire.scripts import reply, tool

OLD, NEW = '{"cells": []}\n', '{"cells": [1]}\n'
READ = tool("read_file", {"file_path": "a.ipynb"})
WRITE = tool("write_file", {"file_path": "a.ipynb", "content": '{"cells": [2]}\n'})


@pytest.fixture(scope="module")
def daemon(shared_home: Home) -> Daemon:
    return shared_home.start("--allow-full", options={**OPTIONS, "save": True})


def unsaved(daemon: Daemon, *paths: Path) -> None:
    """The editor tells which notebooks it has not saved."""
    daemon.notify("agentd/document/unsaved", {"uris": [path.as_uri() for path in paths]})


def begun(daemon: Daemon, home: Home, root: Path, *calls: Json) -> tuple[Chat, int]:
    model = home.script(*map(reply, calls), reply("done"))
    chat = Chat(daemon, root, model=model, mode="full")
    return chat, chat.start()


def answered(daemon: Daemon, path: Path, *, saves: bool) -> None:
    """The editor is asked to save the notebook, and does, or says why not."""
    wish = daemon.wait(
        lambda m: m.get("method") == "agentd/document/save" and m["params"] == {"uris": [path.as_uri()]}
    )
    if not saves:
        failed = [{"uri": path.as_uri(), "reason": "the disk is full"}]
        return daemon.answer(wish, {"saved": [], "failed": failed})
    path.write_text(NEW)
    unsaved(daemon)
    return daemon.answer(wish, {"saved": [path.as_uri()], "failed": []})


def test_it_is_saved_before_a_tool_writes_its_file_and_what_it_held_is_not_overwritten_unseen(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace()
    path = root / "a.ipynb"
    path.write_text(OLD)
    unsaved(daemon, path)
    chat, prompt = begun(daemon, shared_home, root, READ, WRITE, READ, WRITE)
    answered(daemon, path, saves=True)
    assert chat.result(prompt)["text"] == "done"
    results = results_of(chat)
    assert results[1].startswith("error: 'a.ipynb' changed since it was read.")
    assert results[3].startswith("Replaced a.ipynb")


def test_one_that_cannot_be_saved_is_left_alone_and_the_model_is_told(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace()
    path = root / "a.ipynb"
    path.write_text(OLD)
    unsaved(daemon, path)
    chat, prompt = begun(daemon, shared_home, root, READ, WRITE)
    answered(daemon, path, saves=False)
    assert chat.result(prompt)["text"] == "done"
    assert results_of(chat)[1] == (
        "error: 'a.ipynb' was not changed: the user's editor has changes of it that are not saved "
        "(the disk is full). Ask the user to save or discard them."
    )
    assert path.read_text() == OLD


def test_it_is_saved_by_the_name_that_the_editor_has_for_it(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace()
    link = root.with_name(f"{root.name}-link")
    link.symlink_to(root)
    (root / "a.ipynb").write_text(OLD)
    unsaved(daemon, link / "a.ipynb")
    chat, prompt = begun(daemon, shared_home, root, bash("cat a.ipynb"))
    answered(daemon, link / "a.ipynb", saves=True)
    assert chat.result(prompt)["text"] == "done"
    assert results_of(chat) == [NEW.strip()]


def test_it_is_saved_before_a_command_sees_it(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace()
    path = root / "a.ipynb"
    path.write_text(OLD)
    unsaved(daemon, path)
    chat, prompt = begun(daemon, shared_home, root, bash("cat a.ipynb"))
    answered(daemon, path, saves=True)
    assert chat.result(prompt)["text"] == "done"
    assert results_of(chat) == [NEW.strip()]


def test_a_rewind_does_not_write_below_it(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace()
    path = root / "a.ipynb"
    path.write_text(OLD)
    author = Author(daemon, shared_home, root)
    author.does("p", READ, WRITE)
    unsaved(daemon, path)
    assert told(author.rewind("p")) == {"a.ipynb": "conflict"}
    unsaved(daemon)
    assert told(author.rewind("p")) == {"a.ipynb": "changed"}
    assert path.read_text() == OLD
