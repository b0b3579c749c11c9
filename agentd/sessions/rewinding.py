"""Going back to just before a prompt: its files, its messages or both, and undoing that.

A rewind is looked at whole before anything is done. Files come first, since only they can fail; then one
event says what happened. When the daemon dies before that event is in the journal, the next one brings the
files back to what they were.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import anyio.to_thread
from anyio import CancelScope

from agentd.agent.host import NotJournaled
from agentd.protocol.errors import RpcError
from agentd.protocol.events import RewindScope, RewoundFile, SessionRewound, TodoChanged
from agentd.protocol.messages import Message
from agentd.protocol.methods import SessionRewindParams, SessionRewindResult
from agentd.sessions.house import House
from agentd.sessions.log import SessionLog, refusing
from agentd.sessions.state import Rewound, SessionState
from agentd.tools.diff import action_of
from agentd.workspace import restoring
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.file_states import Change, Parts
from agentd.workspace.paths import OutsideWorkspace, Place, WorkspaceError, path_of, resolve
from agentd.workspace.restoring import Restoration
from agentd.workspace.restoring_buffers import (
    Buffers,
    BufferStep,
    apart,
    plan_buffers,
    remove_in_editor,
    together,
)
from agentd.workspace.seen import SeenFiles
from agentd.workspace.shell import Shell
from agentd.workspace.untitled import is_untitled, untitled
from agentd.workspace.wants import Wanted, undone, wanted

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """What a rewind is going to do. `undo` where it turns round the one before."""

    prompt_id: str
    scope: RewindScope
    files: tuple[Restoration, ...]
    removed: tuple[Message, ...] = ()
    restored: tuple[Message, ...] = ()
    undo: bool = False

    @property
    def steps(self) -> list[Restoration]:
        """The files that it changes."""
        return [each for each in self.files if each.conflict is None]

    @property
    def _told(self) -> tuple[RewoundFile, ...]:
        """What becomes of each file, on the disk where that is another matter than its open document."""
        return tuple({step.place.parts: _told(step) for step in self.files}.values())

    @property
    def result(self) -> SessionRewindResult:
        """What is answered."""
        return SessionRewindResult(
            files=self._told,
            removed_message_ids=_ids(self.removed),
            restored_message_ids=_ids(self.restored) if self.undo else None,
        )

    @property
    def event(self) -> SessionRewound:
        """What is journaled and sent."""
        return SessionRewound(
            prompt_id=self.prompt_id,
            scope=self.scope,
            removed_message_ids=_ids(self.removed),
            files=self._told,
            undo=True if self.undo else None,
            restored_message_ids=_ids(self.restored) if self.undo else None,
        )


class Rewinding:
    """Rewinds one session. Whoever calls sees to it that nothing else happens in the session meanwhile."""

    def __init__(
        self,
        root: Path,
        log: SessionLog,
        house: House,
        checkpoints: Checkpoints,
        seen: SeenFiles,
        shell: Shell,
        by: str | None = None,
    ) -> None:
        """`shell` knows what runs beside it; `by` is the prompt that wants it, which has not begun."""
        self._root = root
        self._log = log
        self._house = house
        self._checkpoints = checkpoints
        self._seen = seen
        self._shell = shell
        self._own = {"rewoundBy": by} if by is not None else {}

    async def run(self, params: SessionRewindParams) -> SessionRewindResult:
        """Do it, or with `dry_run` say what would be done.

        Raises `RpcError` invalidParams, promptNotFound, outsideWorkspace or storage; then nothing has
        changed.
        """
        plan = await self._plan(params)
        if not params.dry_run and (plan.steps or plan.removed or plan.restored):
            with CancelScope(shield=True):
                await self._carry_out(plan)
        return plan.result

    async def _plan(self, params: SessionRewindParams) -> Plan:
        state = self._log.state
        try:
            told, notes = frozenset(state.rewinds), self._house.write_notes
            await anyio.to_thread.run_sync(restoring.settle, self._checkpoints, self._root, told, notes)
            changes = await anyio.to_thread.run_sync(self._checkpoints.changes)
        except (WorkspaceError, OSError) as error:
            raise _storage(error) from error
        known = {change.parts for change in changes}
        only = await anyio.to_thread.run_sync(_parts, self._root, params.uris, known)
        if params.undo:
            return await self._plan_undo(_undoable(state, params), changes)
        prompt_id, scope = _asked(state, params)
        files: tuple[Restoration, ...] = ()
        if scope != "conversation":
            wants = wanted(changes, state.since(prompt_id))
            files = await self._files(_chosen(wants, only, params.uris))
        removed = () if scope == "files" else state.removed_by(prompt_id)
        return Plan(prompt_id, scope, files, removed)

    async def _plan_undo(self, last: Rewound, changes: Sequence[Change]) -> Plan:
        files = await self._files(undone(changes, last.rewind_id))
        if last.is_undone:
            removed = () if last.scope == "files" else self._log.state.removed_by(last.prompt_id)
            return Plan(last.prompt_id, last.scope, files, removed)
        return Plan(last.prompt_id, last.scope, files, restored=last.removed, undo=True)

    async def _files(self, wants: Sequence[Wanted]) -> tuple[Restoration, ...]:
        editor = self._house.editor
        try:
            wants = await apart(editor, self._root, wants)
            buffers, others = await plan_buffers(editor, self._checkpoints, self._root, wants)
            dirty = frozenset(await editor.dirty_paths())
            found = await anyio.to_thread.run_sync(
                restoring.plan, self._checkpoints, self._root, others, dirty
            )
        except WorkspaceError as error:
            raise _storage(error) from error
        return tuple(together((*buffers, *found)))

    async def _carry_out(self, plan: Plan) -> None:
        rewind_id = self._house.sources.new_id("r")
        todo = self._log.state.todo
        steps = [step for step in plan.steps if not _is_text(step)]
        for step in steps:
            self._house.writers.note(step.place.path, self._checkpoints, step.to)
        buffers = Buffers(self._house.editor, self._checkpoints, rewind_id)
        try:
            await buffers.restore([step for step in plan.steps if _is_text(step)])
            if steps:
                await self._restore(rewind_id, steps)
        except (WorkspaceError, OSError) as error:
            await buffers.take_back()
            raise _storage(error) from error
        try:
            self._log.record(plan.event, rewind=rewind_id, **self._own)
        except NotJournaled as error:
            await anyio.to_thread.run_sync(self._take_back, rewind_id, steps)
            await buffers.take_back()
            raise RpcError(error.kind, str(error), retryable=error.kind == "storage") from error
        with refusing():
            if self._log.state.todo != todo:
                self._log.record(TodoChanged(items=self._log.state.todo))
            await self._log.sync()
        if plan.scope != "files":
            self._seen.forget_all()  # the model does not remember what it read then
        self._seen.forget(step.place.path for step in plan.steps)
        try:
            await anyio.to_thread.run_sync(self._checkpoints.end_rewind)
        except OSError as error:
            log.warning("the plan of a rewind that is done could not be removed: %s", error)

    async def _restore(self, rewind_id: str, steps: Sequence[Restoration]) -> None:
        """Bring files back; those that go and are open go in the editor, as far as it does that."""
        await anyio.to_thread.run_sync(restoring.begin, self._checkpoints, rewind_id, steps)
        try:
            await remove_in_editor(self._house.editor, steps, is_alone=self._shell.is_alone)
        except (WorkspaceError, OSError):
            await anyio.to_thread.run_sync(self._take_back, rewind_id, steps)
            raise
        notes = self._house.write_notes
        await anyio.to_thread.run_sync(restoring.finish, self._checkpoints, rewind_id, steps, notes)

    def _take_back(self, rewind_id: str, steps: Sequence[Restoration]) -> None:
        if not steps:
            return
        changes = [step.change(rewind_id) for step in steps]
        try:
            restoring.take_back(self._checkpoints, self._root, changes, self._house.write_notes)
        except (WorkspaceError, OSError) as error:
            log.warning("a rewind could not be taken back, and will be when the session is opened: %s", error)


def _is_text(step: Restoration) -> TypeGuard[BufferStep]:
    """Whether it is one of a document's text, which nothing on the disk is to follow."""
    return isinstance(step, BufferStep) and not step.removes


