"""What was committed of files with secrets is shown by no git command that a rule lets pass."""

import itertools
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from permissions.scratch import Scratch

from agentd.permissions.known import known
from agentd.permissions.patterns import Pattern, covering
from agentd.protocol.messages import CommandSubject

SECRET = "topsecret"
FILES = (
    ".env",
    "sub/.Env.local",
    ".ssh/any",
    "keys/server.PEM",
    "a/share/agentd/rules",
    "deep/er/credentials",
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Secrets in the first commit, in one that has nothing else, in a merge, in the index and at hand."""
    scratch = Scratch(tmp_path_factory.mktemp("committed"))
    root = scratch.root
    write(root, 1)
    commit(scratch, "first")
    git(scratch, "checkout", "-qb", "side")
    (root / "g").write_text("from the side\n")
    write(root, 2)
    commit(scratch, "side")
    git(scratch, "checkout", "-q", "-")
    (root / "f").write_text("one\nmain\n")
    commit(scratch, "main")
    git(scratch, "-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "side", "-m", "merged")
    write(root, 3)
    commit(scratch, "secrets alone")
    git(scratch, "rm", "-q", "--cached", ".env")
    git(scratch, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "no longer tracked")
    write(root, 4)
    git(scratch, "add", "-f", *FILES)
    write(root, 5)
    (root / "f").write_text("one\nnow\n")
    return scratch


def write(root: Path, number: int) -> None:
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"KEY={SECRET}{number} \n")


def git(scratch: Scratch, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=scratch.root, env=scratch.environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(scratch: Scratch, message: str) -> None:
    git(scratch, "add", "-f", "f", "g", *(name for name in FILES if (scratch.root / name).exists()))
    git(scratch, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", message)


def covered(scratch: Scratch, command: str, cwd: Path | None = None) -> str | None:
    words = tuple(shlex.split(command)[:2])
    subject = CommandSubject(command=command, cwd=str(cwd or scratch.root))
    return covering([Pattern("argv", words)], subject, scratch.root)


def shown(scratch: Scratch, command: str, cwd: Path | None = None) -> str:
    """What comes of a command under a rule, nothing where the user is asked."""
    text = covered(scratch, command, cwd)
    if text is None:
        return ""
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=cwd or scratch.root,
        env=scratch.environment,
        capture_output=True,
        check=False,
    )
    return (done.stdout + done.stderr).decode(errors="replace")


def bare(scratch: Scratch, command: str) -> str:
    return git(scratch, *shlex.split(command)[1:])


FORMS = """
git log -p
git log -u
git log --patch --all
git log -p -- .
git log -p side
git log -p sub
git log -Stopsecret --oneline
git log -Gtopsecret --oneline
git log --word-diff -p
git log -U5
git log -p --reverse --root --text -C -M --raw
git log --unified=1
git log -p --first-parent
git show
git show side
git show HEAD~1 HEAD~2
git show --all
git show -- sub
git show -U0
git diff
git diff HEAD
git diff --cached
git diff --staged
git diff HEAD~3
git diff HEAD~3 HEAD
git diff HEAD~3..HEAD
git diff side...HEAD
git diff --check
git diff --text --word-diff
git diff HEAD~3:sub HEAD:sub
git diff HEAD~3:deep HEAD:deep
""".strip().splitlines()
BY_ID = """
git show {}
git show {}^{{}}
git show {}^{{blob}}
git show x-g{}
git show HEAD {}
git show -- {}
git log -p {}
git diff {} {other}
git diff {}..{other}
git diff {other}...{}
git diff ^{} {other}
git diff HEAD {}
git diff {}^0 {other}^0
git diff HEAD:f {}
""".strip().splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_no_form_that_reads_history_shows_what_was_committed(scratch: Scratch, form: str) -> None:
    assert covered(scratch, form) is not None
    for cwd in (scratch.root, scratch.root / "sub"):
        assert SECRET not in shown(scratch, form, cwd)


@pytest.mark.parametrize("form", BY_ID)
@pytest.mark.parametrize("length", [4, 7, 40])
def test_content_is_not_shown_by_its_id(scratch: Scratch, form: str, length: int) -> None:
    ids = [git(scratch, "rev-parse", f"{revision}:.env")[:length] for revision in ("HEAD~1", "HEAD~4")]
    words = shlex.split(form.format(ids[0], other=ids[1]))
    assert SECRET not in shown(scratch, shlex.join(words))


def test_every_option_that_a_rule_lets_pass_was_looked_at(scratch: Scratch) -> None:
    found = known(("git", "log"))
    assert found is not None
    names = set(re.findall(r"[a-z][a-z-]+", found[1].options.pattern))
    values = ("", "=1", "=plain", f"={SECRET}", "=always", "=auto")
    options = [f"--{name}{value}" for name, value in itertools.product(sorted(names), values)]
    options += [f"-{letter}{more}" for letter in "sbpuzMCiUSGn" for more in ("", "1", SECRET)]
    options = [each for each in options if found[1].options.fullmatch(each)]
    assert len(options) > 80
    for option in options:
        for subcommand in ("log", "show", "diff"):
            said = shown(scratch, f"git {subcommand} {option}").replace(option, "")
            assert f"KEY={SECRET}" not in said, (subcommand, option)


def test_a_file_is_not_followed_back_to_when_it_was_a_secret(scratch: Scratch) -> None:
    assert covered(scratch, "git log --follow f") is not None
    for form in ("git log --follow -p f", "git log -U1 --follow -- f", "git log --follow --patch f"):
        assert covered(scratch, form) is None


def test_nothing_else_is_left_out(scratch: Scratch) -> None:
    for form in (
        "git log --oneline --all",
        "git log -p --format=%s",
        "git show -s --format=%s",
        "git log --stat",
    ):
        lines = [line for line in bare(scratch, form).splitlines() if re.match(r"\S", line)]
        subjects = [
            line for line in lines if not re.match(r"diff|index|---|\+\+\+|@@|[-+]|new|deleted", line)
        ]
        assert [line for line in subjects if line not in shown(scratch, form).splitlines()] == []
    assert "+from the side" in shown(scratch, "git log -p")
    assert "+now" in shown(scratch, "git diff")
    assert "secrets alone" in shown(scratch, "git show HEAD~1")
    head = git(scratch, "rev-parse", "HEAD")
    for word in (head, head[:7], f"{head}~1", f"{head[:9]}^{{commit}}", "HEAD^{/first}"):
        assert "Author: a" in shown(scratch, shlex.join(["git", "show", word])), word
    assert "+main" in shown(scratch, "git diff HEAD~4 HEAD~2")


def test_what_only_prints_content_is_not_covered(scratch: Scratch) -> None:
    for form in ("git blame f", "git grep x", "git cat-file -p HEAD", "git log -L1,1:f", "git archive HEAD"):
        words = tuple(form.split()[:2])
        assert known(words) is None or covered(scratch, form) is None
