"""Requests for prompts: to run one, to say something to one that runs, to stop them."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentd.acp import params as acp
from agentd.acp.content import blocks_of
from agentd.acp.face import AcpFace
from agentd.acp.session_requests import SessionRequests
from agentd.daemon.core import Core
from agentd.daemon.door import Method, Notice, Request
from agentd.daemon.user_settings import UserSettings
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import RunError, RunStop, Usage
from agentd.protocol.methods import CancelParams, PromptAccepted, PromptParams, PromptResult
from agentd.sessions.submission import Submission

log = logging.getLogger(__name__)

_STOP_REASONS: Mapping[RunStop, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "max_turns": "max_turn_requests",
    "refusal": "refusal",
    "aborted": "cancelled",
    "interrupted": "cancelled",  # the daemon ends
}


@dataclass(frozen=True)
class PromptRequests:
    """What clients ask of prompts."""

    core: Core
    face: AcpFace
    opening: SessionRequests
    settings: UserSettings

    def requests(self) -> Mapping[str, Method]:
        """The requests that are served here."""
        return {
            "session/prompt": Method(acp.PromptParams, self.prompt, graceful=True),
            "_session/steering": Method(acp.SteeringParams, self.steer),
        }

    def notices(self) -> Mapping[str, Notice]:
        """Notifications that are acted on here."""
        return {"session/cancel": Notice(acp.SessionParams, self.cancel)}

    async def prompt(self, params: acp.PromptParams, request: Request) -> object:
        """Run a prompt, behind those of its session that are not answered yet."""
        wanted = PromptParams(
            session_id=params.session_id, prompt=blocks_of(params.prompt), when_busy="queue"
        )
        await self.core.house.find_out(self.settings.default_mode)
        session = await self.opening.session(params.session_id)
        self.core.sessions.used(session)
        self.opening.background(self.opening.tell_commands, session)

        def started(taken: Submission) -> None:
            request.on_cancel(taken.cancel)

        result = await session.prompt(wanted, started)
        assert isinstance(result, PromptResult)
        return _response(result)

    async def steer(self, params: acp.SteeringParams, request: Request) -> object:
        """Say something to the prompt that runs; without one it is a prompt, or left to the client."""
        wanted = PromptParams(
            session_id=params.session_id,
            prompt=blocks_of(params.prompt),
            when_busy="steer",
            wait="accepted",
        )
        session = await self.opening.session(params.session_id)
        wish = params.meta.steering.idle_behavior
        if session.info.state == "idle" and wish == "promptRequired":
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        accepted = await session.prompt(wanted)
        assert isinstance(accepted, PromptAccepted)
        return {"outcome": "injected" if accepted.outcome == "steered" else "startedNewTurn"}

    def cancel(self, params: acp.SessionParams) -> None:
        """Cancel what runs in a session and what waits in it.

        Not in this step: the prompt that it means may be the message before, whose task has not begun.
        """
        self.opening.background(self._cancel, params.session_id)

    async def _cancel(self, session_id: str) -> None:
        try:
            await self.core.sessions.cancel(CancelParams(session_id=session_id))
        except RpcError as error:
            log.warning("nothing was cancelled: %s", error.message)


def _response(result: PromptResult) -> object:
    """The answer to a prompt that began. Raises `RpcError` for an error: ACP has no such end."""
    if result.stop_reason == "error":
        raise _error(result.error)
    response: dict[str, Any] = {"stopReason": _STOP_REASONS[result.stop_reason]}
    if result.usage is not None:
        response["usage"] = _usage(result.usage)
    told = {"promptId": result.prompt_id, "stopReason": result.stop_reason, "turns": result.turns}
    response["_meta"] = {"agentd": told}
    return response


def _error(error: RunError | None) -> RpcError:
    if error is None:
        return RpcError("internal", "The prompt failed.")
    more = error.model_dump(mode="json", by_alias=True, exclude={"kind", "message", "retryable"})
    kind = {"auth": "authRequired", "storage": "storage", "overloaded": "overloaded"}.get(
        error.kind, "internal"
    )
    return RpcError(kind, error.message, retryable=error.retryable, error=error.kind, **more)


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "totalTokens": usage.total,
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "thoughtTokens": usage.reasoning,
        "cachedReadTokens": usage.cache_read,
        "cachedWriteTokens": usage.cache_write,
    }
