"""The client against a daemon that plays its part: real processes, real frames."""

import json
import os
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.client import Client, ClientOptions, ConnectionLost, DaemonEnded, PermissionAnswer, RpcError
from agentd.client import daemon as daemon_module
from agentd.client import link as link_module
from agentd.client.event_stream import CAPACITY
from agentd.protocol.events import EventNotification, MessageUpdate
from agentd.protocol.messages import PermissionRequest

FAKE = [sys.executable, str(Path(__file__).parents[1] / "fakes" / "fake_agentd.py")]


def fake(
    tmp_path: Path, *, env: dict[str, str] | None = None, **arguments: Any
) -> AbstractAsyncContextManager[Client]:
    environment = {**os.environ, "FAKE_LOG": str(tmp_path / "log.jsonl"), **(env or {})}
    return Client.start(tmp_path, command=FAKE, env=environment, **arguments)


def received(tmp_path: Path) -> list[dict[str, Any]]:
    """What the daemon got from us."""
    return [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]


@pytest.fixture(autouse=True)
def _nothing_hangs(request: pytest.FixtureRequest) -> Any:
    import faulthandler

    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


async def test_a_prompt_gives_its_result(tmp_path: Path) -> None:
    async with fake(tmp_path) as client:
        result = await client.prompt("say:Hello_there", max_turns=3, mode="edit")
    assert (result.text, result.stop_reason, result.turns) == ("Hello there", "stop", 1)
    prompt = next(message for message in received(tmp_path) if message.get("method") == "agentd/prompt")
    assert prompt["params"]["maxTurns"] == 3
    assert prompt["params"]["mode"] == "edit"
    assert prompt["params"]["promptId"]


async def test_the_daemon_learns_the_workspace_and_the_options(tmp_path: Path) -> None:
    async with fake(tmp_path, options=ClientOptions(model="a/b", trusted=True)):
        pass
    hello, *_, shutdown, leave = received(tmp_path)
    assert hello["params"]["workspaceFolders"] == [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]
    assert hello["params"]["processId"] == os.getpid()
    said = hello["params"]["initializationOptions"]["agentd"]
    assert (said["model"], said["trusted"], said["permission"]) == ("a/b", True, False)
    assert (shutdown["method"], leave["method"]) == ("shutdown", "exit")
    assert "params" not in shutdown


