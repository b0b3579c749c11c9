"""`agentd sessions`: what was talked about, to list, read, keep and remove."""

import argparse
import json
import math
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from agentd.cli.inquiry import Rows, print_table, show, whole_number
from agentd.cli.session_names import PAGE, all_sessions, session_named

if TYPE_CHECKING:  # imported when the arguments are known to be good
    from agentd.client import Client
    from agentd.protocol.messages import Session

COMMANDS = ("list", "show", "export", "delete", "prune")

_DESCRIPTION = """\
List, show, export and remove sessions. Without a command: list.

A session is named by its id, or by as much of its beginning as tells it from the others."""

_MOST_DAYS = 365 * 1000.0
"""Older than this is no session, and dates end somewhere."""
_EPILOG = "Nothing is removed by itself: only delete and prune remove sessions."


def main(argv: list[str]) -> int:
    """Do what is asked with sessions. Gives the exit code."""
    rest = argv if argv[:1] and argv[0] in (*COMMANDS, "-h", "--help") else ["list", *argv]
    parser = _parser()
    said = parser.parse_args(rest)
    if not Path(said.folder).is_dir():
        parser.error(f"{said.folder!r} is no folder")
    said.uri = Path(said.folder).resolve().as_uri()
    serve: Callable[[Client, argparse.Namespace], Awaitable[int]] = said.serve
    return _with_client(said, serve)


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="agentd sessions", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=form
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(
        name: str, what: str, serve: "Callable[[Client, argparse.Namespace], Awaitable[int]]"
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        command.add_argument("-C", dest="folder", metavar="DIR", default=".", help="the folder to look from")
        command.set_defaults(serve=serve)
        return command

    listing = add("list", "list the sessions of a folder, newest first", _list)
    listing.add_argument("-a", "--all", action="store_true", help="the sessions of every folder")
    listing.add_argument("--json", action="store_true", help="print the daemon's answer as it is, as JSON")
    showing = add("show", "show what is known of a session, and its last messages", _show)
    showing.add_argument("-n", type=whole_number, default=10, metavar="N", help="how many messages (10)")
    showing.add_argument("--json", action="store_true", help="print the daemon's answer as it is, as JSON")
    exporting = add("export", "print a whole session as Markdown", _export)
    exporting.add_argument("-o", dest="file", metavar="FILE", help="write it to a new file instead")
    deleting = add("delete", "remove sessions for good", _delete)
    for command, count in ((showing, None), (exporting, None), (deleting, "+")):
        command.add_argument("ids", metavar="ID", nargs=count or 1, help="a session's id, or its beginning")
    pruning = add("prune", "remove the sessions of every folder that have not been used for long", _prune)
    days = "older than this; else retention_days of your configuration, which is 90 unless said"
    pruning.add_argument("--days", type=_days, metavar="N", help=days)
    pruning.add_argument("-n", "--dry-run", action="store_true", help="only say what would be removed")
    return parser


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not days > 0:
        said = f"{text!r} is no number above 0; agentd sessions delete removes single sessions"
        raise argparse.ArgumentTypeError(said)
    return days


def _with_client(
    said: argparse.Namespace, serve: "Callable[[Client, argparse.Namespace], Awaitable[int]]"
) -> int:
    import anyio

    from agentd.cli.failures import in_words, is_unwritable
    from agentd.client import Client, ConnectionLost, RpcError

    async def run() -> int:
        async with Client.start(Path(said.folder)) as client:
            return await serve(client, said)

    try:
        return anyio.run(run)
    except BrokenPipeError:
        raise
    except (RpcError, ConnectionLost, OSError) as error:
        if isinstance(error, OSError) and is_unwritable(error):
            raise
        print(f"agentd: {in_words(error)}", file=sys.stderr)
        return 1


async def _list(client: "Client", said: argparse.Namespace) -> int:
    answer = await client.list_sessions(None if said.all else said.uri, limit=PAGE)
    show(said, answer, lambda told: [_row(session) for session in told.sessions])
    return 0


def _row(session: "Session") -> tuple[str, ...]:
    when = session.updated_at[:16].replace("T", " ")
    held = f" (open in process {session.locked_by})" if session.locked_by is not None else ""
    return (session.session_id, when, session.model or "no model", session.title + held)


async def _show(client: "Client", said: argparse.Namespace) -> int:
    from agentd.protocol.text import visible

    got = await client.get_session(await session_named(client, said.ids[0]), limit=min(said.n, 10_000))
    if said.json:
        print(json.dumps(got.model_dump(mode="json"), ensure_ascii=False))
        return 0
    session = got.session
    rows: Rows = [
        ("id", session.session_id),
        ("title", session.title),
        ("folder", session.workspace_uri),
        ("model", session.model or "none"),
        ("mode", session.mode),
        ("created", session.created_at),
        ("last used", session.updated_at),
        ("messages", str(session.message_count)),
    ]
    if session.usage is not None:
        cost = f", {session.usage.cost.total:.4f} USD" if session.usage.cost else ""
        rows.append(("tokens", f"{session.usage.total}{cost}"))
    if session.locked_by is not None:
        rows.append(("open in", f"process {session.locked_by}"))
    if got.queue:
        rows.append(("waiting", f"{len(got.queue)} prompts"))
    print_table(rows)
    for message in got.messages:
        texts = [block.text for block in message.content if block.type == "text"]
        calls = [f"[{block.name}]" for block in message.content if block.type == "tool_call"]
        print(f"\n{message.role}:\n{visible(chr(10).join([*texts, *calls]))}")
    return 0


async def _export(client: "Client", said: argparse.Namespace) -> int:
    from agentd.protocol.text import visible

    text = await client.export_session(await session_named(client, said.ids[0]))
    if said.file is None:
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)  # nothing in it steers a terminal
        return 0
    import anyio

    async with await anyio.open_file(said.file, "x", encoding="utf-8") as file:  # never over another file
        await file.write(text)
    return 0


async def _delete(client: "Client", said: argparse.Namespace) -> int:
    ids = [
        await session_named(client, name) for name in said.ids
    ]  # all of them are known, or none is removed
    for session_id in dict.fromkeys(ids):
        await client.delete_session(session_id)
        print(f"Removed {session_id}.")
    return 0


async def _prune(client: "Client", said: argparse.Namespace) -> int:
    from agentd.cli.failures import in_words
    from agentd.client import RpcError
    from agentd.config.settings import load

    days = load(os.environ).retention_days if said.days is None else said.days
    oldest = (datetime.now(UTC) - timedelta(days=min(days, _MOST_DAYS))).isoformat(timespec="milliseconds")
    known = [
        session async for session in all_sessions(client) if session.parent is None
    ]  # children go with theirs
    old = [session for session in known if session.updated_at < oldest.replace("+00:00", "Z")]
    removed, failed = 0, 0
    for session in old:
        try:
            if not said.dry_run:
                await client.delete_session(session.session_id)
        except RpcError as error:
            failed += 1
            print(f"agentd: {session.session_id} stays: {in_words(error)}", file=sys.stderr)
            continue
        removed += 1
    if said.dry_run:
        print_table([_row(session) for session in old])
    what = "would be removed" if said.dry_run else "removed"
    print(f"{removed} session{'' if removed == 1 else 's'} older than {days:g} days {what}.")
    return 1 if failed else 0
