"""A Responses API server on loopback that plays a script, and refuses what strict servers refuse.

`ModelServer` in another wire format: the same scripts, answers and waits. Text blocks of a script may have a
`phase`; thinking blocks become reasoning items, sealed for the model when the request asks for that.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from fakes.model_server import ModelServer, Recorded, Response
from fakes.responses_wire import ResponsesWire


class ResponsesServer(ModelServer):
    """The server; the keywords of `ResponsesWire` say of which kind."""

    path = "/responses"

    def __init__(
        self,
        responses: Iterable[Response] = (),
        *,
        strict: bool = True,
        repeat: bool = False,
        **kind: bool,
    ) -> None:
        self._wire = ResponsesWire(**kind)
        super().__init__(responses, strict=strict, repeat=repeat)

    def fault_of(self, request: Recorded) -> str | None:
        return self._wire.fault_of(request.body)

    def events(self, response: Mapping[str, Any], request: Recorded) -> Iterator[bytes]:
        return self._wire.events_of(response, request.body)


@pytest.fixture
def responses_server() -> Iterator[ResponsesServer]:
    """A strict server with an empty script: `push` responses to it."""
    with ResponsesServer() as server:
        yield server
