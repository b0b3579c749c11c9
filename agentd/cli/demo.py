"""`agentd demo`: a real daemon repairs a real project, with a model that plays a script."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from difflib import unified_diff
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.cli.view import RunView
    from agentd.protocol.methods import PromptResult

PROMPT = "A test of this project fails. Find out why and repair it."
MODEL = "scripted/demo"
TEST_SECONDS = 60

_DESCRIPTION = """\
Copy a small project with a failing test to a temporary folder and let agentd repair it, with a built-in model
that plays a script: no network, no key. The daemon, its tools, the failing and the passing tests are real.
Exit code 0 only if the tests really pass in the end."""

_NEXT = """\
To use a real model, describe its server in {config}:
  [providers.local]
  api = "openai-chat"
  base_url = "http://127.0.0.1:11434/v1"
then say what to do: agentd run -m local/MODEL "your prompt"
"""


def main(argv: list[str]) -> int:
    """Show the demonstration. Gives 0 if the project's tests pass in the end."""
    parser = argparse.ArgumentParser(
        prog="agentd demo",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--keep", action="store_true", help="keep the project's folder and say where it is")
    said = parser.parse_args(argv)
    with ExitStack() as places:
        scratch = Path(places.enter_context(tempfile.TemporaryDirectory(prefix="agentd-demo-state-")))
        original = places.enter_context(as_file(files("agentd") / "demo_project"))
        if said.keep:
            folder = Path(tempfile.mkdtemp(prefix="agentd-demo-"))
        else:
            folder = Path(places.enter_context(tempfile.TemporaryDirectory(prefix="agentd-demo-")))
        shutil.copytree(
            original, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
        return _demonstrate(original, folder, scratch, said.keep)
