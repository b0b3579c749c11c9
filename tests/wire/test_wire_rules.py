"""Answers for good on the wire: what they cover, where, how they are listed, and how they are taken back."""

import json
import subprocess
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.questions import ASK, asked_nothing, option, question, resolved, said
from wire.scripts import reply, tool

RULES, REVOKE = "agentd/permissions/rules", "agentd/permissions/revoke"


def bash(command: str, call_id: str = "call-1") -> Json:
    return tool("bash", {"command": command}, call_id)


def running(daemon: Daemon, home: Home, root: Path, *commands: str, **settings: str) -> tuple[Chat, int]:
    """A session whose model runs these commands one after the other, and its prompt under way."""
    replies = [reply(bash(command, f"call-{n}")) for n, command in enumerate(commands, 1)]
    chat = Chat(daemon, root, model=home.script(*replies, reply("done")), **settings)
    return chat, chat.start()


def scope(asked: Json, wanted: str) -> str:
    """The id of the answer for good of this scope."""
    (found,) = [o["optionId"] for o in asked["params"]["options"] if o["scope"] == wanted]
    return str(found)


def results(chat: Chat) -> list[str]:
    ended = [p["event"]["result"] for p in chat.notifications() if p["event"]["type"] == "tool_execution_end"]
    return ["".join(block["text"] for block in result["content"]) for result in ended]


def always(daemon: Daemon, home: Home, root: Path, command: str, wanted: str = "workspace") -> Chat:
    """A session in which this command was allowed for good."""
    chat, prompt = running(daemon, home, root, command)
    asked = question(chat)
    daemon.answer(asked, {"optionId": scope(asked, wanted)})
    assert chat.result(prompt)["text"] == "done"
    return chat


def is_asked(daemon: Daemon, home: Home, root: Path, command: str) -> bool:
    """Whether a new session asks about this command; the answer is no."""
    chat, prompt = running(daemon, home, root, command)
    ended = daemon.wait(
        lambda m: m.get("id") == prompt or (m.get("method") == ASK and m["params"]["sessionId"] == chat.id)
    )
    if ended.get("method") == ASK:
        daemon.answer(ended, {"optionId": option(ended, "reject_once")})
        chat.result(prompt)
        return True
    assert asked_nothing(chat)
    return False


def test_a_question_offers_four_answers_and_says_what_the_lasting_ones_cover(
    daemon: Daemon, shared_home: Home
) -> None:
    chat, prompt = running(daemon, shared_home, shared_home.workspace(), "cat note.txt | head -3")
    asked = question(chat)
    offered = [(o["kind"], o["scope"], o.get("rule")) for o in asked["params"]["options"]]
    words = "cat with reading options; head with reading options"
    assert offered == [
        ("allow_once", "once", None),
        ("allow_always", "session", words),
        ("allow_always", "workspace", words),
        ("reject_once", "once", None),
    ]
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(prompt)


def test_always_in_this_workspace_outlives_the_daemon_and_holds_nowhere_else(home: Home) -> None:
    daemon = home.start()
    here, there = home.workspace(note_txt="a note\n"), home.workspace(note_txt="a note\n")
    chat = always(daemon, home, here, "cat note.txt")
    assert results(chat) == ["a note"]
    assert not is_asked(daemon, home, here, "cat note.txt")
    assert is_asked(daemon, home, there, "cat note.txt")
    daemon.kill()
    after = home.start()
    assert not is_asked(after, home, here, "cat -n note.txt")
    assert is_asked(after, home, there, "cat note.txt")
    for other in (
        "cat note.txt > copy",
        "cat note.txt; touch p",
        "cat $(touch p)",
        "cat .env",
        "cat /etc/hostname",
    ):
        assert is_asked(after, home, here, other), other
    assert sorted(path.name for path in here.iterdir()) == ["note.txt"]


def test_what_a_rule_lets_pass_runs_in_the_form_that_was_judged(home: Home) -> None:
    daemon = home.start()
    root = home.workspace()
    always(daemon, home, root, "echo hi")
    chat, prompt = running(daemon, home, root, "echo \"a  b\"   'c'\necho d")
    assert chat.result(prompt)["text"] == "done"
    assert asked_nothing(chat)
    assert results(chat) == ["a  b c\nd"]
    assert_well_formed(chat.notifications())


def test_an_allowed_git_runs_no_program_that_the_repository_names(home: Home) -> None:
    daemon = home.start()
    root = home.workspace(note_txt="a note\n")
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    always(daemon, home, root, "git status")
    subprocess.run(["git", "config", "core.fsmonitor", "touch canary"], cwd=root, check=True)
    chat, prompt = running(daemon, home, root, "git status --short")
    assert chat.result(prompt)["text"] == "done"
    assert asked_nothing(chat)
    assert results(chat) == ["?? note.txt"]
    assert not (root / "canary").exists()
    subprocess.run(["git", "status"], cwd=root, check=True, capture_output=True)
    assert (root / "canary").exists(), "it would have run"


