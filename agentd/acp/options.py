"""What of a session its client can choose: mode, model and effort."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from agentd.acp.updates import Json
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Effort, Mode
from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.methods import ModelInfo, SessionUpdateParams
from agentd.sessions.house import House

_MODES: dict[Mode, tuple[str, str]] = {
    "plan": ("Plan", "Reads, changes nothing and runs nothing"),
    "ask": ("Ask", "Asks before every change and command"),
    "edit": ("Edit", "Changes files of the workspace freely, asks before commands"),
    "auto": ("Auto", "Changes files and runs commands in a sandbox freely, asks for what leaves it"),
    "full": ("Full", "Never asks"),
}
_UNSET = ""
"""The value of what is not chosen: it stands there as long as it is so, and cannot be chosen."""

ConfigId = Literal["mode", "model", "effort"]


@dataclass(frozen=True)
class SessionOptions:
    """The choices of sessions. `models` gives the models that can be named."""

    house: House
    models: Callable[[], tuple[ModelInfo, ...]]

    def set_up(self, info: SessionInfo) -> Json:
        """How a session is set up, as ACP tells it when one is opened."""
        available = [
            {"id": mode, "name": name, "description": said} for mode, (name, said) in self._modes(info)
        ]
        return {
            "modes": {"currentModeId": info.mode, "availableModes": available},
            "configOptions": self.of(info),
        }

    def of(self, info: SessionInfo) -> list[Json]:
        """The options, with what is chosen. Clients that know them look at no modes, so they stand here."""
        modes = [_choice(mode, name, said) for mode, (name, said) in self._modes(info)]
        models = self.models()
        found = [
            _select("mode", "Mode", "mode", info.mode, modes),
            _select("model", "Model", "model", info.model or _UNSET, _models(info, models)),
        ]
        efforts = next((each.efforts for each in models if each.id == info.model), ())
        if efforts or info.effort is not None:
            found.append(_effort(info.effort, efforts))
        return found

    def change(self, info: SessionInfo, config_id: str, value: str) -> SessionUpdateParams | None:
        """What a choice changes, None for nothing. Raises `RpcError` invalidParams for one there is not."""
        options = {each["id"]: each for each in self.of(info)}
        if config_id not in options:
            known = ", ".join(options)
            raise RpcError(
                "invalidParams", f'/configId: there is no option "{config_id}"; there are: {known}'
            )
        option = options[config_id]
        if value == option["currentValue"]:
            return None
        if value == _UNSET or (config_id == "effort" and value not in get_args(Effort)):
            raise RpcError("invalidParams", f'/value: "{value}" is no value of {config_id}')
        if config_id == "mode":
            return SessionUpdateParams(session_id=info.session_id, mode=mode_named(value, "/value"))
        if config_id == "model":
            return SessionUpdateParams(session_id=info.session_id, model=value)
        return SessionUpdateParams(session_id=info.session_id, effort=cast(Effort, value))

    def _modes(self, info: SessionInfo) -> list[tuple[Mode, tuple[str, str]]]:
        """The modes that may be chosen here, and the one that holds."""
        return [each for each in _MODES.items() if each[0] == info.mode or self._may_be(each[0])]

    def _may_be(self, mode: Mode) -> bool:
        try:
            self.house.check_mode(mode)
        except RpcError:
            return False
        return True


def mode_named(name: str, where: str) -> Mode:
    """The mode of this name. Raises `RpcError` invalidParams."""
    if name not in _MODES:
        raise RpcError("invalidParams", f'{where}: there is no mode "{name}"; there are: {", ".join(_MODES)}')
    return name


def _models(info: SessionInfo, models: tuple[ModelInfo, ...]) -> list[Json]:
    """The models that can be asked now. The demo's script is no model to choose."""
    named = [
        _choice(each.id, each.name, each.provider)
        for each in models
        if each.available and not each.id.endswith("/*") and each.provider != "scripted"
    ]
    if info.model not in [each["value"] for each in named]:
        said = info.model or "None chosen"
        named.insert(0, _choice(info.model or _UNSET, said, None))
    return named


def _effort(chosen: Effort | None, efforts: tuple[str, ...]) -> Json:
    known = [_choice(each, each.capitalize(), None) for each in efforts]
    if chosen is None:
        known.insert(0, _choice(_UNSET, "Default", "What the model does when nothing is said"))
    elif chosen not in efforts:
        known.insert(0, _choice(chosen, chosen.capitalize(), None))
    return _select("effort", "Effort", "thought_level", chosen or _UNSET, known)


def _choice(value: str, name: str, description: str | None) -> Json:
    choice: Json = {"value": value, "name": name}
    return choice if description is None else {**choice, "description": description}


def _select(config_id: ConfigId, name: str, category: str, value: str, choices: list[Json]) -> dict[str, Any]:
    return {
        "type": "select",
        "id": config_id,
        "name": name,
        "category": category,
        "currentValue": value,
        "options": choices,
    }
