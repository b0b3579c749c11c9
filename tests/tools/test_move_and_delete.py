"""Moving and deleting files: what is refused, and what it leaves."""

import contextlib
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from file_calls import Calls
from test_special_files import MOUNT, PRIVATE_MOUNTS, run_script

from agentd.protocol.messages import EditDetails, EditSubject
from agentd.workspace import files, replacing
from agentd.workspace.editor import OpenDocument
from agentd.workspace.paths import Place


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path)


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


async def read(calls: Calls, name: str) -> None:
    await calls.text("read_file", file_path=name)


async def test_a_file_that_was_read_is_deleted_and_told_with_what_is_lost(calls: Calls) -> None:
    (calls.root / "a.txt").write_text("one\ntwo\n")
    await read(calls, "a.txt")
    action = await calls.prepare("delete_file", file_path="a.txt")
    patch = "--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"
    assert isinstance(action.subject, EditSubject)
    assert (action.subject.patch, action.secret) == (patch, False)
    result = await action.run()
    assert result.content[0].text == "Deleted a.txt (2 lines)."  # type: ignore[union-attr]
    assert isinstance(result.details, EditDetails)
    (change,) = result.details.files
    assert (change.action, change.patch, change.deletions) == ("deleted", patch, 2)
    assert names(calls.root) == []
    assert not calls.context.seen.knows(calls.root / "a.txt")


async def test_a_text_that_was_not_read_is_not_deleted(calls: Calls) -> None:
    (calls.root / "a.txt").write_text("one\n")
    assert "was not read in this session" in await calls.error("delete_file", file_path="a.txt")
    assert names(calls.root) == ["a.txt"]


async def test_what_is_no_text_is_deleted_without_being_read(calls: Calls) -> None:
    (calls.root / "a.bin").write_bytes(b"\0\1")
    action = await calls.prepare("delete_file", file_path="a.bin")
    assert isinstance(action.subject, EditSubject)
    assert action.subject.patch == "--- a/a.bin\n+++ /dev/null\nBinary files differ\n"
    assert not (await action.run()).is_error
    assert names(calls.root) == []


@pytest.mark.parametrize("when", ["before it is asked about", "behind it"])
async def test_a_file_that_was_changed_since_is_not_deleted(calls: Calls, when: str) -> None:
    (calls.root / "a.txt").write_text("one\n")
    await read(calls, "a.txt")
    if when == "behind it":
        action = await calls.prepare("delete_file", file_path="a.txt")
    (calls.root / "a.txt").write_text("another\n")
    if when != "behind it":
        action = await calls.prepare("delete_file", file_path="a.txt")
    result = await action.run()
    assert result.is_error
    assert "changed since it was read" in result.content[0].text  # type: ignore[union-attr]
    assert names(calls.root) == ["a.txt"]


