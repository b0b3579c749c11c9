"""An editor without a plugin: it prompts, watches, approves, stops and reads the answer by LSP alone."""

from pathlib import Path
from typing import Any

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.scripts import reply, tool

PLAIN: Json = {
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "textDocument": {
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}}
    },
}


def plain_editor(
    home: Home, *responses: Json, capabilities: Json = PLAIN, **files: str
) -> tuple[Daemon, Path]:
    """A daemon whose client sent no `agentd` object, in a workspace with these files."""
    root = home.workspace(**files)
    model = home.script(*responses) if responses else "nobody/x"
    home.config.write_text(f'model = "{model}"\n')
    return home.start(options=None, capabilities=capabilities, folders=[root]), root


def execute(daemon: Daemon, command: str, *arguments: Any) -> Json:
    result: Json = daemon.call("workspace/executeCommand", {"command": command, "arguments": list(arguments)})
    return result


def refused(daemon: Daemon, command: str, *arguments: Any) -> Json:
    return daemon.refused("workspace/executeCommand", {"command": command, "arguments": list(arguments)})


def take_progress(daemon: Daemon, since: int = 0) -> str:
    """Accept the progress that the daemon creates; gives its token."""
    asked = daemon.asked("window/workDoneProgress/create", since)
    daemon.answer(asked)
    token: str = asked["params"]["token"]
    return token


def progress(daemon: Daemon, token: str, kind: str) -> Json:
    message = daemon.wait(
        lambda m: (
            m.get("method") == "$/progress"
            and m["params"]["token"] == token
            and m["params"]["value"]["kind"] == kind
        )
    )
    value: Json = message["params"]["value"]
    return value


def message(daemon: Daemon, about: str) -> Json:
    """A message to the user that holds this."""
    found = daemon.wait(lambda m: m.get("method") == "window/showMessage" and about in m["params"]["message"])
    params: Json = found["params"]
    return params


def shown(daemon: Daemon, since: int = 0) -> Path:
    """The file that the editor is asked to show, which it does."""
    asked = daemon.asked("window/showDocument", since)
    assert asked["params"]["takeFocus"] is False
    daemon.answer(asked, {"success": True})
    return Path(asked["params"]["uri"].removeprefix("file://"))


def test_what_is_announced_is_what_is_served(home: Home) -> None:
    daemon = home.spawn()
    capabilities = daemon.initialize(options=None, capabilities=PLAIN)["capabilities"]
    assert capabilities["codeActionProvider"]["codeActionKinds"] == ["quickfix", "refactor.rewrite", "source"]
    commands = capabilities["executeCommandProvider"]["commands"]
    assert len(commands) == 14
    for command in commands:
        response = daemon.response(daemon.request("workspace/executeCommand", {"command": command}))
        assert response.get("error", {}).get("data", {}).get("kind") != "methodNotFound"
        assert "there is no command" not in str(response)
    assert "there is no command" in refused(daemon, "agentd.unheardOf")["message"]


def test_a_prompt_is_answered_at_acceptance_and_shown_at_its_end(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("It is 42."))
    ids = execute(daemon, "agentd.prompt", "what is it?")
    assert ids.keys() == {"sessionId", "promptId"}
    transcript = shown(daemon).read_text()
    assert "what is it?" in transcript
    assert "It is 42." in transcript
    assert message(daemon, "It is 42.")["type"] == 3
    assert daemon.count(lambda m: m.get("method") == "agentd/event") == 0


def test_the_answer_comes_while_the_prompt_still_runs(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("for ever", hang=True))
    execute(daemon, "agentd.prompt", "go")
    token = take_progress(daemon)
    begun = progress(daemon, token, "begin")
    assert (begun["title"], begun["cancellable"]) == ("agentd", True)
    daemon.notify("window/workDoneProgress/cancel", {"token": token})
    assert progress(daemon, token, "end")
    assert daemon.count(lambda m: m.get("method") == "window/showDocument") == 0


