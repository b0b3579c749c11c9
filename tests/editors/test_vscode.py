"""The extension in real VS Codes, the oldest and the newest that it is for, on real daemons."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from editors.workbench import VERSIONS, Drive, Kit, NotHere, Server, names_in

SCENARIOS = names_in("scenarios")


@pytest.fixture(scope="session")
def kit() -> Kit:
    try:
        return Kit.fetched()
    except NotHere as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module", params=VERSIONS)
def drive(request: pytest.FixtureRequest, kit: Kit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drive]:
    """A browser before VS Code's server of one version, for all scenarios."""
    folder = tmp_path_factory.mktemp(f"vscode-{request.param}")
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(request.param, kit, folder / "server")))
        where = {"url": server.url, "pid": server.pid, "data": str(server.data), "config": str(server.config)}
        yield stack.enter_context(closing(Drive(kit, folder, server=where)))


@pytest.mark.parametrize(("module", "name"), SCENARIOS, ids=[name for _, name in SCENARIOS])
def test_in_vscode(drive: Drive, module: str, name: str, tmp_path: Path) -> None:
    drive.play(module, name, tmp_path)
