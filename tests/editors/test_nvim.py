"""The Neovim plugin in real Neovims, old, middle and new, on a real daemon with the scripted model."""

import re
import subprocess

import pytest
from editors.places import HERE, Place, editor

SECONDS = 300


@pytest.mark.parametrize("version", ["0.10", "0.11", "0.12"])
def test_the_plugin_works_in(version: str, place: Place) -> None:
    ran = subprocess.run(
        [editor(f"nvim-{version}"), "--clean", "-l", HERE / "nvim" / "suite.lua"],
        env=place.environment,
        cwd=place.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    last = ran.stdout.strip().splitlines()[-1] if ran.stdout.strip() else "nothing was said"
    assert re.fullmatch(r"[1-9][0-9]* passed, 0 failed", last), ran.stdout + ran.stderr
    assert "stack traceback" not in ran.stderr, ran.stderr  # an error in a callback fails no test by itself
    assert ran.returncode == 0