def test_progress_tells_the_step_and_the_share_of_the_todo_list(home: Home) -> None:
    items = [
        {"id": "1", "text": "look around", "status": "completed"},
        {"id": "2", "text": "write it", "status": "in_progress"},
    ]
    daemon, _ = plain_editor(home, reply(tool("todo_write", {"items": items})), reply("x", hang=True))
    execute(daemon, "agentd.prompt", "go")
    token = take_progress(daemon)
    until(
        lambda: any(
            m["params"]["value"].get("percentage") == 50 and m["params"]["value"]["message"] == "write it"
            for m in daemon.messages
            if m.get("method") == "$/progress" and m["params"]["token"] == token
        ),
        "the step and the share are told",
    )
    execute(daemon, "agentd.cancel")
    progress(daemon, token, "end")


@pytest.mark.parametrize("answer", ["refused", "never"])
def test_no_progress_where_the_client_takes_no_token(home: Home, answer: str) -> None:
    daemon, _ = plain_editor(home, reply("done"))
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/workDoneProgress/create")
    if answer == "refused":
        daemon.answer(asked, error={"code": -32603, "message": "no"})
    shown(daemon)
    message(daemon, "done")
    assert daemon.count(lambda m: m.get("method") == "$/progress") == 0
    assert daemon.serves()


def test_nothing_is_asked_of_a_client_that_announces_nothing(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("word " * 400), capabilities={})
    execute(daemon, "agentd.prompt", "go")
    said = message(daemon, "agentd has answered at length")["message"]
    assert "word word" in Path(said.split(": ", 1)[1]).read_text()
    assert daemon.count(lambda m: "id" in m and "method" in m) == 0


def test_a_long_answer_is_shown_as_a_document_only(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("word " * 400))
    execute(daemon, "agentd.prompt", "go")
    take_progress(daemon)
    assert "word word" in shown(daemon).read_text()
    execute(daemon, "agentd.newSession")
    assert daemon.count(lambda m: m.get("method") == "window/showMessage") == 0


def test_transcripts_are_the_users_alone_and_go_with_their_session(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("done"))
    session = execute(daemon, "agentd.prompt", "go")["sessionId"]
    file = shown(daemon)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.is_relative_to(home.data)
    daemon.call("agentd/session/delete", {"sessionId": session})
    assert not file.exists()


def test_each_answer_is_shown_anew_where_the_editor_does_not_reload(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("one"), reply("two"))
    execute(daemon, "agentd.prompt", "go")
    first = shown(daemon)
    since = len(daemon.messages)
    execute(daemon, "agentd.prompt", "go on")
    second = shown(daemon, since)
    assert first != second
    assert "two" in second.read_text()


def test_a_second_prompt_waits_for_the_first_in_the_same_session(home: Home) -> None:
    daemon, _ = plain_editor(home, reply(tool("bash", {"command": "true"})), reply("one"), reply("two"))
    first = execute(daemon, "agentd.prompt", "go")
    question = daemon.asked("window/showMessageRequest")
    second = execute(daemon, "agentd.prompt", "then this")
    assert first["sessionId"] == second["sessionId"]
    daemon.answer(question, question["params"]["actions"][0])
    message(daemon, "one")
    message(daemon, "two")


def test_a_prompt_that_fails_is_told_as_an_error(home: Home) -> None:
    daemon, _ = plain_editor(home, reply(error={"kind": "auth", "message": "no such key"}))
    execute(daemon, "agentd.prompt", "go")
    assert message(daemon, "no such key")["type"] == 1


def test_a_prompt_that_cannot_begin_is_an_error_of_the_command(home: Home) -> None:
    daemon, _ = plain_editor(home)
    assert refused(daemon, "agentd.prompt", "go")["data"]["kind"] == "noModel"
    assert daemon.count(lambda m: m.get("method") == "window/workDoneProgress/create") == 0


@pytest.mark.parametrize(
    ("command", "outcome"), [("agentd.approve", "allowed"), ("agentd.reject", "rejected")]
)
def test_a_question_is_answered_by_a_command(home: Home, command: str, outcome: str) -> None:
    daemon, root = plain_editor(home, reply(tool("bash", {"command": "touch made"})), reply("done"))
    execute(daemon, "agentd.prompt", "go")
    question = daemon.asked("window/showMessageRequest")
    assert "touch made" in question["params"]["message"]
    assert execute(daemon, command)["requestId"]
    message(daemon, "done")
    assert (root / "made").exists() is (outcome == "allowed")
    assert refused(daemon, command)["data"]["kind"] == "permissionClosed"


