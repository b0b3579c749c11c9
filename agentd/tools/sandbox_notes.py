"""What the model is told of the sandbox after a command ran in it: only what helps it to go on."""

import re

from agentd.protocol.text import visible
from agentd.workspace.command import CommandResult
from agentd.workspace.enclosure import Enclosure
from agentd.workspace.policy import Policy

_NAMED_PATHS = 10

# How programs say that they were kept from something, in the words of libc, Node, Go and resolvers.
_KEPT_FROM = re.compile(
    r"read-only file ?system|permission denied|operation not permitted|network is (?:unreachable|down)"
    r"|could ?n.t resolve|could not resolve|temporary failure in name resolution|name or service not known"
    r"|no such host|unknown host|failed to establish a new connection|no route to host"
    r"|\b(?:EROFS|EACCES|EPERM|ENETUNREACH|EHOSTUNREACH|EAI_AGAIN|ENOTFOUND)\b",
    re.IGNORECASE,
)


async def sandbox_notes(enclosure: Enclosure, result: CommandResult) -> list[str]:
    """One line for each thing that the model must know."""
    notes = []
    if (result.exit_code != 0 or result.timed_out) and _KEPT_FROM.search(result.text):
        notes.append(
            f"[this ran in the sandbox, which may be why it failed: {_withheld(enclosure.policy)}. If it "
            "needs more, call bash again with `unsandboxed` set to the reason, and the user is asked]"
        )
    if changed := await enclosure.changes():
        names = ", ".join(visible(str(path), kept="") for path in changed[:_NAMED_PATHS])
        more = f" and {len(changed) - _NAMED_PATHS} more" if len(changed) > _NAMED_PATHS else ""
        notes.append(
            "[made or changed in the sandbox, and run by git or the editor later: "
            f"{names}{more}. Tell the user to look at this]"
        )
    return notes


def _withheld(policy: Policy) -> str:
    network = "" if policy.network else "there is no network, "
    return (
        f"{network}only the workspace and $TMPDIR can be written to, and repositories' .git folders, editor "
        "settings, files with secrets and /run are closed"
    )
