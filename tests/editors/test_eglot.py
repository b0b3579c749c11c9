"""Emacs with Eglot, without a line of ours in it, on a real daemon with the scripted model."""

import re
import subprocess

from editors.places import HERE, Place, editor

SECONDS = 300


def test_eglot_needs_no_plugin(place: Place) -> None:
    ran = subprocess.run(
        [editor("emacs"), "-q", "--batch", "-l", HERE / "eglot.el", "-f", "ert-run-tests-batch-and-exit"],
        env=place.environment,
        cwd=place.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    found = re.search(r"Ran (\d+) tests, (\d+) results as expected, 0 unexpected", ran.stdout)
    assert found is not None, ran.stdout
    assert int(found[1]) >= 10
    assert found[1] == found[2], ran.stdout
    assert ran.returncode == 0
