"""A prompt that runs: the loop's host, and the promise that the prompt is answered."""

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import anyio

from agentd.agent.host import Engine, NotJournaled, Verdict
from agentd.agent.images import SessionImages
from agentd.agent.loop import DEFAULT_MAX_TURNS, Loop
from agentd.agent.prompt_cut import PromptWatch
from agentd.permissions.policy import Allow, Decision, Deny, Proposal, decide
from agentd.protocol.errors import RpcError
from agentd.protocol.events import (
    AgentEnd,
    AgentStart,
    ChangedFile,
    DurableEvent,
    FilesChanged,
    LiveEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notice,
    PermissionRequested,
    PermissionResolved,
    PromptSettings,
    TodoChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnStart,
)
from agentd.protocol.messages import (
    ContentBlock,
    Mode,
    ResourceContent,
    RunError,
    TodoItem,
    ToolCall,
    UserMessage,
)
from agentd.protocol.methods import Partial, PromptParams, PromptResult
from agentd.providers.base import Model
from agentd.sessions.conversation import SessionConversation
from agentd.sessions.focus import focus_note
from agentd.sessions.ground import Ground
from agentd.sessions.log import SessionLog
from agentd.sessions.partial import LivePart
from agentd.sessions.questions import Asked
from agentd.sessions.recovery import changed_files
from agentd.tools.base import Action, LiveOutput, Tool, ToolContext
from agentd.workspace.command_changes import Looks
from agentd.workspace.paths import UriError, path_of
from agentd.workspace.prompt_checkpoint import PromptCheckpoint

log = logging.getLogger(__name__)

_GATES = (ToolExecutionStart, PermissionResolved, AgentEnd)
"""Events whose effect waits until they are safe on disk; what the user says is another.

The end of an assistant's message has no effect but through one of these, which follows it: a flush of its
own would be one more before each tool. Where none follows soon, see `_LONG_WAITS`."""


_LONG_WAITS = (PermissionRequested, TurnStart)
"""Events behind which the run waits for the user or a model server: what it has said so far, an assistant's
message before its calls are asked about or refused, is brought to the disk meanwhile and holds up nothing."""

LOOK_SECONDS = 0.5
"""For a look at the files that a run has changed; on a disk that hangs, what the edits told stands."""


