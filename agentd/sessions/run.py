"""A prompt that runs: the loop's host, and the promise that the prompt is answered."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import anyio
import anyio.lowlevel

from agentd.agent.commands import stricter
from agentd.agent.host import Engine, NotJournaled, Verdict
from agentd.agent.images import SessionImages
from agentd.agent.loop import DEFAULT_MAX_TURNS, Loop
from agentd.agent.prompt_cut import PromptWatch
from agentd.agent.usage import add_spent
from agentd.protocol.errors import RpcError
from agentd.protocol.events import (
    AgentEnd,
    AgentStart,
    CompactionEnd,
    DurableEvent,
    LiveEvent,
    MessageEnd,
    MessageUpdate,
    PermissionRequested,
    PermissionResolved,
    PromptSettings,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from agentd.protocol.messages import (
    ContentBlock,
    RunError,
    ToolCall,
    UserMessage,
)
from agentd.protocol.methods import Partial, PromptParams, PromptResult
from agentd.providers.base import Model
from agentd.sessions.built_in import BuiltIn
from agentd.sessions.conversation import SessionConversation
from agentd.sessions.family import KEPT, Delegations, Parentage
from agentd.sessions.focus import focus_note
from agentd.sessions.ground import Ground
from agentd.sessions.notices import Notices
from agentd.sessions.partial import LivePart
from agentd.sessions.permits import Permits
from agentd.sessions.run_files import RunFiles
from agentd.sessions.steers import Steers
from agentd.sessions.todo import SessionTodo
from agentd.sessions.user_words import UserWords, Ways
from agentd.sessions.words import Words
from agentd.tools.base import Action, Channel, LiveOutput, Tool, ToolContext
from agentd.workspace.editor import Finding

log = logging.getLogger(__name__)

_GATES = (ToolExecutionStart, PermissionResolved, AgentEnd)
"""Events whose effect waits until they are safe on disk; what the user says is another.

