"""`agentd run`: one prompt, from a terminal or a script."""

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentd.cli.inquiry import whole_number

if TYPE_CHECKING:  # what takes time to import is imported when the arguments are known to be good
    from anyio.abc import TaskGroup

    from agentd.cli.question import Questions
    from agentd.cli.view import RunView
    from agentd.client import Client, PromptRun
    from agentd.protocol.messages import ContentBlock, Mode
    from agentd.protocol.methods import PromptResult

MODES = ("plan", "ask", "edit", "auto", "full")

_DESCRIPTION = """\
Run one prompt in a folder and print the answer on stdout. What the agent does on the way appears on stderr.
Where it needs a permission the question is asked on the terminal; without a terminal it is refused, with a
word on which option would have allowed it.

The whole run is one process: nothing has to be started before, nothing stays behind."""

_EPILOG = """\
permission modes:
  plan   reading only
  ask    reading in the folder is free, every change and command is asked about (the default)
  edit   changes inside the folder are free, commands are asked about
  auto   as edit, and commands in a sandbox are free, where there is one
  full   nothing is asked; needs --allow-full, or a configuration that allows it
edit, auto and full act as ask in a folder that is not trusted (--trust, or agentd trust add), where
rules for commands (agentd permissions) do not count either.

in the prompt:
  @src/a.py, @src/a.py:10-20, @"a name.txt"   shows the model a file, lines of it, or a folder
  /review src/a.py                            runs a command; /help lists them
  A backslash before the @ and a blank before the / make them text, as what comes from stdin always is.

exit codes:
  0  the model came to its end (or to its output limit, which is said on stderr)
  1  an error, a refusal by the model, or no run at all; stderr says why
  2  wrong usage
  3  --max-turns was reached
  130, 143  cancelled by Ctrl-C, by SIGTERM; a second Ctrl-C does not wait for an orderly end
  141  the reader of stdout went away

With --json each line of stdout is the params of one `agentd/event` of the protocol. The last line is
{"type": "result", ...} with the prompt's result, or {"type": "error", "error": ...} where no run began."""

_RECORD_HELP = (
    "write all that is sent to the model and that it answers to a new file, for a bug report: without your "
    "keys, but with what the model saw of your files; the model scripted/FILE replays it"
)


@dataclass(frozen=True)
class Order:
    """What the command line asks for."""

    prompt: "str | tuple[ContentBlock, ...]"
    folder: str
    model: str | None
    mode: "Mode | None"
    max_turns: int | None
    trusted: bool
    allow_full: bool
    json: bool
    record: str | None
    """The absolute path of a file that there is not."""
    goes_on: bool = False
    session: str | None = None


def main(argv: list[str]) -> int:
    """Run one prompt. Gives the exit code that the help text promises."""
    order = _parse(argv)
    if isinstance(order, int):
        return order
    import anyio

    return anyio.run(_run, order)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentd run",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("prompt", help="what to do, or /command; - reads text from stdin")
    parser.add_argument("-C", dest="folder", metavar="DIR", default=".", help="the folder to work in")
    parser.add_argument("-m", "--model", help='the model as "provider/model"; agentd models lists them')
    session = parser.add_mutually_exclusive_group()
    session.add_argument(
        "-c", "--continue", dest="goes_on", action="store_true", help="go on with the folder's latest session"
    )
    session.add_argument(
        "--session", metavar="ID", help="go on with this session of the folder, or the one whose id begins so"
    )
    parser.add_argument("--mode", choices=MODES, help="the permission mode, see below")
    parser.add_argument("--json", action="store_true", help="print events and result as lines of JSON")
    parser.add_argument("--max-turns", type=whole_number, metavar="N", help="the most model requests to make")
    parser.add_argument("--trust", action="store_true", help="you trust what is in the folder")
    parser.add_argument("--allow-full", action="store_true", help="permit --mode full")
    parser.add_argument("--record", metavar="FILE", help=_RECORD_HELP)
    return parser


