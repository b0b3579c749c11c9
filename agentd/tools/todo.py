"""`todo_write` and `todo_read`: the plan of a longer piece of work, which the user watches."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from agentd.protocol.messages import TodoItem, ToolKind
from agentd.tools.base import Action, Description, ToolContext, ToolResult

_MAX_ITEMS = 100
_MAX_TEXT = 500
_ID = "^[A-Za-z0-9_.:~-]{1,128}$"  # `protocol.wire.Id`
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class TodoWrite:
    """Replaces the to-do list of the session."""

    name = "todo_write"
    description = (
        "Write the to-do list of this session, whole: it replaces the one before. Use it for work of three "
        "or more steps, and keep it true: one item in_progress at a time, completed as soon as it is done. "
        "The user sees it."
    )
    kind: ToolKind = "think"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "maxItems": _MAX_ITEMS,
                "description": "All items in their order. None clears the list.",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {
                            "type": "string",
                            "pattern": _ID,
                            "description": "The item's id; leave it out for a new one.",
                        },
                        "text": {"type": "string", "pattern": "\\S", "maxLength": _MAX_TEXT},
                        "status": {"type": "string", "enum": list(_MARKS)},
                    },
                    "required": ["text", "status"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["items"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`To-do list (1/3)`."""
        given = arguments.get("items")
        items = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
        done = sum(item.get("status") == "completed" for item in items)
        return Description(f"To-do list ({done}/{len(items)})" if items else "To-do list")

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Gives each item its id."""
        return Action(partial(_write, _identified(arguments["items"], context.todo.items), context))


class TodoRead:
    """Tells the to-do list of the session."""

    name = "todo_read"
    description = "Read the to-do list of this session, with the ids of its items."
    kind: ToolKind = "think"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Read the to-do list`."""
        return Description("Read the to-do list")

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Nothing to look for."""

        async def run() -> ToolResult:
            return ToolResult.text(_told(context.todo.items))

        return Action(run)


async def _write(items: tuple[TodoItem, ...], context: ToolContext) -> ToolResult:
    if items != context.todo.items:
        await context.todo.replace(items)
    return ToolResult.text(_told(items))


def _identified(given: Sequence[Mapping[str, Any]], before: Sequence[TodoItem]) -> tuple[TodoItem, ...]:
    """Items with ids: their own, else that of the item with the same text, else a new one; no id twice."""
    known = {item.text: item.id for item in before}
    taken = {entry["id"] for entry in given if entry.get("id") is not None}
    used: set[str] = set()
    items = []
    for entry in given:
        own = entry.get("id")
        wanted = own if own is not None else known.get(entry["text"])
        if wanted is None or wanted in used or (own is None and wanted in taken):
            wanted = _new_id(taken | used | set(known.values()))
        used.add(wanted)
        items.append(TodoItem(id=wanted, text=entry["text"], status=entry["status"]))
    return tuple(items)


def _new_id(taken: set[str]) -> str:
    number = 1
    while str(number) in taken:
        number += 1
    return str(number)


def _told(items: Sequence[TodoItem]) -> str:
    if not items:
        return "The to-do list is empty."
    done = sum(item.status == "completed" for item in items)
    lines = [f"{_MARKS[item.status]} {item.id}: {' '.join(item.text.split())}" for item in items]
    return "\n".join([f"To-do list, {done} of {len(items)} done:", *lines])
