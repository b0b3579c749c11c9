"""VS Code's own server with our extension, and the browser in which scenarios see it."""

import contextlib
import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
from editors.places import HERE, Place, editor

VERSIONS = ("1.100", "1.139")
START_SECONDS = 60.0
ANSWER_SECONDS = 400.0
"""The driver has deadlines of its own, which are shorter."""
END_SECONDS = 10.0

IN_HOST_FLAG = "--enable-smoke-test-driver"
"""Lets newer versions run tests in the extension host; it hides notifications, so scenarios do without."""

SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.enableExperiments": False,
    "workbench.tips.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",
    "git.enabled": False,
    "chat.disableAIFeatures": True,
}
_PR_SET_PDEATHSIG = 1
NO_GALLERY = json.dumps({"serviceUrl": "", "itemUrl": "", "resourceUrlTemplate": ""})
_NAME = re.compile(r'^(scenario|inNewest|test)\("((?:[^"\\]|\\.)+)"', re.MULTILINE)


def made_extension() -> Path:
    """The folder in which our extension is built as it is now; skips the test where that cannot be."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here")
    fetched("extension-modules", "what the extension is built with cannot be had from npm")
    built = _fetch("extension")
    assert built.returncode == 0, f"the extension cannot be built:\n{built.stdout}{built.stderr}"
    return Path(built.stdout.strip())


def chromium() -> str:
    """The program of the browser; skips the test where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("chromium is not here; `tests/editors/fetch chromium` gets it")
    return found


@dataclass(frozen=True)
class Kit:
    """What is there once for all tests."""

    browser: str
    drive: Path
    extension: Path

    @classmethod
    def fetched(cls) -> Self:
        """Skips the test where something cannot be had; fails where our extension cannot be built."""
        extension = made_extension()
        browser = chromium()
        drive = fetched("drive", "what drives the browser cannot be had from npm")
        return cls(browser, Path(drive), extension)

    @property
    def vsix(self) -> Path:
        return self.extension / "dist" / "agentd.vsix"


def fetched(name: str, otherwise: str) -> str:
    """What `fetch` prints; skips the test with a reason where it fails."""
    got = _fetch(name)
    if got.returncode != 0:
        pytest.skip(otherwise)
    return got.stdout.strip()


def _fetch(name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HERE / "fetch", name], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


class Told(NamedTuple):
    """A scenario, or a test in the extension host, as its module tells it."""

    module: str
    name: str
    in_newest: bool
    """The older VS Code plays it at night only; driver/scenario.mjs says which those are."""


def told_in(folder: str, *, in_newest: bool = False) -> list[Told]:
    """What the modules of a folder beside this file tell for each version or the newest alone, in order."""
    told = [
        Told(module.name, json.loads(f'"{name}"'), how == "inNewest")
        for module in sorted((HERE / "vscode" / folder).glob("*.*js"))
        for how, name in _NAME.findall(module.read_text())
    ]
    return [each for each in told if each.in_newest == in_newest]


EACH_VERSION = pytest.mark.parametrize("version", VERSIONS, indirect=True)
IN_NEWEST = pytest.mark.parametrize(
    "version",
    [*(pytest.param(version, marks=pytest.mark.nightly) for version in VERSIONS[:-1]), VERSIONS[-1]],
    indirect=True,
)
"""For the fixture `version`, which makes all that has one, so that each is made once."""


def of(told: list[Told]) -> pytest.MarkDecorator:
    """A test for each of them, which takes its `module` and `name`."""
    return pytest.mark.parametrize(
        ("module", "name"), [(each.module, each.name) for each in told], ids=[each.name for each in told]
    )


