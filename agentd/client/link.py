"""The link to a daemon of our own: its process, the connection to it, and everybody who listens.

Strategy: five tasks for as long as the link lives (write, read, drain stderr, await the end, deliver events).
None of them raises: a daemon that is gone fails the calls that wait for it, a callback that raises ends the
block of the link with its error.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from agentd import __version__
from agentd.client.connection import Connection, ConnectionLost, Json
from agentd.client.daemon import Daemon
from agentd.client.event_stream import EventStream
from agentd.client.pulse import Pulse
from agentd.protocol.errors import RpcError
from agentd.protocol.events import EventNotification
from agentd.protocol.messages import PermissionRequest
from agentd.protocol.methods import ClientOptions, PermissionAnswer
from agentd.protocol.text import clean_text

START_SECONDS = 60.0
SHUTDOWN_SECONDS = 2.0

OnPermission = Callable[[PermissionRequest], Awaitable[PermissionAnswer]]
OnEvent = Callable[[EventNotification], Awaitable[None]]


class DaemonEnded(ConnectionLost):
    """The daemon is gone. `exit_code` is negative for a signal; `last_lines` is the end of its stderr."""

    def __init__(self, message: str, exit_code: int | None, last_lines: tuple[str, ...]) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.last_lines = last_lines


class Link:
    """A running daemon and the connection to it. `server` is its `InitializeResult`."""

    def __init__(self, daemon: Daemon, on_permission: OnPermission | None, on_event: OnEvent | None) -> None:
        self.server: Json = {}
        self.daemon = daemon
        self._on_permission = on_permission
        self._on_event = on_event
        self._pulse = Pulse()
        self._streams: list[EventStream] = []
        self._output_ended = anyio.Event()
        self._stderr_ended = anyio.Event()
        self._delivered = anyio.Event()
        self._failure: Exception | None = None
        self._tasks: TaskGroup | None = None
        self._apart: list[anyio.CancelScope] = []
        self.connection = Connection(
            daemon.stdout,
            daemon.stdin,
            on_notification=self._notified,
            on_request=self._asked,
            pulse=self._pulse,
        )

    @asynccontextmanager
    async def open(self, folder: Path | None, options: ClientOptions) -> AsyncIterator[None]:
        """Greet the daemon, and end it with the block. `folder` is its workspace."""
        leaving: Exception | None = None
        async with anyio.create_task_group() as tasks:
            self._listen(tasks)
            try:
                await self._initialize(folder, options)
                yield
            except Exception as error:  # kept out of the task group, which would wrap it in a group
                leaving = error
            finally:
                try:
                    with anyio.CancelScope(shield=True):
                        await self._close()
                finally:
                    for scope in self._apart:
                        scope.cancel()
            tasks.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        if leaving is not None:
            raise leaving

    @asynccontextmanager
    async def events(
        self, prompt_id: str | None = None, session_id: str | None = None
    ) -> AsyncIterator[EventStream]:
        """The events that arrive during the block, of everything or of one prompt or session."""
        stream = EventStream(self._pulse, prompt_id=prompt_id, session_id=session_id)
        self._streams.append(stream)
        try:
            yield stream
        finally:
            stream.close()
            self._streams.remove(stream)

    # --- what the daemon says ---------------------------------------------------------------------

    async def _notified(self, method: str, params: Json) -> None:
        """An event is passed on. The reader then rests while a listener is behind.

        It does not rest while somebody who asked since that listener's last event still waits for the answer:
        the listener itself may be the one who waits.
        """
        if method != "agentd/event":
            return
        for stream in self._streams:
            stream.put(params)
        while any(
            stream.full and not self.connection.waits_for_answer_since(stream.last_taken)
            for stream in self._streams
        ):
            await self._pulse.wait()

    async def _asked(self, method: str, params: Json) -> Json:
        if method != "agentd/permission/request" or self._on_permission is None:
            raise RpcError("methodNotFound", f"This client does not answer {method}.")
        try:
            request = PermissionRequest.model_validate(params)
        except ValueError as error:
            raise RpcError(
                "invalidParams", f"This client does not understand the question: {error}"
            ) from None
        try:
            return (await self._on_permission(request)).model_dump(mode="json")
        except Exception as error:
            self._fail(error)
            raise RpcError("internal", "The client failed while it answered.") from error

    def _fail(self, error: Exception) -> None:
        """An error of a callback ends the client's block."""
        self._failure = self._failure or error
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()

    # --- the daemon's life ------------------------------------------------------------------------

    def _listen(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        for listen in (self.connection.write, self._read, self._drain_stderr, self._await_end):
            tasks.start_soon(self._listen_to_the_end, listen)
        tasks.start_soon(self._deliver)

    async def _listen_to_the_end(self, listen: Callable[[], Awaitable[None]]) -> None:
        """Go on where the block is cancelled from outside: what it takes back then has still an answer."""
        with anyio.CancelScope(shield=True) as scope:
            self._apart.append(scope)
            await listen()

    async def _read(self) -> None:
        assert self._tasks is not None
        try:
            await self.connection.read(self._tasks)
        except ConnectionLost as error:
            self._lose(error)
        self._output_ended.set()
        with anyio.move_on_after(SHUTDOWN_SECONDS):
            await self.daemon.wait()
        await self._bury()

    async def _await_end(self) -> None:
        """The daemon's end counts also where something it left behind holds its output open."""
        await self.daemon.wait()
        with anyio.move_on_after(SHUTDOWN_SECONDS):
            await self._output_ended.wait()
        await self._bury()

    async def _bury(self) -> None:
        with anyio.move_on_after(SHUTDOWN_SECONDS):
            await self._stderr_ended.wait()
        daemon = self.daemon
        self._lose(DaemonEnded(daemon.epitaph(), daemon.exit_code, daemon.last_lines))

    def _lose(self, error: ConnectionLost) -> None:
        self.connection.fail(error)
        for stream in self._streams:
            stream.close(error)

    async def _drain_stderr(self) -> None:
        await self.daemon.drain_stderr()
        self._stderr_ended.set()

    async def _deliver(self) -> None:
        try:
            if self._on_event is not None:
                async with self.events() as events:
                    async for event in events:
                        await self._on_event(event)
        except ConnectionLost:
            pass  # every call that waits is told
        except Exception as error:
            self._fail(error)
        finally:
            self._delivered.set()

    async def _initialize(self, folder: Path | None, options: ClientOptions) -> None:
        uri = None if folder is None else folder.as_uri()
        name = None if folder is None else clean_text(folder.name or str(folder))
        folders = None if folder is None else [{"uri": uri, "name": name}]
        params = {
            "processId": os.getpid(),
            "clientInfo": {"name": "agentd.client", "version": __version__},
            "rootUri": uri,
            "workspaceFolders": folders,
            "capabilities": {"workspace": {"workspaceFolders": True}},
            "initializationOptions": {"agentd": options.model_dump(mode="json")},
        }
        with anyio.move_on_after(START_SECONDS) as scope:
            self.server = await self.connection.request("initialize", params)
        if scope.cancelled_caught:
            raise ConnectionLost(f"agentd did not answer within {START_SECONDS:.0f} s.")
        self.connection.notify("initialized", {})

    async def _close(self) -> None:
        with anyio.move_on_after(SHUTDOWN_SECONDS), suppress(RpcError, ConnectionLost):
            await self.connection.request("shutdown")
        self.connection.notify("exit")
        self.connection.finish_sending()
        await self.daemon.end()
        with anyio.move_on_after(SHUTDOWN_SECONDS):
            await self._delivered.wait()
