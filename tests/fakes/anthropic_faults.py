"""What Anthropic's server refuses in a request, in its own words where they are known."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fakes.image_faults import anthropic_faults

FIELDS = {"model", "max_tokens", "stream", "messages", "system", "tools", "thinking", "output_config"}
TEXT, IMAGE, RESULT = "text", "image", "tool_result"
BLOCK_FIELDS = {
    TEXT: {"type", "text", "cache_control", "citations"},
    IMAGE: {"type", "source", "cache_control"},
    RESULT: {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}
MEDIA_TYPES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
NAME, ID = re.compile(r"[A-Za-z0-9_-]{1,128}"), re.compile(r"[A-Za-z0-9_-]+")


def sign(model: str, thinking: str) -> str:
    """The signature of a model's thinking."""
    return base64.b64encode(hashlib.sha256(f"{model}\0{thinking}".encode()).digest()).decode()


def request_fault(headers: Mapping[str, str], body: Any) -> str | None:
    """The first thing that the real server would refuse in a request, or None."""
    if "anthropic-version" not in headers:
        return "anthropic-version: header is required"
    if not isinstance(body, dict) or body.get("stream") is not True or not body.get("model"):
        return "the body is no streamed request for a model"
    if unknown := sorted(set(body) - FIELDS):
        return f"{unknown[0]}: Extra inputs are not permitted"
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        return "max_tokens: Field required"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    faults = (
        *_beta_faults(headers, body),
        *_thinking_faults(body),
        *_tool_faults(body),
        *_marker_faults(body),
        *_system_faults(body),
        *_message_faults(messages),
        *_pairing_faults(messages),
        *_thought_faults(body),
        *anthropic_faults(messages),
    )
    return faults[0] if faults else None


def _beta_faults(headers: Mapping[str, str], body: Mapping[str, Any]) -> Iterator[str]:
    known = "thinking-binding-controls-2026-08-01" in headers.get("anthropic-beta", "").split(",")
    if "block_binding" in body.get("thinking", {}) and not known:
        yield "thinking.adaptive.block_binding: Extra inputs are not permitted"


def _thinking_faults(body: Mapping[str, Any]) -> Iterator[str]:
    thinking, model = body.get("thinking"), body["model"]
    if thinking is None:
        return
    new = re.search(r"claude-(opus-4-[6-9]|sonnet-4-6|opus-5|sonnet-5|fable-5|mythos-5)", model)
    if thinking["type"] == "enabled":
        if new and new[1] not in ("opus-4-6", "sonnet-4-6"):
            yield "thinking.enabled: is not supported for this model. Use thinking.type.adaptive"
        if not 1024 <= thinking.get("budget_tokens", 0) < body["max_tokens"]:
            yield "thinking.budget_tokens: at least 1024 and less than max_tokens"
    elif thinking["type"] == "adaptive" and model.startswith("claude") and not new:
        yield "adaptive thinking is not supported on this model"
    effort = body.get("output_config", {}).get("effort")
    if effort not in (None, "low", "medium", "high", "xhigh", "max"):
        yield f"output_config.effort: {effort}"
    if effort == "xhigh" and new and new[1] in ("opus-4-6", "sonnet-4-6"):
        yield "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium."


def _tool_faults(body: Mapping[str, Any]) -> Iterator[str]:
    if body.get("tools") == []:
        yield "tools: is empty"
    names = [tool.get("name") for tool in body.get("tools", ())]
    if len(names) != len(set(names)):
        yield "tools: Tool names must be unique."
    for number, tool in enumerate(body.get("tools", ())):
        where = f"tools.{number}"
        if not NAME.fullmatch(str(tool.get("name"))):
            yield f"{where}.name: should match '^[a-zA-Z0-9_-]{{1,128}}$'"
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"{where}.input_schema.type: Field required"
        elif any(word in schema for word in ("oneOf", "anyOf", "allOf")):
            yield f"{where}.input_schema: does not support oneOf, allOf, or anyOf at the top level"
        if extra := set(tool) - {"name", "description", "input_schema", "cache_control"}:
            yield f"{where}: Extra inputs are not permitted: {sorted(extra)[0]}"


def _marker_faults(body: Mapping[str, Any]) -> Iterator[str]:
    found = list(_markers(body))
    if len(found) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(found)}."
    for holder in found:
        if holder.get("type") in ("thinking", "redacted_thinking"):
            yield "cache_control: not on thinking"