def _parse(argv: list[str]) -> Order | int:
    """What is asked for, or an exit code where that is unclear."""
    parser = _parser()
    said = parser.parse_args(argv)
    if not os.path.isdir(said.folder):
        parser.error(f"{said.folder!r} is no folder")
    record = None if said.record is None else os.path.abspath(said.record)
    if record is not None and os.path.lexists(record):
        parser.error(f"--record: {said.record!r} exists already; name a new file")
    if record is not None and not os.path.isdir(os.path.dirname(record)):
        parser.error(f"--record: there is no folder {os.path.dirname(record)!r}")
    prompt = _from_stdin() if said.prompt == "-" else _well_formed(said.prompt)
    if not prompt.strip():
        parser.error("the prompt is empty")
    try:
        blocks = prompt if said.prompt == "-" else _read_prompt(prompt, said.folder)
    except ValueError as error:
        parser.error(str(error))
    return Order(
        blocks,
        said.folder,
        said.model,
        said.mode,
        said.max_turns,
        said.trust,
        said.allow_full,
        said.json,
        record,
        said.goes_on,
        said.session,
    )


def _read_prompt(prompt: str, folder: str) -> "str | tuple[ContentBlock, ...]":
    """What a prompt of the command line says: a command, or text that refers to files.

    Raises ValueError. Most prompts are mere text, for which nothing is imported.
    """
    if not prompt.startswith("/") and "@" not in prompt:
        return prompt
    from agentd.cli.prompt_text import read_prompt

    return read_prompt(prompt, folder)


def _from_stdin() -> str:
    return sys.stdin.buffer.read().decode(errors="replace")


def _well_formed(argument: str) -> str:
    """The argument as text: bytes that are no text in the user's encoding become replacement characters."""
    return os.fsencode(argument).decode(errors="replace")


async def _run(order: Order) -> int:
    import anyio

    from agentd.cli.terminal import Output
    from agentd.cli.view import RunView

    view = RunView(Output(sys.stdout), Output(sys.stderr, needed=False))
    interrupt = _Interrupt()
    code: int | None = None
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(interrupt.watch, signals, view, tasks)
            code = await _attempt(order, view, interrupt)
            if order.record is not None:
                await view.note(_told_of(order.record))
            tasks.cancel_scope.cancel()
    return interrupt.exit_code if code is None else code


class _Interrupt:
    """Ctrl-C and SIGTERM: the first asks the run to end, the next one ends everything."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.client: Client | None = None
        self.run: PromptRun | None = None
        self.questions: Questions | None = None

    async def watch(
        self, signals: AsyncIterator[signal.Signals], view: "RunView", tasks: "TaskGroup"
    ) -> None:
        """Act on signals until `tasks` are cancelled, by us at the second signal."""
        async for number in signals:
            first, self.signal = self.signal is None, self.signal or number
            if first and self.run is not None:
                self.run.cancel()
                if self.questions is not None:
                    self.questions.dismiss()
                # in a task of its own: the next signal must not wait for the terminal
                tasks.start_soon(view.note, "Cancelling; Ctrl-C again ends it at once.")
                continue
            if self.client is not None:
                self.client.kill()
            tasks.cancel_scope.cancel()

    @property
    def exit_code(self) -> int:
        """What a shell reports for a program that the signal ended."""
        return 128 + (self.signal or signal.SIGINT)


def _told_of(record: str) -> str:
    """What is said of a recording when its run is over."""
    try:
        with open(record, "rb") as file:
            file.readline()  # which says no more than that it is a recording
            asked = file.readline()
    except OSError as error:
        return f"There is no recording: {error.strerror}."
    if not asked:
        return f"Nothing is recorded in {record}: no model server was asked."
    return f"Recorded in {record}. To replay it: agentd run -m {shlex.quote(f'scripted/{record}')} PROMPT"


async def _attempt(order: Order, view: "RunView", interrupt: _Interrupt) -> int:
    """The run from the daemon's start to its end. Gives the exit code."""
    from agentd.client import ConnectionLost, RpcError

    try:
        result = await _prompt(order, view, interrupt)
    except BrokenPipeError:
        return 141
    except (RpcError, ConnectionLost, OSError) as error:
        if interrupt.signal is not None and not isinstance(error, RpcError):
            return interrupt.exit_code
        return await _failed(order, view, error)
    words, code = _ending(result)
    if words:
        await view.note(words)
    return interrupt.exit_code if result.stop_reason == "aborted" else code


async def _failed(order: Order, view: "RunView", error: Exception) -> int:
    """Tell why there is no result. Gives the exit code."""
    from agentd.cli.failures import in_words
    from agentd.client import RpcError

    if order.json:
        told = error if isinstance(error, RpcError) else RpcError("internal", in_words(error))
        try:
            await view.answer.write(_json_line({"type": "error", "error": told.to_wire()}))
        except BrokenPipeError:
            return 141
        except OSError as unwritten:
            error = unwritten
    await view.note(f"agentd: {in_words(error)}")
    return 1


