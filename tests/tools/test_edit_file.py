import asyncio
import os
import subprocess
from pathlib import Path

import anyio
import pytest
from file_calls import Calls, said
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.protocol.messages import EditDetails, EditSubject
from agentd.tools.replacement import replace
from agentd.workspace.editor import OpenDocument
from agentd.workspace.paths import OutsideWorkspace, WorkspaceError


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (
            b"x\ny\r\nprogress 1\rprogress 2\rdone\nz\n",
            "z",
            "zz",
            b"x\ny\r\nprogress 1\rprogress 2\rdone\nzz\n",
        ),
        (b"a\r\nb\r\n", "a\n", "a\nA\n", b"a\r\nA\r\nb\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "a\nB\nBB", b"a\r\nB\r\nBB\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc\n", "a\nX\nc\n", b"a\r\nX\nc\r\n"),
        (b"a\rb\rc", "b", "b\nB", b"a\rb\rB\rc"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\r\nb\r\n", "a\r", "A\r", b"A\r\nb\r\n"),
        (b"a\r\nb\r\nc", "\nb\r\n", "\nB\r\n", b"a\r\nB\r\nc"),
        (b"a\rb\rc", "a\r", "A\rAA\r", b"A\rAA\rb\rc"),
        (b"a\nb\n", "a\r\nb", "A\r\nB", b"A\nB\n"),
        (b"a\nb\r\nc\n", "b\r\n", "b\n", b"a\nb\nc\n"),
        (b"one", "one", "one\ntwo", b"one\ntwo"),
        (b'{"k": 1}', "1", "2", b'{"k": 2}'),
        (b"top\n\n\n", "top", "TOP", b"TOP\n\n\n"),
        (b"\xef\xbb\xbfusing A;\r\n", "using A;", "using B;", b"\xef\xbb\xbfusing B;\r\n"),
        ("héllo\r\n".encode("utf-16"), "héllo", "日本", "日本\r\n".encode("utf-16")),
        ("設定=1\nend\n".encode("cp932"), "=1", "=2\nmore", "設定=2\nmore\nend\n".encode("cp932")),
        (b"a\xff\xfeb c\n", "c", "d", b"a\xff\xfeb d\n"),
        (b"a\x0cb\xe2\x80\xa8c\n", "c", "d", b"a\x0cb\xe2\x80\xa8d\n"),
        (b"foo = a.b[0] (x|y)* \\d $1", "a.b[0] (x|y)*", "ok", b"foo = ok \\d $1"),
        (b"keep\ndrop\nkeep2\n", "drop\n", "", b"keep\nkeep2\n"),
        (b"x", "x", "", b""),
    ],
)
async def test_every_byte_outside_the_change_stays(
    calls: Calls, before: bytes, old: str, new: str, after: bytes
) -> None:
    assert await calls.edit(before, old, new) == after


TEMPLATE = 'greet = "$& $$ $1 \\1 \\g<0> \\n {x} %s {0}"'


@pytest.mark.parametrize("every", [False, True])
async def test_the_new_text_is_literal_whatever_it_holds(calls: Calls, every: bool) -> None:
    after = await calls.edit(b'greet = "hi"\n', 'greet = "hi"', TEMPLATE, replace_all=every)
    assert after == TEMPLATE.encode() + b"\n"


@given(
    st.text(alphabet="ab\r\n é", max_size=30),
    st.text(alphabet="abX\n$\\", max_size=8),
    st.text(alphabet="ab\r\n é", max_size=30),
)
@settings(max_examples=100)
def test_what_stands_before_and_after_the_place_is_untouched(before: str, new: str, after: str) -> None:
    replaced = replace(before + "OLD" + after, "OLD", new, every=False, name="f").text
    assert replaced.startswith(before)
    assert replaced.endswith(after)
    middle = replaced[len(before) : len(replaced) - len(after)]
    assert middle.replace("\r\n", "\n").replace("\r", "\n") == new


async def test_several_places_are_refused_with_count_and_lines(calls: Calls) -> None:
    data = "class A:\n  retries = 3\nclass B:\n  retries = 3\n"
    (calls.root / "f").write_text(data)
    await calls.text("read_file", file_path="f")
    text = await calls.error(
        "edit_file", file_path="f", old_string="  retries = 3", new_string="  retries = 9"
    )
    assert "2 times" in text
    assert "lines 2, 4." in text
    assert (calls.root / "f").read_text() == data
    text = await calls.text(
        "edit_file", file_path="f", old_string="  retries = 3", new_string="  retries = 9", replace_all=True
    )
    assert text == "Edited f (2 replacements, +2 -2)."
    assert (calls.root / "f").read_text() == data.replace("3", "9")


