"""Fixtures that start real daemons, each in a place of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from wire.harness import Daemon
from wire.home import Home

# A slow machine is no failure: how long an example takes says nothing about whether it is right.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked nightly are left out unless asked for."""
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    if nightly and not config.getoption("--nightly"):
        config.stash[LEFT_OUT] = len(nightly)
        config.hook.pytest_deselected(items=nightly)
        items[:] = [item for item in items if item not in nightly]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{count} left out: marked nightly, they take minutes; pytest --nightly runs them"
        )


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
