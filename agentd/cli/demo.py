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
To use a real model, say in {config} where it is, for example:
  providers.local = {{ api = "openai-chat", base_url = "http://127.0.0.1:11434/v1" }}
Then run it in your project: agentd run -m local/MODEL "your prompt"
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


def _demonstrate(original: Path, folder: Path, scratch: Path, keep: bool) -> int:
    import anyio

    from agentd.cli.terminal import Output
    from agentd.cli.view import RunView, usage_line
    from agentd.config.folders import config_file

    out = Output(sys.stdout)
    print(f"agentd repairs a copy of a small project in {folder}.\nPrompt: {PROMPT}\n", flush=True)
    try:
        result = anyio.run(_run, folder, scratch, RunView(out, out))
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever it was, the demonstration did not succeed
        print(f"agentd: the demonstration failed: {error}", file=sys.stderr)
        return 1
    passed = _tests_pass(folder)
    print("\nWhat changed:\n")
    print("".join(_diff(original, folder)))
    print(f"{usage_line(result.turns, result.usage)}. The tests {'pass' if passed else 'still fail'}.")
    if keep:
        print(f"The project is kept in {folder}.")
    print("\n" + _NEXT.format(config=config_file(os.environ)), end="")
    return 0 if passed and result.stop_reason == "stop" else 1


async def _run(folder: Path, scratch: Path, view: "RunView") -> "PromptResult":
    from agentd.client import Client, ClientOptions, daemon

    command = [*daemon.DEFAULT_COMMAND, "--allow-full"]
    options = ClientOptions(model=MODEL, trusted=True)
    async with Client.start(folder, command=command, env=_environment(scratch), options=options) as client:
        async with view.clock(), client.stream(PROMPT, mode="full") as run:
            async for note in run:
                await view.show(note.event)
        await view.finish(run.result, usage=False)
        return run.result


def _environment(scratch: Path) -> Mapping[str, str]:
    """The user's environment without the user's agentd: no configuration, no sessions of theirs."""
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("AGENTD_")}
    config = scratch / "config.toml"
    config.touch()
    return {**theirs, "AGENTD_CONFIG": str(config), "AGENTD_DATA": str(scratch / "data")}


def _tests_pass(folder: Path) -> bool:
    """Whether the project's tests pass, as found by running them ourselves."""
    tests = subprocess.run(
        [sys.executable, "-B", "-m", "unittest"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TEST_SECONDS,
        check=False,
    )
    return tests.returncode == 0


def _diff(original: Path, folder: Path) -> Iterator[str]:
    """The unified diff of all files of the project."""
    for before in sorted(original.glob("*.*")):
        after = folder / before.name
        yield from unified_diff(
            before.read_text().splitlines(keepends=True),
            after.read_text().splitlines(keepends=True) if after.is_file() else [],
            f"a/{before.name}",
            f"b/{before.name}",
        )
