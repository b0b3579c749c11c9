"""How a session is named on the command line: by its id, or as much of its beginning as tells it apart."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from agentd.protocol.errors import RpcError

if TYPE_CHECKING:  # imported when it is needed
    from agentd.client import Client
    from agentd.protocol.messages import Session

PAGE = 1000
"""How many sessions are asked for at once."""
_LISTED = "agentd sessions list --all lists them."


async def all_sessions(client: "Client") -> "AsyncIterator[Session]":
    """The sessions of every folder, newest first."""
    cursor = None
    while True:
        page = await client.list_sessions(limit=PAGE, cursor=cursor, children=True)
        for session in page.sessions:
            yield session
        cursor = page.next_cursor
        if cursor is None:
            return


async def session_named(client: "Client", name: str) -> str:
    """The id that is, or begins, so. Raises `RpcError` sessionNotFound."""
    if not name:  # a variable of a script that holds nothing begins every id
        raise RpcError("sessionNotFound", "An empty name is no session's.", hint=_LISTED)
    named = [session async for session in all_sessions(client) if session.session_id.startswith(name)]
    if name in [session.session_id for session in named]:
        return name
    children = [session.session_id for session in named if session.parent is not None]
    # A child's id begins with its parent's, which is meant where both are.
    found = [session.session_id for session in named if session.parent is None] or children
    if len(found) == 1:
        return found[0]
    if not found and await _is_kept(client, name):
        return name
    if not found:
        raise RpcError("sessionNotFound", f"There is no session {name!r}.", hint=_LISTED)
    many = f"{name!r} begins the ids of {len(found)} sessions; say more of it."
    raise RpcError("sessionNotFound", many, hint=_LISTED)


async def _is_kept(client: "Client", session_id: str) -> bool:
    """Whether there is such a session all the same: one that cannot be read is in no list."""
    try:
        await client.get_session(session_id, limit=1)
    except ValueError:  # it does not look like an id
        return False
    except RpcError as error:
        return error.kind != "sessionNotFound"
    return True