SEC_01 = [
    "git status && touch p", "ls; touch p", "ls | tee p", "echo $(touch p)", "echo `touch p`", "ls\ntouch p",
    "ls & touch p", "ls > p", "cat <(touch p)", "git statusfoo", "echo ${x:=$(touch p)}", "echo 'a",
]  # fmt: skip


@pytest.fixture(scope="module")
def ruled(shared_home: Home) -> Daemon:
    """A daemon whose user allows git status, ls and echo."""
    shared_home.config.write_text('[permissions]\nallow = ["git status", "ls", "echo", "cat"]\n')
    return shared_home.start()


@pytest.mark.parametrize("command", SEC_01)
def test_an_allowed_beginning_lets_nothing_behind_it_run(
    ruled: Daemon, shared_home: Home, command: str
) -> None:
    root = shared_home.workspace()
    assert is_asked(ruled, shared_home, root, command)
    assert not (root / "p").exists()


def test_operators_inside_quotes_are_one_command(ruled: Daemon, shared_home: Home) -> None:
    chat, prompt = running(ruled, shared_home, shared_home.workspace(), 'echo "a && b"')
    assert chat.result(prompt)["text"] == "done"
    assert asked_nothing(chat)
    assert results(chat) == ["a && b"]


def test_always_for_an_interpreter_is_for_these_words(home: Home) -> None:
    daemon = home.start()
    root = home.workspace()
    always(daemon, home, root, "python3 -m pytest -q")
    assert is_asked(daemon, home, root, 'python3 -c \'open("p","w")\'')
    assert is_asked(daemon, home, root, "npm run evil")
    assert not (root / "p").exists()


def test_rules_are_listed_and_revoking_one_acts_at_the_next_call_of_a_running_session(home: Home) -> None:
    daemon = home.start()
    root = home.workspace()
    lasting = always(daemon, home, root, "pwd")
    assert daemon.call(RULES, {"workspaceUri": home.workspace().as_uri()}) == {"rules": []}
    (rule,) = daemon.call(RULES, {"workspaceUri": root.as_uri()})["rules"]
    assert (rule["scope"], rule["tool"], rule["pattern"]) == ("workspace", "bash", "pwd with reading options")
    assert rule["createdAt"] <= lasting.notifications()[-1]["time"]

    chat, prompt = running(daemon, home, root, "pwd; ls", "pwd", "ls")
    asked = question(chat)
    daemon.answer(asked, {"optionId": scope(asked, "session")})
    assert chat.result(prompt)["text"] == "done"
    found = daemon.call(RULES, {"workspaceUri": root.as_uri()})["rules"]
    assert [each["scope"] for each in found] == ["session", "workspace"]
    for each in found:
        assert daemon.call(REVOKE, {"ruleId": each["ruleId"]}) == {}
        assert daemon.refused(REVOKE, {"ruleId": each["ruleId"]})["data"]["kind"] == "invalidParams"
    assert daemon.call(RULES, {"workspaceUri": root.as_uri()}) == {"rules": []}
    since = len(daemon.messages)
    again = chat.start(model=home.script(reply(bash("ls", "call-9")), reply("done")))
    asked = daemon.asked(ASK, since)
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(again)

    daemon.kill()
    after = home.start()
    since = len(after.messages)
    params = {
        "sessionId": chat.id,
        "prompt": "on",
        "model": home.script(reply(bash("ls", "c")), reply("done")),
    }
    prompt = after.request("agentd/prompt", params)
    asked = after.asked(ASK, since)
    after.answer(asked, {"optionId": option(asked, "reject_once")})
    assert after.response(prompt)["result"]["text"] == "done", "the journal's answer does not bring it back"


def test_two_daemons_at_once_see_each_others_rules(home: Home) -> None:
    one, two = home.start(), home.start()
    root = home.workspace()
    always(one, home, root, "pwd")
    assert not is_asked(two, home, root, "pwd")
    always(two, home, root, "ls")
    assert not is_asked(one, home, root, "ls && pwd")
    rules = one.call(RULES, {"workspaceUri": root.as_uri()})["rules"]
    assert len(rules) == 2
    two.call(REVOKE, {"ruleId": rules[0]["ruleId"]})
    assert is_asked(one, home, root, "pwd")


def test_a_damaged_store_is_a_problem_and_grants_nothing(home: Home) -> None:
    daemon = home.start()
    root = home.workspace()
    always(daemon, home, root, "pwd")
    (path,) = (home.data / "permissions").glob("*.json")
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text('{"version": 1, "rules": [{"tool": "bash"}]}')
    after = home.start(folders=[root])
    assert is_asked(after, home, root, "pwd")
    (problem,) = after.call("agentd/status")["problems"]
    assert (problem["severity"], problem["uri"]) == ("error", path.as_uri())
    chat = always(after, home, root, "pwd")
    notice = chat.event("notice", severity="warning")
    assert "for this session only" in notice["message"]
    assert json.loads(path.read_text())["rules"] == [{"tool": "bash"}], "nobody overwrites it"


