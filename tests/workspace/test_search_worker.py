import json
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from agentd.workspace import worker_process
from agentd.workspace.paths import WorkspaceError
from agentd.workspace.search import run_search
from agentd.workspace.search_job import SearchJob
from agentd.workspace.search_worker import search_for


def job(root: Path, **more: object) -> SearchJob:
    return SearchJob(**{"root": str(root), "base": (), "glob": None, "limit": 10, "seconds": 10.0, **more})


def test_a_worker_that_nobody_ends_ends_itself_in_the_midst_of_a_match(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 60 + "b")
    worker = subprocess.run(
        worker_process.command("agentd.workspace.search_worker"),
        input=json.dumps(asdict(job(tmp_path, pattern="(a+)+$", seconds=0.9))).encode(),
        stdout=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert worker.returncode == -signal.SIGALRM


@pytest.mark.parametrize("pattern", [None, "x"])
def test_documents_that_are_no_files_yet_are_found_where_files_would_be(
    tmp_path: Path, pattern: str | None
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n*.tmp\n")
    (tmp_path / "build/.gitignore").write_text("*.o\n")
    names = ["a", "a.tmp", "new/a", "build/a", "build/a.o", "build/a.tmp", ".git/a", "new/.git", ".a.agentd~"]
    buffers = dict.fromkeys(names, "x")

    def found(*base: str) -> set[str]:
        wanted = job(tmp_path, base=base, glob="*", pattern=pattern, buffers=buffers)
        return {result["file"] for result in search_for(wanted).results()}

    assert found() - {".gitignore"} == {"a", "new/a"}
    assert found("build") - {"build/.gitignore"} == {"build/a", "build/a.tmp"}  # its files would be found


def test_the_worker_gets_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/evil")
    assert set(worker_process.environment()) <= {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"}


def test_the_worker_imports_nothing_from_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "relative", *sys.path])
    command = worker_process.command("some.module")
    assert all(Path(entry).is_absolute() for entry in command[command.index("some.module") + 1 :])


async def test_a_worker_that_dies_is_an_error_and_no_silent_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_START", "raise SystemExit(3)")
    with pytest.raises(WorkspaceError, match="ended before it was done"):
        await run_search(job(tmp_path, pattern="x"))


async def test_the_deadline_holds_for_a_walk_too(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    outcome = await run_search(job(tmp_path, pattern="x", seconds=0.0))
    assert outcome.end.cut == "time"
    assert not outcome.stuck


async def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="No such file"):
        await run_search(job(tmp_path / "gone", pattern="x", base=("d",)))


async def test_a_file_too_large_to_be_read_is_searched_line_by_line_where_it_is_named(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        for _ in range(40):
            file.write(b"0123456789abcde\n" * 65536)
        file.write("\u00e9 needle \udcff\n".encode("utf-8", "surrogateescape"))
    named = await run_search(job(tmp_path, pattern="needle", base=("log",), seconds=60.0))
    assert [found["lines"] for found in named.found] == [[[40 * 65536 + 1, "\u00e9 needle \ufffd", True]]]
    around = await run_search(job(tmp_path, pattern="needle", seconds=60.0))
    assert (around.found, around.end.too_large) == ([], 1)


async def test_the_time_for_a_file_that_is_searched_line_by_line_is_bounded(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        for _ in range(50):
            file.write(b"ab\n" * 350_000)
    outcome = await run_search(job(tmp_path, pattern="needle", base=("log",), seconds=0.2))
    assert outcome.end.cut == "time"
    assert not outcome.stuck


@pytest.mark.parametrize(
    ("size", "start"), [(50 * 1024**3, b""), (40 * 1024**2, b"\xff\xfea\0"), (2 * 1024**3, b"a")]
)
async def test_what_is_no_text_or_beyond_all_bounds_is_not_searched_line_by_line(
    tmp_path: Path, size: int, start: bytes
) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.write(start)
        file.truncate(size)
    try:
        outcome = await run_search(job(tmp_path, pattern="a", base=("f",)))
    except WorkspaceError as error:
        assert error.kind == "search"  # noqa: PT017
        assert "files over 32 MB are not read" in str(error)  # noqa: PT017
    else:
        assert (outcome.found, outcome.end.binary) == ([], 1)
