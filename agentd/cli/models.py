"""`agentd models`: what can be named with `--model`."""

from typing import TYPE_CHECKING

from agentd.cli.inquiry import NoAnswer, Rows, inquire, parse

if TYPE_CHECKING:  # imported when they are needed
    from agentd.client import Client
    from agentd.protocol.methods import ModelInfo, ModelsResult

_DESCRIPTION = (
    "List the models that can be used and what keeps the others away; * marks the default. A server on this "
    "machine, or one that your configuration describes, is asked for its models when it is named."
)


def main(argv: list[str]) -> int:
    """Print the models, the default marked with a star."""
    operand = ("PROVIDER", "list only the models of this provider")
    said = parse("models", _DESCRIPTION, argv, operand=operand)

    async def ask(client: "Client") -> "ModelsResult":
        answer = await client.models(said.provider)
        if said.provider is not None and not said.json:
            _check(answer, said.provider)
        return answer

    return inquire(said, ask, _rows)


def _check(answer: "ModelsResult", provider: str) -> None:
    """Raise `NoAnswer` where the provider that was named has no model that can be used."""
    reasons = [model.reason or "no reason was given" for model in answer.models if not model.available]
    if reasons and len(reasons) == len(answer.models):
        why = reasons[0]
        raise NoAnswer(why if why.startswith(f"{provider}:") else f"{provider}: {why}")


def _rows(answer: "ModelsResult") -> Rows:
    return [("*" if model.id == answer.default else " ", model.id, _state(model)) for model in answer.models]


def _state(model: "ModelInfo") -> str:
    if not model.available:
        return f"not available: {model.reason or 'no reason was given'}"
    return f"{model.context_window:,} tokens" if model.context_window else ""
