"""What the settings of the user's editor may say (`workspace/didChangeConfiguration`).

Editors mix the settings of a workspace into the user's, and nobody can tell which is which here. So they may
say what a workspace may: a model that the user has, and a stricter mode. Whom to trust, keys and what is
allowed are never read from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from agentd.config.provider_settings import MODEL_ID
from agentd.protocol.messages import Mode
from agentd.protocol.methods import Problem

_MODES: tuple[Mode, ...] = get_args(Mode)  # the strictest first
_UPDATES = ("all", "coalesced", "none")


@dataclass(frozen=True)
class EditorSettings:
    """The section `agentd` of the editor's settings, as far as it counts."""

    model: str | None = None
    mode: Mode | None = None
    updates: str | None = None
    problems: tuple[Problem, ...] = ()

    def stricter_mode(self, mode: Mode) -> Mode:
        """The stricter one of the user's mode and this one."""
        return mode if self.mode is None else min(mode, self.mode, key=_MODES.index)


def editor_settings(section: Any) -> EditorSettings:
    """The settings of a section; what is wrong in it is a problem and as if not there."""
    if not isinstance(section, Mapping):
        return EditorSettings()
    problems: list[Problem] = []

    def read(name: str, is_right: bool, what: str) -> str | None:
        value = section.get(name)
        if value is None or value == "" or is_right:
            return value or None
        message = f"The editor's setting agentd.{name} {what}; it is ignored."
        problems.append(Problem(severity="warning", message=message))
        return None

    model, mode, updates = section.get("model"), section.get("mode"), section.get("updates")
    is_model = isinstance(model, str) and MODEL_ID.fullmatch(model) is not None
    return EditorSettings(
        read("model", is_model and not str(model).startswith("scripted/"), 'has to be "provider/model"'),
        cast(Mode | None, read("mode", mode in _MODES, f"has to be one of {', '.join(_MODES)}")),
        read("updates", updates in _UPDATES, f"has to be one of {', '.join(_UPDATES)}"),
        tuple(problems),
    )
