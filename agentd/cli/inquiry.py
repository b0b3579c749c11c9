"""One question to a daemon that is started for it, and its answer as a table or as JSON."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # imported when the arguments are known to be good
    from agentd.client import Client
    from agentd.protocol.wire import Wire

    Answer = TypeVar("Answer", bound=Wire)

Rows = list[tuple[str, ...]]


_MOST_DIGITS = 30


class NoAnswer(Exception):
    """Why there is nothing to print, in the words of whoever was asked."""


def whole_number(text: str) -> int:
    """A number from 1 on, as an argument."""
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS or int(text) < 1:
        raise ArgumentTypeError(f"{text[:_MOST_DIGITS]!r} is no whole number from 1 on")
    return int(text)


def parse(
    command: str, description: str, argv: list[str], *, operand: tuple[str, str] | None = None
) -> Namespace:
    """The options that every inquiry has, and its operand: a name and what it is for, None where left out."""
    parser = ArgumentParser(prog=f"agentd {command}", description=description)
    parser.add_argument("-C", dest="folder", metavar="DIR", default=".", help="the folder to look from")
    parser.add_argument("--json", action="store_true", help="print the daemon's answer as it is, as JSON")
    if operand is not None:
        parser.add_argument(operand[0].lower(), metavar=operand[0], nargs="?", help=operand[1])
    said = parser.parse_args(argv)
    if not Path(said.folder).is_dir():
        parser.error(f"{said.folder!r} is no folder")
    return said


def inquire(
    said: Namespace, ask: "Callable[[Client], Awaitable[Answer]]", rows: "Callable[[Answer], Rows]"
) -> int:
    """Ask, and print the answer as a table or as JSON. Gives the exit code.

    `ask` raises `NoAnswer` for an answer that is none to print.
    """
    import anyio

    from agentd.cli.failures import in_words
    from agentd.client import Client, ConnectionLost, RpcError

    async def answer() -> "Answer":
        async with Client.start(Path(said.folder)) as client:
            return await ask(client)

    try:
        told = anyio.run(answer)
    except (RpcError, ConnectionLost, NoAnswer, OSError) as error:
        print(f"agentd: {in_words(error)}", file=sys.stderr)
        return 1
    show(said, told, rows)
    return 0


def show(said: Namespace, told: "Answer", rows: "Callable[[Answer], Rows]") -> None:
    """Print an answer as the options want it."""
    if said.json:
        print(json.dumps(told.model_dump(mode="json"), ensure_ascii=False))
    else:
        print_table(rows(told))


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows in columns as wide as they need, the last one as it is."""
    from agentd.cli.terminal import one_line, width

    shown = [tuple(map(one_line, row)) for row in rows]
    widths = [max(map(width, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())
