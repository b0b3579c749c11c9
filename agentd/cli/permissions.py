"""`agentd permissions`: what was allowed for good, and taking it back."""

import argparse
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.cli.inquiry import Rows
    from agentd.client import Client
    from agentd.protocol.methods import PermissionRulesResult

_DESCRIPTION = """\
List what you allowed for good in a folder and everywhere, take it back, or allow a command yourself. A rule
is the beginning of a command. Of a program that agentd knows it covers the forms that only read, such as
those of "git log" but not "git log --output=FILE"; of any other program exactly the words of the rule, or
with * as its last word whatever follows. It counts in folders that you trust."""


def main(argv: list[str]) -> int:
    """Print or change the rules. Gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="agentd permissions",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-C", dest="folder", metavar="DIR", default=".", help="the folder to look from")
    parser.add_argument("--json", action="store_true", help="print the daemon's answer as it is, as JSON")
    parser.add_argument("--user", action="store_true", help="allow in every folder that you trust")
    parser.add_argument("action", nargs="?", choices=("list", "revoke", "allow"), default="list")
    parser.add_argument("operand", metavar="ID|RULE", nargs="?", help="the rule to revoke or to allow")
    said = parser.parse_intermixed_args(argv)  # an option may stand before the rule
    if not Path(said.folder).is_dir():
        parser.error(f"{said.folder!r} is no folder")
    if (said.action == "list") != (said.operand is None):
        parser.error("revoke and allow take a rule, and list takes none")
    return {"list": _list, "revoke": _revoke, "allow": _allow}[said.action](said)


def _list(said: Namespace) -> int:
    from agentd.cli.inquiry import inquire

    async def ask(client: "Client") -> "PermissionRulesResult":
        return await client.permission_rules()

    return inquire(said, ask, _rows) or _tell_problems(said.folder)


def _tell_problems(folder: str) -> int:
    """Say what keeps rules from counting. Gives the exit code."""
    from agentd.permissions.store import RuleStore

    problems = RuleStore.of_user(os.environ).problems([Path(os.path.realpath(folder))])
    for problem in problems:
        print(f"agentd: {problem.message}", file=sys.stderr)
    return 1 if problems else 0


def _rows(answer: "PermissionRulesResult") -> "Rows":
    return [(rule.rule_id, rule.scope, rule.tool, rule.pattern) for rule in answer.rules]


def _revoke(said: Namespace) -> int:
    from agentd.cli.inquiry import inquire

    async def ask(client: "Client") -> "PermissionRulesResult":
        await client.revoke_permission(said.operand)
        return await client.permission_rules()

    return inquire(said, ask, _rows)


def _allow(said: Namespace) -> int:
    from agentd.config.command_rules import rule_words
    from agentd.config.sources import Sources
    from agentd.config.state_file import StateError
    from agentd.permissions.known import Place, names_secret
    from agentd.permissions.patterns import Pattern, in_words, is_allowable
    from agentd.permissions.store import Rule, RuleStore, Scope

    root = Path(os.path.realpath(said.folder))
    words = rule_words(said.operand)
    if not isinstance(words, str) and not is_allowable(words):
        words = "names a program that runs others or changes what comes next, which is always asked about"
    elif not isinstance(words, str) and (secret := names_secret(words, Place(root, root))) is not None:
        words = f"names a file that may hold secrets ({secret}), which is always asked about"
    if isinstance(words, str):
        print(f"agentd: {said.operand!r} {words}.", file=sys.stderr)
        return 2
    sources = Sources()
    scope: Scope = "user" if said.user else "workspace"
    patterns = (Pattern("argv", words),)
    rule = Rule(sources.new_id("r"), scope, "bash", patterns, sources.now())
    try:
        RuleStore.of_user(os.environ).add(rule, root)
    except StateError as error:
        print(f"agentd: {error}", file=sys.stderr)
        return 1
    print(f"{rule.rule_id}: {in_words(patterns, rule.tool)}")
    return 0
