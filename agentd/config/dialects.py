"""The wire APIs that a provider may speak, and the flags that say how a server's dialect of one differs.

What a flag means stands with the dialect's own class in `agentd/providers`, whose fields these are.
"""

from collections.abc import Mapping

Kind = type | tuple[str, ...]
"""What a flag takes: true or false, a string, a whole number, a number, an array of strings (`list`), or one
of these strings."""

FLAGS: Mapping[str, Mapping[str, Kind]] = {
    "openai-chat": {
        "auth": ("bearer", "api-key"),
        "max_tokens_field": ("max_tokens", "max_completion_tokens", "none"),
        "system_role": ("system", "developer"),
        "empty_content": ("null", "text"),
        "stream": bool,
        "stream_options": bool,
        "strict_tools": bool,
        "parallel_tool_calls": bool,
        "call_ids": ("any", "64", "40", "nine"),
        "user_after_tool": bool,
        "reasoning_replay": ("as_received", "required", "never"),
        "sign_calls": bool,
        "effort_form": (
            "reasoning_effort", "reasoning", "thinking", "thinking_effort", "enable_thinking",
            "chat_template_kwargs", "none",
        ),
        "images": bool,
        "cache_markers": bool,
        "prompt_cache_key": bool,
        "cuts_prompts": bool,
    },
    "openai-responses": {
        "reasoning": bool,
        "encrypted_reasoning": bool,
        "reasoning_summary": bool,
        "replay_reasoning": bool,
        "prompt_cache_key": bool,
        "output_limit": bool,
        "strict": bool,
        "bare_items": bool,
        "item_ids": bool,
        "adjacent_calls": bool,
        "cuts_prompts": bool,
    },
    "anthropic": {
        "auth": ("x-api-key", "bearer"),
        "version": str,
        "betas": list,
        "cache_markers": int,
        "thinking": ("adaptive", "budget", "none"),
        "unsigned_thinking": bool,
        "binding_controls": bool,
        "cuts_prompts": bool,
    },
    "gemini": {
        "auth": ("x-goog-api-key", "bearer"),
        "path": str,
        "version": str,
        "schemas": ("json", "subset"),
        "generation": float,
    },
}  # fmt: skip

OF_THE_SERVER = ("cuts_prompts",)
"""Flags that say something of a server, whichever of its APIs is spoken."""

APIS = tuple(FLAGS)
"""The wire APIs that a provider may speak."""

TIMEOUTS = ("connect", "first_byte", "idle")
"""The waits that can be set for a provider: for a connection, for the head of an answer, and between
bytes."""
