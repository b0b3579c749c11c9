"""agentd's requests: one short function each, from the params of the wire to what sessions do."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from agentd import __version__
from agentd.config.secrets import Secrets
from agentd.config.state_file import StateError
from agentd.permissions.patterns import in_words
from agentd.protocol import methods as wire
from agentd.protocol.capabilities import initialize_result
from agentd.protocol.documents import DocumentDiagnostics, FocusParams
from agentd.protocol.errors import RpcError
from agentd.protocol.wire import Encoded
from agentd.server.configuration import ConfigurationParams, EditorConfiguration
from agentd.server.connection import (
    Connection,
    FoldersParams,
    InitializeParams,
    ProgressCancelParams,
    TraceParams,
    client_options,
)
from agentd.server.door import Door, Method, Notice, Request
from agentd.server.editor import ClientEditor
from agentd.server.face import EditorFace
from agentd.server.lifetime import Lifetime
from agentd.server.progress import Progress, ProgressTokens, Token
from agentd.server.trace import trace_level
from agentd.sessions.conversation import LOOK_SECONDS
from agentd.sessions.engines import ConfiguredEngines
from agentd.sessions.house import House
from agentd.sessions.prompts import blocks_of, title_of_blocks
from agentd.sessions.session import Session
from agentd.sessions.store import Sessions
from agentd.sessions.submission import Submission
from agentd.sessions.words import commands_in, look_up
from agentd.tools.skill import NAME as SKILL
from agentd.tools.skill import with_skills
from agentd.workspace.skills import NO_SKILLS, Skills

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0  # for folders of commands, on a disk that hangs


@dataclass
class Methods:
    """What the methods work on."""

    connection: Connection
    face: EditorFace
    house: House
    engines: ConfiguredEngines
    sessions: Sessions
    lifetime: Lifetime
    door: Door
    secrets: Secrets
    editor: ClientEditor
    configuration: EditorConfiguration
    tokens: ProgressTokens = field(default_factory=ProgressTokens)
    looking: anyio.Lock = field(default_factory=anyio.Lock)

    def requests(self) -> Mapping[str, Method]:
        """Every request that is served."""
        return {
            "initialize": Method(InitializeParams, self.initialize),
            "shutdown": Method(wire.Empty, self.shutdown),
            "agentd/prompt": Method(wire.PromptParams, self.prompt, graceful=True),
            "agentd/cancel": Method(wire.CancelParams, self.cancel, always_admitted=True),
            "agentd/session/new": Method(wire.SessionNewParams, self.session_new),
            "agentd/session/list": Method(wire.SessionListParams, self.session_list),
            "agentd/session/get": Method(wire.SessionGetParams, self.session_get),
            "agentd/session/update": Method(wire.SessionUpdateParams, self.session_update),
            "agentd/session/attach": Method(wire.SessionAttachParams, self.session_attach),
            "agentd/session/export": Method(wire.SessionParams, self.session_export),
            "agentd/session/compact": Method(wire.SessionCompactParams, self.session_compact),
            "agentd/session/fork": Method(wire.SessionForkParams, self.session_fork),
            "agentd/session/rewind": Method(wire.SessionRewindParams, self.session_rewind),
            "agentd/session/diff": Method(wire.SessionDiffParams, self.session_diff),
            "agentd/session/original": Method(wire.SessionOriginalParams, self.session_original),
            "agentd/session/close": Method(wire.SessionParams, self.session_close),
            "agentd/session/delete": Method(wire.SessionParams, self.session_delete),
            "agentd/queue/update": Method(wire.QueueUpdateParams, self.queue_update),
            "agentd/status": Method(wire.Empty, self.status),
            "agentd/models": Method(wire.ModelsParams, self.models),
            "agentd/tools": Method(wire.ToolsParams, self.tools),
            "agentd/commands": Method(wire.CommandsParams, self.commands),
            "agentd/schema": Method(wire.Empty, self.schema),
            "agentd/credentials/set": Method(wire.CredentialsParams, self.credentials_set),
            "agentd/permission/respond": Method(wire.PermissionRespondParams, self.permission_respond),
            "agentd/permissions/rules": Method(wire.PermissionRulesParams, self.permission_rules),
            "agentd/permissions/revoke": Method(wire.PermissionRevokeParams, self.permission_revoke),
        }

    def notices(self) -> Mapping[str, Notice]:
        """Every notification that is acted on, but those of documents."""
        return {
            "agentd/trust/didChange": Notice(wire.TrustParams, self.trust_changed),
            "agentd/diagnostics/publish": Notice(DocumentDiagnostics, self.editor.told.publish),
            "agentd/focus": Notice(FocusParams, self.editor.look),
            "initialized": Notice(wire.Empty, self.initialized),
            "workspace/didChangeConfiguration": Notice(ConfigurationParams, self.configuration_changed),
            "$/setTrace": Notice(TraceParams, self.trace_set),
            "window/workDoneProgress/cancel": Notice(ProgressCancelParams, self.progress_cancelled),
            "workspace/didChangeWorkspaceFolders": Notice(FoldersParams, self.folders_changed),
        }

    # --- the life of the server -------------------------------------------------------------------

    async def initialize(self, params: InitializeParams, request: Request) -> object:
        """Take the client's description of itself; the answer may have gone out before (`boot.py`)."""
        options = client_options(params)
        if options is not None:
            if options.mode != "auto":  # a default only: it is judged when a session begins
                self.house.check_mode(options.mode)
            for provider, secret in options.credentials.items():
                self.set_credential(provider, secret)
        self.connection.open(params, options)
        self.configuration.capabilities = params.capabilities
        self.face.options = options
        self.door.trace.level = trace_level(params.trace)
        self.editor.open(params.capabilities, options)
        if params.process_id is not None:
            self.lifetime.follow_parent(params.process_id)
        self.background(self.engines.warm_up, self.connection.default_model)
        self.background(self.house.find_out, self.connection.default_mode)
        return initialize_result(self.editor.position_encoding)

    async def shutdown(self, params: wire.Empty, request: Request) -> None:
        """Stop all runs and answer their prompts; after this, only `exit` is left."""
        await self.sessions.close_all("interrupted")

    # --- prompts ----------------------------------------------------------------------------------

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
        progress = Progress(self.door, token)
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
        self.house.check_mode(params.mode)
        words, default = look_up(blocks, root, self.house), self.connection.model_in(root)
        if words.built_in is not None:
            from agentd.sessions import built_in

            built_in.check(words.built_in, self.house, default)
        else:
            self.engines.engine(params.model or words.model or default, params.effort)
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

    # --- sessions ---------------------------------------------------------------------------------

    async def session_new(self, params: wire.SessionNewParams, request: Request) -> wire.SessionResult:
        """A new session; its first event follows the response."""
        await self.house.find_out(params.mode)
        new = await self.sessions.create(self.connection.root(params.workspace_uri), params)
        request.after(new.introduce)
        return wire.SessionResult(session=new.session.info)

    async def session_list(self, params: wire.SessionListParams, request: Request) -> wire.SessionListResult:
        """Sessions, newest first."""
        root = self.connection.root(params.workspace_uri) if params.workspace_uri is not None else None
        return await self.sessions.listing(params, root)

    async def session_get(
        self, params: wire.SessionGetParams, request: Request
    ) -> wire.SessionGetResult | Encoded:
        """A session and its messages."""
        result = await self.sessions.get(params)
        self.face.release(params.session_id)  # what it tells must not come again behind it
        return result

    async def session_attach(self, params: wire.SessionAttachParams, request: Request) -> wire.AttachResult:
        """Open a session, tell what happened in it, and from then on all that happens."""
        result = await self.sessions.attach(params)
        self.face.release(params.session_id)  # as in a reading
        return result

    async def session_export(self, params: wire.SessionParams, request: Request) -> wire.SessionExportResult:
        """A session as Markdown."""
        return await self.sessions.export(params.session_id)

    async def session_delete(self, params: wire.SessionParams, request: Request) -> wire.Empty:
        """Cancel what runs in a session and remove it for good."""
        await self.sessions.delete(params.session_id)
        return wire.Empty()

    async def session_fork(self, params: wire.SessionForkParams, request: Request) -> wire.SessionResult:
        """A new session that goes on from a message of another one; its first event follows the response."""
        new = await self.sessions.fork(params)
        request.after(new.introduce)
        return wire.SessionResult(session=new.session.info)

    async def session_rewind(
        self, params: wire.SessionRewindParams, request: Request
    ) -> wire.SessionRewindResult:
        """Bring files, messages or both back to just before a prompt, or undo that."""
        return await self.sessions.rewind(params)

    async def session_diff(self, params: wire.SessionDiffParams, request: Request) -> wire.SessionDiffResult:
        """What a prompt, or all of a session, did to files."""
        return await self.sessions.diff(params)

    async def session_original(
        self, params: wire.SessionOriginalParams, request: Request
    ) -> wire.SessionOriginalResult:
        """What a file was before a prompt."""
        return await self.sessions.original(params)

    async def session_update(self, params: wire.SessionUpdateParams, request: Request) -> wire.SessionResult:
        """Change a session's title, model, mode or effort."""
        await self.house.find_out(params.mode)
        session = await self.sessions.open(params.session_id)
        return wire.SessionResult(session=session.update(params))

    async def session_compact(
        self, params: wire.SessionCompactParams, request: Request
    ) -> wire.SessionCompactResult:
        """Have the model sum up a session's history, which is what it sees of it from then on."""
        session = await self.sessions.open(params.session_id)
        return await session.compact(params.instructions)

    async def session_close(self, params: wire.SessionParams, request: Request) -> wire.Empty:
        """Cancel what runs in a session and let go of it."""
        await self.sessions.close(params.session_id)
        return wire.Empty()

    # --- the rest ---------------------------------------------------------------------------------

    async def status(self, params: wire.Empty, request: Request) -> wire.StatusResult:
        """How the daemon does."""
        sessions = tuple(
            wire.SessionStatus(
                session_id=(info := session.info).session_id,
                state=info.state,
                last_activity_at=info.updated_at,
                instructions=session.state.instructions,
            )
            for session in self.sessions.opened
        )
        return wire.StatusResult(
            version=__version__,
            uptime_ms=self.lifetime.uptime_ms,
            sessions=sessions,
            problems=(
                *self.house.problems,
                *self.engines.problems(),
                *self.sessions.problems,
                *await self._skill_problems(),
                *await self._command_problems(),
            ),
            sandbox=self._sandbox_status(),
        )

    async def models(self, params: wire.ModelsParams, request: Request) -> wire.ModelsResult:
        """The models that can be named; of one provider as its server tells them."""
        default = self.connection.default_model
        if params.provider is None:
            return wire.ModelsResult(models=self.engines.models(), default=default)
        return wire.ModelsResult(models=await self.engines.models_of(params.provider), default=default)

    def _sandbox_status(self) -> wire.SandboxStatus | None:
        """What is known of the sandbox: nothing before a command or mode `auto` has needed it."""
        status = self.house.sandbox.known if self.house.sandbox is not None else None
        if status is None:
            return None
        return wire.SandboxStatus(backend=status.backend, reason=status.reason or None, gaps=status.gaps)

    async def _skill_problems(self) -> list[wire.Problem]:
        """What is wrong with skills, the user's and those of every folder that is worked in."""
        roots = (*self.connection.roots, *(session.root for session in self.sessions.opened))
        told: dict[wire.Problem, None] = {}
        for root in dict.fromkeys(roots) or (None,):
            found = await self._skills_in(root)
            is_trusted = root is not None and self.connection.trusts(root)
            told |= dict.fromkeys(found.problems(trusted=is_trusted))
        return list(told)

    async def _skills_in(self, root: Path | None) -> Skills:
        """The skills for work in a folder. One look at a time: requests are answered in their order."""
        async with self.looking:
            with anyio.move_on_after(LOOK_SECONDS):
                return await anyio.to_thread.run_sync(self.house.skills.find, root, abandon_on_cancel=True)
        return NO_SKILLS

    def _root_if_clear(self, workspace_uri: str | None) -> Path | None:
        """The workspace folder that is named, or meant; None where nobody can say. Raises `RpcError`."""
        try:
            return self.connection.root(workspace_uri)
        except RpcError:
            if workspace_uri is not None:
                raise
            return None

    async def tools(self, params: wire.ToolsParams, request: Request) -> wire.ToolsResult:
        """The tools that the model may call in a workspace folder: skills only where there are any."""
        root = self._root_if_clear(params.workspace_uri)
        found, trusted = await self._skills_in(root), root is not None and self.connection.trusts(root)
        reasons = {}
        if not found.loadable(trusted=trusted):
            reasons[SKILL] = (
                "There are no skills here."
                if trusted or not found.projects
                else "The skills here are the workspace's, which is not trusted."
            )
        return wire.ToolsResult(
            tools=tuple(
                wire.ToolInfo(
                    name=tool.name,
                    description=tool.description,
                    parameters=tool.parameters,
                    kind=tool.kind,
                    source="built-in",
                    available=tool.name not in reasons,
                    reason=reasons.get(tool.name),
                )
                for tool in with_skills(self.house.toolbox).tools
            )
        )

    async def commands(self, params: wire.CommandsParams, request: Request) -> wire.CommandsResult:
        """The commands that a prompt may name in a workspace folder."""
        root = self.connection.root(params.workspace_uri)
        found = await anyio.to_thread.run_sync(commands_in(root, self.house).catalogue)
        return wire.CommandsResult(commands=found.infos())

    async def _command_problems(self) -> tuple[wire.Problem, ...]:
        """What is wrong with commands, as far as the disk tells in time."""
        found: dict[str, wire.Problem] = {}
        with anyio.move_on_after(_LOOK_SECONDS):
            for root in self.connection.roots:
                commands = commands_in(root, self.house)
                look = commands.catalogue
                catalogue = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
                found |= {problem.message: problem for problem in catalogue.problems}
        return tuple(found.values())

    async def schema(self, params: wire.Empty, request: Request) -> object:
        """JSON Schema of everything on the wire."""
        from agentd.protocol.schema import json_schema

        return json_schema()

    async def credentials_set(self, params: wire.CredentialsParams, request: Request) -> wire.Empty:
        """Keep a key in memory, or forget it."""
        self.set_credential(params.provider, params.secret)
        return wire.Empty()

    def set_credential(self, provider: str, secret: str | None) -> None:
        """Keep a key for a provider, and out of the log."""
        if secret is not None:
            self.secrets.learn(secret)
        self.engines.set_credential(provider, secret)

    async def permission_respond(self, params: wire.PermissionRespondParams, request: Request) -> wire.Empty:
        """An answer to a question from another view than the one that was asked."""
        answer = wire.PermissionAnswer(option_id=params.option_id, feedback=params.feedback)
        if not any(session.respond(params.request_id, answer) for session in self.sessions.opened):
            raise RpcError("permissionClosed", f'The question "{params.request_id}" is not open (any more).')
        return wire.Empty()

    async def permission_rules(
        self, params: wire.PermissionRulesParams, request: Request
    ) -> wire.PermissionRulesResult:
        """What the user allowed for good in a folder: for its open sessions, in it, and everywhere."""
        root = self.connection.root(params.workspace_uri)
        rules = [
            rule
            for session in self.sessions.opened
            if session.root == root
            for rule in session.rules.of_session
        ]
        if self.house.rules is not None:
            rules += await anyio.to_thread.run_sync(self.house.rules.rules, root)
        return wire.PermissionRulesResult(
            rules=tuple(
                wire.PermissionRule(
                    rule_id=rule.rule_id,
                    scope=rule.scope,
                    tool=rule.tool,
                    pattern=in_words(rule.patterns, rule.tool, root),
                    created_at=rule.created_at,
                )
                for rule in rules
            )
        )

    async def permission_revoke(self, params: wire.PermissionRevokeParams, request: Request) -> wire.Empty:
        """Take a rule back; it covers nothing from the next tool call on."""
        try:
            if any(session.rules.revoke(params.rule_id) for session in self.sessions.opened):
                return wire.Empty()
            store = self.house.rules
            if store is not None and await anyio.to_thread.run_sync(store.revoke, params.rule_id):
                return wire.Empty()
        except StateError as error:
            raise RpcError("storage", str(error)) from error
        raise RpcError(
            "invalidParams",
            f'/ruleId: there is no rule "{params.rule_id}"',
            hint="agentd/permissions/rules tells which there are.",
        )

    def background(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Do something that nobody waits for; when it fails, the log says so and the daemon goes on."""

        async def contained() -> None:
            try:
                await function(*args)
            except Exception:
                log.exception("in the background: %s", getattr(function, "__name__", "a task"))

        self.house.start_soon(contained)

    # --- notifications ----------------------------------------------------------------------------

    def trust_changed(self, params: wire.TrustParams) -> None:
        """The user trusts the workspace now, or no longer: open questions are judged anew."""
        self.connection.trusted = params.trusted
        for session in self.sessions.opened:
            session.trust_changed()

    def initialized(self, params: wire.Empty) -> None:
        """The client takes requests now: ask it for its settings, and to tell when they change."""
        self.background(self.configuration.begin)

    def configuration_changed(self, params: ConfigurationParams) -> None:
        """The settings of the editor have changed."""
        self.background(self.configuration.take, params.settings)

    def folders_changed(self, params: FoldersParams) -> None:
        """The sessions of folders that went are closed."""
        for gone in self.connection.change_folders(params.event):
            self.background(self.sessions.close_in, gone)

    def progress_cancelled(self, params: ProgressCancelParams) -> None:
        """The user stopped a prompt from its progress bar."""
        self.tokens.cancel(params.token)

    def trace_set(self, params: TraceParams) -> None:
        """The client wants to hear more of what goes on here, or less."""
        self.door.trace.level = trace_level(params.value)
