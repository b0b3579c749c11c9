"""What a review found: the editor's diagnostics, how they are mended, and when they go."""

from pathlib import Path
from typing import Any

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.scripts import reply, tool
from wire.test_wire_plain_editor import PLAIN, actions, execute, message

SHOWS: Json = {**PLAIN, "textDocument": {**PLAIN["textDocument"], "publishDiagnostics": {}}}


class Review:
    """A session whose model reports what the test says."""

    def __init__(
        self, home: Home, capabilities: Json = SHOWS, options: Json | None = None, **files: str
    ) -> None:
        self.home = home
        self.root = home.workspace(**files)
        self.daemon: Daemon = home.start(options=options, capabilities=capabilities, folders=[self.root])
        self.session: str = self.daemon.call("agentd/session/new")["session"]["sessionId"]
        self.number = 0

    def uri(self, name: str = "a.py") -> str:
        return (self.root / name).as_uri()

    def prompt(self, *responses: Json, session: str | None = None) -> Json:
        self.number += 1
        result: Json = self.daemon.call(
            "agentd/prompt",
            {
                "sessionId": session or self.session,
                "promptId": f"p{self.number}",
                "prompt": "review it",
                "model": self.home.script(*responses),
            },
        )
        return result

    def report(self, *findings: Json, session: str | None = None) -> str:
        """Have the model report these; gives what it was told."""
        self.prompt(
            reply(tool("report_findings", {"findings": list(findings)})), reply("done"), session=session
        )
        got = self.daemon.call("agentd/session/get", {"sessionId": session or self.session})["messages"]
        said: str = next(m for m in reversed(got) if m["role"] == "tool_result")["content"][0]["text"]
        return said

    def published(self) -> list[tuple[str, list[Json]]]:
        """All that was published, as file name and diagnostics."""
        self.daemon.serves()
        return [
            (Path(m["params"]["uri"]).name, m["params"]["diagnostics"])
            for m in self.daemon.messages
            if m.get("method") == "textDocument/publishDiagnostics"
        ]

    def shown(self) -> dict[str, list[str]]:
        """What stands in each file by now."""
        return {name: [each["message"] for each in last] for name, last in self.published()}


def finding(message: str = "off by one", file: str = "a.py", line: int = 1, **more: Any) -> Json:
    return {"file_path": file, "line": line, "severity": "warning", "message": message, **more}


@pytest.fixture
def review(home: Home) -> Review:
    return Review(home, a_py="x = 1\n  y = '💡'\nz\n", b_py="b\n")


def test_findings_are_diagnostics_at_their_lines(review: Review) -> None:
    told = review.report(finding(line=2, severity="error"), finding("two", line=1, end_line=3))
    assert told == "The user's editor shows 2 findings."
    ((name, (one, two)),) = review.published()
    assert name == "a.py"
    assert one == {
        "range": {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 10}},
        "severity": 1,
        "message": "off by one",
        "source": "agentd",
    }
    assert two["range"] == {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 1}}


def test_characters_are_counted_as_the_editor_does(home: Home) -> None:
    general = {"positionEncodings": ["utf-8"]}
    review = Review(home, {**SHOWS, "general": general}, a_py="  y = '💡'\n")
    review.report(finding())
    ((_, (one,)),) = review.published()
    assert one["range"]["end"] == {"line": 0, "character": 12}


def test_a_report_takes_the_place_of_the_one_before_and_an_empty_one_clears(review: Review) -> None:
    review.report(finding("one"), finding("two", "b.py"))
    assert review.shown() == {"a.py": ["one"], "b.py": ["two"]}
    review.report(finding("three", "b.py"))
    assert review.shown() == {"a.py": [], "b.py": ["three"]}
    assert review.report() == "No findings are shown now."
    assert review.shown() == {"a.py": [], "b.py": []}