def test_of_the_questions_of_several_sessions_the_oldest_is_answered(home: Home) -> None:
    calls = [reply(tool("bash", {"command": f"touch {name}"})) for name in ("older", "newer")]
    daemon, root = plain_editor(home, reply("one"), *calls, reply("done"))
    first = execute(daemon, "agentd.prompt", "go")["sessionId"]
    message(daemon, "one")
    execute(daemon, "agentd.newSession")
    execute(daemon, "agentd.prompt", "go")
    daemon.asked("window/showMessageRequest")
    since = len(daemon.messages)
    daemon.call("agentd/prompt", {"sessionId": first, "prompt": "go", "wait": "accepted"})
    daemon.asked("window/showMessageRequest", since)
    execute(daemon, "agentd.approve")
    until((root / "older").exists, "the older command runs")
    assert not (root / "newer").exists()


def test_the_menu_offers_the_open_question_and_the_running_prompt(home: Home) -> None:
    daemon, root = plain_editor(
        home, reply(tool("bash", {"command": "touch made"})), reply("done"), a_py="x\n"
    )
    uri = (root / "a.py").as_uri()
    assert offered(daemon, uri) == ["agentd.explain", "agentd.test"]
    execute(daemon, "agentd.prompt", "go")
    daemon.asked("window/showMessageRequest")
    menu = offered(daemon, uri)
    assert menu[-3:] == ["agentd.approve", "agentd.reject", "agentd.cancel"]
    execute(daemon, "agentd.cancel")
    assert offered(daemon, uri) == ["agentd.explain", "agentd.test"]


def actions(daemon: Daemon, uri: str, line: int = 0, diagnostics: Any = ()) -> list[Json]:
    place = {"line": line, "character": 0}
    found: list[Json] = daemon.call(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": uri},
            "range": {"start": place, "end": place},
            "context": {"diagnostics": list(diagnostics)},
        },
    )
    return found


def offered(daemon: Daemon, uri: str) -> list[str]:
    return [action["command"]["command"] for action in actions(daemon, uri)]


def test_a_comment_in_an_unsaved_buffer_becomes_a_prompt(home: Home) -> None:
    daemon, root = plain_editor(home, reply("renamed"), a_py="x = 1\n")
    uri = (root / "a.py").as_uri()
    text = "x = 1\n# agentd: rename x\n"
    document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    action = actions(daemon, uri, line=1)[0]
    assert action["title"] == "agentd: rename x"
    command = action["command"]
    execute(daemon, command["command"], *command["arguments"])
    message(daemon, "renamed")
    said = str(home.model_requests("rename x")[0]["messages"])
    assert "line 2 of a.py" in said


def test_a_diagnostic_is_fixed_from_the_menu(home: Home) -> None:
    daemon, root = plain_editor(home, reply("fixed"), a_py="import os\n")
    problem = {
        "range": {"start": {"line": 0, "character": 7}, "end": {"line": 0, "character": 9}},
        "message": "os is unused",
        "severity": 2,
    }
    action = actions(daemon, (root / "a.py").as_uri(), diagnostics=[problem])[0]
    assert action["kind"] == "quickfix"
    execute(daemon, action["command"]["command"], *action["command"]["arguments"])
    message(daemon, "fixed")
    assert "1:8: warning: os is unused" in str(home.model_requests("os is unused")[0]["messages"])


