"""What is found does not depend on whether there is a ripgrep, and which."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from living import appears, none_left
from search_trees import CONTENTS, RIPGREP, as_nobody, job, make_nasty, needs_ripgrep, search_with

from agentd.workspace.ripgrep import Ripgrep
from agentd.workspace.search_worker import search_for

PATTERNS = [
    "needle", "^needle", "needle$", r"\bneedle\b", "NEEDLE", r"n.{2}dle", r"^\S+ needle$", r"(?i)NEEdle",
    r"d\S+ needle", "é", "[^a-z]needle", r"\W$", r"^$", "x*", ".", r"(?<=the )needle", r"(ne+d)le.*\1", "-v",
    "--pre=cat", r"\x6eeedle", r"(?=n)n", "k elvin", "İ", "ſ|ı", "STRASSE", r"\u212a", "[\\udc80-\\udcff]",
    r"needle\n", r"needle\r", r"\d|needle\Z", "(?P<n>need)(?:le)(?#note)", "(?x) need  le # comment",
    r"(n)?(?(1)eedle|x)", "(?>ne+)dle", "n++eedle", r"\0",
]  # fmt: skip


@pytest.fixture
def nasty(tmp_path: Path) -> Path:
    return make_nasty(tmp_path)


def searched(*given: Any, **options: Any) -> tuple[list[Any], Any]:
    """What a search finds in this process, which spares the start of another one."""
    search = search_for(job(*given, **options))
    return [*search.results()], search.end


@needs_ripgrep
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_both_ways_to_search_find_the_same(nasty: Path, pattern: str) -> None:
    assert RIPGREP is not None
    wanted = job(nasty, pattern)
    assert await search_with(RIPGREP, wanted) == await search_with(None, wanted)
    for more in (
        {"ignore_case": True},
        {"context": 2, "limit": 7},
        {"glob": "*.{txt,py,log}"},
        {"base": ("vendor",)},
        {"buffers": {"plain.txt": "typed needle", "new/file": "needle"}, "with_secrets": True},
    ):
        own, helped = (searched(nasty, pattern, ripgrep=each, **more) for each in (None, RIPGREP.path))
        assert helped == own, more


async def test_what_is_found_in_the_nasty_folder(nasty: Path) -> None:
    outcome = await search_with(None, job(nasty, "needle"))
    missing = {"empty", "kelvin", "src/a.log", "build/out.js", "build/keep.js", ".git/info/exclude",
               ".gitignore", ".ignore", ".rgignore", "vendor/.gitignore", "vendor/dropped/x",
               "nested/.git/HEAD", "nested/.gitignore", "half16", "binary", "late binary", ".env",
               "keys/id_rsa"}  # fmt: skip
    names = {"bad\udcff name", "nfd e\u0301", "\u202e"}
    assert {result["file"] for result in outcome.found} == set(CONTENTS) - missing | names
    end = outcome.end
    assert (end.secret, end.binary, end.too_large, end.unreadable) == (2, 3, 1, 0)


@needs_ripgrep
async def test_ripgrep_really_helps(nasty: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert RIPGREP is not None
    tools = tmp_path_factory.mktemp("tools")
    fake = program(tools / "rg", f'echo "$@" >> {tools}/asked; env >> {tools}/env\n'
                   f'exec {RIPGREP.path} "$@"')  # fmt: skip
    (nasty / "many").mkdir()
    for number in range(300):
        (nasty / "many" / str(number)).write_text("nothing\n")
    outcome = await search_with(Ripgrep(str(fake), "14.1.0"), job(nasty, "needle"))
    assert outcome == await search_with(None, job(nasty, "needle"))
    asked = (tools / "asked").read_text(errors="replace")
    assert "./many/299" in asked
    assert "--no-config" in asked
    for name in ("./.env", "./keys", "./pipe", "./link", "./out", "./sparse", "./build", "./.git/"):
        assert f" {name}" not in asked
    variables = {line.partition("=")[0] for line in (tools / "env").read_text().splitlines()}
    assert variables <= {"PWD", "SHLVL", "_", "OLDPWD"}  # those are the shell's own


@pytest.mark.parametrize(
    "script",
    ["exit 2", "kill -9 $$", "echo ./plain.txt; exit 2", "head -c 100000 /dev/zero; exit 3", "exec /nowhere"],
)
async def test_a_ripgrep_that_fails_loses_nothing(
    nasty: Path, tmp_path_factory: pytest.TempPathFactory, script: str
) -> None:
    fake = program(tmp_path_factory.mktemp("tools") / "rg", script)
    outcome = await search_with(Ripgrep(str(fake), "14.1.0"), job(nasty, "needle"))
    assert outcome == await search_with(None, job(nasty, "needle"))


async def test_a_ripgrep_that_is_gone_or_no_program_loses_nothing(nasty: Path) -> None:
    own = await search_with(None, job(nasty, "needle"))
    for path in ("/nowhere/rg", str(nasty / "plain.txt"), str(nasty)):
        assert await search_with(Ripgrep(path, "14.1.0"), job(nasty, "needle")) == own


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_ripgrep_that_hangs_ends_with_the_search(
    nasty: Path, tmp_path_factory: pytest.TempPathFactory, cancelled: bool
) -> None:
    tools = tmp_path_factory.mktemp("tools")
    fake = program(tools / "rg", f"echo $$ > {tools}/pid.new; mv {tools}/pid.new {tools}/pid; exec sleep 600")
    hanging = job(nasty, "needle", seconds=60.0 if cancelled else 1.0)
    async with anyio.create_task_group() as tasks:
        outcomes = []

        async def searching() -> None:
            outcomes.append(await search_with(Ripgrep(str(fake), "14.1.0"), hanging))

        tasks.start_soon(searching)
        assert await anyio.to_thread.run_sync(appears, tools / "pid")
        if cancelled:
            tasks.cancel_scope.cancel()
    assert not outcomes if cancelled else outcomes[0].end.cut == "time"
    assert none_left([int((tools / "pid").read_text())])


@needs_ripgrep
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_both_ways_pass_over_what_may_not_be_read() -> None:
    assert RIPGREP is not None
    with tempfile.TemporaryDirectory(prefix="agentd-search-") as folder:
        root, tools = Path(folder, "ws"), Path(folder, "tools")
        root.mkdir()
        tools.mkdir()
        for name in ("a", "locked", "z", "shut/x"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text("needle\n")
        for place, mode in ((root / "locked", 0o600), (root / "shut", 0o700), (Path(folder), 0o755)):
            place.chmod(mode)
        shutil.copy(RIPGREP.path, tools / "rg")
        results = [
            json.loads(as_nobody(job(root, "needle", ripgrep=ripgrep)).stdout)
            for ripgrep in (None, str(tools / "rg"))
        ]
    assert results[0] == results[1]
    found, end = results[0]
    assert [each["file"] for each in found] == ["a", "z"]
    assert end["unreadable"] == 2


# --- any files, any pattern -----------------------------------------------------------------------

letters = st.sampled_from([*"abkKsS İſé\u212a\n\r\0\ufeff_1.-"])
text = st.text(letters, max_size=30)
contents = st.one_of(
    text.map(lambda each: each.encode()),
    text.map(lambda each: each.encode("utf-16")),
    st.lists(st.sampled_from([b"a", b"k", b"\xff", b"\xfe", b"\xc3", b"\xa9", b"\n", b"\r", b"\xef\xbb\xbf"]))
    .map(b"".join),
)  # fmt: skip
atoms = st.sampled_from(
    ["a", "b", "k", "s", "é", "İ", ".", r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", "[ak]", "[^ak]", "[a-é]",
     "[^é]", r"[\Wa]", "^", "$", r"\b", r"\B", r"\n", r"\r", "(?=a)", "(?!a)", "(?<=a)", r"\A", r"\Z", "_"]
)  # fmt: skip

forms = st.sampled_from(
    ["{}", "{}", "(?:{})?", "(?:{})*", "(?:{})+", "(?:{}){{2}}", "(?:{}|b)", "(?P<n>{})(?P=n)",
     "(?i:{})", "(?>{})", "(?s:{})"]
)  # fmt: skip


@st.composite
def patterns(draw: st.DrawFn) -> str:
    pieces = []
    for atom in draw(st.lists(atoms, min_size=1, max_size=4)):
        pieces.append(draw(forms).format(atom))
    pattern = "".join(pieces)
    assume(pattern.count("?P<n>") < 2)  # a name for one group only
    return pattern


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="agentd-search-") as made:
        yield Path(made).resolve()


@needs_ripgrep
@settings(max_examples=150, deadline=None)
@given(st.lists(contents, min_size=1, max_size=8), patterns(), st.booleans())
def test_any_files_and_any_pattern(folder: Path, data: list[bytes], pattern: str, ignore_case: bool) -> None:
    assert RIPGREP is not None
    for file in folder.iterdir():
        file.unlink()
    for number, content in enumerate(data):
        (folder / str(number)).write_bytes(content)
    own, helped = (
        searched(folder, pattern, ignore_case=ignore_case, ripgrep=each) for each in (None, RIPGREP.path)
    )
    assert helped == own


@pytest.mark.parametrize(
    "pattern", ["a{1000}b", "(a{50}){50}", "(?:" + "|".join("xyz" * 2000) + ")", "é" * 20_000]
)
@needs_ripgrep
async def test_a_pattern_too_large_for_ripgrep_is_searched_all_the_same(tmp_path: Path, pattern: str) -> None:
    re.compile(pattern)
    (tmp_path / "f").write_text("a" * 2500 + "b xyz " + "é" * 20_000)
    outcome = await search_with(RIPGREP, job(tmp_path, pattern))
    assert outcome.end.matches == 1
    assert outcome == await search_with(None, job(tmp_path, pattern))


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
