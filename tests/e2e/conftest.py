"""Fixtures of tests that run against a server of each wire API."""

from collections.abc import Iterator

import pytest
from e2e.every_api import SERVERS, Stage, stages
from wire.home import Home


@pytest.fixture(scope="module")
def all_stages(shared_home: Home) -> Iterator[dict[str, Stage]]:
    """A server of each API and one daemon, which the tests of a module share."""
    with stages(shared_home) as found:
        yield found


@pytest.fixture(params=list(SERVERS))
def stage(request: pytest.FixtureRequest, all_stages: dict[str, Stage]) -> Iterator[Stage]:
    """Each API's server in turn, with nothing to play; it must have found no fault when the test ends."""
    found = all_stages[request.param]
    found.server.start_anew()
    yield found
    assert found.server.faults == []
