"""Prompts as tests send them: waited for, refused, or beside the test."""

from typing import Any

import anyio
import pytest
from sessions.session_home import Home, prompt

from agentd.protocol.errors import RpcError
from agentd.protocol.methods import PromptResult
from agentd.sessions.session import Session


async def refused(session: Session, text: Any = "go", **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await session.prompt(prompt(text, **params))
    return caught.value


async def finished(session: Session, text: Any = "go", **params: Any) -> PromptResult:
    result = await session.prompt(prompt(text, **params))
    assert isinstance(result, PromptResult)
    return result


class Later:
    """A prompt that runs beside the test."""

    def __init__(self, session: Session, text: Any = "go", **params: Any) -> None:
        self.results: list[Any] = []
        self.done = anyio.Event()
        self._arguments = session, text, params

    async def run(self) -> None:
        session, text, params = self._arguments
        try:
            self.results.append(await session.prompt(prompt(text, **params)))
        except RpcError as error:
            self.results.append(error)
        self.done.set()

    async def result(self) -> Any:
        with anyio.fail_after(10):
            await self.done.wait()
        return self.results[0]


def later(living: Home, session: Session, text: Any = "go", **params: Any) -> Later:
    running = Later(session, text, **params)
    living.house.start_soon(running.run)
    return running
