"""The providers that are always there, as data: where they are, what holds their keys, what they speak.

A base URL or a key comes from the first of the variables that is set. Sources: the providers' own API
references and SDKs, which also name the variables.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class BuiltIn:
    """A provider that needs no configuration.

    `base_url` is None where each customer has an own. `needs_key` holds at that address only: what speaks the
    same API elsewhere may want none. `elsewhere` is the API of such a server, where it is likely to be
    another. `asks_limit`: without a limit in the request this server would cut answers early.
    """

    api: str
    base_url: str | None
    keys: tuple[str, ...]
    base_urls: tuple[str, ...] = ()
    dialect: Mapping[str, Any] = field(default_factory=dict)
    usual_path: str = "/v1"
    needs_key: bool = True
    is_local: bool = False
    asks_limit: bool = False
    elsewhere: str | None = None


def _local(port: int, key: str, *base_urls: str, **dialect: Any) -> BuiltIn:
    return BuiltIn(
        "openai-chat", f"http://127.0.0.1:{port}/v1", (key,), base_urls, dialect,
        needs_key=False, is_local=True,
    )  # fmt: skip


BUILT_IN: Mapping[str, BuiltIn] = {
    "openai": BuiltIn(
        "openai-responses",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        elsewhere="openai-chat",
    ),
    "anthropic": BuiltIn(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
        usual_path="",
        asks_limit=True,
    ),
    "google": BuiltIn(
        "gemini",
        "https://generativelanguage.googleapis.com",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("GOOGLE_GEMINI_BASE_URL",),
        usual_path="",
    ),
    "openrouter": BuiltIn(
        "openai-chat",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        ("OPENROUTER_BASE_URL",),
        {"max_tokens_field": "max_completion_tokens", "effort_form": "reasoning", "cache_markers": True},
        usual_path="/api/v1",
    ),
    "deepseek": BuiltIn(
        "openai-chat",
        "https://api.deepseek.com/v1",
        ("DEEPSEEK_API_KEY",),
        ("DEEPSEEK_BASE_URL",),
        {"reasoning_replay": "required", "effort_form": "thinking_effort"},
        asks_limit=True,
    ),
    "mistral": BuiltIn(
        "openai-chat",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        ("MISTRAL_BASE_URL",),
        {
            "call_ids": "nine",
            "user_after_tool": False,
            "stream_options": False,
            "reasoning_replay": "never",
        },
    ),
    "groq": BuiltIn(
        "openai-chat",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        ("GROQ_BASE_URL",),
        {"max_tokens_field": "max_completion_tokens"},
        usual_path="/openai/v1",
    ),
    "xai": BuiltIn(
        "openai-chat",
        "https://api.x.ai/v1",
        ("XAI_API_KEY",),
        ("XAI_BASE_URL",),
        {"max_tokens_field": "max_completion_tokens"},
    ),
    "together": BuiltIn(
        "openai-chat",
        "https://api.together.xyz/v1",
        ("TOGETHER_API_KEY",),
        ("TOGETHER_BASE_URL",),
        asks_limit=True,
    ),
    "fireworks": BuiltIn(
        "openai-chat",
        "https://api.fireworks.ai/inference/v1",
        ("FIREWORKS_API_KEY",),
        ("FIREWORKS_BASE_URL",),
        usual_path="/inference/v1",
        asks_limit=True,
    ),
    "cerebras": BuiltIn(
        "openai-chat",
        "https://api.cerebras.ai/v1",
        ("CEREBRAS_API_KEY",),
        ("CEREBRAS_BASE_URL",),
        {"max_tokens_field": "max_completion_tokens"},
    ),
    "moonshot": BuiltIn(
        "openai-chat",
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY",),
        ("MOONSHOT_BASE_URL",),
        asks_limit=True,
    ),
    "zai": BuiltIn(
        "openai-chat",
        "https://api.z.ai/api/paas/v4",
        ("ZAI_API_KEY", "Z_AI_API_KEY"),
        ("ZAI_BASE_URL",),
        {"effort_form": "thinking"},
        usual_path="/api/paas/v4",
    ),
    "azure": BuiltIn(
        "openai-responses",
        None,
        ("AZURE_OPENAI_API_KEY",),
        ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_BASE_URL"),
        usual_path="/openai/v1",
    ),
    "vercel": BuiltIn(
        "openai-chat",
        "https://ai-gateway.vercel.sh/v1",
        ("AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
        ("AI_GATEWAY_BASE_URL",),
    ),
    "huggingface": BuiltIn(
        "openai-chat",
        "https://router.huggingface.co/v1",
        ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
        ("HUGGINGFACE_BASE_URL",),
    ),
    "github": BuiltIn(
        "openai-chat",
        "https://models.github.ai/inference",
        ("GITHUB_TOKEN",),
        ("GITHUB_MODELS_BASE_URL",),
        usual_path="/inference",
    ),
    "ollama": _local(11434, "OLLAMA_API_KEY", "OLLAMA_BASE_URL", "OLLAMA_HOST", cuts_prompts=True),
    "lmstudio": _local(1234, "LM_API_TOKEN", "LMSTUDIO_BASE_URL", cuts_prompts=True, empty_content="text"),
    "llamacpp": _local(8080, "LLAMA_API_KEY", "LLAMACPP_BASE_URL"),
    "vllm": _local(
        8000, "VLLM_API_KEY", "VLLM_BASE_URL", max_tokens_field="max_completion_tokens"
    ),
    "litellm": _local(
        4000, "LITELLM_PROXY_API_KEY", "LITELLM_PROXY_API_BASE", "LITELLM_BASE_URL"
    ),
}  # fmt: skip
"""The built-in providers by name."""
