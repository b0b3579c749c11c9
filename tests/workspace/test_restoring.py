"""Files brought back together or not at all, wherever it is cut."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agentd.workspace import files, restoring
from agentd.workspace.checkpoints import Checkpoints, folder_beside, sweep
from agentd.workspace.file_states import Parts
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.prompt_checkpoint import PromptCheckpoint
from agentd.workspace.wants import wanted
from agentd.workspace.write_notes import WriteNotes

NOTES = WriteNotes()
NAMES = ("a.txt", "b.txt", "deep/c.txt", "d.txt")


class Work:
    """A workspace in which one prompt has changed some files, made one and removed another one's words."""

    def __init__(self, path: Path) -> None:
        self.root = path / "work"
        self.root.mkdir()
        self.journal = path / "s.jsonl"
        self.journal.touch()
        for name in ("a.txt", "b.txt", "d.txt"):
            (self.root / name).write_text(f"before {name}")
        self.before = self.files()
        for name in NAMES:
            self.change("p", name, f"after {name}")
        self.after = self.files()

    @property
    def checkpoints(self) -> Checkpoints:
        """As a daemon that has just started sees them."""
        return Checkpoints.beside(self.journal)

    def place(self, name: str) -> Place:
        return Place(self.root, tuple(name.split("/")), name)

    def change(self, prompt_id: str, name: str, text: str) -> None:
        place = self.place(name)
        before = files.read_if_present(place)
        with PromptCheckpoint(self.checkpoints, prompt_id).changing(place, before, text.encode()):
            files.write(place, text.encode(), before)

    def files(self) -> dict[str, str]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_text() for path in found}

    def steps(self, checkpoints: Checkpoints) -> list[restoring.Restoration]:
        wants = wanted(checkpoints.changes(), {"p"})
        return restoring.plan(checkpoints, self.root, wants, ())


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def failing_at(
    monkeypatch: pytest.MonkeyPatch, count: int, error: BaseException, after: bool = False
) -> None:
    """Have the change of file number `count` fail, before it is made or behind it."""
    done = [0]
    real: Callable[..., None] = restoring._bring

    def bring(*arguments: object) -> None:
        done[0] += 1
        if done[0] == count and not after:
            raise error
        real(*arguments)
        if done[0] == count:
            raise error

    monkeypatch.setattr(restoring, "_bring", bring)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("count", range(1, len(NAMES) + 1))
def test_a_failure_at_any_file_brings_back_what_was_written(
    work: Work, monkeypatch: pytest.MonkeyPatch, count: int, after: bool
) -> None:
    checkpoints = work.checkpoints
    failing_at(monkeypatch, count, WorkspaceError("storage", "full"), after)
    with pytest.raises(WorkspaceError):
        restoring.restore(checkpoints, "r", work.steps(checkpoints), NOTES)
    assert work.files() == work.after
    assert work.checkpoints.open_rewind() == ()
    monkeypatch.undo()
    restoring.restore(work.checkpoints, "r2", work.steps(work.checkpoints), NOTES)
    assert work.files() == work.before


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("count", range(1, len(NAMES) + 1))
def test_a_rewind_that_was_cut_at_any_file_is_taken_back_unless_it_was_told(
    work: Work, monkeypatch: pytest.MonkeyPatch, count: int, after: bool
) -> None:
    class Killed(BaseException):
        pass

    checkpoints = work.checkpoints
    failing_at(monkeypatch, count, Killed(), after)
    monkeypatch.setattr(restoring, "take_back", lambda *arguments: None)
    with pytest.raises(Killed):
        restoring.restore(checkpoints, "r", work.steps(checkpoints), NOTES)
    monkeypatch.undo()
    restoring.settle(work.checkpoints, work.root, (), NOTES)
    assert work.files() == work.after
    later = work.checkpoints
    restoring.restore(later, "r2", work.steps(later), NOTES)
    assert work.files() == work.before
    restoring.settle(work.checkpoints, work.root, {"r2"}, NOTES)
    assert work.files() == work.before
    assert work.checkpoints.open_rewind() == ()


def test_what_somebody_wrote_over_a_rewind_that_was_cut_stays(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = work.checkpoints
    restoring.restore(checkpoints, "r", work.steps(checkpoints), NOTES)
    (work.root / "a.txt").write_text("mine")
    restoring.settle(work.checkpoints, work.root, (), NOTES)
    assert work.files() == {**work.after, "a.txt": "mine"}


def test_a_change_that_a_kill_prevented_is_no_conflict(work: Work) -> None:
    checkpoints, place = work.checkpoints, work.place("a.txt")
    before = files.read(place)
    killed = PromptCheckpoint(checkpoints, "p").changing(place, before, b"never written")
    killed.__enter__()
    assert {step.conflict for step in work.steps(work.checkpoints)} == {None}
    work.change("p", "a.txt", "after the kill")
    assert {step.conflict for step in work.steps(work.checkpoints)} == {None}
    restoring.restore(work.checkpoints, "r", work.steps(work.checkpoints), NOTES)
    assert work.files() == work.before


def test_a_change_that_failed_is_none(work: Work) -> None:
    place = work.place("a.txt")
    before = files.read(place)
    with (
        pytest.raises(RuntimeError),
        PromptCheckpoint(work.checkpoints, "p").changing(place, before, b"never"),
    ):
        raise RuntimeError
    (want,) = (w for w in wanted(work.checkpoints.changes(), {"p"}) if w.parts == place.parts)
    assert want.is_whole
    restoring.restore(work.checkpoints, "r", work.steps(work.checkpoints), NOTES)
    assert work.files() == work.before


def test_a_content_that_is_not_what_it_was_is_not_written(work: Work) -> None:
    checkpoints = work.checkpoints
    (change,) = (c for c in checkpoints.changes() if c.parts == ("a.txt",))
    assert change.before is not None
    (checkpoints.folder / change.before.digest).write_bytes(b"rotten")
    conflicts = {step.place.shown: step.conflict for step in work.steps(checkpoints)}
    assert conflicts["a.txt"] == restoring.NOT_KEPT
    assert conflicts["b.txt"] is None


def test_lines_that_cannot_be_read_cost_those_only_and_the_next_one_is_whole(work: Work) -> None:
    index = folder_beside(work.journal) / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    odd = [b"{}\n", b'{"prompt": "p", "parts": ["x"], "before": ["../x", 1], "after": null}\n', lines[0][:20]]
    index.write_bytes(b"".join([*lines, *odd]))
    work.change("q", "a.txt", "later")
    changes = work.checkpoints.changes()
    assert len(changes) == len(NAMES) + 1
    assert changes[-1].origin == "q"
    assert json.loads(index.read_bytes().splitlines()[-1])["prompt"] == "q"


def test_a_read_only_file_is_brought_back_and_stays_read_only(work: Work) -> None:
    (work.root / "a.txt").chmod(0o444)
    restoring.restore(work.checkpoints, "r", work.steps(work.checkpoints), NOTES)
    assert work.files() == work.before
    assert (work.root / "a.txt").stat().st_mode & 0o777 == 0o444


def test_only_what_belongs_to_no_journal_is_swept(tmp_path: Path) -> None:
    folders: list[Parts] = [("w", "here.jsonl"), ("w", "gone.jsonl")]
    for workspace, name in folders:
        folder_beside(tmp_path / workspace / name).mkdir(parents=True)
    (tmp_path / "w" / "here.jsonl").touch()
    assert sweep(tmp_path) == 1
    assert folder_beside(tmp_path / "w" / "here.jsonl").is_dir()
