"""A session that runs commands, for the tests of tools."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from shell_calls import ShellCalls

from agentd.workspace.process import Processes


@pytest_asyncio.fixture
async def shell(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ShellCalls]:
    async with Processes() as processes:
        calls = ShellCalls(processes, tmp_path, tmp_path_factory.mktemp("data") / "output")
        yield calls
        await calls.shell.close()
    for task in calls.tasks:
        await task
