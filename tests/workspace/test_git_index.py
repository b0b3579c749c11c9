"""What an index says that git has, beside what git says itself."""

import os
import subprocess
from pathlib import Path

import pytest

from agentd.workspace.git_index import Index, UnknownIndex, read_index

ENVIRONMENT = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
NAMES = ("a", "a.txt", "dir/a", "dir/b", "dir/sub/long-name-that-goes-on.txt", "z\n é", "last")


def git(root: Path, *arguments: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@t")
    line = ["git", "-C", str(root), *author, *arguments]
    return subprocess.run(line, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout


def fill(root: Path, *init: str, version: str = "2") -> None:
    git(root, "init", "-q", *init)
    for number, name in enumerate(NAMES):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}{number}\n")
    git(root, "add", ".")
    git(root, "update-index", "--index-version", version)
    settle(root)


def settle(root: Path) -> None:
    """Have the files be older than the index, as they are in daily life."""
    index = Path(git(root, "rev-parse", "--git-path", "index").strip())
    index = index if index.is_absolute() else root / index
    later = max(path.stat().st_mtime_ns for path in root.rglob("*")) + 1_000_000_000
    os.utime(index, ns=(later, later))


def known(root: Path, attributes: tuple[tuple[str, ...], ...] = ()) -> dict[str, str]:
    """The files below a folder that git has the content of, with the ids of that."""
    return of(read_index(root, attributes), root)


def of(index: Index, root: Path) -> dict[str, str]:
    found = {name: index.blob(tuple(name.split("/")), (root / name).lstat()) for name in names_in(root)}
    return {name: blob for name, blob in found.items() if blob is not None}


def names_in(root: Path) -> list[str]:
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return [str(path.relative_to(root)) for path in found]


def told(root: Path) -> dict[str, str]:
    """The same by git itself."""
    lines = git(root, "ls-files", "-s", "-z").split("\0")[:-1]
    return {line.partition("\t")[2]: line.split()[1] for line in lines}


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_file_that_has_not_changed_has_the_blob_that_git_tells(tmp_path: Path, version: str) -> None:
    fill(tmp_path, version=version)
    if version == "3":
        (tmp_path / "meant").write_text("to be added")
        git(tmp_path, "add", "-N", "meant")
        settle(tmp_path)
    assert set(known(tmp_path)) == set(NAMES)
    assert known(tmp_path).items() <= told(tmp_path).items()


def test_longer_ids_are_read_as_well(tmp_path: Path) -> None:
    fill(tmp_path, "--object-format=sha256")
    assert known(tmp_path) == told(tmp_path)
    assert {len(blob) for blob in known(tmp_path).values()} == {64}


def test_a_part_of_a_repository_and_another_working_tree_have_their_own(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    fill(main)
    git(main, "commit", "-qm", "x")
    assert set(known(main / "dir")) == {"a", "b", "sub/long-name-that-goes-on.txt"}
    other = tmp_path / "other"
    git(main, "worktree", "add", "-q", str(other))
    settle(other)
    assert known(other) == told(other)


@pytest.mark.parametrize("change", ["content", "same size and time", "touch", "mode"])
def test_a_file_that_may_have_changed_has_none(tmp_path: Path, change: str) -> None:
    fill(tmp_path)
    path = tmp_path / "a"
    status = path.stat()
    if change == "touch":
        os.utime(path)
    elif change == "mode":
        path.chmod(0o755)
    else:
        path.write_text("b0\n" if change != "content" else "other")
    if change == "same size and time":
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert set(known(tmp_path)) == set(NAMES) - {"a"}


def test_a_file_that_was_written_in_the_moment_of_the_index_has_none(tmp_path: Path) -> None:
    fill(tmp_path)
    time = (tmp_path / "a").stat().st_mtime_ns
    os.utime(tmp_path / ".git" / "index", ns=(time, time))
    assert "a" not in known(tmp_path)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("*.txt filter=lfs", {"a", "dir/a", "dir/b", "z\n é", "last"}),
        ("/a eol=crlf", set(NAMES) - {"a"}),
        ("a working-tree-encoding=UTF-16", set(NAMES) - {"a", "dir/a"}),
        ("dir/** ident", {"a", "a.txt", "z\n é", "last"}),
        ("* text=auto", set(NAMES)),
        ("# a filter=x", set(NAMES)),
        ("[attr]odd filter=x", set()),
        ('"a" filter=x', set()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [".gitattributes", ".git/info/attributes"])
def test_what_git_keeps_in_another_form_has_none(
    tmp_path: Path, line: str, left: set[str], place: str
) -> None:
    fill(tmp_path)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(f"{line}\n")
    attributes = ((".gitattributes",),) if place == ".gitattributes" else ()
    assert set(known(tmp_path, attributes)) == left


def test_attributes_of_a_folder_rule_that_folder(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "dir" / ".gitattributes").write_text("a filter=x\n")
    assert set(known(tmp_path, (("dir", ".gitattributes"),))) == set(NAMES) - {"dir/a"}
    (tmp_path / ".gitattributes").write_text("dir/b filter=x\n")
    assert set(known(tmp_path / "dir", ((".gitattributes",),))) == {"sub/long-name-that-goes-on.txt"}


def test_an_index_of_another_form_is_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownIndex):
        read_index(tmp_path, ())
    fill(tmp_path)
    git(tmp_path, "update-index", "--split-index")
    with pytest.raises(UnknownIndex):
        read_index(tmp_path, ())
    git(tmp_path, "update-index", "--no-split-index")
    index = tmp_path / ".git" / "index"
    data = index.read_bytes()
    for place in range(len(data)):
        index.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        with pytest.raises(UnknownIndex):
            read_index(tmp_path, ())
        index.write_bytes(data[:place])
        with pytest.raises(UnknownIndex):
            read_index(tmp_path, ())


@pytest.mark.parametrize("version", ["2", "4"])
def test_an_index_that_no_digest_protects_never_breaks_anything(tmp_path: Path, version: str) -> None:
    fill(tmp_path, version=version)
    index = tmp_path / ".git" / "index"
    data = index.read_bytes()[:-20]
    for place in range(len(data)):
        index.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :] + bytes(20))
        try:
            read_index(tmp_path, ())
        except UnknownIndex:
            continue


def test_links_and_pipes_in_place_of_an_index_are_not_followed(tmp_path: Path) -> None:
    fill(tmp_path)
    index = tmp_path / ".git" / "index"
    index.rename(tmp_path / "aside")
    index.symlink_to(tmp_path / "aside")
    with pytest.raises(UnknownIndex):
        read_index(tmp_path, ())
    index.unlink()
    os.mkfifo(index)
    with pytest.raises(UnknownIndex):
        read_index(tmp_path, ())
