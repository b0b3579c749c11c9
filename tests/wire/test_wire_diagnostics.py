"""Diagnostics: what an edit did to them, and what the model is told of them when it asks."""

from collections.abc import Callable

import pytest
from wire.chat import Chat
from wire.editing import CAPABILITIES, READ, SimulatedEditor, honest, replace, results_of
from wire.harness import OPTIONS, Daemon, Json
from wire.home import Home
from wire.processes import until
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


def test_an_edit_is_told_though_its_prompt_is_cancelled_before_its_diagnostics_come(
    asked: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(asked, shared_home, TEXT) as editor:
        chat = editor.chat(READ, replace("two", "2"))
        prompt = chat.start()

        def is_asked(message: Json, timeout: int) -> bool:
            is_it = message.get("method") == "agentd/diagnostics/get"
            return is_it and message["params"] == {"uris": [editor.uri], "timeoutMs": timeout}

        before = asked.wait(lambda message: is_asked(message, 500))
        asked.answer(before, {"items": [{"uri": editor.uri, "version": 0, "diagnostics": [OLD]}]})
        asked.wait(lambda message: is_asked(message, 1500))
        chat.cancel()
        assert chat.result(prompt)["stopReason"] == "aborted"
        assert results_of(chat)[1].startswith("Edited a.txt (1 replacement, +1 -1).")
        assert [each["uri"] for each in chat.event("files_changed")["files"]] == [editor.uri]
        assert editor.text == TEXT.replace("two", "2")


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


# --- files that are not open ----------------------------------------------------------------------------


def closed(editor: SimulatedEditor) -> SimulatedEditor:
    editor.close()
    return editor


def test_an_edit_of_a_file_that_is_not_open_tells_what_the_editor_finds_in_it(
    asked: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(asked, shared_home, TEXT) as editor:
        closed(editor)
        asks: list[int] = []

        def answer(editor: SimulatedEditor, params: Json) -> Json:
            asks.append(params["timeoutMs"])
            is_edited = editor.path.read_text() != TEXT
            return {
                "items": [{"uri": editor.uri, "diagnostics": [NEW, STAYS] if is_edited else [OLD, STAYS]}]
            }

        chat = editor.chat(READ, replace("two", "2"))
        answering(answer)(editor, chat)
        assert results_of(chat)[1] == "Edited a.txt (1 replacement, +1 -1)." + AFTER_EDIT
        assert asks == [500, 1500]
        assert editor.path.read_text() == "one\n2\nthree\n"


def test_what_is_published_of_a_file_that_is_not_open_is_waited_for(tells: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(tells, shared_home, TEXT) as editor:
        publish(editor, OLD, STAYS, version=None)
        closed(editor)
        chat = editor.chat(READ, replace("two", "2"))
        prompt = chat.start()
        until(lambda: editor.path.read_text() != TEXT, "the file is written")
        publish(editor, NEW, STAYS, version=7)
        chat.result(prompt)
        assert results_of(chat)[1] == "Edited a.txt (1 replacement, +1 -1)." + AFTER_EDIT


def test_an_editor_that_tells_nothing_of_closed_files_is_waited_for_three_times(home: Home) -> None:
    options = {**OPTIONS, "diagnostics": True}
    daemon = home.start("--allow-full", capabilities=CAPABILITIES, options=options)
    with SimulatedEditor(daemon, home, "2\n") as editor:
        closed(editor)
        asks: list[int] = []
        chat = editor.chat(READ, *(replace(str(n), str(n + 1)) for n in range(2, 7)))
        prompt = chat.start()
        since = 0
        while True:
            message = daemon.wait(
                lambda m: m.get("method") == "agentd/diagnostics/get" or m.get("id") == prompt, since
            )
            since = daemon.messages.index(message) + 1
            if message.get("id") == prompt:
                break
            asks.append(message["params"]["timeoutMs"])
            if asks[-1] == 500:  # the others are left unanswered
                daemon.answer(message, {"items": []})
        assert not any(text.startswith("error") for text in results_of(chat))
        assert asks == [500, 1500] * 3 + [500] * 2


CHECKS = """
[checkers.fake]
command = ["python3", "check.py"]
format = "gnu"
"""
CHECK = """import pathlib
with open("ran.log", "a") as log:
    log.write("x")
for number, line in enumerate(pathlib.Path("a.txt").read_text().splitlines(), 1):
    if "bad" in line:
        print(f"a.txt:{number}:1: error: {line}")
"""


def edited(home: Home, daemon: Daemon, *calls: Json, check: str = CHECK) -> list[str]:
    root = home.workspace(a_txt="bad one\nfine\n", check_py=check, ran_log="")
    chat = Chat(
        daemon, root, model=home.script(*({"content": [c]} for c in calls), {"content": []}), mode="full"
    )
    chat.run()
    return [*results_of(chat), (root / "ran.log").read_text()]


def test_without_an_editor_an_edit_tells_what_the_checkers_find(home: Home) -> None:
    home.config.write_text(CHECKS)
    daemon = home.start("--allow-full")
    new = tool("write_file", {"file_path": "b.txt", "content": "x\n"})
    _, broke, mended, other, runs = edited(
        home, daemon, READ, replace("fine", "bad two"), replace("bad one", "good"), new
    )
    assert broke == (
        "Edited a.txt (1 replacement, +1 -1).\nDiagnostics of fake: 1 new, 0 fixed, 2 in all.\n"
        "new: 2:1: error: bad two (fake)"
    )
    assert mended.split("\n")[1:] == [
        "Diagnostics of fake: 0 new, 1 fixed, 1 in all.",
        "fixed: 1:1: error: bad one (fake)",
    ]
    assert other == "Created b.txt (1 line, +1 -0)."
    assert len(runs) == 4, "what is known behind an edit is known before the next"


@pytest.mark.parametrize("after_edit_s", ["0.5", "0"])
def test_a_checker_that_takes_too_long_holds_up_one_edit_and_no_more(home: Home, after_edit_s: str) -> None:
    home.config.write_text(f"{CHECKS}after_edit_s = {after_edit_s}\n")
    daemon = home.start("--allow-full")
    check = 'import time\nopen("ran.log", "a").write("x")\ntime.sleep(60)\n'
    _, first, second, runs = edited(
        home, daemon, READ, replace("fine", "2"), replace("bad", "3"), check=check
    )
    assert second == "Edited a.txt (1 replacement, +1 -1)."
    if after_edit_s == "0":
        assert (first, runs) == (second, "")
    else:
        assert first == (
            f"{second}\n[fake takes more than 0.5 s, so it is not run behind edits any more; the tool "
            "diagnostics runs it]"
        )
        assert len(runs) <= 1


def test_a_checker_that_fails_says_so_once(home: Home) -> None:
    home.config.write_text(CHECKS)
    daemon = home.start("--allow-full")
    _, first, second, _ = edited(
        home, daemon, READ, replace("fine", "2"), replace("bad", "3"), check="raise SystemExit(3)\n"
    )
    assert "[fake ended with exit code 3" in first
    assert second == "Edited a.txt (1 replacement, +1 -1)."


def test_no_checker_runs_behind_edits_in_a_workspace_that_is_not_trusted(home: Home) -> None:
    home.config.write_text(CHECKS)
    daemon = home.start("--allow-full", options={**OPTIONS, "trusted": False})
    root = home.workspace(a_txt="fine\n", check_py=CHECK, ran_log="")
    model = home.script({"content": [READ]}, {"content": [replace("fine", "bad")]}, {"content": []})
    chat = Chat(daemon, root, model=model, mode="full")
    prompt = chat.start()
    daemon.answer(daemon.asked("agentd/permission/request"), {"optionId": "allow_once"})
    chat.result(prompt)
    assert results_of(chat)[1] == "Edited a.txt (1 replacement, +1 -1)."
    assert (root / "ran.log").read_text() == ""


def test_a_cancel_ends_a_checker_that_runs_behind_an_edit(home: Home) -> None:
    home.config.write_text(f"{CHECKS}after_edit_s = 60\n")
    daemon = home.start("--allow-full")
    check = 'import time\nopen("ran.log", "a").write("x")\ntime.sleep(600)\n'
    root = home.workspace(check_py=check, ran_log="")
    new = tool("write_file", {"file_path": "a.txt", "content": "x\n"})
    chat = Chat(daemon, root, model=home.script({"content": [new]}, {"content": []}), mode="full")
    prompt = chat.start()
    until(lambda: (root / "ran.log").read_text(), "the checker runs")
    assert chat.cancel()["quiescent"] is True
    assert chat.result(prompt)["stopReason"] == "aborted"
    assert (root / "a.txt").read_text() == "x\n"


NASTY = {
    "garbage": r"printf 'x\0\377[{]}'; exit 3",
    "escapes": r"printf '\033]0;owned\007[\n'; exit 1",
    "much": "head -c 100000000 /dev/zero | tr '\\\\0' '['",
    "signal": "kill -KILL $$",
    "nothing": "exit 1",
    "daemon": "setsid sleep 300 >/dev/null 2>&1 &",
    "slow": "sleep 300",
}
SECONDS = {"slow": 0.5, "much": 2}


def test_no_checker_whatever_it_does_holds_up_an_edit_or_loses_it(home: Home) -> None:
    tables = [
        f"[checkers.{name}]\ncommand = ['sh', '-c', '''{program}''']\nformat = 'ruff'\n"
        f"after_edit_s = {SECONDS.get(name, 60)}\n"
        for name, program in NASTY.items()
    ]
    home.config.write_text("\n".join([*tables, '[checkers.gone]\ncommand = ["/nowhere"]\nformat = "gnu"']))
    daemon = home.start("--allow-full")
    root = home.workspace(a_txt="one\n")
    model = home.script(*({"content": [call]} for call in (READ, replace("one", "two"))), {"content": []})
    chat = Chat(daemon, root, model=model, mode="full")
    chat.run()
    said = results_of(chat)[1]
    assert (root / "a.txt").read_text() == "two\n"
    first, *notes = said.split("\n")
    assert first == "Edited a.txt (1 replacement, +1 -1)."
    told = {note[1:].split(" ", 1)[0]: note for note in notes}
    assert set(told) == {*NASTY, "gone"}, said
    assert "was ended by SIGKILL" in told["signal"]
    assert "printed nothing" in told["nothing"]
    assert "takes more than 0.5 s" in told["slow"]
    assert "did not run" in told["gone"] or "No such file" in told["gone"]  # the sandbox says it
    assert len(said) < 5_000
    assert said.isprintable() or set("\n") == {c for c in said if not c.isprintable()}
