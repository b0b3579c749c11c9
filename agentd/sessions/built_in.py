"""The commands that agentd has itself, run as a prompt: agentd answers, in the place of a model.

Most is done before the run tells its first event, as a request of the same kind would do it; the run then
says what came of it. Only `/compact` asks a model, so it happens inside the run, where it can be watched and
stopped. Requests show neither the command nor its answer; of an undo the model is told, as files are not what
it knows.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Literal, cast, get_args

import anyio.to_thread

from agentd.agent.host import Engine
from agentd.agent.memory import BUILT_IN, is_aside
from agentd.protocol.errors import RpcError
from agentd.protocol.events import CompactionEnd, RewoundFile, SessionChanged
from agentd.protocol.messages import CommandContent, Mode, ResultBlock, RunError, TextContent, Usage
from agentd.protocol.methods import SessionRewindParams
from agentd.protocol.text import visible
from agentd.providers.base import Model, ModelRequest, ProviderError, StreamEnd, StreamEvent, TextDelta
from agentd.sessions.export import closed, fenced, markdown
from agentd.sessions.file_changes import diff
from agentd.sessions.ground import Ground
from agentd.sessions.house import House
from agentd.sessions.log import refusing
from agentd.sessions.rewinding import Rewinding
from agentd.sessions.state import SessionState
from agentd.sessions.words import commands_in
from agentd.workspace.paths import path_of
from agentd.workspace.untitled import is_untitled

_MODES: tuple[Mode, ...] = get_args(Mode)
_MOST_SHOWN = 200_000  # characters of a diff or an export: the answer stays in the session
_MOST_LOOKED_AT = 50  # prompts, for one whose changes can be undone

Compact = Callable[[str | None], Awaitable[CompactionEnd]]


def check(command: CommandContent, house: House, session_model: str | None) -> None:
    """Raise `RpcError` for arguments that a command does not take, and noModel where it needs a model."""
    said = command.arguments.strip()
    if command.name == "compact":
        house.engines.engine(session_model, None)
    elif command.name == "model" and said:
        house.engines.engine(said, None)
    elif command.name == "mode" and said and said not in _MODES:
        raise RpcError("invalidParams", f'/prompt: there is no mode "{said}"; say {", ".join(_MODES)}')
    elif command.name not in ("compact", "model", "mode") and said:
        raise RpcError("invalidParams", f"/prompt: /{command.name} takes no arguments")


class BuiltIn:
    """One run of a built-in command; `providers.base.Provider` of its answer."""

    def __init__(self, command: CommandContent, ground: Ground, compact: Compact, prompt_id: str) -> None:
        self.shown: tuple[ResultBlock, ...] = ()
        """What the model is told of it."""
        self._name = command.name
        self._arguments = command.arguments.strip()
        self._ground = ground
        self._prompt_id = prompt_id
        self._log, self._house = ground.log, ground.house
        self._compact = compact
        self._answer = ""
        self._error: RunError | None = None

    @property
    def engine(self) -> Engine:
        """What answers: no model."""
        return Engine(Model(*BUILT_IN), self)

    async def perform(self) -> None:
        """Do it, as far as no model is asked. What goes wrong becomes the answer."""
        try:
            self._answer = await {
                "compact": self._nothing,
                "cost": self._cost,
                "diff": self._diff,
                "export": self._export,
                "help": self._help,
                "mode": self._mode,
                "model": self._model,
                "undo": self._undo,
            }[self._name]()
        except OSError as error:
            why = f"What files were before cannot be read: {error.strerror}."
            self._error = RunError(kind="storage", message=why)
        except RpcError as error:
            kind: Literal["storage", "bad_request"] = "storage" if error.kind == "storage" else "bad_request"
            message = f"{error.message} {error.hint}" if error.hint else error.message
            self._error = RunError(kind=kind, message=message, retryable=error.retryable)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """The answer."""
        yield self._events()

    async def aclose(self) -> None:
        """Nothing is held."""

    async def _events(self) -> AsyncIterator[StreamEvent]:
        if self._name == "compact":
            await self._sum_up()
        if self._error is not None:
            raise ProviderError(self._error.kind, self._error.message)
        yield TextDelta(0, self._answer)
        yield StreamEnd("stop")

    # --- the commands -----------------------------------------------------------------------------

    async def _nothing(self) -> str:
        return ""

    async def _sum_up(self) -> None:
        end = await self._compact(self._arguments or None)
        self._error = end.error
        if end.outcome == "nothingToDo":
            self._answer = "There is nothing that could be summed up."
        else:
            self._answer = f"Summed up: {end.tokens_before:,} tokens became {end.tokens_after or 0:,}."

    async def _cost(self) -> str:
        used = self._log.state.usage
        return "Nothing has been used yet." if used is None else _told_of_usage(used)

    async def _diff(self) -> str:
        place, state = self._ground, self._log.state
        found = await anyio.to_thread.run_sync(diff, state, place.checkpoints, place.root, None)
        if not found.files:
            return "This session has changed no files."
        patch, cut = _beginning(found.patch)
        return fenced(visible(patch), "diff") + cut

    async def _export(self) -> str:
        state = self._log.state
        said = [each for each in state.messages if not is_aside(each)]
        text, cut = _beginning(markdown(state.info(alive=False), said))
        more = f"{cut} `agentd sessions export {state.session_id}` gives all of it." if cut else ""
        return closed(text) + more

    async def _help(self) -> str:
        commands = commands_in(self._ground.root, self._house)
        found = await anyio.to_thread.run_sync(commands.catalogue)
        lines = []
        for info in found.infos():
            hint = f" {info.argument_hint}" if info.argument_hint else ""
            whose = "" if info.source == "built-in" else f" ({info.source})"
            lines.append(f"- `/{info.name}{hint}`: {info.description}{whose}")
        return visible("\n".join(lines))

    async def _mode(self) -> str:
        base = self._log.state.base
        if not self._arguments:
            return f"The mode is `{base.mode}`. There are {', '.join(_MODES)}."
        mode = cast(Mode, self._arguments)
        await self._house.find_out(mode)
        self._house.check_mode(mode)
        self._change(mode=mode)
        return f"The mode is `{mode}` from now on."

    async def _model(self) -> str:
        base = self._log.state.base
        if not self._arguments:
            return f"The model is `{base.model}`." if base.model else "No model is chosen."
        self._change(model=self._arguments)
        return f"The model is `{self._arguments}` from now on."

    def _change(self, **fields: str) -> None:
        state = self._log.state
        update = {**fields, "seq": state.seq + 1}
        with refusing():
            self._log.record(SessionChanged(session=state.info(alive=False).model_copy(update=update)))

    async def _undo(self) -> str:
        """Bring back the files of the last prompt that has changed any which are not back yet."""
        place = self._ground
        more = (place.checkpoints, place.seen, place.shell)
        rewinding = Rewinding(place.root, self._log, self._house, *more, by=self._prompt_id)
        changes = await anyio.to_thread.run_sync(place.checkpoints.changes)
        changed = {change.origin for change in changes if not change.is_rewind}
        state = self._log.state
        said = state.begun[: _undone_from(state, changed)]
        prompts = [each for each in reversed(said) if each in changed and each in state.starts]
        stuck: Sequence[RewoundFile] = ()
        for prompt_id in prompts[:_MOST_LOOKED_AT]:
            params = SessionRewindParams(
                session_id=state.session_id, prompt_id=prompt_id, scope="files", dry_run=True
            )
            found = (await rewinding.run(params)).files
            if any(file.conflict is None for file in found):
                done = await rewinding.run(params.model_copy(update={"dry_run": False}))
                return self._told_of_undo(done.files)
            stuck = stuck or found
        return self._told_of_undo(stuck) if stuck else "There are no changes to undo."

    def _told_of_undo(self, files: Sequence[RewoundFile]) -> str:
        back = [self._named(file) for file in files if file.conflict is None]
        stayed = [f"{self._named(file)}: {file.conflict}" for file in files if file.conflict is not None]
        if back:
            told = "The user has taken back what was changed. These files are as they were before"
            self.shown = (TextContent(text=f"[{told}: {', '.join(back)}]"),)
        lines = [f"- `{name}` is as it was before." for name in back] + [f"- {each}" for each in stayed]
        return visible("\n".join(lines))

    def _named(self, file: RewoundFile) -> str:
        if is_untitled(file.uri):
            return visible(file.uri)
        path = path_of(file.uri)
        return visible(
            str(path.relative_to(self._ground.root) if path.is_relative_to(self._ground.root) else path)
        )


def _beginning(text: str) -> tuple[str, str]:
    """As much of a text as is shown, and a word on that where it is not all."""
    if len(text) <= _MOST_SHOWN:
        return text, ""
    return text[:_MOST_SHOWN], f"\n\nThis is the beginning of {len(text):,} characters."


def _undone_from(state: SessionState, changed: Collection[str]) -> int:
    """From which prompt on nothing is left to be undone: the last rewind went back there, and none of those
    that were said since has `changed` files.
    """
    last = state.rewound
    if last is None or last.is_undone or last.scope == "conversation" or last.prompt_id not in state.begun:
        return len(state.begun)
    since = state.begun[state.rewinds[last.rewind_id] :]
    if any(each in changed for each in since):
        return len(state.begun)
    return state.begun.index(last.prompt_id)


def _told_of_usage(used: Usage) -> str:
    lines = [f"- {used.total:,} tokens: {used.input:,} read, {used.output:,} written"]
    if used.cache_read or used.cache_write:
        lines.append(f"- {used.cache_read:,} read from the cache, {used.cache_write:,} written to it")
    if used.context_tokens:
        window = f" of {used.context_window:,}" if used.context_window else ""
        lines.append(f"- The conversation fills {used.context_tokens:,}{window} tokens.")
    if used.cost is not None:
        lines.append(f"- It cost about {used.cost.total:.4f} {used.cost.currency}.")
    return "\n".join(lines)
