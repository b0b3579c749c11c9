import os
from pathlib import Path

import anyio
import pytest
from file_calls import Calls, said

from agentd.protocol.messages import SearchDetails
from agentd.tools import find_files, search_files
from agentd.workspace.editor import OpenDocument
from agentd.workspace.paths import OutsideWorkspace


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    root = tmp_path / "ws"
    root.mkdir()
    for name, text in {
        "a.py": "import os\nTODO one\n", "src/b.py": "x\ny\nTODO two\nz\n",
        "src/pages/[id].tsx": "TODO three\n",
        ".hidden": "TODO four\n", "build/out.js": "TODO ignored\n",
        ".gitignore": "build/\n",
    }.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Calls(root)


# --- list_directory -------------------------------------------------------------------------------


async def test_a_folder_is_listed_sorted_with_folders_and_links_marked(calls: Calls) -> None:
    (calls.root / "link").symlink_to("src")
    (calls.root / "out").symlink_to("/etc")
    text = await calls.text("list_directory")
    assert text.split("\n") == [
        ".gitignore",
        ".hidden",
        "a.py",
        "build/",
        "link -> src",
        "out -> /etc",
        "src/",
    ]
    assert await calls.text("list_directory", path="link") == "b.py\npages/"
    (calls.root / "empty").mkdir()
    assert await calls.text("list_directory", path="empty") == "'empty' is empty."


async def test_what_is_no_folder_is_an_error(calls: Calls) -> None:
    assert "is a file" in await calls.error("list_directory", path="a.py")
    assert "not found" in await calls.error("list_directory", path="nope")
    (calls.root / "out").symlink_to("/etc")
    for tool, more in (
        ("list_directory", {}),
        ("find_files", {"glob": "*"}),
        ("search_files", {"pattern": "root"}),
    ):
        for path in ("..", "out", "/etc", "out/ssl"):
            with pytest.raises(OutsideWorkspace):
                await calls.prepare(tool, path=path, **more)


async def test_a_crowded_folder_is_cut_with_a_word(calls: Calls) -> None:
    (calls.root / "many").mkdir()
    for number in range(1200):
        (calls.root / f"many/{number:04}").touch()
    lines = (await calls.text("list_directory", path="many")).split("\n")
    assert lines[:2] == ["0000", "0001"]
    assert lines[-1].startswith("(200 more entries")
    assert len(lines) == 1001


async def test_odd_names_are_shown_on_one_line(calls: Calls) -> None:
    (calls.root / "odd").mkdir()
    for name in (b"new\nline", b"bad\xff", "é\u202e".encode()):
        (calls.root / "odd" / os.fsdecode(name)).write_text("TODO\n")
    for text in (
        await calls.text("list_directory", path="odd"),
        await calls.text("find_files", glob="odd/*"),
        await calls.text("search_files", pattern="TODO", path="odd"),
    ):
        text.encode("utf-8")
        for shown in ("new\\nline", "bad\\xff", "é\\u202e"):
            assert shown in text


# --- find_files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"glob": "*.py"}, ["a.py", "src/b.py"]),
        ({"glob": "*.py", "path": "src"}, ["src/b.py"]),
        ({"glob": "src/*"}, ["src/b.py"]),
        ({"glob": "*", "path": "src"}, ["src/b.py", "src/pages/[id].tsx"]),
        ({"glob": "src/pages/[id].tsx"}, ["src/pages/[id].tsx"]),
        ({"glob": ".*"}, [".gitignore", ".hidden"]),
        ({"glob": "*.{tsx,js}"}, ["src/pages/[id].tsx"]),
        ({"glob": "*.js", "path": "build"}, ["build/out.js"]),
        ({"glob": "*.rs"}, ["No files found."]),
    ],
)
async def test_files_are_found_by_glob(calls: Calls, arguments: dict[str, str], found: list[str]) -> None:
    assert (await calls.text("find_files", **arguments)).split("\n") == found