class Server:
    """VS Code's server on loopback, with folders of its own; the extension is installed in it.

    With `lean` it has of VS Code's own extensions those only that are data (themes, grammars), which lets
    windows open faster.
    """

    def __init__(self, version: str, kit: Kit, folder: Path, *flags: str, lean: bool = False) -> None:
        self._place = Place(folder)
        folder.mkdir()
        (folder / "home").mkdir()
        self.data = folder / "user-data"
        self.log = folder / "server.log"
        self._program = editor(f"vscode-{version}")
        command = [sys.executable, "-m", "agentd", "--allow-full"]
        self._write("Machine", SETTINGS | {"agentd.command": command})
        self._write("User", {"security.workspace.trust.enabled": False})
        self._common = [
            "--accept-server-license-terms",
            *("--server-data-dir", str(folder / "server-data")),
            *("--user-data-dir", str(self.data)),
            *("--extensions-dir", str(folder / "extensions")),
        ]
        if IN_HOST_FLAG not in flags:  # those tests load it from its folder
            self._install(kit.vsix)
            self._install(_packed(HERE / "vscode" / "python", folder / "python.vsix"))
        self._process = self._started((*flags, *(self._data_alone(folder) if lean else ())))
        self.url = url_of(self._process, self.log)

    def _write(self, whose: str, settings: dict[str, Any]) -> None:
        path = self.data / whose / "settings.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(settings))

    @property
    def environment(self) -> dict[str, str]:
        """All that the server, its extension hosts and their daemons inherit."""
        return self._place.environment | {
            "EXTENSIONS_GALLERY": NO_GALLERY,
            "AGENTD_PYTHON": str(self._python),
            "AGENTD_SCRIPT_REQUESTS": str(self._place.folder / "requests.jsonl"),
        }

    @property
    def _python(self) -> Path:
        """What the stand-in for the Python extension does."""
        return self._place.folder / "python.json"

    @property
    def config(self) -> Path:
        """The configuration of every agentd that the server's windows start."""
        return self._place.config

    @property
    def places(self) -> dict[str, Any]:
        """What the driver has to know of it."""
        return {
            **{"url": self.url, "pid": self._process.pid, "data": str(self.data)},
            **{"config": str(self.config), "python": str(self._python)},
        }

    def _data_alone(self, folder: Path) -> tuple[str, str]:
        """The flag that has the server find those extensions of its own only that run no code."""
        chosen = folder / "built-in"
        chosen.mkdir()
        extensions = Path(self._program).parent / "package" / "lib" / "vscode" / "extensions"
        for manifest in extensions.glob("*/package.json"):
            if not json.loads(manifest.read_text()).keys() & {"main", "browser"}:
                (chosen / manifest.parent.name).symlink_to(manifest.parent)
        return "--builtin-extensions-dir", str(chosen)

    def _install(self, vsix: Path) -> None:
        ran = subprocess.run(
            [self._program, *self._common, "--install-extension", str(vsix)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert "successfully installed" in ran.stdout, ran.stdout + ran.stderr

    def _started(self, flags: tuple[str, ...]) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [
                    *(self._program, *self._common, "--without-connection-token"),
                    *("--host", "127.0.0.1", "--port", "0", "--telemetry-level", "off", *flags),
                ],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_us,
            )

    def close(self) -> None:
        ended(self._process)


def url_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where a server of VS Code is, once it says so in its log."""
    end = time.monotonic() + START_SECONDS
    while not (found := re.search(r"listening on (\d+)", log.read_text())):
        assert time.monotonic() < end, f"VS Code's server did not start:\n{log.read_text()}"
        assert process.poll() is None, f"VS Code's server ended:\n{log.read_text()}"
        time.sleep(0.05)
    return f"http://127.0.0.1:{found[1]}/"


class Drive:
    """The Node process that plays scenarios in a browser."""

    def __init__(self, kit: Kit, folder: Path, **places: Any) -> None:
        self._log = folder / "drive.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["node", HERE / "vscode" / "driver" / "main.mjs"],
                env=os.environ
                | {"AGENTD_DRIVE": json.dumps({"modules": str(kit.drive), "browser": kit.browser, **places})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=die_with_us,
            )

    def play(self, module: str, name: str, folder: Path) -> Any:
        """Play a scenario, which leaves pictures in the folder; give its value, or fail with what it says."""
        answer = self.ask({"play": name, "module": module, "folder": str(folder)})
        if not answer.get("ok"):
            pytest.fail(f"{answer.get('error')}\npictures and logs: {folder}", pytrace=False)
        return answer.get("value")

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Give an order and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            readable, _, _ = select.select([self._process.stdout], [], [], ANSWER_SECONDS)
            line = self._process.stdout.readline() if readable else ""
        except OSError:
            line = ""
        if not line:
            pytest.fail(f"the driver ended or hangs:\n{self._log.read_text()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        ended(self._process)
        if self._process.stdout is not None:
            self._process.stdout.close()


@dataclass(frozen=True)
class InHost:
    """What came of the tests in the extension host, by name: nothing, or what failed."""

    failures: dict[str, str | None]
    log: str

    @classmethod
    def run(cls, server: Server, drive: Drive, kit: Kit, folder: Path) -> Self:
        """Run all of them in one window on a workspace that is trusted."""
        workspace = folder / "workspace"
        workspace.mkdir()
        server.config.write_text(f'model = "scripted/demo"\nmode = "full"\ntrusted = ["{workspace}"]\n')
        answer = drive.ask(
            {
                "inHost": {
                    "extension": str(kit.extension),
                    "tests": str(HERE / "vscode" / "inhost" / "index.cjs"),
                    "workspace": str(workspace),
                }
            }
        )
        results = answer.get("results", [])
        failures = {each["name"]: None if each["ok"] else each["error"] for each in results}
        return cls(failures, answer.get("log", "") + str(answer.get("error", "")) + server.log.read_text())

    def verify(self, name: str) -> None:
        """Fails where the test of that name did, or did not run."""
        if name not in self.failures:
            pytest.fail(f"it did not run:\n{self.log}", pytrace=False)
        if (failure := self.failures[name]) is not None:
            pytest.fail(failure, pytrace=False)


def _packed(extension: Path, vsix: Path) -> Path:
    """An extension that needs no build, as a file that VS Code installs."""
    with zipfile.ZipFile(vsix, "w") as archive:
        for path in sorted(extension.iterdir()):
            archive.write(path, f"extension/{path.name}")
    return vsix


def die_with_us() -> None:
    """Has the kernel end this process with its parent, as tests may be killed: no server stays behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def ended(process: subprocess.Popen[Any]) -> None:
    """End a process, in peace where it lets us."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
