"""What a prompt of the command line says: `/name arguments` is a command, `@path` refers to a file.

Only what the user types is read so, here and in ACP. What other clients send as text is text.
"""

import os
from pathlib import Path

from agentd.protocol.messages import (
    ContentBlock,
    Position,
    Range,
    ResourceContent,
    TextContent,
)
from agentd.protocol.typed_command import typed_command
from agentd.workspace.mentions import Mention, mentions
from agentd.workspace.paths import PathError, resolve, uri_of


def read_prompt(prompt: str, folder: str) -> str | tuple[ContentBlock, ...]:
    """The blocks of a prompt; the text itself where it is nothing but text. Paths are those of `folder`.

    The arguments of a command stay text: agentd finds the files in them itself. Raises ValueError for a file
    that is not there, or not in the folder.
    """
    root = Path(os.path.realpath(folder))
    found = mentions(prompt, lambda path: _exists(root, path))
    for mention in found:
        if not mention.exists:
            raise ValueError(_missing(root, folder, mention))
    if (command := typed_command(prompt)) is not None:
        return (command,)
    if not found:
        return prompt
    return (TextContent(text=prompt), *(_resource(root, mention) for mention in found))


def _exists(root: Path, path: str) -> bool:
    try:
        return os.path.exists(resolve(root, path).path)
    except (PathError, OSError):
        return False


def _missing(root: Path, folder: str, mention: Mention) -> str:
    """Why a file that a prompt refers to cannot be shown."""
    escape = r"Write \@ where you do not mean a file."
    if os.path.lexists(root / os.path.expanduser(mention.path)):
        return f"{mention.shown}: it is not in {folder!r}, so it is not shown. {escape}"
    return f"{mention.shown}: there is no such file in {folder!r}. {escape}"


def _resource(root: Path, mention: Mention) -> ResourceContent:
    where = None
    if mention.lines is not None:
        first, last = mention.lines
        where = Range(start=Position(line=first - 1, character=0), end=Position(line=last, character=0))
    return ResourceContent(uri=uri_of(Path(os.path.normpath(root / mention.path))), range=where)
