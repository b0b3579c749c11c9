"""`task`: parts of the work done by sub-agents, up to four of them at the same time.

Each is a session of its own that begins with nothing but its prompt, and all that comes back is what it says
last. What sub-agents do is permitted, or not, where they do it; to hand them work needs no permission.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from agentd.protocol.messages import ToolKind
from agentd.protocol.text import clean_text, visible
from agentd.tools.base import (
    Action,
    ChildAnswer,
    ChildTask,
    Description,
    RunChild,
    ToolContext,
    ToolError,
    ToolResult,
)
from agentd.tools.targets import MAX_RESULT_BYTES, title

MOST_TASKS = 4
_MAX_DESCRIPTION = 100
_RESERVE = 1_000  # bytes for what is said around the answers
_SAID_LAST = "What it said last:"


class Task:
    """Has sub-agents do tasks, all at the same time, and gives their answers in the order of the tasks."""

    name = "task"
    description = (
        "Have up to four sub-agents work at the same time, each on a task of its own, and return their "
        "answers. Use it for parts of the work that need much reading and a short answer, or that do not "
        "depend on each other. A sub-agent sees nothing of this conversation: its prompt has to say all it "
        "needs, and what to report. It has your tools but this one, and works in the same files: do not let "
        "two of them change the same file."
    )
    kind: ToolKind = "think"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_TASKS,
                "items": {
                    "type": "object",
                    "properties": {
                        "description": {
                            "type": "string",
                            "pattern": "\\S",
                            "maxLength": _MAX_DESCRIPTION,
                            "description": "The task in three to six words, for the user.",
                        },
                        "prompt": {
                            "type": "string",
                            "pattern": "\\S",
                            "description": "The task, whole, and what the answer has to hold.",
                        },
                        "tools": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string"},
                            "description": "The names of the only tools it gets. Default: all.",
                        },
                    },
                    "required": ["description", "prompt"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["tasks"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Sub-agents: find the bug; read the docs`."""
        given = arguments.get("tasks")
        tasks = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
        names = "; ".join(str(task.get("description", "?")) for task in tasks)
        return Description(title(f"Sub-agent{'' if len(tasks) == 1 else 's'}: {names}"))

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """The tasks, looked at before anything begins. Raises `ToolError` for tools that cannot be given."""
        run_child = context.run_child
        if run_child is None:
            raise ToolError("There are no sub-agents here. Do the work yourself.")
        tasks = [_task(number, given, run_child) for number, given in enumerate(arguments["tasks"], 1)]
        return Action(partial(_run, tasks, run_child, context))


def _task(number: int, given: Mapping[str, Any], run_child: RunChild) -> ChildTask:
    names = given.get("tools")
    if names is not None:
        names = tuple(dict.fromkeys(names))
        unknown = [name for name in names if name not in run_child.tools]
        if unknown:
            raise ToolError(
                f"Task {number} cannot have {', '.join(map(repr, unknown))}. A sub-agent can have: "
                f"{', '.join(run_child.tools)}."
            )
    description = visible(" ".join(given["description"].split()), kept="")  # it stands in questions
    return ChildTask(description, clean_text(given["prompt"]), names)


async def _run(tasks: Sequence[ChildTask], run_child: RunChild, context: ToolContext) -> ToolResult:
    answers: dict[int, ChildAnswer] = {}

    async def run(number: int, task: ChildTask) -> None:
        async def tell(step: str) -> None:
            await context.output("progress", f"{number} {task.description}: {step}\n")

        answers[number] = await run_child(task, tell)

    async with anyio.create_task_group() as together:
        for number, task in enumerate(tasks, 1):
            together.start_soon(run, number, task)
    return _result(tasks, [answers[number] for number in sorted(answers)])


def _result(tasks: Sequence[ChildTask], answers: Sequence[ChildAnswer]) -> ToolResult:
    room = (MAX_RESULT_BYTES - _RESERVE) // len(tasks)
    parts = [
        f'Task {number} of {len(tasks)}, "{task.description}", {_told(answer, room)}'
        for number, (task, answer) in enumerate(zip(tasks, answers, strict=True), 1)
    ]
    failed = all(answer.problem is not None for answer in answers)
    text = "\n\n".join(parts)
    return ToolResult.error(text) if failed else ToolResult.text(text)


def _told(answer: ChildAnswer, room: int) -> str:
    turns = turns_told(answer.turns)
    said = answer.text.strip()
    if answer.problem is None:
        return f"is done ({turns}):\n{_within(said, room) or '(it gave no answer)'}"
    told = f"is not done ({turns}): {_within(answer.problem, room // 4)}"
    return f"{told}\n{_SAID_LAST}\n{_within(said, room // 4 * 3)}" if said else told


def turns_told(turns: int) -> str:
    """`1 turn`, `2 turns`."""
    return "1 turn" if turns == 1 else f"{turns} turns"


def _within(text: str, room: int) -> str:
    """As much of a text as fits in so many bytes, its beginning and its end."""
    data = text.encode("utf-8", "replace")
    if len(data) <= room:
        return text
    half = room // 2
    head, tail = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters are left out here …]\n{tail}"
