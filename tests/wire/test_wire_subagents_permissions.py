"""What sub-agents ask: the question is their parent's, so that who knows only the parent can answer it."""

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import shape
from wire.processes import until
from wire.questions import ASK, option, withdrawn
from wire.scripts import reply, tool
from wire.subagents import Parent, job, of

RUN = tool("bash", {"command": "echo ran >> ran.txt"}, "child-call")


def write(name: str) -> Json:
    return tool("write_file", {"file_path": name, "content": "new\n"}, f"write-{name}")


def asking(daemon: Daemon, home: Home, *calls: Json, mode: str = "ask") -> tuple[Parent, int]:
    """A parent whose sub-agent makes these calls, each in a turn, and the request of its prompt."""
    answers = [*(reply(call) for call in calls), reply("child done")]
    parent = Parent(daemon, home, [job("asks")], of("asks", *answers), mode=mode)
    return parent, parent.start()


def question(parent: Parent, number: int = 0) -> Json:
    """The question of this number about the parent's session, waited for."""
    seen: list[Json] = []

    def is_it(message: Json) -> bool:
        if message.get("method") != ASK or message["params"]["sessionId"] != parent.id:
            return False
        seen.append(message)
        return len(seen) > number

    return parent.daemon.wait(is_it)


def child_results(parent: Parent) -> list[Json]:
    events = parent.events_of(parent.child("asks"))
    return [p["event"]["result"] for p in events if p["event"]["type"] == "tool_execution_end"]


def test_a_question_of_a_child_stands_in_its_parent_and_says_whose_it_is(
    daemon: Daemon, shared_home: Home
) -> None:
    parent, prompt = asking(daemon, shared_home, RUN)
    asked = question(parent)["params"]
    child = parent.child("asks")
    assert (asked["sessionId"], asked["toolCallId"]) == (parent.id, "task-1")
    assert asked["promptId"] == parent.notifications()[1]["promptId"]
    assert asked["child"] == {"sessionId": child, "toolCallId": "child-call"}
    assert (asked["toolName"], asked["kind"]) == ("bash", "execute")
    assert asked["title"].startswith("Sub-agent “job asks”: ")
    assert asked["subject"]["command"] == "echo ran >> ran.txt"
    got = parent.get()
    assert (got["session"]["state"], got["pending"]) == ("waiting", [asked])
    assert daemon.call("agentd/session/get", {"sessionId": child})["pending"] == []
    assert not (parent.root / "ran.txt").exists()
    daemon.answer(question(parent), {"optionId": option(question(parent), "allow_once")})
    assert parent.result(prompt)["text"] == "all done"
    assert (parent.root / "ran.txt").read_text() == "ran\n"
    assert "child done" in parent.answer()
    assert parent.get()["pending"] == []
    words = shape(parent.notifications())
    at = words.index("permission_requested")
    assert words[at - 1 : at + 3] == [
        "tool_execution_start(task-1)",
        "permission_requested",
        "permission_resolved",
        "tool_execution_end(task-1)",
    ]
    assert not any(p["event"]["type"].startswith("permission") for p in parent.events_of(child))
    parent.assert_all_well_formed()


def test_a_rejection_is_an_error_that_the_child_sees_with_what_the_user_said(
    daemon: Daemon, shared_home: Home
) -> None:
    parent, prompt = asking(daemon, shared_home, RUN)
    daemon.answer(
        question(parent), {"optionId": option(question(parent), "reject_once"), "feedback": "Not so."}
    )
    assert parent.result(prompt)["text"] == "all done"
    (result,) = child_results(parent)
    assert result["isError"]
    assert "Not so." in result["content"][0]["text"]
    assert "child done" in parent.answer()
    assert not (parent.root / "ran.txt").exists()


def test_another_view_may_answer_and_the_first_answer_counts(daemon: Daemon, shared_home: Home) -> None:
    parent, prompt = asking(daemon, shared_home, RUN)
    asked = question(parent)
    params = {"requestId": asked["params"]["requestId"], "optionId": option(asked, "allow_once")}
    assert daemon.call("agentd/permission/respond", params) == {}
    assert daemon.refused("agentd/permission/respond", params)["data"]["kind"] == "permissionClosed"
    assert parent.result(prompt)["text"] == "all done"
    assert (parent.root / "ran.txt").exists()
    assert withdrawn(daemon, asked)


def test_an_answer_for_the_session_holds_for_parent_and_children(daemon: Daemon, shared_home: Home) -> None:
    """The parent is asked first, and then neither its child, nor the next child, nor itself once more."""
    both = [job("asks"), job("other")]
    mine = reply(RUN)
    script = [
        {**mine, "content": [{**RUN, "id": "own-1"}]},
        reply(tool("task", {"tasks": both}, "task-1")),
        *of("asks", reply(RUN), reply("one")),
        *of("other", reply(RUN), reply("two")),
        reply({**RUN, "id": "own-2"}),
        reply("all done"),
    ]
    parent = Parent(daemon, shared_home, both, mode="ask")
    prompt = parent.start(model=shared_home.script(*script))
    always = next(o for o in question(parent)["params"]["options"] if o["scope"] == "session")
    daemon.answer(question(parent), {"optionId": always["optionId"]})
    assert parent.result(prompt)["text"] == "all done"
    assert (parent.root / "ran.txt").read_text() == "ran\n" * 4
    assert shape(parent.notifications()).count("permission_requested") == 1


