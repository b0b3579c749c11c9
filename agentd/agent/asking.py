"""One answer of the model, with what may stand in its way: a history too long for it, images, a server that
does not read all that it is sent, an answer that only looks like a tool call."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from agentd.agent.compaction import Compactor
from agentd.agent.exchange import Exchange
from agentd.agent.host import Engine, Host
from agentd.agent.request import request_for
from agentd.agent.unread_calls import names_unread_call, unread_call_notice
from agentd.protocol.events import Notice
from agentd.protocol.messages import AssistantBlock, TextContent, Usage
from agentd.providers.base import ModelRequest, ProviderError, StreamEnd


class Asking:
    """Asks the model for a run. `engine` is the one asked last, with what its server has told since."""

    def __init__(self, host: Host, room: Callable[[], Awaitable[None]], compactor: Compactor) -> None:
        """`room` waits for a slow client."""
        self.engine: Engine | None = None
        self._host = host
        self._room = room
        self._compactor = compactor

    async def ask(self, engine: Engine, exchange: Exchange) -> tuple[ModelRequest, StreamEnd]:
        """Ask the model, with a history made shorter where it is too long for it; give what was asked, too.

        Raises `ProviderError`.
        """
        self.engine = engine
        request, end = await self._ask(engine, exchange)
        await self._warn_of_cut_prompt(request, end.usage, resent=exchange.attempts > 1)
        return request, end

    async def _ask(self, engine: Engine, exchange: Exchange) -> tuple[ModelRequest, StreamEnd]:
        await self._compactor.before_request(engine)
        try:
            return await self._send(engine, exchange)
        except ProviderError as error:
            if error.kind != "context_overflow":
                raise
            engine = self.engine or engine  # with the window that the failure told
            await self._compactor.after_overflow(engine, error)
        await exchange.take_back()
        return await self._send(engine, exchange)

    async def _send(self, engine: Engine, exchange: Exchange) -> tuple[ModelRequest, StreamEnd]:
        host = self._host
        sight = await host.images.sight(host.transcript, host.memory, engine.model)
        for word in sight.news if sight is not None else ():
            await self._warn(Notice(severity="warning", message=word))
        request = request_for(host, engine, sight)
        try:
            return request, await exchange.ask(engine, request)
        except ProviderError as error:
            if error.context_limit is not None:
                known = host.learn_window(engine.model, error.context_limit)
                self.engine = replace(engine, model=known)
            raise

    async def _warn_of_cut_prompt(self, request: ModelRequest, usage: Usage | None, *, resent: bool) -> None:
        """Tell the user, once for each model, where its server did not read all that it was sent."""
        notice = self._host.prompt_watch.notice(request, self._host.transcript, usage, resent=resent)
        if notice is not None:
            await self._warn(notice, cutsPrompts=request.model.id)

    async def tell_of_unread_call(self, content: Sequence[AssistantBlock]) -> None:
        """Tell the user where an answer is a call in words, which nobody will run."""
        text = "".join(block.text for block in content if isinstance(block, TextContent))
        if names_unread_call(text, [tool.name for tool in self._host.toolbox.tools]):
            assert self.engine is not None
            await self._warn(Notice(severity="warning", message=unread_call_notice(self.engine.model.id)))

    async def _warn(self, notice: Notice, **private: str) -> None:
        await self._room()
        await self._host.emit(notice, **private)
