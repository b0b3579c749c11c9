"""A session that goes on with a model of another API: each request is valid for the server that gets it."""

from itertools import permutations

import pytest
from e2e.every_api import MODELS, SERVERS, SIBLINGS, Stage
from wire.chat import Chat
from wire.order import assert_well_formed
from wire.processes import until
from wire.scripts import reply, tool


def thinking(text: str) -> dict[str, str]:
    return {"type": "thinking", "text": text}


@pytest.fixture
def pair(request: pytest.FixtureRequest, all_stages: dict[str, Stage]) -> tuple[Stage, Stage]:
    """Two APIs' servers with nothing to play."""
    first, second = (all_stages[api] for api in request.param)
    first.server.start_anew()
    second.server.start_anew()
    return first, second


def pairs() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pair", list(permutations(SERVERS, 2)), indirect=True, ids="-to-".join)


def look(words: str, call_id: str) -> list[dict[str, object]]:
    """Two responses: a thought-out call with another beside it, and an answer."""
    call = tool("read_file", {"file_path": "note.txt"}, call_id)
    answer = reply(thinking("now I know"), f"{words} knows")
    return [reply(thinking(f"{words} thinks"), f"{words} looks", call, tool("missing", {})), answer]


@pairs()
def test_a_session_changes_its_model_between_prompts_and_back(pair: tuple[Stage, Stage]) -> None:
    first, second = pair
    root = first.home.workspace(note_txt="one line\n")
    chat = first.chat(*look("first", "call-1"), root=root)
    assert chat.run("look")["text"] == "first knows"
    second.server.push(*look("second", "call-1"))
    assert chat.run("look again", model=second.model)["text"] == "second knows"
    first.server.push(*look("third", "call|with odd~letters" + "x" * 80))
    assert chat.run("and again", model=first.model)["text"] == "third knows"
    second.server.push(reply("all of it"))
    assert chat.run("what did you see?", model=second.model)["text"] == "all of it"
    assert (first.server.faults, second.server.faults) == ([], [])
    assert_well_formed(chat.notifications())
    sent = second.server.requests[-1].raw.decode()
    assert [words in sent for words in ("first knows", "second knows", "third knows")] == [True] * 3


@pairs()
def test_no_thought_of_one_model_is_shown_to_another_as_its_own(pair: tuple[Stage, Stage]) -> None:
    first, second = pair
    chat = first.chat(reply(thinking("a private thought"), "said aloud"))
    chat.run("think")
    second.server.push(reply("fine"))
    assert chat.run("and you?", model=second.model)["text"] == "fine"
    sent = second.server.requests[-1].raw.decode()
    assert "said aloud" in sent
    for foreign in ("a private thought", "ignature", 'encrypted_content":', "reasoning_content"):
        assert foreign not in sent
    assert second.server.faults == []


@pairs()
def test_a_model_changed_while_a_tool_runs_gets_the_rest_of_the_turn(pair: tuple[Stage, Stage]) -> None:
    first, second = pair
    root = first.home.workspace()
    command = "touch begun; while [ ! -e go ]; do sleep 0.02; done"
    chat = first.chat(
        reply(thinking("first thinks"), tool("bash", {"command": command}, "call-1")), root=root
    )
    second.server.push(reply(tool("list_directory", {}, "call-2")), reply("from the other"))
    prompt = chat.start("switch on the way")
    until((root / "begun").exists, "the command runs")
    chat.daemon.call("agentd/session/update", {"sessionId": chat.id, "model": second.model})
    (root / "go").touch()
    result = chat.result(prompt)
    assert (result["text"], result["turns"]) == ("from the other", 3)
    assert (len(first.server.requests), len(second.server.requests)) == (1, 2)
    assert (first.server.faults, second.server.faults) == ([], [])
    assert_well_formed(chat.notifications())


@pairs()
def test_a_run_cancelled_at_one_server_goes_on_at_another(pair: tuple[Stage, Stage]) -> None:
    first, second = pair
    root = first.home.workspace()
    call = tool("bash", {"command": "touch begun; sleep 60"}, "call-1")
    chat = first.chat(reply("I run", call, tool("bash", {"command": "true"}, "call-2")), root=root)
    prompt = chat.start("run")
    until((root / "begun").exists, "the command runs")
    chat.cancel()
    assert chat.result(prompt)["stopReason"] == "aborted"
    second.server.push(reply("well"))
    assert chat.run("go on", model=second.model)["text"] == "well"
    assert second.server.faults == []


def test_a_session_changes_to_another_model_of_the_same_server_and_back(stage: Stage) -> None:
    """Signatures and sealed reasoning fit one model only: the server checks them."""
    root = stage.home.workspace(note_txt="one line\n")
    sibling = f"at-{stage.api}/{SIBLINGS[stage.api]}"
    chat = stage.chat(*look("first", "call-1"), root=root)
    assert chat.run("look")["text"] == "first knows"
    stage.server.push(*look("second", "call-1"))
    before = len(stage.server.requests)
    assert chat.run("look again", model=sibling)["text"] == "second knows"
    assert b"first thinks" not in stage.server.requests[before].raw
    assert b'encrypted_content":' not in stage.server.requests[before].raw
    stage.server.push(reply("third"))
    assert chat.run("and again", model=stage.model)["text"] == "third"
    assert b"second thinks" not in stage.server.requests[-1].raw
    assert_well_formed(chat.notifications())


def test_a_session_goes_through_all_apis_in_turn(all_stages: dict[str, Stage]) -> None:
    stages = list(all_stages.values())
    for stage in stages:
        stage.server.start_anew()
    root = stages[0].home.workspace(note_txt="one line\n")
    chat = Chat(stages[0].daemon, root, model=stages[0].model, mode="full")
    for number in range(8):
        stage = stages[number % len(stages)]
        stage.server.push(*look(f"number {number}", "call-1"))
        assert chat.run(f"prompt {number}", model=stage.model)["text"] == f"number {number} knows"
    assert [stage.server.faults for stage in stages] == [[]] * len(MODELS)
    assert_well_formed(chat.notifications())
