"""Rules for commands as people write them: `[permissions]` with `deny`, `ask` and `allow`.

A rule is the beginning of a command, word by word: `git push`, `npm test`. What it covers is said in
`permissions/patterns.py`.
"""

import shlex
from dataclasses import dataclass

from agentd.config.provider_settings import not_known
from agentd.config.toml_table import Table, shown

Words = tuple[str, ...]

_KINDS = ("deny", "ask", "allow")
_SIGNS = set(";|&<>()$`\n\\")


@dataclass(frozen=True)
class CommandRules:
    """The words of each rule. Deny goes before ask, ask before allow.

    `are_unknown`: something that may be a rule cannot be understood, so every command is asked about.
    """

    deny: tuple[Words, ...] = ()
    ask: tuple[Words, ...] = ()
    allow: tuple[Words, ...] = ()
    are_unknown: bool = False

    def stricter(self, other: "CommandRules") -> "CommandRules":
        """These rules, and of the others those that forbid or ask."""
        unknown = self.are_unknown or other.are_unknown
        return CommandRules(self.deny + other.deny, self.ask + other.ask, self.allow, unknown)


NO_RULES = CommandRules()
UNKNOWN_RULES = CommandRules(are_unknown=True)


def command_rules(top: Table, kinds: tuple[str, ...] = _KINDS) -> CommandRules:
    """The rules that a document holds; what is wrong is complained of and left out.

    What was left out may have forbidden something, unless it stands under `allow`.
    """
    table = top.table("permissions")
    if table is None:
        return _unknown(top, "permissions") if "permissions" in top else NO_RULES
    left_out = [name for name, _ in table.unknown(_KINDS)]
    for name in left_out:
        table.complain(name, not_known(name, _KINDS))
    read = {kind: _rules(table, kind) for kind in kinds}
    left_out += [kind for kind in ("deny", "ask") if not read[kind][1]]
    deny, ask, allow = (read.get(kind, ((), True))[0] for kind in _KINDS)
    rules = CommandRules(deny, ask, allow)
    return rules.stricter(_unknown(table, left_out[0])) if left_out else rules


def _unknown(table: Table, name: str) -> CommandRules:
    table.complain(name, "what it forbids is not known, so every command is asked about, but in mode full")
    return UNKNOWN_RULES


def _rules(table: Table, kind: str) -> tuple[tuple[Words, ...], bool]:
    """The rules of a kind, and whether these are all that were meant."""
    texts, is_all = table.right_texts(kind)
    found = []
    for text in texts:  # a slip in one rule takes no other one out of force
        words = rule_words(text)
        if isinstance(words, str):
            table.complain(kind, f"{shown(text)} {words}")
        else:
            found.append(words)
    return tuple(found), is_all and len(found) == len(texts)


def rule_words(text: str) -> Words | str:
    """The words of a rule, or what is wrong with it."""
    if set(text) & _SIGNS:
        return "has to be the beginning of one plain command: words, without operators, variables or escapes"
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        return "has a quote that does not end"
    if not words or not words[0] or words[0].startswith(("*", "-")) or "=" in words[0]:
        return "has to begin with the name of a program"
    if "*" in words[:-1]:
        return 'may have "*" only as its last word, for any words that follow'
    return words
