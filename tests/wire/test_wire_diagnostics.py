"""Diagnostics: what an edit did to them, and what the model is told of them when it asks."""

from collections.abc import Callable

import pytest
from wire.chat import Chat
from wire.editing import CAPABILITIES, READ, SimulatedEditor, honest, replace, results_of
from wire.harness import OPTIONS, Daemon, Json
from wire.home import Home
from wire.scripts import tool

TEXT = "one\ntwo\nthree\n"
LOOK = tool("diagnostics", {})


@pytest.fixture(scope="module")
def tells(shared_home: Home) -> Daemon:
    """A daemon whose client publishes diagnostics."""
    return shared_home.start("--allow-full", capabilities=CAPABILITIES)


@pytest.fixture(scope="module")
def asked(shared_home: Home) -> Daemon:
    """A daemon whose client answers `agentd/diagnostics/get`."""
    return shared_home.start(
        "--allow-full", capabilities=CAPABILITIES, options={**OPTIONS, "diagnostics": True}
    )


def diagnostic(line: int, message: str, **fields: object) -> Json:
    spot = {"line": line, "character": 0}
    return {"range": {"start": spot, "end": spot}, "message": message, "severity": 1, **fields}


OLD = diagnostic(0, "unused  one", code="F401", source="ruff")
NEW = diagnostic(1, "undefined 2", severity=2)
STAYS = diagnostic(2, "long line")
AFTER_EDIT = (
    "\nDiagnostics of the editor: 1 new, 1 fixed, 2 in all.\nnew: 2:1: warning: undefined 2\n"
    "fixed: 1:1: error: unused one (F401 ruff)"
)


def publish(editor: SimulatedEditor, *diagnostics: Json, version: int | None) -> None:
    params = {"uri": editor.uri, "diagnostics": list(diagnostics)}
    if version is not None:
        params["version"] = version
    editor.daemon.notify("agentd/diagnostics/publish", params)


@pytest.mark.parametrize("has_versions", [True, False])
def test_an_edit_tells_what_it_did_to_diagnostics(
    tells: Daemon, shared_home: Home, has_versions: bool
) -> None:
    with SimulatedEditor(tells, shared_home, TEXT) as editor:
        publish(editor, OLD, STAYS, version=0 if has_versions else None)

        def makes_it_and_checks(editor: SimulatedEditor, request: Json) -> None:
            if has_versions:
                publish(editor, OLD, diagnostic(9, "of the old text"), version=0)
            honest(editor, request)
            moved = diagnostic(3, "long line")
            publish(editor, NEW, moved, version=1 if has_versions else None)

        editor.on_edit = makes_it_and_checks
        result = editor.results(READ, replace("two", "2"))[1]
        assert result.endswith(" not saved yet." + AFTER_EDIT)


