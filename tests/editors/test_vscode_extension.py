"""The extension's own checks: its types, and the tests of what needs no VS Code, some in a browser."""

import json
import os
import subprocess
from typing import Any

import pytest
from editors.places import HERE
from editors.workbench import chromium, made_extension

SECONDS = 900
MANIFEST = json.loads((HERE.parent.parent / "editors" / "vscode" / "package.json").read_text())


SCRIPTS: list[Any] = [name for name in ("lint", "typecheck") if name in MANIFEST["scripts"]]
SCRIPTS += [pytest.param(name, marks=pytest.mark.browser) for name in ("test", "test:browser")]
"""Also the tests without a browser draw the view, and wait for that a second or two at the most."""


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_extension_passes(script: str, request: pytest.FixtureRequest) -> None:
    environment = os.environ | ({"CHROMIUM": chromium()} if script == "test:browser" else {})
    if request.config.getoption("--nightly"):
        environment["AGENTD_NEW_EXAMPLES"] = "1"
    ran = subprocess.run(
        ["npm", "run", "--silent", script],
        cwd=made_extension(),
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
