"""What the two searches say beside what they found: what was cut and what was passed over."""

from agentd.workspace.search import SearchOutcome

SEARCH_SECONDS = 15.0
"""How long a search may take."""

NOTES_BYTES = 1_000
"""Room that the notes take at most."""


def notes(outcome: SearchOutcome, noun: str, shown: int) -> list[str]:
    """One line each, in brackets. `noun` is what is counted, `shown` how many of them the result holds."""
    end = outcome.end
    said: list[str] = []
    if outcome.stuck:
        said.append(
            f"stopped after {SEARCH_SECONDS:.0f} s within one match, so there may be more: the pattern "
            "backtracks too much; make it simpler"
        )
    elif end.cut == "time":
        said.append(f"stopped after {SEARCH_SECONDS:.0f} s, so there may be more; narrow the path or glob")
    elif end.cut is not None:
        said.append(f"cut after {shown} {noun}, there are more; narrow the pattern, path or glob")
    if end.secret:
        said.append(f"{_files(end.secret)} that may hold secrets not searched; name one as path to search it")
    for count, reason in (
        (end.binary, "binary, not searched"),
        (end.too_large, "too large, not searched; use bash with grep"),
        (end.unreadable, "could not be read"),
    ):
        if count:
            said.append(f"{_files(count)}: {reason}")
    return [f"({note})" for note in said]


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"
