"""Fixtures that start real daemons, each in a place of its own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import every_server
from hypothesis import settings
from wire.harness import Daemon
from wire.home import Home

# A slow machine is no failure: how long an example takes says nothing about whether it is right.
# By day the examples are the same each time: what fails was broken by the change that it fails in.
settings.register_profile("by day", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None, derandomize=False)
settings.load_profile("by day")

# Also with PYTHONDONTWRITEBYTECODE, which children still inherit: else each process compiles all tests anew.
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Long tests run at night, golden files change when somebody says so."""
    parser.addoption("--nightly", action="store_true", help="run the tests marked nightly as well")
    parser.addoption("--renew-golden", action="store_true", help="write the golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    """New examples at night."""
    if _is_night(config):
        settings.load_profile("nightly")


def _is_night(config: pytest.Config) -> bool:
    return bool(config.getoption("--nightly")) or "nightly" in config.getoption("-m")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out unless they are asked for."""
    if _is_night(config):
        return
    for item in items:
        if item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.skip(reason="takes minutes; --nightly runs it"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out: a test that nobody knows of is none."""
    skipped = terminalreporter.stats.get("skipped", ())
    if left_out := sum("nightly" in report.keywords for report in skipped):
        terminalreporter.write_line(f"{left_out} tests marked nightly were left out: --nightly runs them")


@pytest.fixture(autouse=True)
def no_server_refuses() -> Iterator[None]:
    """Of what loops ask fake providers in the test, a strict server of no API may refuse anything."""
    every_server.noted.clear()
    yield
    assert every_server.noted == []


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
