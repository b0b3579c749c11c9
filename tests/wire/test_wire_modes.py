"""Permission modes and trust: what runs freely, what is asked about, and what is refused."""

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.questions import (
    ASK,
    COMMAND,
    READ,
    READ_SECRET,
    WRITE,
    asked_nothing,
    asking,
    option,
    question,
    tool_result,
    workspace,
)
from wire.scripts import reply, tool

ALLOWED, ASKED, REFUSED = "allowed", "asked", "refused"

MODES = [
    ("plan", READ, ALLOWED),
    ("plan", WRITE, REFUSED),
    ("plan", COMMAND, REFUSED),
    ("plan", READ_SECRET, ASKED),
    ("ask", READ, ALLOWED),
    ("ask", WRITE, ASKED),
    ("ask", COMMAND, ASKED),
    ("ask", READ_SECRET, ASKED),
    ("edit", READ, ALLOWED),
    ("edit", WRITE, ALLOWED),
    ("edit", COMMAND, ASKED),
    ("edit", READ_SECRET, ASKED),
    ("full", READ, ALLOWED),
    ("full", WRITE, ALLOWED),
    ("full", COMMAND, ALLOWED),
    ("full", READ_SECRET, ALLOWED),
]


def outcome_of(chat: Chat, prompt: int) -> str:
    """What became of the only tool call; an open question is rejected."""
    daemon = chat.daemon
    ended = daemon.wait(
        lambda m: m.get("id") == prompt or (m.get("method") == ASK and m["params"]["sessionId"] == chat.id)
    )
    if ended.get("method") == ASK:
        daemon.answer(ended, {"optionId": option(ended, "reject_once")})
        assert chat.result(prompt)["stopReason"] == "stop"
        return ASKED
    assert ended["result"]["stopReason"] == "stop"
    assert asked_nothing(chat)
    return REFUSED if tool_result(chat)["isError"] else ALLOWED


@pytest.mark.parametrize(
    ("mode", "call", "outcome"), MODES, ids=[f"{mode}-{call['name']}-{o}" for mode, call, o in MODES]
)
def test_a_mode_lets_through_what_it_says(
    daemon: Daemon, shared_home: Home, mode: str, call: Json, outcome: str
) -> None:
    assert outcome_of(*asking(daemon, shared_home, call, mode)) == outcome


@pytest.mark.parametrize(
    "call", [WRITE, {**WRITE, "arguments": {"file_path": ".env", "content": "x"}}], ids=["new", "secret"]
)
def test_a_secret_file_is_asked_about_also_where_writes_are_free(
    daemon: Daemon, shared_home: Home, call: Json
) -> None:
    secret = call["arguments"]["file_path"] == ".env"
    responses = [reply(tool("read_file", {"file_path": ".env"}, "look"))] if secret else []
    chat = Chat(
        daemon,
        workspace(shared_home),
        model=shared_home.script(*responses, reply(call), reply("done")),
        mode="edit",
    )
    prompt = chat.start()
    if secret:
        looking = question(chat)
        since = len(daemon.messages)
        daemon.answer(looking, {"optionId": option(looking, "allow_once")})
        asked = daemon.asked(ASK, since)
        assert asked["params"]["toolCallId"] == "call-1"
        daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    assert chat.result(prompt)["text"] == "done"
    assert (chat.root / ".env").read_text() == "TOKEN=hidden-in-env\n"
    assert (chat.root / "new.txt").exists() is not secret


def test_an_untrusted_workspace_acts_as_ask(home: Home) -> None:
    daemon = home.start("--allow-full", options={"permission": True, "trusted": False})
    for mode in ("edit", "full"):
        assert outcome_of(*asking(daemon, home, WRITE, mode)) == ASKED
    assert outcome_of(*asking(daemon, home, COMMAND, "full")) == ASKED
    assert outcome_of(*asking(daemon, home, READ, "edit")) == ALLOWED
    daemon.notify("agentd/trust/didChange", {"trusted": True})
    assert outcome_of(*asking(daemon, home, WRITE, "edit")) == ALLOWED
    daemon.notify("agentd/trust/didChange", {"trusted": False})
    assert outcome_of(*asking(daemon, home, WRITE, "edit")) == ASKED


def test_a_client_that_says_nothing_about_trust_is_untrusted(home: Home) -> None:
    daemon = home.start(options={"permission": True})
    assert outcome_of(*asking(daemon, home, WRITE, "edit")) == ASKED


def test_revoked_trust_acts_at_the_next_tool_call(home: Home) -> None:
    daemon = home.start()
    first = tool("write_file", {"file_path": "first.txt", "content": "x"}, "call-1")
    second = tool("write_file", {"file_path": "second.txt", "content": "x"}, "call-2")
    model = home.script(reply("slow " * 30, first, chunkSize=10, delayMs=30), reply(second), reply("done"))
    chat = Chat(daemon, home.workspace(), model=model, mode="edit")
    prompt = chat.start()
    chat.event("message_update")
    daemon.notify("agentd/trust/didChange", {"trusted": False})
    asked = question(chat)
    assert asked["params"]["toolCallId"] == "call-1"
    chat.cancel()
    chat.result(prompt)
    assert not (chat.root / "first.txt").exists()


def test_full_is_unsupported_where_the_user_did_not_allow_it(home: Home) -> None:
    daemon = home.start()
    root = home.workspace()
    for method, params in (
        ("agentd/session/new", {"workspaceUri": root.as_uri(), "mode": "full"}),
        ("agentd/prompt", {"workspaceUri": root.as_uri(), "prompt": "x", "mode": "full"}),
    ):
        error = daemon.refused(method, params)
        assert (error["code"], error["data"]["kind"]) == (-32803, "unsupported")
    chat = Chat(daemon, root)
    update = {"sessionId": chat.id, "mode": "full"}
    assert daemon.refused("agentd/session/update", update)["data"]["kind"] == "unsupported"


def test_full_is_allowed_by_the_configuration(home: Home) -> None:
    home.config.write_text("allow_full = true\n")
    daemon = home.start()
    assert outcome_of(*asking(daemon, home, COMMAND, "full")) == ALLOWED


def test_trust_that_is_given_acts_at_the_next_turn_also_where_the_user_steers_meanwhile(home: Home) -> None:
    two = reply(*(tool("write_file", {"file_path": f"{n}.txt", "content": n}, f"c-{n}") for n in "ab"))
    daemon = home.start("--allow-full", options={"permission": True})
    chat = Chat(daemon, home.workspace(), model=home.script(two, reply("done")), mode="full")
    prompt = chat.start()
    first = question(chat)
    since = len(daemon.messages)
    daemon.notify("agentd/trust/didChange", {"trusted": True})
    steer = chat.start("this too", whenBusy="steer")
    chat.event("queue_changed")
    daemon.answer(first, {"optionId": "reject_once"})
    second = daemon.asked(ASK, since)
    assert second["params"]["toolCallId"] == "c-b", "it belongs to the turn in which there was no trust"
    daemon.answer(second, {"optionId": "reject_once"})
    assert chat.result(prompt)["text"] == "done"
    assert chat.result(steer)["outcome"] == "steered"
    assert list(chat.root.iterdir()) == []
