"""Where the user looks, in one line for the model: it reads what it needs of that with its tools."""

from pathlib import Path

from agentd.protocol.messages import TextContent
from agentd.workspace.editor import Focus
from agentd.workspace.paths import shown
from agentd.workspace.secrets import is_secret

_MOST_NAME = 300


def focus_note(focus: Focus | None, root: Path) -> tuple[TextContent, ...]:
    """The line, as a block behind the user's own; none for files elsewhere and files that hold secrets."""
    if focus is None:
        return ()
    name = focus.uri
    if focus.path is not None:
        if not focus.path.is_relative_to(root) or is_secret(focus.path.relative_to(root).parts):
            return ()
        name = focus.path.relative_to(root).as_posix()
    parts = [f"[In the editor the user looks at {shown(name)[:_MOST_NAME]}"]
    if focus.visible is not None:
        parts.append(f"{_lines(focus.visible)} can be seen")
    if focus.selected is not None:
        parts.append(f"{_lines(focus.selected)} selected")
    if focus.cursor is not None:
        parts.append(f"the cursor is in line {focus.cursor + 1}")
    return (TextContent(text="; ".join(parts) + "]"),)


def _lines(lines: tuple[int, int]) -> str:
    first, last = lines[0] + 1, lines[1] + 1
    return f"line {first}" if first == last else f"lines {first}-{last}"