def test_the_diff_of_a_session_is_shown(home: Home) -> None:
    write = tool("write_file", {"file_path": "new.txt", "content": "hello\n"})
    daemon, _ = plain_editor(home, reply(write), reply("done"))
    assert refused(daemon, "agentd.showDiff")["data"]["kind"] == "sessionNotFound"
    execute(daemon, "agentd.setMode", "edit")
    assert execute(daemon, "agentd.showDiff") == {"uri": None}
    message(daemon, "changed no file")
    execute(daemon, "agentd.prompt", "go")
    daemon.asked("window/showMessageRequest")  # an untrusted workspace: edits ask
    execute(daemon, "agentd.approve")
    message(daemon, "done")
    shown(daemon)
    since = len(daemon.messages)
    uri = execute(daemon, "agentd.showDiff")["uri"]
    file = shown(daemon, since)
    assert file.as_uri() == uri
    assert "+hello" in file.read_text()


def test_the_transcript_of_a_named_session_is_shown(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("one"))
    session = execute(daemon, "agentd.prompt", "go")["sessionId"]
    shown(daemon)
    execute(daemon, "agentd.newSession", {"title": "another"})
    since = len(daemon.messages)
    execute(daemon, "agentd.showTranscript", session)
    assert "one" in shown(daemon, since).read_text()


def test_the_next_prompts_go_to_a_new_session(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("one"), reply("two"))
    first = execute(daemon, "agentd.prompt", "go")["sessionId"]
    message(daemon, "one")
    made = execute(daemon, "agentd.newSession")["sessionId"]
    assert made != first
    assert execute(daemon, "agentd.prompt", "go")["sessionId"] == made


def test_a_mode_is_chosen_by_name_or_by_a_question(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("one"))
    assert execute(daemon, "agentd.setMode", "plan") == {"mode": "plan"}
    assert message(daemon, "mode is plan")
    assert refused(daemon, "agentd.setMode", "reckless")["data"]["kind"] == "invalidParams"
    assert execute(daemon, "agentd.setMode") == {}
    question = daemon.asked("window/showMessageRequest")
    assert {"title": "edit"} in question["params"]["actions"]
    daemon.answer(question, {"title": "edit"})
    message(daemon, "mode is edit")
    (session,) = daemon.call("agentd/session/list")["sessions"]
    assert session["mode"] == "edit"


def test_a_model_that_is_not_there_is_refused_by_name(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("one"))
    assert refused(daemon, "agentd.setModel", "nobody/x")["data"]["kind"] == "noModel"
    model = home.script(reply("another"))
    assert execute(daemon, "agentd.setModel", model) == {"model": model}
    execute(daemon, "agentd.prompt", "go")
    assert message(daemon, "another")


@pytest.mark.parametrize(
    ("command", "arguments", "path"),
    [
        ("agentd.prompt", [], "/arguments/0"),
        ("agentd.prompt", ["  "], "/arguments/0"),
        ("agentd.prompt", [5], "/arguments/0"),
        ("agentd.prompt", ["x", {"uri": "http://x"}], "/uri"),
        ("agentd.fix", [], "/arguments/0"),
        ("agentd.explain", [{"range": {}}], "/arguments/0"),
        ("agentd.cancel", [{}], "/arguments/0"),
        ("agentd.newSession", ["x"], "/arguments/0"),
    ],
)
def test_wrong_arguments_are_named(home: Home, command: str, arguments: list[Any], path: str) -> None:
    daemon, _ = plain_editor(home, reply("x"))
    error = refused(daemon, command, *arguments)
    assert error["data"]["kind"] == "invalidParams"
    assert path in error["message"]


@pytest.mark.parametrize(
    ("name", "said", "is_one_file"),
    [("helix", "one …", False), ("Neovim", "one\ntwo", False), ("Visual Studio Code", "one\ntwo", True)],
)
def test_each_editor_is_shown_what_it_can_show(home: Home, name: str, said: str, is_one_file: bool) -> None:
    root = home.workspace()
    home.config.write_text(f'model = "{home.script(reply("one", chr(10), "two"), reply("three"))}"\n')
    daemon = home.spawn()
    described = {"capabilities": PLAIN, "clientInfo": {"name": name}, "rootUri": root.as_uri()}
    daemon.call("initialize", {"processId": None, **described})
    daemon.notify("initialized", {})
    execute(daemon, "agentd.prompt", "go")
    assert message(daemon, "one")["message"] == said
    first, since = shown(daemon), len(daemon.messages)
    execute(daemon, "agentd.prompt", "go on")
    message(daemon, "three")
    assert (shown(daemon, since) == first) is is_one_file


