"""Tokens times prices."""

import pytest

from agentd.protocol.messages import Cost, Usage
from agentd.providers.prices import Prices, Rates, cost_of

PRICES = Prices(Rates(4, 20, cache_read=0.5, cache_write=5))
TIERED = Prices(Rates(1, 2), tiers=((1000, Rates(10, 20)), (5000, Rates(100, 200))))


def dollars(usage: Usage, prices: Prices) -> float:
    cost = cost_of(usage, prices)
    assert cost is not None
    assert cost.currency == "USD"
    return cost.total


def test_each_kind_of_token_has_its_price() -> None:
    million = 1_000_000
    assert dollars(Usage(input=million), PRICES) == pytest.approx(4)
    assert dollars(Usage(output=million, reasoning=million), PRICES) == pytest.approx(20)
    assert dollars(Usage(cache_read=million), PRICES) == pytest.approx(0.5)
    assert dollars(Usage(cache_write=million), PRICES) == pytest.approx(5)
    whole = Usage(input=1000, output=200, cache_read=50_000, cache_write=300, total=51_500)
    assert dollars(whole, PRICES) == pytest.approx((4000 + 4000 + 25_000 + 1500) / million)


def test_cached_tokens_without_a_price_of_their_own_cost_what_input_does() -> None:
    assert dollars(Usage(cache_read=10, cache_write=10), Prices(Rates(1, 2))) == pytest.approx(20e-6)


def test_a_cache_that_costs_nothing_costs_nothing() -> None:
    assert dollars(Usage(cache_write=10), Prices(Rates(1, 2, cache_read=0, cache_write=0))) == 0


@pytest.mark.parametrize(
    ("prompt", "rate"), [(1000, 1), (1001, 10), (5000, 10), (5001, 100)]
)  # fmt: skip
def test_a_long_prompt_is_dearer_as_a_whole(prompt: int, rate: int) -> None:
    parts = Usage(input=prompt - 500, cache_read=400, cache_write=100, output=10)
    assert dollars(parts, TIERED) == pytest.approx((prompt * rate + 10 * 2 * rate) / 1_000_000)


def test_no_price_and_no_usage_is_no_cost() -> None:
    assert cost_of(Usage(input=5), None) is None
    assert cost_of(None, PRICES) is None


def test_what_the_server_says_it_cost_goes_before() -> None:
    usage = Usage(input=5, cost=Cost(total=0.25))
    assert cost_of(usage, PRICES) == cost_of(usage, None) == Cost(total=0.25)
