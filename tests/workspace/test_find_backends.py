"""Which files are found by name does not depend on whether there is a ripgrep, which, and how fast it is."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from living import appears, children, none_left
from search_trees import RIPGREPS, as_nobody, job, make_nasty, needs_ripgrep, search_with

from agentd.workspace import ripgrep_listing
from agentd.workspace.globs import Glob
from agentd.workspace.ignore import Walk
from agentd.workspace.ripgrep import Ripgrep
from agentd.workspace.ripgrep_listing import Listing
from agentd.workspace.search_worker import search_for

GLOBS = ["*", "**", "*.py", "*.log", "a", "src/**", "**/x", "*o*", "[ab]*", "{a,b}*", "?", "*/a", ".*", "*é"]
PATIENCE_SECONDS = 30.0  # for a ripgrep on a busy machine; one that hangs is given up by then

Found = tuple[list[str], dict[str, Any]]


def find(root: Path, ripgrep: str | None, **more: object) -> Found:
    """What is found, and how it went. With a ripgrep, its list is there before anything is told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ripgrep_listing, "_PATIENCE_SECONDS", PATIENCE_SECONDS)
        search = search_for(job(root, **{"glob": "**", "ripgrep": ripgrep} | more))
        return [result["file"] for result in search.results()], asdict(search.end)


def listed(root: Path, ripgrep: str, glob: str = "**", base: tuple[str, ...] = ()) -> set[str] | None:
    """The names in `base` that ripgrep is believed to have found; None when it is not believed at all."""
    root_fd = os.open(root, os.O_RDONLY)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ripgrep_listing, "_PATIENCE_SECONDS", PATIENCE_SECONDS)
            end = time.monotonic() + 2 * PATIENCE_SECONDS
            loose_name = Glob(glob, base).loose_name
            with Listing(ripgrep, Walk(root_fd), base, loose_name=loose_name, deadline=end) as listing:
                listing.complete()
                return listing.names(base)
    finally:
        os.close(root_fd)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


every_ripgrep = pytest.mark.parametrize("ripgrep", RIPGREPS or [pytest.param("", marks=pytest.mark.skip)])


@every_ripgrep
@pytest.mark.parametrize("glob", GLOBS)
def test_both_ways_find_the_same_in_a_nasty_folder(tmp_path: Path, ripgrep: str, glob: str) -> None:
    root = make_nasty(tmp_path)
    for more in ({}, {"base": ("src",)}, {"base": ("vendor",)}, {"base": ("build",)}, {"limit": 3}):
        assert find(root, ripgrep, glob=glob, **more) == find(root, None, glob=glob, **more), more


@every_ripgrep
def test_ripgrep_is_believed_where_all_rules_are_plain(tmp_path: Path, ripgrep: str) -> None:
    names = ("a.py", "a.log", "keep.log", "src/b.py", "src/b.log", "src/b.pyc", "out/x")
    write(tmp_path, {".gitignore": "# c\n*.log\n!keep.log\n/out/\n*.py[cod]\n"} | dict.fromkeys(names, ""))
    assert listed(tmp_path, ripgrep) == {".gitignore", "a.py", "keep.log"}
    assert listed(tmp_path, ripgrep, base=("src",)) == {"b.py"}
    assert listed(tmp_path, ripgrep, "*.py") == {"a.py"}
    assert listed(tmp_path, ripgrep, "src/**/*[k].log") == {"keep.log"}


@every_ripgrep
def test_what_ripgrep_let_through_is_not_judged_again(
    tmp_path: Path, ripgrep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        {".gitignore": "*.log\n", "a": "", "a.log": "", "src/b": "", "src/.git": "", "src/c.log": ""},
    )
    monkeypatch.setattr("agentd.workspace.ignore.are_ignored_by", lambda rules, parts, is_directory: False)
    assert find(tmp_path, ripgrep)[0] == [".gitignore", "a", "src/b", "src/c.log"]  # the last is walked alone
    assert find(tmp_path, None)[0] == [".gitignore", "a", "a.log", "src/b", "src/c.log"]


@every_ripgrep
@pytest.mark.parametrize(
    "rule",
    ["{a,b}", "\\a", "[!a]", "[^a]", "[z-a]", "a\t", "é", "***", "a**", " a", "./a", "[a", "!", "/", "\\"],
)
def test_a_rule_that_programs_read_differently_is_judged_by_agentd(
    tmp_path: Path, ripgrep: str, rule: str
) -> None:
    names = ["a", "b", "z", "{a,b}", "é", " a", "a\t", "[a", "!", "\\a", "ab", "-"]
    write(tmp_path, {f"{folder}/{name}": "" for folder in ("x", "y") for name in names})
    write(tmp_path, {"x/.gitignore": f"{rule}\n"})
    assert find(tmp_path, ripgrep) == find(tmp_path, None)


