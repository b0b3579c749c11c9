"""Trees that commands and edits have turned over: a rewind brings back the one, its undoing the other."""

import os
from pathlib import Path

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.rewinding import Author, bash, edit, read, told, write
from wire.trees import folders, tree


def fill(root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    (root / "dir" / "sub").mkdir(parents=True)
    (root / "dir" / "x.txt").write_text("x\n")
    (root / "dir" / "sub" / "y.txt").write_text("y\n")
    (root / "data.bin").write_bytes(bytes(range(256)) * 10)
    (root / "empty").write_bytes(b"")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "fixed.txt").write_text("fixed\n")
    (root / "fixed.txt").chmod(0o444)
    (root / "link").symlink_to("a.txt")
    (root / "dangling").symlink_to("nowhere")
    (root / "to-dir").symlink_to("dir")
    os.link(root / "a.txt", root / "twin.txt")
    (root / os.fsdecode(b"caf\xe9.txt")).write_text("latin\n")
    (root / "100%25 #?é \n.txt").write_text("odd\n")
    (root / "nested" / ".git").mkdir(parents=True)
    (root / "nested" / "inner.txt").write_text("inner\n")


COMMANDS = {
    "a file is renamed": "mv b.txt c.txt",
    "two files change places": "mv a.txt t; mv b.txt a.txt; mv t b.txt",
    "a folder is renamed": "mv dir elsewhere",
    "a folder is removed": "rm -r dir",
    "a file becomes a folder": "rm b.txt; mkdir -p b.txt/in; echo 1 > b.txt/in/1; echo 2 > b.txt/2",
    "a folder becomes a file": "rm -r dir; echo file > dir",
    "a folder becomes a link": "rm -r dir; ln -s nested dir",
    "a folder becomes a link to where it went": "mv dir moved; ln -s moved dir",
    "a file becomes a link": "rm b.txt; ln -s a.txt b.txt",
    "a link becomes a file": "rm link; echo file > link",
    "a link becomes a folder": "rm link; mkdir link; echo in > link/in.txt",
    "a link leads elsewhere": "ln -sfn b.txt link; rm dangling; ln -s there new-link",
    "links are removed": "rm link dangling to-dir",
    "one of two names is written": "echo more >> twin.txt",
    "one of two names is removed": "rm twin.txt",
    "modes change": "chmod 600 a.txt; chmod +x b.txt; chmod -x run.sh; chmod 644 fixed.txt",
    "a read-only file is written": "chmod u+w fixed.txt; echo x > fixed.txt; chmod a-w fixed.txt",
    "binary files change": "printf '\\0\\1\\377' > data.bin; printf '\\377' > new; cp data.bin empty",
    "names that are no text": "for f in caf*; do echo x >> \"$f\"; done; rm 100*; "
    "touch \"$(printf 'new\\351')\"",
    "a repository within": "echo x > nested/inner.txt; echo y > nested/new.txt",
    "many at once": "rm -r dir link; mkdir -p dir/in; for i in 1 2 3; do echo $i > dir/in/$i; done; "
    "echo z > a.txt; mv data.bin dir/",
    "everything is removed": "rm -r -- *",
    "an old time stamp": "printf 'B\\n' > b.txt; touch -d 2001-01-01 b.txt",
    "a new file replaces one": "echo b2 > t; chmod 640 t; mv t b.txt",
    "ignoring begins": "echo '*.txt' > .gitignore; echo x >> a.txt; rm b.txt",
}  # fmt: skip


@pytest.fixture
def author(daemon: Daemon, shared_home: Home) -> Author:
    author = Author(daemon, shared_home)
    fill(author.root)
    return author


@pytest.mark.parametrize("what", COMMANDS)
def test_what_a_command_did_is_taken_back_and_done_again(author: Author, what: str) -> None:
    before, made = tree(author.root), folders(author.root)
    author.does("one", bash(COMMANDS[what]))
    after = tree(author.root)
    assert after != before
    dry = author.rewind("one", dryRun=True)
    assert tree(author.root) == after
    result = author.rewind("one")
    assert result == dry
    assert not [file for file in result["files"] if "conflict" in file]
    assert (tree(author.root), folders(author.root)) == (before, made)
    author.undo()
    assert tree(author.root) == after
    author.undo()
    assert (tree(author.root), folders(author.root)) == (before, made)
    assert author.ask("diff") == {"patch": "", "files": []}
    assert author.ask("diff", promptId="one")["files"]


