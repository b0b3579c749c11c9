"""What a session goes by beside its mode: what the user has answered for good, and the rules the user has
written.

Deny goes before ask, and ask before allow. What is allowed for the session is kept here, what is allowed for
longer in the store. A workspace that is not trusted knows only what was allowed in the session itself.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from agentd.config.command_rules import CommandRules, Words
from agentd.permissions.found import finds
from agentd.permissions.patterns import (
    Pattern,
    covering,
    exact,
    in_words,
    is_lasting,
    patterns_for,
)
from agentd.permissions.store import Rule, RuleStore
from agentd.protocol.messages import CommandSubject, PermissionOption, PermissionSubject

Covered = Literal["plain", "rebuilt"]
"""How what a rule covers runs: "plain", as it stands, or "rebuilt", in the form that was judged."""

_UNKNOWN = "rules that cannot be read"


class Rules:
    """The rules of one session in the workspace folder `root`.

    `written` gives the rules of the configuration as they are now; `store` is None where nothing is kept.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        store: RuleStore | None = None,
        written: Callable[[], CommandRules] = CommandRules,
    ) -> None:
        self._root = root
        self._store = store
        self._written = written
        self._session: dict[str, Rule] = {}

    # --- judging ----------------------------------------------------------------------------------

    def denying(self, subject: PermissionSubject | None) -> str | None:
        """The written rule that denies this, in words."""
        return self._speaking(self._written().deny, subject)

    def asking(self, subject: PermissionSubject | None) -> str | None:
        """The written rule that has the user asked about this, whatever else allows it."""
        written = self._written()
        if written.are_unknown and isinstance(subject, CommandSubject):
            return _UNKNOWN
        return self._speaking(written.ask, subject)

    def _speaking(self, rules: tuple[Words, ...], subject: PermissionSubject | None) -> str | None:
        if not isinstance(subject, CommandSubject):
            return None
        return next((" ".join(rule) for rule in rules if finds(rule, subject.command)), None)

    def covers(
        self, tool_name: str, subject: PermissionSubject, *, trusted: bool = True, secret: bool = False
    ) -> Covered | None:
        """How this runs without a question; None where no rule covers it."""
        session = [p for rule in self._session.values() if rule.tool == tool_name for p in rule.patterns]
        lasting: list[Pattern] = []
        if trusted and not secret and self._store is not None:
            rules = self._store.rules(self._root)
            lasting = [p for rule in rules if rule.tool == tool_name for p in rule.patterns]
        if not isinstance(subject, CommandSubject):
            return "plain" if exact(subject) in (*session, *lasting) else None
        if trusted:
            lasting += [Pattern("argv", words) for words in self._written().allow]
        if covering((*session, *lasting), subject, self._root) is not None:
            return "rebuilt"
        is_known = exact(subject) in session and patterns_for(subject, self._root)
        return "plain" if is_known else None

    # --- answering --------------------------------------------------------------------------------

    def options(
        self, tool_name: str, subject: PermissionSubject, *, trusted: bool = True, secret: bool = False
    ) -> tuple[PermissionOption, ...]:
        """The answers that a question offers: once, for the session, in this workspace, no.

        What has to be asked about each time is not offered for longer than once.
        """
        patterns = patterns_for(subject, self._root) if self.asking(subject) is None else ()
        options = [
            PermissionOption(option_id="allow_once", label="Allow once", kind="allow_once", scope="once")
        ]
        words = in_words(patterns, tool_name, self._root)
        if patterns:
            options.append(
                PermissionOption(
                    option_id="allow_always",
                    label="Allow for this session",
                    kind="allow_always",
                    scope="session",
                    rule=words,
                )
            )
        if is_lasting(patterns) and trusted and not secret and self._store is not None:
            options.append(
                PermissionOption(
                    option_id="allow_workspace",
                    label="Always allow in this workspace",
                    kind="allow_always",
                    scope="workspace",
                    rule=words,
                )
            )
        options.append(
            PermissionOption(option_id="reject_once", label="Reject", kind="reject_once", scope="once")
        )
        return tuple(options)

    def remember(
        self, rule_id: str, tool_name: str, subject: PermissionSubject, option: PermissionOption, at: str
    ) -> None:
        """Take an answer for good. Raises StateError where it cannot be kept: it holds for the session."""
        patterns = _told_by(option, tool_name, subject, self._root)
        if option.kind != "allow_always" or not patterns:
            return
        if option.scope == "workspace" and self._store is not None:
            rule = Rule(rule_id, "workspace", tool_name, patterns, at)
            try:
                self._store.add(rule, self._root)
                return
            except Exception:
                self._session[rule_id] = Rule(rule_id, "session", tool_name, patterns, at)
                raise
        self._session[rule_id] = Rule(rule_id, "session", tool_name, patterns, at)

    def recall(
        self, rule_id: str, tool_name: str, subject: PermissionSubject, option: PermissionOption, at: str
    ) -> None:
        """Take an answer that was given before a restart, unless it was revoked or is kept elsewhere."""
        if option.scope != "session" or (
            self._store is not None and self._store.is_revoked(rule_id, self._root)
        ):
            return
        self.remember(rule_id, tool_name, subject, option, at)

    # --- looking and taking back ------------------------------------------------------------------

    @property
    def of_session(self) -> tuple[Rule, ...]:
        """What was allowed for the session."""
        return tuple(self._session.values())

    def revoke(self, rule_id: str) -> bool:
        """Take back what was allowed for the session; False where it is none of it. Raises StateError."""
        if rule_id not in self._session:
            return False
        del self._session[rule_id]
        if self._store is not None:
            self._store.revoke_of_session(rule_id, self._root)
        return True


def _told_by(
    option: PermissionOption, tool_name: str, subject: PermissionSubject, root: Path
) -> tuple[Pattern, ...]:
    """What an option covers: never more than its words say, whichever version of agentd wrote them."""
    candidates = (patterns_for(subject, root), (exact(subject),))
    return next((each for each in candidates if in_words(each, tool_name, root) == option.rule), ())
