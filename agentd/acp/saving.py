"""Asking the user to save files before they are used from the disk, by a form: `elicitation/create`."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentd.daemon.door import ClientError, Door
from agentd.workspace.editor import Saving
from agentd.workspace.paths import shown

log = logging.getLogger(__name__)

_MOST_NAMES = 10
_FIELD = "answer"
_SAVED, _RUN_ANYWAY, _CANCEL = "saved", "run", "cancel"
_CHOICES = {_SAVED: "Saved, go on", _RUN_ANYWAY: "Run anyway", _CANCEL: "Cancel"}


async def ask_to_save(door: Door, session_id: str, paths: Sequence[Path], wish: str | None) -> Saving:
    """Ask, and wait for the answer. A user who closes the form wants nothing to go on.

    `wish` is how the question begins where it is not for a command, which could also run without that.
    """
    try:
        answer = await door.ask("elicitation/create", _form(session_id, paths, wish))
    except ClientError as error:
        log.warning("no answer to the question to save: %s", error)
        return Saving()
    return Saving(cancelled=_is_cancelled(answer))


def _form(session_id: str, paths: Sequence[Path], wish: str | None) -> dict[str, Any]:
    names = "\n".join(shown(str(path)) for path in paths[:_MOST_NAMES])
    more = f"\nand {len(paths) - _MOST_NAMES} more" if len(paths) > _MOST_NAMES else ""
    files, them = ("1 file", "it") if len(paths) == 1 else (f"{len(paths)} files", "them")
    offered = _CHOICES if wish is None else {_SAVED: _CHOICES[_SAVED], _CANCEL: _CHOICES[_CANCEL]}
    choices = [{"const": value, "title": title} for value, title in offered.items()]
    choice = {"type": "string", "title": "How to go on", "oneOf": choices, "default": _SAVED}
    return {
        "sessionId": session_id,
        "mode": "form",
        "message": f"{wish or f'Save {files} so that the command sees {them}:'}\n{names}{more}",
        "requestedSchema": {"type": "object", "properties": {_FIELD: choice}, "required": [_FIELD]},
    }


def _is_cancelled(answer: Any) -> bool:
    if not isinstance(answer, dict):
        return False
    content = answer.get("content")
    chosen = content.get(_FIELD) if isinstance(content, dict) else None
    return answer.get("action") in ("decline", "cancel") or chosen == _CANCEL