def test_two_files_in_a_folder_that_was_made_go_with_the_folder(author: Author) -> None:
    before, made = tree(author.root), folders(author.root)
    author.does("one", write("new/er/1.txt", "1\n"), write("new/er/2.txt", "2\n"), write("new/3.txt", "3\n"))
    author.rewind("one")
    assert (tree(author.root), folders(author.root)) == (before, made)


def test_a_folder_that_a_command_removed_is_gone_again_after_the_undo(author: Author) -> None:
    author.does("one", bash("rm -r dir"))
    made = folders(author.root)
    author.rewind("one")
    author.undo()
    assert folders(author.root) == made


def test_what_the_user_put_into_a_folder_that_took_the_place_of_a_file_stays(author: Author) -> None:
    author.does("one", bash("rm b.txt; mkdir b.txt; echo in > b.txt/in.txt; echo x > a.txt"))
    (author.root / "b.txt" / "mine.txt").write_text("mine")
    result = author.rewind("one")
    assert told(result) == {
        "a.txt": "changed", "b.txt": "conflict", "in.txt": "deleted", "twin.txt": "changed"
    }  # fmt: skip
    (conflict,) = (file["conflict"] for file in result["files"] if "conflict" in file)
    assert "b.txt/mine.txt" in conflict
    assert (author.root / "b.txt" / "mine.txt").read_text() == "mine"
    assert (author.root / "a.txt").read_text() == "a\n"


def test_a_file_of_the_users_in_the_place_of_a_folder_stays(author: Author) -> None:
    author.does("one", bash("rm -r dir; echo x > b.txt"))
    (author.root / "dir").write_text("mine")
    assert told(author.rewind("one")) == {"b.txt": "changed", "x.txt": "conflict", "y.txt": "conflict"}
    assert (author.root / "dir").read_text() == "mine"


def test_a_link_in_the_place_of_a_folder_is_never_followed(author: Author, tmp_path: Path) -> None:
    author.does("one", bash("rm -r dir; echo x > b.txt"))
    (author.root / "dir").symlink_to(tmp_path)
    assert told(author.rewind("one")) == {"b.txt": "changed", "x.txt": "conflict", "y.txt": "conflict"}
    assert list(tmp_path.iterdir()) == []


def test_a_file_can_be_named_by_what_it_was_when_a_link_took_its_place(author: Author) -> None:
    author.does("one", bash("rm b.txt; ln -s a.txt b.txt"))
    result = author.rewind("one", uris=[(author.root / "b.txt").as_uri()])
    assert told(result) == {"b.txt": "changed"}
    assert (author.root / "b.txt").read_text() == "b\n"


@pytest.mark.parametrize("quoted", [True, False])
def test_files_are_named_by_any_spelling_of_their_uri(author: Author, quoted: bool) -> None:
    name = "100%25 #?é \n.txt"
    author.does("one", bash('for f in 100*; do echo x >> "$f"; done; echo x >> b.txt'))
    uri = (author.root / name).as_uri()
    if quoted:
        uri = "file://localhost" + "".join(
            f"%{byte:02x}" if byte != 47 else "/" for byte in os.fsencode(author.root / name)
        )
    assert len(author.rewind("one", uris=[uri])["files"]) == 1
    assert (author.root / name).read_text() == "odd\n"
    assert (author.root / "b.txt").read_text() == "b\nx\n"


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("file:///etc/passwd", "outsideWorkspace"), ("{root}/../x", "outsideWorkspace"),
        ("{root}/%2e%2e/x", "outsideWorkspace"), ("http://x/y", "invalidParams"),
        ("{root}", "invalidParams"), ("{root}/never.txt", "invalidParams"),
        ("{root}/%zz", "invalidParams"), ("{root}/a%00.txt", "invalidParams"),
        ("", "invalidParams"), ("{root}/" + "x" * 5000, "invalidParams"),
    ],
)  # fmt: skip
def test_uris_that_name_no_file_of_the_rewind_are_refused_and_nothing_happens(
    author: Author, uri: str, kind: str
) -> None:
    author.does("one", bash("echo x > b.txt"))
    after, named = tree(author.root), uri.format(root=author.root.as_uri())
    error = author.refused(
        "rewind", promptId="one", scope="files", uris=[(author.root / "b.txt").as_uri(), named]
    )
    assert (error["data"]["kind"], error["message"].startswith("/uris/1")) == (kind, True)
    assert tree(author.root) == after


def test_no_uris_at_all_are_no_files(author: Author) -> None:
    author.does("one", bash("echo x > b.txt"))
    result = author.rewind("one", "both", uris=[])
    assert (result["files"], len(result["removedMessageIds"])) == ([], 4)
    assert (author.root / "b.txt").read_text() == "x\n"


