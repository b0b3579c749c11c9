"""`todo_write` and `todo_read`: the list, its ids, and what the model and the user are told."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tools.file_calls import said

from agentd.protocol.messages import TodoItem
from agentd.tools.base import ToolContext, ToolResult
from agentd.tools.todo import TodoRead, TodoWrite
from agentd.workspace.editor import Disk
from agentd.workspace.seen import SeenFiles


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return ToolContext(tmp_path, Disk(), SeenFiles(), {})


async def write(context: ToolContext, *items: dict[str, Any]) -> ToolResult:
    return await (await TodoWrite().prepare({"items": list(items)}, context)).run()


async def read(context: ToolContext) -> str:
    return said(await (await TodoRead().prepare({}, context)).run())


def item(text: str, status: str = "pending", **more: str) -> dict[str, Any]:
    return {"text": text, "status": status, **more}


def ids(context: ToolContext) -> list[str]:
    return [kept.id for kept in context.todo.items]


async def test_the_list_is_kept_and_told_with_its_marks(context: ToolContext) -> None:
    assert await read(context) == "The to-do list is empty."
    result = await write(
        context, item("look", "completed"), item("mend", "in_progress"), item("test\nit"), item("rest")
    )
    told = "To-do list, 1 of 4 done:\n[x] 1: look\n[>] 2: mend\n[ ] 3: test it\n[ ] 4: rest"
    assert (said(result), await read(context)) == (told, told)
    assert context.todo.items[2] == TodoItem(id="3", text="test\nit", status="pending")
    await write(context)
    assert context.todo.items == ()


async def test_an_item_keeps_its_id_by_its_text_or_by_name_and_no_id_comes_twice(
    context: ToolContext,
) -> None:
    await write(context, item("a"), item("b"))
    await write(context, item("b"), item("new"), item("a changed", id="1"))
    assert ids(context) == ["2", "3", "1"]
    await write(context, item("b", id="x"), item("c", id="x"), item("b"), item("b"))
    assert len(set(ids(context))) == 4
    assert ids(context)[0] == "x"


async def test_an_id_that_another_item_names_is_not_taken_for_a_like_text(context: ToolContext) -> None:
    await write(context, item("a"))
    await write(context, item("a"), item("other", id="1"))
    assert ids(context) == ["2", "1"]


@pytest.mark.parametrize(
    ("items", "is_good"),
    [
        ([], True),
        ([item("a")], True),
        ([item(" ")], False),
        ([item("a", "done")], False),
        ([item("a", id="no id")], False),
        ([{"text": "a"}], False),
        ([item("a", extra="x")], False),
        ([item("a")] * 101, False),
    ],
)
def test_the_schema_takes_whole_items_only(items: list[Any], is_good: bool) -> None:
    assert jsonschema_rs.is_valid(TodoWrite.parameters, {"items": items}) is is_good


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({"items": [item("a", "completed"), item("b")]}, "To-do list (1/2)"),
        ({"items": []}, "To-do list"),
        ({"items": 7}, "To-do list"),
        ({"items": [7]}, "To-do list"),
        ({}, "To-do list"),
    ],
)
def test_the_title_counts_what_is_done_whatever_came(
    context: ToolContext, arguments: dict[str, Any], title: str
) -> None:
    assert TodoWrite().describe(arguments, context).title == title
