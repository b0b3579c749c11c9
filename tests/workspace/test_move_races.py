"""Moving and removing while another program swaps what lies on the way: nothing escapes, nothing is lost."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from search_trees import RIPGREP, job, needs_ripgrep, search_with
from test_paths import flipping

from agentd.workspace import beneath, files, replacing, swapping
from agentd.workspace.paths import WorkspaceError, resolve
from agentd.workspace.ripgrep import Ripgrep

TRIALS = 20_000

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="needs renameat2(2) to exchange names"
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # it is not about the disk, which would take minutes
    (tmp_path / "outside").mkdir()
    for name in ("f", "x"):
        (tmp_path / "outside" / name).write_bytes(b"outside")
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_none_of_20000_moves_and_removals_escapes_while_a_folder_flips_to_a_link(
    root: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "walk":
        monkeypatch.setattr(beneath, "_openat2", lambda: None)
    elif beneath._openat2() is None:
        pytest.skip("this kernel has no openat2")
    outside = root.parent / "outside"
    (root / "d").mkdir()
    (root / "d/f").write_bytes(b"inside")
    (root / "e").symlink_to(outside)
    done = refused = 0
    with flipping(root / "d", root / "e"):
        for number in range(TRIALS):
            try:
                match number % 4:
                    case 0:
                        place = resolve(root, "d/f")
                        files.move(place, resolve(root, "g"), files.read(place))
                    case 1:
                        place = resolve(root, "g")
                        files.move(place, resolve(root, f"d/new{number % 3}/f"), files.read(place))
                    case 2:
                        place = resolve(root, f"d/new{(number - 1) % 3}/f")
                        files.move(place, resolve(root, "d/f"), files.read(place))
                    case _:
                        with suppress(WorkspaceError):
                            files.write(resolve(root, "d/x"), b"mine", None)
                        place = resolve(root, "d/x")
                        files.remove(place, files.read(place))
                done += 1
            except WorkspaceError:
                refused += 1
    assert (done > TRIALS / 20, refused > 0) == (True, True), (done, refused)
    assert sorted(os.listdir(outside)) == ["f", "x"]
    assert {path.read_bytes() for path in outside.iterdir()} == {b"outside"}
    mine = [path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name in ("f", "g")]
    assert mine.count(b"inside") == 1, "the one file is under one name, whatever was swapped"


def test_a_source_that_flips_to_a_link_is_moved_or_stays_and_the_link_stays_a_link(root: Path) -> None:
    outside = root.parent / "outside"
    (root / "s").write_bytes(b"inside")
    (root / "t").symlink_to(outside / "f")
    moved = refused = 0
    with flipping(root / "s", root / "t"):
        for _ in range(TRIALS // 4):
            try:
                place = resolve(root, "s")
                files.move(place, resolve(root, "m"), files.read(place))
            except WorkspaceError:
                refused += 1
                continue
            moved += 1
            assert not (root / "m").is_symlink()
            while not _is_back(root / "m", root / "s"):
                pass  # only one name is there, so nothing flips until both are again
    assert (moved > 0, refused > 0) == (True, True)
    found = sorted((path.is_symlink(), path.read_bytes()) for path in root.iterdir())
    assert found == [(False, b"inside"), (True, b"outside")]
    assert (outside / "f").read_bytes() == b"outside"


def _is_back(path: Path, name: Path) -> bool:
    """Give the moved file its name again, which the link may have: both stay, whoever is where."""
    other = name if not os.path.lexists(name) else name.with_name("t")
    with suppress(OSError):
        os.link(path, other)
        path.unlink()
    return not path.exists()


@pytest.mark.parametrize("has_renameat2", [True, False])
def test_what_appears_at_the_new_name_in_the_last_moment_is_never_written_over(
    root: Path, has_renameat2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_renameat2:
        monkeypatch.setattr(swapping, "_system_call", lambda: None)
    (root / "s").write_bytes(b"ours")
    place, target, looks, unchanged = resolve(root, "s"), resolve(root, "m"), os.stat, replacing._is_unchanged
    before = files.read(place)

    def appears(*_: object) -> None:
        (root / "m").write_bytes(b"theirs")

    def seen_to_be_free(path: object, *given: Any, **named: Any) -> os.stat_result:
        try:
            return looks(path, *given, **named)  # type: ignore[call-overload, no-any-return]  # os.stat's own
        except FileNotFoundError:
            appears()
            raise

    def seen_to_be_unchanged(*given: Any) -> bool:
        found = unchanged(*given)
        if has_renameat2:
            appears()
        return found

    monkeypatch.setattr(os, "stat", seen_to_be_free)
    monkeypatch.setattr(replacing, "_is_unchanged", seen_to_be_unchanged)
    if not has_renameat2:
        link = os.link
        monkeypatch.setattr(os, "link", lambda *given, **named: (appears(), link(*given, **named)))
    with pytest.raises(WorkspaceError, match="nothing is moved over it"):
        files.move(place, target, before)
    assert ((root / "m").read_bytes(), (root / "s").read_bytes()) == (b"theirs", b"ours")


@pytest.mark.parametrize("pattern", [None, "side"])
@pytest.mark.parametrize("ripgrep", [None, pytest.param(RIPGREP, marks=needs_ripgrep)])
async def test_no_search_follows_a_folder_that_flips_to_a_link_while_it_walks(
    root: Path, ripgrep: Ripgrep | None, pattern: str | None
) -> None:
    for name in ("f", "x"):
        (root.parent / "outside" / f"{name}.secret").write_bytes(b"outside\n")
    for folder in ("d", *(f"more{number}" for number in range(20))):
        (root / folder).mkdir()
        (root / folder / "f").write_bytes(b"inside\n")
    (root / "e").symlink_to(root.parent / "outside")
    with flipping(root / "d", root / "e"):
        for _ in range(40):
            outcome = await search_with(ripgrep, job(root, pattern, glob=None if pattern else "**"))
            assert "outside" not in str(outcome.found).replace(str(root.parent), "")
            assert not [each for each in outcome.found if "secret" in each["file"]]
            assert len(outcome.found) >= 20
