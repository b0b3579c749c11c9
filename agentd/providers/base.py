"""The seam between the loop and model servers.

A provider turns a `ModelRequest` into a stream of events. It never validates a tool's name or arguments,
never retries and never drops text: it turns bytes into events and failures into `ProviderError`. Who reads
the stream decides what to do with it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agentd.protocol.messages import Effort, ErrorKind, Message, RunError, Usage
from agentd.providers.image_limits import USUAL, ImageLimits
from agentd.providers.prices import Prices


@dataclass(frozen=True)
class Model:
    """A model and what is known of it; `provider` and `name` together are its id. Sizes are tokens.

    `max_output` is what to ask for, None to leave that to the server. `prices` are for `prices.cost_of`.
    `thinking_tag` is the tag in which the model writes its thinking into its text, None where it does not.
    `image_limits` are what its server takes of `images`.
    `cuts_prompts`: its server leaves out the beginning of a prompt that is too long, without a word.
    """

    provider: str
    name: str
    context_window: int | None = None
    max_output: int | None = None
    images: bool = False
    reasoning: bool = False
    efforts: tuple[str, ...] = ()
    prices: Prices | None = None
    thinking_tag: str | None = None
    cuts_prompts: bool = False
    image_limits: ImageLimits = USUAL

    @property
    def id(self) -> str:
        """How users and the wire name it: "provider/name"."""
        return f"{self.provider}/{self.name}"


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model server sees it; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class ModelRequest:
    """One request to a model. `messages` is always valid: it comes from `agent/request.py`."""

    model: Model
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    effort: Effort | None = None


@dataclass(frozen=True)
class TextDelta:
    """More text of content block `index`. Blocks are numbered from 0 in the order they first appear."""

    index: int
    text: str


@dataclass(frozen=True)
class ThinkingDelta:
    """More thinking of content block `index`."""

    index: int
    text: str


@dataclass(frozen=True)
class ToolCallDelta:
    """More of the tool call that is content block `index`.

    `arguments` is the next piece of JSON text, perhaps empty. `id` and `name` come once, when they are known,
    perhaps later than the first piece of arguments, perhaps never.
    """

    index: int
    arguments: str = ""
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class StreamEnd:
    """The response is whole: always the last event of a stream that did not fail.

    `raw_stop` is the server's own word. `provider_data` is what this provider wants to see again with the
    message (kept by the loop, opaque to everyone else). `reason` is why the model refused, where it tells so
    apart from its text; it is fit for the user.
    """

    stop: Literal["stop", "length", "tool_use", "refusal"]
    usage: Usage | None = None
    raw_stop: str | None = None
    provider_data: dict[str, Any] | None = None
    reason: str | None = None


StreamEvent = TextDelta | ThinkingDelta | ToolCallDelta | StreamEnd


class ProviderError(Exception):
    """A request to a model failed. `message` is fit for the user: no secret, no page of HTML, never empty.

    `status` is HTTP's, `code` the server's own word for the failure, `request_id` its name for the request.
    `context_limit` is the model's context window in tokens, where an overflow told it. `words` is what the
    server said, for its provider alone.
    """

    def __init__(  # noqa: PLR0913 - what a failure tells, all of it by name and none of it needed
        self,
        kind: ErrorKind,
        message: str,
        *,
        retryable: bool = False,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after_ms: int | None = None,
        context_limit: int | None = None,
        usage: Usage | None = None,
        words: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after_ms = retry_after_ms
        self.context_limit = context_limit
        self.usage = usage
        self.words = words

    def to_run_error(self) -> RunError:
        """The same as the wire tells it."""
        return RunError(
            kind=self.kind,
            message=self.message,
            retryable=self.retryable,
            retry_after_ms=self.retry_after_ms,
            status=self.status,
            code=self.code,
            request_id=self.request_id,
        )


def no_images(model: Model) -> ProviderError:
    """The failure of a request that shows an image to a model that does not take any."""
    return ProviderError(
        "bad_request",
        f'{model.provider}: model "{model.id}" does not take images. Choose a model that does, or set '
        "`images = true` for it in the configuration if that is wrong.",
    )


@dataclass(frozen=True)
class Headers:
    """Headers that the user wants sent with each request. The values of `secret` ones are told nowhere."""

    plain: Mapping[str, str] = field(default_factory=dict)
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)


NO_HEADERS = Headers()


class Provider(Protocol):
    """A model server."""

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Send the request and read the answer.

        The iterator gives events as they arrive and ends after `StreamEnd`; entering it or iterating raises
        `ProviderError`. Leaving the context, also by cancellation, closes the connection.
        """
        ...

    async def aclose(self) -> None:
        """Give back connections; the provider is not used afterwards."""
        ...
