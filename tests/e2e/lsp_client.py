"""A pytest-lsp client that keeps agentd's own notifications as the JSON they were."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from pytest_lsp import ClientServerConfig, LanguageClient
from wire.home import Home
from wire.processes import DEADLINE

Json = dict[str, Any]


def plain(value: Any) -> Any:
    """Named tuples (pygls gives them for params that it has no type for) as dictionaries."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


class AgentClient:
    """A language client, the events it got and the questions it was asked."""

    def __init__(self, language_client: LanguageClient) -> None:
        self.lsp = language_client
        self.events: list[Json] = []
        self.questions: list[Json] = []
        self.answer: Callable[[Json], Any] = lambda question: None
        self._changed = asyncio.Event()

        # The function for events is no coroutine: pygls would lose track of a failing task.
        @language_client.feature("agentd/event")
        def on_event(params: Any) -> None:
            self.events.append(plain(params))
            self._changed.set()

        @language_client.feature("agentd/permission/request")
        def on_question(params: Any) -> Any:
            self.questions.append(plain(params))
            self._changed.set()
            return self.answer(self.questions[-1])

    async def request(self, method: str, params: Any = None, request_id: str | None = None) -> Any:
        """Send a request and give its result as plain JSON."""
        async with asyncio.timeout(DEADLINE):
            return plain(await self.lsp.protocol.send_request_async(method, params, msg_id=request_id))

    async def until(self, predicate: Callable[[Json], Any]) -> Json:
        """The first event for which the predicate holds."""
        async with asyncio.timeout(DEADLINE):
            while True:
                for params in self.events:
                    if predicate(params["event"]):
                        return params
                self._changed.clear()
                await self._changed.wait()

    def kinds(self) -> list[str]:
        """The types of the durable events so far."""
        return [p["event"]["type"] for p in self.events if not p["event"]["type"].endswith("_update")]


async def connect(home: Home, *args: str, **env: str) -> AgentClient:
    """Start a daemon under a language client that has not introduced itself yet."""
    config = ClientServerConfig(
        server_command=[sys.executable, "-m", "agentd", *args], server_env=home.environment(**env)
    )
    client = await config.start()
    assert isinstance(client, LanguageClient)
    return AgentClient(client)


async def finish(client: AgentClient, exit_code: int = 0) -> None:
    """Shut the daemon down if it still lives, and check how it ended."""
    server = client.lsp._server
    assert server is not None
    try:
        async with asyncio.timeout(DEADLINE):
            if server.returncode is None:
                await client.lsp.shutdown_session()
                await server.wait()
        assert server.returncode == exit_code
        assert client.lsp.error is None
    finally:
        if server.returncode is None:
            server.kill()
        await client.lsp.stop()
