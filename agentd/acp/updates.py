"""The updates of a session, as plain data: what `session/update` and questions hold. No state."""

from collections.abc import Sequence
from typing import Any, Literal

from agentd.acp.content import text_block
from agentd.acp.diffs import diff_blocks, path_in
from agentd.protocol.events import ToolExecutionStart
from agentd.protocol.messages import (
    CommandSubject,
    EditDetails,
    EditSubject,
    FetchSubject,
    ImageContent,
    Location,
    PermissionRequest,
    ReadSubject,
    TextContent,
    TodoItem,
    ToolKind,
    ToolResultMessage,
    Usage,
)
from agentd.protocol.methods import CommandInfo
from agentd.protocol.text import visible
from agentd.sessions.export import fenced

Json = dict[str, Any]
Chunk = Literal["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]
Status = Literal["pending", "in_progress", "completed", "failed"]


def chunk(kind: Chunk, block: Json, message_id: str | None = None) -> Json:
    """A piece of a message."""
    update: Json = {"sessionUpdate": kind, "content": block}
    return update if message_id is None else {**update, "messageId": message_id}


def thought(text: str) -> Json:
    """A word of agentd's own, which is no part of the answer."""
    return chunk("agent_thought_chunk", text_block(f"{visible(text)}\n"))


# --- tool calls -----------------------------------------------------------------------------------


def announced(call_id: str, name: str, kind: ToolKind) -> Json:
    """A call that the model is still writing."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call_id,
        "title": name or "(no name)",
        "kind": kind,
        "status": "pending",
    }


def started(start: ToolExecutionStart, status: Status = "in_progress", *, is_known: bool = False) -> Json:
    """A call that is taken up."""
    return {
        "sessionUpdate": "tool_call_update" if is_known else "tool_call",
        "toolCallId": start.tool_call_id,
        "title": visible(start.title),
        "kind": start.kind,
        "status": status,
        "locations": [_location(each) for each in start.locations],
        "rawInput": start.arguments,
    }


def progressed(call_id: str, status: Status) -> Json:
    """How far a call is."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status}


def said(call_id: str, output: str) -> Json:
    """What a running call has said, or the end of it."""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "content": [_text(fenced(visible(output), ""))],
    }


def ended(result: ToolResultMessage) -> Json:
    """A call that has its result: a change as the difference it made, all else as it was said."""
    raw: Json = {"isError": result.is_error}
    if result.details is not None and not isinstance(result.details, EditDetails):
        raw["details"] = result.details.model_dump(mode="json", by_alias=True)
    return {
        **progressed(result.tool_call_id, "failed" if result.is_error else "completed"),
        "content": _result_content(result),
        "rawOutput": raw,
    }


def _result_content(result: ToolResultMessage) -> list[Json]:
    if isinstance(result.details, EditDetails) and not result.is_error:
        files = result.details.files
        blocks = [block for file in files for block in diff_blocks(file.uri, file.patch, file.action)]
        if blocks:
            return blocks
    content = []
    for block in result.content:
        if isinstance(block, ImageContent):
            image = {"type": "image", "mimeType": block.mime_type, "data": block.data}
            content.append({"type": "content", "content": image})
        elif isinstance(block, TextContent) and block.text:
            content.append(_text(fenced(visible(block.text), "")))
    return content


def _text(text: str) -> Json:
    return {"type": "content", "content": text_block(text)}


def _location(place: Location) -> Json:
    """A place; ACP counts lines from 1."""
    path = {"path": path_in(place.uri)}
    return path if place.line is None else {**path, "line": place.line + 1}


# --- questions ------------------------------------------------------------------------------------


def asked(question: PermissionRequest, call_id: str) -> Json:
    """The call that a question is about, whole: one that hides the end of a command is no question."""
    return {
        "toolCallId": call_id,
        "title": visible(question.title),
        "kind": question.kind,
        "status": "pending",
        "content": _subject_content(question),
        "locations": _subject_locations(question),
    }


def options(question: PermissionRequest) -> list[Json]:
    """The answers to it; what one for good would cover is said with it."""
    return [
        {
            "optionId": each.option_id,
            "name": visible(each.label if each.rule is None else f"{each.label}: {each.rule}"),
            "kind": each.kind,
        }
        for each in question.options
    ]


def _subject_content(question: PermissionRequest) -> list[Json]:
    match question.subject:
        case EditSubject() as edit:
            return diff_blocks(edit.uri, edit.patch)
        case CommandSubject() as run:
            told = f"In {run.cwd}:\n{fenced(visible(run.command), 'sh')}"
            if run.reason is not None:
                told += f"\nIt would run outside the sandbox. The model gives this reason: {run.reason}"
            return [_text(visible(told))]
        case ReadSubject() as read:
            return [_text(visible(f"{path_in(read.uri)} may hold secrets."))]
        case FetchSubject() as fetch:
            return [_text(visible(fetch.url))]
    return []


def _subject_locations(question: PermissionRequest) -> list[Json]:
    subject = question.subject
    return [{"path": path_in(subject.uri)}] if isinstance(subject, EditSubject | ReadSubject) else []


# --- the session ----------------------------------------------------------------------------------


def plan(items: Sequence[TodoItem]) -> Json:
    """The to-do list; all of it is as important."""
    entries = [{"content": each.text, "priority": "medium", "status": each.status} for each in items]
    return {"sessionUpdate": "plan", "entries": entries}


def commands(infos: Sequence[CommandInfo]) -> Json:
    """The commands that there are."""
    available = [
        {
            "name": each.name,
            "description": each.description,
            "input": {"hint": each.argument_hint} if each.argument_hint else None,
        }
        for each in infos
    ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": available}


def mode(mode_id: str) -> Json:
    """The mode that holds from now on."""
    return {"sessionUpdate": "current_mode_update", "currentModeId": mode_id}


def config_options(choices: Sequence[Json]) -> Json:
    """All options, as they are now."""
    return {"sessionUpdate": "config_option_update", "configOptions": list(choices)}


def session_info(title: str, updated_at: str) -> Json:
    """What the session is called, and when something happened in it last."""
    return {"sessionUpdate": "session_info_update", "title": title or None, "updatedAt": updated_at}


def usage(last: Usage | None, whole: Usage | None) -> Json | None:
    """How full the context is, and what the session has cost; None where the window is not known."""
    if last is None or last.context_window is None:
        return None
    update: Json = {
        "sessionUpdate": "usage_update", "used": last.context_tokens, "size": last.context_window
    }  # fmt: skip
    if whole is not None and whole.cost is not None:
        update["cost"] = {"amount": whole.cost.total, "currency": whole.cost.currency}
    return update
