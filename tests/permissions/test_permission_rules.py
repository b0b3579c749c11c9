"""What an answer for good covers, what it says it covers, and what goes before it."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentd.config.command_rules import CommandRules
from agentd.config.state_file import StateError
from agentd.permissions.found import LONGEST, commands_in, finds
from agentd.permissions.patterns import exact, in_words, patterns_for
from agentd.permissions.rules import Rules
from agentd.permissions.store import RuleStore
from agentd.protocol.messages import (
    CommandSubject,
    EditSubject,
    FetchSubject,
    McpSubject,
    PermissionOption,
    PermissionSubject,
    ReadSubject,
)

ROOT = Path("/home/u/project")
AT = "2026-01-01T00:00:00.000Z"


def command(text: str, cwd: str = str(ROOT)) -> CommandSubject:
    return CommandSubject(command=text, cwd=cwd)


def option(rules: Rules, tool: str, subject: PermissionSubject, scope: str = "session") -> PermissionOption:
    """The answer for good of this scope that a question about the subject offers."""
    (found,) = [o for o in rules.options(tool, subject) if o.scope == scope]
    return found


def remembering(*subjects: PermissionSubject, tool: str = "x") -> Rules:
    """The rules of a session in which these were allowed for the session."""
    rules = Rules(ROOT)
    for number, subject in enumerate(subjects):
        rules.remember(f"q{number}", tool, subject, option(rules, tool, subject), AT)
    return rules


SUBJECTS: list[PermissionSubject] = [
    command("make test > log"),
    EditSubject(uri="file:///home/u/project/src/a.py", patch="+x"),
    ReadSubject(uri="file:///home/u/project/.env"),
    FetchSubject(url="https://example.org/a"),
    McpSubject(server="s", tool="t", arguments={"a": [1], "b": None}),
]

OTHERS: list[PermissionSubject] = [
    command("make test > log", cwd="/home/u/other"),
    command("make test"),
    EditSubject(uri="file:///home/u/project/src/b.py", patch="+x"),
    ReadSubject(uri="file:///home/u/project/.env.local"),
    ReadSubject(uri="file:///home/u/project/src/a.py"),
    FetchSubject(url="http://example.org/a"),
    FetchSubject(url="https://example.org:8443/a"),
    FetchSubject(url="https://sub.example.org/a"),
    FetchSubject(url="https://example.org.evil.test/a"),
    FetchSubject(url="https://example.org.evil.test/a"),
    FetchSubject(url="https://example.org@evil.test/a"),
    FetchSubject(url="https://evil.test\\@example.org/a"),
    McpSubject(server="s", tool="t", arguments={"a": [2], "b": None}),
    McpSubject(server="s", tool="u", arguments={"a": [1], "b": None}),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.type)
def test_a_rule_covers_its_own_subject_of_its_own_tool_and_nothing_else(subject: PermissionSubject) -> None:
    assert Rules(ROOT).covers("x", subject) is None
    rules = remembering(subject)
    assert rules.covers("x", subject) == "plain"
    assert rules.covers("y", subject) is None
    assert not any(rules.covers("x", each) for each in [*SUBJECTS, *OTHERS] if each != subject)


def test_an_edit_rule_covers_the_next_edit_of_the_same_file() -> None:
    rules = remembering(EditSubject(uri="file:///a", patch="+1"))
    assert rules.covers("x", EditSubject(uri="file:///a", patch="-2"))


def test_a_fetch_rule_covers_the_host() -> None:
    rules = remembering(FetchSubject(url="https://Example.org/a"))
    assert rules.covers("x", FetchSubject(url="https://example.org/b?c#d"))


def test_the_order_of_arguments_makes_no_difference() -> None:
    rules = remembering(McpSubject(server="s", tool="t", arguments={"a": 1, "b": 2}))
    assert rules.covers("x", McpSubject(server="s", tool="t", arguments={"b": 2, "a": 1}))


def test_a_rule_for_a_plain_command_covers_its_reading_forms_and_runs_them_rebuilt() -> None:
    rules = remembering(command("git log -3 && ls -la"))
    for text in ("git log --oneline", "ls", "ls | ls", "git log; ls -a"):
        assert rules.covers("x", command(text)) == "rebuilt"
    for text in ("git log --output=F", "git status", "ls > F", "git log $(evil)", "ls /etc"):
        assert rules.covers("x", command(text)) is None


PIECES = st.sampled_from(
    ["git status", "ls", " ", "\n", ";", "&&", "|", "$(touch p)", "`touch p`", "> p", "foo", "\t", "&", "<"]
)


def programs(text: str) -> set[str]:
    """What the commands of a line begin with."""
    return {words[0] for part in re.split(r"[;&|\n]", text) if (words := part.split())}


@settings(deadline=None)
@example("git status ", "foo")
@example("ls", ";foo")
@given(
    st.lists(PIECES, min_size=1, max_size=4).map("".join),
    st.lists(PIECES, max_size=6).map("".join) | st.text(),
)
def test_no_other_string_runs_as_it_stands_because_of_a_remembered_one(allowed: str, other: str) -> None:
    rules = remembering(command(allowed), tool="bash")
    for text in (other, allowed + other, other + allowed, allowed.strip(), allowed.upper()):
        covered = rules.covers("bash", command(text))
        assert covered != "plain" or text == allowed
        if covered == "rebuilt":
            assert not set(text) & set("$`><")
            assert "foo" not in programs(text) or "foo" in programs(allowed), "as an argument it is harmless"


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (command("make test"), "exactly make test"),
        (command("make test", str(ROOT / "sub")), "exactly this command: make test (in sub)"),
        (command("make test", "/tmp"), "exactly this command: make test (in /tmp)"),
        (command("git log -p"), "git log with reading options"),
        (command("git log -p; ls | wc"), "git log with reading options; ls with reading options; "
                                         "wc with reading options"),
        (command("pytest -x"), "pytest with plain options"),
        (command("git log > x"), "exactly this command: git log > x"),
        (
            command("ls\nrm -rf \x1b[2K\u202e\u200b"),
            "exactly this command: ls\\nrm -rf \\x1b[2K\\u202e\\u200b",
        ),
        (command("x" * 300), f"exactly {'x' * 200}… (300 characters)"),
        (EditSubject(uri="file:///home/u/project/src/a%20b.py", patch=""), "edits to src/a b.py with tool"),
        (EditSubject(uri="untitled:Untitled-1", patch=""), "edits to untitled:Untitled-1 with tool"),
        (ReadSubject(uri="file:///home/u/project2/.env"), "reading /home/u/project2/.env with tool"),
        (FetchSubject(url="https://example.org/a"), "fetching anything from https://example.org"),
        (FetchSubject(url="http://[2001:db8::1]:80/a"), "fetching anything from http://[2001:db8::1]"),
        (FetchSubject(url="http://example.org:81/a?b"), "fetching anything from http://example.org:81"),
        (FetchSubject(url="https://u@example.org/a"), "fetching exactly https://u@example.org/a"),
        (McpSubject(server="s", tool="t", arguments={}), "t of s with exactly these arguments"),
    ],
)  # fmt: skip
def test_a_rule_says_what_it_covers(subject: PermissionSubject, words: str) -> None:
    assert in_words(patterns_for(subject, ROOT), "tool", ROOT) == words


# --- the question ---------------------------------------------------------------------------------


def scopes(rules: Rules, subject: PermissionSubject, **about: Any) -> list[str]:
    return [each.scope for each in rules.options("bash", subject, **about)]


def test_a_question_offers_once_the_session_the_workspace_and_no(tmp_path: Path) -> None:
    options = Rules(ROOT, RuleStore(tmp_path)).options("bash", command("make test"))
    assert [(each.option_id, each.kind, each.scope, each.rule) for each in options] == [
        ("allow_once", "allow_once", "once", None),
        ("allow_always", "allow_always", "session", "exactly make test"),
        ("allow_workspace", "allow_always", "workspace", "exactly make test"),
        ("reject_once", "reject_once", "once", None),
    ]
    assert len({each.label for each in options}) == 4  # a client may give back the label alone


def test_what_cannot_be_judged_is_remembered_for_the_session_at_most(tmp_path: Path) -> None:
    rules = Rules(ROOT, RuleStore(tmp_path))
    assert scopes(rules, command("make > log")) == ["once", "session", "once"]
    assert scopes(rules, command("git log --output=F")) == ["once", "session", "once"]
    assert scopes(rules, command("make"), trusted=False) == ["once", "session", "once"]
    assert scopes(rules, ReadSubject(uri="file:///home/u/project/.env"), secret=True) == [
        "once",
        "session",
        "once",
    ]


@pytest.mark.parametrize(
    "text",
    ["cat .env", "cp .env x && cat x", "git show HEAD:.env", "cat <.env", "python3 -c 'open(\".env\")'",
     "cat ~/.ssh/id_rsa", "x=server.key; cat $x", "cat 'a b/.aws/config'", "x" * (LONGEST + 1)],
)  # fmt: skip
def test_what_names_a_secret_is_asked_about_each_time(text: str, tmp_path: Path) -> None:
    assert scopes(Rules(ROOT, RuleStore(tmp_path)), command(text)) == ["once", "once"]


# --- rules that are written -----------------------------------------------------------------------


def written(**rules: tuple[str, ...]) -> Rules:
    kinds = {kind: tuple(tuple(rule.split()) for rule in texts) for kind, texts in rules.items()}
    return Rules(ROOT, None, lambda: CommandRules(**kinds))


DENIED = [
    "rm -rf x", "rm -fr x", "rm -r -f x", "rm x -rf", "/bin/rm -rf x", "ls; rm -rf x", "ls && rm -rf x",
    "ls|rm -rf",
    ">log rm -rf x", "2>/dev/null rm -rf x", "rm >log -rf x", "rm 2>&1 -rf x", "<f rm -rf x",
    "rm &>log -rf x", "rm -rf x>log", "cat <<< x | rm -rf x", "rm -fr x #" + "x" * 30_000, "/bin/r''m -rf x",
    "ls\nrm -rf x", "(rm -rf x)", "{ rm -rf x; }", "echo $(rm -rf x)", "echo \"$(rm -rf x)\"",
    "echo `rm -rf x`",
    "cat <(rm -rf x)", "r''m -rf x", "\\rm -rf x", "'rm' -rf x", "$'rm' -rf x", "rm${IFS}-rf${IFS}x",
    "A=b rm -rf x",
    "sudo rm -rf x", "env A=b rm -rf x", "xargs rm -rf < x", "timeout 5 rm -rf x", "sh -c 'rm -rf x'",
    "bash -lc \"ls; rm -rf x\"", "find . -exec rm -rf {} +", "if true; then rm -rf x; fi",
    "while rm -rf x; do :; done",
    "! rm -rf x", "eval 'rm -rf x'", "nohup nice rm -rf x &", "sh <<EOF\nrm -rf x\nEOF", "rm \\\n-rf x",
    "rm -rfv x",
    "rm --recursive --force x", "rm -Rf x", "rm --recurs --forc x", "rm x --force -r", "echo 'rm -rf x' | sh",
    "bash <<< 'rm -rf x'", "printf 'ls\nrm -rf x' | cat | sudo bash -s", "flock lock rm -rf x",
    "uv run rm -rf x",
    "npm exec -- rm -rf x", "docker run --rm image rm -rf x", "nix-shell --run 'rm -rf x'",
    "rm -rf", "trap 'rm -rf x' EXIT", "sudo sh -c \"bash -c 'rm -rf x'\"",
]  # fmt: skip


@pytest.mark.parametrize("text", DENIED)
def test_a_denied_command_is_found_however_it_is_written(text: str) -> None:
    rules = written(deny=("rm -rf",), allow=("rm *", "ls"))
    assert rules.denying(command(text)) == "rm -rf"


@pytest.mark.parametrize(
    "text",
    [
        "rm x",
        "rm -r x",
        "rm --recursive x",
        "rm --interactive --recursive x",
        "rmdir -rf x",
        "echo rm -rf",
        "git commit -m 'no rm -rf here'",
        "ls",
        "grep 'rm -rf' f",
        "grep 'rm -rf' f | sort",
    ],
)
def test_another_command_is_not_denied(text: str) -> None:
    assert written(deny=("rm -rf",)).denying(command(text)) is None


def test_words_of_a_rule_stand_in_their_order_with_options_between_them() -> None:
    assert finds(("git", "push"), "git -C x push origin")
    assert finds(("git", "push"), "git --no-pager push")
    assert finds(("git", "push", "--force"), "git push origin --force")
    assert finds(("git", "push", "--force"), "git push -uf origin")
    assert not finds(("git", "push"), "git log push")
    assert not finds(("git", "push", "--force"), "git push origin")


@settings(deadline=None)
@given(st.text(alphabet="rm -f'\"\\$(){}`;&|\n<> xsh", max_size=60))
def test_looking_for_commands_never_fails(text: str) -> None:
    assert all(words and all(isinstance(word, str) for word in words) for words in commands_in(text))


def test_a_command_of_a_megabyte_is_looked_through_at_once() -> None:
    for long in ("sudo " * 200_000 + "rm -rf x", "$(" * 400_000 + "rm -rf", '"' * 900_000 + "rm -rf x"):
        assert finds(("rm", "-rf"), long)
        assert Rules(ROOT).options("bash", command(long))[0].option_id == "allow_once"


def test_deny_goes_before_ask_and_ask_before_allow() -> None:
    rules = written(deny=("git push",), ask=("git log",), allow=("git log", "git status", "git push *"))
    assert rules.denying(command("git status; git push")) == "git push"
    assert rules.asking(command("git log -1")) == "git log"
    assert rules.asking(command("git status")) is None
    assert rules.covers("bash", command("git status")) == "rebuilt"
    assert scopes(rules, command("git log -1")) == ["once", "once"], "an answer for good would never count"


def test_a_written_rule_to_allow_needs_trust() -> None:
    rules = written(allow=("git status",))
    assert rules.covers("bash", command("git status"), trusted=False) is None


# --- kept rules -----------------------------------------------------------------------------------


def test_a_rule_of_the_workspace_holds_in_it_for_every_session_and_in_no_other(tmp_path: Path) -> None:
    store = RuleStore(tmp_path)
    rules = Rules(ROOT, store)
    subject = command("make test")
    rules.remember("r1", "bash", subject, option(rules, "bash", subject, "workspace"), AT)
    again = Rules(ROOT, RuleStore(tmp_path))
    assert again.covers("bash", subject) == "rebuilt"
    assert again.covers("bash", subject, trusted=False) is None
    assert again.covers("other", subject) is None
    elsewhere = Path("/home/u/other")
    assert Rules(elsewhere, store).covers("bash", command("make test", str(elsewhere))) is None
    assert store.revoke("r1")
    assert rules.covers("bash", subject) is None
    assert again.covers("bash", subject) is None


def test_a_kept_rule_covers_no_secret(tmp_path: Path) -> None:
    rules = Rules(ROOT, RuleStore(tmp_path))
    subject = ReadSubject(uri="file:///home/u/project/a")
    rules.remember("r1", "x", subject, option(rules, "x", subject, "workspace"), AT)
    assert rules.covers("x", subject) == "plain"
    assert rules.covers("x", subject, secret=True) is None


def test_a_rule_of_the_session_that_was_revoked_does_not_come_back(tmp_path: Path) -> None:
    rules = Rules(ROOT, RuleStore(tmp_path))
    subject = command("make test")
    answer = option(rules, "bash", subject)
    rules.remember("q1", "bash", subject, answer, AT)
    assert [rule.rule_id for rule in rules.of_session] == ["q1"]
    assert rules.revoke("q1")
    assert not rules.revoke("q1")
    assert rules.covers("bash", subject) is None
    later = Rules(ROOT, RuleStore(tmp_path))
    later.recall("q1", "bash", subject, answer, AT)
    assert later.covers("bash", subject) is None
    later.recall("q2", "bash", subject, answer, AT)
    assert later.covers("bash", subject) == "rebuilt"


def test_a_recalled_answer_covers_no_more_than_its_words_said(tmp_path: Path) -> None:
    subject = command("git status")
    old = PermissionOption(option_id="allow_always", label="Allow for this session", kind="allow_always",
                           scope="session", rule="exactly this command: git status")  # fmt: skip
    rules = Rules(ROOT)
    rules.recall("q1", "bash", subject, old, AT)
    assert rules.covers("bash", subject) == "plain"
    assert rules.covers("bash", command("git status -s")) is None
    for words in ("anything", None):
        rules = Rules(ROOT)
        rules.recall("q1", "bash", subject, old.model_copy(update={"rule": words}), AT)
        assert rules.covers("bash", subject) is None


def test_an_old_answer_about_a_command_that_names_a_secret_does_not_count() -> None:
    subject = command("cat .env")
    answer = PermissionOption(option_id="allow_always", label="Allow for this session", kind="allow_always",
                              scope="session", rule="exactly this command: cat .env")  # fmt: skip
    rules = Rules(ROOT)
    rules.recall("q1", "bash", subject, answer, AT)
    assert rules.covers("bash", subject) is None


def test_an_answer_that_cannot_be_kept_holds_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    rules = Rules(ROOT, RuleStore(tmp_path / "file" / "below"))
    subject = command("make test")
    with pytest.raises(StateError):
        rules.remember("r1", "bash", subject, option(rules, "bash", subject, "workspace"), AT)
    assert rules.covers("bash", subject) == "rebuilt"


def test_a_store_inside_the_workspace_keeps_and_grants_nothing(tmp_path: Path) -> None:
    store = RuleStore(tmp_path / "data")
    make = CommandSubject(command="make test", cwd=str(tmp_path / "project"))
    inner, outer = Rules(tmp_path / "project", store), Rules(tmp_path, store)
    inner.remember("r1", "bash", make, option(inner, "bash", make, "workspace"), AT)
    for rule in store.rules(tmp_path / "project"):
        with pytest.raises(StateError, match="inside the workspace"):
            store.add(rule, tmp_path)
    document = (next((tmp_path / "data").glob("*.json"))).read_text()
    (tmp_path / "data" / "user.json").write_text(document)
    (tmp_path / "data" / "user.json").chmod(0o600)
    there = CommandSubject(command="make test", cwd=str(tmp_path))
    assert inner.covers("bash", make) == "rebuilt"
    assert outer.covers("bash", there) is None


def test_an_exact_pattern_is_the_whole_text_and_the_folder() -> None:
    assert exact(command("ls")).parts == ("ls", str(ROOT))
