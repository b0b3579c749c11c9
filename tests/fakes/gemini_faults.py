"""What Google's servers refuse in a `generateContent` request, in their own words where they are known."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fakes.image_faults import gemini_faults

SIGNATURE = "thoughtSignature"
UNSIGNED = "skip_thought_signature_validator"
FIELDS = {
    "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings",
    "cachedContent", "labels",
}  # fmt: skip
CONFIG_FIELDS = {"maxOutputTokens", "temperature", "topP", "topK", "stopSequences", "thinkingConfig"}
DATA = {
    "text", "inlineData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult",
    "toolCall", "toolResponse",
}  # fmt: skip
SCHEMA_FIELDS = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties",
    "required", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf",
    "propertyOrdering", "default", "items", "minimum", "maximum",
}  # fmt: skip
TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}
LEVELS = {"MINIMAL", "LOW", "MEDIUM", "HIGH"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
MODEL = re.compile(r"/models/([^/:]+):streamGenerateContent")
PART_COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn."
)
RESPONSE_TURN = (
    "Please ensure that function response turn comes immediately after a function call turn, in its order."
)


def sign(model: str, part: Mapping[str, Any]) -> str:
    """The signature of a part that a model has made: it fits this part of this model and no other.

    A call counts by its id, as its arguments may have been no JSON and its name none to send back.
    """
    bare = {name: value for name, value in part.items() if name != SIGNATURE}
    if call := part.get("functionCall"):
        bare = {"call": call.get("id")}
    text = json.dumps([model, bare], sort_keys=True, ensure_ascii=False)
    return base64.b64encode(hashlib.sha256(text.encode(errors="replace")).digest()).decode()


def model_of(path: str) -> str:
    """The model that a path asks, or nothing."""
    found = MODEL.search(path)
    return found[1] if found else ""


def generation_of(model: str) -> float:
    """3.1 for "gemini-3.1-pro", 0 where there is none."""
    found = re.match(r"gemini-(\d+(?:\.\d+)?)", model)
    return float(found[1]) if found else 0.0


def request_fault(path: str, body: Any) -> str | None:
    """The first thing that the real server would refuse in a request, or None."""
    model = model_of(path)
    for fault in _envelope_faults(path, model, body):
        return fault
    contents = body["contents"]
    faults = (
        *_content_faults(contents, generation_of(model)),
        *gemini_faults(contents),
        *_turn_faults(contents),
        *_signature_faults(contents, model),
        *_tool_faults(body),
        *_config_faults(body.get("generationConfig", {}), generation_of(model)),
        *_system_faults(body.get("systemInstruction")),
    )
    return faults[0] if faults else None


def _envelope_faults(path: str, model: str, body: Any) -> Iterator[str]:
    if not model:
        yield "models/: unexpected model name format"
    if not path.partition("?")[2].startswith("alt=sse"):
        yield "without alt=sse the answer is no stream of events"
    if not isinstance(body, dict):
        yield "Invalid JSON payload received."
        return
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        yield "a lone surrogate"
    if unknown := sorted(set(body) - FIELDS):
        yield f'Invalid JSON payload received. Unknown name "{unknown[0]}": Cannot find field.'
    if not isinstance(body.get("contents"), list) or not body["contents"]:
        yield "contents is not specified"


# --- contents -------------------------------------------------------------------------------------


def _content_faults(contents: Sequence[Mapping[str, Any]], generation: float) -> Iterator[str]:
    for number, content in enumerate(contents):
        at = f"contents[{number}]"
        if content.get("role") not in ("user", "model"):
            yield f"{at}: Please use a valid role: user, model."
        if not content.get("parts"):
            yield f"{at}.parts: must include at least one parts field"
        for index, part in enumerate(content.get("parts") or ()):
            yield from _part_faults(part, content.get("role"), f"{at}.parts[{index}]", generation)
    if contents[0].get("role") != "user":
        yield "contents[0]: the first content is not the user's"
    if contents[-1].get("role") == "model":
        yield "the last content is the model's"


def _part_faults(part: Mapping[str, Any], role: Any, at: str, generation: float) -> Iterator[str]:
    data = set(part) & DATA
    if len(data) != 1 or (part.get("text") == "" and SIGNATURE not in part):
        yield f"{at}.data: required oneof field 'data' must have one initialized field"
    if unknown := sorted(set(part) - DATA - {"thought", SIGNATURE}):
        yield f'{at}: Unknown name "{unknown[0]}": Cannot find field.'
    if "functionCall" in part:
        call = part["functionCall"]
        if role != "model" or not NAME.fullmatch(call.get("name", "")):
            yield f"{at}.function_call.name: Invalid function name"
        if not isinstance(call.get("args", {}), dict) or set(call) - {"name", "args", "id"}:
            yield f"{at}.function_call: Invalid value"
    if "functionResponse" in part:
        yield from _response_faults(part["functionResponse"], role, f"{at}.function_response", generation)
    if "inlineData" in part:
        yield from _blob_faults(part["inlineData"], at)


def _response_faults(response: Mapping[str, Any], role: Any, at: str, generation: float) -> Iterator[str]:
    if role != "user" or not NAME.fullmatch(response.get("name", "")):
        yield f"{at}.name: Name cannot be empty."
    if not isinstance(response.get("response"), dict):
        yield f"{at}.response: Invalid value (Struct)"
    if unknown := sorted(set(response) - {"name", "response", "id", "parts"}):
        yield f'{at}: Unknown name "{unknown[0]}": Cannot find field.'
    if "parts" in response and generation < 3:
        yield f"{at}.parts: Multimodal function response is not supported for this model"
    for part in response.get("parts", ()):
        if set(part) != {"inlineData"}:
            yield f"{at}.parts: only inlineData"
        else:
            yield from _blob_faults(part["inlineData"], at)


def _blob_faults(blob: Mapping[str, Any], at: str) -> Iterator[str]:
    if not str(blob.get("mimeType", "")).startswith("image/"):
        yield f"{at}.inline_data: Unsupported MIME type: {blob.get('mimeType')}"
    try:
        base64.b64decode(blob.get("data") or "!", validate=True)
    except (binascii.Error, ValueError):
        yield f"{at}.inline_data.data: Base64 decoding failed"


def _turn_faults(contents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """After calls, their responses in order and nothing else; nowhere else a response."""
    waiting: list[Mapping[str, Any]] = []
    before = None
    for content in contents:
        calls = _of(content, "functionCall")
        responses = _of(content, "functionResponse")
        if waiting:
            if len(content.get("parts") or ()) != len(waiting) or len(responses) != len(waiting):
                yield PART_COUNT
            pairs = zip(waiting, responses, strict=False)
            if any((c.get("name"), c.get("id")) != (r.get("name"), r.get("id")) for c, r in pairs):
                yield RESPONSE_TURN
        elif responses:
            yield RESPONSE_TURN
        if calls and before != "user":
            yield CALL_TURN
        waiting, before = calls, content.get("role")
    if waiting:
        yield PART_COUNT


def _signature_faults(contents: Sequence[Mapping[str, Any]], model: str) -> Iterator[str]:
    """Every signature is one of this model's, and the first call of each step of this turn has one."""
    signs = generation_of(model) >= 3
    prompts = [
        n for n, c in enumerate(contents) if c.get("role") == "user" and not _of(c, "functionResponse")
    ]
    turn = max(prompts, default=0)
    for number, content in enumerate(contents):
        first_call = next((part for part in content.get("parts") or () if "functionCall" in part), None)
        if signs and number > turn and first_call is not None and SIGNATURE not in first_call:
            name = first_call["functionCall"].get("name")
            yield (
                "Function call is missing a thought_signature in functionCall parts. Additional data, "
                f"function call `default_api:{name}`, position {number}."
            )
        for part in content.get("parts") or ():
            signature = part.get(SIGNATURE)
            dummy = signs and signature == UNSIGNED and "functionCall" in part
            if signature is not None and not dummy and signature != sign(model, part):
                yield "Corrupted thought signature."