class Run(SessionConversation):
    """One prompt from its acceptance to its result. `agent.host.Host` for its loop."""

    def __init__(
        self, ground: Ground, params: PromptParams, blocks: tuple[ContentBlock, ...], digest: str
    ) -> None:
        """A run of params that were checked. Raises `RpcError` noModel."""
        super().__init__(ground.root, ground.log, ground.house)
        base, house = ground.log.state.base, ground.house
        assert params.prompt_id is not None
        self.prompt_id = params.prompt_id
        self.digest = digest
        self.accepted = anyio.Event()
        self.done = anyio.Event()
        self.result: PromptResult | None = None
        self._ground = ground
        self._blocks = blocks
        self._mode = params.mode
        self._engine = house.engines.engine(params.model or base.model, params.effort or base.effort)
        self._live = LivePart()
        self._looks = Looks()
        self._watchers: list[Callable[[DurableEvent], None]] = []
        self._trusted = house.settings.trusts(ground.root)
        self.is_safe = False  # whether its prompt is safe in the journal
        self._has_user_message = bool(blocks)
        self._steers: dict[str, str] = {}  # messages that say a steer -> its prompt
        self._said = params.prompt_id  # the prompt that was said last, to which changes of files belong
        self.over = False  # whether its last event is journaled
        user = None
        if blocks:
            message_id, timestamp = house.sources.new_id("m"), house.sources.now()
            content = (*blocks, *focus_note(house.editor.focus, ground.root))
            user = UserMessage(message_id=message_id, content=content, timestamp=timestamp)
        settings = PromptSettings(
            model=self._engine.model.id, mode=self._current_mode(), effort=self._engine.effort
        )
        max_turns = params.max_turns or house.settings.max_turns_in(ground.root) or DEFAULT_MAX_TURNS
        self._loop = Loop(self, user, settings, max_turns)

    # --- what the session does with it ------------------------------------------------------------

    async def drive(self) -> None:
        """The task of the run. However it goes, `result` is set in the end; whoever drives it says `done`."""
        try:
            await self._house.find_out(self._current_mode())  # a session may have been left in mode auto
            await self.look_for_instructions(self._worked_in())
            await self.look_for_skills()
            if self._ground.shell.background.running:
                await self._checkpoint().look_beside(self._root, begins=True)
            await self._loop.run()
            self.result = self._log.state.prompts[self.prompt_id].result
        except NotJournaled as error:
            self._fail(error.kind, str(error))
        except Exception:
            log.exception("a run of %s", self._log.state.session_id)
            self._fail("internal", "agentd failed while it ran this prompt. Its log says more.")
        finally:
            if self.result is None:
                self._fail("internal", "The run was torn down before it ended.")
            self.accepted.set()

    def _fail(self, kind: Literal["storage", "internal"], message: str) -> None:
        """The result of a run that could not be closed in the journal; the next prompt closes it first."""
        self.result = PromptResult(
            session_id=self._log.state.session_id,
            prompt_id=self.prompt_id,
            stop_reason="error",
            text="",
            message_id=None,
            turns=0,
            seq=self._log.state.seq,
            error=RunError(kind=kind, message=message, retryable=kind == "storage"),
        )

    def cancel(self, stop: Literal["aborted", "interrupted"] = "aborted") -> None:
        """Stop the run as soon as can be; too late once its outcome is fixed."""
        self._loop.cancel(stop)

    async def until_accepted(self) -> None:
        """Wait until the prompt is safe in the journal. Raises `RpcError` where it will never be."""
        await self.accepted.wait()
        if not self.is_safe and self.result is not None and self.result.error is not None:
            error = self.result.error
            kind = "storage" if error.kind == "storage" else "internal"
            raise RpcError(kind, error.message, retryable=error.retryable)

    @property
    def settled(self) -> bool:
        """Whether the outcome is fixed, also where that is a failure to run."""
        return self._loop.settled or self.result is not None

    @property
    def cancelled(self) -> bool:
        """Whether the outcome is, or will be, that it was cancelled."""
        return self._loop.cancelled

    @property
    def quiescent(self) -> bool:
        """Whether no tool had to be left behind."""
        return self._loop.quiescent and self.result is not None

    @property
    def partial(self) -> Partial | None:
        """What it has said so far."""
        return self._live.read()

    def watch(self, function: Callable[[DurableEvent], None]) -> None:
        """Have each durable event of the run told to this function as well."""
        self._watchers.append(function)

    def refresh(self, changed: Collection[str]) -> None:
        """These fields of the session were changed while this runs: the newer word counts."""
        base = self._log.state.base
        if "mode" in changed:
            self._mode = None
        if "model" in changed or "effort" in changed:
            model = base.model if "model" in changed else self._engine.model.id
            effort = base.effort if "effort" in changed else self._engine.effort
            self._engine = self._house.engines.engine(model, effort)

    # --- what the loop sees (agent.host.Host) -----------------------------------------------------

    def engine(self) -> Engine:
        """The model for the next turn. Trust that the user has given meanwhile counts from here on too."""
        self._trusted = self._house.settings.trusts(self._ground.root)
        return self._engine

    def unique_call_id(self, wanted: str | None) -> str:
        """An id that no other tool call of the session has."""
        return self._log.state.unique_call_id(wanted, self.sources.new_id("call"))

    @property
    def prompt_watch(self) -> PromptWatch:
        """What looks whether model servers leave out parts of the session's prompts."""
        return self._ground.prompt_watch

    @property
    def images(self) -> SessionImages:
        """What the images of the session look like to models."""
        return self._ground.images

    def learn_window(self, model: Model, tokens: int) -> Model:
        """A server has said how large a model's context window is: the next turn knows it."""
        known = super().learn_window(model, tokens)
        if self._engine.model.id == known.id:
            self._engine = replace(self._engine, model=known)
        return known

    def tool_context(self, output: LiveOutput) -> ToolContext:
        """What a tool may use."""
        return ToolContext(
            root=self._ground.root,
            editor=self._house.editor,
            seen=self._ground.seen,
            environment=self._house.environment,
            output=output,
            model=self._engine.model,
            skills=self.skills,
            todo=_SessionTodo(self._log, self.emit),
            write_notes=self._house.write_notes,
            shell=self._ground.shell,
            checkers=self._house.settings.checkers_in(self._ground.root) if self.is_trusted else (),
            checkpoint=self._checkpoint(),
            show_findings=lambda findings: self._ground.findings.replace(self._said, findings),
        )

    def _checkpoint(self) -> PromptCheckpoint:
        house = self._house
        return PromptCheckpoint(
            self._ground.checkpoints,
            self._said,
            self._looks,
            self._tell_once,
            hidden=house.spills.parent if house.spills is not None else None,
            git=house.git(self._ground.root) if house.git is not None else None,
            writers=house.writers,
        )

    def _tell_once(self, message: str, severity: Literal["info", "warning"] = "info") -> None:
        """Tell the user something that is so for all of the session."""
        if message not in self._ground.told:
            self._ground.told.add(message)
            self._log.record(Notice(severity=severity, message=message), self.prompt_id)

    def claim_steer(self) -> bool:
        """Whether the user wants something said in this run before it ends."""
        return self._ground.queue.claim_steer()

    def next_steer(self) -> UserMessage | None:
        """The next message that the user wants said in this run."""
        steer = self._ground.queue.take_steer()
        if steer is None:
            return None
        message_id = self.sources.new_id("m")
        self._steers[message_id] = steer.prompt_id
        return UserMessage(message_id=message_id, content=steer.prompt, timestamp=self.sources.now())

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: object) -> None:
        """Run something that may outlive the run."""
        self._house.start_soon(function, *args)

    def _worked_in(self) -> tuple[str, ...]:
        """The folder that the conversation is about: that of the file that a prompt last referred to.

        It stays until another is referred to, also after a restart, so that requests begin with the same.
        """
        before = (m.content for m in reversed(self.transcript) if isinstance(m, UserMessage))
        folders = (_folder_of(blocks, self._root) for blocks in (self._blocks, *before))
        return next((folder for folder in folders if folder is not None), ())

    def _tell_of_instructions(self) -> None:
        """A word on instructions that are not heeded, once for each."""
        for problem in self._instructions.problems:
            self._tell_once(problem, "warning")
        if self._instructions.projects and not self.is_trusted:
            names = ", ".join(file.name for file in self._instructions.projects)
            self._tell_once(f"{names}: not heeded, as the workspace is not trusted.")

    def _tell_of_skills(self) -> None:
        """A word on skills that cannot be loaded, once for each."""
        for problem in self._skills.problems(trusted=self.is_trusted):
            self._tell_once(problem.message, "info" if problem.severity == "info" else "warning")

    async def emit(self, event: DurableEvent | LiveEvent, **private: Any) -> None:
        """Journal and send an event, then wait until what it gates is safe."""
        if isinstance(event, MessageUpdate | ToolExecutionUpdate):
            self._log.send(event, self.prompt_id)
            self._live.follow(event)
            return
        if isinstance(event, AgentEnd):
            with anyio.move_on_after(LOOK_SECONDS, shield=True):
                await self._checkpoint().look_beside(self._root)
            await self._tell_changed_files()
        if isinstance(event, AgentEnd | ToolExecutionEnd) and (notice := self._ground.checkpoints.notice):
            self._tell_once(notice, "warning")
        elif isinstance(event, AgentStart) and (files := self._instructions.uris(trusted=self.is_trusted)):
            event = AgentStart(prompt=event.prompt.model_copy(update={"instructions": files}))
        self._record(event, private)
        self._live.follow(event)
        for watch in self._watchers:
            watch(event)
        if isinstance(event, AgentStart):
            self._tell_of_instructions()
            self._tell_of_skills()
        opens = _is_from_user(event) if self._has_user_message else isinstance(event, AgentStart)
        if opens or _is_from_user(event) or isinstance(event, _GATES):
            await self._log.sync()
        elif isinstance(event, _LONG_WAITS) and self.is_safe:
            self._house.start_soon(self._log.flush)
        if opens:
            self.is_safe = True
            self.accepted.set()

    async def _tell_changed_files(self) -> None:
        run = self._log.state.run
        if run is not None and run.changed:
            files = changed_files(run).files
            with anyio.move_on_after(LOOK_SECONDS):
                on_disk = [file.uri for file in files if not await self._is_open(file.uri)]
                files = await anyio.to_thread.run_sync(_in_the_end, files, on_disk, abandon_on_cancel=True)
            if files:
                self._log.record(FilesChanged(files=files), self.prompt_id)

    async def _is_open(self, uri: str) -> bool:
        """Whether a file is open in the editor, where it is whether or not it is on the disk."""
        return await self._house.editor.document(path_of(uri)) is not None

    def _record(self, event: DurableEvent, private: Mapping[str, Any]) -> None:
        queue = self._ground.queue
        if isinstance(event, AgentEnd):
            queue.settle(self.prompt_id)
        own: dict[str, Any] = {"promptDigest": self.digest} if isinstance(event, AgentStart) else {}
        steer = None
        if isinstance(event, MessageStart | MessageEnd):
            steer = self._steers.get(event.message.message_id)
        if steer is not None:
            own = {"steer": steer}
            self._said = steer
        self._log.record(event, self.prompt_id, **own, **private)
        self.over = isinstance(event, AgentEnd)
        queue.took(self.prompt_id, steer if isinstance(event, MessageEnd) else None)

    async def permit(self, call: ToolCall, tool: Tool, action: Action, title: str) -> Verdict:
        """Judge a prepared call, asking the user where need be."""

        proposal = Proposal(
            call.name,
            tool.kind,
            action.subject,
            action.secret,
            sandboxable=action.sandboxed is not None,
            rebuildable=action.rebuilt is not None,
        )
        rules = self._ground.questions.rules

        def judge() -> Decision:
            return decide(proposal, mode=self._current_mode(), trusted=self.is_trusted, remembered=rules)

        decision = judge()
        if isinstance(decision, Deny):
            return Verdict(False, decision.reason)
        if isinstance(decision, Allow):
            return Verdict(allowed=True, manner=decision.manner)
        if action.subject is None:
            return Verdict(False, f'Tool "{call.name}" needs the user\'s permission and cannot ask for it.')
        options = rules.options(call.name, action.subject, trusted=self.is_trusted, secret=action.secret)
        return await self._ground.questions.ask(
            Asked(
                self._log.state.session_id,
                self.prompt_id,
                call,
                tool.kind,
                title,
                action.subject,
                options,
                judge,
                self.emit,
            )
        )

    @property
    def is_trusted(self) -> bool:
        """Trust that is given acts at the next turn, and once taken back it is gone at once."""
        return self._trusted and self._house.settings.trusts(self._ground.root)

    def _current_mode(self) -> Mode:
        return self._mode or self._log.state.base.mode