def test_sessions_show_their_findings_beside_each_other(review: Review) -> None:
    other = review.daemon.call("agentd/session/new")["session"]["sessionId"]
    review.report(finding("one"))
    review.report(finding("two"), session=other)
    assert review.shown() == {"a.py": ["one", "two"]}
    review.daemon.call("agentd/session/close", {"sessionId": other})
    assert review.shown() == {"a.py": ["one"]}
    review.daemon.call("agentd/session/delete", {"sessionId": review.session})
    assert review.shown() == {"a.py": []}


def test_findings_go_with_the_prompt_that_reported_them_and_come_back(review: Review) -> None:
    review.report(finding("one"))
    review.report(finding("two"))

    def rewind(**params: Any) -> None:
        review.daemon.call("agentd/session/rewind", {"sessionId": review.session, **params})

    rewind(promptId="p2", scope="files")
    assert review.shown() == {"a.py": ["two"]}
    rewind(promptId="p2", scope="conversation")
    assert review.shown() == {"a.py": ["one"]}
    rewind(undo=True)
    assert review.shown() == {"a.py": ["two"]}
    rewind(promptId="p1", scope="both")
    assert review.shown() == {"a.py": []}


def test_an_unsaved_buffer_is_what_lines_are_counted_in(review: Review) -> None:
    text = "\n" * 9 + "ten"
    document = {"uri": review.uri(), "languageId": "python", "version": 1, "text": text}
    review.daemon.notify("textDocument/didOpen", {"textDocument": document})
    review.report(finding(line=10))
    ((_, (one,)),) = review.published()
    assert one["range"]["end"] == {"line": 9, "character": 3}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (finding(line=4), "a.py has 3 lines"),
        (finding(line=2, end_line=1), "end_line 1 comes before line 2"),
        (finding(file="none.py"), "none.py"),
        (finding(file="../out.py"), "out.py"),
        (finding(file="."), ""),
    ],
)
def test_nothing_is_shown_where_a_place_does_not_exist(review: Review, wrong: Json, said: str) -> None:
    told = review.report(finding(), wrong)
    assert "Nothing is shown" in told
    assert "findings[1]: " in told
    assert said in told
    assert review.published() == []


def test_a_client_that_shows_no_diagnostics_is_sent_none(home: Home) -> None:
    review = Review(home, PLAIN, a_py="x\n")
    assert "Tell them in your answer" in review.report(finding())
    assert review.published() == []


def test_what_is_shown_steers_no_editor(review: Review) -> None:
    review.report(finding("red \x1b[31m \u202eback"))
    ((_, (one,)),) = review.published()
    assert one["message"] == "red \\x1b[31m \\u202eback"


def test_the_model_is_not_told_its_findings_as_the_editors(home: Home) -> None:
    review = Review(home, options={"diagnostics": False}, a_py="x\n")
    review.report(finding())
    ((_, mine),) = review.published()
    other = {**mine[0], "source": "ruff", "message": "of another"}
    review.daemon.notify("agentd/diagnostics/publish", {"uri": review.uri(), "diagnostics": [*mine, other]})
    review.prompt(reply(tool("diagnostics", {})), reply("seen"))
    said = str(review.daemon.call("agentd/session/get", {"sessionId": review.session})["messages"][-2])
    assert "of another" in said
    assert "The editor: 1 diagnostic." in said


def test_a_finding_is_fixed_from_the_menu_in_the_session_that_found_it(review: Review) -> None:
    review.report(finding("wrong sign", line=2))
    ((_, (shown,)),) = review.published()
    later = execute(review.daemon, "agentd.newSession")["sessionId"]
    assert later != review.session
    action = actions(review.daemon, review.uri(), line=1, diagnostics=[shown])[0]
    assert (action["title"], action["kind"]) == ("agentd: fix: wrong sign", "quickfix")
    review.daemon.call(
        "agentd/session/update", {"sessionId": review.session, "model": review.home.script(reply("mended"))}
    )
    ran = execute(review.daemon, action["command"]["command"], *action["command"]["arguments"])
    assert ran["sessionId"] == review.session
    message(review.daemon, "mended")
    said = str(review.home.model_requests("wrong sign")[-1]["messages"])
    assert "2:3: warning: wrong sign (agentd)" in said
    assert "report the findings that are left" in said