def test_an_answer_is_told_where_no_transcript_can_be_written(home: Home) -> None:
    daemon, _ = plain_editor(home, reply(tool("bash", {"command": "true"})), reply("done"))
    session = execute(daemon, "agentd.prompt", "go")["sessionId"]
    daemon.asked("window/showMessageRequest")
    (journal,) = home.data.rglob(f"{session}.jsonl")
    beside = journal.with_name(f"{journal.name}.files")
    beside.mkdir(exist_ok=True)
    (beside / "shown").write_text("in the way")
    execute(daemon, "agentd.approve")
    message(daemon, "done")
    assert message(daemon, "cannot write the transcript")["type"] == 2
    assert "cannot be written" in refused(daemon, "agentd.showTranscript")["message"]


@pytest.fixture
def two_folders(home: Home) -> tuple[Daemon, Path, Path]:
    one, two = home.workspace(a_py="x\n"), home.workspace(b_py="y\n")
    home.config.write_text(f'model = "{home.script(reply("first"), reply("second"), reply("third"))}"\n')
    return home.start(options=None, capabilities=PLAIN, folders=[one, two]), one, two


def folder_of(daemon: Daemon, session_id: str) -> str:
    session = daemon.call("agentd/session/get", {"sessionId": session_id})["session"]
    uri: str = session["workspaceUri"]
    return uri


def test_of_several_folders_a_command_is_about_the_one_the_user_was_in_last(
    two_folders: tuple[Daemon, Path, Path],
) -> None:
    daemon, one, two = two_folders
    first = execute(daemon, "agentd.prompt", "go")["sessionId"]
    assert folder_of(daemon, first) == one.as_uri()
    message(daemon, "first")
    offered(daemon, (two / "b.py").as_uri())
    second = execute(daemon, "agentd.prompt", "go")["sessionId"]
    assert folder_of(daemon, second) == two.as_uri()
    assert execute(daemon, "agentd.setMode", "plan") == {"mode": "plan"}
    mode = daemon.call("agentd/session/get", {"sessionId": second})["session"]["mode"]
    assert mode == "plan"
    execute(daemon, "agentd.explain", {"uri": (one / "a.py").as_uri()})
    execute(daemon, "agentd.showTranscript")
    removed = {"uri": one.as_uri(), "name": "one"}
    daemon.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [removed]}})
    made = execute(daemon, "agentd.newSession")["sessionId"]
    assert folder_of(daemon, made) == two.as_uri()


@pytest.mark.parametrize("when", ["before the answer", "while it runs", "at its end"])
def test_a_cancel_at_any_moment_ends_progress_once(home: Home, when: str) -> None:
    daemon, _ = plain_editor(home, reply("for ever", hang=True), reply("next"))
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/workDoneProgress/create")
    token = asked["params"]["token"]
    if when == "while it runs":
        daemon.answer(asked)
        progress(daemon, token, "begin")
    daemon.notify("window/workDoneProgress/cancel", {"token": token})
    if when == "before the answer":
        daemon.answer(asked)
    until(lambda: not execute(daemon, "agentd.cancel")["sessionIds"], "nothing runs")
    daemon.notify("window/workDoneProgress/cancel", {"token": token})
    daemon.notify("window/workDoneProgress/cancel", {"token": "of nobody"})
    since = len(daemon.messages)
    execute(daemon, "agentd.prompt", "and on")
    take_progress(daemon, since)
    message(daemon, "next")
    kinds = [
        m["params"]["value"]["kind"]
        for m in daemon.messages
        if m.get("method") == "$/progress" and m["params"]["token"] == token
    ]
    assert kinds.count("begin") == kinds.count("end") <= 1


@pytest.mark.parametrize("answer", [{"title": "Nonsense"}, "x", 5, [], None, {"title": None}])
def test_an_answer_that_is_none_allows_nothing(home: Home, answer: Any) -> None:
    daemon, root = plain_editor(home, reply(tool("bash", {"command": "touch made"})), reply("I see"))
    execute(daemon, "agentd.prompt", "go")
    daemon.answer(daemon.asked("window/showMessageRequest"), answer)
    message(daemon, "I see")
    assert not (root / "made").exists()


