"""What is wrong in files, as an editor or a checker knows it, and how two looks at a file differ."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd.protocol.documents import Diagnostic


@dataclass(frozen=True)
class Known:
    """Diagnostics by file, as of some moment: `number` counts what an editor has told."""

    by_file: Mapping[Path, tuple[Diagnostic, ...]]
    number: int = 0


def new_and_fixed(
    before: Sequence[Diagnostic], after: Sequence[Diagnostic]
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Those that came and those that went. One that only stands on another line by now is the same."""
    return _without(after, before), _without(before, after)


def _without(these: Sequence[Diagnostic], those: Sequence[Diagnostic]) -> list[Diagnostic]:
    left = Counter(map(_identity, those))
    found = []
    for each in these:
        if left[_identity(each)]:
            left[_identity(each)] -= 1
        else:
            found.append(each)
    return found


def _identity(diagnostic: Diagnostic) -> tuple[object, ...]:
    return (diagnostic.message, diagnostic.severity, diagnostic.code, diagnostic.source)