async def test_a_file_that_is_changed_in_the_last_moment_is_not_deleted_or_moved(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = calls.root / "a.txt"
    path.write_text("one\n")
    await read(calls, "a.txt")
    looks = replacing._is_unchanged

    def writes_behind_the_look(parent: int, name: str, status: os.stat_result) -> bool:
        found = looks(parent, name, status)
        path.write_text("theirs\n")
        return found

    monkeypatch.setattr(replacing, "_is_unchanged", writes_behind_the_look)
    assert "changed since it was read" in await calls.error("delete_file", file_path="a.txt")
    path.write_text("one\n")
    await calls.error("move_file", file_path="a.txt", new_path="sub/b.txt")
    assert (names(calls.root), path.read_text()) == (["a.txt"], "theirs\n")
    assert not (calls.root / "sub").exists()


@pytest.mark.parametrize("tool", ["delete_file", "move_file"])
async def test_links_and_folders_are_refused(calls: Calls, tool: str) -> None:
    (calls.root / "a.txt").write_text("one\n")
    (calls.root / "link").symlink_to("a.txt")
    (calls.root / "sub").mkdir()
    await read(calls, "link")
    more = {"new_path": "b.txt"} if tool == "move_file" else {}
    assert "is a link" in await calls.error(tool, file_path="link", **more)
    way = "mv" if tool == "move_file" else "rm -r"
    said = f"'sub' is a folder, and this tool takes one file. Use bash with {way}."
    assert await calls.error(tool, file_path="sub", **more) == said
    assert "File not found" in await calls.error(tool, file_path="nothing", **more)
    assert names(calls.root) == ["a.txt", "link"]


@pytest.mark.parametrize("tool", ["delete_file", "move_file"])
async def test_a_read_only_file_stays_where_it_is(calls: Calls, tool: str) -> None:
    path = calls.root / "a.txt"
    path.write_text("one\n")
    path.chmod(0o444)
    await read(calls, "a.txt")
    more = {"new_path": "b.txt"} if tool == "move_file" else {}
    assert "read-only" in await calls.error(tool, file_path="a.txt", **more)
    assert names(calls.root) == ["a.txt"]


@pytest.mark.parametrize("tool", ["delete_file", "move_file"])
async def test_what_is_unsaved_and_cannot_be_saved_keeps_the_file(calls: Calls, tool: str) -> None:
    path = calls.root.resolve() / "a.txt"
    path.write_text("one\n")
    calls.editor.documents[path] = OpenDocument("mine\n", 1, True, path.as_uri())
    await read(calls, "a.txt")
    more = {"new_path": "b.txt"} if tool == "move_file" else {}
    assert "are not saved" in await calls.error(tool, file_path="a.txt", **more)
    assert path.read_text() == "one\n"


async def test_a_moved_file_keeps_content_mode_and_what_the_model_knows_of_it(calls: Calls) -> None:
    path = calls.root / "a.sh"
    path.write_bytes(b"one\r\n")
    path.chmod(0o750)
    await read(calls, "a.sh")
    action = await calls.prepare("move_file", file_path="a.sh", new_path="x/y/b.sh")
    assert isinstance(action.subject, EditSubject)
    assert action.subject.patch == "rename from a.sh\nrename to x/y/b.sh\n"
    assert action.subject.target_uri == (calls.root.resolve() / "x/y/b.sh").as_uri()
    result = await action.run()
    assert isinstance(result.details, EditDetails)
    assert [each.action for each in result.details.files] == ["deleted", "created"]
    moved = calls.root / "x/y/b.sh"
    assert (moved.read_bytes(), moved.stat().st_mode & 0o777) == (b"one\r\n", 0o750)
    assert names(calls.root) == ["x/y/b.sh"]
    await calls.text("edit_file", file_path="x/y/b.sh", old_string="one", new_string="two")


async def test_a_file_can_be_moved_unread_and_is_unread_then(calls: Calls) -> None:
    (calls.root / "a.bin").write_bytes(b"\0")
    (calls.root / "a.txt").write_text("one\n")
    await calls.text("move_file", file_path="a.bin", new_path="b.bin")
    await calls.text("move_file", file_path="a.txt", new_path="b.txt")
    assert names(calls.root) == ["b.bin", "b.txt"]
    assert "was not read" in await calls.error("write_file", file_path="b.txt", content="new")


@pytest.mark.parametrize("target", ["b.txt", "sub", "link", "open.txt"])
async def test_nothing_is_moved_over(calls: Calls, target: str) -> None:
    (calls.root / "a.txt").write_text("one\n")
    (calls.root / "b.txt").write_text("two\n")
    (calls.root / "sub").mkdir()
    (calls.root / "link").symlink_to("nowhere")
    path = calls.root.resolve() / "open.txt"
    calls.editor.documents[path] = OpenDocument("mine\n", 1, True, path.as_uri())
    before = names(calls.root)
    await calls.error("move_file", file_path="a.txt", new_path=target)
    assert names(calls.root) == before
    assert (calls.root / "b.txt").read_text() == "two\n"


async def test_what_comes_to_the_new_name_in_the_last_moment_stays(calls: Calls) -> None:
    (calls.root / "a.txt").write_text("one\n")
    action = await calls.prepare("move_file", file_path="a.txt", new_path="b.txt")
    (calls.root / "b.txt").write_text("theirs\n")
    assert (await action.run()).is_error
    root = calls.root.resolve()
    place, target = (Place(root, (name,), name) for name in ("a.txt", "b.txt"))
    with pytest.raises(files.WorkspaceError, match="nothing is moved over it"):
        files.move(place, target, files.read(place))
    assert [(root / name).read_text() for name in ("a.txt", "b.txt")] == ["one\n", "theirs\n"]


@pytest.mark.parametrize(
    ("old", "new"),
    [(".env", "a.txt"), ("a.txt", "id_rsa"), ("a.txt", ".git/hooks/post-commit"), ("a.txt", ".agentd/x")],
)
async def test_moving_what_is_a_secret_or_guarded_is_asked_about_as_such(
    calls: Calls, old: str, new: str
) -> None:
    (calls.root / old).write_text("one\n")
    assert (await calls.prepare("move_file", file_path=old, new_path=new)).secret


@pytest.mark.parametrize("new", ["../out.txt", "/tmp/out.txt"])
async def test_a_file_is_not_moved_out(calls: Calls, new: str) -> None:
    (calls.root / "a.txt").write_text("one\n")
    with pytest.raises(files.WorkspaceError, match="outside the working directory"):
        await calls.prepare("move_file", file_path="a.txt", new_path=new)


async def test_deleting_a_secret_is_asked_about_as_such(calls: Calls) -> None:
    (calls.root / ".env").write_text("KEY=1\n")
    calls.context = replace(calls.context)
    await read(calls, ".env")
    assert (await calls.prepare("delete_file", file_path=".env")).secret


@pytest.mark.parametrize("new", ["a.txt", "./a.txt", "sub/../a.txt", "alias"])
async def test_a_file_is_not_moved_onto_itself(calls: Calls, new: str) -> None:
    (calls.root / "sub").mkdir()
    (calls.root / "a.txt").write_text("one\n")
    os.link(calls.root / "a.txt", calls.root / "alias")
    assert "nothing is moved over it" in await calls.error("move_file", file_path="a.txt", new_path=new)
    assert names(calls.root) == ["a.txt", "alias"]
    assert (calls.root / "a.txt").stat().st_nlink == 2


async def test_upper_and_lower_case_are_names_of_their_own(calls: Calls) -> None:
    (calls.root / "readme.md").write_text("one\n")
    await calls.text("move_file", file_path="readme.md", new_path="README.md")
    assert names(calls.root) == ["README.md"]


@pytest.mark.parametrize("new", ["out/b.txt", "out/new/b.txt", "inside/b.txt", "dangling/b.txt"])
async def test_a_folder_that_is_a_link_is_followed_inside_only(
    calls: Calls, tmp_path_factory: pytest.TempPathFactory, new: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (calls.root / "a.txt").write_text("one\n")
    (calls.root / "real").mkdir()
    for name, leads in (("out", outside), ("inside", "real"), ("dangling", outside / "nowhere")):
        (calls.root / name).symlink_to(leads)
    if new.startswith("inside"):
        assert await calls.text("move_file", file_path="a.txt", new_path=new) == "Moved a.txt to real/b.txt."
        assert (calls.root / "real/b.txt").read_text() == "one\n"
    else:
        with pytest.raises(files.WorkspaceError, match="outside the working directory"):
            await calls.prepare("move_file", file_path="a.txt", new_path=new)
        assert (calls.root / "a.txt").read_text() == "one\n"
    assert not list(outside.iterdir())
    (outside / "theirs.txt").write_text("theirs\n")
    for tool, more in (("move_file", {"new_path": "mine.txt"}), ("delete_file", {})):
        with pytest.raises(files.WorkspaceError, match="outside the working directory"):
            await calls.prepare(tool, file_path="out/theirs.txt", **more)


@pytest.mark.parametrize("new", ["sub/", "sub/.", "sub", "b.txt/", "a.txt/b.txt", "", ".", "x" * 256])
async def test_a_new_name_that_is_none_is_refused_and_the_file_stays(calls: Calls, new: str) -> None:
    (calls.root / "a.txt").write_text("one\n")
    (calls.root / "sub").mkdir()
    try:
        said = await calls.run("move_file", file_path="a.txt", new_path=new)
    except files.WorkspaceError:
        pass
    else:
        assert said.is_error or new == "b.txt/", said
    assert [path.read_text() for path in calls.root.rglob("*") if path.is_file()] == ["one\n"]


async def test_a_move_keeps_hard_links_owner_and_attributes(calls: Calls) -> None:
    path = calls.root / "a.txt"
    path.write_text("one\n")
    os.link(path, calls.root / "other.txt")
    attributes = {}
    if hasattr(os, "setxattr"):
        with contextlib.suppress(OSError):
            os.setxattr(path, "user.mine", b"1")
            attributes = {"user.mine": b"1"}
    before = path.stat()
    await calls.text("move_file", file_path="a.txt", new_path="b.txt")
    moved = calls.root / "b.txt"
    assert os.path.samefile(moved, calls.root / "other.txt")
    assert (moved.stat().st_mode, moved.stat().st_uid) == (before.st_mode, before.st_uid)
    for name, value in attributes.items():
        assert os.getxattr(moved, name) == value


_OTHER_FILE_SYSTEM = """
import asyncio, sys
from pathlib import Path
from file_calls import Calls

async def main():
    calls = Calls(Path(sys.argv[1]))
    (calls.root / "a.txt").write_text("one\\n")
    (calls.root / "mounted/c.txt").write_text("three\\n")
    print(await calls.error("move_file", file_path="a.txt", new_path="mounted/new/b.txt"))
    print(await calls.error("move_file", file_path="mounted/c.txt", new_path="new/c.txt"))
    await calls.text("move_file", file_path="mounted/c.txt", new_path="mounted/d/e.txt")
    await calls.text("read_file", file_path="mounted/d/e.txt")
    await calls.text("delete_file", file_path="mounted/d/e.txt")
    print(sorted(str(path.relative_to(calls.root)) for path in calls.root.rglob("*")))

asyncio.run(main())
"""


def test_a_move_to_another_file_system_is_refused_with_the_way_out_and_leaves_nothing(tmp_path: Path) -> None:
    if subprocess.run([*PRIVATE_MOUNTS, MOUNT.format("/mnt")], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system, and not in every container")
    (tmp_path / "mounted").mkdir()
    script = MOUNT.format('"$0/mounted"') + ' && "$@"'
    told = run_script(_OTHER_FILE_SYSTEM, tmp_path, *PRIVATE_MOUNTS, script, str(tmp_path))
    assert told == [
        "'mounted/new/b.txt' is on another file system. Use bash with mv.",
        "'new/c.txt' is on another file system. Use bash with mv.",
        "['a.txt', 'mounted', 'mounted/d']",
    ]
