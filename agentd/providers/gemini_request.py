"""A model request as the body of a `POST …:streamGenerateContent`.

What the API insists on: after a turn with calls, one user content with a response for every call, in their
order, and nothing else in it; responses that are objects; signatures on the parts they came with; no empty
content. Sampling is never set: the newer models are tuned for theirs.
https://ai.google.dev/api/generate-content
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    ImageContent,
    ResultBlock,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from agentd.providers.base import Model, ModelRequest, ToolSpec, no_images
from agentd.providers.gemini_dialect import GEMINI, GeminiDialect, Traits, thinking_amount, traits_of
from agentd.providers.gemini_parts import SIGNATURE, replayed
from agentd.providers.gemini_schema import subset
from agentd.providers.openai_text import NO_OUTPUT, said

UNSIGNED = "skip_thought_signature_validator"
"""The signature that Google names for calls that a model has not made itself."""
BAD_SIGNATURE = r"(?:corrupted|invalid) thought.?signature|thought.?signature is (?:not |in)valid"
NO_SIGNATURE = r"missing an? `?thought.?signature"
"""How Google's servers refuse a signature, and a call without one, whatever API is before them."""

IMAGES_OF_RESULTS = "Images from the tool results above:"

Part = dict[str, Any]

Signatures = Literal["kept", "dropped", "made"]
"""What becomes of a model's signatures: they go back, or they do not, as they are worth nothing any more; or
each turn of calls has `UNSIGNED` instead, for a model that wants one though its name does not tell."""


def generate_body(
    request: ModelRequest,
    dialect: GeminiDialect = GEMINI,
    *,
    without: Collection[str] = (),
    signatures: Signatures = "kept",
) -> dict[str, Any]:
    """The body of the request. Raises `ProviderError` for an image that the model cannot see.

    `without` names what the model has refused of its thinking, in the words of `told_to_think`.
    """
    traits = traits_of(request.model.name, dialect)
    signing = replace(traits, signs_calls=True) if signatures == "made" else traits
    contents = _Contents(request.model, signing, own=signatures == "kept")
    body: dict[str, Any] = {"contents": contents.of(request)}
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool, dialect) for tool in request.tools]}]
    if config := _config(request, traits, without):
        body["generationConfig"] = config
    return body


def told_to_think(body: Mapping[str, Any]) -> set[str]:
    """What a body says of thinking that can be left out next: how much, else all of it; empty if nothing."""
    thinking = body.get("generationConfig", {}).get("thinkingConfig")
    if thinking is None:
        return set()
    return set(thinking) - {"includeThoughts"} or {"thinkingConfig"}


def _config(request: ModelRequest, traits: Traits, without: Collection[str]) -> dict[str, Any]:
    model = request.model
    config: dict[str, Any] = {}
    if model.max_output is not None:
        config["maxOutputTokens"] = model.max_output
    asked = request.effort if request.effort in model.efforts else None
    thinks = traits.thinking is not None and (model.reasoning or asked is not None)
    if thinks and "thinkingConfig" not in without:
        amount = {} if asked is None else thinking_amount(asked, traits)
        taken = {field: value for field, value in amount.items() if field not in without}
        config["thinkingConfig"] = {"includeThoughts": True} | taken
    return config


def _declaration(tool: ToolSpec, dialect: GeminiDialect) -> dict[str, Any]:
    declaration: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if dialect.schemas == "json":
        parameters = {"type": "object", "properties": {}} | tool.parameters
        return declaration | {"parametersJsonSchema": parameters}
    parameters = subset(tool.parameters)
    # The subset has no object without properties: a tool without parameters has no `parameters`.
    return declaration | ({"parameters": parameters} if "properties" in parameters else {})


class _Contents:
    """The contents of one request as they grow."""

    def __init__(self, model: Model, traits: Traits, *, own: bool) -> None:
        """With `own`, what the model has said goes back as it made it, signatures and all."""
        self._model = model
        self._traits = traits
        self._own = own
        self._contents: list[dict[str, Any]] = []
        self._user: list[Part] = []  # what the next user content will say
        self._responses: list[Part] = []
        self._ids: dict[str, str] = {}  # the server's own ids of calls, by ours

    def of(self, request: ModelRequest) -> list[dict[str, Any]]:
        for message in request.messages:
            if isinstance(message, ToolResultMessage):
                self._add_result(message)
            elif isinstance(message, UserMessage):
                self._user += [self._part(block) for block in message.content]
            else:
                self._add_answer(message)
        self._add_user()
        return self._contents

    def _add_user(self) -> None:
        if self._responses:
            self._contents.append({"role": "user", "parts": self._responses})
            self._responses = []
        if self._user:
            self._contents.append({"role": "user", "parts": self._user})
            self._user = []

    def _add_answer(self, message: AssistantMessage) -> None:
        parts = list(self._answer_parts(message))
        if not parts:
            return
        self._add_user()
        last = self._contents[-1] if self._contents else None
        if last is not None and last["role"] == "model":  # calls may only follow what a user said
            last["parts"] += parts
        else:
            self._contents.append({"role": "model", "parts": parts})

    def _answer_parts(self, message: AssistantMessage) -> Iterator[Part]:
        model = self._model
        is_own = self._own and message.provider == model.provider and message.model in (model.name, model.id)
        calls = iter(message.calls)
        needs_signature = self._traits.signs_calls
        for part in replayed(message.provider_data if is_own else None, message):
            if "functionCall" in part:
                call = next(calls)
                kept: Mapping[str, str] = part["functionCall"]
                if "id" in kept:
                    self._ids[call.id] = kept["id"]
                part["functionCall"] = {**kept, "name": call.name, "args": call.arguments}
                # Of parallel calls only the first is signed.
                if needs_signature and SIGNATURE not in part:
                    part[SIGNATURE] = UNSIGNED
                needs_signature = False
            yield part

    def _add_result(self, result: ToolResultMessage) -> None:
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        images = [self._part(block) for block in _images(result.content)]
        inside = self._traits.sees_results
        if not text.strip():
            text = "(see the image)" if images else NO_OUTPUT
        response: dict[str, Any] = {
            "name": result.tool_name,
            "response": {"error" if result.is_error else "output": text},
        }
        if result.tool_call_id in self._ids:
            response["id"] = self._ids[result.tool_call_id]
        if images and inside:
            response["parts"] = images
        elif images:
            self._user += images if self._user else [{"text": IMAGES_OF_RESULTS}, *images]
        self._responses.append({"functionResponse": response})

    def _part(self, block: ContentBlock | ResultBlock) -> Part:
        if isinstance(block, ImageContent):
            if not self._model.images:
                raise no_images(self._model)
            return {"inlineData": {"mimeType": block.mime_type, "data": block.data}}
        return {"text": said(block)}


def _images(blocks: Iterable[ResultBlock]) -> Iterator[ImageContent]:
    return (block for block in blocks if isinstance(block, ImageContent))
