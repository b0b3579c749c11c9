import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.workspace import beneath, files
from agentd.workspace.paths import (
    OutsideWorkspace,
    PathError,
    UriError,
    WorkspaceError,
    path_of,
    resolve,
    shown,
    uri_of,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    root.mkdir()
    return root


@pytest.fixture(params=["openat2", "walk"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of opening a folder beneath the root."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "_openat2", lambda: None)
    elif beneath._openat2() is None:
        pytest.skip("this kernel has no openat2")
    return request.param


@pytest.mark.parametrize("given_path", ["..", "../x", "a/../../x", "/etc/passwd", "/", "..//x", "./../ws2/x"])
def test_what_leads_out_is_refused_in_the_given_spelling(root: Path, given_path: str) -> None:
    with pytest.raises(OutsideWorkspace) as caught:
        resolve(root, given_path)
    assert str(caught.value) == f'Path "{given_path}" is outside the working directory.'


def test_a_sibling_whose_name_begins_like_the_root_is_outside(root: Path) -> None:
    (root.parent / "ws-other").mkdir()
    with pytest.raises(OutsideWorkspace):
        resolve(root, str(root) + "-other/x")


@pytest.mark.parametrize(
    ("given_path", "relative"),
    [
        ("..foo", "..foo"),
        ("a/../b", "b"),
        ("...", "..."),
        ("[id]/(g)/a b.tsx", "[id]/(g)/a b.tsx"),
        ("", "."),
    ],
)
def test_legal_names_stay_inside(root: Path, given_path: str, relative: str) -> None:
    assert resolve(root, given_path).relative == relative


def test_an_absolute_path_inside_is_fine_also_through_a_link_to_the_root(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert resolve(root, str(root / "a/b")).relative == "a/b"
    assert resolve(link, str(link / "a/b")).relative == "a/b"
    assert resolve(root, str(link / "a/b")).relative == "a/b"


def test_the_working_directory_of_the_process_plays_no_part(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve(root, "x").path == root / "x"


@pytest.mark.parametrize("target", ["outside", "outside/missing", "../outside", "/etc"])
def test_a_link_that_leads_out_is_refused_even_for_a_file_that_is_not_there_yet(
    root: Path, target: str
) -> None:
    (root.parent / "outside").mkdir()
    (root / "cache").symlink_to(target if target.startswith((".", "/")) else root.parent / target)
    for name in ("cache", "cache/new.txt", "cache/a/b"):
        with pytest.raises(OutsideWorkspace):
            resolve(root, name)


def test_links_inside_resolve_to_their_target_whether_relative_or_absolute(root: Path) -> None:
    (root / "real").mkdir()
    (root / "relative").symlink_to("real")
    (root / "absolute").symlink_to(root / "real")
    (root / "dangling").symlink_to("real/new")
    assert resolve(root, "relative/x").relative == "real/x"
    assert resolve(root, "absolute/x").relative == "real/x"
    assert resolve(root, "dangling").relative == "real/new"


@pytest.mark.parametrize("given_path", ["a\0b", "\0", "a\ud800"])
def test_what_no_name_can_hold_is_refused_clearly(root: Path, given_path: str) -> None:
    with pytest.raises(PathError) as caught:
        resolve(root, given_path)
    str(caught.value).encode("utf-8")


@given(st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_no_text_resolves_to_a_place_outside(text: str) -> None:
    try:
        place = resolve(Path("/usr/lib"), text)
    except PathError:
        return
    assert place.path.is_relative_to(os.path.realpath("/usr/lib"))
    assert ".." not in place.parts


@pytest.mark.usefixtures("way")
def test_a_folder_that_is_a_link_by_the_time_it_is_opened_is_not_followed(root: Path) -> None:
    (root.parent / "outside").mkdir()
    (root.parent / "outside/f").write_text("secret")
    (root / "d").mkdir()
    (root / "d/f").write_text("mine")
    place = resolve(root, "d/f")
    assert files.read(place).data == b"mine"
    (root / "d").rename(root / "gone")
    (root / "d").symlink_to(root.parent / "outside")
    with pytest.raises(WorkspaceError):
        files.read(place)
    with pytest.raises(WorkspaceError):
        files.write(place, b"x", None)
    assert (root.parent / "outside/f").read_text() == "secret"


# Exchanges d (a folder, or a link to the outside) with e as fast as it can.
_FLIP = """
import ctypes, sys
libc = ctypes.CDLL(None)
a, b = sys.argv[1].encode(), sys.argv[2].encode()
print("go", flush=True)
while True:
    libc.renameat2(-100, a, -100, b, 2)
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="needs renameat2(2) to exchange names"
)
@pytest.mark.usefixtures("way")
def test_none_of_20000_reads_and_writes_escapes_while_a_folder_flips_to_a_link(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # it is not about the disk, which would take minutes
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"outside")
    (root / "d").mkdir()
    (root / "d/f").write_bytes(b"inside")
    (root / "e").symlink_to(outside)
    read, refused, written = set(), 0, 0
    with flipping(root / "d", root / "e"):
        for number in range(20_000):
            try:
                match number % 4:
                    case 0:
                        files.write(resolve(root, f"d/new{number}"), b"x", None)
                    case 1:
                        files.write(resolve(root, f"d/made{number}/below/f"), b"x", None)
                    case 2:
                        place = resolve(root, "d/f")
                        files.write(place, b"inside", files.read(place))
                    case _:
                        read.add(files.read(resolve(root, "d/f")).data)
                        continue
                written += 1
            except WorkspaceError:
                refused += 1
    assert read == {b"inside"}
    assert refused > 0
    assert written > 0
    assert os.listdir(outside) == ["f"]
    assert (outside / "f").read_bytes() == b"outside"


@contextmanager
def flipping(one: Path, other: Path) -> Iterator[None]:
    """Two names change places as fast as another process can make them, while the block runs."""
    attacker = subprocess.Popen(
        [sys.executable, "-c", _FLIP, str(one), str(other)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert attacker.stdout is not None
    try:
        attacker.stdout.readline()
        yield
    finally:
        attacker.kill()
        attacker.wait()
        attacker.stdout.close()


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///tmp/My%20Proj%23x/%C3%A9", "/tmp/My Proj#x/é"),
        ("file:///tmp/é x", "/tmp/é x"),
        ("file://localhost/x", "/x"),
        ("FILE:///x/", "/x"),
        ("file:/x", "/x"),
        ("file:////x", "/x"),
        ("file:///a%3Ab", "/a:b"),
        ("file:///a%2525", "/a%25"),
        ("file:///%FF", os.fsdecode(b"/\xff")),
        ("/plain/path%20", "/plain/path%20"),
    ],
)
def test_a_file_uri_is_decoded_once_on_bytes(uri: str, path: str) -> None:
    assert path_of(uri) == Path(path)


@pytest.mark.parametrize(
    "uri",
    [
        "untitled:1", "vscode-remote://ssh/x", "http://x/y", "x/y", "", "file:", "file:x", "file://", "file://host/x",
        "file:///c%3A/Users/x", "file:///C:/x", "file:///a?b", "file:///a#b", "file:///%zz", "file:///a%", "file:///%00",
    ],
)  # fmt: skip
def test_any_other_uri_is_refused_by_name(uri: str) -> None:
    with pytest.raises(UriError) as caught:
        path_of(uri)
    assert f'URI "{uri}"' in str(caught.value)


@given(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=4))
@settings(max_examples=100)
def test_every_path_comes_back_from_its_uri(names: list[bytes]) -> None:
    clean = [
        name.replace(b"/", b"_").replace(b"\0", b"_").replace(b":", b"_").replace(b"|", b"_")
        for name in names
    ]
    if clean[0] in (b".", b".."):
        return
    path = Path(os.fsdecode(b"/" + b"/".join(clean)))
    uri = uri_of(path)
    assert uri.isascii()
    assert path_of(uri) == path


def test_a_name_is_shown_on_one_line_and_can_be_encoded() -> None:
    assert shown("a\nb\x1b[1m\udcff\u202e.py") == "a\\nb\\x1b[1m\\xff\\u202e.py"
    assert shown("café 日本.py") == "café 日本.py"
