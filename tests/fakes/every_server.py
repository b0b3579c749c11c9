"""What a strict server of each wire API refuses in a request that a loop has made, without a socket between.

The real providers make the real thing of it: path, headers and body. `note` keeps what was refused until the
test is over, when it fails for it (`conftest.py`): a loop reports any failure of its provider and goes on, so
that an exception here would be told to nobody.

Not for requests that are faulty on purpose, as those of tests of the checks themselves.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
from fakes.anthropic_faults import request_fault as anthropic_fault
from fakes.gemini_faults import request_fault as gemini_fault
from fakes.openai_wire import mistral_fault, wire_fault
from fakes.responses_wire import ResponsesWire
from pydantic import TypeAdapter

from agentd.agent.request import tool_specs
from agentd.config.builtin import BUILT_IN
from agentd.protocol.messages import AssistantMessage, Message
from agentd.providers.apis import open_provider
from agentd.providers.base import Model, ModelRequest
from agentd.providers.http_errors import Peer
from agentd.providers.request_faults import fault_of
from agentd.providers.tool_names import ToolNames
from agentd.tools.builtin import builtin_tools
from agentd.tools.skill import with_skills
from agentd.workspace.process import Processes

MODELS = {
    "openai-chat": "chat-model",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-6",
    "gemini": "gemini-3-pro",
}
"""For each API the name of a model that reasons, so that what it thought must go back as it came."""

Refuses = Callable[[str, Mapping[str, str], Any], str | None]
"""Path, headers and body of a request to the first fault that a strict server finds in it."""


@dataclass(frozen=True)
class Server:
    """A strict server of one API, and the dialect in which it is spoken to."""

    api: str
    refuses: Refuses
    dialect: Mapping[str, Any] = field(default_factory=dict)
    timeouts: Mapping[str, float] = field(default_factory=dict)
    name: str = "local"
    base_url: str = "http://127.0.0.1/v1"


def _responses_fault(path: str, headers: Mapping[str, str], body: Any) -> str | None:
    return ResponsesWire().fault_of(body)


SERVERS = {
    "openai-chat": Server("openai-chat", lambda path, headers, body: wire_fault(body)),
    "openai-responses": Server("openai-responses", _responses_fault),
    "anthropic": Server("anthropic", lambda path, headers, body: anthropic_fault(headers, body)),
    "gemini": Server("gemini", lambda path, headers, body: gemini_fault(path, body)),
    "mistral": Server(
        "openai-chat", lambda path, headers, body: mistral_fault(body), BUILT_IN["mistral"].dialect
    ),
    "openai-responses, strict": Server("openai-responses", _responses_fault, {"strict": True}),
    "gemini, old schemas": Server(
        "gemini", lambda path, headers, body: gemini_fault(path, body), {"schemas": "subset"}
    ),
}
"""One for each API, by its name, and those beside them that refuse more."""

noted: list[str] = []
"""What was refused since the last look: a line for each request and server."""


@dataclass(frozen=True)
class Sent:
    """A request as it goes out to a server of one API."""

    path: str
    headers: Mapping[str, str]
    content: bytes
    """The body to the byte. A lone surrogate or a number that is none is a failure, and no byte at all."""


def note(request: ModelRequest) -> None:
    """Have the servers of all APIs read a request, and keep what they refuse in it."""
    noted.extend(f"{name}: {fault}" for name, fault in refusals(request).items())


def logged(record: Mapping[str, Any]) -> ModelRequest:
    """The request of a line that the scripted provider logged, which names tools; all are built in."""
    provider, _, name = record["model"].partition("/")
    return ModelRequest(
        Model(provider, name, images=True),
        record["system"],
        tuple(map(_MESSAGE.validate_python, record["messages"])),
        tuple(_TOOLS[name] for name in record["tools"]),
        record["effort"],
    )


def refusals(request: ModelRequest) -> dict[str, str]:
    """The first fault that each of `SERVERS` finds in a request, by its name; so does provider `scripted`."""
    found = {"scripted": fault_of(request)}
    for name, server in SERVERS.items():
        try:
            sent = sent_to(name, request)
            found[name] = server.refuses(sent.path, sent.headers, json.loads(sent.content))
        except ValueError as error:
            found[name] = f"no JSON in UTF-8: {error}"
    return {name: fault for name, fault in found.items() if fault is not None}


def sent_to(name: str, request: ModelRequest) -> Sent:
    """What goes out to one of `SERVERS` for a request to a model that reasons, if its model is one there.

    What the request's own model has said, that model has said. Raises `ValueError` for what is no JSON.
    """
    provider: Any = _PROVIDERS[name]
    told = _at(SERVERS[name].api, request)
    told = ToolNames.of(told).told(told)
    try:
        provider._send(Peer("local", told.model.name, "http://127.0.0.1", "sk-key"), told).send(None)
    except _Sending as sending:
        return sending.sent
    raise AssertionError(f"the request was not sent to {name}")


def _at(api: str, request: ModelRequest) -> ModelRequest:
    own, there = request.model, MODELS[api]

    def said_there(message: Message) -> Message:
        if isinstance(message, AssistantMessage) and (message.provider, message.model) == (
            own.provider,
            own.name,
        ):
            return message.model_copy(update={"model": there})
        return message

    model = replace(own, name=there, reasoning=True)
    return replace(request, model=model, messages=tuple(map(said_there, request.messages)))


class _Sending(Exception):
    def __init__(self, sent: Sent) -> None:
        self.sent = sent


async def _catch(
    peer: Peer, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
) -> httpx.Response:
    """In the place of `Endpoint.post`: what it was about to send."""
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    raise _Sending(Sent(path, {name.lower(): value for name, value in headers.items()}, content))


_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
_TOOLS = {spec.name: spec for spec in tool_specs(with_skills(builtin_tools(Processes())))}


def _caught(server: Server) -> Any:
    provider: Any = open_provider(server, "sk-key")
    provider._endpoint.post = _catch
    return provider


_PROVIDERS = {name: _caught(server) for name, server in SERVERS.items()}
