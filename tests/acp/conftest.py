"""Fixtures of the tests of `agentd acp`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.acp_agent import AcpHome


@pytest.fixture
def acp_home(tmp_path: Path) -> Iterator[AcpHome]:
    """A place for the processes of one test."""
    home = AcpHome(tmp_path)
    yield home
    home.close()
