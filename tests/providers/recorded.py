"""Where the recorded streams are, and what they are expected to say."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentd.protocol.messages import Usage

_BESIDE_THE_PROJECT = Path(__file__).parents[3] / "shared" / "streams"
STREAMS = Path(os.environ.get("AGENTD_STREAMS") or _BESIDE_THE_PROJECT)

FOLDERS = {
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "gemini": "gemini",
}
"""Where the recordings of each API are."""


@dataclass(frozen=True)
class Recording:
    """One recorded answer: its exact bytes and the sidecar's reading of it."""

    name: str
    body: bytes
    expected: dict[str, Any]


def recordings(api: str) -> list[Any]:
    """A parameter per recording of an API; where there are none, one that skips and says why."""
    paths = sorted((STREAMS / FOLDERS[api]).glob("*.sse"))
    if not paths:
        reason = f"no recorded streams in {STREAMS / FOLDERS[api]}; point AGENTD_STREAMS at them"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="absent")]
    return [pytest.param(path, id=path.stem) for path in paths]


def load(path: Path) -> Recording:
    """Read a recording."""
    sidecar = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return Recording(path.stem, path.read_bytes(), sidecar["expected"])


def usage_in(raw: dict[str, Any]) -> Usage | None:
    """A sidecar's usage as ours."""
    if not raw:
        return None
    cache_read, cache_write = raw["cache_read_tokens"] or 0, raw["cache_write_tokens"] or 0
    fresh = max(0, raw["input_tokens"] - cache_read - cache_write)
    output = raw["output_tokens_incl_reasoning"]
    total = fresh + cache_read + cache_write + output
    return Usage(
        input=fresh,
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=min(raw["reasoning_tokens"] or 0, output),
        total=total,
        context_tokens=total,
    )


def expected_calls(expected: dict[str, Any]) -> list[dict[str, Any]]:
    """A sidecar's calls, without what other readers want to know of them."""
    return [{key: call[key] for key in ("id", "name", "arguments")} for call in expected["tool_calls"]]
