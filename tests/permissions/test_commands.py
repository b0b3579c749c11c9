"""Command lines as rules see them: what is plain, what runs in its place, and that nothing else does."""

import os
import random
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from permissions.command_lines import HARMFUL, HARMLESS
from permissions.scratch import Scratch

from agentd.permissions.commands import Command, parse, render
from agentd.permissions.patterns import Pattern, covering, patterns_for, rebuilt
from agentd.protocol.messages import CommandSubject
from agentd.workspace.secrets import GLOBS, is_secret

PROGRAMS = (
    "git status", "git log", "git diff", "git show", "git branch", "git ls-files", "ls", "cat", "echo", "pwd",
    "head", "tail", "wc",
    "grep", "diff", "cd", "true", "find", "rg", "sort", "uniq", "sed", "tree",
)  # fmt: skip
RULES = [Pattern("argv", tuple(each.split())) for each in PROGRAMS]


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


def covered(command: str, root: Path, cwd: Path | None = None) -> str | None:
    return covering(RULES, CommandSubject(command=command, cwd=str(cwd or root)), root)


# --- the study's command lines ------------------------------------------------------------------


@pytest.mark.parametrize("command", HARMFUL)
def test_no_rule_covers_a_command_line_that_does_harm(command: str, tmp_path: Path) -> None:
    assert covered(command, tmp_path) is None


@pytest.mark.parametrize("command", HARMLESS)
def test_what_a_rule_covers_runs_without_harm(command: str, scratch: Scratch) -> None:
    text = covered(command, scratch.root)
    if text is not None:
        assert rebuilt(CommandSubject(command=command, cwd=str(scratch.root)), scratch.root) == text
        scratch.run(text)
        assert not scratch.harmed()


def test_nearly_half_of_the_harmless_ones_need_no_question(tmp_path: Path) -> None:
    assert (len(HARMFUL), len(HARMLESS)) == (90, 36)
    assert sum(covered(command, tmp_path) is not None for command in HARMLESS) >= 17


def test_the_scratch_folder_tells_harm_from_none(tmp_path: Path) -> None:
    told = []
    for number, command in enumerate(HARMFUL[::8]):
        scratch = Scratch(tmp_path / str(number))
        scratch.run(command)
        told.append(scratch.harmed())
    assert all(told)


# --- what rules never cover -----------------------------------------------------------------------

NEVER = [
    "git log --output=F", "git log --outpu=F", "git log --ou F", "git diff --output F", "git diff --ext-diff",
    "git diff --textconv", "git show --show-signature", "git diff --no-index /etc/passwd f", "git branch new",
    "git branch -D main", "git -C hostile status", "git --git-dir=x status", "git -c a=b status", "git",
    "diff . sub", "diff sub f", "diff -q -- sub f", "git diff . sub", "git diff --stat f sub",
    "git log -O/etc/passwd", "git grep x", "sort -o F f", "sort -uoF f", "sort --output=F f", "sort -T . f",
    "sort --files0-from=f", "sort --compress-program=evil f", "find . -delete", "find . -exec evil {} +",
    "find . -execdir evil \\;", "find . -ok evil \\;", "find . -fprint F", "find . -fprintf F x",
    "find . -fls F",
    "find / -name x", "find .. -name x", "rg --pre evil x", "rg --pre=evil x", "rg -z x", "rg --hidden x",
    "rg --no-ignore x", "rg -uu x", "rg -g '.e*' x", "rg -f /etc/passwd", "rg --hostname-bin=evil x",
    "grep -r x .", "grep -R x .", "grep --recursive x", "grep -f /etc/passwd f", "grep --include=.env -r x",
    "grep -d recurse x .", "cat /etc/passwd", "cat ../f", "cat sub/../../f", "cat ~/.bashrc",
    "head /etc/passwd",
    "cat .env", "cat ./.env", "cat sub/../.env", "head -5 .ssh/id_rsa", "wc id_rsa", "git show HEAD:.env",
    "git log -p -- .env", "grep KEY .env.local", "sort credentials.json", "tail server.key",
    "rg x .aws/config", "rg x .config/gcloud", "diff .config/gcloud f",
    "cat link-to-secret", "cat link-out", "ls link-out/", "ls > F", "ls >> F", "ls >F", "ls 2> F", "ls &> F",
    "cat < f", "cat <<< x", "cat <<E\nx\nE", "ls $HOME", "ls ${HOME}", "ls *", "ls ?", "ls [f]", "ls {a,b}",
    "ls ~",
    "A=b ls", "A=b git status", "ls &", "ls & pwd", "(ls)", "{ ls; }", "! ls", "if true; then ls; fi",
    "ls |& cat",
    "cd sub && ls", "cd hostile && git status", "pushd sub; git status", "ls;;pwd", "ls &&", "&& ls",
    "ls |", "| ls",
    "ls 'a", 'ls "a', 'echo "$(evil)"', 'echo "`evil`"', 'echo "a\\"b"', "echo a\\ b", "echo $'a'",
    "ls # evil",
    "echo '\u202efoo'", "echo '\x1b[2K'", "echo \"\u200b\"", "echo '\x00'",
    "ls\revil", "ls\x0bevil", "ls\u00a0f", "echo \u202efoo", "ls\x00f", "tree -o F", "uniq f F",
    "sed -i s/a/b/ f",
    "sed -n '1,5w F' f", "sed -n 1p -i f", "sed 's/x/evil/e' f", "sed -n -f x f", "env ls", "time ls",
    "command ls", "exec ls", "builtin echo x", "./ls", "/bin/ls", "LS", "l's' -la;evil", "ls\\",
    "ls -la\\\nevil",
    "head -c-1 --bytes=x f", "tail -f f", "ls --time-style=$(evil)", "", "   ", ";", "\n",
]  # fmt: skip


