"""What a daemon does about what killed ones left, where it cannot."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentd.daemon.core import clear_away
from agentd.workspace.checkpoints import with_open_rewind
from agentd.workspace.write_notes import WriteNotes


@contextmanager
def no_file_opens() -> Iterator[None]:
    """This process may open no more files than it has."""
    lowest = os.dup(0)  # the number that the next one would get
    os.close(lowest)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_what_cannot_be_cleared_away_is_told_and_ends_no_daemon(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()

    async def settle_rewinds() -> None:
        with_open_rewind(folder)

    sessions = cast(Any, SimpleNamespace(settle_rewinds=settle_rewinds))
    with no_file_opens():
        await clear_away(WriteNotes(tmp_path / "writes"), sessions, tmp_path)
    told = [each.message for each in caplog.records if "killed daemon left" in each.message]
    assert len(told) == 2, "of rewinds and of sessions that are gone: each has its turn"
    assert all("Too many open files" in each for each in told)
