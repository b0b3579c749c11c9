"""Rules that outlive their session: those of a workspace, and those of the user for every workspace.

They lie in the user's data folder, one document per workspace folder (named by a digest of its resolved path)
and one for the user, and are looked at anew at each judgement: what another process adds or revokes counts at
the next tool call. Beside them a workspace's document names the rules of sessions that were revoked, since a
journal, which tells of the answer, is never rewritten.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from agentd.config.folders import data_dir
from agentd.config.state_file import Document, StateError, StateFile
from agentd.permissions.patterns import Pattern, PatternType
from agentd.protocol.methods import Problem

Scope = Literal["session", "workspace", "user"]


@dataclass(frozen=True)
class Rule:
    """An answer given for good: calls of this tool that one of the patterns covers need no question."""

    rule_id: str
    scope: Scope
    tool: str
    patterns: tuple[Pattern, ...]
    created_at: str


class RuleStore:
    """The rules below `folder`. Blocks on the disk, for a look at two files' status as a rule."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, StateFile] = {}

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> "RuleStore":
        """The rules of the user whose variables these are."""
        return cls(data_dir(environ) / "permissions")

    def rules(self, root: Path) -> tuple[Rule, ...]:
        """The rules that hold in a workspace folder, which is resolved. What is damaged grants nothing."""
        found: list[Rule] = []
        for scope, file in self._scopes(root):
            try:
                found += _rules(file, scope)
            except StateError:
                continue  # `problems` says so
        return tuple(found)

    def add(self, rule: Rule, root: Path) -> None:
        """Keep a rule of scope `workspace` (that of `root`) or `user`. Raises StateError."""
        if self._folder.is_relative_to(root):
            raise StateError(f"{self._folder} lies inside the workspace, so no rules are kept there.")
        file = self._file(root if rule.scope == "workspace" else None)
        with file.change() as document:
            _rules(file, rule.scope)  # what is damaged is not built upon
            if rule.scope == "workspace":
                document["workspace"] = os.fsencode(root).decode("utf-8", "replace")
            document["rules"] = [*_list(document, "rules"), _written(rule)]

    def revoke(self, rule_id: str) -> bool:
        """Take a rule back, whichever workspace's it is; False where there is none. Raises StateError."""
        for path in self._folder.glob("*.json") if self._folder.is_dir() else ():
            file = self._files.setdefault(path, StateFile(path))
            if not any(
                isinstance(rule, dict) and rule.get("ruleId") == rule_id
                for rule in _list(file.read(), "rules")
            ):
                continue
            with file.change() as document:
                document["rules"] = [
                    rule for rule in _list(document, "rules") if rule.get("ruleId") != rule_id
                ]
            return True
        return False

    def revoke_of_session(self, rule_id: str, root: Path) -> None:
        """Note that a rule of a session is no more. Raises StateError."""
        with self._file(root).change() as document:
            document["revoked"] = [*_list(document, "revoked"), rule_id]

    def is_revoked(self, rule_id: str, root: Path) -> bool:
        """Whether a rule of a session was revoked; also where that cannot be told."""
        try:
            return rule_id in _list(self._file(root).read(), "revoked")
        except StateError:
            return True

    def problems(self, roots: Iterable[Path]) -> tuple[Problem, ...]:
        """What is wrong with the documents that matter in these workspace folders."""
        found = {}
        for root in roots:
            for scope, file in self._scopes(root):
                try:
                    _rules(file, scope)
                except StateError as error:
                    found[file.path] = str(error)
        return tuple(
            Problem(severity="error", message=message, uri=path.as_uri()) for path, message in found.items()
        )

    def _scopes(self, root: Path) -> tuple[tuple[Scope, StateFile], ...]:
        if self._folder.is_relative_to(root):
            return ()  # whoever works in the workspace could write them
        return (("workspace", self._file(root)), ("user", self._file(None)))

    def _file(self, root: Path | None) -> StateFile:
        name = "user" if root is None else hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        path = self._folder / f"{name}.json"
        return self._files.setdefault(path, StateFile(path))


def _rules(file: StateFile, scope: Scope) -> list[Rule]:
    try:
        return [_read(rule, scope) for rule in _list(file.read(), "rules")]
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"{file.path} is damaged; nothing in it counts. Repair it or remove it.") from error


def _list(document: Document, name: str) -> list[Any]:
    found = document.get(name, [])
    if not isinstance(found, list):
        raise StateError(
            f"The list of {name} is damaged; nothing in it counts. Repair the file or remove it."
        )
    return found


def _read(rule: Any, scope: Scope) -> Rule:
    """A rule as it was written. Raises KeyError, TypeError or ValueError for one that we did not write."""
    patterns = tuple(_pattern(pattern) for pattern in rule["patterns"])
    texts = (rule["ruleId"], rule["tool"], rule["createdAt"])
    if not patterns or not all(isinstance(text, str) and text for text in texts):
        raise ValueError("no rule")
    return Rule(texts[0], scope, texts[1], patterns, texts[2])


def _pattern(pattern: Any) -> Pattern:
    if pattern["type"] not in get_args(PatternType) or not isinstance(pattern["parts"], list):
        raise ValueError("no pattern")
    if pattern["parts"][:1] in ([], ["*"]) or not all(isinstance(part, str) for part in pattern["parts"]):
        raise ValueError("no pattern")
    return Pattern(pattern["type"], tuple(pattern["parts"]))


def _written(rule: Rule) -> Document:
    return {
        "ruleId": rule.rule_id,
        "tool": rule.tool,
        "patterns": [{"type": pattern.type, "parts": list(pattern.parts)} for pattern in rule.patterns],
        "createdAt": rule.created_at,
    }
