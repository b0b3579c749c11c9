"""What differs between the servers, and the models, that speak Gemini's API.

https://ai.google.dev/gemini-api/docs/thinking, .../thought-signatures, .../function-calling
"""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from agentd.protocol.messages import Effort

_VERSION = re.compile(r"gemini-(\d+(?:\.\d+)?)(?![\d.])")
_PREFIX = re.compile(r"^(?:publishers/google/)?models/")
_NAMED_VERSION = re.compile(r"/v\d+[a-z0-9]*(?=/|$)")
_NEWEST = 1000.0


@dataclass(frozen=True)
class GeminiDialect:
    """How a server of this API wants to be asked.

    `auth` says where the key goes: the header `x-goog-api-key`, or `Authorization` as a bearer token
    (Vertex). `path` leads from base_url to the model, whose name takes the place of `{model}`; `version`
    comes before it unless base_url names a version already. `schemas` is the form of a tool's parameters:
    JSON Schema as it is (`parametersJsonSchema`) or the API's own subset (`parameters`). `generation` is that
    of the server's models where their names do not tell.
    """

    auth: Literal["x-goog-api-key", "bearer"] = "x-goog-api-key"
    path: str = "/models/{model}:streamGenerateContent?alt=sse"
    version: str = "v1beta"
    schemas: Literal["json", "subset"] = "json"
    generation: float | None = None


GEMINI = GeminiDialect()
"""The Gemini API: https://generativelanguage.googleapis.com, with or without "/v1beta"."""

VERTEX = GeminiDialect(
    auth="bearer", path="/publishers/google/models/{model}:streamGenerateContent?alt=sse", version="v1"
)
"""Vertex AI: https://{location}-aiplatform.googleapis.com/v1/projects/{project}/locations/{location}"""


@dataclass(frozen=True)
class Traits:
    """What a model takes. `thinking` is the field that says how much to think, None where there is none."""

    thinking: Literal["level", "budget"] | None
    signs_calls: bool
    """Whether a call without a signature is refused."""
    sees_results: bool
    """Whether the result of a call can hold an image."""


def traits_of(name: str, dialect: GeminiDialect) -> Traits:
    """The traits of a model, by its generation; a "latest" without a number is of the newest."""
    generation = dialect.generation if dialect.generation is not None else _generation(name)
    thinking: Literal["level", "budget"] | None = None
    if generation >= 3:
        thinking = "level"
    elif generation >= 2.5:
        thinking = "budget"
    return Traits(thinking, signs_calls=generation >= 3, sees_results=generation >= 3)


def bare_name(model: str) -> str:
    """A model's name as the path takes it: without the prefix that the API's own lists put before it."""
    return _PREFIX.sub("", model)


_LEVELS: dict[Effort, str] = {
    "minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH", "xhigh": "HIGH", "max": "HIGH",
}  # fmt: skip
_BUDGETS: dict[Effort, int] = {
    "minimal": 512, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576,
}  # fmt: skip
"""Tokens, inside what every model of generation 2.5 takes: Pro 128-32768, Flash 0-24576, Lite 512-24576."""


def thinking_amount(effort: Effort, traits: Traits) -> dict[str, str | int]:
    """The field of `thinkingConfig` that asks for an effort: the levels end at high, and so do we."""
    if traits.thinking == "level":
        return {"thinkingLevel": _LEVELS[effort]}
    return {"thinkingBudget": _BUDGETS[effort]} if traits.thinking == "budget" else {}


def _generation(name: str) -> float:
    if version := _VERSION.search(name):
        return float(version[1])
    return _NEWEST if re.search(r"gemini-.*latest", name) else 0.0


def version_prefix(base_url: str, dialect: GeminiDialect) -> str:
    """The version as a path, "/v1beta", where an address names none. A faulty one is told by others."""
    try:
        named = _NAMED_VERSION.search(urlsplit(base_url.strip()).path)
    except ValueError:
        named = None
    return "" if named else f"/{dialect.version}"
