"""Before a command runs, what the user has not saved is saved, or asked about, or told to the model."""

import pytest
from wire.chat import Chat
from wire.editing import SimulatedEditor, results_of
from wire.harness import OPTIONS, Daemon, Json
from wire.home import Home
from wire.scripts import tool

RUN = tool("bash", {"command": "cat a.txt"})
SEES_OLD = "older\n[unsaved in the editor, so the command saw the older text on disk: a.txt]"


@pytest.fixture(scope="module")
def asks(shared_home: Home) -> Daemon:
    """A daemon whose client knows LSP only."""
    return shared_home.start("--allow-full")


@pytest.fixture(scope="module")
def saves(shared_home: Home) -> Daemon:
    """A daemon whose client answers `agentd/document/save`."""
    return shared_home.start("--allow-full", options={**OPTIONS, "save": True})


def started(editor: SimulatedEditor) -> tuple[Chat, int]:
    chat = editor.chat(RUN)
    return chat, chat.start()


def result(chat: Chat, prompt: int) -> str:
    assert chat.result(prompt)["text"] == "done"
    return results_of(chat)[0]


def question(editor: SimulatedEditor) -> Json:
    """The question about the document of this editor."""
    name = str(editor.path)
    return editor.daemon.wait(
        lambda m: m.get("method") == "window/showMessageRequest" and name in m["params"]["message"]
    )


def wish(editor: SimulatedEditor) -> Json:
    return editor.daemon.wait(
        lambda m: m.get("method") == "agentd/document/save" and m["params"] == {"uris": [editor.uri]}
    )


def test_the_client_saves_and_the_command_sees_it(saves: Daemon, shared_home: Home) -> None:
    editor = SimulatedEditor(saves, shared_home, "newer\n", on_disk="older\n")
    chat, prompt = started(editor)
    asked = wish(editor)
    editor.save()
    saves.answer(asked, {"saved": [editor.uri], "failed": []})
    assert result(chat, prompt) == "newer"


def test_the_word_of_saving_may_come_behind_the_answer(saves: Daemon, shared_home: Home) -> None:
    editor = SimulatedEditor(saves, shared_home, "newer\n", on_disk="older\n")
    chat, prompt = started(editor)
    saves.answer(wish(editor), {"saved": [editor.uri], "failed": []})
    saves.wait_until_read()
    editor.save()
    assert result(chat, prompt) == "newer"


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (
            {"saved": [], "failed": [{"uri": "$uri", "reason": "disk\nfull"}]},
            None,
            SEES_OLD[:-1] + " (disk full)]",
        ),
        ({"saved": ["$uri"], "failed": []}, None, SEES_OLD),
        (None, None, SEES_OLD),
        ("junk", None, SEES_OLD),
        (None, {"code": -32601, "message": "no such method"}, SEES_OLD),
    ],
)
def test_what_is_not_saved_is_told_to_the_model(
    saves: Daemon, shared_home: Home, answer: object, error: Json | None, text: str
) -> None:
    editor = SimulatedEditor(saves, shared_home, "newer\n", on_disk="older\n")
    chat, prompt = started(editor)
    if isinstance(answer, dict):
        answer = {
            "saved": answer["saved"],
            "failed": [{**each, "uri": editor.uri} for each in answer["failed"]],
        }
    saves.answer(wish(editor), answer, error)
    assert result(chat, prompt) == text


def test_the_user_is_asked_by_a_client_that_cannot_save(asks: Daemon, shared_home: Home) -> None:
    editor = SimulatedEditor(asks, shared_home, "newer\n", on_disk="older\n")
    chat, prompt = started(editor)
    asked = question(editor)
    assert asked["params"] == {
        "type": 3,
        "message": f"Save 1 file so that the command sees it:\n{editor.path}",
        "actions": [{"title": "Saved, go on"}, {"title": "Run anyway"}, {"title": "Cancel"}],
    }
    editor.save()
    assert result(chat, prompt) == "newer", "that it is saved is an answer"
    asks.wait(lambda m: m.get("method") == "$/cancelRequest" and m["params"] == {"id": asked["id"]})


@pytest.mark.parametrize("title", ["Run anyway", "Saved, go on", None])
def test_the_user_may_let_it_run_anyway(asks: Daemon, shared_home: Home, title: str | None) -> None:
    editor = SimulatedEditor(asks, shared_home, "newer\n", on_disk="older\n")
    chat, prompt = started(editor)
    asks.answer(question(editor), None if title is None else {"title": title})
    assert result(chat, prompt) == SEES_OLD


def test_a_question_that_fails_is_no_reason_not_to_run(asks: Daemon, shared_home: Home) -> None:
    editor = SimulatedEditor(asks, shared_home, "newer\n", on_disk="older\n")
    chat, prompt = started(editor)
    asks.answer(question(editor), error={"code": -32603, "message": "no"})
    assert result(chat, prompt) == SEES_OLD


def test_the_user_may_want_it_not_to_run(asks: Daemon, shared_home: Home) -> None:
    editor = SimulatedEditor(asks, shared_home, "newer\n", on_disk="older\n")
    chat, prompt = started(editor)
    asks.answer(question(editor), {"title": "Cancel"})
    assert result(chat, prompt).startswith("error: The command was not run: there are unsaved files")


def test_a_cancel_withdraws_the_question(asks: Daemon, shared_home: Home) -> None:
    editor = SimulatedEditor(asks, shared_home, "newer\n", on_disk="older\n")
    chat, prompt = started(editor)
    asked = question(editor)
    assert chat.cancel()["state"] == "cancelled"
    assert chat.result(prompt)["stopReason"] == "aborted"
    asks.wait(lambda m: m.get("method") == "$/cancelRequest" and m["params"] == {"id": asked["id"]})
    asks.answer(asked, {"title": "Run anyway"})
    assert asks.serves()


def test_documents_of_other_folders_are_nobodys_business(asks: Daemon, shared_home: Home) -> None:
    elsewhere = SimulatedEditor(asks, shared_home, "newer\n", on_disk="older\n")
    editor = SimulatedEditor(asks, shared_home, "same\n")
    chat, prompt = started(editor)
    assert result(chat, prompt) == "same"
    elsewhere.close()
