"""The extension's own checks: its types, its style, and the tests of what needs no VS Code."""

import json
import subprocess

import pytest
from editors.places import HERE
from editors.workbench import made_extension

pytestmark = pytest.mark.browser

SECONDS = 900
MANIFEST = json.loads((HERE.parent.parent / "editors" / "vscode" / "package.json").read_text())


@pytest.mark.parametrize(
    "script", [name for name in ("lint", "typecheck", "test") if name in MANIFEST["scripts"]]
)
def test_the_extension_passes(script: str) -> None:
    ran = subprocess.run(
        ["npm", "run", "--silent", script],
        cwd=made_extension(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
