"""One daemon and a strict model server for each wire API, for what must hold whatever a server speaks."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fakes.anthropic_server import AnthropicServer
from fakes.every_server import MODELS
from fakes.gemini_server import GeminiServer
from fakes.model_server import ModelServer
from fakes.responses_server import ResponsesServer
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.scripts import reply

__all__ = ["MODELS", "SERVERS", "SIBLINGS", "SMALL_MODELS", "Stage", "configure", "stages", "start"]

SERVERS: dict[str, type[ModelServer]] = {
    "openai-chat": ModelServer,
    "openai-responses": ResponsesServer,
    "anthropic": AnthropicServer,
    "gemini": GeminiServer,
}
SIBLINGS = {
    "openai-chat": "chat-model-too",
    "openai-responses": "gpt-5-mini",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-flash",
}
"""For each API another model of the same server, which must not see what the first thought as its own."""
SMALL_MODELS = {
    "openai-chat": "chat-model-mini",
    "openai-responses": "gpt-5-nano",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-3-flash-lite",
}
"""For each API a model with a window of 64,000 tokens."""


@dataclass(frozen=True)
class Stage:
    """A server of one API, the name of its model, and the daemon that knows it."""

    api: str
    model: str
    server: ModelServer
    home: Home
    daemon: Daemon

    def chat(self, *responses: Json, root: Path | None = None) -> Chat:
        """A session whose model gives these responses; every tool runs without a question."""
        self.server.push(*responses)
        return Chat(self.daemon, root or self.home.workspace(), model=self.model, mode="full")

    def assert_goes_on(self, chat: Chat) -> None:
        """The session takes another prompt, and the server finds no fault in any request so far."""
        assert self.server.faults == []
        assert self.server.unused == 0
        self.server.push(reply("on we go"))
        assert chat.run("and then?")["text"] == "on we go"
        assert self.server.faults == []
        assert_well_formed(chat.notifications())


@contextmanager
def stages(home: Home) -> Iterator[dict[str, Stage]]:
    """All servers and one daemon that is configured for each, by API."""
    with ExitStack() as stack:
        servers = {api: stack.enter_context(server()) for api, server in SERVERS.items()}
        configure(home, servers)
        daemon = start(home)
        yield {
            api: Stage(api, f"at-{api}/{MODELS[api]}", server, home, daemon)
            for api, server in servers.items()
        }


def configure(home: Home, servers: dict[str, ModelServer]) -> None:
    """Write the configuration in which the provider "at-API" is that API's server."""
    home.config.write_text(
        "".join(
            f'[providers.at-{api}]\napi = "{api}"\nbase_url = "{server.base_url}"\n'
            f'api_key_env = "EVERY_API_KEY"\n'
            + "".join(
                f'[providers.at-{api}.models."{model}"]\n'
                f"context_window = {window}\nreasoning = true\nimages = true\n"
                for model, window in (
                    (MODELS[api], 200_000),
                    (SIBLINGS[api], 200_000),
                    (SMALL_MODELS[api], 64_000),
                    ("tiny", 20_000),
                )
            )
            for api, server in servers.items()
        )
    )


def start(home: Home) -> Daemon:
    """A daemon that has a key for each of the servers; mode `full` is allowed in it."""
    daemon = home.spawn("--allow-full", EVERY_API_KEY="sk-key-of-every-api")
    daemon.initialize()
    return daemon
