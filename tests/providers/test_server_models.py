"""Asking a server for its models, over real sockets."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from agentd.config.settings import ProviderSettings
from agentd.providers.base import Headers, ProviderError
from agentd.providers.server_models import ServedModel, served_models


@contextmanager
def serving(body: bytes | Any, status: int = 200, hangs: bool = False, **headers: str) -> Iterator[Any]:
    """A server that answers `GET /v1/models`; gives its address and the headers of what it was asked."""
    answer = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked: list[dict[str, str]] = []
    done = Event()

    class Models(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append({"path": self.path} | {name.lower(): value for name, value in self.headers.items()})
            if hangs:
                done.wait(30)
                return
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Models) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/v1", asked
        done.set()
        http.shutdown()


def local(base_url: str, api: str = "openai-chat", **dialect: Any) -> ProviderSettings:
    return ProviderSettings("local", api, base_url, dialect=dialect)


async def failure(base_url: str, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await served_models(local(base_url), None, **options)
    return caught.value


async def test_models_come_with_the_window_that_the_server_tells() -> None:
    entries = [
        {"id": "plain"},
        {"id": "vllm", "max_model_len": 4096},
        {"id": "llama.cpp", "meta": {"n_ctx": 8192, "n_ctx_train": 131072}},
        {"id": "lmstudio", "max_context_length": 131072, "loaded_context_length": 2048},
        {"id": "odd", "max_model_len": "4096", "meta": 3},
        {"id": "false", "max_model_len": True},
    ]
    with serving({"object": "list", "data": entries}) as (base_url, asked):
        found = await served_models(local(base_url), "key-1")
    assert found == (
        ServedModel("plain"),
        ServedModel("vllm", 4096),
        ServedModel("llama.cpp", 8192),
        ServedModel("lmstudio", 2048),
        ServedModel("odd"),
        ServedModel("false"),
    )
    assert (asked[0]["path"], asked[0]["authorization"]) == ("/v1/models", "Bearer key-1")


async def test_a_server_without_models_has_none_and_no_key_is_sent_where_there_is_none() -> None:
    with serving({"data": []}) as (base_url, asked):
        assert await served_models(local(base_url), None) == ()
    assert "authorization" not in asked[0]


async def test_entries_that_name_nothing_are_passed_over() -> None:
    with serving({"data": [3, None, {}, {"id": 3}, {"id": " "}, {"id": "m"}]}) as (base_url, _):
        assert await served_models(local(base_url), None) == (ServedModel("m"),)


@pytest.mark.parametrize(
    "body", [b"not json", b"[]", b'{"data": {}}', b'{"models": []}', b"", b"[" * 100_000]
)
async def test_an_answer_that_is_no_list_is_one_sentence(body: bytes) -> None:
    with serving(body) as (base_url, _):
        error = await failure(base_url)
    assert error.kind == "protocol"
    assert f"{base_url}/models gave no" in error.message


async def test_an_endless_list_is_not_read_to_its_end() -> None:
    with serving(b" " * (5 * 1024 * 1024)) as (base_url, _):
        assert "too long" in (await failure(base_url)).message


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (500, "server")])
async def test_a_refusal_has_its_kind(status: int, kind: str) -> None:
    with serving({"error": {"message": "no"}}, status) as (base_url, _):
        assert (await failure(base_url)).kind == kind


async def test_a_server_that_lists_no_models_is_told_with_the_address_that_was_asked() -> None:
    with serving({"error": {"message": "no such path"}}, 404) as (base_url, _):
        message = (await failure(base_url)).message
    assert "for model" not in message
    assert f"(asked {base_url}/models: check base_url" in message


async def test_a_key_does_not_follow_to_another_host() -> None:
    with (
        serving({"data": []}) as (other, asked),
        serving(b"", 302, location=f"{other}/models") as (base_url, _),
    ):
        await failure(base_url)
    assert asked == []


async def test_a_server_that_is_not_there_or_does_not_answer_is_not_waited_for() -> None:
    error = await failure("http://127.0.0.1:9/v1")
    assert (error.kind, error.retryable) == ("network", True)
    with serving(b"", hangs=True) as (base_url, _):
        assert (await failure(base_url, seconds=0.2)).kind == "timeout"


# --- other APIs and headers -----------------------------------------------------------------------

CLAUDE = {"data": [{"type": "model", "id": "claude-x", "max_input_tokens": 200000}], "has_more": False}
GEMINI = {"models": [{"name": "models/gemini-x", "inputTokenLimit": 1048576}]}


@pytest.mark.parametrize(
    ("api", "end", "dialect", "answer", "path", "header", "model"),
    [
        ("anthropic", "", {}, CLAUDE, "/v1/models?limit=1000", ("x-api-key", "key-1"), ("claude-x", 200000)),
        ("anthropic", "/v1", {"auth": "bearer"}, CLAUDE, "/v1/models?limit=1000",
         ("authorization", "Bearer key-1"), ("claude-x", 200000)),
        ("gemini", "", {}, GEMINI, "/v1beta/models?pageSize=1000", ("x-goog-api-key", "key-1"),
         ("gemini-x", 1048576)),
        ("gemini", "/v1", {"auth": "bearer"}, GEMINI, "/v1/models?pageSize=1000",
         ("authorization", "Bearer key-1"), ("gemini-x", 1048576)),
        ("openai-chat", "/v1", {"auth": "api-key"}, {"data": [{"id": "m"}]}, "/v1/models",
         ("api-key", "key-1"), ("m", None)),
        ("openai-responses", "/v1", {}, {"data": [{"id": "m"}]}, "/v1/models",
         ("authorization", "Bearer key-1"), ("m", None)),
    ],
)  # fmt: skip
async def test_each_api_lists_its_models_in_its_own_way(
    api: str, end: str, dialect: Any, answer: Any, path: str, header: Any, model: tuple[str, int | None]
) -> None:
    with serving(answer) as (base_url, asked):
        address = local(base_url.removesuffix("/v1") + end, api, **dialect)
        assert await served_models(address, "key-1") == (ServedModel(*model),)
    name, value = header
    assert (asked[0]["path"], asked[0][name]) == (path, value)
    assert ("anthropic-version" in asked[0]) == (api == "anthropic")


async def test_the_headers_of_the_configuration_are_sent_too() -> None:
    headers = Headers({"X-Team": "blue"}, {"X-Gate": "canary"})
    with serving({"data": []}) as (base_url, asked):
        await served_models(local(base_url), None, headers)
    assert (asked[0]["x-team"], asked[0]["x-gate"]) == ("blue", "canary")