async def test_a_folder_whose_name_is_no_unicode_is_worked_in(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    environment = {**os.environ, "FAKE_LOG": str(tmp_path / "log.jsonl")}
    async with Client.start(folder, command=FAKE, env=environment):
        pass
    (named,) = received(tmp_path)[0]["params"]["workspaceFolders"]
    assert named == {"uri": f"{tmp_path.as_uri()}/f%FF", "name": "f\ufffd"}


async def test_events_of_a_prompt_come_in_order_and_end_with_it(tmp_path: Path) -> None:
    async with fake(tmp_path) as client, client.stream("say:a call:bash:0 say:b") as run:
        types = [note.event.type async for note in run]
        result = run.result
    assert types == [
        "agent_start", "turn_start", "message_start", "message_update", "tool_execution_start",
        "tool_execution_update", "tool_execution_end", "message_update", "message_end", "turn_end",
        "agent_end",
    ]  # fmt: skip
    assert result.text == "ab"


async def test_two_prompts_at_once_see_their_own_events_only(tmp_path: Path) -> None:
    seen: dict[str, set[str | None]] = {}

    async def watch(client: Client, name: str) -> None:
        async with client.stream(f"flood:50 say:{name}", session_id=name) as run:
            seen[name] = {note.session_id async for note in run}

    async with fake(tmp_path) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(watch, client, "one")
        tasks.start_soon(watch, client, "two")
        await anyio.wait_all_tasks_blocked()
    assert seen == {"one": {"one"}, "two": {"two"}}


async def test_everything_holds_events_outside_the_run_too(tmp_path: Path) -> None:
    async with fake(tmp_path) as client, client.stream("say:a", everything=True) as run:
        types = [note.event.type async for note in run]
    assert types[:2] == ["session_changed", "agent_start"]
    assert types[-1] == "agent_end"


async def test_unknown_events_are_skipped_and_given_raw_on_demand(tmp_path: Path) -> None:
    async with fake(tmp_path) as client:
        async with client.stream("unknown say:a") as run:
            assert "weather_changed" not in [note.event.type async for note in run]
        async with client.stream("unknown say:a") as run:
            assert {"type": "weather_changed", "sky": "blue"} in [
                params["event"] async for params in run.raw()
            ]


async def test_a_result_without_watching_is_waited_for(tmp_path: Path) -> None:
    async with fake(tmp_path) as client, client.stream("flood:2000 say:end") as run:
        with pytest.raises(RuntimeError, match="still runs"):
            _ = run.result
        assert (await run.wait()).text.endswith("end")


async def test_an_error_answer_is_an_rpc_error_with_kind_and_hint(tmp_path: Path) -> None:
    async with fake(tmp_path) as client:
        with pytest.raises(RpcError, match="It cannot begin") as caught:
            await client.prompt("refuse:noModel")
        assert (caught.value.kind, caught.value.hint, caught.value.code) == (
            "noModel",
            "Do it otherwise.",
            -32803,
        )
        with pytest.raises(RpcError) as unknown:
            await client.request("agentd/nothing", {})
        assert unknown.value.kind == "methodNotFound"
        async with client.stream("refuse:sessionBusy") as run:
            with pytest.raises(RpcError):
                _ = [note async for note in run]


async def test_an_error_in_the_block_arrives_as_itself(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with fake(tmp_path):
            raise LookupError("mine")


async def test_the_daemons_death_fails_every_wait_with_its_last_words(tmp_path: Path) -> None:
    failures: list[DaemonEnded] = []

    async def wait(client: Client) -> None:
        with pytest.raises(DaemonEnded) as caught:
            await client.prompt("mute", session_id="other")
        failures.append(caught.value)

    async with fake(tmp_path) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, client)
            await anyio.wait_all_tasks_blocked()
            async with client.stream("say:a die:9") as run:
                with pytest.raises(DaemonEnded) as caught:
                    _ = [note async for note in run]
        with pytest.raises(DaemonEnded):
            await client.status()
    assert caught.value.exit_code == 9
    assert caught.value.last_lines == ("the fake daemon", "says goodbye")
    assert "exit code 9" in str(caught.value)
    assert "says goodbye" in str(caught.value)
    assert [failure.exit_code for failure in failures] == [9]


async def test_a_killed_daemon_is_told_by_its_signal(tmp_path: Path) -> None:
    async with fake(tmp_path) as client:
        client.kill()
        with pytest.raises(DaemonEnded, match="SIGKILL"):
            await client.prompt("hang")


async def test_a_daemon_that_dies_at_the_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(DaemonEnded, match="exit code 7") as caught:
        async with fake(tmp_path, env={"FAKE_GREETING": "die"}):
            pytest.fail("it never started")
    assert caught.value.last_lines == ("no room",)


async def test_a_daemon_that_never_greets_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "START_SECONDS", 0.2)
    monkeypatch.setattr(link_module, "SHUTDOWN_SECONDS", 0.1)
    monkeypatch.setattr(daemon_module, "LEAVE_SECONDS", 0.1)
    with pytest.raises(ConnectionLost, match="did not answer"):
        async with fake(tmp_path, env={"FAKE_GREETING": "silent"}):
            pytest.fail("it never started")


async def test_a_command_that_does_not_exist_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with Client.start(tmp_path, command=["no-such-command-here"]):
            pytest.fail("it never started")


async def test_a_stubborn_daemon_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "SHUTDOWN_SECONDS", 0.2)
    monkeypatch.setattr(daemon_module, "LEAVE_SECONDS", 0.2)
    async with fake(tmp_path, env={"FAKE_STUBBORN": "1"}) as client:
        pid = client.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_garbage_from_the_daemon_is_a_clear_end(tmp_path: Path) -> None:
    async with fake(tmp_path) as client:
        with pytest.raises(ConnectionLost, match="no JSON"):
            await client.prompt("garbage hang")