def test_an_ignored_file_that_comes_to_light_is_not_taken_for_a_new_one(author: Author) -> None:
    (author.root / ".gitignore").write_text("build/\n*.log\n")
    (author.root / "build").mkdir()
    (author.root / "build" / "precious").write_text("hours of work")
    (author.root / "keep.log").write_text("log")
    before = tree(author.root)
    author.does("one", bash("rm .gitignore; echo made > new.log"))
    assert told(author.rewind("one")) == {".gitignore": "created", "new.log": "deleted"}
    assert tree(author.root) == before


def test_a_file_that_grew_too_large_comes_back_and_one_that_was_is_left_alone(author: Author) -> None:
    (author.root / "large").write_bytes(b"x" * 5_000_000)
    author.does(
        "one", bash("head -c 6000000 /dev/zero > b.txt; echo x >> large; head -c 5000000 /dev/zero > new")
    )
    grown = tree(author.root)
    assert told(author.rewind("one")) == {"b.txt": "changed", "new": "deleted"}
    assert (author.root / "b.txt").read_text() == "b\n"
    author.undo()
    assert tree(author.root) == grown


def test_a_file_that_is_too_large_to_be_looked_at_is_a_conflict(author: Author) -> None:
    author.does("one", bash("truncate -s 40M b.txt; echo x > empty"))
    assert told(author.rewind("one")) == {"b.txt": "conflict", "empty": "changed"}
    assert (author.root / "b.txt").stat().st_size == 40 * 2**20


def test_an_edit_of_a_file_with_two_names_is_taken_back_under_both(author: Author) -> None:
    before = tree(author.root)
    author.does("one", read("a.txt"), edit("a.txt", "a", "A"))
    assert (author.root / "twin.txt").read_text() == "A\n"
    author.rewind("one")
    assert tree(author.root) == before
    assert (author.root / "a.txt").samefile(author.root / "twin.txt")


def test_two_sessions_that_changed_one_file_go_back_one_after_the_other(author: Author) -> None:
    other = Author(author.daemon, author.home, author.root)
    author.does("one", read("b.txt"), edit("b.txt", "b", "first"))
    other.does("one", read("b.txt"), edit("b.txt", "first", "second"))
    assert told(author.rewind("one")) == {"b.txt": "conflict"}
    assert told(other.rewind("one")) == {"b.txt": "changed"}
    assert told(author.rewind("one")) == {"b.txt": "changed"}
    assert (author.root / "b.txt").read_text() == "b\n"


def test_the_original_is_the_file_just_before_the_prompt_whatever_became_of_it(author: Author) -> None:
    def original(prompt_id: str, name: str) -> Json:
        answer: Json = author.ask("original", promptId=prompt_id, uri=(author.root / name).as_uri())
        return answer

    author.does("one", bash("echo one > b.txt; rm a.txt; echo new > new.txt"))
    author.does("two")
    assert [original("one", name)["text"] for name in ("b.txt", "a.txt", "new.txt")] == ["b\n", "a\n", None]
    assert [original("two", name)["text"] for name in ("b.txt", "a.txt", "new.txt")] == [
        "one\n",
        None,
        "new\n",
    ]
    author.rewind("one")
    assert [original("two", name)["text"] for name in ("b.txt", "a.txt", "new.txt")] == [
        "one\n",
        None,
        "new\n",
    ]
    assert original("one", "b.txt")["text"] == "b\n"
    author.does("three", bash("printf '\\0' > data.bin"))
    asked = {"promptId": "three", "uri": (author.root / "data.bin").as_uri()}
    assert author.refused("original", **asked)["data"]["kind"] == "unsupported"
    assert (
        author.refused("original", promptId="three", uri=author.root.as_uri())["data"]["kind"]
        == "invalidParams"
    )


def test_the_diff_names_links_binaries_and_modes(author: Author) -> None:
    author.does("one", bash("ln -sfn b.txt link; printf '\\0\\1' > data.bin; chmod 600 run.sh; rm b.txt"))
    diff = author.ask("diff", promptId="one")
    actions = {file["uri"].rsplit("/", 1)[1]: file["action"] for file in diff["files"]}
    assert actions == {"b.txt": "deleted", "data.bin": "changed", "link": "changed", "run.sh": "changed"}
    assert "Binary files differ" in diff["patch"]
    assert "old mode 100755\nnew mode 100600\n" in diff["patch"]
    assert "-a.txt\n" in diff["patch"]
    assert "+b.txt\n" in diff["patch"]
