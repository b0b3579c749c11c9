"""`kill -9` at random moments: tools, streams, questions, steers, a queue, compactions (faults C1 and C3).

Each life of a daemon reads what the last one left, holds it against what that one had acknowledged, and is
killed in the middle of its own work: at any time, or soon after something has begun.
"""

import random
from collections import Counter

import pytest
from fakes.model_server import ModelServer
from wire.home import Home
from wire.lives import Life, configure, moment

MOMENTS = (
    "compaction (request)",
    "compaction (threshold)",
    "compaction (overflow)",
    "question",
    "tool",
    "message (assistant)",
)
"""What kills have to have met, often enough to say something."""


def kills(home: Home, count: int, seed: int) -> Counter[str]:
    """So many kills; gives what they met, and how many times a steer and a queue were left."""
    chance = random.Random(seed)
    met: Counter[str] = Counter()
    with ModelServer(repeat=True) as server:
        configure(home, server)
        daemon = home.start("--allow-full")
        for number in range(count):
            life = Life(home, server, daemon, number, chance)
            life.work(chance)
            left = life.left()
            met[moment(left)] += 1
            met.update(f"with a {kind} waiting" for kind in {each.kind for each in left.queue})
            daemon = home.start("--allow-full")
            life.assert_survived(left, daemon)
    print(f"{count} kills, seed {seed}:", ", ".join(f"{what} {n}" for what, n in met.most_common()))
    return met


def test_twelve_kills_at_random_moments(home: Home) -> None:
    kills(home, 12, seed=20261130)


@pytest.mark.nightly
def test_two_hundred_kills_at_random_moments(home: Home) -> None:
    met = kills(home, 200, seed=1)
    assert all(met[what] >= 3 for what in MOMENTS), met
    assert met["with a steer waiting"] >= 3, met
    assert met["with a queue waiting"] >= 10, met