def test_an_answer_for_the_session_that_is_given_to_a_child_holds_for_its_parent_also_after_a_restart(
    home: Home,
) -> None:
    daemon = home.start()
    parent, prompt = asking(daemon, home, RUN)
    always = next(o for o in question(parent)["params"]["options"] if o["scope"] == "session")
    daemon.answer(question(parent), {"optionId": always["optionId"]})
    parent.result(prompt)
    daemon.kill()
    later = home.start()
    again = home.script(reply({**RUN, "id": "own"}), reply("done"))
    params = {"sessionId": parent.id, "prompt": "once more", "model": again}
    assert later.call("agentd/prompt", params)["text"] == "done"
    assert (parent.root / "ran.txt").read_text() == "ran\n" * 2
    assert not any(message.get("method") == ASK for message in later.messages)


def test_questions_of_two_children_stand_beside_each_other(daemon: Daemon, shared_home: Home) -> None:
    jobs = [job("a"), job("b")]
    parts = [of(name, reply(write(f"{name}.txt")), reply(f"{name} done")) for name in ("a", "b")]
    parent = Parent(daemon, shared_home, jobs, *parts, mode="ask")
    prompt = parent.start()
    second = question(parent, 1)
    assert len(parent.get()["pending"]) == 2
    daemon.answer(second, {"optionId": option(second, "allow_once")})
    first = question(parent)
    assert first["id"] != second["id"]
    parent.event("permission_resolved", requestId=second["params"]["requestId"])
    assert [each["requestId"] for each in parent.get()["pending"]] == [first["params"]["requestId"]]
    daemon.answer(first, {"optionId": option(first, "reject_once")})
    assert parent.result(prompt)["text"] == "all done"
    written = sorted(path.name for path in parent.root.iterdir())
    assert written == [second["params"]["subject"]["uri"].rsplit("/", 1)[1]]
    parent.assert_all_well_formed()


@pytest.mark.parametrize(("mode", "runs"), [("edit", True), ("plan", False)])
def test_a_new_mode_of_the_parent_judges_its_childs_question_anew(
    daemon: Daemon, shared_home: Home, mode: str, runs: bool
) -> None:
    parent, prompt = asking(daemon, shared_home, write("new.txt"))
    asked = question(parent)
    daemon.call("agentd/session/update", {"sessionId": parent.id, "mode": mode})
    assert parent.result(prompt)["text"] == "all done"
    assert (parent.root / "new.txt").exists() == runs
    assert withdrawn(daemon, asked)
    assert parent.event("permission_resolved")["by"] == "rule"


def test_a_new_mode_of_the_parent_counts_at_the_childs_next_call(daemon: Daemon, shared_home: Home) -> None:
    parent, prompt = asking(daemon, shared_home, RUN, write("free.txt"))
    asked = question(parent)
    daemon.call("agentd/session/update", {"sessionId": parent.id, "mode": "edit"})
    assert not withdrawn(daemon, asked), "commands ask in mode edit as well"
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    assert parent.result(prompt)["text"] == "all done"
    assert (parent.root / "free.txt").exists()
    assert shape(parent.notifications()).count("permission_requested") == 1


def test_trust_that_is_taken_back_counts_at_the_childs_next_call(home: Home) -> None:
    daemon = home.start("--allow-full")
    wait = tool("bash", {"command": "touch started; while [ ! -e go ]; do sleep 0.02; done"})
    parent, prompt = asking(daemon, home, wait, RUN, mode="full")
    until((parent.root / "started").exists, "the command runs, unasked")
    daemon.notify("agentd/trust/didChange", {"trusted": False})
    assert daemon.serves()
    (parent.root / "go").touch()
    asked = question(parent)
    assert asked["params"]["child"]["toolCallId"] == "child-call"
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    assert parent.result(prompt)["text"] == "all done"
    assert not (parent.root / "ran.txt").exists()


def test_without_the_capability_the_message_says_which_sub_agent_asks(home: Home) -> None:
    daemon = home.start(options={"trusted": True})
    parent, prompt = asking(daemon, home, RUN)
    shown = daemon.asked("window/showMessageRequest")
    assert shown["params"]["message"].startswith("Sub-agent “job asks”: ")
    assert "echo ran >> ran.txt" in shown["params"]["message"]
    daemon.answer(shown, {"title": shown["params"]["actions"][0]["title"]})
    assert parent.result(prompt)["text"] == "all done"
    assert (parent.root / "ran.txt").exists()


def test_a_cancel_withdraws_the_childs_question_before_anything_closes(
    daemon: Daemon, shared_home: Home
) -> None:
    parent, prompt = asking(daemon, shared_home, RUN)
    asked = question(parent)
    assert parent.cancel()["state"] == "cancelled"
    assert parent.result(prompt)["stopReason"] == "aborted"
    assert withdrawn(daemon, asked)
    resolved = parent.event("permission_resolved")
    assert (resolved["outcome"], resolved["by"]) == ("cancelled", "cancel")
    words = shape(parent.notifications())
    assert words.index("permission_resolved") < words.index("tool_execution_end(task-1)")
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    params = {"requestId": asked["params"]["requestId"], "optionId": option(asked, "allow_once")}
    assert daemon.refused("agentd/permission/respond", params)["data"]["kind"] == "permissionClosed"
    assert not (parent.root / "ran.txt").exists()
    parent.assert_all_well_formed()
    parent.assert_children_lie_inside_their_call()