@pytest.mark.parametrize("command", NEVER)
def test_a_rule_for_a_program_does_not_cover(command: str, tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path)) / "root"
    (root / "sub").mkdir(parents=True)
    (root / ".env").write_text("x")
    (root / "link-to-secret").symlink_to(".env")
    (root / "link-out").symlink_to("/etc")
    assert covered(command, root) is None


COVERED = [
    ("ls -la sub", "ls -la sub"),
    ("  ls  ", "ls"),
    ("ls\npwd\n", "ls ; pwd"),
    ("ls &&\n pwd", "ls && pwd"),
    ("cat f|head -5 2>/dev/null", "cat f | head -5 2>/dev/null"),
    ("echo 'it'\"'\"'s' \"a b\"", "echo 'it'\"'\"'s' 'a b'"),
    ("grep -n 'a|b' f 2>&1 >/dev/null", "grep -n 'a|b' f 2>&1 >/dev/null"),
    ("find . -name '*.py' -not -path './x/*'", "find . -name '*.py' -not -path './x/*'"),
    ("sed -n '1,120p' f", "sed -n 1,120p f"),
    ("echo HEAD~1", "echo 'HEAD~1'"),
    ("l's' f", "ls f"),
]


@pytest.mark.parametrize(("command", "text"), COVERED)
def test_what_runs_is_put_together_from_what_was_judged(command: str, text: str, tmp_path: Path) -> None:
    assert covered(command, tmp_path) == text


def test_git_runs_without_any_program_of_the_repositorys_choice(tmp_path: Path) -> None:
    text = covered("git diff HEAD~1 --stat", tmp_path)
    assert text is not None
    words = shlex.split(text)
    assert words[:3] == ["GIT_ALLOW_PROTOCOL=none", "git", "-c"]
    for setting in ("core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.bareRepository=explicit"):
        assert setting in words
    at = words.index("diff")
    assert "--no-pager" in words[:at]
    assert words[at + 1 : at + 3] == ["--no-ext-diff", "--no-textconv"]
    assert words[at + 4 : at + 6] == ["HEAD~1", "--stat"]
    assert all(word.startswith(":(top,exclude,icase,glob)") for word in words[at + 6 :])


@pytest.mark.parametrize("word", ["time", "if", "then", "do", "function", "coproc", "select", "case", "in"])
def test_a_word_of_the_shell_is_no_program(word: str, tmp_path: Path) -> None:
    assert parse(f"{word} ls") is None
    assert with_rules(f"{word} ls", tmp_path, f"{word} ls", f"{word} *") is None


def test_git_is_held_back_whatever_lets_it_pass(tmp_path: Path) -> None:
    text = with_rules("git log --output=F", tmp_path, "git *")
    assert text is not None
    assert "core.fsmonitor=false" in text
    assert text == rebuilt(CommandSubject(command="git log --output=F", cwd=str(tmp_path)), tmp_path)


