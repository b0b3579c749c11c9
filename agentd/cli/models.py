"""`agentd models`: what can be named with `--model`."""

from typing import TYPE_CHECKING

from agentd.cli.inquiry import Rows, inquire, parse

if TYPE_CHECKING:
    from agentd.client import Client
    from agentd.protocol.methods import ModelInfo, ModelsResult


def main(argv: list[str]) -> int:
    """Print the models, the default marked with a star."""
    said = parse("models", "List the models that the configuration knows; * marks the default.", argv)
    return inquire(said, _ask, _rows)


async def _ask(client: "Client") -> "ModelsResult":
    return await client.models()


def _rows(answer: "ModelsResult") -> Rows:
    return [("*" if model.id == answer.default else " ", model.id, _state(model)) for model in answer.models]


def _state(model: "ModelInfo") -> str:
    if not model.available:
        return f"not available: {model.reason or 'no reason was given'}"
    return f"{model.context_window:,} tokens" if model.context_window else ""
