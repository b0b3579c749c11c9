"""What editors and agentd tell each other of documents: diagnostics, saving, where the user looks."""

from agentd.protocol.messages import Range
from agentd.protocol.wire import Many, Wire, absent


class Diagnostic(Wire):
    """A diagnostic of LSP. `severity`: 1 error, 2 warning, 3 information, 4 hint."""

    range: Range
    message: str
    severity: int | None = absent()
    code: int | str | None = absent()
    source: str | None = absent()


class DocumentDiagnostics(Wire):
    """The diagnostics of a document, at a version where that is known. `agentd/diagnostics/publish`, too."""

    uri: str
    version: int | None = absent()
    diagnostics: Many[Diagnostic]


class DiagnosticsGetParams(Wire):
    """`agentd/diagnostics/get`: of these documents or all, once they are those of the present text."""

    uris: Many[str] | None = absent()
    timeout_ms: int


class DiagnosticsGetResult(Wire):
    """What the editor knows by then."""

    items: Many[DocumentDiagnostics]


class UnsavedParams(Wire):
    """`agentd/document/unsaved`: all files that are open as something else than text and not saved."""

    uris: Many[str]


class DocumentSaveParams(Wire):
    """`agentd/document/save`."""

    uris: Many[str]


class UnsavedDocument(Wire):
    """A document that could not be saved."""

    uri: str
    reason: str


class DocumentSaveResult(Wire):
    """The documents that were saved, and those that were not."""

    saved: Many[str]
    failed: Many[UnsavedDocument] = ()


class FocusParams(Wire):
    """`agentd/focus`: the document that the user looks at, what is selected and what can be seen of it.

    Without `uri` it is none.
    """

    uri: str | None = absent()
    selection: Range | None = absent()
    visible: Range | None = absent()
