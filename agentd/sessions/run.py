"""A prompt that runs: the loop's host, and the promise that the prompt is answered."""

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel

from agentd.agent.commands import stricter
from agentd.agent.host import Engine, NotJournaled, Verdict
from agentd.agent.images import SessionImages
from agentd.agent.loop import DEFAULT_MAX_TURNS, Loop
from agentd.agent.prompt_cut import PromptWatch
from agentd.agent.references import Withheld
from agentd.agent.usage import add_spent
from agentd.permissions.policy import Allow, Decision, Deny, Proposal, decide
from agentd.protocol.errors import RpcError
from agentd.protocol.events import (
    AgentEnd,
    AgentStart,
    ChangedFile,
    CompactionEnd,
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
    TurnEnd,
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
from agentd.sessions.built_in import BuiltIn, Place
from agentd.sessions.conversation import SessionConversation
from agentd.sessions.family import KEPT, Delegations, Parentage
from agentd.sessions.focus import focus_note
from agentd.sessions.ground import Ground
from agentd.sessions.log import SessionLog
from agentd.sessions.partial import LivePart
from agentd.sessions.questions import Asked, Questions
from agentd.sessions.recovery import changed_files
from agentd.sessions.user_words import UserWords, Ways
from agentd.sessions.words import Words
from agentd.tools.base import Action, Channel, LiveOutput, Tool, ToolContext
from agentd.workspace.checkpoints import Checkpoint
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
        self,
        ground: Ground,
        params: PromptParams,
        blocks: tuple[ContentBlock, ...],
        digest: str,
        words: Words,
    ) -> None:
        """A run of params that were checked, and what their words come to. Raises `RpcError` noModel."""
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
        self._mode = params.mode if words.mode is None else stricter(params.mode or base.mode, words.mode)
        self._built_in: BuiltIn | None = None
        if words.built_in is not None:
            place = Place(ground.root, ground.log, house, ground.checkpoints, ground.seen, self.prompt_id)
            self._built_in = BuiltIn(words.built_in, place, self._compact)
            self._engine = self._built_in.engine
        else:
            model = params.model or words.model or base.model
            self._engine = house.engines.engine(model, params.effort or base.effort)
        ways = Ways(lambda: self.tool_context(_unheard), self._judge, self._ask_about, self.emit)
        by_user = bool(blocks) and self._built_in is None and ground.family.parent is None
        note = focus_note(house.editor.focus, ground.root) if by_user else ()
        words = replace(words, parts=(*words.parts, *note))
        self.delegations = Delegations()
        self._user_words = UserWords(words, ground.root, house, ways)
        self._live = LivePart()
        self._looks = Looks()
        self._watchers: list[Callable[[DurableEvent], None]] = []
        self._trusted = house.settings.trusts(ground.root)
        self.is_safe = False  # whether its prompt is safe in the journal
        self._has_user_message = bool(blocks)
        self._steers: dict[str, str] = {}  # messages that say a steer -> its prompt
        self._said = params.prompt_id  # the prompt that was said last, to which changes of files belong
        self.over = False  # whether its last event is journaled
        self._before = anyio.CancelScope()  # what comes before the first event
        self._compacted: CompactionEnd | None = None
        self._user_id = house.sources.new_id("m")
        user = None
        if blocks:
            content, timestamp = (*blocks, *note), house.sources.now()
            user = UserMessage(message_id=self._user_id, content=content, timestamp=timestamp)
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
            with self._before:
                await (
                    self._built_in.perform() if self._built_in is not None else self._user_words.find_out()
                )
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
        self._before.cancel()
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
        if self._built_in is None and ("model" in changed or "effort" in changed):
            model = base.model if "model" in changed else self._engine.model.id
            effort = base.effort if "effort" in changed else self._engine.effort
            self._engine = self._house.engines.engine(model, effort)

    # --- what its children see --------------------------------------------------------------------

    @property
    def open_call(self) -> str:
        """The tool call that runs: there is one at a time."""
        assert self._log.state.run is not None
        (call_id,) = self._log.state.run.calls
        return call_id

    @property
    def present_engine(self) -> Engine:
        """The model of the turn, or the newer one that the user has chosen meanwhile."""
        return self._engine

    @property
    def workspace_uri(self) -> str:
        """The workspace folder of the session."""
        return self._log.state.base.workspace_uri

    def parentage(self, call_id: str, description: str) -> Parentage:
        """What a child of this tool call has of the run."""
        return Parentage(
            self._log.state.session_id,
            self.prompt_id,
            call_id,
            description,
            self._ground.questions,
            self._current_mode,
            self._checkpoint,
            self.emit,
        )

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
            run_child=self._ground.family.children(self) if self._ground.family.children else None,
        )

    def _checkpoint(self) -> Checkpoint:
        """What keeps files as they are before the prompt changes them; a child works for its parent's."""
        if (parent := self._ground.family.parent) is not None:
            return parent.checkpoint()
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
        """Whether the user wants something said in this run before it ends: not to a built-in command."""
        return self._built_in is None and self._ground.queue.claim_steer()

    async def next_steer(self) -> UserMessage | None:
        """The next message that the user wants said in this run."""
        queue = self._ground.queue
        while (steer := queue.waiting_steer()) is not None:
            message_id = self.sources.new_id("m")
            words = await self._user_words.of_steer(message_id, steer.prompt)
            if queue.waiting_steer() == steer:  # and not another one that was put in front meanwhile
                queue.take_steer()
                words.said()
                self._steers[message_id] = steer.prompt_id
                return UserMessage(
                    message_id=message_id,
                    content=steer.prompt,
                    timestamp=self.sources.now(),
                    shown=words.shown,
                )
        queue.take_steer()
        return None

    async def before_request(self) -> None:
        """Ask the user about the secrets that their words refer to, before the model is asked."""
        await self._user_words.ask_about_secrets()

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
            event = event.model_copy(update={"usage": add_spent(event.usage, self.delegations.usage)})
        if isinstance(event, ToolExecutionEnd) and (kept := self.delegations.take(event.tool_call_id)):
            private[KEPT] = kept
        if isinstance(event, AgentEnd | ToolExecutionEnd) and (notice := self._ground.checkpoints.notice):
            self._tell_once(notice, "warning")
        event = self._completed(event)
        self._record(event, private)
        self._live.follow(event)
        for watch in self._watchers:
            watch(event)
        if isinstance(event, TurnEnd):
            await anyio.lowlevel.checkpoint_if_cancelled()  # who watches may have ended the run here
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

    def _completed(self, event: DurableEvent) -> DurableEvent:
        """The event with what was found out since the run was made."""
        if isinstance(event, AgentStart):
            files = self._instructions.uris(trusted=self.is_trusted) or None
            update = {"instructions": files, "mode": self._current_mode()}
            return AgentStart(prompt=event.prompt.model_copy(update=update))
        if isinstance(event, MessageEnd) and event.message.message_id == self._user_id:
            words, own = self._user_words, self._built_in
            shown = own.shown if own is not None else words.shown(self._user_id)
            return MessageEnd(message=event.message.model_copy(update={"shown": shown}))
        if isinstance(event, CompactionEnd):
            self._compacted = event
        return event

    async def _compact(self, instructions: str | None) -> CompactionEnd:
        """Sum the history up, inside this run; give how that ended."""
        base = self._log.state.base
        await self._loop.compact(self._house.engines.engine(base.model, base.effort), instructions)
        assert self._compacted is not None, "what was begun has ended"
        return self._compacted

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
        judge = partial(self._judge, proposal)
        decision = judge()
        if isinstance(decision, Deny):
            return Verdict(False, decision.reason)
        if isinstance(decision, Allow):
            return Verdict(allowed=True, manner=decision.manner)
        if action.subject is None:
            return Verdict(False, f'Tool "{call.name}" needs the user\'s permission and cannot ask for it.')
        options = self._questions.rules.options(
            call.name, action.subject, trusted=self.is_trusted, secret=action.secret
        )
        asked = Asked(
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
        return await self._ask(asked)

    @property
    def _questions(self) -> Questions:
        """Where this run asks: in its session, or in that of its parent."""
        parent = self._ground.family.parent
        return self._ground.questions if parent is None else parent.questions

    async def _ask(self, asked: Asked) -> Verdict:
        parent = self._ground.family.parent
        return await self._questions.ask(asked if parent is None else parent.asked(asked))

    def _judge(self, proposal: Proposal) -> Decision:
        """What is to happen with it, by mode and rules as they are now."""
        rules = self._questions.rules
        return decide(proposal, mode=self._current_mode(), trusted=self.is_trusted, remembered=rules)

    async def _ask_about(
        self, withheld: Withheld, emit: Callable[[DurableEvent], Awaitable[None]]
    ) -> Verdict:
        """Ask the user whether the model may see a file that they refer to, as for a call that reads it."""
        call = ToolCall(id=self.unique_call_id(None), name="read_file")
        subject = withheld.subject
        options = self._questions.rules.options(call.name, subject, trusted=self.is_trusted, secret=True)
        return await self._ask(
            Asked(
                self._log.state.session_id,
                self.prompt_id,
                call,
                "read",
                withheld.title,
                subject,
                options,
                withheld.judge,
                emit,
            )
        )

    @property
    def is_trusted(self) -> bool:
        """Trust that is given acts at the next turn, and once taken back it is gone at once."""
        return self._trusted and self._house.settings.trusts(self._ground.root)

    def _current_mode(self) -> Mode:
        if (parent := self._ground.family.parent) is not None:
            return parent.mode()
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


async def _unheard(channel: Channel, text: str, left_out: int = 0) -> None:
    """Nobody listens to what reading says on the way."""


def _is_from_user(event: DurableEvent) -> bool:
    return isinstance(event, MessageEnd) and isinstance(event.message, UserMessage)