async def test_cancelling_the_call_cancels_the_prompt_and_waits_for_its_end(tmp_path: Path) -> None:
    async with fake(tmp_path) as client, client.events() as events:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.prompt, "say:a hang say:b")
                async for note in events:
                    if isinstance(note.event, MessageUpdate):
                        scope.cancel()
        # the end of the run was read before the call came back
        rest = []
        with anyio.move_on_after(5):
            async for note in events:
                rest.append(note.event.type)
                if note.event.type == "agent_end":
                    break
        assert rest[-1] == "agent_end"
    assert any(message.get("method") == "$/cancelRequest" for message in received(tmp_path))


async def test_cancelling_a_call_that_is_never_answered_takes_it_back(tmp_path: Path) -> None:
    async with fake(tmp_path) as client:
        with anyio.move_on_after(0.05):
            await client.request("agentd/prompt", {"prompt": "mute", "promptId": "p"})
        assert (await client.status()).version == "0"
    prompt = next(message for message in received(tmp_path) if message.get("method") == "agentd/prompt")
    assert {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": prompt["id"]}} in received(
        tmp_path
    )


async def test_leaving_a_stream_early_cancels_its_prompt(tmp_path: Path) -> None:
    async with fake(tmp_path) as client, client.stream("flood:5000 say:a hang say:b") as run:
        async for note in run:
            if isinstance(note.event, MessageUpdate):
                break
    assert run.result.stop_reason == "aborted"


async def test_a_block_that_is_cancelled_from_outside_ends_its_prompt_and_daemon_in_good_order(
    tmp_path: Path,
) -> None:
    ends = []
    with anyio.CancelScope() as scope:
        async with fake(tmp_path) as client, client.stream("say:a hang say:b") as run:
            try:
                async for note in run:
                    if isinstance(note.event, MessageUpdate):
                        scope.cancel()
            finally:
                ends.append(run)
    assert ends[0].result.stop_reason == "aborted"
    methods = [message.get("method") for message in received(tmp_path)]
    assert methods[-3:] == ["$/cancelRequest", "shutdown", "exit"]


async def test_a_cancelled_run_goes_on_to_its_result(tmp_path: Path) -> None:
    async with fake(tmp_path) as client, client.stream("say:a hang") as run:
        types = []
        async for note in run:
            types.append(note.event.type)
            if note.event.type == "message_update":
                run.cancel()
        assert run.result.stop_reason == "aborted"
    assert types[-1] == "agent_end"


