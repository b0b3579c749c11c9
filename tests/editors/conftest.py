"""Fixtures of the tests with real editors."""

from pathlib import Path

import pytest
from editors.places import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place for one editor."""
    (tmp_path / "home").mkdir()
    (tmp_path / "config.toml").write_text("")
    return Place(tmp_path)
