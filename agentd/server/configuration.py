"""The settings of the editor: asked for at the start, and taken when they change."""

import logging
from collections.abc import Mapping
from typing import Any

import anyio

from agentd.config.editor_settings import editor_settings
from agentd.daemon.door import ClientError, Door
from agentd.protocol.capabilities import said
from agentd.protocol.wire import Wire
from agentd.server.connection import Connection
from agentd.server.face import EditorFace
from agentd.server.registrations import SECTION, registrations

log = logging.getLogger(__name__)


class ConfigurationParams(Wire):
    """`workspace/didChangeConfiguration`; editors that are asked instead send null or nothing."""

    settings: Any = None


class EditorConfiguration:
    """Keeps what the editor's settings say. `capabilities` are set by `initialize`."""

    def __init__(self, door: Door, connection: Connection, face: EditorFace) -> None:
        self.capabilities: Mapping[str, Any] = {}
        self._door = door
        self._connection = connection
        self._face = face
        self._changes = 0
        self._has_begun = False

    async def begin(self) -> None:
        """Register what is not announced, which may be changes of the settings, and ask for those now.

        Once: a client that says `initialized` twice would have all of it twice. Neither waits for the other,
        as a client may never answer.
        """
        if self._has_begun:
            return
        self._has_begun = True
        async with anyio.create_task_group() as tasks:
            at_once = self._connection.client.quirks.tells_twice
            if wanted := registrations(self.capabilities, at_once=at_once):
                tasks.start_soon(self._ask, "client/registerCapability", {"registrations": wanted})
            if said(self.capabilities, "workspace", "configuration"):
                tasks.start_soon(self.take, None)

    async def take(self, settings: Any) -> None:
        """The settings have changed: to these, or to what the editor answers when it is asked."""
        self._changes += 1
        change = self._changes
        section = settings.get(SECTION) if isinstance(settings, dict) else None
        if section is None and said(self.capabilities, "workspace", "configuration"):
            answer = await self._ask("workspace/configuration", {"items": [{"section": SECTION}]})
            section = answer[0] if isinstance(answer, list) and answer else None
            if change != self._changes:
                return  # they have changed once more meanwhile, and that counts
        told = self._connection.editor_settings = editor_settings(section)
        for problem in told.problems:
            log.warning("%s", problem.message)
        if self._face.options is not None and told.updates is not None:
            self._face.options = self._face.options.model_copy(update={"updates": told.updates})

    async def _ask(self, method: str, params: Any) -> Any:
        try:
            return await self._door.ask(method, params)
        except ClientError as error:
            log.warning("%s", error)
            return None