@every_ripgrep
def test_rules_that_ripgrep_would_read_and_git_does_not_change_nothing(tmp_path: Path, ripgrep: str) -> None:
    write(tmp_path, {".gitignore": "*\n", "ws/a": "", "ws/b": "", "ws/c": "", "rules": "a\n"})
    root = tmp_path / "ws"
    write(root, {".ignore": "a", ".rgignore": "b", ".git/info/exclude": "c", "links/x/a": "", "A": ""})
    (root / "links/x/.gitignore").symlink_to(tmp_path / "rules")
    (root / "folder").mkdir()
    write(root, {"folder/.gitignore/a": ""})
    write(root, {".gitignore": "A\n"})
    own = find(root, None)
    assert own[0] == [".gitignore", ".ignore", ".rgignore", "a", "b", "c", "folder/.gitignore/a",
                      "links/x/.gitignore", "links/x/a"]  # fmt: skip
    assert find(root, ripgrep) == own


@every_ripgrep
@pytest.mark.parametrize("rules", ["*a*x*y\n" * 20_000, f"#{'x' * 1024 * 1024}\n"], ids=["many", "long"])
def test_more_rules_than_one_of_both_reads_change_nothing(tmp_path: Path, ripgrep: str, rules: str) -> None:
    write(tmp_path, {".gitignore": f"{rules}*.log\n", "a": "", "a.log": "", "src/a.log": ""})
    assert find(tmp_path, ripgrep) == find(tmp_path, None)


@every_ripgrep
@pytest.mark.parametrize("glob", ["**", "*a*", "a.", "*.", "b"])
def test_names_that_end_in_a_dot_are_names_like_any_other(tmp_path: Path, ripgrep: str, glob: str) -> None:
    names = ("a.", "aa", "a..", "c.", "x./b", "x./a.", "y./b")
    write(
        tmp_path, dict.fromkeys(names, "") | {"z/.gitignore": "*\n!a.\n!b\n!b.\n", "z/a.": "", "z/b./b": ""}
    )
    write(tmp_path, {".gitignore": "c.\ny.\n"})
    assert find(tmp_path, ripgrep, glob=glob) == find(tmp_path, None, glob=glob)


@every_ripgrep
@pytest.mark.parametrize("mark", [".git", ".jj"])
def test_rules_hold_in_a_folder_that_only_ripgrep_takes_for_a_repository(
    tmp_path: Path, ripgrep: str, mark: str
) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "src/a": "", "src/a.log": ""})
    os.mkfifo(tmp_path / "src" / mark)
    assert find(tmp_path, ripgrep) == find(tmp_path, None)
    assert find(tmp_path, ripgrep)[0] == [".gitignore", "src/a"]


@every_ripgrep
def test_a_gitignore_that_is_a_pipe_holds_nobody_up(tmp_path: Path, ripgrep: str) -> None:
    write(tmp_path, {"a": "", "b/c": ""})
    os.mkfifo(tmp_path / ".gitignore")
    search = search_for(job(tmp_path, glob="**", ripgrep=ripgrep))
    assert ([result["file"] for result in search.results()], asdict(search.end)) == find(tmp_path, None)


@every_ripgrep
def test_a_path_longer_than_the_system_takes_makes_no_difference(tmp_path: Path, ripgrep: str) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "z": ""})
    name = "d" * 250
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    for leaf in ("leaf", "leaf.log"):
        os.close(os.open(leaf, os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    try:
        own = find(tmp_path, None)
        assert find(tmp_path, ripgrep) == own
    finally:  # it is too deep for what removes temporary folders
        subprocess.run(["rm", "-rf", str(tmp_path / name)], check=True, stdin=subprocess.DEVNULL)


# --- a ripgrep that fails -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    ["exit 2", "kill -9 $$", "printf './a\\0'; exit 2", "head -c 100000000 /dev/zero", "exec /nowhere",
     "printf './gone\\0./a\\0./src/b\\0./../../etc/passwd\\0./.gitignore\\0./link\\0/etc/x\\0'"],
)  # fmt: skip
def test_a_ripgrep_that_fails_or_names_what_is_not_there_changes_nothing(
    tmp_path: Path, tools: Path, script: str
) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "a": "", "a.log": "", "src/b": ""})
    (tmp_path / "link").symlink_to("a")
    own = find(tmp_path, None)
    assert own[0] == [".gitignore", "a", "link", "src/b"]
    assert find(tmp_path, program(tools / "rg", script)) == own


