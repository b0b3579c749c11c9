"""`agentd sessions`: what was talked about in a folder."""

from typing import TYPE_CHECKING

from agentd.cli.inquiry import Rows, inquire, parse

if TYPE_CHECKING:
    from agentd.client import Client
    from agentd.protocol.methods import SessionListResult


def main(argv: list[str]) -> int:
    """Print the sessions of a folder, newest first."""
    said = parse("sessions", "List the sessions of a folder, newest first.", argv)
    return inquire(said, _ask, _rows)


async def _ask(client: "Client") -> "SessionListResult":
    return await client.list_sessions(limit=1000)


def _rows(answer: "SessionListResult") -> Rows:
    return [
        (
            session.session_id,
            session.updated_at[:16].replace("T", " "),
            session.model or "no model",
            session.title,
        )
        for session in answer.sessions
    ]
