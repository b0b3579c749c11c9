"""Content of prompts and messages, from ACP's blocks to agentd's and back."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from agentd.acp.params import AudioBlock, Block, EmbeddedBlock, ImageBlock, LinkBlock, Resource, TextBlock
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import (
    CommandContent,
    ContentBlock,
    ImageContent,
    Position,
    Range,
    ResourceContent,
    TextContent,
)
from agentd.protocol.text import one_line
from agentd.protocol.typed_command import typed_command

_LINES = re.compile(r"L([1-9][0-9]{0,8})(?:[:-]L?([1-9][0-9]{0,8}))?")


def blocks_of(prompt: Sequence[Block]) -> tuple[ContentBlock, ...]:
    """What a prompt says. A first text that is `/name arguments` is a command.

    Raises `RpcError` invalidParams for what says nothing, or cannot be said to a model.
    """
    if not any(not isinstance(block, TextBlock) or block.text.strip() for block in prompt):
        raise RpcError("invalidParams", "/prompt: a prompt must not be blank")
    return tuple(_content(block, number) for number, block in enumerate(prompt))


def _content(block: Block, number: int) -> ContentBlock:
    match block:
        case TextBlock():
            command = typed_command(block.text) if number == 0 else None
            return command or TextContent(text=block.text)
        case ImageBlock():
            return ImageContent(mime_type=block.mime_type, data=block.data)
        case LinkBlock():
            return _linked(block)
        case EmbeddedBlock():
            return _embedded(block.resource)
        case AudioBlock():
            raise RpcError("invalidParams", f"/prompt/{number}: audio is not taken (promptCapabilities)")


def _linked(link: LinkBlock) -> ContentBlock:
    """A file that is looked at as one that a prompt refers to; any other link is what it is, a text."""
    if not _is_file(link.uri):
        return TextContent(text=f"[{one_line(link.name) or 'link'}]({link.uri})")
    uri, _, fragment = link.uri.partition("#")
    return ResourceContent(uri=uri.partition("?")[0], range=_range(fragment))


def _embedded(resource: Resource) -> ContentBlock:
    if resource.text is not None:
        uri, _, fragment = resource.uri.partition("#")
        return ResourceContent(uri=uri, range=_range(fragment), text=resource.text)
    mime_type = resource.mime_type or ""
    if resource.blob is not None and mime_type.startswith("image/"):
        return ImageContent(mime_type=mime_type, data=resource.blob)
    if _is_file(resource.uri):
        return ResourceContent(uri=resource.uri.partition("#")[0])
    return TextContent(text=f"[{resource.uri}: {mime_type or 'binary'} content, which is not shown]")


def _is_file(uri: str) -> bool:
    try:
        return urlsplit(uri).scheme.lower() == "file"
    except ValueError:
        return False


def _range(fragment: str) -> Range | None:
    """The lines that a fragment like `L10` or `L10:20` names, counted from 1 there."""
    lines = _LINES.fullmatch(fragment)
    if lines is None:
        return None
    first = int(lines[1])
    last = max(first, int(lines[2] or first))
    return Range(start=Position(line=first - 1, character=0), end=Position(line=last, character=0))


# --- out ------------------------------------------------------------------------------------------


def text_block(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}


def blocks_out(content: Sequence[ContentBlock]) -> Iterator[dict[str, Any]]:
    """What a message of the user says, as it was typed."""
    for block in content:
        match block:
            case TextContent():
                yield text_block(block.text)
            case ImageContent():
                yield {"type": "image", "mimeType": block.mime_type, "data": block.data}
            case CommandContent():
                yield text_block(f"/{block.name} {block.arguments}".rstrip())
            case ResourceContent(text=str(text)):
                yield {"type": "resource", "resource": {"uri": block.uri, "text": text}}
            case ResourceContent():
                yield {"type": "resource_link", "uri": block.uri, "name": block.uri.rpartition("/")[2]}
