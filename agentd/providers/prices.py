"""What a response costs, by what its model charges for tokens."""

from dataclasses import dataclass

from agentd.protocol.messages import Cost, Usage

_MILLION = 1_000_000


@dataclass(frozen=True)
class Rates:
    """USD for a million tokens. Where a price for the cache is None, cached tokens cost what input does."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True)
class Prices:
    """What a model charges: `rates`, or those of the last tier whose number the prompt's tokens are above."""

    rates: Rates
    tiers: tuple[tuple[int, Rates], ...] = ()

    def rates_for(self, prompt_tokens: int) -> Rates:
        """The rates for a whole response to a prompt of that size."""
        rates = self.rates
        for above, dearer in self.tiers:
            if prompt_tokens > above:
                rates = dearer
        return rates


def cost_of(usage: Usage | None, prices: Prices | None) -> Cost | None:
    """What one response cost, in USD; None where its tokens or its price are not known.

    Not for sums of several responses: a tier's price depends on the prompt of each. Reasoning is part of the
    output. What a server itself reported as cost goes before.
    """
    if usage is None or usage.cost is not None:
        return None if usage is None else usage.cost
    if prices is None:
        return None
    rates = prices.rates_for(usage.input + usage.cache_read + usage.cache_write)
    total = (
        usage.input * rates.input
        + usage.output * rates.output
        + usage.cache_read * _or(rates.cache_read, rates.input)
        + usage.cache_write * _or(rates.cache_write, rates.input)
    )
    return Cost(total=total / _MILLION)


def _or(price: float | None, other: float) -> float:
    return other if price is None else price
