"""What clients send: the params of ACP's requests, as far as agentd looks at them.

The types are written here and not taken from the SDK `agent-client-protocol`, whose import alone takes
longer than all of agentd's start; tests hold them against it.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.acp.greeting import MAX_VERSION
from agentd.protocol.wire import Id, Many, Wire


class InitializeParams(Wire):
    """`initialize`. What the client can do is read by `Abilities`, which is not strict about it."""

    protocol_version: int = Field(ge=0, le=MAX_VERSION)
    client_capabilities: dict[str, Any] | None = None


class AuthenticateParams(Wire):
    """`authenticate`."""

    method_id: str


class FolderParams(Wire):
    """`session/new`: where to work. `mcp_servers` are looked at only to say that they are not used."""

    cwd: str
    mcp_servers: Any = None


class OpenParams(FolderParams):
    """`session/load` and `session/resume`."""

    session_id: Id


class ListParams(Wire):
    """`session/list`."""

    cwd: str | None = None
    cursor: str | None = None


class SessionParams(Wire):
    """`session/close`, `session/delete` and `session/cancel`."""

    session_id: Id


class ModeParams(SessionParams):
    """`session/set_mode`."""

    mode_id: str


class OptionParams(SessionParams):
    """`session/set_config_option`. All options of agentd are choices, whose values are text."""

    config_id: str
    value: str


# --- content --------------------------------------------------------------------------------------


class TextBlock(Wire):
    """Text."""

    type: Literal["text"]
    text: str


class ImageBlock(Wire):
    """An image, base64."""

    type: Literal["image"]
    mime_type: str
    data: str


class AudioBlock(Wire):
    """Sound, which no model of agentd takes."""

    type: Literal["audio"]


class LinkBlock(Wire):
    """Something that the user points at."""

    type: Literal["resource_link"]
    uri: str
    name: str = ""


class Resource(Wire):
    """Something that the client sends along: text, or bytes in base64."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class EmbeddedBlock(Wire):
    """Such a thing in a prompt."""

    type: Literal["resource"]
    resource: Resource


Block = Annotated[
    TextBlock | ImageBlock | AudioBlock | LinkBlock | EmbeddedBlock, Field(discriminator="type")
]


class PromptParams(SessionParams):
    """`session/prompt`."""

    prompt: Many[Block]


class SteeringWish(Wire):
    """What is to become of a steer in a session that does nothing."""

    idle_behavior: str | None = None


class SteeringMeta(Wire):
    """`_meta` of a steer."""

    steering: SteeringWish = SteeringWish()


class SteeringParams(PromptParams):
    """`_session/steering`."""

    meta: SteeringMeta = Field(default=SteeringMeta(), alias="_meta")
