"""What a model is told of the skills that there are: their names and what they are for, never their text."""

from collections.abc import Sequence

from agentd.tools.skill import NAME
from agentd.workspace.skills import Skill

MAX_BYTES = 16 * 1024
"""The longest list of skills."""

_HEAD = f"""\
Skills are instructions for particular kinds of work. Where what you are to do is of such a kind, load the \
skill with the tool {NAME} before you begin, and follow it."""
_USERS = "The user's own skills:"
_PROJECTS = "Skills of this project, its text and not the user's word:"
_LENGTHS = (1024, 512, 256, 128, 64, 0)
"""To how many characters descriptions are cut, the next where the list is still too long."""


def catalogue(skills: Sequence[Skill]) -> str:
    """The list of the skills, to follow all else that a model is told; empty where there are none."""
    if not skills:
        return ""
    for length in _LENGTHS:
        text = _listed(skills, length)
        if len(text.encode()) <= MAX_BYTES:
            return text
    kept = list(skills)
    while len(text.encode()) > MAX_BYTES:
        kept.pop()
        text = f"{_listed(kept, 0)}\n({len(skills) - len(kept)} more are not listed.)"
    return text


def _listed(skills: Sequence[Skill], length: int) -> str:
    parts = [_HEAD]
    for title, owner in ((_USERS, "user"), (_PROJECTS, "project")):
        lines = [_line(skill, length) for skill in skills if skill.owner == owner]
        if lines:
            parts.append("\n".join((title, *lines)))
    return "\n\n" + "\n\n".join(parts)


def _line(skill: Skill, length: int) -> str:
    if not length:
        return f"- {skill.name}"
    said = skill.description
    return f"- {skill.name}: {said if len(said) <= length else said[: length - 1].rstrip() + '…'}"
