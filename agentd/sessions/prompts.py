"""What a prompt says: its blocks, what can be wrong with them, its identity, and the title of its session."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic_core import to_json

from agentd.agent.commands import BUILT_IN
from agentd.agent.memory import is_aside
from agentd.agent.request import project
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import (
    AssistantMessage,
    CommandContent,
    ContentBlock,
    Message,
    ResourceContent,
    TextContent,
)
from agentd.protocol.text import one_line
from agentd.workspace.paths import OutsideWorkspace, WorkspaceError, path_of, resolve
from agentd.workspace.untitled import is_untitled

MAX_REFERENCES = 1000
"""Files that one prompt refers to: each is looked for before the prompt is taken, while all else waits."""

_TITLE_LENGTH = 72
_GIVEN_LENGTH = 200
"""A title stands in each list, and behind each run in the journal."""
_LINE_LENGTH = 1000
"""A title needs no more of a line, and marks are sought over and over."""
_LINE_START = re.compile(r"^(?:[#>*+\-\s]+|\d+[.)]\s+)+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"(\*\*|__|\*|`+|~~)(?=\S)(.+?)(?<=\S)\1")


def blocks_of(prompt: str | Sequence[ContentBlock]) -> tuple[ContentBlock, ...]:
    """A prompt's content. Raises `RpcError` invalidParams for one that says nothing."""
    if isinstance(prompt, str):
        return (TextContent(text=prompt),)
    if prompt and all(isinstance(block, TextContent) and not block.text.strip() for block in prompt):
        raise RpcError("invalidParams", "/prompt: a prompt must not be blank")
    return tuple(prompt)


def digest_of(blocks: Sequence[ContentBlock]) -> str:
    """The identity of a prompt: it tells a repeated prompt from another one under the same id."""
    return hashlib.sha256(to_json(tuple(blocks))).hexdigest()


def check_blocks(blocks: Sequence[ContentBlock], root: Path) -> None:
    """Raise `RpcError` for a prompt that refers to what may not be read, or whose workspace is gone."""
    if not root.is_dir():
        raise RpcError(
            "outsideWorkspace",
            f'The workspace folder "{root}" of this session does not exist any more.',
            hint="Put the folder back, or start a new session in its new place.",
        )
    places = [number for number, block in enumerate(blocks) if isinstance(block, ResourceContent)]
    if len(places) > MAX_REFERENCES:
        raise RpcError(
            "invalidParams",
            f"/prompt/{places[MAX_REFERENCES]}: a prompt refers to at most {MAX_REFERENCES} files",
            hint="Refer to the folder in which they are.",
        )
    for number in places:
        block = blocks[number]
        if isinstance(block, ResourceContent) and block.text is None:
            _check_place(block.uri, root, f"/prompt/{number}/uri")


def _check_place(uri: str, root: Path, where: str) -> None:
    """Raise `RpcError` for a URI that names no file of the workspace. What it names need not be there."""
    if is_untitled(uri):
        return
    try:
        resolve(root, str(path_of(uri)))
    except OutsideWorkspace as error:
        hint = "Send its text along (`text`), or refer to a file of the workspace folder."
        raise RpcError("outsideWorkspace", f"{where}: {error}", hint=hint) from error
    except WorkspaceError as error:
        raise RpcError("invalidParams", f"{where}: {error}") from error


def built_in(blocks: Sequence[ContentBlock]) -> CommandContent | None:
    """The built-in command that a prompt is, and nothing else; None where it is something else."""
    said = [block for block in blocks if not isinstance(block, TextContent) or block.text.strip()]
    only = said[0] if len(said) == 1 else None
    return only if isinstance(only, CommandContent) and only.name in BUILT_IN else None


def check_going_on(messages: Sequence[Message]) -> None:
    """Raise `RpcError` invalidParams where an empty prompt has nothing to go on from."""
    if not project(messages):
        raise RpcError("invalidParams", "/prompt: there are no messages to go on from")
    answers = [m for m in messages if isinstance(m, AssistantMessage) and not is_aside(m)]
    if answers and answers[-1].stop_reason == "stop":
        raise RpcError(
            "invalidParams", "/prompt: the last answer is complete: there is nothing to go on from"
        )


def title_of_blocks(blocks: Sequence[ContentBlock]) -> str:
    """A title from the first line of a prompt that has words, without the marks of Markdown."""
    lines = [line for block in blocks for line in _text_of(block).splitlines()]
    plain = (_plain(line) for line in lines if not _is_fence(line))
    title = next((line for line in plain if any(map(str.isalnum, line))), None)
    if title is None:  # nothing but marks
        title = next((shown for line in lines if (shown := one_line(line[:_LINE_LENGTH]))), "")
    return _cut(title, _TITLE_LENGTH)


def title_of_text(text: str) -> str:
    """A title that a client gives: as it is, but one line that shows what it holds, and not endless."""
    return _cut(one_line(text[:_LINE_LENGTH]), _GIVEN_LENGTH)


def _cut(title: str, length: int) -> str:
    return title if len(title) <= length else title[: length - 1].rstrip() + "…"


def _text_of(block: ContentBlock) -> str:
    if isinstance(block, CommandContent):
        return f"/{block.name} {block.arguments}"
    return block.text if isinstance(block, TextContent) else ""


def _is_fence(line: str) -> bool:
    return line.lstrip().startswith(("```", "~~~"))


def _plain(line: str) -> str:
    """A line without marks of headings, quotes, lists, emphasis, code and links."""
    line = _LINK.sub(r"\1", line[:_LINE_LENGTH])
    for _ in range(2):  # code inside emphasis
        line = _EMPHASIS.sub(r"\2", line)
    return one_line(_LINE_START.sub("", line))
