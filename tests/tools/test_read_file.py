import os
import unicodedata
from pathlib import Path

import pytest
from file_calls import Calls, said

from agentd.protocol.messages import ReadDetails
from agentd.tools.read_file import render
from agentd.workspace.editor import OpenDocument
from agentd.workspace.paths import OutsideWorkspace, uri_of


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path)


TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.mark.parametrize(
    ("data", "arguments", "expected"),
    [
        ("a\nb\n", {}, "File: f (2 lines total, showing 1-2)\n    1 | a\n    2 | b"),
        ("a\nb", {}, "File: f (2 lines total, showing 1-2)\n    1 | a\n    2 | b"),
        ("a\r\nb\rc\n", {}, "File: f (3 lines total, showing 1-3)\n    1 | a\n    2 | b\n    3 | c"),
        ("", {}, "File: f (0 lines total, showing none)"),
        ("\n", {}, "File: f (1 lines total, showing 1-1)\n    1 | "),
        (
            TEN,
            {"offset": 2, "limit": 3},
            "File: f (10 lines total, showing 3-5)\n    3 | line 3\n    4 | line 4\n    5 | line 5\n"
            "(5 more lines; continue with offset=5)",
        ),
        (TEN, {"offset": 9}, "File: f (10 lines total, showing 10-10)\n   10 | line 10"),
        (TEN, {"offset": 10}, "File: f (10 lines total, showing none)"),
        (TEN, {"offset": 99}, "File: f (10 lines total, showing none)"),
        (
            TEN,
            {"limit": 0},
            "File: f (10 lines total, showing none)\n(10 more lines; continue with offset=0)",
        ),
        (
            TEN,
            {"offset": -5, "limit": 1},
            "File: f (10 lines total, showing 1-1)\n    1 | line 1\n(9 more lines; continue with offset=1)",
        ),
        (
            TEN,
            {"limit": -1},
            "File: f (10 lines total, showing none)\n(10 more lines; continue with offset=0)",
        ),
        (
            "a\n",
            {"offset": None, "limit": 2.0},
            "File: f (1 lines total, showing 1-1)\n    1 | a",
        ),
        ("a\u2028b\x85c\x0cd\n", {}, "File: f (1 lines total, showing 1-1)\n    1 | a\u2028b\x85c\x0cd"),
        (
            "x" * 2000 + "\n" + "y" * 2001,
            {},
            f"File: f (2 lines total, showing 1-2)\n    1 | {'x' * 2000}\n"
            f"    2 | {'y' * 2000}... (truncated)",
        ),
    ],
)
async def test_the_result_is_exactly(
    calls: Calls, data: str, arguments: dict[str, float | None], expected: str
) -> None:
    (calls.root / "f").write_bytes(data.encode())
    assert await calls.text("read_file", file_path="f", **arguments) == expected


async def test_the_first_line_names_the_path_as_given(calls: Calls) -> None:
    (calls.root / "f").write_text("a\n")
    for path in ("./f", str(calls.root / "f"), "d/../f"):
        assert (await calls.text("read_file", file_path=path)).startswith(f"File: {path} (1 lines")


async def test_details_name_the_lines_that_are_shown(calls: Calls) -> None:
    (calls.root / "f").write_text(TEN)
    uri = uri_of(calls.root.resolve() / "f")
    result = await calls.run("read_file", file_path="f", offset=3, limit=2)
    assert result.details == ReadDetails(uri=uri, start_line=4, end_line=5, total_lines=10)
    result = await calls.run("read_file", file_path="f", offset=30)
    assert result.details == ReadDetails(uri=uri, start_line=0, end_line=0, total_lines=10)


