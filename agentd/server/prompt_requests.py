"""Requests for prompts: to run one, to take one back, to change what waits."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentd.daemon.door import Door, Method, Request
from agentd.protocol import methods as wire
from agentd.protocol.errors import RpcError
from agentd.server.connection import Connection
from agentd.server.progress import Progress, ProgressTokens, Token
from agentd.sessions.checking import check
from agentd.sessions.house import House
from agentd.sessions.prompts import blocks_of, title_of_blocks
from agentd.sessions.session import Session
from agentd.sessions.store import Sessions
from agentd.sessions.submission import Submission


@dataclass(frozen=True)
class PromptRequests:
    """What clients ask of prompts."""

    connection: Connection
    house: House
    sessions: Sessions
    door: Door
    tokens: ProgressTokens

    def requests(self) -> Mapping[str, Method]:
        """The requests that are served here."""
        return {
            "agentd/prompt": Method(wire.PromptParams, self.prompt, graceful=True),
            "agentd/cancel": Method(wire.CancelParams, self.cancel, always_admitted=True),
            "agentd/queue/update": Method(wire.QueueUpdateParams, self.queue_update),
        }

    async def prompt(
        self, params: wire.PromptParams, request: Request
    ) -> wire.PromptResult | wire.PromptAccepted:
        """Run a prompt in the session it names, else in the workspace's latest, else in a new one."""
        await self.house.find_out(params.mode, self.connection.default_mode)
        session = await self.session_for(params)
        self.sessions.used(session)
        if params.work_done_token is None or params.wait != "completed":
            return await session.prompt(params, lambda taken: request.on_cancel(taken.cancel))
        return await self._prompt_with_progress(session, params, request, params.work_done_token)

    async def _prompt_with_progress(
        self, session: Session, params: wire.PromptParams, request: Request, token: Token
    ) -> wire.PromptResult | wire.PromptAccepted:
        progress = Progress(self.door, token, session.state.todo)
        prompts: list[Submission] = []

        def started(taken: Submission) -> None:
            prompts.append(taken)
            taken.watch(progress.follow)
            self.tokens.add(token, taken.cancel)
            request.on_cancel(taken.cancel)

        try:
            return await session.prompt(params, started)
        finally:
            for taken in prompts:
                self.tokens.remove(token, taken.cancel)
            progress.end()

    async def session_for(self, params: wire.PromptParams) -> Session:
        """The session of a prompt: the one it names, else its workspace's latest, else a new one."""
        if params.session_id is not None:
            session = await self.sessions.open(params.session_id)
            if (
                params.workspace_uri is not None
                and self.connection.root(params.workspace_uri) != session.root
            ):
                place = f'session "{session.session_id}" belongs to another workspace folder'
                raise RpcError("invalidParams", f"/workspaceUri: {place}: {session.info.workspace_uri}")
            return session
        root = self.connection.root(params.workspace_uri)
        async with self.sessions.choosing(root):
            latest = self.sessions.latest(root, params.prompt_id)
            return await (
                self._new_session_for(root, params) if latest is None else self.sessions.open(latest)
            )

    async def _new_session_for(self, root: Path, params: wire.PromptParams) -> Session:
        """A new session for a prompt, once the prompt itself is known to be one that can run."""
        blocks = blocks_of(params.prompt)
        if not blocks:
            raise RpcError("invalidParams", "/prompt: there are no messages to go on from")
        default = self.connection.model_in(root)
        words = check(params, blocks, root, self.house, model=default, effort=None)
        title = "" if words.built_in is not None else title_of_blocks(blocks)
        new = await self.sessions.create(root, wire.SessionNewParams(), title)
        new.introduce()
        return new.session

    async def cancel(self, params: wire.CancelParams, request: Request) -> wire.CancelResult:
        """Cancel the running prompt of a session, or take one out of its queue."""
        return await self.sessions.cancel(params)

    async def queue_update(self, params: wire.QueueUpdateParams, request: Request) -> wire.QueueResult:
        """Change what waits in a session, or let it run."""
        session = await self.sessions.open(params.session_id)
        await self.house.find_out(*session.prompts.wished_modes)
        return wire.QueueResult(queue=session.prompts.update_queue(params))
