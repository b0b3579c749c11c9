"""`task`: what it asks of whoever runs sub-agents, and what the model is told of their answers."""

import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tools.file_calls import said

from agentd.agent.validation import validated
from agentd.protocol.messages import ToolCall
from agentd.tools.base import ChildAnswer, ChildTask, ToolContext, ToolError, ToolResult
from agentd.tools.task import Task
from agentd.workspace.editor import Disk
from agentd.workspace.seen import SeenFiles

Tell = Callable[[str], Awaitable[None]]


class FakeChildren:
    """Sub-agents that answer as a test says, by their description."""

    tools = ("read_file", "bash")

    def __init__(self, answer: Callable[[str, Tell], Awaitable[ChildAnswer]] | None = None) -> None:
        self.tasks: list[ChildTask] = []
        self._answer = answer

    async def __call__(self, task: ChildTask, tell: Tell) -> ChildAnswer:
        self.tasks.append(task)
        if self._answer is None:
            return ChildAnswer(f"answer of {task.description}", 1)
        return await self._answer(task.description, tell)


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"description": name, "prompt": f"do {name}", **more}


async def run(
    path: Path, children: FakeChildren | None, *tasks: dict[str, Any], output: Any = None
) -> ToolResult:
    more = {} if output is None else {"output": output}
    context = ToolContext(path, Disk(), SeenFiles(), {}, **more, run_child=children)
    arguments = validated(ToolCall(id="a", name="task", arguments={"tasks": list(tasks)}), Task.parameters)
    return await (await Task().prepare(arguments, context)).run()


async def test_answers_stand_in_the_order_of_the_tasks_however_they_came(tmp_path: Path) -> None:
    second_is_done = anyio.Event()

    async def answer(name: str, tell: Tell) -> ChildAnswer:
        if name == "first":
            await second_is_done.wait()
        else:
            second_is_done.set()
        return ChildAnswer(f"from {name}", 2)

    with anyio.fail_after(10):
        result = await run(tmp_path, FakeChildren(answer), task("first"), task("second"))
    assert said(result) == (
        'Task 1 of 2, "first", is done (2 turns):\nfrom first\n\n'
        'Task 2 of 2, "second", is done (2 turns):\nfrom second'
    )


async def test_no_permission_is_asked_for_handing_out_work(tmp_path: Path) -> None:
    context = ToolContext(tmp_path, Disk(), SeenFiles(), {}, run_child=FakeChildren())
    action = await Task().prepare({"tasks": [task("x")]}, context)
    assert action.subject is None
    assert Task.kind == "think", "which every mode allows"


async def test_tools_are_named_once_and_handed_on(tmp_path: Path) -> None:
    children = FakeChildren()
    await run(tmp_path, children, task("some", tools=["bash", "bash", "read_file"]), task("all"))
    assert [each.tools for each in children.tasks] == [("bash", "read_file"), None]


async def test_the_steps_of_each_are_told_with_its_number(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    async def output(channel: str, text: str, left_out: int = 0) -> None:
        told.append((channel, text))

    async def answer(name: str, tell: Tell) -> ChildAnswer:
        await tell(f"step of {name}")
        return ChildAnswer("")

    await run(tmp_path, FakeChildren(answer), task("a"), task("b\n b"), output=output)
    assert sorted(told) == [("progress", "1 a: step of a\n"), ("progress", "2 b b: step of b b\n")]


async def test_what_is_not_done_says_why_and_what_was_said_last(tmp_path: Path) -> None:
    async def answer(name: str, tell: Tell) -> ChildAnswer:
        return ChildAnswer("half of it" if name == "half" else "", 3, f"{name} reason.")

    result = await run(tmp_path, FakeChildren(answer), task("half"), task("none"))
    assert result.is_error
    assert said(result) == (
        'Task 1 of 2, "half", is not done (3 turns): half reason.\nWhat it said last:\nhalf of it\n\n'
        'Task 2 of 2, "none", is not done (3 turns): none reason.'
    )


@pytest.mark.parametrize("count", [1, 2, 4])
async def test_no_answers_are_longer_together_than_one_result_may_be(tmp_path: Path, count: int) -> None:
    async def answer(name: str, tell: Tell) -> ChildAnswer:
        return ChildAnswer("begin " + "ö" * 60_000 + " end", 1, "x" * 60_000 if name == "0" else None)

    result = await run(tmp_path, FakeChildren(answer), *(task(str(n)) for n in range(count)))
    text = said(result)
    assert len(text.encode()) <= 50_000
    assert text.count("begin ö") == text.count("ö end") == count
    assert len(text.encode()) > 40_000 * (1 - 1 / (2 * count)) - 10_000 * math.ceil(1 / count)


async def test_where_there_are_no_sub_agents_the_model_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="Do the work yourself"):
        await run(tmp_path, None, task("x"))


@pytest.mark.parametrize(
    "tasks",
    [
        [],
        [task(str(n)) for n in range(5)],
        [task(" ")],
        [{"description": "x", "prompt": "\n"}],
        [{"description": "x"}],
        [task("x", tools=[])],
        [task("x", tools="bash")],
        [task("x", model="y")],
    ],
)
async def test_arguments_of_another_form_begin_nothing(tmp_path: Path, tasks: list[dict[str, Any]]) -> None:
    children = FakeChildren()
    with pytest.raises(Exception, match="task"):
        await run(tmp_path, children, *tasks)
    assert children.tasks == []


@pytest.mark.parametrize("given", [None, "x", [1], [{"description": 3}], [{}, {"description": "a\nb"}]])
def test_it_can_be_described_whatever_the_arguments_are(tmp_path: Path, given: Any) -> None:
    context = ToolContext(tmp_path, Disk(), SeenFiles(), {})
    assert Task().describe({"tasks": given}, context).title.startswith("Sub-agent")


async def test_a_description_cannot_steer_what_shows_it(tmp_path: Path) -> None:
    children = FakeChildren()
    await run(tmp_path, children, task("look\x1b[2J \u202eevil"))
    assert children.tasks[0].description == "look\\x1b[2J \\u202eevil"
