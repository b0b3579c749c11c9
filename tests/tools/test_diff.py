import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.tools import diff
from agentd.tools.diff import changed_blocks, file_change
from agentd.workspace.paths import Place, WorkspaceError

PLACE = Place(Path("/ws"), ("f",), "f")


def git_apply(folder: Path, before: bytes | None, patch: str) -> bytes:
    if before is not None:
        (folder / "f").write_bytes(before)
    (folder / "p").write_bytes(patch.encode())
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "p"], cwd=folder, check=True, stdin=subprocess.DEVNULL
    )
    return (folder / "f").read_bytes()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, b"a\nb"),
        (b"a\nb\n", b"a\nb"),
        (b"a", b"a\n"),
        (b"a\r\nb\r\n", b"a\r\nB\r\n"),
        (b"a\r\nb\r\n", b"a\nb\n"),
        (b"", b"x\n"),
        (b"a\n" * 50, b"a\n" * 20 + b"b\n" + b"a\n" * 30),
        (
            b"".join(b"%d\n" % n for n in range(40)),
            b"".join(b"%d\n" % n for n in range(40) if n not in (3, 9, 30)),
        ),
        (b"a\rb\nc\xe2\x80\xa8d\n", b"a\rb\nc\xe2\x80\xa8D\n"),
        (b"\xef\xbb\xbfa\n", b"a\n"),
    ],
)
def test_git_applies_the_patch_to_the_same_bytes(tmp_path: Path, before: bytes | None, after: bytes) -> None:
    change = file_change(PLACE, before, after)
    assert git_apply(tmp_path, before, change.patch) == after
    body = change.patch.split("\n")[2:]
    assert change.additions == sum(line.startswith("+") for line in body)
    assert change.deletions == sum(line.startswith("-") for line in body)


def test_the_patch_is_exactly() -> None:
    change = file_change(PLACE, b"1\n2\n3\n4\n5\n6\n7\n8\n9", b"1\n2\n3\n4\n5\n6\n7\n8\nnine")
    assert change.patch == (
        "--- a/f\n+++ b/f\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n\\ No newline at end of file\n+nine\n"
        "\\ No newline at end of file\n"
    )
    assert (change.action, change.additions, change.deletions) == ("changed", 1, 1)
    assert file_change(PLACE, b"x\n", b"x\n").patch == ""
    assert file_change(PLACE, None, b"").patch == "--- /dev/null\n+++ b/f\n"


@given(
    st.lists(st.sampled_from(["a", "b", "", "c\r"]), max_size=20),
    st.lists(st.sampled_from(["a", "b", "", "c\r"]), max_size=20),
    st.sampled_from(["", "\n"]),
    st.sampled_from(["", "\n", "a"]),
)
@settings(max_examples=300, deadline=None)
def test_cutting_off_equal_ends_changes_no_patch(old: list[str], new: list[str], one: str, two: str) -> None:
    before, after = ("\n".join(old) + one).encode(), ("\n".join(new) + two).encode()
    shared = b"shared\n" * 5 + b"more\n"
    for head, tail in ((b"", b""), (shared, b""), (b"", b"\n" + shared), (shared, b"\n" + shared)):
        cut = file_change(PLACE, head + before + tail, head + after + tail)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(diff, "_middle", lambda old, new: diff._Middle(0, old, new))
            assert file_change(PLACE, head + before + tail, head + after + tail) == cut


def applied(old: list[str], new: list[str]) -> list[str]:
    result: list[str] = []
    position = 0
    for a, b, c, d in changed_blocks(old, new):
        assert (a, b) == (position, b) or old[position:a]
        result += old[position:a] + new[c:d]
        position = b
    return result + old[position:]


@given(st.lists(st.sampled_from("abcde"), max_size=12), st.lists(st.sampled_from("abcde"), max_size=12))
@settings(max_examples=100)
def test_the_blocks_turn_the_old_lines_into_the_new(old: list[str], new: list[str]) -> None:
    assert applied(old, new) == new
    original, diff._SMALL = diff._SMALL, 0  # the way of large files
    try:
        assert applied(old, new) == new
    finally:
        diff._SMALL = original


def test_scattered_changes_in_a_large_file_are_told_apart() -> None:
    chooser = random.Random(1)
    old = [f"line {number} {chooser.random()}\n" if number % 3 else "}\n" for number in range(60_000)]
    new = list(old)
    for number in range(0, 60_000, 500):
        new[number] = "changed\n"
    change = file_change(PLACE, "".join(old).encode(), "".join(new).encode())
    assert (change.additions, change.deletions) == (120, 120)


def test_bytes_that_are_not_valid_are_compared_exactly_and_shown_replaced() -> None:
    change = file_change(PLACE, b"a\xff\n", b"a\xfe\n")
    assert (change.additions, change.deletions) == (1, 1)
    assert "-a\ufffd\n+a\ufffd\n" in change.patch


def test_a_patch_that_nobody_could_review_is_refused() -> None:
    with pytest.raises(WorkspaceError, match="too large to be shown"):
        file_change(PLACE, None, b"0123456789\n" * 500_000)