def _asked(state: SessionState, params: SessionRewindParams) -> tuple[str, RewindScope]:
    """The prompt to go back to, and what goes back. Raises `RpcError`."""
    if params.prompt_id is None:
        raise RpcError("invalidParams", "/promptId: to what? Name a prompt, or say undo")
    if params.scope is None:
        raise RpcError("invalidParams", '/scope: say "files", "conversation" or "both"')
    if params.uris is not None and params.scope == "conversation":
        raise RpcError("invalidParams", '/uris: with scope "conversation" no file is restored')
    if begun(state, params.prompt_id) not in state.starts:
        raise RpcError(
            "promptNotFound",
            f'Prompt "{params.prompt_id}" was rewound: it is no part of the conversation any more.',
            hint="Undo that rewind, or rewind to a prompt that is there.",
        )
    return params.prompt_id, params.scope


def begun(state: SessionState, prompt_id: str) -> str:
    """A prompt that was said here, in a run of its own or in that of another. Raises `RpcError`."""
    if prompt_id not in state.begun:
        raise RpcError("promptNotFound", f'No prompt "{prompt_id}" has run in this session.')
    return prompt_id


def _undoable(state: SessionState, params: SessionRewindParams) -> Rewound:
    """The rewind to undo. Raises `RpcError`."""
    if params.prompt_id is not None or params.scope is not None or params.uris is not None:
        raise RpcError("invalidParams", "/undo: it undoes the last rewind as a whole; name nothing else")
    if state.rewound is None:
        raise RpcError(
            "invalidParams", "/undo: there is no rewind to undo, or the conversation has gone on since"
        )
    return state.rewound


