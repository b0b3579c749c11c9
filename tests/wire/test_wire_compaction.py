"""`agentd/session/compact` on the wire: a real daemon, also cancelled and killed in the middle."""

from wire.chat import Chat
from wire.harness import Daemon, Json, error_of, notification
from wire.home import Home
from wire.order import assert_well_formed, shape
from wire.processes import until
from wire.runs import chat_with
from wire.scripts import reply, tool

SUMMARY = reply("## Goal\nTo look around.")
HANG = reply("## Go", hang=True)


def worked(daemon: Daemon, home: Home, *more: Json) -> Chat:
    """A session with two prompts behind it; `more` is what its model says then."""
    look = tool("list_directory", {}, "look-1")
    chat = chat_with(daemon, home, reply("I look", look), reply("seen"), reply("fine"), *more, mode="full")
    chat.run("look around")
    chat.run("and so on")
    return chat


def start_compacting(home: Home, chat: Chat) -> int:
    """Ask for a summary and wait until the model was asked; gives the id of the request."""
    asked = len(home.model_requests("hand-over"))
    request_id = chat.daemon.request("agentd/session/compact", {"sessionId": chat.id})
    until(lambda: len(home.model_requests("hand-over")) > asked, "the model is asked")
    return request_id


def about_compaction(chat: Chat) -> list[Json]:
    kinds = ("compaction_start", "compaction_end")
    return [params for params in chat.notifications() if params["event"]["type"] in kinds]


def test_a_session_is_summed_up_on_request(daemon: Daemon, shared_home: Home) -> None:
    chat = worked(daemon, shared_home, SUMMARY, reply("on we go"))
    before = chat.get()
    params = {"sessionId": chat.id, "instructions": "Keep the marker-7731."}
    result = daemon.call("agentd/session/compact", params)
    assert result["outcome"] == "compacted"
    assert set(result) == {"outcome", "tokensBefore", "tokensAfter"}
    start, end = about_compaction(chat)
    assert start["event"] == {
        "type": "compaction_start", "reason": "request", "tokensBefore": result["tokensBefore"],
    }  # fmt: skip
    assert end["event"] == {"type": "compaction_end", **result}
    assert "promptId" not in start
    (asked,) = shared_home.model_requests("marker-7731")
    assert (asked["tools"], len(asked["messages"])) == ([], 1)
    assert chat.get()["messages"] == before["messages"]
    chat.run("marker-8842")
    (asked,) = shared_home.model_requests("marker-8842")
    assert "To look around." in asked["messages"][0]["content"][0]["text"]
    assert "look around" not in [block.get("text") for m in asked["messages"] for block in m["content"]]
    assert_well_formed(chat.notifications())


def test_an_empty_session_has_nothing_to_sum_up(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home)
    result = daemon.call("agentd/session/compact", {"sessionId": chat.id})
    assert (result["outcome"], result["tokensAfter"]) == ("nothingToDo", result["tokensBefore"])


