"""Edits of open documents go through the editor; what came of them its text says, and not its answer."""

import re

import pytest
from wire.chat import Chat
from wire.editing import (
    CAPABILITIES,
    READ,
    UTF_8,
    SimulatedEditor,
    honest,
    replace,
    results_of,
    write,
)
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.rewinding import Author

TEXT = "one\ntwo\nthree\n"


@pytest.fixture(scope="module")
def daemon(shared_home: Home) -> Daemon:
    return shared_home.start("--allow-full", capabilities=CAPABILITIES)


def of_file(chat: Chat, kind: str) -> list[Json]:
    return [p["event"] for p in chat.notifications() if p["event"]["type"] == kind]


@pytest.mark.parametrize("dirty", [True, False])
def test_an_open_document_is_changed_in_the_editor_and_its_file_stays(
    daemon: Daemon, shared_home: Home, dirty: bool
) -> None:
    on_disk = "older\n" if dirty else TEXT
    with SimulatedEditor(daemon, shared_home, TEXT, on_disk=on_disk) as editor:
        chat = editor.chat(READ, replace("two", "2"))
        assert chat.run()["text"] == "done"
        assert editor.text == "one\n2\nthree\n"
        assert editor.path.read_text() == on_disk
        assert results_of(chat)[1] == (
            "Edited a.txt (1 replacement, +1 -1). The change is in the editor, where the file is open, and "
            "not saved yet."
        )
        assert of_file(chat, "files_changed")[0]["files"] == [{"uri": editor.uri, "action": "changed"}]
        assert editor.agent_reads() == "one\n2\nthree"