@dataclass(frozen=True)
class _SessionTodo:
    """`tools.base.Todo` of a session."""

    log: SessionLog
    emit: Callable[[DurableEvent], Awaitable[None]]

    @property
    def items(self) -> tuple[TodoItem, ...]:
        return self.log.state.todo

    async def replace(self, items: tuple[TodoItem, ...]) -> None:
        await self.emit(TodoChanged(items=items))


def _in_the_end(files: Sequence[ChangedFile], on_disk: Collection[str]) -> tuple[ChangedFile, ...]:
    """What edits came to, seen from the end: a command may have removed what they made or changed."""
    gone = {uri for uri in on_disk if not os.path.lexists(path_of(uri))}
    return tuple(
        file.model_copy(update={"action": "deleted"}) if file.uri in gone else file
        for file in files
        if not (file.uri in gone and file.action == "created")
    )


def _folder_of(blocks: Sequence[ContentBlock], root: Path) -> tuple[str, ...] | None:
    """The folder of the first file of the workspace that a prompt refers to, None where it refers to none."""
    for block in blocks:
        if isinstance(block, ResourceContent):
            with suppress(UriError):
                path = path_of(block.uri)
                if path.is_relative_to(root):
                    return path.relative_to(root).parent.parts
    return None


def _is_from_user(event: DurableEvent) -> bool:
    return isinstance(event, MessageEnd) and isinstance(event.message, UserMessage)