SETTINGS = [
    "core.fsmonitor",
    "core.pager",
    "diff.external",
    "diff.x.textconv",
    "diff.x.command",
    "gpg.program",
]


def test_a_hostile_repository_runs_nothing(scratch: Scratch) -> None:
    hostile = scratch.root / "hostile"
    for setting in SETTINGS:
        scratch._git("config", setting, "evil", cwd=hostile)
    for setting, value in (
        ("log.showSignature", "true"),
        ("format.pretty", "%G?"),
        ("status.submoduleSummary", "1"),
    ):
        scratch._git("config", setting, value, cwd=hostile)
    (hostile / ".gitattributes").write_text("* diff=x\n")
    (hostile / "a").write_text("a\n")
    safe = ["-c", "core.fsmonitor=false", "-c", "user.name=a", "-c", "user.email=a@b"]
    scratch._git(*safe, "add", ".", cwd=hostile)
    scratch._git(*safe, "commit", "-qm", "one", cwd=hostile)
    commit = scratch.run("cd hostile && git cat-file commit HEAD").stdout
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----\n"
    (hostile / "signed").write_text(commit.replace("\n\n", f"\n{signature}\n", 1))
    scratch.run("cd hostile && git reset -q --soft $(git hash-object -t commit -w signed) && rm signed")
    scratch._clear()
    (hostile / "a").write_text("b\n")
    scratch._before = scratch._state()
    for plain in ("git status", "git log", "git diff", "git -c log.showSignature=false log --format=%G?"):
        scratch.run(f"cd hostile && {plain}")
        assert scratch.harmed(), f"{plain}: the repository is not hostile"
        scratch._clear()
    for command in (
        "git status",
        "git diff",
        "git log -p '--format=%G?'",
        "git log",
        "git show",
        "git branch -a",
    ):
        text = covered(command, scratch.root, hostile)
        assert text is not None
        done = scratch.run(f"cd hostile && {text}")
        assert (done.returncode, done.stderr) == (0, "")
        assert not scratch.harmed(), command


@pytest.mark.parametrize("section", ["filter.x.clean", "include.path", "filter.x.process"])
def test_a_repository_with_filters_of_its_own_is_asked_about(section: str, scratch: Scratch) -> None:
    assert covered("git status", scratch.root) is not None
    scratch._git("config", section, "evil")
    (scratch.root / ".gitattributes").write_text("* filter=x\n")
    (scratch.root / "f").write_text("new content\n")
    for command in ("git status", "git diff", "git ls-files -m"):
        assert covered(command, scratch.root) is None
        assert covered(command, scratch.root, scratch.root / "sub") is None
    assert covered("git log", scratch.root) is not None


FILTER = '[filter "x"]\n\tclean = evil\n'


def planted_before_the_first_section(scratch: Scratch) -> None:
    config = scratch.root / ".git" / "config"
    config.write_text(f"\ufeff{FILTER}{config.read_text()}")


def planted_behind_another_header(scratch: Scratch) -> None:
    config = scratch.root / ".git" / "config"
    config.write_text(f"{config.read_text()}[core]{FILTER}")


def planted_above_what_is_no_repository(scratch: Scratch) -> None:
    scratch._git("config", "filter.x.clean", "evil")
    (scratch.root / "sub" / ".git").mkdir()
    (scratch.root / "sub" / ".git" / "config").touch()


def planted_in_a_folder_whose_name_ends_in_a_blank(scratch: Scratch) -> None:
    scratch._git("config", "filter.x.clean", "evil")
    (scratch.root / ".git").rename(scratch.root / "own ")
    (scratch.root / "own").mkdir()
    (scratch.root / "own" / "config").touch()
    (scratch.root / ".git").write_text("gitdir: own \n")


@pytest.mark.parametrize(
    "plant",
    [
        planted_before_the_first_section,
        planted_behind_another_header,
        planted_above_what_is_no_repository,
        planted_in_a_folder_whose_name_ends_in_a_blank,
    ],
)
def test_a_filter_is_found_wherever_git_would_find_it(
    plant: Callable[[Scratch], None], scratch: Scratch
) -> None:
    plant(scratch)
    sub = scratch.root / "sub"
    for command in ("git status", "git diff", "git ls-files -m"):
        assert covered(command, scratch.root, sub) is None
    (scratch.root / ".gitattributes").write_text("* filter=x\n")
    (scratch.root / "f").write_text("ONE\ntwo\n")  # of the same size, so git has to look into it
    scratch._clear()
    scratch.run("cd sub && git status")
    assert scratch.harmed(), "the repository is not hostile"