def test_an_answer_that_comes_late_changes_nothing(home: Home) -> None:
    daemon, root = plain_editor(home, reply(tool("bash", {"command": "touch made"})), reply("I see"))
    execute(daemon, "agentd.prompt", "go")
    question = daemon.asked("window/showMessageRequest")
    execute(daemon, "agentd.reject")
    daemon.answer(question, question["params"]["actions"][0])
    message(daemon, "I see")
    assert not (root / "made").exists()
    assert daemon.serves()


@pytest.mark.parametrize("answer", ["refused", {"success": False}, "x", None, 7])
def test_a_short_answer_is_said_where_no_document_is_shown(home: Home, answer: Any) -> None:
    daemon, _ = plain_editor(home, reply("brief"), reply("again"))
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showDocument")
    if answer == "refused":
        daemon.answer(asked, error={"code": -32601, "message": "unknown"})
    else:
        daemon.answer(asked, answer)
    message(daemon, "brief")
    execute(daemon, "agentd.prompt", "go on")
    message(daemon, "again")


def test_the_daemon_ends_in_time_while_a_client_owes_answers(home: Home) -> None:
    daemon, _ = plain_editor(home, reply(tool("bash", {"command": "true"})), reply("x"))
    execute(daemon, "agentd.prompt", "go")
    daemon.asked("window/workDoneProgress/create")
    daemon.asked("window/showMessageRequest")
    execute(daemon, "agentd.setMode")
    daemon.close_stdin()
    assert daemon.exit_code() == 0


def test_a_session_deleted_while_it_runs_shows_nothing(home: Home) -> None:
    daemon, _ = plain_editor(home, reply("for ever", hang=True), reply("next"))
    session = execute(daemon, "agentd.prompt", "go")["sessionId"]
    take_progress(daemon)
    daemon.call("agentd/session/delete", {"sessionId": session})
    since = len(daemon.messages)
    execute(daemon, "agentd.prompt", "another")
    take_progress(daemon, since)
    message(daemon, "next")
    assert not list(home.data.rglob(f"*{session}*"))


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "https://x/y.py", "nonsense", "file:///c%3A/x", "file:///nowhere/x.py"]
)
def test_documents_that_are_no_files_have_a_menu_that_does_no_harm(home: Home, uri: str) -> None:
    daemon, _ = plain_editor(home, reply("x"))
    found = offered(daemon, uri)
    assert found in ([], ["agentd.explain", "agentd.test"])
    assert daemon.serves()


def test_a_selection_of_a_huge_document_is_served(home: Home) -> None:
    daemon, root = plain_editor(home, reply("seen"))
    uri = (root / "big.py").as_uri()
    text = "# agentd: do this\n" * 200_000
    document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 2**31 - 1, "character": 2**31 - 1}}
    found = daemon.call(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": whole, "context": {"diagnostics": []}},
    )
    assert len(found) < 500
    explain = next(each["command"] for each in found if each["command"]["command"] == "agentd.explain")
    execute(daemon, explain["command"], *explain["arguments"])
    message(daemon, "seen")


def test_what_the_last_prompt_did_is_undone(home: Home) -> None:
    write = tool("write_file", {"file_path": "new.txt", "content": "hello\n"})
    daemon, root = plain_editor(home, reply(write), reply("done"))
    assert refused(daemon, "agentd.undo")["data"]["kind"] == "sessionNotFound"
    execute(daemon, "agentd.prompt", "go")
    daemon.asked("window/showMessageRequest")
    execute(daemon, "agentd.approve")
    message(daemon, "done")
    assert (root / "new.txt").exists()
    ids = execute(daemon, "agentd.undo")
    assert ids.keys() == {"sessionId", "promptId"}
    until(lambda: not (root / "new.txt").exists(), "the file is gone again")
    assert message(daemon, "new.txt")["type"] == 3
    assert daemon.serves()