def test_an_edit_is_versioned_small_and_named_in_the_undo_list(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.type(0, 0, "# ")
        editor.results(READ, write("# one\n2\nthree\nfour\n"))
        assert editor.text == "# one\n2\nthree\nfour\n"
        ((params),) = [request["params"] for request in editor.requests]
        (change,) = params["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": editor.uri, "version": 1}
        assert change["edits"] == [
            {"range": editor_range((1, 0), (1, 3)), "newText": "2", "annotationId": "agentd"},
            {"range": editor_range((3, 0), (3, 0)), "newText": "four\n", "annotationId": "agentd"},
        ]
        label = "agentd: Replaced a.txt (+2 -1)"
        assert params["label"] == label
        assert params["edit"]["changeAnnotations"] == {"agentd": {"label": label, "needsConfirmation": False}}


def editor_range(start: tuple[int, int], end: tuple[int, int]) -> Json:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def test_several_edits_follow_each_other_without_being_read_again(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        results = editor.results(READ, replace("one", "1"), replace("two", "2"), write("all new\n"))
        assert not any(text.startswith("error") for text in results)
        assert editor.text == "all new\n"


def test_an_empty_document_of_a_file_that_is_not_there_is_written_without_being_read(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, "\n", on_disk=False) as editor:
        chat = editor.chat(write("first\n"))
        chat.run()
        assert results_of(chat)[0].startswith("Created a.txt (1 line, +1 -0).")
        assert of_file(chat, "files_changed")[0]["files"] == [{"uri": editor.uri, "action": "created"}]
        assert editor.text == "first\n"
        assert not editor.path.exists()


def test_a_document_that_was_not_read_is_not_changed(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT, on_disk="older\n") as editor:
        (result,) = editor.results(write("new\n"))
        assert result.startswith("error: 'a.txt' exists and was not read in this session.")
        assert (editor.text, editor.requests) == (TEXT, [])


def test_what_the_user_types_after_it_was_read_makes_an_edit_stale(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        chat = editor.chat(READ, replace("two", "2"), mode="ask")
        prompt = chat.start()
        asked = daemon.wait(
            lambda m: m.get("method") == "agentd/permission/request" and m["params"]["sessionId"] == chat.id
        )
        editor.type(0, 3, "typed")
        daemon.answer(asked, {"optionId": "allow_once"})
        assert chat.result(prompt)["text"] == "done"
        assert results_of(chat)[1].startswith("error: 'a.txt' changed since it was read.")
        assert (editor.text, editor.requests) == ("typed\ntwo\nthree\n", [])


def test_a_clean_document_that_the_editor_has_not_reloaded_leaves_the_disk_in_the_right(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        assert editor.agent_reads() == "one\ntwo\nthree", "the daemon knows that it is clean"
        editor.path.write_text("a command wrote this\n")
        assert editor.agent_reads() == "a command wrote this"
        editor.results(READ, replace("command", "tool"))
        assert editor.path.read_text() == "a tool wrote this\n"
        assert (editor.text, editor.requests) == (TEXT, [])


def test_a_reload_that_the_user_undoes_leaves_the_editor_in_the_right(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        assert editor.agent_reads() + "\n" == TEXT
        editor.path.write_text("other\n")
        editor.type(0, len(TEXT), "other\n")
        editor.type(0, len("other\n"), TEXT)
        (_, result) = editor.results(READ, replace("two", "2"))
        assert "The change is in the editor" in result
        assert (editor.text, editor.path.read_text()) == (TEXT.replace("two", "2"), "other\n")


def test_line_ends_are_those_of_the_document(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, "one\r\ntwo\r\n") as editor:
        result = editor.results(READ, replace("one\ntwo", "1\n2"))[1]
        assert not result.startswith("error"), result
        assert editor.text == "1\r\n2\r\n"


def test_an_editor_that_hides_returns_keeps_them(daemon: Daemon, shared_home: Home) -> None:
    """Vim and Emacs show a file of CR LF with LF and save it as it was."""
    with SimulatedEditor(daemon, shared_home, "one\ntwo\n", on_disk="one\r\ntwo\r\n") as editor:
        author = Author(daemon, shared_home, editor.root)
        author.does("one", READ, replace("one\ntwo", "1\n2"), replace("1", "first"))
        assert editor.text == "first\n2\n"
        editor.path.write_bytes(b"first\r\n2\r\n")
        daemon.notify("textDocument/didSave", {"textDocument": {"uri": editor.uri}})
        author.does("two", replace("2", "second"))
        assert editor.text == "first\nsecond\n", "what was saved is what the model knows"
        author.rewind("one")
        assert editor.text == "one\ntwo\n"
        assert author.ask("diff", promptId="two")["patch"].count("\n-") == 1


# --- what editors do that the protocol does not say -----------------------------------------------------


def answers_true_and_skips(editor: SimulatedEditor, request: Json) -> None:
    editor.daemon.answer(request, {"applied": True})


def answers_false(editor: SimulatedEditor, request: Json) -> None:
    editor.daemon.answer(request, {"applied": False, "failureReason": "read\nonly"})


def answers_an_error(editor: SimulatedEditor, request: Json) -> None:
    editor.daemon.answer(request, error={"code": -32603, "message": "Document changed"})


def answers_null(editor: SimulatedEditor, request: Json) -> None:
    editor.daemon.answer(request, None)


def does_nothing(editor: SimulatedEditor, request: Json) -> None:
    """Neither makes it nor answers."""


def applies_and_never_answers(editor: SimulatedEditor, request: Json) -> None:
    editor.tell(*editor.make(request))


def answers_before_it_applies(editor: SimulatedEditor, request: Json) -> None:
    editor.daemon.answer(request, {"applied": True})
    editor.daemon.wait_until_read()
    editor.tell(*editor.make(request))


def tells_of_the_whole_text(editor: SimulatedEditor, request: Json) -> None:
    editor.make(request)
    editor.tell({"text": editor.text})
    editor.daemon.answer(request, {"applied": True})


def tells_of_each_part_apart(editor: SimulatedEditor, request: Json) -> None:
    for change in editor.make(request):
        editor.tell(change)
    editor.daemon.answer(request, {"applied": True})


def has_its_own_line_ends(editor: SimulatedEditor, request: Json) -> None:
    editor.make(request)
    editor.text = re.sub("\r?\n", "\r\n", editor.text)
    editor.tell({"text": editor.text})
    editor.daemon.answer(request, {"applied": True})


def applies_and_then_the_user_types(editor: SimulatedEditor, request: Json) -> None:
    editor.tell(*editor.make(request), editor.type(0, 0, "typed ", tell=False))
    editor.daemon.answer(request, {"applied": True})


def makes_it_in_what_the_user_has_typed(editor: SimulatedEditor, request: Json) -> None:
    """A document of version 0 in Neovim: nothing is checked, and one notification tells of both."""
    typed = editor.type(0, 0, "typed\n", tell=False)
    editor.tell(typed, *editor.make(request))
    editor.daemon.answer(request, {"applied": True})


def is_closed_meanwhile(editor: SimulatedEditor, request: Json) -> None:
    editor.close()
    editor.daemon.answer(request, {"applied": True})


MADE = [
    honest, applies_and_never_answers, answers_before_it_applies, tells_of_the_whole_text,
    tells_of_each_part_apart, has_its_own_line_ends,
]  # fmt: skip
REFUSED = {
    answers_true_and_skips: "the editor says that it made the edit, but its text was the same after 2 s",
    answers_false: "the editor refused the edit (read only)",
    answers_an_error: "the editor refused the edit (workspace/applyEdit: -32603 Document changed)",
    answers_null: "the editor refused the edit",
    does_nothing: "the editor did not answer, and its text was the same after 2 s",
}


@pytest.mark.parametrize("on_edit", MADE)
def test_an_edit_that_is_seen_in_the_text_is_made_whatever_the_editor_answers(
    daemon: Daemon, shared_home: Home, on_edit: object
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.on_edit = on_edit  # type: ignore[assignment]
        _, first, second = editor.results(READ, write("1\ntwo\n3\n"), replace("two", "2"))
        assert first.startswith("Replaced a.txt (+2 -2).")
        assert second.startswith("Edited a.txt (1 replacement, +1 -1)."), "and it is known by then"
        assert editor.text.split() == ["1", "2", "3"]


@pytest.mark.parametrize("on_edit", REFUSED)
def test_an_edit_that_is_not_seen_in_the_text_is_not_made_whatever_the_editor_answers(
    daemon: Daemon, shared_home: Home, on_edit: object
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.on_edit = on_edit  # type: ignore[assignment]
        chat = editor.chat(READ, replace("two", "2"))
        chat.run()
        assert results_of(chat)[1] == (
            f"error: 'a.txt' was not changed: {REFUSED[on_edit]}. It is open in the user's editor; read it "  # type: ignore[index]
            "again before you repeat the change."
        )
        assert len(editor.requests) == 1, "it is not tried again"
        assert of_file(chat, "files_changed") == []
        assert editor.path.read_text() == TEXT
        daemon_text = editor.agent_reads()
        assert daemon_text == "one\ntwo\nthree"


def test_an_edit_that_comes_later_than_all_patience_is_no_surprise(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.on_edit = answers_true_and_skips
        chat = editor.chat(READ, replace("two", "2"), replace("three", "3"))
        late: list[Json] = []

        def applies_late(editor: SimulatedEditor, request: Json) -> None:
            editor.daemon.answer(request, {"applied": True})
            chat.event("tool_execution_end", toolName="edit_file")
            late.append(request)
            editor.tell(*editor.make(request))

        editor.on_edit = applies_late
        chat.run()
        first, second = results_of(chat)[1:]
        assert "was the same after 2 s" in first
        # Whether the second call comes before the text or behind it, nothing is changed unseen.
        assert second.startswith(("error: 'a.txt' changed since", "error: 'a.txt' was")), second
        assert "2" in editor.text


def test_what_the_user_types_behind_an_edit_has_to_be_read(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.on_edit = applies_and_then_the_user_types
        _, first, second = editor.results(READ, replace("two", "2"), replace("three", "3"))
        assert first.endswith("The user has typed in it since: read it again before you change it again.")
        assert second.startswith("error: 'a.txt' changed since it was read.")
        assert editor.text == "typed one\n2\nthree\n"


def test_an_edit_into_what_the_user_has_typed_shows_what_came_of_it(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.on_edit = makes_it_in_what_the_user_has_typed
        chat = editor.chat(READ, replace("two", "2"), replace("three", "3"))
        chat.run()
        _, first, second = results_of(chat)
        assert first.startswith("error: 'a.txt' was changed by the user at the same moment")
        assert "    1 | typed\n" in first
        assert "read in this session" in second, "and nothing is changed before it is read"
        assert of_file(chat, "files_changed") == []


def test_a_document_that_is_closed_during_an_edit_has_to_be_read(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.on_edit = is_closed_meanwhile
        _, first, second, third = editor.results(READ, replace("two", "2"), replace("three", "3"), READ)
        assert "was closed in the editor while it was changed" in first
        assert "read in this session" in second
        assert "two" in third


def test_a_cancel_waits_for_what_the_editor_does_and_no_longer(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.on_edit = does_nothing
        chat = editor.chat(READ, replace("two", "2"))
        prompt = chat.start()
        until(lambda: editor.requests, "the edit is sent")
        assert chat.cancel()["quiescent"] is True
        assert chat.result(prompt)["stopReason"] == "aborted"
        asked = editor.requests[0]
        daemon.wait(lambda m: m.get("method") == "$/cancelRequest" and m["params"] == {"id": asked["id"]})
        editor.on_edit = honest
        editor.results(READ, replace("two", "2"))
        assert editor.text == "one\n2\nthree\n"


def test_the_end_of_the_daemon_waits_for_no_edit(home: Home) -> None:
    daemon = home.start("--allow-full", capabilities=CAPABILITIES)
    with SimulatedEditor(daemon, home, TEXT) as editor:
        editor.on_edit = does_nothing
        chat = editor.chat(READ, replace("two", "2"))
        prompt = chat.start()
        until(lambda: editor.requests, "the edit is sent")
        daemon.call("shutdown")
        assert chat.result(prompt)["stopReason"] == "interrupted"
        daemon.notify("exit")
        assert daemon.exit_code() == 0
        editor.is_over = True


# --- editors that can less ------------------------------------------------------------------------------


def test_without_document_changes_the_plain_form_is_used(home: Home) -> None:
    plain = home.start("--allow-full", capabilities={"workspace": {"applyEdit": True}})
    with SimulatedEditor(plain, home, TEXT) as editor:
        editor.results(READ, replace("two", "2"))
        edit = {"range": editor_range((1, 0), (1, 3)), "newText": "2"}
        assert editor.requests[0]["params"]["edit"] == {"changes": {editor.uri: [edit]}}
        assert editor.text == "one\n2\nthree\n"


def test_positions_are_of_the_agreed_encoding(home: Home) -> None:
    for capabilities, encoding in ((CAPABILITIES, "utf-16"), (UTF_8, "utf-8")):
        daemon = home.start("--allow-full", capabilities=capabilities)
        with SimulatedEditor(daemon, home, "é😀 old 😀\r\nx\u2028y old\n", encoding=encoding) as editor:
            editor.results(READ, write("é😀 new 😀\r\nx\u2028y 😀 new\n"))
            assert editor.text == "é😀 new 😀\r\nx\u2028y 😀 new\n"