def test_places_that_overlap_or_differ_only_in_line_ends_count_as_several() -> None:
    for text, old in (("aaa", "aa"), ("a\nb a\r\nb", "a\nb")):
        with pytest.raises(WorkspaceError, match="2 times"):
            replace(text, old, "x", every=False, name="f")


def test_the_lines_of_all_places_are_named_up_to_a_hundred() -> None:
    with pytest.raises(WorkspaceError) as caught:
        replace("x\ny\n" * 100, "x", "z", every=False, name="f")
    assert f"at lines {', '.join(str(2 * number + 1) for number in range(100))}. " in str(caught.value)
    with pytest.raises(WorkspaceError, match=r"occurs 130 times .* 197, 199 and 30 more\. Nothing"):
        replace("x\ny\n" * 130, "x", "z", every=False, name="f")
    with pytest.raises(WorkspaceError, match=r"occurs 10,000\+ times .* and 9,900\+ more"):
        replace("x" * 1_000_000, "x", "z", every=False, name="f")


async def test_each_wrong_edit_has_its_own_error_and_leaves_the_file_alone(calls: Calls) -> None:
    path = calls.root / "f"
    path.write_text("text\n")
    os.utime(path, ns=(1, 1))
    await calls.text("read_file", file_path="f")
    errors = {
        await calls.error("edit_file", file_path=name, old_string=old, new_string=new)
        for name, old, new in (
            ("f", "", "x"), ("f", "text", "text"), ("f", "absent", "x"), ("gone", "a", "b"),
            ("f", "text", "\ud800"),
        )
    }  # fmt: skip
    assert len(errors) == 5
    assert any(error.startswith("File not found: 'gone'") for error in errors)
    assert path.stat().st_mtime_ns == 1
    assert path.read_text() == "text\n"


async def test_text_beyond_ascii_never_goes_into_a_file_of_an_older_encoding(calls: Calls) -> None:
    data = "これはテスト\n設定=1\n".encode("cp932")
    (calls.root / "f").write_bytes(data)
    await calls.text("read_file", file_path="f")
    assert "UTF-8" in await calls.error("edit_file", file_path="f", old_string="=1", new_string="=1\n追加")
    assert "UTF-8" in await calls.error("write_file", file_path="f", content="追加\n")
    assert (calls.root / "f").read_bytes() == data


async def test_a_file_must_have_been_read_as_it_is_now(calls: Calls) -> None:
    path = calls.root / "f"
    path.write_text("aaaa\n")
    edit = {"file_path": "f", "old_string": "aaaa", "new_string": "cccc"}
    assert "Read it with read_file first" in await calls.error("edit_file", **edit)
    await calls.text("read_file", file_path="f")
    status = path.stat()
    path.write_text("bbbb\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert "changed since it was read" in await calls.error("edit_file", **edit)
    assert "changed since it was read" in await calls.error("write_file", file_path="f", content="x")
    assert path.read_text() == "bbbb\n"
    await calls.text("read_file", file_path="f")
    await calls.text("edit_file", file_path="f", old_string="bbbb", new_string="1")
    await calls.text("edit_file", file_path="f", old_string="1", new_string="2")
    await calls.text("write_file", file_path="f", content="3")
    await calls.text("edit_file", file_path="f", old_string="3", new_string="4")
    assert path.read_text() == "4"


async def test_a_change_between_the_question_and_the_answer_is_refused(calls: Calls) -> None:
    path = calls.root / "f"
    path.write_text("one\ntwo\n")
    await calls.text("read_file", file_path="f")
    action = await calls.prepare("edit_file", file_path="f", old_string="two", new_string="2")
    assert path.read_text() == "one\ntwo\n"
    path.write_text("ONE\ntwo\n")
    result = await action.run()
    assert result.is_error
    assert "changed since it was read" in said(result)
    assert path.read_text() == "ONE\ntwo\n"


async def test_a_file_that_becomes_a_link_to_outside_after_the_question_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "outside").write_text("text")
    (root / "f").write_text("text")
    calls = Calls(root)
    await calls.text("read_file", file_path="f")
    action = await calls.prepare("edit_file", file_path="f", old_string="text", new_string="evil")
    (root / "f").unlink()
    (root / "f").symlink_to(tmp_path / "outside")
    assert (await action.run()).is_error
    assert (tmp_path / "outside").read_text() == "text"


async def test_edits_of_one_session_at_the_same_time_all_survive(calls: Calls) -> None:
    names = [f"line{number}." for number in range(12)]
    (calls.root / "f").write_text("\n".join(names))
    await calls.text("read_file", file_path="f")
    actions = [
        await calls.prepare("edit_file", file_path="f", old_string=name, new_string=name + "done")
        for name in names
    ]
    results = await asyncio.gather(*(action.run() for action in actions))
    assert not any(result.is_error for result in results)
    assert (calls.root / "f").read_text() == "\n".join(name + "done" for name in names)