async def test_too_many_files_are_cut_with_a_word(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_files, "_LIMIT", 2)
    result = await calls.run("find_files", glob="*")
    assert (
        said(result).split("\n")[-1]
        == "(cut after 2 files, there are more; narrow the pattern, path or glob)"
    )
    assert result.details == SearchDetails(matches=2, truncated=True)


# --- search_files ---------------------------------------------------------------------------------


async def test_lines_are_found_with_path_and_number(calls: Calls) -> None:
    result = await calls.run("search_files", pattern=r"TODO \w+")
    assert said(result).split("\n") == [
        ".hidden:1: TODO four", "a.py:2: TODO one", "src/b.py:3: TODO two",
        "src/pages/[id].tsx:1: TODO three",
    ]  # fmt: skip
    assert result.details == SearchDetails(matches=4, truncated=False)


async def test_glob_case_context_and_limit(calls: Calls) -> None:
    assert await calls.text("search_files", pattern="todo", glob="*.py") == "No matches in 2 files."
    text = await calls.text("search_files", pattern="todo", case="insensitive", glob="*.py", context=1)
    assert text.split("\n") == [
        "a.py-1- import os", "a.py:2: TODO one", "--", "src/b.py-2- y", "src/b.py:3: TODO two",
        "src/b.py-4- z",
    ]  # fmt: skip
    result = await calls.run("search_files", pattern="TODO", limit=2)
    assert said(result).split("\n")[2:] == [
        "(cut after 2 matches, there are more; narrow the pattern, path or glob)"
    ]
    assert result.details == SearchDetails(matches=2, truncated=True)
    assert "cut" not in await calls.text("search_files", pattern="TODO", limit=4)


async def test_context_of_matches_near_each_other_is_shown_once(calls: Calls) -> None:
    (calls.root / "n").write_text("1\nhit\n3\nhit\n5\n6\n7\nhit\n")
    text = await calls.text("search_files", pattern="hit", path="n", context=1)
    assert text.split("\n") == [
        "n-1- 1", "n:2: hit", "n-3- 3", "n:4: hit", "n-5- 5", "--", "n-7- 7", "n:8: hit",
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["-v", "--files", "--pre=./x", "-e", "$(touch x)"])
async def test_a_pattern_is_never_an_option_or_a_command(calls: Calls, pattern: str) -> None:
    (calls.root / "f").write_text(f"say {pattern}\n")
    text = await calls.text("search_files", pattern=pattern.replace("$(", r"\$\(").replace(" x)", r" x\)"))
    assert text == f"f:1: say {pattern}"


@pytest.mark.parametrize(("pattern", "position"), [("foo(", 3), ("[", 0), ("a**", 2)])
async def test_an_invalid_pattern_names_the_position(calls: Calls, pattern: str, position: int) -> None:
    assert f"at position {position}" in await calls.error("search_files", pattern=pattern)


async def test_a_match_in_a_very_long_line_is_shown_in_a_window(calls: Calls) -> None:
    (calls.root / "app.min.js").write_text("x" * 1_500_000 + "needle" + "y" * 500_000)
    (calls.root / "z.txt").write_text("needle\n")
    text = await calls.text("search_files", pattern="needle")
    first, second = text.split("\n")
    assert first.startswith("app.min.js:1: ...x")
    assert "xneedley" in first
    assert first.endswith("... (truncated)")
    assert len(first) < 700
    assert second == "z.txt:1: needle"


async def test_the_whole_result_is_capped(calls: Calls) -> None:
    (calls.root / "f").write_text(("日" * 400 + "\n") * 1000)
    result = await calls.run("search_files", pattern="日", limit=1000, context=3)
    assert len(said(result).encode()) <= 50_000
    assert "(cut after" in said(result)
    assert isinstance(result.details, SearchDetails)
    assert result.details.truncated


async def test_other_encodings_are_searched_and_binary_files_counted(calls: Calls) -> None:
    (calls.root / "wide").write_bytes("naïve\r\nfind me\r\n".encode("utf-16"))
    (calls.root / "old").write_bytes(b"\xff find me\n")
    (calls.root / "bin").write_bytes(b"find me\0")
    lines = (await calls.text("search_files", pattern="find me$")).split("\n")
    assert lines == ["old:1: \ufffd find me", "wide:2: find me", "(1 file: binary, not searched)"]


