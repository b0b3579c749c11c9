import os
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentd.workspace.globs import compile_glob
from agentd.workspace.ignore import Walk

FILES = [
    "a.py", "a.log", "keep.log", "build/x.o", "build/keep/y", "src/a.log", "src/keep.log", "src/build/z",
    "src/deep/a.py",
    "foo/keep", "foo/drop", "foo/bar/keep", "foo/bar/x", "doc/a b.txt", "doc/#x", "doc/!x", "doc/[id].tsx",
    "doc/i",
    ".hidden/x", ".hidden/.y", "tmp/a/b/c", "x/tmp/b",
]  # fmt: skip

RULES = {
    "nothing": {},
    "names and negation": {"": "*.log\n!keep.log\n"},
    "folders": {"": "build/\n/tmp\n"},
    "nothing comes back in an ignored folder": {"": "foo/\n!foo/keep\n"},
    "all that is in a folder": {"": "foo/**\n!foo/keep\n"},
    "one level and back": {"": "foo/*\n!foo/bar/\nfoo/bar/*\n!foo/bar/keep\n"},
    "deeper wins": {"": "*.log\n", "src": "!a.log\nbuild\n"},
    "deeper alone": {"src": "*.log\n", "foo": "/bar\n"},
    "anchors and stars": {"": "src/**/a.py\n**/tmp\n/a.*\n"},
    "specials": {"": "\\#x\n\\!x\n# comment\n\n  \na\\ b.txt\n"},
    "classes": {"": "[a-c].py\n\\[id\\].tsx\n"},
    "lines that mean nothing": {"": "!\n\\\n*.log\r\n"},
    "a range that goes backwards": {"": "[z-a].py\n*.log\n"},
    "a range that goes backwards, and more": {"": "[z-ab].py\n[z-s]rc\n"},
    "classes and escapes in brackets": {"": "[[:alpha:]].py\n*.[\\l]og\n[[:nothing:]x]*\n"},
    "a blank in front": {"": " keep.log\n*.o\n"},
    "what names begin with or end in": {"": "kee*\n*.l[ox]g\n[a-b]*.py\n"},
    "bom": {"": "\ufeff*.log\n"},
    "everything": {"": "*\n!*.py\n"},
}


def walk(root: Path, base: tuple[str, ...] = ()) -> list[str]:
    fd = os.open(root, os.O_RDONLY)
    try:
        return ["/".join(parts) for parts in Walk(fd).files(base)]
    finally:
        os.close(fd)


def git_lists(root: Path) -> list[str]:
    """The files that git does not ignore."""
    git = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"]}
    subprocess.run(
        ["git", "init", "-q", "--template="], cwd=root, env=git, check=True, stdin=subprocess.DEVNULL
    )
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=root, env=git, check=True, stdin=subprocess.DEVNULL, capture_output=True,
    ).stdout  # fmt: skip
    return sorted(os.fsdecode(listed).split("\0")[:-1])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_the_walk_sees_what_git_does_not_ignore(tree: Path, rules: dict[str, str]) -> None:
    for folder, text in rules.items():
        (tree / folder / ".gitignore").write_text(text)
    assert sorted(walk(tree)) == git_lists(tree)


def test_a_rule_ends_where_git_says(tmp_path: Path) -> None:
    names = ["a", "b", "ab", "a\t", "b\t", "a ", "a\\", "\t", "à", "Å", "х", "a\r", "\\"]
    ends = [
        "à",
        "*х",
        "Å/",
        "!à",
        "a\t",
        "[ab]\t",
        "*\t",
        "a\\\t",
        "a\\ ",
        "a\\  ",
        "a\\\\ ",
        "\t",
        "a\r\r",
        "a\t ",
        "[a\t",
    ]
    for number, rule in enumerate(ends):
        for name in names:
            (tmp_path / str(number) / name).mkdir(parents=True)
            (tmp_path / str(number) / name / "file").touch()
        (tmp_path / str(number) / ".gitignore").write_bytes(f"{rule}\n".encode())
    assert sorted(walk(tmp_path)) == git_lists(tmp_path)


names = st.sampled_from(
    [
        "a",
        "b",
        "foo",
        "a.py",
        "x.log",
        ".h",
        "a b",
        "{a,b}",
        "[x]",
        "é",
        "\\a",
        "bad\udcff",
        "new\nline",
        "à",
        "a\t",
    ]
)
pieces = st.sampled_from(
    [
        "a",
        "b",
        "foo",
        "*",
        "**",
        "*.py",
        "*.log",
        "?",
        "[ab]",
        "[!a]",
        "f*",
        "*o",
        "a.py",
        ".h",
        "\\a",
        "a b",
        "{a,b}",
        "[^a]",
        "[a-f]*",
        "\\[x\\]",
        "é",
        "à",
        "a\t",
        "\\\\a",
        "foo**",
        "**o",
        ".*",
        "*b*",
        "[x]",
    ]
)


