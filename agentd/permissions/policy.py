"""Whether a tool call may run: section 6 of the protocol as one function.

| mode | reading the workspace | writing inside it | anything else |
|---|---|---|---|
| `plan` | free | denied | denied |
| `ask` | free | asks | asks |
| `edit` | free | free | asks |
| `auto` | as `ask` until a sandbox exists | | |
| `full` | free | free | free |

Files with secrets ask in every mode but `full`. An untrusted workspace makes `edit`, `auto` and `full` act as
`ask`. What the user allowed for the session is not asked again, but no answer makes `plan` write.
"""

from dataclasses import dataclass

from agentd.permissions.rules import Rules
from agentd.protocol.messages import EditSubject, Mode, PermissionSubject, ReadSubject, ToolKind

_READING: frozenset[ToolKind] = frozenset({"read", "search", "think"})
_WRITING: frozenset[ToolKind] = frozenset({"edit", "delete", "move"})


@dataclass(frozen=True)
class Allow:
    """It may run."""


@dataclass(frozen=True)
class Ask:
    """The user has to be asked."""


@dataclass(frozen=True)
class Deny:
    """It may not run, and nobody is asked. `reason` goes to the model and names the way out."""

    reason: str


Decision = Allow | Ask | Deny


def decide(
    *,
    mode: Mode,
    tool_name: str,
    kind: ToolKind,
    subject: PermissionSubject | None,
    secret: bool,
    trusted: bool,
    remembered: Rules,
) -> Decision:
    """What is to happen with a prepared tool call.

    `kind`, `subject` and `secret` are the tool's and its action's own (see `tools/base.py`); `trusted` is
    whether the user trusts the workspace.
    """
    acting = _acting_mode(mode, trusted)
    if acting == "plan" and kind not in _READING:
        return Deny(
            f'Mode "plan" only reads, so {tool_name} may not run. Describe what you would do instead; '
            f'the user can switch to mode "ask" to have it done.'
        )
    if acting == "full" or (not secret and _is_free(acting, kind, subject)):
        return Allow()
    if subject is None:
        return Deny(f"{tool_name} touches a secret and does not say which, so nobody can be asked about it.")
    if remembered.covers(tool_name, subject):
        return Allow()
    return Ask()


def _acting_mode(mode: Mode, trusted: bool) -> Mode:
    """The mode that a mode comes to: only `plan` needs no trust, and `auto` needs a sandbox."""
    if mode == "plan":
        return mode
    return "ask" if mode == "auto" or not trusted else mode


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
            return mode == "edit" and kind in _WRITING
        case _:
            return False
