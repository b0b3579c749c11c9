"""What others did to a file between changes of a prompt is told apart from what the prompt did."""

import re

import pytest
from wire.editing import CAPABILITIES, READ, SimulatedEditor, honest, replace
from wire.harness import Daemon, Json
from wire.home import Home
from wire.rewinding import Author, bash, told
from wire.scripts import reply

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


@pytest.fixture(scope="module")
def daemon(shared_home: Home) -> Daemon:
    return shared_home.start("--allow-full", capabilities=CAPABILITIES)


def steps(diff: Json) -> list[tuple[str, list[str]]] | None:
    """Whose each step is, and the lines that it changed; None where there are none."""
    (file,) = diff["files"]
    if "steps" not in file:
        return None
    return [(each["by"], re.findall(r"^[+-](?![+-]{2} ).*", each["patch"], re.M)) for each in file["steps"]]


def test_a_closed_file_that_the_user_changes_between_two_edits_is_told_in_steps(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace(a_txt=TEXT)
    path = root / "a.txt"
    calls = [READ, replace("two", "2"), bash("true"), READ, replace("six", "6")]
    author = Author(daemon, shared_home, root)
    author.ask("update", mode="ask", model=shared_home.script(*map(reply, calls), reply("done p")))
    prompt = author.chat.start("do p", promptId="p")
    asked: set[object] = set()
    for tool in ("edit_file", "bash", "edit_file"):
        question = daemon.wait(
            lambda m: (
                m.get("method") == "agentd/permission/request"
                and m["params"]["sessionId"] == author.chat.id
                and m["id"] not in asked
            )
        )
        asked.add(question["id"])
        if tool == "bash":  # while nothing runs
            path.write_text(path.read_text().replace("four", "mine"))
        daemon.answer(question, {"optionId": "allow_once"})
    assert author.chat.result(prompt)["text"] == "done p"
    diff = author.ask("diff", promptId="p")
    assert steps(diff) == [
        ("agentd", ["-two", "+2"]), ("others", ["-four", "+mine"]), ("agentd", ["-six", "+6"])
    ]  # fmt: skip
    assert author.ask("original", promptId="p", uri=path.as_uri()) == {"text": TEXT}
    assert told(author.rewind("p")) == {"a.txt": "conflict"}
    assert "mine" in path.read_text()


def test_a_file_that_nobody_else_changes_has_no_steps(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace(a_txt=TEXT)
    author = Author(daemon, shared_home, root)
    author.does("p", READ, replace("two", "2"), replace("six", "6"))
    assert steps(author.ask("diff", promptId="p")) is None


def typing(editor: SimulatedEditor, request: Json) -> None:
    """Makes the edit; a moment later the user types on."""
    honest(editor, request)
    if "four" in editor.text:
        at = editor.text.index("four")
        editor.type(at, at + 4, "mine")


def test_what_the_user_types_in_a_document_between_two_edits_is_a_step(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.on_edit = typing
        author = Author(daemon, shared_home, editor.root)
        author.does("p", READ, replace("two", "2"), READ, replace("six", "6"))
        assert steps(author.ask("diff", promptId="p")) == [
            ("agentd", ["-two", "+2"]), ("others", ["-four", "+mine"]), ("agentd", ["-six", "+6"])
        ]  # fmt: skip
