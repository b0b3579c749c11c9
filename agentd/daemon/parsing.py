"""JSON-RPC bodies: bytes in, messages out, every fault with its own error. No state, no I/O."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from agentd.protocol import strict_json
from agentd.protocol.errors import RpcError
from agentd.protocol.methods import NOT_BLANK
from agentd.protocol.wire import Wire

MessageId = int | str


@dataclass(frozen=True)
class Call:
    """A request, or a notification when `id` is None."""

    id: MessageId | None
    method: str
    params: Any


@dataclass(frozen=True)
class Reply:
    """A response to a request of ours. Without result and error (`is_empty`) it may be none at all."""

    id: Any
    result: Any
    error: dict[str, Any] | None
    is_empty: bool = False


class BadMessage(Exception):
    """A body that is answered with an error: under its own id where that could be read, else under null."""

    def __init__(self, message_id: MessageId | None, error: RpcError) -> None:
        super().__init__(error.message)
        self.id = message_id
        self.error = error


def parse(body: bytes) -> Call | Reply:
    """The message in a body. Raises `BadMessage`."""
    message = _json(body)
    if not isinstance(message, dict):
        raise BadMessage(None, _request_error("a message is a JSON object; batches are not taken"))
    message_id = message.get("id")
    known_id = message_id if type(message_id) in (int, str) else None
    if message.get("jsonrpc") != "2.0":
        raise BadMessage(known_id, _request_error('"jsonrpc" must be "2.0"'))
    if "method" not in message:
        return _reply(message)
    method = message["method"]
    if not isinstance(method, str):
        raise BadMessage(known_id, _request_error('"method" must be a string'))
    if "id" in message and known_id is None:
        raise BadMessage(None, _request_error('"id" must be an integer or a string'))
    return Call(known_id, method, message.get("params"))


def _reply(message: dict[str, Any]) -> Reply:
    """A message without a method is never answered under its id: it is one of our numbers, not theirs."""
    if "id" not in message:
        raise BadMessage(None, _request_error("neither a method, nor an id with a result or an error"))
    error = message.get("error")
    is_empty = not ("result" in message or "error" in message)
    return Reply(message["id"], message.get("result"), error if isinstance(error, dict) else None, is_empty)


def _request_error(why: str) -> RpcError:
    return RpcError("request", f"Invalid request: {why}.")


def _json(body: bytes) -> Any:
    """The value of a body. The fast reader refuses deep nesting and lone surrogates; the slow one decides."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        return strict_json.loads(body)
    except ValueError as error:
        raise BadMessage(None, RpcError("parse", f"Parse error: {error}.")) from None


def validate(model: type[Wire], params: Any, prefix: str = "") -> Any:
    """The params as `model`; absent ones count as empty. Raises `RpcError` that names places, no values."""
    if params is None:
        params = {}
    try:
        return model.model_validate(params)
    except ValidationError as error:
        faults = [(_path(fault["loc"], params, fault["type"]), _reason(fault)) for fault in error.errors()]
        said = dict.fromkeys(f"{prefix}{path}: {reason}" for path, reason in _deepest(faults))
        raise RpcError("invalidParams", "; ".join(said)[:1000]) from None


def _deepest(faults: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Where a value may be this or that, what is wrong with the one it looks like: the deepest fault."""
    depths: dict[str, int] = {}
    for path, _ in faults:
        first = path.split("/")[1]
        depths[first] = max(depths.get(first, 0), path.count("/"))
    return [(path, reason) for path, reason in faults if path.count("/") == depths[path.split("/")[1]]]


def _reason(fault: Any) -> str:
    if fault["type"] != "string_pattern_mismatch":
        return str(fault["msg"])
    if fault["ctx"]["pattern"] == NOT_BLANK:
        return "must not be blank"
    return "must be 1 to 128 letters, digits or any of _ . : ~ -"


def _path(location: tuple[int | str, ...], value: Any, kind: str) -> str:
    """Where a fault is, as a JSON pointer. Pydantic's location also names members of unions: left out."""
    path = ""
    for number, part in enumerate(location, 1):
        holder: Any = value
        if part in holder if isinstance(holder, dict) else isinstance(holder, list) and isinstance(part, int):
            value = holder[part]
            path += f"/{part}"
        elif number == len(location) and kind == "missing":
            path += f"/{part}"
    return path or "/"
