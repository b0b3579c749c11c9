"""Whether a tool call may run: section 6 of the protocol as one function.

| mode | reading the workspace | writing inside it | anything else |
|---|---|---|---|
| `plan` | free | denied | denied |
| `ask` | free | asks | asks |
| `edit` | free | free | asks |
| `auto` | free | free | free inside the sandbox, asks outside it |
| `full` | free | free | free |

Files with secrets ask in every mode but `full`. An untrusted workspace makes `edit`, `auto` and `full` act as
`ask`. What the user allowed for good is not asked again, but no answer makes `plan` write. Of the rules that
the user has written for commands, one that denies holds in every mode, and one that asks in every mode but
`full`.
"""

from dataclasses import dataclass
from typing import Literal

from agentd.permissions.rules import Rules
from agentd.protocol.messages import EditSubject, Mode, PermissionSubject, ReadSubject, ToolKind

_READING: frozenset[ToolKind] = frozenset({"read", "search", "think"})
_WRITING: frozenset[ToolKind] = frozenset({"edit", "delete", "move"})


Manner = Literal["plain", "sandboxed", "rebuilt"]
"""How a call runs: as it stands, inside the sandbox, or in the form in which a rule has judged it."""


@dataclass(frozen=True)
class Allow:
    """It may run, in this manner and no other."""

    manner: Manner = "plain"


@dataclass(frozen=True)
class Ask:
    """The user has to be asked."""


@dataclass(frozen=True)
class Deny:
    """It may not run, and nobody is asked. `reason` goes to the model and names the way out."""

    reason: str


Decision = Allow | Ask | Deny


@dataclass(frozen=True)
class Proposal:
    """A prepared tool call as far as it is judged: the tool's and its action's own (see `tools/base.py`)."""

    tool_name: str
    kind: ToolKind
    subject: PermissionSubject | None
    secret: bool = False
    sandboxable: bool = False
    rebuildable: bool = False


def decide(proposal: Proposal, *, mode: Mode, trusted: bool, remembered: Rules) -> Decision:
    """What is to happen with a prepared tool call. `trusted` is whether the user trusts the workspace."""
    subject, acting = proposal.subject, _acting_mode(mode, trusted)
    if (forbidden := _forbidden(proposal, acting, remembered)) is not None:
        return forbidden
    if acting == "full":
        return Allow()
    if remembered.asking(subject) is not None:
        return Ask()
    manner = _manner_of_mode(acting, proposal)
    if manner is None and subject is not None:
        manner = remembered.covers(proposal.tool_name, subject, trusted=trusted, secret=proposal.secret)
    if manner is None or (manner == "rebuilt" and not proposal.rebuildable):
        return Ask()
    return Allow(manner)


def _forbidden(proposal: Proposal, acting: Mode, remembered: Rules) -> Deny | None:
    """What no answer could allow."""
    name, subject = proposal.tool_name, proposal.subject
    if acting == "plan" and proposal.kind not in _READING:
        return Deny(
            f'Mode "plan" only reads, so {name} may not run. Describe what you would do instead; '
            f'the user can switch to mode "ask" to have it done.'
        )
    if (denied := remembered.denying(subject)) is not None:
        return Deny(f'A rule of the user denies "{denied}". Do without it, or say what you need it for.')
    if proposal.secret and subject is None and acting != "full":
        return Deny(f"{name} touches a secret and does not say which, so nobody can be asked about it.")
    return None


def _manner_of_mode(mode: Mode, proposal: Proposal) -> Manner | None:
    """How a mode lets a call run by itself; None where it does not."""
    if proposal.secret:
        return None
    if _is_free(mode, proposal.kind, proposal.subject):
        return "plain"
    return "sandboxed" if mode == "auto" and proposal.sandboxable else None


def _acting_mode(mode: Mode, trusted: bool) -> Mode:
    """The mode that a mode comes to: only `plan` needs no trust."""
    return mode if mode == "plan" or trusted else "ask"


def _is_free(mode: Mode, kind: ToolKind, subject: PermissionSubject | None) -> bool:
    """Whether a call that touches no secret runs without a question.

    What a call would touch counts for more than the kind its tool claims to be.
    """
    match subject:
        case None:
            return True
        case ReadSubject():
            return kind in _READING
        case EditSubject():
            return mode in ("edit", "auto") and kind in _WRITING
        case _:
            return False
