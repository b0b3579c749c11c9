"""What one run may do: judged by mode, trust and rules as they are now, asked where they leave it open."""

from collections.abc import Callable
from functools import partial

from agentd.agent.host import Verdict
from agentd.agent.references import Withheld
from agentd.permissions.policy import Allow, Decision, Deny, Proposal, decide
from agentd.protocol.messages import Mode, PermissionSubject, ToolCall, ToolKind
from agentd.sessions.ground import Ground
from agentd.sessions.questions import Asked, Emit, Questions
from agentd.tools.base import Action, Tool


class Permits:
    """The permissions of one run. A child has its parent's mode, and is asked about where its parent is."""

    def __init__(self, ground: Ground, prompt_id: str, mode: Mode | None) -> None:
        """`mode` is the one that the prompt wishes; None for the session's."""
        self._ground = ground
        self._prompt_id = prompt_id
        self._wished = mode
        self._parent = ground.family.parent
        self._trusted = self._is_trusted_now

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        if self._parent is not None:
            return self._parent.mode()
        return self._wished or self._ground.log.state.base.mode

    def follow_session(self) -> None:
        """The session's mode was changed while the run goes on: the newer word counts."""
        self._wished = None

    @property
    def is_trusted(self) -> bool:
        """Trust that is given acts at the next turn, and once taken back it is gone at once."""
        return self._trusted and self._is_trusted_now

    def begin_turn(self) -> None:
        """Trust that the user has given meanwhile counts from here on."""
        self._trusted = self._is_trusted_now

    @property
    def _is_trusted_now(self) -> bool:
        return self._ground.house.settings.trusts(self._ground.root)

    @property
    def questions(self) -> Questions:
        """Where this run asks: in its session, or in that of its parent."""
        return self._ground.questions if self._parent is None else self._parent.questions

    def judge(self, proposal: Proposal) -> Decision:
        """What is to happen with it, by mode and rules as they are now."""
        return decide(proposal, mode=self.mode, trusted=self.is_trusted, remembered=self.questions.rules)

    async def permit(self, call: ToolCall, tool: Tool, action: Action, title: str, emit: Emit) -> Verdict:
        """Judge a prepared call, asking the user where need be."""
        proposal = Proposal(
            call.name,
            tool.kind,
            action.subject,
            action.secret,
            sandboxable=action.sandboxed is not None,
            rebuildable=action.rebuilt is not None,
        )
        judge = partial(self.judge, proposal)
        decision = judge()
        if isinstance(decision, Deny):
            return Verdict(False, decision.reason)
        if isinstance(decision, Allow):
            return Verdict(allowed=True, manner=decision.manner)
        if action.subject is None:
            return Verdict(False, f'Tool "{call.name}" needs the user\'s permission and cannot ask for it.')
        return await self._ask(call, tool.kind, title, action.subject, judge, emit, secret=action.secret)

    async def ask_about(self, withheld: Withheld, emit: Emit) -> Verdict:
        """Ask the user whether the model may see a file that they refer to, as for a call that reads it."""
        wanted = self._ground.house.sources.new_id("call")
        call = ToolCall(id=self._ground.log.state.unique_call_id(None, wanted), name="read_file")
        return await self._ask(
            call, "read", withheld.title, withheld.subject, withheld.judge, emit, secret=True
        )

    async def _ask(
        self,
        call: ToolCall,
        kind: ToolKind,
        title: str,
        subject: PermissionSubject,
        judge: Callable[[], Decision],
        emit: Emit,
        *,
        secret: bool,
    ) -> Verdict:
        questions = self.questions
        options = questions.rules.options(call.name, subject, trusted=self.is_trusted, secret=secret)
        session_id = self._ground.log.state.session_id
        asked = Asked(session_id, self._prompt_id, call, kind, title, subject, options, judge, emit)
        return await questions.ask(asked if self._parent is None else self._parent.asked(asked))
