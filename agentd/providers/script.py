"""The form of a script: what `scripted` answers, response by response, as a JSON file.

```json
[{"content": [{"type": "text", "text": "Hello"}]},
 {"content": [{"type": "tool_call", "name": "bash", "arguments": {"command": "${PYTHON} -V"}}]},
 {"content": [], "error": {"kind": "overloaded", "message": "Try later.", "status": 529}}]
```

A response streams its blocks in order, `chunkSize` characters at a time with `delayMs` before each piece;
then it fails with `error`, or waits for ever with `hang`, or ends with `stopReason`. A tool call may hold
`rawArguments`, text that is sent as it stands, instead of `arguments`.

Responses are given in their order. Those with `when` are kept for the conversations whose first user message
holds that text, and such conversations get no others: so a script plays sub-agents that run at the same time,
each its own part.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from agentd.protocol.messages import ErrorKind, TextContent, Usage, UserMessage
from agentd.protocol.wire import Many, Wire
from agentd.providers.base import ModelRequest, ProviderError

CHUNK_SIZE = 16
"""Characters per piece where a script does not say."""

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class _Strict(Wire):
    """A part of a script: a misspelt field is an error, and no silent change of what is tested."""

    model_config = ConfigDict(extra="forbid")


class TextBlock(_Strict):
    """Text to say, or to think."""

    type: Literal["text", "thinking"]
    text: str


class CallBlock(_Strict):
    """A tool to call. Without `id` none is sent, as some servers do."""

    type: Literal["tool_call"]
    id: str | None = None
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    raw_arguments: str | None = None

    def argument_text(self, variables: Mapping[str, str]) -> str:
        """The arguments as they are streamed, `${NAME}` in their strings replaced."""
        if self.raw_arguments is not None:
            return self.raw_arguments
        return json.dumps(_replaced(self.arguments, variables), ensure_ascii=False)


class ScriptedError(_Strict):
    """A failure to play. `retryable` is that of the kind unless it is said."""

    kind: ErrorKind
    message: str = Field(min_length=1)
    status: int | None = None
    retry_after_ms: int | None = None
    retryable: bool | None = None


class ScriptedResponse(_Strict):
    """One response."""

    content: Many[Annotated[TextBlock | CallBlock, Field(discriminator="type")]] = ()
    stop_reason: Literal["stop", "length", "tool_use", "refusal"] | None = None
    usage: Usage | None = None
    chunk_size: int = Field(default=CHUNK_SIZE, ge=1)
    delay_ms: float = Field(default=0, ge=0)
    error: ScriptedError | None = None
    hang: bool = False
    when: str | None = Field(default=None, min_length=1)

    @property
    def stop(self) -> Literal["stop", "length", "tool_use", "refusal"]:
        """How the response ends: as it says, else by whether it calls a tool."""
        if self.stop_reason is not None:
            return self.stop_reason
        return "tool_use" if any(isinstance(block, CallBlock) for block in self.content) else "stop"


def load_script(name: str) -> tuple[ScriptedResponse, ...]:
    """The script of a name. Raises `ProviderError` that names the file and the place in it."""
    return parse_script(*read_named(name))


def read_named(name: str) -> tuple[bytes, str]:
    """The text of a script or a recording, and what errors call it.

    A name is a path if it ends in .json or holds a slash; else that of a script which comes with agentd, or
    of a file in the working directory. Raises `ProviderError`.
    """
    bundled = resources.files("agentd.providers") / "scripts" / f"{name}.json"
    is_path = "/" in name or name.endswith(".json")
    if not is_path and bundled.is_file():
        return bundled.read_bytes(), f"{name}.json"
    path = Path(name).expanduser()
    if not is_path and not path.is_file():
        raise ProviderError(
            "bad_request",
            f'There is no script "{name}". Use scripted/demo, or the path of a script: scripted/<path>.json.',
        )
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ProviderError("bad_request", f"Cannot read the script {path}: {reason}.") from None


def parse_script(text: bytes, name: str) -> tuple[ScriptedResponse, ...]:
    """The script in a text; `name` is what errors call it. Raises `ProviderError`."""
    try:
        return _adapter().validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
        reason = f"{first['msg']} at {place.lstrip('.')}" if place else first["msg"]
        raise ProviderError("bad_request", f"The script {name} is not valid: {reason}.") from None


def first_words(request: ModelRequest) -> str:
    """What the user says first in the conversation of a request, by which conversations are told apart."""
    first = next((message for message in request.messages if isinstance(message, UserMessage)), None)
    blocks = first.content if first is not None else ()
    return "".join(block.text for block in blocks if isinstance(block, TextContent))


@cache
def _adapter() -> TypeAdapter[tuple[ScriptedResponse, ...]]:
    return TypeAdapter(Many[ScriptedResponse])


def _replaced(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), value)
    if isinstance(value, dict):
        return {key: _replaced(item, variables) for key, item in value.items()}
    return [_replaced(item, variables) for item in value] if isinstance(value, list) else value
