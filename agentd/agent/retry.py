"""When a failed request to a model is sent again, and after how long."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from agentd.protocol.events import Retry
from agentd.providers.base import ProviderError

T = TypeVar("T")

MAX_ATTEMPTS = 5
"""How often one request is sent at most, the first time counted."""

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
_PATIENCE_SECONDS = 120.0
"""A server that wants us to wait longer is told of instead: the user may want something else meanwhile."""


@dataclass(frozen=True)
class Wait:
    """How long to wait before the next attempt, in milliseconds."""

    delay_ms: int


@dataclass(frozen=True)
class GiveUp:
    """No further attempt, because of this."""

    error: ProviderError


async def persist(
    attempt: Callable[[], Awaitable[T]],
    tell: Callable[[Retry], Awaitable[None]],
    jitter: Callable[[], float],
) -> T:
    """Attempt until it succeeds, or none is left: then the last `ProviderError` is raised.

    `tell` is awaited before the wait for the next attempt.
    """
    number = 1
    while True:
        try:
            return await attempt()
        except ProviderError as error:
            decision = after(error, number, jitter())
            if isinstance(decision, GiveUp):
                raise decision.error from error
            reason = error.message
        retry = Retry(attempt=number, max_attempts=MAX_ATTEMPTS, delay_ms=decision.delay_ms, reason=reason)
        await tell(retry)
        await anyio.sleep(decision.delay_ms / 1000)
        number += 1


def after(error: ProviderError, attempt: int, jitter: float) -> Wait | GiveUp:
    """What follows the failure of attempt number `attempt` (from 1).

    The server's own delay goes first; else it doubles from half a second to thirty. `jitter`, from 0 to 1,
    spreads that over its upper half, so that clients that failed together do not come back together.
    """
    if not error.retryable or attempt >= MAX_ATTEMPTS:
        return GiveUp(error)
    if error.retry_after_ms is not None:
        if error.retry_after_ms > _PATIENCE_SECONDS * 1000:
            return GiveUp(_too_long(error, error.retry_after_ms))
        return Wait(max(error.retry_after_ms, 0))
    longest = min(_FIRST_SECONDS * 2 ** (attempt - 1), _LONGEST_SECONDS)
    return Wait(round(1000 * longest * (0.5 + jitter / 2)))


def _too_long(error: ProviderError, retry_after_ms: int) -> ProviderError:
    minutes, seconds = divmod(round(retry_after_ms / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    wait = f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
    return ProviderError(
        error.kind,
        f"{error.message.rstrip('.')}. The server asks to wait {wait}: try again then.",
        retryable=True,
        status=error.status,
        code=error.code,
        request_id=error.request_id,
        retry_after_ms=retry_after_ms,
        usage=error.usage,
    )