The end of an assistant's message has no effect but through one of these, which follows it: a flush of its
own would be one more before each tool. Where none follows soon, see `_LONG_WAITS`."""


_LONG_WAITS = (PermissionRequested, TurnStart)
"""Events behind which the run waits for the user or a model server: what it has said so far, an assistant's
message before its calls are asked about or refused, is brought to the disk meanwhile and holds up nothing."""


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
        mode = params.mode if words.mode is None else stricter(params.mode or base.mode, words.mode)
        self._permits = permits = Permits(ground, self.prompt_id, mode)
        self._built_in = (
            BuiltIn(words.built_in, ground, self._compact, self.prompt_id)
            if words.built_in is not None
            else None
        )
        self._engine = (
            self._built_in.engine
            if self._built_in is not None
            else house.engines.engine(params.model or words.model or base.model, params.effort or base.effort)
        )
        by_user = bool(blocks) and self._built_in is None and ground.family.parent is None
        note = focus_note(house.editor.focus, ground.root) if by_user else ()
        self.delegations = Delegations()
        ways = Ways(lambda: self.tool_context(_unheard), permits.judge, permits.ask_about, self.emit)
        words = replace(words, parts=(*words.parts, *note))
        self._user_words = UserWords(words, ground.root, house, ways)
        self._steers = Steers(ground, self.prompt_id, self._user_words)
        self._notices = Notices(ground, self.prompt_id)
        self._files = RunFiles(ground, lambda: self._steers.said, self._notices.tell_once)
        self._live = LivePart()
        self._watchers: list[Callable[[DurableEvent], None]] = []
        self.is_safe = False  # whether its prompt is safe in the journal
        self.over = False  # whether its last event is journaled
        self._before = anyio.CancelScope()  # what comes before the first event
        self._compacted: CompactionEnd | None = None
        self._user = self._first_message((*blocks, *note)) if blocks else None
        self._loop = self._loop_of(params.max_turns)

    def _first_message(self, content: tuple[ContentBlock, ...]) -> UserMessage:
        """The message that the run begins with."""
        return UserMessage(message_id=self.sources.new_id("m"), content=content, timestamp=self.sources.now())

    def _loop_of(self, max_turns: int | None) -> Loop:
        """The loop that runs the prompt, for as many turns as it wishes, else as the settings say."""
        settings = PromptSettings(
            model=self._engine.model.id, mode=self._permits.mode, effort=self._engine.effort
        )
        most = max_turns or self._house.settings.max_turns_in(self._ground.root) or DEFAULT_MAX_TURNS
        return Loop(self, self._user, settings, most)

    # --- what the session does with it ------------------------------------------------------------

    async def drive(self) -> None:
        """The task of the run. However it goes, `result` is set in the end; whoever drives it says `done`."""
        try:
            await self._house.find_out(self._permits.mode)  # a session may have been left in mode auto
            await self.look_for_instructions(self._blocks)
            await self.look_for_skills()
            await self._files.begin()
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
            self._permits.follow_session()
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
            lambda: self._permits.mode,
            self._files.checkpoint,
            self.emit,
        )

    # --- what the loop sees (agent.host.Host) -----------------------------------------------------

    def engine(self) -> Engine:
        """The model for the next turn. Trust that the user has given meanwhile counts from here on too."""
        self._permits.begin_turn()
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
            todo=SessionTodo(self._log, self.emit),
            write_notes=self._house.write_notes,
            shell=self._ground.shell,
            checkers=self._house.settings.checkers_in(self._ground.root) if self.is_trusted else (),
            checkpoint=self._files.checkpoint(),
            show_findings=self._show_findings,
            run_child=self._ground.family.children(self) if self._ground.family.children else None,
        )

    def _show_findings(self, findings: Sequence[Finding]) -> bool:
        """What a child finds it tells its parent, which has the word to the user."""
        if self._ground.family.parent is not None:
            return False
        return self._ground.findings.replace(self._steers.said, findings)

    def claim_steer(self) -> bool:
        """Whether the user wants something said in this run before it ends: not to a built-in command."""
        return self._built_in is None and self._ground.queue.claim_steer()

    async def next_steer(self) -> UserMessage | None:
        """The next message that the user wants said in this run."""
        return await self._steers.next()

    async def before_request(self) -> None:
        """Ask the user about the secrets that their words refer to, before the model is asked."""
        await self._user_words.ask_about_secrets()

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: object) -> None:
        """Run something that may outlive the run."""
        self._house.start_soon(function, *args)

    async def emit(self, event: DurableEvent | LiveEvent, **private: Any) -> None:
        """Journal and send an event, then wait until what it gates is safe."""
        if isinstance(event, MessageUpdate | ToolExecutionUpdate):
            self._log.send(event, self.prompt_id)
            self._live.follow(event)
            return
        if isinstance(event, AgentEnd):
            if (changed := await self._files.changed()) is not None:
                self._log.record(changed, self.prompt_id)
            event = event.model_copy(update={"usage": add_spent(event.usage, self.delegations.usage)})
        if isinstance(event, ToolExecutionEnd) and (kept := self.delegations.take(event.tool_call_id)):
            private[KEPT] = kept
        if isinstance(event, AgentEnd | ToolExecutionEnd) and (notice := self._ground.checkpoints.notice):
            self._notices.tell_once(notice, "warning")
        event = self._completed(event)
        self._record(event, private)
        self._live.follow(event)
        for watch in self._watchers:
            watch(event)
        if isinstance(event, TurnEnd):
            await anyio.lowlevel.checkpoint_if_cancelled()  # who watches may have ended the run here
        if isinstance(event, AgentStart):
            self._notices.of_instructions(self._instructions, trusted=self.is_trusted)
            self._notices.of_skills(self._skills, trusted=self.is_trusted)
        opens = _is_from_user(event) if self._user is not None else isinstance(event, AgentStart)
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
            update = {"instructions": files, "mode": self._permits.mode}
            return AgentStart(prompt=event.prompt.model_copy(update=update))
        user = self._user
        if isinstance(event, MessageEnd) and user is not None and event.message.message_id == user.message_id:
            words, own = self._user_words, self._built_in
            shown = own.shown if own is not None else words.shown(user.message_id)
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

    def _record(self, event: DurableEvent, private: Mapping[str, Any]) -> None:
        queue = self._ground.queue
        if isinstance(event, AgentEnd):
            queue.settle(self.prompt_id)
        own: dict[str, Any] = {"promptDigest": self.digest} if isinstance(event, AgentStart) else {}
        if (steer := self._steers.say(event)) is not None:
            own = {"steer": steer}
        self._log.record(event, self.prompt_id, **own, **private)
        self.over = isinstance(event, AgentEnd)
        queue.took(self.prompt_id, steer if isinstance(event, MessageEnd) else None)

    async def permit(self, call: ToolCall, tool: Tool, action: Action, title: str) -> Verdict:
        """Judge a prepared call, asking the user where need be."""
        return await self._permits.permit(call, tool, action, title, self.emit)

    @property
    def is_trusted(self) -> bool:
        """Whether the user trusts the workspace, see `Permits.is_trusted`."""
        return self._permits.is_trusted


async def _unheard(channel: Channel, text: str, left_out: int = 0) -> None:
    """Nobody listens to what reading says on the way."""


def _is_from_user(event: DurableEvent) -> bool:
    return isinstance(event, MessageEnd) and isinstance(event.message, UserMessage)