@pytest.mark.parametrize("character", ["x", "日", "😀"])
async def test_the_whole_result_stays_within_50_kb_and_says_what_it_really_shows(
    calls: Calls, character: str
) -> None:
    (calls.root / "f").write_text((character * 1500 + "\n") * 300)
    offset = 0
    while True:
        result = await calls.run("read_file", file_path="f", offset=offset)
        text = said(result)
        assert len(text.encode()) <= 50_000
        assert isinstance(result.details, ReadDetails)
        first, *body = text.split("\n")
        assert f"showing {result.details.start_line}-{result.details.end_line})" in first
        numbered = [line for line in body if " | " in line]
        assert len(numbered) == result.details.end_line - offset
        assert all(line.endswith(" | " + character * 1500) for line in numbered)
        offset = result.details.end_line
        if offset == 300:
            break
        assert body[-1] == f"({300 - offset} more lines; continue with offset={offset})"


async def test_nothing_is_cut_below_the_limit_which_counts_bytes(calls: Calls) -> None:
    (calls.root / "f").write_text(("x" * 250 + "\n") * 150)
    assert "showing 1-150)" in await calls.text("read_file", file_path="f")
    (calls.root / "f").write_text(("日" * 250 + "\n") * 150)
    text = await calls.text("read_file", file_path="f")
    shown = text.count(" | ")
    assert f"(150 lines total, showing 1-{shown})" in text
    assert text.endswith(f"({150 - shown} more lines; continue with offset={shown})")
    assert 60 < shown < 66, "50,000 bytes of lines of 758"


def test_even_the_longest_path_leaves_room() -> None:
    page = render("é" * 2000, ["日" * 2000] * 100, 0, 2000, note="n" * 500)
    assert len(page.text.encode()) <= 50_000
    assert page.end > 0


async def test_bytes_that_are_not_utf_8_are_shown_as_replacement_characters(calls: Calls) -> None:
    (calls.root / "f").write_bytes(b"a\xff\xfeb\n")
    text = await calls.text("read_file", file_path="f")
    assert text.endswith("    1 | a\ufffd\ufffdb")
    text.encode("utf-8")


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
async def test_a_byte_order_mark_is_not_shown(calls: Calls, codec: str) -> None:
    (calls.root / "f").write_bytes("using A;\r\n日\r\n".encode(codec))
    assert (await calls.text("read_file", file_path="f")).endswith("    1 | using A;\n    2 | 日")


async def test_what_cannot_be_read_is_an_error_that_says_why(calls: Calls) -> None:
    (calls.root / "d").mkdir()
    (calls.root / "b").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(calls.root / "p")
    assert "directory" in await calls.error("read_file", file_path="d")
    assert "directory" in await calls.error("read_file", file_path=".")
    assert "binary" in await calls.error("read_file", file_path="b")
    assert "named pipe" in await calls.error("read_file", file_path="p")


async def test_a_path_outside_raises(calls: Calls) -> None:
    with pytest.raises(OutsideWorkspace, match=r'^Path "\.\./x" is outside the working directory\.$'):
        await calls.prepare("read_file", file_path="../x")


async def test_a_missing_file_is_named_with_near_names_below(calls: Calls) -> None:
    assert await calls.error("read_file", file_path="no/such") == "File not found: 'no/such'"
    (calls.root / "src").mkdir()
    (calls.root / "src/README.md").write_text("")
    text = await calls.error("read_file", file_path="src/readme.md")
    assert text == "File not found: 'src/readme.md'\nDid you mean:\n  src/README.md"


SHOT = "Shot at 1.01.11\u202fAM.txt"
CAFE = unicodedata.normalize("NFD", "café.txt")


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        (SHOT, SHOT.replace("\u202f", " ")),
        (CAFE, unicodedata.normalize("NFC", CAFE)),
        (os.fsdecode(b"bad\xff.txt"), "bad\\xff.txt"),
        ("new\nline", "new\\nline"),
    ],
)
async def test_a_name_that_differs_only_in_what_cannot_be_typed_is_found_and_said(
    calls: Calls, name: str, asked: str
) -> None:
    (calls.root / "dir").mkdir()
    (calls.root / "dir" / name).write_text("content\n")
    text = await calls.text("read_file", file_path=f"dir/{asked}")
    head, note, line = text.split("\n")
    assert head == f"File: dir/{asked} (1 lines total, showing 1-1)"
    assert note == f"(its exact name is {f'dir/{name}'!a})"
    assert line == "    1 | content"
    exact = await calls.text("read_file", file_path=f"dir/{name}")
    assert "exact name" not in exact