def test_a_ripgrep_that_is_no_program_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "a": "", "a.log": ""})
    for path in ("/nowhere/rg", str(tmp_path / "a"), str(tmp_path)):
        assert find(tmp_path, path) == find(tmp_path, None)


def test_files_that_come_and_go_meanwhile_are_no_error(tmp_path: Path, tools: Path) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "a": "", "b": "", "src/c": ""})
    script = f"rm {tmp_path}/b; rm -r {tmp_path}/src; printf './a\\0./b\\0./src/c\\0./.gitignore\\0'"
    found, end = find(tmp_path, program(tools / "rg", script))
    assert {".gitignore", "a"} <= set(found) <= {".gitignore", "a", "b", "src/c"}
    assert end["unreadable"] in (0, 1)  # the walk has been in a folder before it went, or comes too late
    assert end["cut"] is None


def test_what_is_in_a_tree_is_told_by_ripgrep_however_small_the_tree(tmp_path: Path, tools: Path) -> None:
    write(tmp_path, {"a": "", "b": "", "src/c": "", "src/d": ""})
    (tmp_path / "link").symlink_to("a")
    assert find(tmp_path, program(tools / "rg", "printf './b\\0./src/d\\0'"))[0] == ["b", "link", "src/d"]
    assert find(tmp_path, program(tools / "rg", "exit 1"))[0] == ["link"]


@pytest.mark.parametrize("script", ["exec sleep 600", "exec 1>&-; exec sleep 600", "exec yes"])
def test_a_ripgrep_that_does_not_end_holds_no_search_up(tmp_path: Path, tools: Path, script: str) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "a": "", "a.log": "", "src/b": ""})
    before = children(os.getpid())
    search = search_for(job(tmp_path, glob="**", ripgrep=program(tools / "rg", script)))
    assert [result["file"] for result in search.results()] == [".gitignore", "a", "src/b"]
    assert search.end.cut is None
    assert children(os.getpid()) == before


def test_a_list_of_many_small_folders_takes_little_memory(tmp_path: Path, tools: Path) -> None:
    (tools / "list").write_bytes(b"".join(b"./%06x/a\0" % number for number in range(100_000)))
    fake = program(tools / "rg", f"exec cat {tools}/list")
    tracemalloc.start()
    try:
        assert listed(tmp_path, fake, base=()) == set()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 300 * 100_000, "bytes for each folder"


async def test_a_ripgrep_that_hangs_ends_with_a_search_that_is_cancelled(
    tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "ws", {"a": ""})
    fake = program(tools / "rg", f"echo $$ > {tools}/new; mv {tools}/new {tools}/pid; exec sleep 600")
    patient = f"""
from agentd.workspace import ripgrep_listing, search_worker
ripgrep_listing._PATIENCE_SECONDS = {PATIENCE_SECONDS}
search_worker.main()
"""
    monkeypatch.setattr(
        "agentd.workspace.worker_process._START", f"import sys; sys.path[:] = sys.argv[2:]\n{patient}"
    )
    async with anyio.create_task_group() as tasks:
        wanted = job(root, glob="**", seconds=4 * PATIENCE_SECONDS)
        tasks.start_soon(search_with, Ripgrep(fake, "14.1.0"), wanted)
        assert await anyio.to_thread.run_sync(appears, tools / "pid")
        tasks.cancel_scope.cancel()
    assert none_left([int((tools / "pid").read_text())])


async def test_find_files_gets_the_ripgrep_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    async def run_worker(module: str, request: bytes, answer: bytearray, **limits: object) -> bool:
        asked.append(json.loads(request)["ripgrep"])
        answer += b'{"end": {}}\n'
        return True

    monkeypatch.setattr("agentd.workspace.search.run_worker", run_worker)
    for ripgrep in (None, Ripgrep("/usr/bin/rg", "14.1.0")):
        await search_with(ripgrep, job(tmp_path, glob="*"))
    assert asked == [None, "/usr/bin/rg"]


