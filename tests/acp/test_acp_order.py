"""Requests over ACP that come before the ones in front of them are done, and what an end leaves waiting."""

from pathlib import Path
from typing import Any, cast

import anyio
from fakes.acp_agent import AcpHome, Agent, text
from wire.processes import sleepers, unique_sleep, until
from wire.scripts import reply, tool

from agentd.acp.face import AcpFace
from agentd.acp.telling import Told
from agentd.protocol.messages import CommandSubject, PermissionOption, PermissionRequest
from agentd.sessions.session import Session

LONG = "word " * 40_000
"""Three such answers are more than a client that does not read is sent."""


def request(request_id: str, method: str, session: str, **params: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0", "id": request_id, "method": method, "params": {"sessionId": session, **params}
    }  # fmt: skip


def long_session(acp_home: AcpHome, *more: Any) -> tuple[Agent, str, Path]:
    """A session of which more has been said than goes out at once to a client that does not read."""
    folder = acp_home.workspace()
    agent = acp_home.begun(*[reply(LONG, chunkSize=len(LONG))] * 4, *more)
    session = agent.new(folder)
    for number in range(4):
        agent.ask(session, f"question {number}")
    return agent, session, folder


def test_a_cancel_means_the_prompt_whose_session_is_still_being_opened(acp_home: AcpHome) -> None:
    acp_home.settings = 'mode = "auto"\n'  # a prompt has it find out first whether there is a sandbox
    first = acp_home.begun(reply("So far", hang=True))
    session = first.new(acp_home.workspace())
    first.close_stdin()
    assert first.exit_code() == 0
    agent = acp_home.begun()
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
    agent.send(request("p", "session/prompt", session, prompt=text("go")), cancel)
    assert agent.response("p")["result"]["stopReason"] == "cancelled"


def test_a_prompt_that_comes_while_its_session_is_loaded_waits_and_is_told_once(acp_home: AcpHome) -> None:
    first, session, folder = long_session(acp_home)
    first.close_stdin()
    assert first.exit_code() == 0
    agent = acp_home.begun()
    agent.stop_reading()
    place = {"cwd": str(folder), "mcpServers": []}
    agent.send(
        request("l1", "session/load", session, **place),
        request("l2", "session/load", session, **place),
        request("m", "session/set_mode", session, modeId="plan"),
        request("p", "session/prompt", session, prompt=text("and now?")),
    )
    agent.wait_until_read()
    agent.read_on()
    assert agent.response("p")["result"]["stopReason"] == "end_turn"
    assert [m["id"] for m in agent.messages if m.get("id") in ("l1", "l2", "m", "p")] == [
        "l1",
        "l2",
        "m",
        "p",
    ]
    assert agent.said(session) == LONG * (4 + 4 + 1)
    asked = "".join(f"question {number}" for number in range(4))
    assert agent.said(session, "user_message_chunk") == asked * 2


def test_who_stops_a_load_still_hears_how_the_prompt_goes_on(acp_home: AcpHome) -> None:
    acp_home.trust()
    wait = tool("bash", {"command": "until [ -e go ]; do sleep 0.05; done"}, "c1")
    agent, session, folder = long_session(acp_home, reply(wait), reply("Done."))
    prompt = agent.prompt(session, "go")
    agent.told(session, lambda update: update.get("status") == "in_progress")
    agent.stop_reading()
    agent.send(
        request("l", "session/load", session, cwd=str(folder), mcpServers=[]),
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "l"}},
    )
    agent.wait_until_read()
    agent.read_on()
    agent.response("l")
    (folder / "go").touch()
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert agent.said(session).endswith("Done.")


def test_prompts_that_a_kill_left_waiting_are_told_and_a_cancel_lets_go_of_them(acp_home: AcpHome) -> None:
    acp_home.trust()
    sleep, folder = unique_sleep(), acp_home.workspace()
    first = acp_home.begun(reply(tool("bash", {"command": sleep})))
    session = first.new(folder)
    first.prompt(session, "one")
    until(lambda: sleepers(sleep), "the command runs")
    for asked in ("Mend the test", "Then the docs"):
        first.prompt(session, asked)
    until(lambda: b"Then the docs" in acp_home.journal(), "both wait")
    first.process.kill()
    first.exit_code()
    agent = acp_home.begun(reply("Going on."))
    place = {"sessionId": session, "cwd": str(folder), "mcpServers": []}
    agent.call("session/load", place)
    told = agent.said(session, "agent_thought_chunk")
    assert '2 prompts that waited when agentd ended were not run: "Mend the test", "Then the docs"' in told
    agent.notify("session/cancel", {"sessionId": session})
    until(lambda: b'"queue":[]' in acp_home.journal(), "nothing waits")
    since = len(agent.messages)
    agent.call("session/load", place)
    assert not agent.said(session, "agent_thought_chunk", since)


# --- questions, without a process -------------------------------------------------------------------


class _Door:
    """Says yes to all it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ask(self, method: str, params: Any) -> Any:
        self.asked.append(method)
        return {"outcome": {"outcome": "selected", "optionId": "yes"}}


class _Known:
    """What a face looks at of a session that it shows."""

    session_id = "s"
    info: Any = None


async def test_a_question_that_comes_while_a_session_is_told_is_put_when_that_is_done() -> None:
    door = _Door()
    face = AcpFace(cast(Any, door), cast(Any, None), lambda *args: None)
    answers: list[Any] = []
    question = PermissionRequest(
        request_id="r", session_id="s", prompt_id="p", tool_call_id="c",
        tool_name="bash", title="Run x", kind="execute",
        subject=CommandSubject(type="command", command="x", cwd="/w"),
        options=(PermissionOption(option_id="yes", label="Yes", kind="allow_once", scope="once"),),
    )  # fmt: skip

    async def ask() -> None:
        answers.append(await face.ask(question))

    told = Told(cast(Any, None), lambda info: [], lambda: cast(Any, None))
    face.catch_up("s")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert not answers
        assert not door.asked
        face.show(cast(Session, _Known()), told)
    assert [answer.option_id for answer in answers] == ["yes"]
