"""What the editor knows to be wrong: as its client tells it by itself, or answers when it is asked."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from pydantic import ValidationError

from agentd.daemon.door import ClientError, Door
from agentd.protocol.documents import (
    Diagnostic,
    DiagnosticsGetParams,
    DiagnosticsGetResult,
    DocumentDiagnostics,
)
from agentd.protocol.methods import ClientOptions
from agentd.server.findings import SOURCE
from agentd.server.language_server import LanguageServer, key_of
from agentd.workspace.diagnostics import Known
from agentd.workspace.paths import uri_of

log = logging.getLogger(__name__)

KNOWN_SECONDS = 0.5
"""For what is known already."""
FRESH_SECONDS = 1.5
"""For the diagnostics of a text that has just changed."""
_MOST_VAIN = 3
"""So often an editor is waited for that tells nothing of files which are not open."""
_OVERTIME = 0.3
"""For an answer that keeps its time to be on its way."""


def _of_others(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Without what we have shown ourselves: the model would take its own words for the editor's."""
    return tuple(each for each in diagnostics if each.source != SOURCE)


@dataclass(frozen=True)
class _Published:
    number: int
    version: int | None
    diagnostics: tuple[Diagnostic, ...]


class EditorDiagnostics:
    """The diagnostics of the editor. `options` are set by `initialize`."""

    def __init__(self, door: Door, documents: LanguageServer) -> None:
        self.options: ClientOptions | None = None
        self._door = door
        self._documents = documents
        self._published: dict[Path, _Published] = {}
        self._number = 0
        self._news = anyio.Event()
        self._vain = 0  # how often in a row nothing came of a file that is not open

    def publish(self, params: DocumentDiagnostics) -> None:
        """`agentd/diagnostics/publish`: these take the place of those from before."""
        path = key_of(params.uri)
        if path is None:
            return
        self._number += 1
        if self._documents.text(path) is None:
            self._vain = 0
        self._published[path] = _Published(self._number, params.version, _of_others(params.diagnostics))
        self._news.set()
        self._news = anyio.Event()

    @property
    def _can_be_asked(self) -> bool:
        return self.options is not None and self.options.diagnostics

    async def known(self, paths: Sequence[Path] | None) -> Known | None:
        """What is known of these files, or of all; None where the editor tells nothing at all."""
        if not self._can_be_asked and not self._published:
            return None
        published = {
            path: each.diagnostics for path, each in self._published.items() if paths is None or path in paths
        }
        asked = await self._ask(paths, KNOWN_SECONDS) if self._can_be_asked else None
        found = {path: tuple(item.diagnostics) for path, item in (asked or {}).items()}
        return Known({**published, **found}, self._number)

    async def fresh(self, path: Path, since: Known) -> tuple[Diagnostic, ...] | None:
        """Those of a file's present text, once they are known; None where that takes too long.

        `since` is what was known before the text changed. Of a file that is not open they come when the
        editor's language servers have seen the change on the disk; an editor of which nothing came several
        times is not waited for then.
        """
        document = await self._documents.document(path)
        if document is None and self._vain >= _MOST_VAIN:
            return None
        start = anyio.current_time()
        found = await self._fresh(path, since, document.version if document is not None else None)
        if document is None:
            is_vain = anyio.current_time() - start >= FRESH_SECONDS / 2 and (
                found is None or found == since.by_file.get(path, ())
            )
            self._vain = self._vain + 1 if is_vain else 0
        return found

    async def _fresh(self, path: Path, since: Known, version: int | None) -> tuple[Diagnostic, ...] | None:
        """The same for a document at this version, or a file that is not open and has none."""
        if self._can_be_asked:
            item = (await self._ask([path], FRESH_SECONDS) or {}).get(path)
            if item is not None and (item.version is None or version is None or item.version >= version):
                return item.diagnostics
        if path not in self._published:  # of this file it tells nothing by itself, as it seems
            return None
        with anyio.move_on_after(FRESH_SECONDS):
            while True:
                last = self._published[path]
                if last.version is None or version is None:
                    is_fresh = last.number > since.number
                else:
                    is_fresh = last.version >= version
                if is_fresh:
                    return last.diagnostics
                await self._news.wait()
        return None

    async def _ask(
        self, paths: Sequence[Path] | None, seconds: float
    ) -> Mapping[Path, DocumentDiagnostics] | None:
        """`agentd/diagnostics/get`; None where no answer is to be had."""
        uris = None if paths is None else tuple([await self._uri(path) for path in paths])
        params = DiagnosticsGetParams(uris=uris, timeout_ms=int(seconds * 1000))
        answer: Any = None
        try:
            with anyio.move_on_after(seconds + _OVERTIME):
                answer = await self._door.ask("agentd/diagnostics/get", params)
            if answer is None:
                return None
            items = DiagnosticsGetResult.model_validate(answer).items
        except ClientError as error:
            log.warning("no diagnostics: %s", error)
            return None
        except ValidationError:  # whose text would repeat the answer
            log.warning("no diagnostics: the answer is none")
            return None
        return {
            path: item.model_copy(update={"diagnostics": _of_others(item.diagnostics)})
            for item in items
            if (path := key_of(item.uri)) is not None
        }

    async def _uri(self, path: Path) -> str:
        document = await self._documents.document(path)
        if document is not None:
            return document.uri
        return uri_of(path) if path.is_absolute() else str(path)
