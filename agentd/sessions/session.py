"""A session: the one owner of a conversation.

Everything here happens on the event loop, so that what a request does is one step in the order in which
requests were read. What becomes of prompts is in `dispatcher.py`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentd.permissions.rules import Rules
from agentd.protocol.errors import RpcError
from agentd.protocol.events import SessionChanged
from agentd.protocol.messages import Message, PermissionRequest
from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.methods import (
    AttachResult,
    BackgroundInfo,
    CancelResult,
    Partial,
    PermissionAnswer,
    PromptAccepted,
    PromptParams,
    PromptResult,
    SessionCompactResult,
    SessionGetResult,
    SessionRewindParams,
    SessionRewindResult,
    SessionUpdateParams,
)
from agentd.protocol.text import visible
from agentd.sessions.cancelling import Stop
from agentd.sessions.dispatcher import Dispatcher
from agentd.sessions.family import Delegated, Family
from agentd.sessions.house import House
from agentd.sessions.journal import Journal
from agentd.sessions.log import SessionLog, refusing
from agentd.sessions.prompts import title_of_text
from agentd.sessions.questions import Questions
from agentd.sessions.replay import ReplayReader
from agentd.sessions.state import SessionState
from agentd.sessions.submission import Submission
from agentd.workspace.shell import Shell

SNAPSHOT_MESSAGES = 200
"""How many messages the snapshot of an attach holds, as many as a reading without a limit of its own."""


class Session:
    """One conversation in one workspace folder."""

    def __init__(
        self,
        state: SessionState,
        journal: Journal,
        root: Path,
        house: House,
        family: Family | None = None,
    ) -> None:
        house = house.of_session(state.session_id)
        self.root = root
        self._state = state
        self._house = house
        self._log = SessionLog(state, journal, house.face, house.sources)
        rules = Rules(root, house.rules, lambda: house.settings.rules(root))
        self._questions = Questions(house.face, house.sources, rules)
        self._shell = Shell(
            house.start_soon,
            house.spills,
            root=root,
            commands=house.commands,
            is_reopened=bool(state.messages),
        )
        self.prompts = Dispatcher(root, self._log, house, self._questions, self._shell, family)
        for answer in state.answers:
            self._questions.recall(*answer)

    # --- reading ----------------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._state.session_id

    @property
    def info(self) -> SessionInfo:
        """The session as the wire tells it."""
        run = self.prompts.run
        return self._state.info(alive=run is not None and run.result is None)

    @property
    def state(self) -> SessionState:
        """All that is known of it, to be read only."""
        return self._state

    @property
    def messages(self) -> Sequence[Message]:
        """All messages, oldest first."""
        return self._state.messages

    def knows_prompt(self, prompt_id: str) -> bool:
        """Whether a prompt of that id was ever taken here."""
        return self.prompts.knows(prompt_id)

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The questions that stand open, the oldest first."""
        return self._questions.pending

    def get(self, before: str | None, limit: int) -> SessionGetResult:
        """The last `limit` messages (before message `before`), and all that is open."""
        partial = self.prompts.run.partial if self.prompts.run is not None else None
        return reading(self._state, self.info, before, limit, self._questions.pending, partial)

    @property
    def journal(self) -> Path:
        """The file of its journal."""
        return self._log.path

    def catch_up(self, replay: ReplayReader, *, at_last: bool) -> AttachResult | None:
        """What `agentd/session/attach` answers, once `replay` has read up to the present; None before.

        One step: nothing can happen between what it tells and the next event. `at_last`: there is no more to
        read, whatever is missing.
        """
        is_whole = replay.seq == self._state.seq
        if not is_whole and not at_last:
            return None
        return self._attached(replay.events if is_whole else None)

    def present(self, after_seq: int) -> AttachResult | None:
        """The same for a client that has seen all there is, or names a later event: nothing is read then."""
        if after_seq < self._state.seq:
            return None
        return self._attached([] if after_seq == self._state.seq else None)

    def _attached(self, events: Sequence[dict[str, Any]] | None) -> AttachResult:
        if events is None:
            snapshot = self.get(None, SNAPSHOT_MESSAGES)
            return AttachResult(kind="snapshot", snapshot=snapshot, seq=snapshot.seq)
        return AttachResult(
            kind="replay",
            events=tuple(events),
            pending=self._questions.pending,
            partial=self.prompts.run.partial if self.prompts.run is not None else None,
            seq=self._state.seq,
        )

    # --- prompts ----------------------------------------------------------------------------------

    async def prompt(
        self, params: PromptParams, on_start: Callable[[Submission], None] = lambda taken: None
    ) -> PromptResult | PromptAccepted:
        """See `Dispatcher.prompt`. The prompt of a child is its parent's alone."""
        refuse_child(self._state.base, "takes no prompts")
        return await self.prompts.prompt(params, on_start)

    async def compact(self, instructions: str | None) -> SessionCompactResult:
        """See `Dispatcher.compact`."""
        refuse_child(self._state.base, "cannot be compacted")
        return await self.prompts.compact(instructions)

    async def rewind(self, params: SessionRewindParams) -> SessionRewindResult:
        """See `Dispatcher.rewind`."""
        refuse_child(self._state.base, "cannot be rewound")
        return await self.prompts.rewind(params)

    async def cancel(
        self, prompt_id: str | None = None, stop: Stop = "aborted", *, keep_queue: bool = False
    ) -> CancelResult:
        """See `Dispatcher.cancel`. The answer tells what goes on in the background, too."""
        result = await self.prompts.cancel(prompt_id, stop, keep_queue=keep_queue)
        running = tuple(
            BackgroundInfo(id=each.id, command=visible(each.command))
            for each in self._shell.background.running
        )
        return result.model_copy(update={"background": running}) if running else result

    # --- changes ----------------------------------------------------------------------------------

    def begin(self, info: SessionInfo) -> Callable[[], None]:
        """Journal a new session's first event; give a function that sends it. Raises `RpcError`."""
        with refusing():
            return self._log.record_held(SessionChanged(session=info))

    def recover(
        self,
        damage: Collection[int] = (),
        delegated: Mapping[str, Delegated] | None = None,
        *,
        tell: bool = True,
    ) -> None:
        """Close a run that a stopped daemon left open, and tell of lines that were lost.

        `delegated` is what the children of its open tool calls came to. `tell`: whether clients are sent
        these events. Raises `RpcError` storage.
        """
        self._log.repair(delegated, tell=tell)
        self._log.warn_of_damage(damage, tell=tell)

    def update(self, params: SessionUpdateParams) -> SessionInfo:
        """Change title, model, mode or effort: a model acts at the next turn, a mode at the next tool call.

        Raises `RpcError` unsupported, noModel or storage; then nothing has changed.
        """
        if params.model or params.mode or params.effort:
            refuse_child(self._state.base, "works with its parent's model and mode")
        self._house.check_mode(params.mode)
        if params.model is not None:
            self._house.engines.engine(params.model, params.effort)
        fields = ("title", "model", "mode", "effort")
        changes = {name: getattr(params, name) for name in fields if getattr(params, name) is not None}
        if params.title is not None:
            changes["title"] = title_of_text(params.title)
        if changes:
            self._change(changes)
        return self.info

    def forget_effort(self) -> None:
        """Have the model do as it does when no effort is said, from its next turn on.

        Raises `RpcError` unsupported or storage; then nothing has changed.
        """
        refuse_child(self._state.base, "works with its parent's model and mode")
        if self.info.effort is not None:
            self._change({"effort": None})

    def _change(self, changes: Mapping[str, Any]) -> None:
        changed = self.info.model_copy(update={**changes, "seq": self._state.seq + 1})
        with refusing():
            self._log.record(SessionChanged(session=changed))
        if self.prompts.run is not None:
            self.prompts.run.refresh(changes.keys())
        self._questions.judge_again()

    def trust_changed(self) -> None:
        """The user trusts the workspace now, or no longer."""
        self._questions.judge_again()

    def respond(self, request_id: str, answer: PermissionAnswer) -> bool:
        """An answer to an open question; False when it is none of this session's."""
        return self._questions.respond(request_id, answer)

    @property
    def rules(self) -> Rules:
        """What the user allowed for good."""
        return self._questions.rules

    async def close(self, stop: Stop = "aborted") -> None:
        """Cancel what runs, wait for it, stop what runs in the background, and let go of the journal.

        What waits in the queue stays there.
        """
        await self.prompts.close(stop)
        try:
            await self._shell.close()
        finally:
            self.prompts.findings.clear()
            self.prompts.checkpoints.close()
            self._log.close()


def refuse_child(info: SessionInfo, what: str) -> None:
    """Raise `RpcError` unsupported for a session that runs, or ran, for another one's tool call."""
    if info.parent is not None:
        raise RpcError(
            "unsupported",
            f"Session {info.session_id} is that of a sub-agent and {what}.",
            hint=f"Use its parent, session {info.parent.session_id}, or fork it to go on from what it said.",
        )


def reading(
    state: SessionState,
    info: SessionInfo,
    before: str | None,
    limit: int,
    pending: tuple[PermissionRequest, ...] = (),
    partial: Partial | None = None,
) -> SessionGetResult:
    """What `agentd/session/get` answers. Raises `RpcError` invalidParams for an unknown `before`."""
    messages = state.messages
    if before is not None:
        place = next((i for i, message in enumerate(messages) if message.message_id == before), None)
        if place is None:
            raise RpcError("invalidParams", f'/before: there is no message "{before}" in this session')
        messages = messages[:place]
    return SessionGetResult(
        session=info,
        messages=tuple(messages[-limit:]),
        has_more=len(messages) > limit,
        pending=pending,
        queue=state.queue,
        todo=state.todo,
        partial=partial,
        seq=state.seq,
    )
