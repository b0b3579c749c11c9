"""`agentd trust`: the folders whose content the user trusts."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.config.trust import Trust

_DESCRIPTION = """\
Trust a folder and what is in it, or list what is trusted. In a trusted folder modes edit, auto and full are
what they say, your rules for commands count, and its .agentd/config.toml is read. An editor that says itself
whether it trusts its workspace goes before this. A running daemon takes up new trust at its next turn, and
its loss at once."""


def main(argv: list[str]) -> int:
    """Change or list what is trusted. Gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="agentd trust", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.add_argument("action", nargs="?", choices=("list", "add", "remove"), default="list")
    parser.add_argument("folder", metavar="DIR", nargs="?", help="the folder to add or to remove")
    said = parser.parse_args(argv)
    if (said.action == "list") != (said.folder is None):
        parser.error("add and remove take a folder, and list takes none")

    from agentd.config.settings import load
    from agentd.config.state_file import StateError
    from agentd.config.trust import Trust, TrustRefused

    settings = load(os.environ)
    trust = Trust.of_user(os.environ, settings.trusted)
    try:
        if said.action == "add":
            print(f"Trusted: {trust.add(Path(said.folder))}")
            return 0
        if said.action == "remove":
            return _remove(trust, Path(said.folder))
        _list(trust, settings.trusted, said.json)
    except (TrustRefused, StateError) as error:
        print(f"agentd: {error}", file=sys.stderr)
        return 1
    return 0


def _remove(trust: "Trust", folder: Path) -> int:
    from agentd.cli.terminal import one_line

    name = one_line(str(folder))
    if not trust.remove(folder):
        print(f"agentd: {name} was not trusted.", file=sys.stderr)
        return 1
    print(f"No longer trusted: {name}")
    return 0


def _list(trust: "Trust", configured: tuple[Path, ...], as_json: bool) -> None:
    from agentd.cli.inquiry import print_table

    rows = [(str(folder), trusted, "agentd trust") for folder, trusted in trust.folders().items()]
    rows += [(str(folder), True, "configuration") for folder in configured]
    if as_json:
        print(json.dumps([{"folder": folder, "trusted": said, "by": by} for folder, said, by in rows]))
    else:
        print_table([(folder, "trusted" if said else "not trusted", by) for folder, said, by in rows])