def _markers(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        if "cache_control" in value:
            yield value
        for item in value.values():
            yield from _markers(item)
    elif isinstance(value, list):
        for item in value:
            yield from _markers(item)


def _system_faults(body: Mapping[str, Any]) -> Iterator[str]:
    system = body.get("system", "")
    if system == []:
        yield "system: is empty"
    for block in system if isinstance(system, list) else ():
        yield from _block_faults("system", block, (TEXT,))


def _message_faults(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    roles = [message.get("role") for message in messages]
    if roles[0] != "user":
        yield "messages: first message must use the user role"
    if roles[-1] == "assistant":
        yield "This model does not support assistant message prefill. The conversation must end with a user."
    for number, (role, message) in enumerate(zip(roles, messages, strict=True)):
        where, content = f"messages.{number}", message.get("content")
        if role not in ("user", "assistant"):
            yield f"{where}: unexpected role {role}"
        if number and role == roles[number - 1]:
            yield f"{where}: roles must alternate"
        if not isinstance(content, list) or not content:
            yield f"{where}: all messages must have non-empty content"
            continue
        allowed = (TEXT, IMAGE, RESULT) if role == "user" else None
        for index, block in enumerate(content):
            yield from _block_faults(f"{where}.content.{index}", block, allowed)


def _block_faults(where: str, block: Mapping[str, Any], allowed: Sequence[str] | None) -> Iterator[str]:
    kind = block.get("type", "")
    if allowed is not None and kind not in allowed:
        yield f"{where}: unexpected block {kind}"
    if kind in BLOCK_FIELDS and (extra := set(block) - BLOCK_FIELDS[kind]):
        yield f"{where}.{sorted(extra)[0]}: Extra inputs are not permitted"
    if kind == TEXT and not block["text"]:
        yield f"{where}: text content blocks must be non-empty"
    elif kind == TEXT and not block["text"].strip():
        yield f"{where}: text content blocks must contain non-whitespace text"
    elif kind == IMAGE and block["source"].get("media_type") not in MEDIA_TYPES:
        yield f"{where}.source.media_type: {block['source'].get('media_type')}"
    elif kind == RESULT:
        for index, inner in enumerate(block["content"]):
            yield from _block_faults(f"{where}.content.{index}", inner, (TEXT, IMAGE))
        if block.get("is_error") and any(inner["type"] != TEXT for inner in block["content"]):
            yield f'{where}: all content must be type "text" if "is_error" is true'
    elif kind == "tool_use":
        if not ID.fullmatch(str(block.get("id"))):
            yield f"{where}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if not isinstance(block.get("input"), dict):
            yield f"{where}.input: Input should be a valid dictionary"
        if not NAME.fullmatch(str(block.get("name"))):
            yield f"{where}.name: String should match pattern"


def _pairing_faults(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Results right after their calls, all of them, first in the one user message, in call order."""
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        where, content = f"messages.{number}", message["content"]
        results = [block["tool_use_id"] for block in content if block["type"] == RESULT]
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        if missing := [id for id in waiting if id not in results]:
            yield (
                f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}"
            )
        elif results != waiting:
            yield f"{where}: unexpected, repeated or misplaced `tool_use_id` in `tool_result` blocks"
        if any(block["type"] != RESULT for block in content[: len(results)]):
            yield f"{where}: tool_result blocks must come first"
        if any(block["type"] != "tool_use" for block in content[len(content) - len(calls) :]):
            yield f"{where}: only tool_use may follow tool_use"
        if len(set(calls)) < len(calls) or seen & set(calls):
            yield f"{where}: `tool_use` ids must be unique"
        seen |= set(calls)
        waiting = calls
    if waiting:
        yield "`tool_use` ids were found without `tool_result` blocks immediately after"


def _thought_faults(body: Mapping[str, Any]) -> Iterator[str]:
    answers = [m["content"] for m in body["messages"] if m["role"] == "assistant"]
    for content in answers:
        for block in content:
            if block["type"] == "thinking" and block.get("signature") != sign(
                body["model"], block.get("thinking")
            ):
                yield "Invalid `signature` in `thinking` block"
    last = answers[-1] if answers else []
    thinks = [block["type"] in ("thinking", "redacted_thinking") for block in last]
    budget = (body.get("thinking") or {}).get("type") == "enabled"
    if budget and last and last[-1]["type"] == "tool_use" and not thinks[0]:
        yield "When `thinking` is enabled, a final `assistant` message must start with a thinking block"
    old = re.search(r"claude-(3|sonnet-4-5|sonnet-4-2|opus-4-[1250]|haiku-4-5)", body["model"])
    if old and "thinking" not in body and any(thinks):
        yield "When thinking is disabled, an `assistant` message in the final position cannot contain it"