async def test_secrets_are_passed_over_unless_named_and_then_asked_about(calls: Calls) -> None:
    (calls.root / ".env").write_text("KEY=abc\n")
    (calls.root / ".env.example").write_text("KEY=\n")
    (calls.root / "home/.ssh").mkdir(parents=True)
    (calls.root / "home/.ssh/config").write_text("KEY\n")
    action = await calls.prepare("search_files", pattern="KEY")
    assert not action.secret
    lines = said(await action.run()).split("\n")
    assert lines[0] == ".env.example:1: KEY="
    assert lines[1].startswith("(2 files that may hold secrets not searched")
    for glob in (".env", "{.env,x}", ".e*"):
        assert "abc" not in await calls.text("search_files", pattern="KEY", glob=glob)
    for path in (".env", "home/.ssh"):
        action = await calls.prepare("search_files", pattern="KEY", path=path)
        assert action.secret
        assert "KEY" in said(await action.run())


async def test_unsaved_documents_are_searched_as_they_are(calls: Calls) -> None:
    root = calls.root.resolve()
    for name in ("a.py", "new/unsaved.py", "build/new.js"):
        calls.editor.documents[root / name] = OpenDocument("typed TODO\n", 2, dirty=True)
    lines = (await calls.text("search_files", pattern="TODO", glob="{a,unsaved,new}.*")).split("\n")
    assert lines == ["a.py:1: typed TODO", "new/unsaved.py:1: typed TODO"]
    assert await calls.text("search_files", pattern="os", path="a.py") == "No matches in 1 file."
    assert "typed" in await calls.text("search_files", pattern="TODO", path="new/unsaved.py")


async def test_what_cannot_be_searched_is_an_error_when_it_is_named(calls: Calls) -> None:
    os.mkfifo(calls.root / "pipe")
    assert "named pipe" in await calls.error("search_files", pattern="x", path="pipe")
    assert "not found" in await calls.error("search_files", pattern="x", path="nope")
    assert await calls.text("search_files", pattern="x", glob="pipe") == "No matches in 0 files."


async def test_links_are_not_followed(calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_text("TODO outside\n")
    (calls.root / "d").symlink_to(tmp_path / "outside")
    (calls.root / "f").symlink_to(tmp_path / "outside/f")
    assert "outside" not in await calls.text("search_files", pattern="TODO")


HOPELESS = "(a+)+$"


@pytest.fixture
def hopeless(calls: Calls) -> Calls:
    (calls.root / "hopeless").write_text("a" * 60 + "b\n")
    return calls


async def test_a_hopeless_pattern_is_stopped_by_cancel_while_other_work_goes_on(hopeless: Calls) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await anyio.sleep(0.01)
            beats += 1

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        with anyio.move_on_after(1) as scope:
            await hopeless.run("search_files", pattern=HOPELESS, path="hopeless")
        late = anyio.current_time() - scope.deadline
        group.cancel_scope.cancel()
    assert scope.cancelled_caught
    assert beats > 20
    assert late < 5
    assert children() == []


async def test_a_hopeless_pattern_is_stopped_when_the_time_is_up_and_earlier_matches_count(
    hopeless: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    (hopeless.root / "first").write_text("aaaa\n")
    monkeypatch.setattr(search_files, "SEARCH_SECONDS", 0.5)
    result = await hopeless.run("search_files", pattern=HOPELESS, glob="{first,hopeless}")
    assert said(result).startswith("first:1: aaaa\n(stopped after")
    assert "backtracks" in said(result)
    assert result.details == SearchDetails(matches=1, truncated=True)
    assert children() == []


def children() -> list[str]:
    """The processes below this one that search."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if int(stat[1]) == os.getpid() and b"search_worker" in command:
            found.append(pid)
    return found
