"""Names that are odd, not text, meant for another system, or another name's double."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from file_calls import Calls

import agentd
from agentd.workspace import own_program
from agentd.workspace.paths import PathError

GIT = [
    ".git/hooks/x", ".GIT/hooks/x", ".Git/config", ".gIt", "sub/.GIT/x", ".g\u200cit/hooks/x", ".git./x",
    ".git /x", "GIT~1/hooks/x", "\uff0egit/x", ".git::$INDEX_ALLOCATION/x",
]  # fmt: skip
NOT_UTF_8 = os.fsdecode(b"bad\xff.txt")


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    root = tmp_path / "ws"
    root.mkdir()
    return Calls(root)


@pytest.mark.parametrize(
    "name",
    [
        "new\nline",
        "tab\there",
        " blank ",
        "-rf",
        "é" * 127,
        "x" * 255,
        "..f",
        "~",
        "$HOME",
        "*",
        "%41",
        "[a]",
    ],
)
async def test_a_name_that_is_legal_is_made_read_and_edited(calls: Calls, name: str) -> None:
    await calls.text("write_file", file_path=name, content="one\n")
    assert (await calls.text("read_file", file_path=name)).endswith("| one")
    await calls.text("edit_file", file_path=name, old_string="one", new_string="two")
    await calls.text("write_file", file_path=name, content="three\n")
    assert os.listdir(calls.root) == [name]
    assert (calls.root / name).read_text() == "three\n"
    action = await calls.prepare("edit_file", file_path=name, old_string="three", new_string="four")
    assert action.subject is not None
    action.subject.model_dump_json()


async def test_a_name_that_is_no_utf_8_is_edited_by_its_escaped_form(calls: Calls) -> None:
    (calls.root / NOT_UTF_8).write_text("one\n")
    await calls.text("read_file", file_path="bad\\xff.txt")
    text = await calls.text("edit_file", file_path="bad\\xff.txt", old_string="one", new_string="two")
    assert text == "Edited bad\\xff.txt (1 replacement, +1 -1)."
    await calls.text("write_file", file_path="bad\\xff.txt", content="three\n")
    assert os.listdir(calls.root) == [NOT_UTF_8]
    assert (calls.root / NOT_UTF_8).read_text() == "three\n"


@pytest.mark.parametrize("name", ["a\0b", "\0", "a\ud800", "x" * 256, "d/" + "é" * 128])
@pytest.mark.parametrize("tool", ["read_file", "write_file", "edit_file"])
async def test_what_no_name_can_be_is_refused(calls: Calls, name: str, tool: str) -> None:
    more = {"write_file": {"content": "x"}, "edit_file": {"old_string": "a", "new_string": "b"}}
    try:
        text = await calls.error(tool, file_path=name, **more.get(tool, {}))
    except PathError as error:
        text = str(error)
    text.encode("utf-8")
    assert [path.name for path in calls.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("C:\\Users\\me\\a.py", "Windows drive"),
        ("c:/src/a.py", "Windows drive"),
        ("src\\new.py", 'Write "src/new.py"'),
        ("\\\\server\\share", 'Write "//server/share"'),
    ],
)
async def test_no_file_is_made_by_a_name_meant_for_windows(calls: Calls, name: str, hint: str) -> None:
    with pytest.raises(PathError) as caught:
        await calls.run("write_file", file_path=name, content="x")
    assert hint in str(caught.value)
    assert os.listdir(calls.root) == []


async def test_a_name_with_backslashes_leads_to_the_one_with_slashes_or_is_a_name(calls: Calls) -> None:
    (calls.root / "src").mkdir()
    (calls.root / "src/a.py").write_text("one\n")
    text = await calls.error("read_file", file_path="src\\a.py")
    assert text == "File not found: 'src\\a.py'\nDid you mean:\n  src/a.py"
    (calls.root / "src\\a.py").write_text("odd\n")
    assert (await calls.text("read_file", file_path="src\\a.py")).endswith("| odd")
    await calls.text("write_file", file_path="src\\a.py", content="odder\n")
    assert (calls.root / "src/a.py").read_text() == "one\n"


@pytest.mark.parametrize("name", GIT)
async def test_a_change_to_git_asks_in_every_spelling_that_some_file_system_takes_for_it(
    calls: Calls, name: str
) -> None:
    assert (await calls.prepare("write_file", file_path=name, content="x")).secret


@pytest.mark.parametrize("name", [".hg/hgrc", "sub/.hg/hgrc", ".HG/hgrc", ".jj/repo/config.toml", ".svn/x"])
async def test_a_change_to_another_kind_of_repository_asks(calls: Calls, name: str) -> None:
    assert (await calls.prepare("write_file", file_path=name, content="x")).secret


@pytest.fixture
def repositories(calls: Calls) -> None:
    git = ["git", "-C", str(calls.root)]
    subprocess.run([*git, "init", "-q", "--separate-git-dir", "own", "."], check=True)
    subprocess.run([*git, "init", "-q", "--bare", "sub/bare"], check=True)


@pytest.mark.usefixtures("repositories")
async def test_a_change_to_a_repository_of_another_name_asks(calls: Calls) -> None:
    for name in ("own/hooks/post-checkout", "own/config.worktree", "own/worktrees/w/x", "sub/bare/hooks/x"):
        assert (await calls.prepare("write_file", file_path=name, content="x")).secret, name
    assert not (await calls.prepare("write_file", file_path="sub/hooks/x", content="x")).secret


@pytest.mark.parametrize("name", [".gitignore", "git/x", ".github/x", "a.git/x", ".gitt"])
async def test_names_that_only_begin_like_git_do_not_ask(calls: Calls, name: str) -> None:
    assert not (await calls.prepare("write_file", file_path=name, content="x")).secret


async def test_a_link_into_git_asks_as_well(calls: Calls) -> None:
    (calls.root / ".git/hooks").mkdir(parents=True)
    (calls.root / "hooks").symlink_to(".git/hooks")
    assert (await calls.prepare("write_file", file_path="hooks/x", content="x")).secret


async def test_temporaries_of_writes_are_neither_listed_nor_found_nor_searched(calls: Calls) -> None:
    (calls.root / ".f.0123456789abcdef-1.agentd~").write_text("needle\n")
    (calls.root / "f").write_text("")
    assert await calls.text("list_directory") == "f"
    assert "agentd~" not in await calls.text("find_files", glob="**/*")
    assert "agentd~" not in await calls.text("search_files", pattern="needle")
    text = await calls.error("read_file", file_path=".f.0123456789abcdef-2.agentd~")
    assert text == "File not found: '.f.0123456789abcdef-2.agentd~'"


ATTEMPTS = {
    "read_file": {"file_path": "f"},
    "write_file": {"file_path": "new/f", "content": "x"},
    "edit_file": {"file_path": "f", "old_string": "old", "new_string": "x"},
    "list_directory": {},
    "search_files": {"pattern": "old"},
    "find_files": {"glob": "*"},
}


@pytest.mark.parametrize("fate", ["moved", "deleted", "a link elsewhere"])
async def test_in_a_workspace_that_is_gone_nothing_is_read_and_nothing_written_elsewhere(
    calls: Calls, tmp_path: Path, fate: str
) -> None:
    root, other = calls.root, tmp_path / "other"
    other.mkdir()
    for folder in (root, other):
        (folder / "f").write_text("old")
    await calls.text("read_file", file_path="f")
    prepared = [await calls.prepare(tool, **arguments) for tool, arguments in ATTEMPTS.items()]
    if fate == "deleted":
        shutil.rmtree(root)
    else:
        root.rename(tmp_path / "moved")
    if fate == "a link elsewhere":
        root.symlink_to(other)
    for tool, arguments in ATTEMPTS.items():
        with pytest.raises(PathError, match="does not exist any more, or leads elsewhere"):
            await calls.prepare(tool, **arguments)
    for action in prepared[:4]:
        assert (await action.run()).is_error
    for folder in (other, tmp_path / "moved"):
        if folder.is_dir():
            assert os.listdir(folder) == ["f"]
            assert (folder / "f").read_text() == "old"
    assert fate == "a link elsewhere" or not root.exists()


async def test_a_change_to_the_agentd_that_runs_asks_as_one_to_a_secret(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls.root.joinpath("env", "lib").mkdir(parents=True)
    assert not (await calls.prepare("write_file", file_path="env/lib/a.py", content="x")).secret
    monkeypatch.setattr(own_program, "program_places", lambda: (calls.root.resolve() / "env",))
    assert (await calls.prepare("write_file", file_path="env/lib/a.py", content="x")).secret
    assert not (await calls.prepare("write_file", file_path="environment.py", content="x")).secret


def test_the_program_is_the_package_its_environment_and_its_interpreter() -> None:
    assert own_program.is_of_program(Path(os.path.realpath(agentd.__file__)))
    assert own_program.is_of_program(Path(os.path.realpath(sys.executable)))
    assert own_program.is_of_program(Path(os.path.realpath(anyio.__file__)))
    assert not own_program.is_of_program(Path(os.path.realpath(__file__)))
