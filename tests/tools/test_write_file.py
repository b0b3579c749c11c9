from pathlib import Path

import pytest
from file_calls import Calls

from agentd.protocol.messages import EditDetails, EditSubject
from agentd.workspace.paths import OutsideWorkspace


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path)


@pytest.mark.parametrize(
    "content", ["x", "", "a\r\nb\n", "a\rb", "\ufeffmark", "日本\n", "$& \\1 {0}\n", "a\u2028b"]
)
async def test_exactly_the_content_sent_is_stored(calls: Calls, content: str) -> None:
    await calls.text("write_file", file_path="a/b/f", content=content)
    assert (calls.root / "a/b/f").read_bytes() == content.encode()


async def test_preparing_changes_nothing_and_shows_the_whole_new_file(calls: Calls) -> None:
    action = await calls.prepare("write_file", file_path="a/f", content="one\ntwo")
    assert list(calls.root.iterdir()) == []
    assert isinstance(action.subject, EditSubject)
    assert action.subject.patch == (
        "--- /dev/null\n+++ b/a/f\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
    )


async def test_the_result_says_created_or_replaced(calls: Calls) -> None:
    assert await calls.text("write_file", file_path="f", content="1\n2\n3\n") == "Created f (3 lines, +3 -0)."
    assert await calls.text("write_file", file_path="g", content="1") == "Created g (1 line, +1 -0)."
    result = await calls.run("write_file", file_path="f", content="1\n3\n4\n5\n")
    assert result.content[0].text == "Replaced f (+2 -1)."
    assert isinstance(result.details, EditDetails)
    assert (result.details.files[0].action, result.details.files[0].additions) == ("changed", 2)
    assert "Nothing was written" in await calls.text("write_file", file_path="f", content="1\n3\n4\n5\n")


async def test_the_same_content_is_not_written_again_but_looked_at_when_it_is_its_turn(calls: Calls) -> None:
    path = calls.root / "f"
    await calls.text("write_file", file_path="f", content="same\n")
    before = path.stat()
    assert "Nothing was written" in await calls.text("write_file", file_path="f", content="same\n")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    action = await calls.prepare("write_file", file_path="f", content="same\n")
    path.write_text("other\n")
    assert (await action.run()).is_error


async def test_an_existing_file_must_have_been_read(calls: Calls) -> None:
    (calls.root / "f").write_text("theirs")
    assert "read_file first" in await calls.error("write_file", file_path="f", content="mine")
    assert (calls.root / "f").read_text() == "theirs"


async def test_a_file_that_appears_after_the_question_is_not_overwritten(calls: Calls) -> None:
    action = await calls.prepare("write_file", file_path="f", content="mine")
    (calls.root / "f").write_text("theirs")
    assert (await action.run()).is_error
    assert (calls.root / "f").read_text() == "theirs"


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16"])
async def test_the_encoding_and_mark_of_a_replaced_file_stay(calls: Calls, codec: str) -> None:
    (calls.root / "f").write_bytes("old\n".encode(codec))
    await calls.text("read_file", file_path="f")
    await calls.text("write_file", file_path="f", content="\ufeffnew é\n")
    assert (calls.root / "f").read_bytes() == "new é\n".encode(codec)


async def test_half_a_character_is_refused_before_anything_is_written(calls: Calls) -> None:
    assert "lone surrogate" in await calls.error("write_file", file_path="f", content="a\ud800")
    assert list(calls.root.iterdir()) == []


async def test_a_link_to_nowhere_inside_creates_its_target_and_one_to_outside_is_refused(
    tmp_path: Path,
) -> None:
    root = tmp_path / "ws"
    (root / "real").mkdir(parents=True)
    (root / "inside").symlink_to("real/new")
    (root / "outside").symlink_to(tmp_path / "new")
    (root / "cache").symlink_to(tmp_path)
    calls = Calls(root)
    await calls.text("write_file", file_path="inside", content="x")
    assert (root / "inside").is_symlink()
    assert (root / "real/new").read_text() == "x"
    for path in ("outside", "cache/new", "cache/a/b"):
        with pytest.raises(OutsideWorkspace):
            await calls.prepare("write_file", file_path=path, content="x")
    assert not (tmp_path / "new").exists()


async def test_a_name_that_only_looks_the_same_is_not_made_a_second_time(calls: Calls) -> None:
    (calls.root / "a\u00a0b").write_text("x")
    await calls.text("read_file", file_path="a b")
    await calls.text("write_file", file_path="a b", content="y")
    assert [path.name for path in calls.root.iterdir()] == ["a\u00a0b"]


async def test_what_is_no_file_is_refused(calls: Calls) -> None:
    (calls.root / "d").mkdir()
    (calls.root / "f").write_text("")
    assert "directory" in await calls.error("write_file", file_path="d", content="x")
    assert "no directory" in await calls.error("write_file", file_path="f/x", content="x")
