"""A client that does not read: nothing is lost or torn, memory stays bounded, and cancel gets through."""

import json

from wire.chat import Chat
from wire.harness import Daemon, notification, request
from wire.home import Home
from wire.order import assert_well_formed
from wire.processes import until
from wire.scripts import reply, tool

MIB = 1024 * 1024

LONG = "".join(f"{number:09d}\n" for number in range(500_000))
"""Five million characters, each line of them different."""


def streaming(daemon: Daemon, home: Home) -> Chat:
    """A session whose model says five megabytes in small pieces."""
    return Chat(daemon, home.workspace(), model=home.script(reply(LONG, chunkSize=500), reply("after it")))


def test_a_client_that_reads_again_later_gets_every_character(home: Home) -> None:
    daemon = home.start()
    chat = streaming(daemon, home)
    daemon.serves()
    before = daemon.resident_bytes()
    daemon.stop_reading()
    prompt = chat.start()
    # 2 MB of input that ask for nothing: stdin is read although nobody reads stdout.
    noise = notification("$/noise", {"text": "x" * 1000})
    for _ in range(20):
        daemon.send(*([noise] * 100))
        daemon.wait_until_read()
    assert daemon.resident_bytes() - before < 60 * MIB
    daemon.read_on()
    result = chat.result(prompt)
    assert result["text"] == LONG
    assert_well_formed(chat.notifications())
    assert daemon.torn == b""


def test_a_client_that_reads_a_kilobyte_at_a_time_costs_no_memory(home: Home) -> None:
    daemon = home.start()
    chat = streaming(daemon, home)
    daemon.serves()
    before = daemon.resident_bytes()
    daemon.keep_bytes = True
    daemon.read_slowly()
    prompt = chat.start()
    until(lambda: len(daemon.received) > 200_000, "some of it has been read")
    assert daemon.resident_bytes() - before < 60 * MIB
    assert len(daemon.received) < len(LONG) // 2, "the run waits for its client"
    daemon.read_on()
    assert chat.result(prompt)["text"] == LONG
    assert_well_formed(chat.notifications())


def test_a_cancel_gets_through_while_nobody_reads(home: Home) -> None:
    daemon = home.start()
    chat = streaming(daemon, home)
    prompt = chat.start()
    chat.event("message_update")
    daemon.stop_reading()
    cancel = daemon.request("agentd/cancel", {"sessionId": chat.id})
    until(lambda: b'"agent_end"' in home.journal(), "the run has ended although nobody reads")
    daemon.send(request("status", "agentd/status"))
    daemon.wait_until_read()
    daemon.read_on()
    result = chat.result(prompt)
    assert result["stopReason"] == "aborted"
    assert 0 < len(result["text"]) < len(LONG)
    assert LONG.startswith(result["text"])
    assert daemon.response(cancel)["result"]["state"] == "cancelled"
    assert "result" in daemon.response("status")
    assert_well_formed(chat.notifications())
    assert chat.run()["text"] == "after it"


def test_an_unread_session_does_not_let_the_run_go_far_ahead(home: Home) -> None:
    daemon = home.start()
    chat = streaming(daemon, home)
    daemon.stop_reading()
    prompt = chat.start()
    until(lambda: home.model_requests(), "the model was asked")
    daemon.send(*([notification("$/noise", {"text": "x" * 1000})] * 500))
    daemon.wait_until_read()
    cancel = daemon.request("agentd/cancel", {"sessionId": chat.id})
    until(lambda: b'"agent_end"' in home.journal(), "the run has ended although nobody reads")
    daemon.read_on()
    daemon.response(cancel)
    # 512 KiB of frames, the pipe's 64 KiB, one chunk of ours; text is less than its frames.
    assert len(chat.result(prompt)["text"]) < 2 * MIB


def test_a_command_that_talks_without_end_is_drained_while_nobody_reads(home: Home) -> None:
    daemon = home.start("--allow-full")
    command = "head -c 20000000 /dev/zero | tr '\\0' x; touch finished"
    model = home.script(reply(tool("bash", {"command": command}, "call-1")), reply("done"))
    chat = Chat(daemon, home.workspace(), model=model, mode="full")
    before = daemon.resident_bytes()
    daemon.stop_reading()
    prompt = chat.start()
    until(lambda: (chat.root / "finished").exists(), "the command comes to its end although nobody reads")
    assert daemon.resident_bytes() - before < 60 * MIB
    daemon.read_on()
    assert chat.result(prompt)["text"] == "done"
    ended = chat.event("tool_execution_end")
    assert len(json.dumps(ended["result"]["content"])) < 60_000
    assert ended["result"]["details"]["totalBytes"] == 20_000_000
    live = sum(
        len(p["event"]["update"]["delta"])
        for p in chat.notifications()
        if p["event"]["type"] == "tool_execution_update"
    )
    assert live < 2 * MIB
    assert_well_formed(chat.notifications())


def test_many_unread_answers_end_the_daemon_with_one(home: Home) -> None:
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply(LONG, chunkSize=100_000)))
    chat.run()
    daemon.stop_reading()
    for number in range(30):
        daemon.send(request(f"get-{number}", "agentd/session/get", {"sessionId": chat.id}))
    assert daemon.process.wait(30) == 1
    daemon.read_on()
