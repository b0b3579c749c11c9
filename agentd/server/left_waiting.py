"""What becomes of prompts that waited when their daemon was killed, for editors that show no queue.

They do not run by themselves after a restart; here the user is asked, by LSP's own question.
"""

from collections.abc import Awaitable, Callable, Sequence

from agentd.protocol import methods as wire
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import QueuedPrompt
from agentd.server.shown import Shown
from agentd.sessions.prompts import title_of_blocks
from agentd.sessions.session import Session

RUN, DROP, LEAVE = "Run", "Drop", "Leave"

Follow = Callable[[Session, wire.PromptParams], Awaitable[object]]
"""Has a session take a prompt, and shows how it goes and ends."""


async def offer(session: Session, left: Sequence[QueuedPrompt], shown: Shown, follow: Follow) -> None:
    """Ask what to do with what was `left` in a session: run it, drop it, or leave it, as no answer does.

    What has left the queue before the answer comes is left out. An editor that knows no questions is told.
    """
    chosen = await shown.choose(_question(left), [RUN, DROP, LEAVE])
    if chosen is None:
        shown.message(f"agentd has not run {_words(left)}. Say it again if you still want it.")
    try:
        if chosen == RUN:
            await _run(session, left, follow)
        elif chosen == DROP:
            for each in left:
                if _waits(session, each):
                    _update(session, "remove", each.prompt_id)
    except RpcError as error:
        shown.message(f"agentd: {error.message}", "error")


def _waits(session: Session, prompt: QueuedPrompt) -> bool:
    return any(each.prompt_id == prompt.prompt_id for each in session.state.queue)


async def _run(session: Session, left: Sequence[QueuedPrompt], follow: Follow) -> None:
    for each in left:
        if not _waits(session, each):  # looked at each time: one that was taken back would run anew
            continue
        # The prompt of that id is joined, so that somebody shows how it ends; it is not queued once more.
        params = wire.PromptParams(
            session_id=session.session_id,
            prompt=each.prompt,
            prompt_id=each.prompt_id,
            when_busy="queue",
            wait="accepted",
        )
        await follow(session, params)
    _update(session, "run")


def _update(session: Session, op: wire.QueueOp, prompt_id: str | None = None) -> None:
    session.prompts.update_queue(
        wire.QueueUpdateParams(session_id=session.session_id, op=op, prompt_id=prompt_id)
    )


def _question(left: Sequence[QueuedPrompt]) -> str:
    if len(left) == 1:
        return f"agentd had ended before a prompt began: {_words(left)}. Run it now?"
    return f"agentd had ended before {len(left)} prompts began: {_words(left)}. Run them now?"


def _words(left: Sequence[QueuedPrompt]) -> str:
    return ", ".join(f'"{title_of_blocks(each.prompt)}"' for each in left)
