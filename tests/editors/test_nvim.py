"""The Neovim plugin in real Neovims, old, middle and new, on a real daemon with the scripted model."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CACHE = Path(
    os.environ.get("EDITORS_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentd-editors"
)
BINARIES = {"0.10": "nvim-trixie/nvim", "0.11": "nvim-0.11/bin/nvim", "0.12": "nvim-forky/nvim"}
SECONDS = 300


@pytest.mark.parametrize("version", BINARIES)
def test_the_plugin_works_in(version: str, tmp_path: Path) -> None:
    nvim = CACHE / BINARIES[version]
    if not nvim.exists():
        pytest.skip(f"Neovim {version} is not here; `tests/editors/get-nvim {version}` fetches it")
    config = tmp_path / "config.toml"
    config.write_text("")
    (tmp_path / "home").mkdir()
    daemon = [sys.executable, "-m", "agentd", "--stdio", "--allow-full"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AGENTD_TEST_HOME": str(tmp_path / "home"),
        "AGENTD_TEST_COMMAND": json.dumps(daemon),
        "AGENTD_CONFIG": str(config),
        "AGENTD_DATA": str(tmp_path / "data"),
        **{f"XDG_{name}_HOME": str(tmp_path / name) for name in ("STATE", "DATA", "CONFIG", "CACHE")},
    }
    ran = subprocess.run(
        [nvim, "--clean", "-l", HERE / "nvim" / "suite.lua"],
        env=environment,
        cwd=tmp_path,
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