async def test_exact_bytes_win_and_two_candidates_are_a_question(calls: Calls) -> None:
    (calls.root / "a\u00a0b").write_text("nbsp")
    (calls.root / "a b").write_text("space")
    assert (await calls.text("read_file", file_path="a b")).endswith("| space")
    assert (await calls.text("read_file", file_path="a\u00a0b")).endswith("| nbsp")
    text = await calls.error("read_file", file_path="a\u202fb")
    assert "'a b'" in text
    assert "'a\\xa0b'" in text


async def test_a_matched_name_that_is_a_link_outside_is_refused(calls: Calls, tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (tmp_path / "outside").write_text("secret")
    (root / "a\u00a0b").symlink_to(tmp_path / "outside")
    with pytest.raises(OutsideWorkspace):
        await Calls(root).prepare("read_file", file_path="a b")


async def test_an_unsaved_document_is_read_from_the_editor(calls: Calls) -> None:
    path = calls.root.resolve() / "f"
    path.write_text("disk\n")
    calls.editor.documents[path] = OpenDocument("buffer\r\nmore", 2, dirty=True)
    assert (await calls.text("read_file", file_path="f")).endswith("    1 | buffer\n    2 | more")
    new = calls.root.resolve() / "new"
    calls.editor.documents[new] = OpenDocument("unsaved", 1, dirty=True)
    assert (await calls.text("read_file", file_path="new")).endswith("    1 | unsaved")


async def test_a_clean_document_is_not_trusted_over_the_disk(calls: Calls) -> None:
    path = calls.root.resolve() / "f"
    path.write_text("disk\n")
    calls.editor.documents[path] = OpenDocument("older\n", 2, dirty=False)
    assert (await calls.text("read_file", file_path="f")).endswith("    1 | disk")


async def test_a_document_that_was_read_unsaved_may_be_edited_once_it_is_saved(calls: Calls) -> None:
    path = calls.root.resolve() / "f"
    path.write_bytes(b"\xef\xbb\xbfdisk\r\n")
    calls.editor.documents[path] = OpenDocument("buffer\r\n", 2, dirty=True)
    await calls.text("read_file", file_path="f")
    path.write_bytes(b"\xef\xbb\xbfbuffer\r\n")
    calls.editor.documents[path] = OpenDocument("buffer\r\n", 2, dirty=False)
    await calls.text("edit_file", file_path="f", old_string="buffer", new_string="done")
    assert path.read_bytes() == b"\xef\xbb\xbfdone\r\n"


async def test_a_secret_is_marked_also_through_a_link(calls: Calls) -> None:
    (calls.root / ".env").write_text("KEY=1")
    (calls.root / "plain").symlink_to(".env")
    (calls.root / "f").write_text("")
    assert (await calls.prepare("read_file", file_path=".env")).secret
    assert (await calls.prepare("read_file", file_path="plain")).secret
    assert not (await calls.prepare("read_file", file_path="f")).secret


@pytest.mark.parametrize("path", [None, 5, "a\0b", "../x", "x" * 5000, "\ud800", "a\nb", ["x"]])
def test_describing_never_fails_and_never_shows_what_cannot_be_encoded(calls: Calls, path: object) -> None:
    from file_calls import TOOLS

    for tool in TOOLS.values():
        arguments = {"file_path": path, "path": path, "glob": path, "pattern": path, "offset": path}
        description = tool.describe(arguments, calls.context)
        description.title.encode("utf-8")
        assert "\n" not in description.title
        assert len(description.title) <= 200
        tool.describe({}, calls.context)


def test_the_description_names_file_and_line(calls: Calls) -> None:
    from file_calls import TOOLS

    described = TOOLS["read_file"].describe({"file_path": "src/a.py", "offset": 10}, calls.context)
    assert described.title == "Read src/a.py"
    assert described.locations[0].uri == uri_of(calls.root.resolve() / "src/a.py")
    assert described.locations[0].line == 10