def test_a_cancelled_request_is_answered_as_such_and_nothing_has_changed(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = worked(daemon, shared_home, HANG, reply("here again"))
    request_id = start_compacting(shared_home, chat)
    daemon.send(notification("$/cancelRequest", {"id": request_id}))
    error = error_of(daemon.response(request_id))
    assert (error["code"], error["data"]["kind"]) == (-32800, "cancelled")
    assert [params["event"].get("outcome") for params in about_compaction(chat)] == [None, "aborted"]
    assert chat.run("marker-9953")["text"] == "here again"
    (asked,) = shared_home.model_requests("marker-9953")
    assert asked["messages"][0]["content"][0]["text"] == "look around"


def test_a_cancel_of_the_session_stops_it(daemon: Daemon, shared_home: Home) -> None:
    chat = worked(daemon, shared_home, HANG, reply("here again"))
    request_id = start_compacting(shared_home, chat)
    answer = chat.cancel()
    assert (answer["state"], answer["quiescent"]) == ("cancelled", True)
    result = daemon.response(request_id)["result"]
    assert (result["outcome"], result["tokensAfter"]) == ("aborted", result["tokensBefore"])
    assert chat.run("go on")["text"] == "here again"
    assert_well_formed(chat.notifications())


def test_prompts_are_refused_during_a_summary_and_the_other_way_round(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = worked(daemon, shared_home, HANG, HANG)
    start_compacting(shared_home, chat)
    error = daemon.refused("agentd/prompt", chat.prompt_params("now"))
    assert "summed up" in error["message"], "why it is busy"
    assert (error["code"], error["data"]["kind"]) == (-32803, "sessionBusy")
    chat.cancel()
    prompt = chat.start("now")
    until(lambda: "turn_start" in shape(chat.notifications("p4")), "it runs")
    error = daemon.refused("agentd/session/compact", {"sessionId": chat.id})
    assert error["data"]["kind"] == "sessionBusy"
    chat.cancel()
    chat.result(prompt)


def test_a_session_that_is_summed_up_is_idle_and_its_events_tell_of_it(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = worked(daemon, shared_home, HANG, reply("here again"))
    start_compacting(shared_home, chat)
    got = chat.get()
    listed = daemon.call("agentd/session/list", {"workspaceUri": chat.root.as_uri()})["sessions"]
    known = daemon.call("agentd/status")["sessions"]
    states = [got["session"]["state"], *(each["state"] for each in (*listed, *known))]
    assert states.count("idle") == len(states)
    attached = daemon.call("agentd/session/attach", {"sessionId": chat.id, "afterSeq": got["seq"] - 1})
    assert [each["event"]["type"] for each in attached["events"]] == ["compaction_start"]
    assert "partial" not in attached
    interrupting = chat.run("now", whenBusy="interrupt")
    assert interrupting["text"] == "here again"
    assert [p["event"].get("outcome") for p in about_compaction(chat)] == [None, "aborted"]


def test_a_prompt_can_wait_for_the_end_of_a_summary(daemon: Daemon, shared_home: Home) -> None:
    chat = worked(daemon, shared_home, HANG, reply("here again"))
    compacting = start_compacting(shared_home, chat)
    waiting = chat.prompt_params("go on", whenBusy="queue")
    assert daemon.call("agentd/prompt", {**waiting, "wait": "accepted"})["outcome"] == "queued"
    assert [each["promptId"] for each in chat.get()["queue"]] == [waiting["promptId"]]
    assert chat.cancel(keepQueue=True)["restored"] == []
    assert daemon.response(compacting)["result"]["outcome"] == "aborted"
    assert daemon.call("agentd/prompt", waiting)["text"] == "here again"
    messages = list(daemon.messages)
    answered = next(n for n, message in enumerate(messages) if message.get("id") == compacting)
    last_start = max(
        n for n, m in enumerate(messages) if m.get("params", {}).get("event", {}).get("type") == "agent_start"
    )
    assert answered < last_start
    assert_well_formed(chat.notifications())


def test_a_session_that_does_not_exist_cannot_be_summed_up(daemon: Daemon) -> None:
    error = daemon.refused("agentd/session/compact", {"sessionId": "s_none"})
    assert error["data"]["kind"] == "sessionNotFound"


def test_kill_in_the_middle_of_a_summary_leaves_the_session_as_it_was(home: Home) -> None:
    chat = worked(home.start("--allow-full"), home, HANG)
    start_compacting(home, chat)
    (start,) = about_compaction(chat)
    chat.daemon.kill()
    chat.daemon = home.start("--allow-full")
    before = chat.get()
    assert before["seq"] == start["seq"] + 1, "the compaction was closed"
    assert (
        chat.run("marker-1", promptId="after", model=home.script(reply("here again")))["text"] == "here again"
    )
    (asked,) = home.model_requests("marker-1")
    assert asked["messages"][0]["content"][0]["text"] == "look around"


def test_a_summary_survives_a_kill_right_behind_its_end(home: Home) -> None:
    chat = worked(home.start("--allow-full"), home, SUMMARY)
    chat.daemon.request("agentd/session/compact", {"sessionId": chat.id})
    chat.event("compaction_end")
    chat.daemon.kill()
    chat.daemon = home.start("--allow-full")
    assert len(chat.get()["messages"]) == 6
    chat.run("marker-1", promptId="after", model=home.script(reply("here again")))
    (asked,) = home.model_requests("marker-1")
    assert "To look around." in asked["messages"][0]["content"][0]["text"]


def test_the_end_of_the_daemon_ends_it_in_time(home: Home) -> None:
    chat = worked(home.start("--allow-full"), home, HANG)
    request_id = start_compacting(home, chat)
    chat.daemon.call("shutdown")
    assert chat.daemon.response(request_id)["result"]["outcome"] == "aborted"
    chat.daemon.notify("exit")
    assert chat.daemon.exit_code() == 0
