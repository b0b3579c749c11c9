"""A session as Markdown, for people to read, keep and send on."""

import json
import re
from collections.abc import Iterator, Sequence

from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    ImageContent,
    Message,
    ResourceContent,
    ResultBlock,
    Session,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

_FENCE_LINE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_FENCE = re.compile(r"^\s*(`{3,})", re.MULTILINE)


def markdown(session: Session, messages: Sequence[Message]) -> str:
    """The whole conversation. Tool calls and results stand in code blocks, thoughts in quotes."""
    parts = [f"# {' '.join(session.title.split()) or 'Session'}", "\n".join(_about(session))]
    for message in messages:
        parts += _message(message)
    return "\n\n".join(parts) + "\n"


def _about(session: Session) -> Iterator[str]:
    yield f"* Session: `{session.session_id}`"
    yield f"* Workspace: {session.workspace_uri}"
    yield f"* Model: {session.model or 'none'}"
    yield f"* From {session.created_at} to {session.updated_at}"


def _message(message: Message) -> Iterator[str]:
    if isinstance(message, UserMessage):
        yield "## User"
        yield from map(_said, message.content)
    elif isinstance(message, AssistantMessage):
        yield from _answer(message)
    else:
        yield from _result(message)


def _answer(message: AssistantMessage) -> Iterator[str]:
    yield "## Assistant"
    for block in message.content:
        if isinstance(block, ToolCall):
            arguments = block.raw_arguments or json.dumps(block.arguments, indent=2, ensure_ascii=False)
            yield f"**{block.name}** `{block.id}`"
            yield fenced(arguments, "json")
        elif isinstance(block, ThinkingContent):
            if block.text.strip():
                yield "\n".join(f"> {line}".rstrip() for line in block.text.strip().splitlines())
        elif block.text.strip():
            yield closed(block.text.strip())
    if message.stop_reason in ("error", "aborted", "length", "refusal"):
        why = f": {message.error_message}" if message.error_message else ""
        yield f"*({message.stop_reason}{why})*"


def _result(message: ToolResultMessage) -> Iterator[str]:
    yield f"**{'Error' if message.is_error else 'Result'}** of {message.tool_name} `{message.tool_call_id}`"
    yield from (
        fenced(block.text, "") if isinstance(block, TextContent) else _said(block)
        for block in message.content
    )


def _said(block: ContentBlock | ResultBlock) -> str:
    if isinstance(block, TextContent):
        return closed(block.text.strip())
    if isinstance(block, ImageContent):
        return f"*(an image, {block.mime_type})*"
    if isinstance(block, ResourceContent):
        lines = f" lines {block.range.start.line + 1}-{block.range.end.line + 1}" if block.range else ""
        return f"[{block.uri}{lines}]({block.uri})"
    return f"`/{block.name} {block.arguments}`".rstrip()


def closed(text: str) -> str:
    """Markdown whose last code block has its end, so that what follows is not in it.

    Source: CommonMark, fenced code blocks.
    """
    open_fence = None
    for line in text.splitlines():
        match = _FENCE_LINE.match(line)
        if match is None:
            continue
        fence, rest = match.groups()
        if open_fence is None:
            open_fence = None if fence[0] == "`" and "`" in rest else fence
        elif fence.startswith(open_fence) and not rest.strip():
            open_fence = None
    return text if open_fence is None else f"{text}\n{open_fence}"


def fenced(text: str, language: str) -> str:
    """A code block that its content cannot end."""
    longest = max((len(fence) for fence in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
