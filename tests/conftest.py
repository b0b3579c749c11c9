"""Fixtures that start real daemons, each in a place of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from wire.harness import Daemon
from wire.home import Home

# A slow machine is no failure: how long an example takes says nothing about whether it is right.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A place for the daemons of one test."""
    home = Home(tmp_path)
    yield home
    home.close()


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A place for daemons that the tests of a module share."""
    home = Home(tmp_path_factory.mktemp("home"))
    yield home
    home.close()


@pytest.fixture(scope="module")
def daemon(shared_home: Home) -> Daemon:
    """An initialized daemon that the tests of a module share; mode `full` is allowed in it."""
    return shared_home.start("--allow-full")
