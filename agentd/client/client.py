"""`Client`: agentd in a child process, as an async Python object."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack

import anyio

from agentd.client.connection import Json
from agentd.client.daemon import Daemon
from agentd.client.event_stream import EventStream
from agentd.client.link import Link, OnEvent, OnPermission
from agentd.client.prompt_run import SETTLE_SECONDS, PromptRun
from agentd.protocol.events import RewindScope
from agentd.protocol.messages import ContentBlock, Effort, Mode, QueuedPrompt, Session
from agentd.protocol.methods import (
    AttachResult,
    CancelParams,
    CancelResult,
    ClientOptions,
    CredentialsParams,
    ModelsParams,
    ModelsResult,
    PermissionRespondParams,
    PermissionRevokeParams,
    PermissionRulesParams,
    PermissionRulesResult,
    PromptAccepted,
    PromptParams,
    PromptResult,
    QueueResult,
    QueueUpdateParams,
    SessionAttachParams,
    SessionCompactParams,
    SessionCompactResult,
    SessionDiffParams,
    SessionDiffResult,
    SessionExportResult,
    SessionForkParams,
    SessionGetParams,
    SessionGetResult,
    SessionListParams,
    SessionListResult,
    SessionNewParams,
    SessionOriginalParams,
    SessionOriginalResult,
    SessionParams,
    SessionResult,
    SessionRewindParams,
    SessionRewindResult,
    SessionUpdateParams,
    StatusResult,
    ToolsParams,
    ToolsResult,
    TrustParams,
)
from agentd.protocol.wire import Wire

Result = TypeVar("Result", bound=Wire)
WhenBusy = Literal["reject", "queue", "steer", "interrupt"]
QueueOp = Literal["edit", "remove", "move", "clear", "run"]


class PromptOptions(TypedDict, total=False):
    """What may be said with a prompt: the fields of `PromptParams`."""

    session_id: str | None
    workspace_uri: str | None
    prompt_id: str | None
    model: str | None
    mode: Mode | None
    effort: Effort | None
    max_turns: int | None
    when_busy: WhenBusy


class SessionOptions(TypedDict, total=False):
    """What can be set on a session."""

    title: str | None
    model: str | None
    mode: Mode | None
    effort: Effort | None


Prompt = str | Sequence[ContentBlock]


class Client:
    """A daemon of our own and the connection to it.

    `server` is the daemon's `InitializeResult`. Every method raises `RpcError` where the daemon answers with
    an error and `DaemonEnded` where it is gone.
    """

    def __init__(self, link: Link) -> None:
        self.server: Json = link.server
        self._link = link

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        workspace: Path | None = None,
        *,
        command: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        options: ClientOptions | None = None,
        on_permission: OnPermission | None = None,
        on_event: OnEvent | None = None,
        log: Callable[[str], None] | None = None,
    ) -> AsyncIterator["Client"]:
        """Start a daemon on a workspace folder, and end it with the block.

        `command` defaults to this Python's `agentd`; `env` is its whole environment and defaults to ours.
        `on_permission` answers the daemon's questions; without it nothing that needs a permission is done.
        `on_event` is awaited for each event in order: while it works, the daemon waits. An error that one of
        the two raises ends the block with it. `log` gets the lines of the daemon's stderr. Raises `OSError`
        where the command cannot be run.
        """
        folder = None if workspace is None else Path(await anyio.Path(workspace).resolve())
        said = (options or ClientOptions()).model_copy(update={"permission": on_permission is not None})
        daemon = await Daemon.start(command, folder=folder, env=env, log=log)
        link = Link(daemon, on_permission, on_event)
        async with link.open(folder, said):
            yield cls(link)

    # --- prompts ----------------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt, **options: Unpack[PromptOptions]) -> PromptResult:
        """Run a prompt to its end. A cancelled call cancels the prompt and waits, bounded, for its end."""
        params = _prompt_params(prompt, options)
        answer = await self.request("agentd/prompt", params, settle_seconds=SETTLE_SECONDS)
        return PromptResult.model_validate(answer)

    async def submit(self, prompt: Prompt, **options: Unpack[PromptOptions]) -> PromptAccepted:
        """Hand a prompt over and come back when it is safely in the journal, while it runs."""
        params = {**_prompt_params(prompt, options), "wait": "accepted"}
        return PromptAccepted.model_validate(await self.request("agentd/prompt", params))

    @asynccontextmanager
    async def stream(
        self, prompt: Prompt, *, everything: bool = False, **options: Unpack[PromptOptions]
    ) -> AsyncIterator[PromptRun]:
        """Run a prompt and watch it: `async for event in run`, then `run.result`.

        A block that is left early cancels the prompt and waits, bounded, for its end. With `everything` the
        events that belong to no prompt or to another one are given too, until this one is answered.
        """
        params = _prompt_params(prompt, options)
        prompt_id, session_id = params["promptId"], params.get("sessionId")
        async with self.events(
            **({} if everything else {"prompt_id": prompt_id, "session_id": session_id})
        ) as events:
            call = self._link.connection.begin("agentd/prompt", params, on_answer=events.close)
            try:
                yield PromptRun(self._link.connection, events, call, prompt_id)
            finally:
                events.close()
                await self._link.connection.withdraw(call, SETTLE_SECONDS)
                self._link.connection.forget(call)

    def events(
        self, *, prompt_id: str | None = None, session_id: str | None = None
    ) -> AbstractAsyncContextManager[EventStream]:
        """The events that arrive during the block, of everything or of one prompt or session."""
        return self._link.events(prompt_id, session_id)

    async def cancel(
        self, session_id: str, prompt_id: str | None = None, *, keep_queue: bool = False
    ) -> CancelResult:
        """Cancel what a session runs, or one prompt; answered when it has ended."""
        params = CancelParams(session_id=session_id, prompt_id=prompt_id, keep_queue=keep_queue)
        return await self._typed("agentd/cancel", params, CancelResult)

    # --- sessions ---------------------------------------------------------------------------------

    async def new_session(
        self, workspace_uri: str | None = None, **options: Unpack[SessionOptions]
    ) -> Session:
        """A new session in a workspace folder: the client's own where none is named."""
        params = SessionNewParams.model_validate({"workspace_uri": workspace_uri, **options})
        return (await self._typed("agentd/session/new", params, SessionResult)).session

    async def list_sessions(
        self,
        workspace_uri: str | None = None,
        *,
        children: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> SessionListResult:
        """Sessions of a workspace folder, newest first, also those of earlier processes."""
        params = SessionListParams(workspace_uri=workspace_uri, children=children, limit=limit, cursor=cursor)
        return await self._typed("agentd/session/list", params, SessionListResult)

    async def get_session(
        self, session_id: str, *, before: str | None = None, limit: int = 200
    ) -> SessionGetResult:
        """A session with its last `limit` messages, or those before message `before`."""
        params = SessionGetParams(session_id=session_id, before=before, limit=limit)
        return await self._typed("agentd/session/get", params, SessionGetResult)

    async def attach_session(self, session_id: str, *, after_seq: int = 0) -> AttachResult:
        """Open a session, get its durable events behind `after_seq` (or a snapshot), and all that follows.

        `EventNotification.model_validate` makes events of what `events` holds.
        """
        params = SessionAttachParams(session_id=session_id, after_seq=after_seq)
        return await self._typed("agentd/session/attach", params, AttachResult)

    async def update_session(self, session_id: str, **options: Unpack[SessionOptions]) -> Session:
        """Set title, model, mode or effort of a session."""
        params = SessionUpdateParams.model_validate({"session_id": session_id, **options})
        return (await self._typed("agentd/session/update", params, SessionResult)).session

    async def compact_session(self, session_id: str, instructions: str | None = None) -> SessionCompactResult:
        """Have the model sum up a session's history; `instructions` say what to keep above all.

        A cancelled call stops it, and leaves the session as it was.
        """
        params = SessionCompactParams(session_id=session_id, instructions=instructions)
        return await self._typed("agentd/session/compact", params, SessionCompactResult)

    async def fork_session(self, session_id: str, message_id: str | None = None) -> Session:
        """A new session that goes on from a message of another one: the last one where none is named."""
        params = SessionForkParams(session_id=session_id, message_id=message_id)
        return (await self._typed("agentd/session/fork", params, SessionResult)).session

    async def rewind_session(
        self,
        session_id: str,
        prompt_id: str,
        scope: RewindScope = "both",
        *,
        uris: Sequence[str] | None = None,
        dry_run: bool = False,
    ) -> SessionRewindResult:
        """Bring files (all, or these), messages or both back to just before a prompt."""
        said = {"session_id": session_id, "prompt_id": prompt_id, "scope": scope, "dry_run": dry_run}
        params = SessionRewindParams.model_validate({**said, "uris": uris})
        return await self._typed("agentd/session/rewind", params, SessionRewindResult)

    async def undo_rewind(self, session_id: str) -> SessionRewindResult:
        """Undo the last rewind of a session, or the last undoing of one."""
        params = SessionRewindParams(session_id=session_id, undo=True)
        return await self._typed("agentd/session/rewind", params, SessionRewindResult)

    async def diff_session(self, session_id: str, prompt_id: str | None = None) -> SessionDiffResult:
        """What a prompt, or all of a session, did to files."""
        params = SessionDiffParams(session_id=session_id, prompt_id=prompt_id)
        return await self._typed("agentd/session/diff", params, SessionDiffResult)

    async def original_text(self, session_id: str, prompt_id: str, uri: str) -> str | None:
        """A file's text before a prompt; None where there was no file."""
        params = SessionOriginalParams(session_id=session_id, prompt_id=prompt_id, uri=uri)
        return (await self._typed("agentd/session/original", params, SessionOriginalResult)).text

    async def close_session(self, session_id: str) -> None:
        """Close a session, which cancels what it runs; it opens again at its next use."""
        await self.request("agentd/session/close", _wire(SessionParams(session_id=session_id)))

    async def export_session(self, session_id: str) -> str:
        """A session as Markdown."""
        params = SessionParams(session_id=session_id)
        return (await self._typed("agentd/session/export", params, SessionExportResult)).text

    async def delete_session(self, session_id: str) -> None:
        """Remove a session for good; what it runs is cancelled."""
        await self.request("agentd/session/delete", _wire(SessionParams(session_id=session_id)))

    async def update_queue(
        self,
        session_id: str,
        op: QueueOp,
        prompt_id: str | None = None,
        *,
        prompt: Prompt | None = None,
        index: int | None = None,
    ) -> tuple[QueuedPrompt, ...]:
        """Edit, remove, move, clear or run what waits in a session; gives what waits then."""
        said = {"session_id": session_id, "op": op, "prompt_id": prompt_id, "prompt": prompt, "index": index}
        params = QueueUpdateParams.model_validate(said)
        return (await self._typed("agentd/queue/update", params, QueueResult)).queue

    # --- the rest of the protocol -----------------------------------------------------------------

    async def status(self) -> StatusResult:
        """Version, open sessions, and what is wrong with the set-up."""
        return await self._typed("agentd/status", None, StatusResult)

    async def models(self, provider: str | None = None) -> ModelsResult:
        """The models that can be named, and the default.

        Those of one `provider` where it is named: its server is then asked which it has.
        """
        params = ModelsParams(provider=provider)
        return await self._typed("agentd/models", params, ModelsResult)

    async def tools(self, workspace_uri: str | None = None) -> ToolsResult:
        """The tools that the model may call."""
        return await self._typed("agentd/tools", ToolsParams(workspace_uri=workspace_uri), ToolsResult)

    async def schema(self) -> Json:
        """The protocol as JSON Schema 2020-12."""
        schema: Json = await self.request("agentd/schema")
        return schema

    async def set_credentials(self, provider: str, secret: str | None) -> None:
        """Give the daemon a key, which it keeps in memory only, or take it back with None."""
        await self.request(
            "agentd/credentials/set", _wire(CredentialsParams(provider=provider, secret=secret))
        )

    async def respond_permission(self, request_id: str, option_id: str, feedback: str | None = None) -> None:
        """Answer an open question by its id; the first answer wins."""
        params = PermissionRespondParams(request_id=request_id, option_id=option_id, feedback=feedback)
        await self.request("agentd/permission/respond", _wire(params))

    async def permission_rules(self, workspace_uri: str | None = None) -> PermissionRulesResult:
        """What the user allowed for good in a workspace folder."""
        params = PermissionRulesParams(workspace_uri=workspace_uri)
        return await self._typed("agentd/permissions/rules", params, PermissionRulesResult)

    async def revoke_permission(self, rule_id: str) -> None:
        """Take back what the user allowed for good."""
        await self.request("agentd/permissions/revoke", _wire(PermissionRevokeParams(rule_id=rule_id)))

    def set_trusted(self, trusted: bool) -> None:
        """Tell the daemon whether the user trusts the workspace."""
        self.notify("agentd/trust/didChange", _wire(TrustParams(trusted=trusted)))

    async def request(self, method: str, params: Json | None = None, *, settle_seconds: float = 0) -> Any:
        """Any request, as plain JSON. When cancelled, its answer is waited for up to `settle_seconds`."""
        return await self._link.connection.request(method, params, settle_seconds=settle_seconds)

    def notify(self, method: str, params: Json | None = None) -> None:
        """Any notification, as plain JSON."""
        self._link.connection.notify(method, params)

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        return self._link.daemon.pid

    def kill(self) -> None:
        """End the daemon at once, and with it the processes of its tools."""
        self._link.daemon.kill()

    async def _typed(self, method: str, params: Wire | None, result: type[Result]) -> Result:
        return result.model_validate(await self.request(method, {} if params is None else _wire(params)))


def _wire(params: Wire) -> Json:
    return params.model_dump(mode="json")


def _prompt_params(prompt: Prompt, options: PromptOptions) -> Json:
    """The params of `agentd/prompt`. A prompt id is always sent, so that events can be told apart."""
    said = {
        "prompt_id": os.urandom(16).hex(),
        **{key: value for key, value in options.items() if value is not None},
    }
    return _wire(PromptParams.model_validate({"prompt": prompt, **said}))