@needs_ripgrep
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_both_ways_pass_over_folders_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory(prefix="agentd-find-") as folder:
        root, tools = Path(folder, "ws"), Path(folder, "tools")
        write(
            root,
            {".gitignore": "*.log\n", "a": "", "shut/x": "", "z/b": "", "z/b.log": "", "z/.gitignore": "b\n"},
        )
        tools.mkdir()
        for place, mode in ((root / "z/.gitignore", 0o600), (root / "shut", 0o700), (Path(folder), 0o755)):
            place.chmod(mode)
        for number, ripgrep in enumerate(RIPGREPS):
            shutil.copy(ripgrep, tools / f"rg{number}")
        ways = [None, *(str(tools / f"rg{number}") for number in range(len(RIPGREPS)))]
        told = {
            limit: [
                json.loads(as_nobody(job(root, glob="**", limit=limit, ripgrep=way)).stdout) for way in ways
            ]
            for limit in (1, 500)
        }
    for limit, names, unreadable in (
        (1, [".gitignore"], 0),  # it is cut before it comes there
        (500, [".gitignore", "a", "z/.gitignore", "z/b"], 1),
    ):
        found, end = told[limit][0]
        assert [each["file"] for each in found] == names
        assert end["unreadable"] == unreadable
        assert all(result == [found, end] for result in told[limit])


# --- any tree, any rules --------------------------------------------------------------------------

names = st.sampled_from(
    ["a", "b", "foo", "a.py", "x.log", ".h", "a b", "{a,b}", "[x]", "é", "\\a", "bad\udcff", "new\nline",
     ".git", ".gitignore", ".ignore", ".rgignore", ".x.agentd~", "-a", "A", "o" * 255, "foo.py", "a."]
)  # fmt: skip
paths = st.lists(names, min_size=1, max_size=4)
plain_pieces = st.sampled_from(
    ["a", "b", "foo", "*", "*.py", "*.log", "f*", "*o", ".h", "*b*", "[ab]", "[a-z]*", "[x]", "x.*", "?",
     "a.", "*."]
)  # fmt: skip
odd_pieces = st.sampled_from(
    ["**", "[!a]", "\\a", "a b", "{a,b}", "[^a]", "é", "foo**", "**o", "[z-a]", ".", "#a"]
)
ends = st.sampled_from(["", "", "", "/", "/**", " ", "\r", "\t", "/**/"])


@st.composite
def rules(draw: st.DrawFn, pieces: st.SearchStrategy[str]) -> str:
    path = "/".join(draw(st.lists(pieces, min_size=1, max_size=3)))
    start = draw(st.sampled_from(["", "", "!", "/", "!/", "**/", "!**/", "/**/", " "]))
    return start + path + draw(ends)


rule_files = st.one_of(
    st.lists(rules(plain_pieces), max_size=5), st.lists(rules(plain_pieces | odd_pieces), max_size=4)
).map("\n".join)
targets = st.sampled_from(["a", "foo", "../a", "..", "/etc", "/etc/passwd", "nowhere", "."])


@pytest.fixture(scope="module")
def places() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="agentd-find-") as made:
        yield Path(made).resolve()


def make_tree(
    root: Path,
    files: list[list[str]],
    links: list[tuple[list[str], str]],
    below: list[tuple[list[str], str]],
) -> None:
    for parts in files:
        with suppress(OSError):  # a file and a folder of one name
            root.joinpath(*parts).parent.mkdir(parents=True, exist_ok=True)
            root.joinpath(*parts).touch()
    for parts, target in links:
        with suppress(OSError):  # below a link
            root.joinpath(*parts).symlink_to(target)
    for parts, text in below:
        folder = root.joinpath(*parts)
        if folder.is_dir() and folder.resolve() == folder:
            with suppress(OSError):  # a folder of that name
                (folder / ".gitignore").write_bytes(text.encode())


@every_ripgrep
@settings(max_examples=80, deadline=None)
@given(
    st.lists(paths, min_size=1, max_size=12),
    st.lists(st.tuples(paths, targets), max_size=3),
    rule_files,
    st.lists(st.tuples(st.lists(names, min_size=1, max_size=3), rule_files), max_size=3),
    st.sampled_from(GLOBS),
    st.lists(names, max_size=2),
)
@example([["a", ".git", "b"], ["a", "x.log"]], [], "*.log", [(["a"], "!b")], "**", [])
@example([["a", "b", "foo"], ["a", "b", "a", "b"]], [], "foo", [(["a"], "/b/foo")], "**", ["a", "b"])
def test_any_tree_any_rules_any_glob(  # noqa: PLR0917 - as many as make a tree
    places: Path,
    ripgrep: str,
    files: list[list[str]],
    links: list[tuple[list[str], str]],
    top: str,
    below: list[tuple[list[str], str]],
    glob: str,
    base: list[str],
) -> None:
    with tempfile.TemporaryDirectory(dir=places) as folder:
        root = Path(folder)
        make_tree(root, files, links, [([], top), *below])
        there = root.joinpath(*base)
        wanted = tuple(base) if there.is_dir() and there.resolve() == there else ()
        own = find(root, None, glob=glob, base=wanted)
        assert find(root, ripgrep, glob=glob, base=wanted) == own
