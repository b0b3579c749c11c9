"""The extension in windows on other machines: over SSH, and in containers."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from editors.machines import HOME, VSIX, Login, Machine, free_port, index
from editors.places import editor
from editors.workbench import (
    EACH_VERSION,
    IN_NEWEST,
    NO_GALLERY,
    SETTINGS,
    VERSIONS,
    Drive,
    Kit,
    ended,
    of,
    told_in,
    url_of,
)

pytestmark = pytest.mark.browser

SERVER = f"{HOME}/.vscode-server"
PROGRAM = f"{SERVER}/bin/current/start"
COMMON = ("--accept-server-license-terms", "--server-data-dir", SERVER)
OPEN = ("--without-connection-token", "--telemetry-level", "off")
GALLERY = f"EXTENSIONS_GALLERY={NO_GALLERY}"
SOCKET = f"{SERVER}/socket"
READY = "the server listens"
BEGIN = f"""
cd {SERVER}
if ! kill -0 "$(cat pid 2> /dev/null)" 2> /dev/null; then
  rm -f socket
  set -- {" ".join((*COMMON, *OPEN))} --start-server --socket-path {SOCKET}
  env '{GALLERY}' {PROGRAM} "$@" > log 2>&1 < /dev/null &
  echo $! > pid
fi
until [ -S socket ]; do sleep 0.05; done
echo {READY}
exec cat > /dev/null
"""
"""What the shell of a login is told, as by VS Code's Remote-SSH: the server's end is not the connection's."""


def machine_with(kit: Kit, version: str, folder: Path, **options: bool) -> Machine:
    """A machine with VS Code's server and our extension on it, and an index that has agentd."""
    program = Path(editor(f"vscode-{version}"))
    binds = {f"{SERVER}/bin/current": program.parent, VSIX: kit.vsix, **index()}
    machine = Machine(folder, binds, **options)
    for whose, settings in (("Machine", SETTINGS), ("User", {})):
        path = machine.home / ".vscode-server" / "data" / whose / "settings.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(settings))
    (machine.home / ".config" / "agentd").mkdir(parents=True)
    return machine


def places(machine: Machine, pid: int, url: str) -> dict[str, Any]:
    """What the driver has to know of a server there."""
    return {
        **{"url": url, "pid": pid, "data": str(machine.home / ".vscode-server" / "data")},
        **{"config": str(machine.home / ".config" / "agentd" / "config.toml")},
        **{"python": str(machine.folder / "python.json")},
        **{"home": {"user": machine.user, "there": HOME, "here": str(machine.home)}},
    }


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit.fetched()


@pytest.fixture(scope="module")
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def over_ssh(version: str, kit: Kit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drive]:
    """A browser before a machine that has an SSH server, and agentd where pipx would install it."""
    folder = tmp_path_factory.mktemp(f"ssh-{version}")
    machine = machine_with(kit, version, folder / "machine")
    machine.install_agentd(f"{HOME}/.local/bin")
    (machine.home / ".profile").write_text("export FROM_PROFILE=yes\n")
    with ExitStack() as stack:
        login = stack.enter_context(closing(Login(machine)))
        said = login.run(f"{PROGRAM} {' '.join(COMMON)} --install-extension {VSIX}")
        assert "successfully installed" in said, said
        port = free_port()
        ssh = {
            "argv": [*login.command("-T", "-L", f"127.0.0.1:{port}:{SOCKET}"), "bash", "-s"],
            "script": BEGIN,
            "ready": READY,
        }
        server = places(machine, login.process.pid, f"http://127.0.0.1:{port}/") | {"ssh": ssh}
        yield stack.enter_context(closing(Drive(kit, folder, server=server)))


@pytest.fixture
def in_container(kit: Kit, tmp_path: Path) -> Iterator[Drive]:
    """A browser before VS Code's server in a container without agentd, that forbids sandboxes."""
    machine = machine_with(kit, VERSIONS[-1], tmp_path / "machine", sandboxes=False)
    said = machine.run(PROGRAM, *COMMON, "--install-extension", VSIX)
    assert "successfully installed" in said, said
    log = tmp_path / "server.log"
    with ExitStack() as stack:
        with log.open("wb") as stream:
            command = ("/usr/bin/env", GALLERY, PROGRAM, *COMMON, *OPEN, "--host", "127.0.0.1", "--port", "0")
            process = machine.start(*command, log=stream)
        stack.callback(ended, process)
        server = places(machine, process.pid, url_of(process, log))
        yield stack.enter_context(closing(Drive(kit, tmp_path, server=server)))


def scenarios(module: str, *, in_newest: bool = False) -> pytest.MarkDecorator:
    """A test for each of those scenarios of a module for remote windows."""
    return of([each for each in told_in("remote", in_newest=in_newest) if each.module == f"{module}.mjs"])


@scenarios("ssh")
@EACH_VERSION
def test_over_ssh(over_ssh: Drive, module: str, name: str, tmp_path: Path) -> None:
    over_ssh.play(f"../remote/{module}", name, tmp_path)


@scenarios("ssh", in_newest=True)
@IN_NEWEST
def test_over_ssh_in_the_newest(over_ssh: Drive, module: str, name: str, tmp_path: Path) -> None:
    over_ssh.play(f"../remote/{module}", name, tmp_path)


@scenarios("container")
def test_in_a_container(in_container: Drive, module: str, name: str, tmp_path: Path) -> None:
    in_container.play(f"../remote/{module}", name, tmp_path / "scenario")
