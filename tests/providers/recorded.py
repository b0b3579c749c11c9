"""Where the recorded streams are, and what they are expected to say."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_BESIDE_THE_PROJECT = Path(__file__).parents[3] / "shared" / "streams"
STREAMS = Path(os.environ.get("AGENTD_STREAMS") or _BESIDE_THE_PROJECT)


@dataclass(frozen=True)
class Recording:
    """One recorded answer: its exact bytes and the sidecar's reading of it."""

    name: str
    body: bytes
    expected: dict[str, Any]


def recordings(api: str) -> list[Any]:
    """A parameter per recording of an API; where there are none, one that skips and says why."""
    paths = sorted((STREAMS / api).glob("*.sse"))
    if not paths:
        reason = f"no recorded streams in {STREAMS / api}; point AGENTD_STREAMS at them"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="absent")]
    return [pytest.param(path, id=path.stem) for path in paths]


def load(path: Path) -> Recording:
    """Read a recording."""
    sidecar = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return Recording(path.stem, path.read_bytes(), sidecar["expected"])