def _of(content: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [part[kind] for part in content.get("parts") or () if kind in part]


# --- tools and configuration ----------------------------------------------------------------------


def _tool_faults(body: Mapping[str, Any]) -> Iterator[str]:
    names: set[str] = set()
    for tool in body.get("tools", ()):
        if not tool.get("functionDeclarations"):
            yield "tools[0].tool_type: required one_of 'tool_type' must have one initialized field"
        for declaration in tool.get("functionDeclarations") or ():
            name = declaration.get("name", "")
            at = f"function_declarations {name!r}"
            if not NAME.fullmatch(name):
                yield f"{at}: Invalid function name. Must start with a letter or an underscore."
            if name in names:
                yield f"{at}: Duplicate function declaration found"
            names.add(name)
            if unknown := sorted(
                set(declaration) - {"name", "description", "parameters", "parametersJsonSchema"}
            ):
                yield f'{at}: Unknown name "{unknown[0]}": Cannot find field.'
            if "parameters" in declaration and "parametersJsonSchema" in declaration:
                yield f"{at}: parameters and parameters_json_schema cannot both be set"
            if "parameters" in declaration:
                if declaration["parameters"].get("type") != "OBJECT":
                    yield f"{at}.parameters: schema type should be OBJECT"
                yield from schema_faults(declaration["parameters"], f"{at}.parameters")
            if declaration.get("parametersJsonSchema", {"type": "object"}).get("type") != "object":
                yield f"{at}.parameters_json_schema: schema type should be OBJECT"


def schema_faults(schema: Any, at: str) -> Iterator[str]:
    """What is wrong with a schema in the subset that `parameters` takes."""
    if not isinstance(schema, dict):
        yield f"{at}: Invalid value"
        return
    if unknown := sorted(set(schema) - SCHEMA_FIELDS):
        yield f"Invalid JSON payload received. Unknown name \"{unknown[0]}\" at '{at}': Cannot find field."
    if "anyOf" in schema:
        if set(schema) - {"anyOf"}:
            yield f"{at}: When using any_of, it must be the only field set."
        for choice in schema["anyOf"]:
            yield from schema_faults(choice, f"{at}.any_of")
        return
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        yield f"{at}.type: Invalid value: {kind!r}"
    if "enum" in schema and (kind != "STRING" or not all(isinstance(v, str) and v for v in schema["enum"])):
        yield f"{at}.enum: only allowed for STRING type, and cannot be empty"
    if ("properties" in schema or "required" in schema) and kind != "OBJECT":
        yield f"{at}.properties: only allowed for OBJECT type"
    if schema.get("properties") == {}:
        yield f"{at}.properties: should be non-empty for OBJECT type"
    if missing := set(schema.get("required", ())) - set(schema.get("properties", ())):
        yield f"{at}.required: property is not defined: {sorted(missing)[0]}"
    if (kind == "ARRAY") != ("items" in schema):
        yield f"{at}.items: missing field."
    for name, inner in schema.get("properties", {}).items():
        yield from schema_faults(inner, f"{at}.properties[{name}]")
    if "items" in schema:
        yield from schema_faults(schema["items"], f"{at}.items")


def _config_faults(config: Mapping[str, Any], generation: float) -> Iterator[str]:
    if unknown := sorted(set(config) - CONFIG_FIELDS):
        yield f"Unknown name \"{unknown[0]}\" at 'generation_config': Cannot find field."
    limit = config.get("maxOutputTokens", 1)
    if not isinstance(limit, int) or limit < 1:
        yield "max_output_tokens must be positive"
    thinking = config.get("thinkingConfig")
    if thinking is None:
        return
    if generation < 2.5:
        yield "Thinking is not enabled for this model"
    if "thinkingLevel" in thinking and "thinkingBudget" in thinking:
        yield "You can only set only one of thinking budget and thinking level."
    if "thinkingLevel" in thinking and (generation < 3 or thinking["thinkingLevel"] not in LEVELS):
        yield "Thinking level is not supported for this model."
    budget = thinking.get("thinkingBudget", 512)
    if ("thinkingBudget" in thinking and generation >= 3) or not 512 <= budget <= 24576:
        yield f"The thinking budget {budget} is invalid."


def _system_faults(system: Any) -> Iterator[str]:
    if system is None:
        return
    texts = [part.get("text") for part in system.get("parts", ())]
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        yield "system_instruction: must include text parts"
