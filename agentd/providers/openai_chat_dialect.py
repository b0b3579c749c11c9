"""How servers of OpenAI's chat completions differ, as plain data.

The defaults suit a server that nothing is known of: only fields that all of them take, in their oldest form.
"""

from dataclasses import dataclass
from typing import Literal

CallIdRule = Literal["any", "64", "40", "nine"]
EffortForm = Literal[
    "reasoning_effort", "reasoning", "thinking", "thinking_effort", "enable_thinking", "chat_template_kwargs",
    "none",
]  # fmt: skip


@dataclass(frozen=True)
class ChatDialect:
    """What a server that speaks this API takes."""

    auth: Literal["bearer", "api-key"] = "bearer"
    """The header of the key: `Authorization: Bearer`, or `api-key` (Azure)."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens", "none"] = "max_tokens"
    """The field of the output limit. OpenAI's own reasoning models refuse `max_tokens`."""
    system_role: Literal["system", "developer"] = "system"
    """The role of the system prompt for models that reason; for others it is always `system`."""
    empty_content: Literal["null", "text"] = "null"
    """The content of an answer of calls alone: null, or "" where null is refused."""
    stream: bool = True
    """Have the answer streamed. A server that refuses that, or only with tools, is asked again for all at
    once; the wait for its first byte is then the wait for its answer."""
    stream_options: bool = True
    """Ask for usage. A server that refuses that is asked again without it."""
    strict_tools: bool = False
    """Have the server hold the model to a tool's schema, where strict mode takes that schema."""
    parallel_tool_calls: bool | None = None
    """Allow or forbid several calls in one answer; None leaves that to the server."""
    call_ids: CallIdRule = "any"
    """What ids of tool calls may be: at most 64 characters (OpenAI) or 40 (gateways with its older rule), or
    nine letters and digits (Mistral)."""
    user_after_tool: bool = True
    """Whether a user message may follow a tool's result; else a short answer is put between (Mistral)."""
    reasoning_replay: Literal["as_received", "required", "never"] = "as_received"
    """Whether reasoning, and what else came with calls, goes back to the model that it came from, under the
    name that it came in.
    `required`: every answer with calls has `reasoning_content`, be it a blank (DeepSeek, Kimi)."""
    sign_calls: bool = False
    """Sign the calls that a model has not made itself with the word that Gemini takes for that."""
    effort_form: EffortForm = "reasoning_effort"
    """How an effort is asked for: as `reasoning_effort`; `reasoning: {effort}` (OpenRouter);
    `thinking: {type}` alone (GLM, Kimi) or with `reasoning_effort` (DeepSeek); `enable_thinking`, by itself
    or in `chat_template_kwargs` (Qwen); or not at all."""
    images: bool = True
    """Whether any model of this server takes images."""
    cache_markers: bool = False
    """Mark what Claude may keep in its cache, for gateways that hand the marks on (OpenRouter)."""
    prompt_cache_key: bool = False
    """Name the conversation, so that its requests meet the same cache."""
    cuts_prompts: bool = False
    """Whether the server leaves out the beginning of a prompt that is too long, without a word (Ollama)."""


PLAIN = ChatDialect()
"""The dialect that every server understands."""
