"""What others did to a file between a session's own changes of it, told apart from those."""

from collections.abc import Iterator, Sequence

from agentd.protocol.methods import DiffStep
from agentd.tools.diff import file_change
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.file_states import Change, FileState, same_content
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.text import BinaryContent

_Ends = tuple[FileState | None, FileState | None]


def steps_of(
    checkpoints: Checkpoints, place: Place, row: Sequence[Change], room: int
) -> tuple[DiffStep, ...] | None:
    """How the changes of one file came to its last state, step by step, where others had a part in that.

    None where they had none, where a state is no text or not kept, or where all of it is longer than `room`.
    Blocks.
    """
    stretches = list(_stretches(row))
    if len(stretches) < 2:
        return None
    steps: list[DiffStep] = []
    last: FileState | None = stretches[0][0]
    for before, after in stretches:
        for by, ends in (("others", (last, before)), ("agentd", (before, after))):
            if same_content(*ends):
                continue
            patch = _patch(checkpoints, place, ends)
            if patch is None or len(patch) > room:
                return None
            room -= len(patch)
            steps.append(DiffStep.model_validate({"by": by, "patch": patch}))
        last = after
    return tuple(steps)


def _stretches(row: Sequence[Change]) -> Iterator[_Ends]:
    """The states before and behind changes that follow each other, in their order."""
    first = last = row[0]
    for change in row[1:]:
        if not same_content(change.before, last.after):
            is_prevented = same_content(change.before, last.before) and change.in_buffer is last.in_buffer
            yield first.before, last.before if is_prevented else last.after
            first = change
        last = change
    yield first.before, last.after


def _patch(checkpoints: Checkpoints, place: Place, ends: _Ends) -> str | None:
    texts: list[bytes | None] = []
    for state in ends:
        data = None if state is None else checkpoints.content(state)
        if state is not None and data is None:
            return None
        texts.append(data)
    try:
        return file_change(place, *texts).patch
    except (BinaryContent, WorkspaceError):
        return None
