"""What agentd announces in `initialize`, as plain data.

Standard library only: `boot.py` answers `initialize` from here before anything else is imported. A method or
feature stands here only when it works; tests hold this list against the registry of the running server.
"""

from collections.abc import Mapping
from typing import Any, Literal

from agentd import __version__

PROTOCOL = 1

METHODS = (
    "agentd/prompt",
    "agentd/cancel",
    "agentd/session/new",
    "agentd/session/list",
    "agentd/session/get",
    "agentd/session/update",
    "agentd/session/attach",
    "agentd/session/export",
    "agentd/session/compact",
    "agentd/session/fork",
    "agentd/session/rewind",
    "agentd/session/diff",
    "agentd/session/original",
    "agentd/session/close",
    "agentd/session/delete",
    "agentd/queue/update",
    "agentd/status",
    "agentd/models",
    "agentd/tools",
    "agentd/commands",
    "agentd/schema",
    "agentd/credentials/set",
    "agentd/permission/respond",
    "agentd/permissions/rules",
    "agentd/permissions/revoke",
)
"""The `agentd/*` requests that are answered."""

NOTIFICATIONS = (
    "agentd/trust/didChange",
    "agentd/diagnostics/publish",
    "agentd/document/unsaved",
    "agentd/focus",
)
"""The `agentd/*` notifications that are acted on."""

FEATURES: dict[str, Any] = {
    "permissions": True,
    "images": True,
    "queue": True,
    "steer": True,
    "attach": True,
    "compaction": True,
    "fork": True,
    "rewind": True,
    "diff": True,
    "subagents": True,
    "diagnostics": True,
    "save": True,
    "focus": True,
    "commands": True,
    "references": True,
}
"""Optional parts of the protocol that work in this version."""

COMMANDS = (
    "agentd.prompt",
    "agentd.fix",
    "agentd.edit",
    "agentd.explain",
    "agentd.test",
    "agentd.cancel",
    "agentd.approve",
    "agentd.reject",
    "agentd.showTranscript",
    "agentd.showDiff",
    "agentd.undo",
    "agentd.newSession",
    "agentd.setModel",
    "agentd.setMode",
)
"""What `workspace/executeCommand` takes."""

ACTION_KINDS = ("quickfix", "refactor.rewrite", "source")
"""The kinds of code actions that are offered."""

DOCUMENT_SYNC: dict[str, Any] = {"openClose": True, "change": 2, "save": {"includeText": False}}
"""What the client is to tell of its documents: incremental changes."""

MAX_PROCESS_ID = 2**31 - 1
"""LSP's largest integer; no system has a process beyond it."""

LIMITS = {
    "maxMessageBytes": 64 * 1024 * 1024,
    "maxInFlight": 256,
    "maxQueue": 32,
    "maxReplayEvents": 20_000,
}


def initialize_result(
    capabilities: Any, *, whole_documents: bool = False, at_once: bool = False
) -> dict[str, Any]:
    """The `InitializeResult` for a client of these capabilities, without what is registered with it later.

    `whole_documents`: it is asked for the whole text at each change. `at_once`: documents and code actions
    are announced here, though it would take registrations of them.
    """
    announced: dict[str, Any] = {}
    if at_once or not takes_documents_later(capabilities):
        announced["textDocumentSync"] = {**DOCUMENT_SYNC, "change": 1} if whole_documents else DOCUMENT_SYNC
    if at_once or not takes_actions_later(capabilities):
        announced["codeActionProvider"] = {"codeActionKinds": list(ACTION_KINDS)}
    return {
        "capabilities": {
            "positionEncoding": position_encoding(capabilities),
            **announced,
            "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
            "executeCommandProvider": {"commands": list(COMMANDS)},
            "experimental": {
                "agentd": {
                    "protocol": PROTOCOL,
                    "version": __version__,
                    "methods": [*METHODS, *NOTIFICATIONS],
                    "features": FEATURES,
                    "limits": LIMITS,
                }
            },
        },
        "serverInfo": {"name": "agentd", "version": __version__},
    }


def takes_documents_later(capabilities: Any) -> bool:
    """Whether documents are registered once the client runs, and not announced."""
    return said(capabilities, "textDocument", "synchronization", "dynamicRegistration")


def takes_actions_later(capabilities: Any) -> bool:
    """The same of code actions: only with the documents, since for them alone nothing is gained."""
    registers = said(capabilities, "textDocument", "codeAction", "dynamicRegistration")
    return registers and takes_documents_later(capabilities)


def said(capabilities: Any, *names: str) -> bool:
    """Whether the client says true to a capability; what is of another form than LSP's counts as not said."""
    found = capabilities
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found is True


def position_encoding(capabilities: Any) -> Literal["utf-8", "utf-16"]:
    """The encoding to count characters in: utf-8 where the client offers it, else LSP's default utf-16."""
    general = capabilities.get("general") if isinstance(capabilities, dict) else None
    offered = general.get("positionEncodings") if isinstance(general, dict) else None
    return "utf-8" if isinstance(offered, list) and "utf-8" in offered else "utf-16"
