"""What Claude models take, by generation, and how a dialect of the Messages API differs.

Facts of Anthropic's API documentation ("Extended thinking", "Adaptive thinking", "Effort"; output limits from
"Models overview"). A Claude model whose name tells no version counts as one of the newer, any other model as
none of them.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from agentd.protocol.messages import Effort
from agentd.providers.base import Model

Thinking = Literal["adaptive", "budget", "none"]

EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")
"""All efforts, from the least to the most."""

BUDGETS: dict[Effort, int] = {
    "minimal": 1024,
    "low": 4096,
    "medium": 10_000,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
"""The tokens of thinking that an effort means where a budget is asked for."""

MIN_BUDGET = 1024
"""The smallest budget that the API takes."""

BINDING_CONTROLS = "thinking-binding-controls-2026-08-01"
"""The beta with which a request may say that thinking bound to another prompt is to be dropped."""

DEFAULT_MAX_OUTPUT = 8192
"""The output limit, which the API demands, for a model of which none is known; in tokens."""


@dataclass(frozen=True)
class Dialect:
    """How a server of the Messages API differs from Anthropic's own, which is the default.

    `auth` is the header that carries the key. `version` and `betas` go into the headers `anthropic-version`
    and `anthropic-beta`. `cache_markers` (0 to 4) is how many blocks a request may mark for the cache: fewer
    where a proxy adds its own. `thinking` is how it is asked for; None: as the model's generation wants it.
    `unsigned_thinking`: the server signs no thinking and still takes it back, which Anthropic's refuses.
    `binding_controls`: the server knows the beta `BINDING_CONTROLS`; some clouds refuse it. `cuts_prompts`:
    it leaves out the beginning of a prompt that is too long, without a word (Ollama).
    """

    auth: Literal["x-api-key", "bearer"] = "x-api-key"
    version: str = "2023-06-01"
    betas: tuple[str, ...] = ()
    cache_markers: int = 4
    thinking: Thinking | None = None
    unsigned_thinking: bool = False
    binding_controls: bool = True
    cuts_prompts: bool = False


@dataclass(frozen=True)
class Generation:
    """What the models since a version take.

    `max_output` is a limit that every one of them allows. `binds_thinking` models refuse a thinking block
    once the system prompt or the tools before it have changed, unless the request says to drop it instead.
    """

    since: tuple[int, int]
    thinking: Thinking
    efforts: tuple[Effort, ...]
    max_output: int
    binds_thinking: bool = False


_GENERATIONS = (
    Generation((5, 1), "adaptive", ("low", "medium", "high", "xhigh", "max"), 32_000, binds_thinking=True),
    Generation((4, 7), "adaptive", ("low", "medium", "high", "xhigh", "max"), 32_000),
    Generation((4, 6), "adaptive", ("low", "medium", "high", "max"), 32_000),
    Generation((4, 0), "budget", EFFORTS, 32_000),
    Generation((3, 7), "budget", EFFORTS, 32_000),
    Generation((3, 5), "none", (), 8192),
    Generation((0, 0), "none", (), 4096),
)
_UNBOUND = ("mythos", (5, 1))
"""The one model since 5.1 that does not bind its thinking."""
_UNBOUND_GENERATION = _GENERATIONS[1]

_FAMILY_FIRST = re.compile(r"claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_VERSION_FIRST = re.compile(r"claude-(?:instant-|v)?(\d)(?:[-.](\d{1,2}))?(?!\d)")


def generation_of(model: Model, dialect: Dialect) -> Generation:
    """What a model takes, as far as its name, its description and the dialect tell."""
    known = _by_name(model.name.lower())
    if known is None:
        thinking: Thinking = "budget" if model.reasoning else "none"
        known = Generation((0, 0), thinking, EFFORTS, DEFAULT_MAX_OUTPUT)
    max_output = known.max_output
    if model.context_window is not None:
        max_output = min(max_output, model.context_window // 2)  # a limit that leaves no prompt is refused
    return replace(
        known,
        thinking=dialect.thinking or known.thinking,
        efforts=tuple(effort for effort in EFFORTS if effort in model.efforts) or known.efforts or EFFORTS,
        max_output=model.max_output or max(1, max_output),
        binds_thinking=known.binds_thinking and dialect.binding_controls,
    )


def nearest_effort(wanted: Effort, supported: tuple[Effort, ...]) -> Effort:
    """The most of the supported efforts that is not above the wanted one, else the least."""
    rank = EFFORTS.index(wanted)
    below = [effort for effort in supported if EFFORTS.index(effort) <= rank]
    return below[-1] if below else supported[0]


def _by_name(name: str) -> Generation | None:
    """The generation in a name like claude-sonnet-4-5-20250929, us.anthropic.claude-3-7-sonnet or
    anthropic/claude-opus-4.6.
    """
    if "claude" not in name:
        return None
    found = _FAMILY_FIRST.search(name)
    if found is not None:
        family, version = found[1], (int(found[2]), int(found[3] or 0))
        if (family, version) == _UNBOUND:
            return _UNBOUND_GENERATION
    elif (found := _VERSION_FIRST.search(name)) is not None:
        version = (int(found[1]), int(found[2] or 0))
    else:
        return _UNBOUND_GENERATION
    return next(generation for generation in _GENERATIONS if generation.since <= version)
