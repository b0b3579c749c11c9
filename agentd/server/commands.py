"""agentd's commands for editors without a plugin: `workspace/executeCommand`, and the menu that names them.

A command does what a request of `methods.py` does, with what a plain editor can say: a text, a place in a
file. It answers at acceptance, never at the end of a prompt (some editors freeze until then), and what comes
later is shown by progress, messages and documents.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import anyio

from agentd.daemon.door import Method, Request
from agentd.daemon.parsing import validate
from agentd.protocol import methods as wire
from agentd.protocol.capabilities import COMMANDS
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import CommandContent, ContentBlock, Mode, ResourceContent, TextContent
from agentd.protocol.text import one_line
from agentd.protocol.wire import Many, Wire, absent
from agentd.server import actions, left_waiting, orders
from agentd.server.actions import CodeActionParams, Target
from agentd.server.editor import ClientEditor
from agentd.server.language_server import file_of, key_of
from agentd.server.methods import Methods
from agentd.server.progress import Progress
from agentd.server.shown import Shown
from agentd.sessions.session import Session
from agentd.sessions.submission import Submission
from agentd.workspace.untitled import is_untitled

_MAX_CHOICES = 12
"""So many models are offered to choose from; a longer list is no question."""


class ExecuteCommandParams(Wire):
    """`workspace/executeCommand`."""

    command: str
    arguments: Many[Any] | None = absent()


class NewSession(Wire):
    """The argument of `agentd.newSession`."""

    workspace_uri: str | None = absent()
    title: str | None = absent()


@dataclass
class Commands:
    """Serves commands and code actions."""

    methods: Methods
    shown: Shown
    editor: ClientEditor
    _last_folder: Path | None = field(default=None, init=False)  # where the user was last, of several

    def requests(self) -> dict[str, Method]:
        """The requests that are served here."""
        return {
            "workspace/executeCommand": Method(ExecuteCommandParams, self.execute),
            "textDocument/codeAction": Method(CodeActionParams, self.code_actions),
        }

    async def execute(self, params: ExecuteCommandParams, request: Request) -> object:
        """Carry out a command. Raises `RpcError` for one that is unknown or whose arguments are wrong."""
        served: dict[str, Callable[[_Arguments], Awaitable[object]]] = {
            "agentd.prompt": self._prompt,
            "agentd.fix": lambda said: self._order(orders.fix, said),
            "agentd.edit": lambda said: self._order(orders.edit, said),
            "agentd.explain": lambda said: self._order(orders.explain, said),
            "agentd.test": lambda said: self._order(orders.test, said),
            "agentd.cancel": self._cancel,
            "agentd.approve": lambda said: self._answer(said, "allow_once"),
            "agentd.reject": lambda said: self._answer(said, "reject_once"),
            "agentd.showTranscript": self._show_transcript,
            "agentd.showDiff": self._show_diff,
            "agentd.undo": self._undo,
            "agentd.newSession": self._new_session,
            "agentd.setModel": self._set_model,
            "agentd.setMode": self._set_mode,
        }
        assert served.keys() == set(COMMANDS)
        if params.command not in served:
            raise RpcError("invalidParams", f'/command: there is no command "{params.command[:100]}"')
        return await served[params.command](_Arguments(params.arguments or ()))

    async def code_actions(self, params: CodeActionParams, request: Request) -> list[dict[str, Any]]:
        """What the editor's menu offers at a place."""
        uri = params.text_document.uri
        path = key_of(uri)
        document = await self.editor.document(path) if path is not None else None
        if path is None or (document is None and is_untitled(uri)):
            return []  # no tool could reach it
        if is_untitled(uri):
            path = self._here()  # where a prompt about it runs
        self._last_folder = self.methods.connection.root_of(path) or self._last_folder
        sessions = [session for session in self.methods.sessions.opened if path.is_relative_to(session.root)]
        running = [session.session_id for session in sessions if session.prompts.run is not None]
        asking = sorted(question.request_id for session in sessions for question in session.pending)
        text = document.text if document is not None else None
        client = self.methods.connection.client
        found = actions.actions(
            params,
            text,
            running=running,
            asking=asking,
            cursor_is_selection=client.quirks.cursor_is_selection,
        )
        return [action.on_wire(as_literal=client.action_literals) for action in found]

    # --- prompts ----------------------------------------------------------------------------------

    async def _prompt(self, said: "_Arguments") -> object:
        """`agentd.prompt [text, target?]`."""
        words, target = said.text(0), said.target(1, optional=True)
        if words is None or not words.strip():
            raise RpcError("invalidParams", "/arguments/0: must be the text of the prompt")
        root = self._root(target, 1)
        blocks: list[ContentBlock] = [TextContent(text=words)]
        if target is not None:
            blocks = [TextContent(text=orders.asked_in(words, target, root)), _resource(target)]
        return await self._begin(root, blocks)

    async def _order(self, order: Callable[[Target, Path], str], said: "_Arguments") -> object:
        """`agentd.fix`, `edit`, `explain`, `test`: `[target]`."""
        target = said.target(0)
        assert target is not None
        root = self._root(target, 0)
        blocks: list[ContentBlock] = [TextContent(text=order(target, root)), _resource(target)]
        return await self._begin(root, blocks, self._reviewer(target))

    def _reviewer(self, target: Target) -> str | None:
        """The session that found what is to be fixed, where it is a finding of ours."""
        path, findings = key_of(target.uri), self.editor.findings
        shown = (findings.session_of(path, each.message) for each in target.diagnostics)
        return next((session_id for session_id in shown if session_id is not None), None)

    def _root(self, target: Target | None, number: int) -> Path:
        """The workspace folder that a command is about: the innermost one that holds the file."""
        if target is None:
            return self._here()
        path = file_of(target.uri)
        if is_untitled(target.uri):
            return self._here()
        if path is None:
            raise RpcError(
                "invalidParams",
                f"/arguments/{number}/uri: must be the file: URI of a file of this machine, or untitled:",
            )
        return self.methods.connection.root_of(path) or self._here()

    def _here(self) -> Path:
        """The folder of a command that names none: of several, the one that the user was in last."""
        folders = self.methods.connection.folders
        if len(folders) < 2:
            return self.methods.connection.root(None)
        return self._last_folder if self._last_folder in folders else folders[0]

    async def _begin(
        self, root: Path, blocks: Sequence[ContentBlock], session_id: str | None = None
    ) -> object:
        """Run a prompt, or queue it behind the one that runs; gives its ids once it is safe."""
        self._last_folder = root
        if session_id is None:
            await self._go_on(root)
        params = wire.PromptParams(
            session_id=session_id,
            workspace_uri=root.as_uri() if session_id is None else None,
            prompt=tuple(blocks),
            prompt_id=self.methods.house.sources.new_id("p"),
            when_busy="queue",
            wait="accepted",
        )
        await self.methods.house.find_out(self.methods.connection.default_mode)
        session = await self.methods.prompts.session_for(params)
        self.methods.sessions.used(session)
        return await self._take(session, params)

    async def _take(self, session: Session, params: wire.PromptParams) -> object:
        """Have a session take a prompt, and show how it goes and ends."""

        def on_start(taken: Submission) -> None:
            progress = self._progress(session, taken)
            self.methods.background(self._follow, session, taken, progress)

        accepted = await session.prompt(params, on_start)
        return {"sessionId": accepted.session_id, "promptId": accepted.prompt_id}

    async def _go_on(self, root: Path) -> None:
        """Such an editor starts agentd anew and knows no sessions: the one that was killed goes on."""
        session = await self.methods.sessions.go_on(root)
        if session is not None:
            title = one_line(session.info.title) or session.session_id
            self.shown.message(f'agentd had ended in the middle; its session "{title}" goes on.')
            if left := session.state.queue:
                self.methods.background(left_waiting.offer, session, left, self.shown, self._take)

    def _progress(self, session: Session, taken: Submission) -> Progress | None:
        if not self.methods.connection.client.progress:
            return None
        token = f"agentd/{taken.prompt_id}"
        progress = Progress(self.methods.door, token, session.state.todo)
        taken.watch(progress.follow)
        if self.methods.connection.client.quirks.progress_is_a_line:
            self.methods.face.listeners[taken.prompt_id] = progress.hear
        self.methods.tokens.add(token, taken.cancel)
        return progress

    async def _follow(self, session: Session, taken: Submission, progress: Progress | None) -> None:
        """Show what becomes of a prompt, until it has ended."""
        try:
            async with anyio.create_task_group() as tasks:
                if progress is not None:
                    tasks.start_soon(progress.create)
                result = await taken.answer()
                tasks.cancel_scope.cancel()
        except* RpcError:  # it never began, which the answer to the command says
            result = None
        finally:
            if progress is not None:
                self.methods.face.listeners.pop(taken.prompt_id, None)
                self.methods.tokens.remove(progress.token, taken.cancel)
                progress.end()
        if result is not None:
            try:
                text = (await self.methods.sessions.export(session.session_id)).text
            except RpcError:  # the session was deleted, and its files are gone
                return
            await self.shown.answer(result, session.journal, text)

    # --- what runs --------------------------------------------------------------------------------

    async def _cancel(self, said: "_Arguments") -> object:
        """`agentd.cancel [sessionId?]`: without one, all that runs here."""
        named = said.text(0)
        running = [s.session_id for s in self.methods.sessions.opened if s.prompts.run is not None]
        cancelled = [named] if named is not None else running
        async with anyio.create_task_group() as tasks:
            for session_id in cancelled:
                tasks.start_soon(self.methods.sessions.cancel, wire.CancelParams(session_id=session_id))
        return {"sessionIds": cancelled}

    async def _answer(self, said: "_Arguments", kind: str) -> object:
        """`agentd.approve`, `agentd.reject`: `[requestId?]`; without one, the oldest question."""
        named = said.text(0)
        asking = [
            (question.request_id, question, session)
            for session in self.methods.sessions.opened
            for question in session.pending
            if named in (None, question.request_id)
        ]
        if asking:
            request_id, question, session = min(asking, key=itemgetter(0))  # ids are in order of time
            option = next((o for o in question.options if o.kind == kind), None)
            answer = wire.PermissionAnswer(option_id=option.option_id if option is not None else "")
            session.respond(request_id, answer)
            return {"requestId": request_id}
        what = "No question is open." if named is None else f'The question "{named}" is not open (any more).'
        raise RpcError("permissionClosed", what)

    # --- what was said and done -------------------------------------------------------------------

    async def _session(self, said: "_Arguments", number: int = 0) -> Session:
        """The session that is named, else the one last used."""
        named = said.text(number)
        if named is None:
            await self._go_on(self._here())
            named = self.methods.sessions.latest(self._here(), None)
        if named is None:
            raise RpcError("sessionNotFound", "There is no session yet.", hint="agentd.prompt begins one.")
        return await self.methods.sessions.open(named)

    async def _show_transcript(self, said: "_Arguments") -> object:
        """`agentd.showTranscript [sessionId?]`."""
        session = await self._session(said)
        text = (await self.methods.sessions.export(session.session_id)).text
        return await self._show(session, "md", text)

    async def _show_diff(self, said: "_Arguments") -> object:
        """`agentd.showDiff [sessionId?]`: what the whole session did to files."""
        session = await self._session(said)
        diff = await self.methods.sessions.diff(wire.SessionDiffParams(session_id=session.session_id))
        if not diff.patch:
            self.shown.message("agentd has changed no file in this session.")
            return {"uri": None}
        return await self._show(session, "diff", diff.patch)

    async def _show(self, session: Session, suffix: Any, text: str) -> object:
        try:
            file = await self.shown.file(session.journal, suffix, text)
        except OSError as error:
            raise RpcError("storage", f"agentd's data folder cannot be written: {error.strerror}") from error
        line = text.count("\n") if suffix == "md" else 0  # of a transcript the end
        self.methods.background(self._open, file, line)  # the editor opens it once it has its answer
        return {"uri": file.as_uri()}

    async def _open(self, file: Path, line: int) -> None:
        if not await self.shown.open(file, line):
            self.shown.message(f"agentd has written it to {file}")

    async def _undo(self, said: "_Arguments") -> object:
        """`agentd.undo`: take back what the last prompt did to files, as the command `/undo` does."""
        session = await self._session(said)
        return await self._begin(session.root, [CommandContent(name="undo")])

    # --- settings ---------------------------------------------------------------------------------

    async def _new_session(self, said: "_Arguments") -> object:
        """`agentd.newSession [{workspaceUri?, title?}?]`: the next prompts go there."""
        wish: NewSession = said.model(0, NewSession) or NewSession()
        uri = wish.workspace_uri
        root = self._here() if uri is None else self.methods.connection.root(uri)
        params = wire.SessionNewParams(workspace_uri=uri, title=wish.title)
        new = await self.methods.sessions.create(root, params)
        new.introduce()
        self._last_folder = root
        self.methods.sessions.used(new.session)
        return {"sessionId": new.session.session_id}

    async def _set_model(self, said: "_Arguments") -> object:
        """`agentd.setModel [model?, sessionId?]`: without one, the user is asked."""
        usable = [model.id for model in self.methods.engines.models() if model.available]
        return await self._set("model", said, usable[:_MAX_CHOICES])

    async def _set_mode(self, said: "_Arguments") -> object:
        """`agentd.setMode [mode?, sessionId?]`: without one, the user is asked."""
        return await self._set("mode", said, list(get_args(Mode)))

    async def _set(self, what: str, said: "_Arguments", choices: list[str]) -> object:
        chosen = said.text(0)
        if chosen is None:
            self.methods.background(self._ask_and_set, what, said, choices)
            return {}
        await self._change(what, said, chosen)
        return {what: chosen}

    async def _ask_and_set(self, what: str, said: "_Arguments", choices: list[str]) -> None:
        if not choices:
            self.shown.message(f"There is no {what} to choose: see `agentd models`.", "warning")
            return
        chosen = await self.shown.choose(f"agentd: which {what}?", choices)
        if chosen is None:
            return
        try:
            await self._change(what, said, chosen)
        except RpcError as error:
            self.shown.message(f"agentd: {error.message}", "error")

    async def _change(self, what: str, said: "_Arguments", chosen: str) -> None:
        """Change the model or mode of a session: the one named, or last used, or a new one."""
        if said.text(1) is None:
            await self._go_on(self._here())
        if said.text(1) is None and self.methods.sessions.latest(self._here(), None) is None:
            await self._new_session(_Arguments(()))
        session = await self._session(said, 1)
        path = "/arguments/0"
        params = validate(wire.SessionUpdateParams, {"sessionId": session.session_id, what: chosen}, path)
        await self.methods.house.find_out(params.mode)
        session.update(params)
        self.shown.message(f"agentd: {what} is {chosen}.")


@dataclass(frozen=True)
class _Arguments:
    """The arguments of a command."""

    values: tuple[Any, ...]

    def _at(self, number: int) -> Any:
        return self.values[number] if number < len(self.values) else None

    def text(self, number: int) -> str | None:
        """A text, None where it is left out. Raises `RpcError` for anything else."""
        value = self._at(number)
        if value is not None and not isinstance(value, str):
            raise RpcError("invalidParams", f"/arguments/{number}: must be a string")
        return value

    def model(self, number: int, kind: type[Wire]) -> Any:
        """An object of this kind, None where it is left out. Raises `RpcError` naming the path."""
        value = self._at(number)
        return None if value is None else validate(kind, value, f"/arguments/{number}")

    def target(self, number: int, *, optional: bool = False) -> Target | None:
        """A place in a file."""
        target: Target | None = self.model(number, Target)
        if target is None and not optional:
            raise RpcError("invalidParams", f"/arguments/{number}: must be an object with the uri of a file")
        return target


def _resource(target: Target) -> ResourceContent:
    return ResourceContent(uri=target.uri, range=target.range)