@st.composite
def rules(draw: st.DrawFn) -> str:
    path = "/".join(draw(st.lists(pieces, min_size=1, max_size=3)))
    return (
        draw(st.sampled_from(["", "!", "/", "!/"]))
        + path
        + draw(st.sampled_from(["", "/", " ", "\r", "\t", "\\ "]))
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(names, min_size=1, max_size=3), min_size=1, max_size=12),
    st.lists(rules(), max_size=5),
    st.dictionaries(names, st.lists(rules(), max_size=5), max_size=2),
    st.lists(st.lists(names, min_size=1, max_size=2), max_size=3),
)
@example([["a", "a"]], ["a/**/"], {}, [])
@example([["a", "x.log"], ["a", "foo", "x.log"]], ["*.log"], {"a": ["!foo/"]}, [["foo"]])
def test_any_rules_mean_what_they_mean_to_git(
    files: list[list[str]], top: list[str], below: dict[str, list[str]], links: list[list[str]]
) -> None:
    with TemporaryDirectory(prefix="agentd-ignore-") as folder:
        root = Path(folder)
        for parts in files:
            with suppress(FileExistsError, NotADirectoryError):  # a file and a folder of one name
                root.joinpath(*parts).parent.mkdir(parents=True, exist_ok=True)
                root.joinpath(*parts).touch()
        for parts in links:  # a folder elsewhere, which is not entered
            with suppress(FileExistsError, NotADirectoryError, FileNotFoundError):
                root.joinpath(*parts).symlink_to("/etc")
        (root / ".gitignore").write_bytes("\n".join(top).encode())
        for name, lines in below.items():
            if (root / name).is_dir() and not (root / name).is_symlink():
                (root / name / ".gitignore").write_bytes("\n".join(lines).encode())
        assert sorted(walk(root)) == git_lists(root)


in_brackets = st.sampled_from(
    [*"abcz-]!^[\\:.&|~", "z-a", "a-c", "[:alpha:]", "[:digit:]", "[:punct:]", "[:x:]"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(in_brackets, min_size=1, max_size=6).map("".join), min_size=1, max_size=6))
def test_any_brackets_mean_what_they_mean_to_git(contents: list[str]) -> None:
    with TemporaryDirectory(prefix="agentd-ignore-") as folder:
        root = Path(folder)
        for name in "abcmz-]!^[\\:.&|~07Ax":
            (root / f"f{name}").touch()
        for number, content in enumerate(contents):
            (root / str(number)).mkdir()
            for name in root.iterdir():
                if name.is_file():
                    (root / str(number) / name.name).touch()
            (root / str(number) / ".gitignore").write_text(f"f[{content}]\n")
        assert sorted(walk(root)) == git_lists(root)


def test_git_itself_and_links_are_not_entered_and_special_files_are_left_out(tree: Path) -> None:
    (tree / ".git").mkdir()
    (tree / ".git/config").write_text("x")
    (tree / "link").symlink_to("src")
    os.mkfifo(tree / "fifo")
    assert sorted(walk(tree)) == sorted([*FILES, "link"])


def test_rules_above_the_base_count(tree: Path) -> None:
    (tree / ".gitignore").write_text("*.log\n")
    assert walk(tree, ("src",)) == ["src/build/z", "src/deep/a.py"]


def test_an_ignored_folder_that_is_asked_for_is_walked(tree: Path) -> None:
    (tree / ".gitignore").write_text("foo/\n")
    assert walk(tree, ("foo",)) == ["foo/bar/keep", "foo/bar/x", "foo/drop", "foo/keep"]
    assert walk(tree, ("foo", "bar")) == ["foo/bar/keep", "foo/bar/x"]


def test_a_tree_deeper_than_the_stack_is_walked(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    try:
        assert walk(tmp_path) == ["d/" * 1200 + "leaf"]
    finally:  # it is too deep for what removes temporary folders
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("./src/**", "src/x/y", True),
        ("/a.py", "a.py", True),
        ("**", "x/y", True),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("a?b", "a/b", False),
        ("[ab].py", "a.py", True),
        ("[!ab].py", "a.py", False),
        ("[!ab].py", "c.py", True),
        ("x[!a]y", "x/y", False),
        ("pages/[id]/(group)/a b.tsx", "pages/[id]/(group)/a b.tsx", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("{.env,x}", ".env", True),
        ("{src,lib}/**/*.{c,h}", "lib/x/a.h", True),
        ("a{b,c{d,e}}f", "acef", True),
        ("a,b", "a,b", True),
        ("{a", "{a", True),
        ("}a{", "}a{", True),
        ("[", "[", True),
        ("[z-a]", "[z-a]", True),
        ("a.b+c(d)$", "a.b+c(d)$", True),
        ("*.PY", "a.py", False),
    ],
)
def test_globs(glob: str, path: str, matches: bool) -> None:
    assert (compile_glob(glob).fullmatch(path) is not None) == matches