async def _prompt(order: Order, view: "RunView", interrupt: _Interrupt) -> "PromptResult":
    import anyio

    from agentd.cli.question import Questions
    from agentd.client import Client, ClientOptions, daemon
    from agentd.config.secrets import Secrets
    from agentd.config.settings import load
    from agentd.config.variables import take_keys

    environ = dict(os.environ)
    # The daemon hides its keys from the commands it runs; they see us as well.
    take_keys(load(environ), Secrets.take_from(os.environ), os.environ)
    command = [*daemon.DEFAULT_COMMAND, *(["--allow-full"] if order.allow_full else [])]
    command += [] if order.record is None else [f"--record={order.record}"]
    watched = order.json or view.answer.is_terminal
    trusted = True if order.trusted else None  # None: what the user has told agentd of the folder
    options = ClientOptions(model=order.model, trusted=trusted, updates="all" if watched else "none")
    folder = Path(await anyio.Path(order.folder).resolve())
    questions = interrupt.questions = Questions(view, order.mode, trusted or _is_trusted(folder), folder)
    async with Client.start(
        Path(order.folder), command=command, env=environ, options=options, on_permission=questions.answer
    ) as client:
        interrupt.client = client
        session_id, workspace_uri = await _session(order, client)
        async with client.stream(
            order.prompt,
            everything=True,
            session_id=session_id,
            workspace_uri=workspace_uri,
            model=order.model if session_id is not None else None,
            mode=order.mode,
            max_turns=order.max_turns,
        ) as run:
            interrupt.run = run
            await (_print_json(run, view, questions) if order.json else _print(run, view, questions))
            return run.result


def _is_trusted(folder: Path) -> bool:
    """Whether the user has told agentd that the folder is trusted."""
    from agentd.config.settings import load
    from agentd.config.trust import Trust

    return Trust.of_user(os.environ, load(os.environ).trusted).trusts(folder)


async def _session(order: Order, client: "Client") -> tuple[str | None, str | None]:
    """The session to go on with and its folder, None where the prompt makes one. Raises `RpcError`."""
    import anyio

    from agentd.cli.session_names import session_named
    from agentd.client import RpcError

    if not order.goes_on and order.session is None:
        return None, None
    folder = (await anyio.Path(order.folder).resolve()).as_uri()
    if order.session is not None:
        return await session_named(client, order.session), folder
    found = await client.list_sessions(folder, limit=1)
    if not found.sessions:
        hint = "Leave --continue out to begin one."
        raise RpcError("sessionNotFound", "There is no session in this folder to go on with.", hint=hint)
    return found.sessions[0].session_id, folder


async def _print(run: "PromptRun", view: "RunView", questions: "Questions") -> None:
    children: set[str] = set()  # their sessions' events are not shown: the call that runs them tells
    async with view.clock():
        async for note in run:
            if note.event.type == "session_changed" and note.event.session.parent is not None:
                children.add(note.session_id)
            if note.session_id in children:
                continue
            if note.event.type == "agent_start":
                questions.mode = note.event.prompt.mode
            await view.show(note.event)
    await view.finish(run.result)


async def _print_json(run: "PromptRun", view: "RunView", questions: "Questions") -> None:
    async for params in run.raw():
        if params["event"]["type"] == "agent_start" and params.get("promptId") == run.prompt_id:
            questions.mode = params["event"]["prompt"]["mode"]
        await view.answer.write(_json_line(params))
    await view.answer.write(_json_line({"type": "result", **run.result.model_dump(mode="json")}))


def _json_line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _ending(result: "PromptResult") -> tuple[str | None, int]:
    """What is said about how the run ended, and the exit code."""
    reason = result.error.message if result.error is not None else "It gave no reason."
    refused = "The model refused." if result.text and result.error is None else f"The model refused. {reason}"
    turns = "1 turn" if result.turns == 1 else f"{result.turns} turns"
    endings: dict[str, tuple[str | None, int]] = {
        "stop": (None, 0),
        "length": ("The answer was cut at the model's output limit.", 0),
        "refusal": (refused, 1),
        "error": (f"The run failed: {reason}", 1),
        "interrupted": ("The daemon stopped before the end of the run.", 1),
        "max_turns": (f"Stopped after {turns}, the most this run may take (--max-turns).", 3),
        "aborted": ("Cancelled.", 130),
    }
    return endings[result.stop_reason]
