"""Child sessions where things go wrong below the wire: a tool that does not return, a full disk."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from agent.loop_host import FakeTool
from sessions.session_home import Home, assert_whole_journal, calling, home, prompt, tool_call
from sessions.test_storage_failure import Disk

from agentd.agent import tool_calls
from agentd.protocol.methods import PromptResult
from agentd.sessions.session import Session
from agentd.tools.base import ToolContext, ToolResult
from agentd.tools.task import Task

JOB = {"description": "the job", "prompt": "Do the job."}


def delegating(*child: Any) -> tuple[Any, ...]:
    """A parent's script with one child, which answers so."""
    parts = [
        {"content": [{"type": "text", "text": each}]} if isinstance(each, str) else each for each in child
    ]
    return (
        calling(tool_call("t", "task", tasks=[JOB])),
        *({**part, "when": "Do the job."} for part in parts),
        "all done",
    )


def ids(living: Home, session: Session) -> tuple[str, list[str]]:
    paths = (living.folder / "data" / "sessions").glob(f"*/{session.session_id}.*.jsonl")
    return session.session_id, [path.stem for path in paths]


async def result_of(session: Session, text: str, **params: Any) -> PromptResult:
    answer = await session.prompt(prompt(text, **params))
    assert isinstance(answer, PromptResult)
    return answer


async def test_a_deaf_tool_of_a_child_is_left_behind_by_child_and_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_calls, "ABANDON_SECONDS", 0.05)
    started, released = anyio.Event(), anyio.Event()

    async def deaf(arguments: Any, context: ToolContext) -> ToolResult:
        with anyio.CancelScope(shield=True):
            started.set()
            await released.wait()
            await context.output("stdout", "too late")
        return ToolResult.text("too late")

    async with home(tmp_path, FakeTool(run=deaf), Task()) as living:  # type: ignore[arg-type]
        session = await living.new(*delegating(calling(tool_call("c"))))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(result_of, session, "go")
            await started.wait()
            cancelled = await session.cancel()
            assert (cancelled.state, cancelled.quiescent) == ("cancelled", False)
        parent, (child,) = ids(living, session)
        again = living.script("on we go")
        assert (await result_of(session, "next", model=again)).text == "on we go"
        await living.sessions.close(child)
        released.set()
        for session_id in (parent, child):
            assert_whole_journal(living.journal(session_id))


@pytest.mark.parametrize("left", range(2, 44, 3))
async def test_a_disk_that_is_full_at_any_moment_of_a_child_costs_that_prompt_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    disk = Disk(monkeypatch)
    async with home(tmp_path, FakeTool(), Task()) as living:  # type: ignore[arg-type]
        session = await living.new(*delegating(calling(tool_call("c")), "the answer"))
        disk.left = left
        result = await result_of(session, "go")
        assert result.stop_reason in ("error", "stop")
        assert disk.failures or result.text == "all done"
        disk.left = 10**9
        again = living.script("on we go")
        assert (await result_of(session, "next", model=again)).text == "on we go"
        parent, children = ids(living, session)
        assert {each.session_id for each in living.sessions.opened} == {parent}
        assert_whole_journal(living.journal(parent))
        for child in children:
            if living.journal(child).stat().st_size:
                assert (await living.sessions.open(child)).info.state == "idle"
                assert_whole_journal(living.journal(child))
