"""Tool calls that a model wrote into its text, where its server did not read them as calls.

Servers that do not know a model's template, or were started without its parser, pass on what the model wrote.
Nothing in a text is ever run: whoever can put words into a model's mouth could run tools. But a user who sees
`<tool_call>{"name": …}` and nothing happening needs to know why.
"""

import json
import re
from collections.abc import Collection

# The marks of Qwen and Hermes, Mistral, Llama, DeepSeek, GLM and Functionary.
_MARK = re.compile(
    r"<\|?tool_calls?(?:_begin)?\|?>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=|<\uff5ctool\u2581calls?\u2581begin"
)
_LONGEST = 20_000
"""Characters of a text that are looked at: a call that is all of an answer is short."""


def names_unread_call(text: str, tools: Collection[str]) -> bool:
    """Whether a text holds a call of one of these tools in a form that servers should have read."""
    text = text[:_LONGEST].strip()
    if mark := _MARK.search(text):
        said = text[mark.start() :]
        return any(re.search(rf"\b{re.escape(name)}\b", said) for name in tools)
    if not text.startswith(("{", "[")):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    first = value[0] if isinstance(value, list) and value else value
    is_call = isinstance(first, dict) and ("arguments" in first or "parameters" in first)
    return is_call and first.get("name") in tools


def unread_call_notice(model: str) -> str:
    """What to tell the user of it."""
    return (
        f"{model} wrote a tool call into its text, where its server did not read it, and so it was not run. "
        "Have the server read the model's calls (vLLM: --enable-auto-tool-choice and --tool-call-parser; "
        "llama.cpp: --jinja; Ollama: a model that it lists with tools), or choose another model."
    )
