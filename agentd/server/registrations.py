"""What is registered with the client once it runs, in place of being announced in `initialize`.

Registered is what gains by it: documents and code actions for files and untitled documents of every language,
whatever selector the client was started with; and changes of the settings, which cannot be announced. What is
registered is not announced, as editors would ask twice. Commands and workspace folders know no selector, so
they are announced; files are not watched, as instructions, skills, commands and settings of a workspace are
looked at when they are needed.
"""

from collections.abc import Mapping
from typing import Any

from agentd.protocol.capabilities import (
    ACTION_KINDS,
    DOCUMENT_SYNC,
    said,
    takes_actions_later,
    takes_documents_later,
)

SECTION = "agentd"
"""Of the editor's settings."""

_SELECTOR = [{"scheme": "file"}, {"scheme": "untitled"}]
"""Not what lies elsewhere: an editor's own settings, output and old versions are documents, too."""


def registrations(capabilities: Mapping[str, Any], *, at_once: bool = False) -> list[dict[str, Any]]:
    """The params of `client/registerCapability` for a client of these capabilities.

    `at_once`: documents and code actions were announced to it nevertheless.
    """
    found: dict[str, dict[str, Any]] = {}
    if not at_once and takes_documents_later(capabilities):
        documents = {"documentSelector": _SELECTOR}
        found["textDocument/didOpen"] = found["textDocument/didClose"] = documents
        found["textDocument/didChange"] = {**documents, "syncKind": DOCUMENT_SYNC["change"]}
        found["textDocument/didSave"] = {**documents, **DOCUMENT_SYNC["save"]}
    if not at_once and takes_actions_later(capabilities):
        kinds = {"codeActionKinds": list(ACTION_KINDS)}
        found["textDocument/codeAction"] = {"documentSelector": _SELECTOR, **kinds}
    if said(capabilities, "workspace", "didChangeConfiguration", "dynamicRegistration"):
        found["workspace/didChangeConfiguration"] = {"section": SECTION}
    return [
        {"id": f"agentd:{method}", "method": method, "registerOptions": options}
        for method, options in found.items()
    ]