def _parts(root: Path, uris: Sequence[str] | None, known: Collection[Parts]) -> list[Parts]:
    """The files that are named. Raises `RpcError` invalidParams or outsideWorkspace. Blocks."""
    found = []
    for number, uri in enumerate(uris or ()):
        try:
            found.append(place_of(root, uri, known).parts)
        except OutsideWorkspace as error:
            raise RpcError("outsideWorkspace", f"/uris/{number}: {error}") from error
        except WorkspaceError as error:
            raise RpcError("invalidParams", f"/uris/{number}: {error}") from error
    return found


def place_of(root: Path, uri: str, known: Collection[Parts]) -> Place:
    """The file that a URI names: one of `known` by its name, whatever stands there now, else where it leads.

    Raises WorkspaceError. Blocks.
    """
    if is_untitled(uri):
        return untitled(root, uri)
    path = path_of(uri)
    if path.is_relative_to(root) and (parts := path.relative_to(root).parts) in known:
        return Place(root, parts, "/".join(parts))
    return resolve(root, str(path))


def _chosen(wants: list[Wanted], only: Sequence[Parts], uris: Sequence[str] | None) -> list[Wanted]:
    """The files of the rewind, or those of them that are named. Raises `RpcError` invalidParams."""
    if uris is None:
        return wants
    known: Collection[Parts] = {want.parts for want in wants}
    for number, parts in enumerate(only):
        if parts not in known:
            raise RpcError(
                "invalidParams", f"/uris/{number}: this session has not changed that file since the prompt"
            )
    return [want for want in wants if want.parts in only]


def _told(file: Restoration) -> RewoundFile:
    return RewoundFile(
        uri=file.place.uri,
        action=action_of(file.now is not None, file.to is not None),
        conflict=file.conflict,
    )


def _ids(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(message.message_id for message in messages)


def _storage(error: WorkspaceError | OSError) -> RpcError:
    reason = str(error) if isinstance(error, WorkspaceError) else error.strerror
    return RpcError("storage", f"The rewind was not done: {reason}", retryable=True)