def test_a_linked_worktree_is_judged_by_the_configuration_it_shares(scratch: Scratch) -> None:
    scratch._git("worktree", "add", "-q", "tree")
    tree = scratch.root / "tree"
    assert covered("git status", scratch.root, tree) is not None
    scratch._git("config", "filter.x.clean", "evil")
    assert covered("git status", scratch.root, tree) is None
    (tree / ".git").write_text("gitdir: nowhere\n")
    assert covered("git status", scratch.root, tree) is None


def test_ripgrep_passes_by_files_with_secrets(scratch: Scratch) -> None:
    for name in ("credentials.json", "server.key", "prod.env", "Server.PEM"):
        (scratch.root / name).write_text("two\n")
    (scratch.root / ".aws").mkdir()
    (scratch.root / ".config" / "gcloud").mkdir(parents=True)
    (scratch.root / ".config" / "gcloud" / "tokens").write_text("two\n")
    text = covered("rg --files-with-matches two", scratch.root)
    assert text is not None
    if scratch.run("command -v rg").returncode:
        pytest.skip("ripgrep is not installed")
    within = covered("rg --files-with-matches two .config", scratch.root)
    assert within is not None
    assert scratch.run(within).stdout == ""
    assert sorted(scratch.run(text).stdout.split()) == ["./g"] or scratch.run(text).stdout.split() == ["g"]


def test_the_globs_of_secrets_leave_none_of_them_out() -> None:
    plain = [glob for glob in GLOBS if "*" not in glob and glob not in (".git", ".docker", ".kube")]
    assert all(is_secret((name,)) for name in plain)
    assert len(plain) > 30


def test_a_command_outside_the_workspace_is_not_covered(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "root-2").mkdir()
    assert covered("ls", root, tmp_path) is None
    assert covered("ls", root, tmp_path / "root-2") is None
    (root / "out").symlink_to(tmp_path)
    assert covered("ls", root, root / "out") is None
    (root / "sub").mkdir()
    assert covered("ls", root, root / "sub") == "ls"
    assert covered("ls ..", root, root / "sub") == "ls .."
    assert covered("ls ../..", root, root / "sub") is None


# --- rules of other programs ----------------------------------------------------------------------


def with_rules(command: str, root: Path, *rules: str, cwd: Path | None = None) -> str | None:
    patterns = [Pattern("argv", tuple(rule.split())) for rule in rules]
    return covering(patterns, CommandSubject(command=command, cwd=str(cwd or root)), root)


def test_a_rule_for_an_unknown_program_covers_its_own_words_only(tmp_path: Path) -> None:
    assert with_rules("make test", tmp_path, "make test") == "make test"
    for other in (
        "make",
        "make test x",
        "make test -f evil.mk",
        "make test SHELL=evil",
        "make testing",
        "make -C x test",
    ):
        assert with_rules(other, tmp_path, "make test", "make") in (None, "make")
    assert with_rules("make test", tmp_path, "make") is None
    (tmp_path / "sub").mkdir()
    assert with_rules("make test", tmp_path, "make test", cwd=tmp_path / "sub") is None


def test_always_for_an_interpreter_allows_no_other_code(tmp_path: Path) -> None:
    (pattern,) = patterns_for(CommandSubject(command="python3 -m pytest -q", cwd=str(tmp_path)), tmp_path)
    assert pattern.parts == ("python3", "-m", "pytest")
    for other in ('python3 -c \'open("p","w")\'', "python3 -m http.server", "python3 x.py", "python3"):
        assert covering([pattern], CommandSubject(command=other, cwd=str(tmp_path)), tmp_path) is None
    for other in (
        "python3 -m pytest -p evil",
        "python3 -m pytest --rootdir=/x",
        "python3 -m pytest @args",
        "npm run x",
    ):
        assert covering([pattern], CommandSubject(command=other, cwd=str(tmp_path)), tmp_path) is None
    good = CommandSubject(command="python3 -m pytest tests/test_a.py -x -k 'a or b'", cwd=str(tmp_path))
    assert covering([pattern], good, tmp_path) == "python3 -m pytest tests/test_a.py -x -k 'a or b'"


