"""How long a server asks to wait, in every form in which servers say it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.providers.http_errors import Peer, error_from_response
from agentd.providers.retry_delay import retry_after_ms

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after-ms": "250", "retry-after": "9"}, 250),
        ({"retry-after-ms": "0", "retry-after": "1"}, 0),
        ({"retry-after": "2"}, 2000),
        ({"retry-after": "1.5"}, 1500),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30_000),
        ({"retry-after": "Fri, 15 Jan 2021 08:00:30 GMT"}, 0),
        ({"retry-after": "3", "x-ratelimit-reset": "60"}, 3000),
        ({"x-ratelimit-reset": "60"}, 60_000),
        ({"x-ratelimit-reset-after": "1.5"}, 1500),
        ({"x-ratelimit-reset": "1800000012"}, 12_000),
        ({"x-ratelimit-reset": "1800000012000"}, 12_000),
        ({"x-ratelimit-reset": "1700000000"}, 0),
        ({"x-ratelimit-reset-requests": "17ms", "x-ratelimit-reset-tokens": "6m0s"}, 360_000),
        ({"x-ratelimit-reset-requests": "1h2m3s", "x-ratelimit-remaining-requests": "0"}, 3_723_000),
        ({"x-ratelimit-reset-requests": "20s", "x-ratelimit-remaining-requests": "0",
          "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "900"}, 20_000),
        ({"anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:07Z",
          "anthropic-ratelimit-input-tokens-remaining": "0",
          "anthropic-ratelimit-requests-reset": "2027-01-15T09:00:00Z",
          "anthropic-ratelimit-requests-remaining": "12"}, 7000),
        ({"x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-reset": ""}, None),
        ({"x-ratelimit-reset": "2027-01-15T08:00:07"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_each_form_is_read(headers: dict[str, str], expected: int | None) -> None:
    assert retry_after_ms(headers, NOW, status=429) == expected
    assert error_from_response(Peer("p", "m", "u"), 429, headers, b"{}", now=NOW).retry_after_ms == expected


def test_limits_that_were_not_hit_delay_no_other_failure() -> None:
    assert retry_after_ms({"x-ratelimit-reset": "60"}, NOW, status=500) is None
    assert retry_after_ms({"retry-after": "60"}, NOW, status=500) == 60_000


@pytest.mark.parametrize(
    ("words", "expected"),
    [("Please retry in 48.9s.", 48_900), ("Try again in 250ms", 250), ("retry in a while", None)],
)
def test_words_count_where_no_header_says_more(words: str, expected: int | None) -> None:
    assert retry_after_ms({}, NOW, words) == expected
    assert retry_after_ms({"retry-after": "1"}, NOW, words) == 1000


@given(
    st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens"]),
    st.text(),
)
def test_no_value_raises_or_gives_a_wait_below_nothing(name: str, value: str) -> None:
    wait = retry_after_ms({name: value}, NOW, value, status=429)
    assert wait is None or wait >= 0
