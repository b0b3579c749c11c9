"""Adding up usage: of responses to a run, of runs to a session."""

from agentd.protocol.events import CompactionEnd
from agentd.protocol.messages import Cost, Usage
from agentd.providers.base import Model
from agentd.providers.prices import cost_of


def add_usage(sum_so_far: Usage | None, usage: Usage | None) -> Usage | None:
    """The sum; `context_tokens` is always the last response's. None where nothing was reported at all.

    A cost that is not known is left out of the sum.
    """
    if usage is None or sum_so_far is None:
        return sum_so_far if usage is None else usage
    cost = None
    if sum_so_far.cost is not None or usage.cost is not None:
        cost = Cost(total=sum(each.cost.total for each in (sum_so_far, usage) if each.cost is not None))
    return Usage(
        cost=cost,
        input=sum_so_far.input + usage.input,
        output=sum_so_far.output + usage.output,
        cache_read=sum_so_far.cache_read + usage.cache_read,
        cache_write=sum_so_far.cache_write + usage.cache_write,
        reasoning=sum_so_far.reasoning + usage.reasoning,
        total=sum_so_far.total + usage.total,
        context_tokens=usage.context_tokens,
        context_window=usage.context_window or sum_so_far.context_window,
    )


def spent(end: CompactionEnd) -> Usage | None:
    """What asking for a summary took."""
    return end.kept.usage if end.kept is not None else None


def add_spent(sum_so_far: Usage | None, usage: Usage | None) -> Usage | None:
    """The sum with what a request took that answered no turn: what it filled of its window says nothing."""
    total = add_usage(sum_so_far, usage)
    if total is None or usage is None:
        return total
    before = sum_so_far or Usage()
    return total.model_copy(
        update={"context_tokens": before.context_tokens, "context_window": before.context_window}
    )


def measured(usage: Usage | None, model: Model) -> Usage | None:
    """A response's usage with what it filled of the model's context window, and what it cost."""
    if usage is None:
        return None
    return usage.model_copy(
        update={
            "context_tokens": usage.total,
            "context_window": model.context_window,
            "cost": cost_of(usage, model.prices),
        }
    )