async def test_of_two_sessions_the_second_is_told_to_read_again(calls: Calls) -> None:
    (calls.root / "f").write_text("one two")
    other = Calls(calls.root)
    for session in (calls, other):
        await session.text("read_file", file_path="f")
    first = await calls.prepare("edit_file", file_path="f", old_string="one", new_string="1")
    second = await other.prepare("edit_file", file_path="f", old_string="two", new_string="2")
    results = await asyncio.gather(first.run(), second.run())
    assert sorted(result.is_error for result in results) == [False, True]
    assert (calls.root / "f").read_text() in ("1 two", "one 2")


async def test_a_rewrite_is_not_laid_over_an_edit_made_meanwhile(calls: Calls) -> None:
    (calls.root / "f").write_text("one")
    await calls.text("read_file", file_path="f")
    rewrite = await calls.prepare("write_file", file_path="f", content="all new")
    await calls.text("edit_file", file_path="f", old_string="one", new_string="1")
    assert (await rewrite.run()).is_error
    assert (calls.root / "f").read_text() == "1"


@pytest.mark.parametrize("name", ["edit_file", "write_file"])
async def test_nothing_is_written_under_an_unsaved_document(calls: Calls, name: str) -> None:
    path = calls.root.resolve() / "f"
    path.write_text("disk")
    await calls.text("read_file", file_path="f")
    arguments = {
        "edit_file": {"file_path": "./f", "old_string": "disk", "new_string": "x"},
        "write_file": {"file_path": "./f", "content": "x"},
    }[name]
    action = await calls.prepare(name, **arguments)
    calls.editor.documents[path] = OpenDocument("typing", 2, dirty=True)
    assert said(await action.run()) == "Save or close ./f first."
    assert await calls.error(name, **arguments) == "Save or close ./f first."
    assert path.read_text() == "disk"


async def test_the_question_shows_the_patch_that_is_applied(calls: Calls, tmp_path: Path) -> None:
    before = b"a\r\nb\r\nc\r\nd\r\ne\r\nlast"
    (calls.root / "f x").write_bytes(before)
    await calls.text("read_file", file_path="f x")
    action = await calls.prepare("edit_file", file_path="f x", old_string="b\nc", new_string="$&")
    assert isinstance(action.subject, EditSubject)
    result = await action.run()
    assert isinstance(result.details, EditDetails)
    (change,) = result.details.files
    assert change.patch == action.subject.patch
    assert (change.action, change.additions, change.deletions) == ("changed", 1, 2)
    assert change.uri == action.subject.uri
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "f x").write_bytes(before)
    (copy / "patch").write_bytes(change.patch.encode())
    await anyio.run_process(["git", "apply", "patch"], cwd=copy, stdin=subprocess.DEVNULL)
    assert (copy / "f x").read_bytes() == (calls.root / "f x").read_bytes() == b"a\r\n$&\r\nd\r\ne\r\nlast"


async def test_mode_and_link_and_read_only_are_respected(calls: Calls) -> None:
    (calls.root / "real").mkdir()
    (calls.root / "real/run.sh").write_text("echo 1\n")
    (calls.root / "real/run.sh").chmod(0o755)
    (calls.root / "run").symlink_to("real/run.sh")
    await calls.text("read_file", file_path="run")
    assert await calls.text("edit_file", file_path="run", old_string="1", new_string="2") == (
        "Edited real/run.sh (1 replacement, +1 -1)."
    )
    assert (calls.root / "run").is_symlink()
    assert (calls.root / "real/run.sh").read_text() == "echo 2\n"
    assert (calls.root / "real/run.sh").stat().st_mode & 0o777 == 0o755
    (calls.root / "real/run.sh").chmod(0o444)
    assert "read-only" in await calls.error("edit_file", file_path="run", old_string="2", new_string="3")
    assert sorted(os.listdir(calls.root / "real")) == ["run.sh"]


async def test_a_path_outside_raises_and_a_secret_is_marked(calls: Calls) -> None:
    with pytest.raises(OutsideWorkspace):
        await calls.prepare("edit_file", file_path="/etc/hosts", old_string="a", new_string="b")
    (calls.root / ".git").mkdir()
    for name in (".env", ".git/config", ".git/x"):
        (calls.root / name).write_text("KEY=1")
        await calls.text("read_file", file_path=name)
        assert (await calls.prepare("edit_file", file_path=name, old_string="1", new_string="2")).secret


async def test_a_binary_file_is_refused(calls: Calls) -> None:
    (calls.root / "f").write_bytes(b"a\0b")
    assert "binary" in await calls.error("edit_file", file_path="f", old_string="a", new_string="b")
    assert "binary" in await calls.error("write_file", file_path="f", content="b")
