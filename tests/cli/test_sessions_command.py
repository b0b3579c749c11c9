"""`agentd sessions` and going on with one, with the real daemon and a scripted model."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli.test_other_commands import run

from agentd.sessions.journal import Journal


class Place:
    """Two projects, and an agentd whose model says one thing for each prompt."""

    def __init__(self, path: Path) -> None:
        self.one, self.other = path / "one", path / "other"
        self.one.mkdir()
        self.other.mkdir()
        self.data = path / "data"
        self.config = path / "config.toml"
        self.config.touch()
        script = path / "script.json"
        script.write_text(json.dumps([{"content": [{"type": "text", "text": "Said `this`."}]}]))
        self.requests = path / "requests.jsonl"
        self.env = {
            "AGENTD_CONFIG": str(self.config),
            "AGENTD_DATA": str(self.data),
            "AGENTD_MODEL": f"scripted/{script}",
            "AGENTD_SCRIPT_REQUESTS": str(self.requests),
        }

    def agentd(self, *arguments: str, cwd: Path | None = None) -> tuple[int, str, str]:
        return run(*arguments, env=self.env, cwd=cwd or self.one)

    def prompt(self, text: str, *options: str, cwd: Path | None = None) -> tuple[int, str, str]:
        return self.agentd("run", text, *options, cwd=cwd)

    def ids(self, *options: str) -> list[str]:
        listed = json.loads(self.agentd("sessions", "list", "--json", *options)[1])
        return [session["sessionId"] for session in listed["sessions"]]

    def age(self, session_id: str, days: int) -> None:
        """Have a session be as old as that."""
        time = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")
        (path,) = self.data.glob(f"sessions/*/{session_id}.jsonl")
        journal, contents = Journal.open(path)
        notice = {"type": "notice", "severity": "info", "message": "x"}
        seq = contents.records[-1]["seq"] + 1
        journal.append({"seq": seq, "time": time.replace("+00:00", "Z"), "event": notice})
        journal.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def last_request(place: Place) -> list[str]:
    asked = json.loads(place.requests.read_text().splitlines()[-1])
    return [message["content"][0]["text"] for message in asked["messages"]]


def test_a_run_goes_on_with_the_folders_latest_session(place: Place) -> None:
    assert place.prompt("first", "--continue")[0] == 1, "there is none yet"
    assert place.prompt("first")[0] == 0
    assert place.prompt("elsewhere", cwd=place.other)[0] == 0
    assert place.prompt("second", "--continue")[0] == 0
    assert last_request(place) == ["first", "Said `this`.", "second"]
    assert len(place.ids()) == 1
    assert place.prompt("a new one")[0] == 0
    assert last_request(place) == ["a new one"]
    newest, oldest = place.ids()
    assert place.prompt("third", "--session", oldest)[0] == 0
    assert last_request(place)[::2] == ["first", "second", "third"]
    assert place.ids() == [oldest, newest]


def test_a_session_of_another_folder_is_not_gone_on_with_by_mistake(place: Place) -> None:
    place.prompt("elsewhere", cwd=place.other)
    (session_id,) = place.ids("--all")
    assert place.ids() == []
    code, out, err = place.prompt("here", "--session", session_id)
    assert (code, out) == (1, "")
    assert "another workspace folder" in err
    assert place.prompt("here", "--session", "s_nowhere")[0] == 1


def test_a_run_goes_on_with_the_session_whose_id_begins_so(place: Place) -> None:
    place.prompt("first")
    (session_id,) = place.ids()
    assert place.prompt("second", "--session", session_id[:-3])[0] == 0
    assert last_request(place) == ["first", "Said `this`.", "second"]
    assert place.ids() == [session_id]


@pytest.mark.parametrize("name", ["", "s_", "s_nowhere", "a b/../c", "x" * 200])
def test_a_name_of_no_or_of_many_sessions_is_told_and_nothing_runs(place: Place, name: str) -> None:
    place.prompt("one")
    place.prompt("two")
    asked = place.requests.read_text()
    code, out, err = place.prompt("more", "--session", name)
    assert (code, out) == (1, "")
    assert err.startswith("agentd: ")
    assert err.endswith("agentd sessions list --all lists them.\n")
    code, out, _ = place.prompt("more", "--json", "--session", name)
    assert (code, json.loads(out)["error"]["data"]["kind"]) == (1, "sessionNotFound")
    assert place.requests.read_text() == asked


@pytest.mark.parametrize(
    "command", [["run", "more", "--session"], ["sessions", "show"], ["sessions", "export"]]
)
def test_a_session_that_cannot_be_read_is_said_to_be_one(place: Place, command: list[str]) -> None:
    place.prompt("one")
    (session_id,) = place.ids()
    (journal,) = (place.data / "sessions").rglob(f"{session_id}.jsonl")
    journal.write_bytes(b"nonsense\n")
    code, _, err = place.agentd(*command, session_id)
    assert (code, "journal could not be read" in err) == (1, True)


def test_a_folder_whose_name_is_no_unicode_is_worked_in(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    assert place.prompt("here", cwd=folder) == (0, "Said `this`.\n", "")
    assert place.agentd("sessions", cwd=folder)[1].endswith("here\n")
    assert place.prompt("and more", "--continue", cwd=folder)[0] == 0


def test_continue_and_session_exclude_each_other(place: Place) -> None:
    assert place.prompt("x", "--continue", "--session", "s")[0] == 2


def test_sessions_are_listed_by_folder_or_all(place: Place) -> None:
    place.prompt("# Mend *this*\nand more")
    place.prompt("there", cwd=place.other)
    code, out, err = place.agentd("sessions")
    assert (code, err) == (0, "")
    assert [line.split("  ")[-1] for line in out.splitlines()] == ["Mend this"]
    assert len(place.agentd("sessions", "--all")[1].splitlines()) == 2
    assert place.agentd("sessions", "list", "-C", str(place.other))[1].endswith("there\n")


def test_a_session_is_shown_and_exported_by_the_beginning_of_its_id(place: Place, tmp_path: Path) -> None:
    place.prompt("What\nis ```this```?")
    (session_id,) = place.ids()
    code, shown, _ = place.agentd("sessions", "show", session_id[:-3])
    assert code == 0
    assert session_id in shown
    assert shown.endswith("user:\nWhat\nis ```this```?\n\nassistant:\nSaid `this`.\n")
    as_json = json.loads(place.agentd("sessions", "show", session_id, "-n", "1", "--json")[1])
    assert [m["role"] for m in as_json["messages"]] == ["assistant"]
    code, text, _ = place.agentd("sessions", "export", session_id)
    assert code == 0
    assert text.startswith("# What\n")
    assert "## User\n\nWhat\nis ```this```?\n\n## Assistant\n\nSaid `this`.\n" in text
    target = tmp_path / "kept.md"
    assert place.agentd("sessions", "export", session_id, "-o", str(target))[0] == 0
    assert target.read_text() == text
    code, _, err = place.agentd("sessions", "export", session_id, "-o", str(target))
    assert (code, err) == (1, f"agentd: {target}: File exists.\n")
    nowhere = tmp_path / "no" / "such.md"
    code, _, err = place.agentd("sessions", "export", session_id, "-o", str(nowhere))
    assert (code, err) == (1, f"agentd: {nowhere}: No such file or directory.\n")


def test_no_session_that_is_exported_to_a_terminal_steers_it(place: Place) -> None:
    place.prompt("look \x1b[31mred\x1b]0;owned\x07 \u202eevil")
    (session_id,) = place.ids()
    command = [sys.executable, "-m", "agentd", "sessions", "export", session_id]
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=theirs, env={**os.environ, **place.env}, cwd=place.one
        )
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the end of a terminal that nobody holds
            while data := screen.read(4096):
                shown += data
        assert started.wait(60) == 0
    assert b"look \\x1b[31mred" in shown
    assert not {b"\x1b", b"\x07"} & {bytes([byte]) for byte in shown}
    assert "\u202e" not in shown.decode()
    assert "\x1b[31mred" in place.agentd("sessions", "export", session_id)[1], "a file gets it as it is"


def test_an_id_that_is_none_or_not_clear_is_told(place: Place) -> None:
    place.prompt("one")
    place.prompt("two")
    for name, why in (("s_", "2 sessions"), ("nothing", "no session")):
        for command in ("show", "export", "delete"):
            code, out, err = place.agentd("sessions", command, name)
            assert (code, out) == (1, "")
            assert why in err
    assert place.agentd("sessions", "delete", place.ids()[0], "nothing")[0] == 1
    assert len(place.ids()) == 2, "none is removed unless all are known"


@pytest.mark.parametrize("command", ["show", "export", "delete"])
def test_an_empty_name_is_not_the_only_session(place: Place, command: str) -> None:
    place.prompt("one")
    code, out, err = place.agentd("sessions", command, "")
    assert (code, out) == (1, "")
    assert "An empty name is no session's." in err
    assert len(place.ids()) == 1


def test_a_deleted_session_leaves_nothing(place: Place) -> None:
    place.prompt("one")
    place.prompt("two")
    newest, oldest = place.ids()
    assert place.agentd("sessions", "delete", oldest) == (0, f"Removed {oldest}.\n", "")
    assert place.ids() == [newest]
    assert [path.stem for path in place.data.rglob("*") if path.is_file()] == [newest]


def test_only_sessions_that_are_old_are_pruned_and_only_by_command(place: Place) -> None:
    for text in ("old", "young", "of today"):
        place.prompt(text, cwd=place.other if text == "old" else place.one)
    today, young, old = place.ids("--all")
    place.age(young, 60)
    place.age(old, 100)
    assert len(place.ids("--all")) == 3, "nothing goes by itself"
    (journal,) = place.data.rglob(f"{old}.jsonl")
    images = journal.with_name(f"{journal.name}.files")
    images.mkdir()
    (images / "index.jsonl").touch()
    code, out, _ = place.agentd("sessions", "prune", "--dry-run")
    assert code == 0
    assert old in out
    assert out.endswith("1 session older than 90 days would be removed.\n")
    assert len(place.ids("--all")) == 3
    assert place.agentd("sessions", "prune") == (0, "1 session older than 90 days removed.\n", "")
    assert place.ids("--all") == [today, young]
    assert not images.exists(), "what its files were goes with it"
    place.config.write_text("retention_days = 7\n")
    assert place.agentd("sessions", "prune")[1] == "1 session older than 7 days removed.\n"
    assert place.ids("--all") == [today]
    assert place.agentd("sessions", "prune", "--days", "1e9")[0] == 0, "no date is that old"
    for days in ("0", "-1", "nan", "ten"):
        code, _, err = place.agentd("sessions", "prune", f"--days={days}")
        assert (code, "is no number above 0" in err) == (2, True)
    assert os.listdir(place.data / "sessions")


def test_a_session_that_is_open_elsewhere_stays(place: Place) -> None:
    place.prompt("old")
    (old,) = place.ids()
    place.age(old, 100)
    (path,) = place.data.glob(f"sessions/*/{old}.jsonl")
    journal, _ = Journal.open(path)
    try:
        code, out, err = place.agentd("sessions", "prune")
        assert (code, out) == (1, "0 sessions older than 90 days removed.\n")
        assert f"session locked by pid {os.getpid()}" in err
    finally:
        journal.close()
    assert place.ids() == [old]


def delegating(place: Place) -> tuple[str, str]:
    """A session with a sub-agent; gives the ids of both."""
    script = json.loads(Path(place.env["AGENTD_MODEL"].removeprefix("scripted/")).read_text())
    task = {"tasks": [{"description": "look", "prompt": "Do the job."}]}
    call = {"type": "tool_call", "name": "task", "arguments": task}
    parts = [{"content": [call]}, {**script[0], "when": "Do the job."}, *script]
    Path(place.env["AGENTD_MODEL"].removeprefix("scripted/")).write_text(json.dumps(parts))
    assert place.prompt("with a sub-agent")[0] == 0
    (parent,) = place.ids()
    (child,) = (path.stem for path in place.data.glob(f"sessions/*/{parent}.*.jsonl"))
    return parent, child


def test_sub_agents_are_not_listed_and_go_with_their_parent(place: Place) -> None:
    parent, child = delegating(place)
    assert place.agentd("sessions", "show", parent[:-1])[0] == 0, "the beginning of both ids means the parent"
    assert child in place.agentd("sessions", "show", child)[1]
    place.age(child, 100)
    assert place.agentd("sessions", "prune") == (0, "0 sessions older than 90 days removed.\n", "")
    assert place.agentd("sessions", "show", child)[0] == 0, "it is as old as its parent, which is in use"
    place.age(parent, 100)
    assert place.agentd("sessions", "prune") == (0, "1 session older than 90 days removed.\n", "")
    assert not [path for path in (place.data / "sessions").rglob("*") if path.is_file()]
