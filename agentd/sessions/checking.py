"""What is known of a prompt before it begins: whether it can run at all, and what its words come to."""

from collections.abc import Sequence
from pathlib import Path

from agentd.agent.host import Engine
from agentd.protocol.messages import ContentBlock, Effort
from agentd.protocol.methods import PromptParams
from agentd.sessions import built_in
from agentd.sessions.house import House
from agentd.sessions.prompt_images import check_images
from agentd.sessions.words import Words, look_up


def check(
    params: PromptParams,
    blocks: Sequence[ContentBlock],
    root: Path,
    house: House,
    *,
    model: str | None,
    effort: Effort | None,
    engine: Engine | None = None,
) -> Words:
    """What the words of a prompt come to. Raises `RpcError` for what cannot run.

    `model` and `effort` are the session's, which count where the prompt wishes none. `engine` is that of the
    run in which the prompt is to be said, None for one with a run of its own.
    """
    house.check_mode(params.mode)
    words = look_up(blocks, root, house)
    if words.built_in is not None:
        built_in.check(words.built_in, house, model)
        return words
    if engine is None:
        engine = house.engines.engine(params.model or words.model or model, params.effort or effort)
    check_images(blocks, engine.model)
    return words