def test_written_rules_deny_and_ask_in_the_modes_they_hold_in(home: Home) -> None:
    home.config.write_text(
        'allow_full = true\n[permissions]\ndeny = ["touch"]\nask = ["pwd"]\nallow = ["pwd", "ls"]\n'
    )
    daemon = home.start()
    root = home.workspace()
    for mode in ("ask", "edit", "full"):
        chat, prompt = running(daemon, home, root, "ls; sh -c 'touch p'", mode=mode)
        assert chat.result(prompt)["text"] == "done"
        assert asked_nothing(chat)
        assert 'denies "touch"' in said(chat)
    assert not (root / "p").exists()
    assert is_asked(daemon, home, root, "pwd")
    assert not is_asked(daemon, home, root, "ls")


def test_in_an_untrusted_workspace_nothing_is_kept_and_no_kept_rule_counts(home: Home) -> None:
    root = home.workspace()
    always(home.start(), home, root, "pwd")
    daemon = home.start(options={"permission": True, "trusted": False})
    chat, prompt = running(daemon, home, root, "pwd")
    asked = question(chat)
    assert [o["scope"] for o in asked["params"]["options"]] == ["once", "session", "once"]
    daemon.answer(asked, {"optionId": scope(asked, "session")})
    chat.result(prompt)
    assert resolved(chat)["outcome"] == "allowed"


# --- J8, J9: odd answers --------------------------------------------------------------------------


def test_an_answer_to_one_sessions_question_is_none_to_anothers(daemon: Daemon, shared_home: Home) -> None:
    (one, first), (two, second) = (
        running(daemon, shared_home, shared_home.workspace(), "touch p") for _ in range(2)
    )
    asked_1, asked_2 = question(one), question(two)
    allow = {"requestId": asked_1["params"]["requestId"], "optionId": option(asked_1, "allow_once")}
    assert daemon.call("agentd/permission/respond", allow) == {}
    assert one.result(first)["text"] == "done"
    for late in (allow, {**allow, "optionId": option(asked_1, "reject_once")}):
        assert daemon.refused("agentd/permission/respond", late)["data"]["kind"] == "permissionClosed"
    daemon.answer(asked_1, {"optionId": scope(asked_1, "session")})  # late, and for good: it changes nothing
    assert two.get()["session"]["state"] == "waiting"
    assert daemon.call(RULES, {"workspaceUri": one.root.as_uri()}) == {"rules": []}
    daemon.answer(asked_2, {"optionId": option(asked_2, "reject_once")})
    two.result(second)
    assert ((one.root / "p").exists(), (two.root / "p").exists()) == (True, False)


def test_a_question_that_nobody_answers_waits_and_a_cancel_works(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = running(daemon, shared_home, shared_home.workspace(), "touch p")
    question(chat)
    assert chat.get()["session"]["state"] == "waiting"
    assert daemon.serves()
    assert chat.cancel()["state"] == "cancelled"
    assert chat.result(prompt)["stopReason"] == "aborted"
    assert not (chat.root / "p").exists()


# --- S8: what is shown ----------------------------------------------------------------------------

SHOWN = {
    "escape": ("echo \x1b[2K\x1b[1Ahidden", "\\x1b[2K\\x1b[1Ahidden"),
    "bidi": ("echo \u202egnihtemos\u2066", "\\u202egnihtemos\\u2066"),
    "hidden": ("echo a\u200b\U000e0041\ufeffb", "a\\u200b\\U000e0041\\ufeffb"),
    "long": ("echo " + "x" * 1_000_000 + " ; touch p", "x ; touch p"),
}


@pytest.mark.parametrize(("command", "visible"), SHOWN.values(), ids=SHOWN)
def test_a_question_shows_the_whole_command_with_nothing_hidden(
    home: Home, command: str, visible: str
) -> None:
    daemon = home.start(options={"trusted": True})
    chat, prompt = running(daemon, home, home.workspace(), command)
    asked = daemon.asked("window/showMessageRequest")
    message = asked["params"]["message"]
    assert visible in message
    assert not set(message) & set("\x1b\u202e\u2066\u200b\U000e0041\ufeff")
    assert len(message) > len(command)
    requested = chat.event("permission_requested")
    assert requested["subject"]["command"] == command, "a rich client gets it to the letter"
    for each in (requested["title"], *(o.get("rule", "") for o in requested["options"])):
        assert each.isprintable()
        assert len(each) < 400
    daemon.answer(asked, {"title": "Reject"})
    assert chat.result(prompt)["text"] == "done"
    assert not (chat.root / "p").exists()
