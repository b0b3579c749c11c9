"""Scripts of the scripted provider: what the model answers, as Python values."""

from typing import Any

Json = dict[str, Any]


def text(value: str) -> Json:
    """A text block."""
    return {"type": "text", "text": value}


def tool(name: str, arguments: Any = None, call_id: str | None = None) -> Json:
    """A tool call block."""
    block: Json = {"type": "tool_call", "name": name, "arguments": {} if arguments is None else arguments}
    return block if call_id is None else {**block, "id": call_id}


def reply(*blocks: Json | str, **fields: Any) -> Json:
    """One response of the model; a string is a text block."""
    return {"content": [text(block) if isinstance(block, str) else block for block in blocks], **fields}