async def test_a_question_is_answered_by_the_callback(tmp_path: Path) -> None:
    asked: list[PermissionRequest] = []

    async def allow(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer(option_id="yes")

    async with fake(tmp_path, on_permission=allow) as client:
        assert (await client.prompt("ask:command")).text == "[yes]"
    assert asked[0].subject.type == "command"
    assert received(tmp_path)[0]["params"]["initializationOptions"]["agentd"]["permission"] is True


async def test_without_a_callback_a_question_gets_no_permission(tmp_path: Path) -> None:
    async with fake(tmp_path) as client:
        assert (await client.prompt("ask:command")).text == "[none][error -32601]"


async def test_a_question_that_is_taken_back_cancels_the_callback(tmp_path: Path) -> None:
    ended = anyio.Event()

    async def ponder(request: PermissionRequest) -> PermissionAnswer:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async with fake(tmp_path, on_permission=ponder) as client:
        assert (await client.prompt("retract")).text == "[-32800]"
        await ended.wait()


async def test_a_callback_that_fails_ends_the_block_with_its_error(tmp_path: Path) -> None:
    async def fail(request: PermissionRequest) -> PermissionAnswer:
        raise ZeroDivisionError("in the callback")

    with pytest.raises(ZeroDivisionError, match="in the callback"):
        async with fake(tmp_path, on_permission=fail) as client:
            await client.prompt("ask:command hang")


async def test_a_listener_that_fails_ends_the_block_with_its_error(tmp_path: Path) -> None:
    async def fail(note: EventNotification) -> None:
        raise ZeroDivisionError("in the listener")

    with pytest.raises(ZeroDivisionError, match="in the listener"):
        async with fake(tmp_path, on_event=fail) as client:
            await client.prompt("hang")


async def test_a_listener_gets_every_event_before_the_block_ends(tmp_path: Path) -> None:
    types: list[str] = []

    async def listen(note: EventNotification) -> None:
        await anyio.lowlevel.checkpoint()
        types.append(note.event.type)

    async with fake(tmp_path, on_event=listen) as client:
        await client.prompt("flood:900")
    assert types.count("message_update") == 900
    assert types[-1] == "agent_end"


async def test_a_listener_may_ask_the_daemon_while_events_pile_up(tmp_path: Path) -> None:
    answers = 0

    async def listen(note: EventNotification) -> None:
        nonlocal answers
        if note.event.type == "message_start":
            await anyio.sleep(0.1)  # the flood comes in meanwhile
            await client.status()
            answers += 1

    async with fake(tmp_path, on_event=listen) as client:
        await client.prompt(f"flood:{CAPACITY * 4}")
    assert answers == 1


async def test_a_slow_listener_slows_the_daemon_down(tmp_path: Path) -> None:
    """While a listener works, the reader rests: the prompt's answer lies behind more than may wait."""
    resume, started = anyio.Event(), anyio.Event()
    heard = 0

    async def listen(note: EventNotification) -> None:
        nonlocal heard
        heard += 1
        if heard == 10:
            started.set()
            await resume.wait()

    answered = anyio.Event()
    async with fake(tmp_path, on_event=listen) as client, anyio.create_task_group() as tasks:

        async def prompt() -> None:
            await client.prompt(f"flood:{CAPACITY * 4}")
            answered.set()

        tasks.start_soon(prompt)
        await started.wait()
        with anyio.move_on_after(0.5):
            await answered.wait()
        assert not answered.is_set()
        assert (await client.status()).version == "0"  # a new question is answered all the same
        resume.set()
    assert answered.is_set()


async def test_every_method_speaks_the_protocol(tmp_path: Path) -> None:
    async with fake(tmp_path) as client:
        session = await client.new_session(title="t", mode="plan")
        assert (await client.list_sessions(limit=3)).sessions[0].session_id == "s1"
        assert (await client.get_session(session.session_id)).has_more is False
        assert (await client.update_session(session.session_id, title="new")).title == "new"
        assert (await client.submit("say:a")).outcome == "started"
        assert (await client.cancel(session.session_id)).state == "cancelled"
        assert [model.id for model in (await client.models()).models] == ["fake/model", "fake/far"]
        assert (await client.tools()).tools[0].name == "bash"
        assert await client.schema() == {"$defs": {}}
        await client.set_credentials("p", "secret")
        await client.respond_permission("q1", "yes")
        assert (await client.permission_rules()).rules[0].pattern == "git log with reading options"
        await client.revoke_permission("r1")
        client.set_trusted(True)
        await client.close_session(session.session_id)
    methods = [message["method"] for message in received(tmp_path)]
    assert "agentd/trust/didChange" in methods
    new = received(tmp_path)[methods.index("agentd/session/new")]
    assert new["params"] == {"title": "t", "mode": "plan"}


async def test_stderr_lines_reach_the_log(tmp_path: Path) -> None:
    lines: list[str] = []
    async with fake(tmp_path, log=lines.append) as client:
        with pytest.raises(DaemonEnded):
            await client.prompt("die:3")
    assert lines == ["the fake daemon", "says goodbye"]


async def test_nothing_of_the_workspace_is_imported_by_the_daemon(tmp_path: Path) -> None:
    (tmp_path / "agentd").mkdir()
    (tmp_path / "agentd" / "__init__.py").write_text("open('hacked', 'w')")
    (tmp_path / "agentd" / "__main__.py").write_text("open('hacked', 'w')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link_module, "START_SECONDS", 20)
        try:
            async with Client.start(tmp_path):
                pass
        except ConnectionLost:
            pass  # what matters here is what did not run
    assert not (tmp_path / "hacked").exists()
