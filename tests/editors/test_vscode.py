"""The extension in real VS Codes, the oldest and the newest that it is for, on real daemons."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from editors.workbench import EACH_VERSION, IN_HOST_FLAG, IN_NEWEST, Drive, InHost, Kit, Server, of, told_in

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit.fetched()


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def drive(version: str, kit: Kit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drive]:
    """A browser before VS Code's server of one version, for all scenarios."""
    folder = tmp_path_factory.mktemp(f"vscode-{version}")
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(version, kit, folder / "server", lean=True)))
        yield stack.enter_context(closing(Drive(kit, folder, server=server.places)))


@pytest.fixture(scope="module")
def in_host(version: str, kit: Kit, tmp_path_factory: pytest.TempPathFactory) -> InHost:
    """What came of the tests in the extension host of one version."""
    folder = tmp_path_factory.mktemp(f"in-host-{version}")
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(version, kit, folder / "server", IN_HOST_FLAG)))
        drive = stack.enter_context(closing(Drive(kit, folder, server=server.places)))
        return InHost.run(server, drive, kit, folder)


@of(told_in("scenarios"))
@EACH_VERSION
def test_in_vscode(drive: Drive, module: str, name: str, tmp_path: Path) -> None:
    drive.play(module, name, tmp_path)


@of(told_in("scenarios", in_newest=True))
@IN_NEWEST
def test_in_the_newest_vscode(drive: Drive, module: str, name: str, tmp_path: Path) -> None:
    drive.play(module, name, tmp_path)


@of(told_in("inhost"))
@EACH_VERSION
def test_in_the_extension_host(in_host: InHost, module: str, name: str) -> None:
    in_host.verify(name)
