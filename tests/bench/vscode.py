"""`python tests/bench/vscode.py`: what the view costs in a real VS Code, beside floors of the same run."""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from editors.workbench import VERSIONS, Drive, Kit, Server

from agentd.client import Client, ClientOptions

MODULE = "../../../bench/vscode.mjs"
PROMPTS, TURNS = 20, 50
MESSAGES = PROMPTS * (2 * TURNS + 2)
TITLE, LAST = "Look around, many times", "The last word of a long session."


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", choices=VERSIONS, default=VERSIONS[-1], help="which VS Code")
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds of each (3)")
    options = parser.parse_args()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"VS Code {options.version}, {platform.machine()}, {os.cpu_count()} CPUs, load {load}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentd-bench-")))
        kit = Kit.fetched()
        server = stack.enter_context(closing(Server(options.version, kit, folder / "server", lean=True)))
        workspace = folder / "long"
        workspace.mkdir()
        os.environ["AGENTD_LONG_SESSION"] = json.dumps(
            {"workspace": str(workspace), "title": TITLE, "last": LAST, "messages": MESSAGES}
        )
        anyio.run(long_session, workspace, server)
        drive = stack.enter_context(closing(Drive(kit, folder, server=server.places)))
        measure(drive, folder, options.rounds)
    return 0


async def long_session(workspace: Path, server: Server) -> None:
    """A session of many messages in the data folder of the server's daemons."""
    turn = {"content": [{"type": "tool_call", "name": "list_directory", "arguments": {"path": "."}}]}
    said = [*([turn] * TURNS), {"content": [{"type": "text", "text": LAST}]}]
    script = workspace.parent / "long.json"
    script.write_text(json.dumps(said * PROMPTS))
    os.environ.update(server.environment)
    options = ClientOptions(model=f"scripted/{script}", trusted=True)
    async with Client.start(workspace, options=options) as client:
        for _ in range(PROMPTS):
            async with client.stream(TITLE) as run:
                async for _ in run:
                    pass


def measure(drive: Drive, folder: Path, rounds: int) -> None:
    """Each scenario in rounds; the medians are printed. The first opening only fills the browser's cache."""
    played(drive, "open", folder, 1)
    opened = played(drive, "open", folder, rounds)
    told("reload to the prompt box is there, ms", middle(opened, "prompt"), middle(opened, "workbench"))
    told("reload to a prompt can be sent, ms", middle(opened, "interactive"), middle(opened, "workbench"))
    print("        (the floor is VS Code's own workbench in the same load)")
    updates = played(drive, "updates", folder, rounds)
    count = updates[0]["updates"]
    told(
        f"one of {count} updates of an answer, us of the renderer",
        middle(updates, "view") * 1000 / count,
        middle(updates, "floor") * 1000 / count,
    )
    print("        (the floor appends the words to one text)")
    updates = played(drive, "a million characters", folder, rounds)
    count = updates[0]["updates"]
    told(
        f"one of {count} updates of an answer of 1 MB, us of the renderer",
        middle(updates, "view") * 1000 / count,
        middle(updates, "floor") * 1000 / count,
    )
    print("        (the floor adds each as a paragraph)")
    opened = played(drive, "long session", folder, rounds)
    told(
        f"a session of {MESSAGES} messages, click to its end, ms",
        middle(opened, "view"),
        middle(opened, "floor"),
    )
    print("        (the floor is a bare page with as many paragraphs)")


def played(drive: Drive, name: str, folder: Path, rounds: int) -> list[dict[str, Any]]:
    """What a scenario measured, in each round."""
    found = []
    for _ in range(rounds):
        print(f"\r{name} ...", end="", file=sys.stderr, flush=True)
        found.append(drive.play(MODULE, name, Path(tempfile.mkdtemp(prefix="round-", dir=folder))))
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
    return found


def middle(found: list[dict[str, Any]], name: str) -> float:
    """The median of a value over the rounds."""
    return statistics.median(each[name] for each in found)


def told(what: str, value: float, floor: float) -> None:
    """A line of the report."""
    print(f"    {what:<62}{value:10.1f}{value / floor:10.2f}x its floor of {floor:.1f}")


if __name__ == "__main__":
    sys.exit(main())