def test_nothing_is_piped_into_a_program_that_may_run_it(tmp_path: Path) -> None:
    rules = ("echo", "python3", "sh", "pytest", "cat")
    assert with_rules("echo x | cat", tmp_path, *rules) == "echo x | cat"
    for sink in ("python3", "sh", "pytest"):
        assert with_rules(f"echo 'evil' | {sink}", tmp_path, *rules) is None
    assert with_rules("echo x | python3", tmp_path, "echo", "python3 *") is None


def test_a_star_covers_whatever_words_follow_and_still_no_operators(tmp_path: Path) -> None:
    assert with_rules("make a b -j4", tmp_path, "make *") == "make a b -j4"
    assert with_rules("make", tmp_path, "make *") == "make"
    for other in ("make a && evil", "make a > F", "make $(evil)", "makes a", "make .env", "A=b make a"):
        assert with_rules(other, tmp_path, "make *") is None


@pytest.mark.parametrize(
    "program", ["cd sub", "eval x", "source x", "env ls", "sudo ls", "bash -c x", "xargs ls", "exec ls"]
)
def test_no_rule_covers_a_program_that_runs_others_or_changes_what_follows(
    program: str, tmp_path: Path
) -> None:
    assert with_rules(program, tmp_path, program, program.split()[0] + " *") is None
    (pattern,) = patterns_for(CommandSubject(command=program, cwd=str(tmp_path)), tmp_path)
    assert pattern.type == "command"


# --- the form -------------------------------------------------------------------------------------

WORDS = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"])), max_size=5)


@settings(deadline=None)
@given(WORDS)
def test_what_is_rendered_reads_back_as_the_same_words(words: list[str]) -> None:
    command = Command(("echo", *words))
    text = render((command,))
    if "'\"'\"'" not in text and len(text) < 4000:
        assert parse(text) == (command,)
    assert shlex.split(text) == ["echo", *words]


def test_bash_reads_the_rendered_words_as_they_are(tmp_path: Path) -> None:
    hard = [
        "",
        " ",
        "a'b",
        '"',
        "$(evil)",
        "`evil`",
        "\\",
        "a\nb",
        "*",
        "~",
        "{a,b}",
        "!x",
        "#",
        "-n",
        "é\u00a0",
        ";|&",
    ]
    command = Command(("printf", "%s\\0", *hard))
    done = subprocess.run(["bash", "-c", render((command,))], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == hard


# --- fuzz -----------------------------------------------------------------------------------------

PIECES = [
    "ls", "pwd", "echo", "cat", "git status", "git log -1", "f", "evil", "'evil'", '"evil"', " ", " ", " ",
    ";", "&",
    "&&", "||", "|", "|&", "\n", "\r", "\t", "\v", "\f", "\\", "\\\n", "'", '"', "`evil`", "$(evil)",
    "<(evil)",
    ">(evil)", "(", ")", "{", "}", "!", "#", "$", "${x:=$(evil)}", "$'", "~", "*", "=", "x=evil", ">", ">>",
    "<",
    "<<", "<<<", "2>&1", ">/dev/null", "&>", "F", "\u00a0", "\u2028", "--", "-n", "-p", "-o", "F ", "if",
    "then", "fi",
    "time ", "eval ", "a", "[", "]", "%", "+", "@", ",", ":", "./", "-la", "^", "0", "2",
]  # fmt: skip


def harmful_of(count: int, seed: int, scratch: Scratch) -> tuple[int, list[str]]:
    """How many of so many random command lines a rule covers, and which of them then do harm."""
    random_lines = random.Random(seed)
    allowed = set()
    for _ in range(count):
        line = "".join(random_lines.choices(PIECES, k=random_lines.randint(1, 9)))
        if random_lines.random() < 0.5:
            line = random_lines.choice(("ls ", "echo ", "git status ", "cat f ", "pwd ")) + line
        text = covered(line, scratch.root)
        if text is not None:
            allowed.add(text)
    found = []
    for text in sorted(allowed):
        scratch.run(text)
        if scratch.harmed():
            found.append(text)
            scratch._clear()
    return len(allowed), found


def test_no_random_command_line_that_a_rule_covers_does_harm(scratch: Scratch) -> None:
    allowed, harmful = harmful_of(3_000, 7, scratch)
    assert allowed > 50
    assert harmful == []


@pytest.mark.nightly
def test_none_of_300_000_random_command_lines_does_harm(scratch: Scratch) -> None:
    allowed, harmful = harmful_of(300_000, 11, scratch)
    assert allowed > 2_000
    assert harmful == []