def test_nothing_is_said_where_nothing_has_changed(tells: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(tells, shared_home, TEXT) as editor:
        publish(editor, STAYS, version=0)

        def makes_it_and_checks(editor: SimulatedEditor, request: Json) -> None:
            honest(editor, request)
            publish(editor, STAYS, version=1)

        editor.on_edit = makes_it_and_checks
        assert editor.results(READ, replace("two", "2"))[1].endswith(" not saved yet.")


def test_diagnostics_that_do_not_come_in_time_are_not_waited_for(tells: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(tells, shared_home, TEXT) as editor:
        publish(editor, OLD, version=0)
        assert editor.results(READ, replace("two", "2"))[1].endswith(" not saved yet.")


def answering(
    answer: Callable[[SimulatedEditor, Json], Json | None],
) -> Callable[[SimulatedEditor, Chat], None]:
    """Answers each `agentd/diagnostics/get` of a chat until it has ended."""

    def serve(editor: SimulatedEditor, chat: Chat) -> None:
        since = 0
        prompt = chat.start()
        while True:
            message = editor.daemon.wait(
                lambda m: m.get("method") == "agentd/diagnostics/get" or m.get("id") == prompt, since
            )
            since = editor.daemon.messages.index(message) + 1
            if message.get("id") == prompt and "method" not in message:
                return
            if message.get("method") == "agentd/diagnostics/get" and editor.uri in str(message["params"]):
                editor.daemon.answer(message, answer(editor, message["params"]))

    return serve


def test_a_client_that_can_be_asked_is_asked(asked: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(asked, shared_home, TEXT) as editor:
        asks: list[Json] = []

        def answer(editor: SimulatedEditor, params: Json) -> Json:
            asks.append(params)
            found = [OLD, STAYS] if editor.version == 0 else [NEW, STAYS]
            return {"items": [{"uri": editor.uri, "version": editor.version, "diagnostics": found}]}

        chat = editor.chat(READ, replace("two", "2"))
        answering(answer)(editor, chat)
        assert results_of(chat)[1].endswith(AFTER_EDIT)
        assert asks == [
            {"uris": [editor.uri], "timeoutMs": 500},
            {"uris": [editor.uri], "timeoutMs": 1500},
        ]


@pytest.mark.parametrize("answer", [None, {}, {"items": [{"uri": 1}]}, {"items": []}])
def test_an_answer_that_is_none_does_no_harm(asked: Daemon, shared_home: Home, answer: Json | None) -> None:
    with SimulatedEditor(asked, shared_home, TEXT) as editor:
        chat = editor.chat(READ, replace("two", "2"))
        answering(lambda editor, params: answer)(editor, chat)
        assert results_of(chat)[1].endswith(" not saved yet.")


def test_the_model_asks_for_diagnostics_of_the_workspace(home: Home) -> None:
    daemon = home.start(capabilities=CAPABILITIES)
    with SimulatedEditor(daemon, home, TEXT) as editor:
        (editor.root / "sub").mkdir()
        publish(editor, STAYS, OLD, version=0)
        for name in ("sub/b.txt", ".env"):
            uri = (editor.root / name).as_uri()
            daemon.notify("agentd/diagnostics/publish", {"uri": uri, "diagnostics": [NEW]})
        outside = {"uri": "file:///etc/passwd", "diagnostics": [NEW]}
        daemon.notify("agentd/diagnostics/publish", outside)
        daemon.notify("agentd/diagnostics/publish", {"uri": "untitled:1", "diagnostics": [NEW]})
        looks = [LOOK, tool("diagnostics", {"paths": ["sub"]}), tool("diagnostics", {"paths": ["../x"]})]
        for mode in ("plan", "ask"):
            everything, below, refused = editor.results(*looks, mode=mode)
            assert everything == (
                "The editor: 3 diagnostics.\na.txt:1:1: error: unused one (F401 ruff)\n"
                "a.txt:3:1: error: long line\nsub/b.txt:2:1: warning: undefined 2"
            )
            assert below == "The editor: 1 diagnostic.\nsub/b.txt:2:1: warning: undefined 2"
            assert refused.startswith("error: ")
        publish(editor, version=1)
        assert editor.results(LOOK, mode="plan")[0].startswith("The editor: 1 diagnostic.\nsub/")


CHECKER = """
[checkers.fake]
command = ["cat", "found.txt"]
format = "gnu"
[checkers.other]
command = ["false"]
format = "ruff"
"""
FOUND = "a.txt:2:3: error: something is wrong\n/etc/x:1:1: error: elsewhere\n"


def look(home: Home, daemon: Daemon, *, choice: str | None = None) -> str:
    root = home.workspace(found_txt=FOUND)
    if choice is not None:
        (root / ".agentd").mkdir()
        (root / ".agentd" / "config.toml").write_text(choice)
    chat = Chat(daemon, root, model=home.script({"content": [LOOK]}, {"content": []}), mode="ask")
    chat.run()
    return results_of(chat)[0]


def test_without_an_editor_the_users_checkers_are_run(home: Home) -> None:
    home.config.write_text(CHECKER)
    daemon = home.start()
    text = look(home, daemon)
    assert text.startswith(
        "fake, other: 1 diagnostic.\na.txt:2:3: error: something is wrong (fake)\nother ended"
    )
    chosen = look(home, daemon, choice='checkers = ["fake", "unknown"]')
    assert chosen == "fake: 1 diagnostic.\na.txt:2:3: error: something is wrong (fake)"
    assert look(home, daemon, choice="checkers = []").startswith("error: Nothing is known of diagnostics")


def test_a_workspace_says_never_what_runs(home: Home) -> None:
    daemon = home.start()
    own = '[checkers.evil]\ncommand = ["touch", "ran"]\nformat = "gnu"'
    assert look(home, daemon, choice=own).startswith("error: Nothing is known of diagnostics")
    assert not list(home.path.rglob("ran"))


def test_no_checker_runs_in_a_workspace_that_is_not_trusted(home: Home) -> None:
    home.config.write_text(CHECKER)
    daemon = home.start(options={**OPTIONS, "trusted": False})
    assert look(home, daemon).startswith("error: Nothing is known of diagnostics")
