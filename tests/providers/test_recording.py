"""Recordings: what is in them, what is not, and that a replay says what the servers said."""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from conversation import READ, Reading, assistant, call, read, request, result, user
from fakes.anthropic_server import AnthropicServer
from fakes.gemini_server import GeminiServer
from fakes.model_server import EVENT_STREAM, ModelServer, Raw, json_answer, sse
from fakes.responses_server import ResponsesServer

from agentd.config.secrets import Secrets
from agentd.protocol.messages import ThinkingContent
from agentd.providers.apis import open_recorded
from agentd.providers.base import Model, ModelRequest, Provider, ProviderError
from agentd.providers.recording import Recording
from agentd.providers.scripted import Scripted

KEY = "sk-canary-0123456789abcdef"
SERVERS: dict[str, type[ModelServer]] = {
    "openai-chat": ModelServer,
    "openai-responses": ResponsesServer,
    "anthropic": AnthropicServer,
    "gemini": GeminiServer,
}
LOOK = {"type": "tool_call", "id": "call_1", "name": "read_file", "arguments": {"path": "a.py"}}
THINK = {"type": "thinking", "text": "Let me see."}


@dataclass(frozen=True)
class Address:
    """A provider's settings."""

    api: str
    base_url: str
    name: str = "local"
    dialect: Mapping[str, Any] = field(default_factory=dict)
    timeouts: Mapping[str, float] = field(default_factory=dict)


class Tape:
    """A recording in a file, and the providers that are written to it."""

    def __init__(self, path: Path, *secrets: str) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.secrets = Secrets()
        for secret in secrets:
            self.secrets.learn(secret)
        self._recording = Recording(self._fd, self.secrets)

    def provider(self, server: ModelServer, api: str = "openai-chat", **settings: Any) -> Provider:
        return open_recorded(Address(api, server.base_url, **settings), KEY, recording=self._recording)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == kind]

    def answer(self) -> bytes:
        """The recorded bytes of all answers that are text."""
        return "".join(line["text"] for line in self.of("chunk")).encode()

    def replayed(self, *messages: Any, **fields: Any) -> ModelRequest:
        """A request to the model that plays this recording."""
        return request(*messages, model=Model("scripted", str(self.path)), **fields)

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def tape(tmp_path: Path) -> Iterator[Tape]:
    tape = Tape(tmp_path / "run.jsonl", KEY)
    yield tape
    tape.close()


async def failure(provider: Provider, asked: ModelRequest) -> tuple[ProviderError, Reading]:
    """The error of an answer, and what came before it."""
    reading = Reading()
    with pytest.raises(ProviderError) as caught:
        await reading.read(provider, asked)
    return caught.value, reading


def told(error: ProviderError) -> tuple[Any, ...]:
    return error.kind, error.message, error.retryable, error.status, error.retry_after_ms


# --- the same again -------------------------------------------------------------------------------


@pytest.mark.parametrize("api", SERVERS)
async def test_a_replay_gives_the_very_events_of_every_api(api: str, tape: Tape) -> None:
    script = [{"content": [THINK, LOOK]}, {"content": [{"type": "text", "text": "Done 😀."}]}]
    with SERVERS[api](script) as server:
        provider = tape.provider(server, api)
        first = await read(provider)
        turn = (user("Hi"), assistant(call("call_1", path="a.py")), result("call_1", "x"))
        second = await read(provider, request(*turn))
        await provider.aclose()
        assert not server.faults
    assert first.calls[0]["name"] == "read_file"
    assert second.text == "Done 😀."
    player = Scripted()
    assert (await read(player, tape.replayed())).events == first.events
    assert (await read(player, tape.replayed(*turn))).events == second.events
    await player.aclose()


async def test_thinking_in_the_text_is_apart_in_a_replay_too(tape: Tape, model_server: ModelServer) -> None:
    model_server.push({"content": [{"type": "text", "text": "<think>hm</think>Hi"}], "chunkSize": 3})
    provider = tape.provider(model_server)
    asked = request(model=Model("local", "m", thinking_tag="think"))
    first = await read(provider, asked)
    await provider.aclose()
    player = Scripted()
    again = await read(player, tape.replayed())
    await player.aclose()
    assert (again.thinking, again.text) == (first.thinking, first.text) == ("hm", "Hi")


async def test_a_replay_keeps_the_chunks_as_they_came(tape: Tape, model_server: ModelServer) -> None:
    body = sse({"choices": [{"delta": {"content": "é😀"}, "finish_reason": "stop"}]})
    body = body.replace(b"\\u00e9\\ud83d\\ude00", "é😀".encode())
    model_server.push(Raw(body, chunk=1))
    provider = tape.provider(model_server)
    first = await read(provider)
    await provider.aclose()
    assert any("base64" in line for line in tape.of("chunk")), "a byte of é is no text"
    assert first.text == "é😀"
    assert (await read(Scripted(), tape.replayed())).events == first.events


async def test_an_error_answer_is_replayed_with_its_kind_words_and_delay(
    tape: Tape, model_server: ModelServer
) -> None:
    said = {"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}}
    model_server.push(json_answer(said, 429, retry_after="7", set_cookie="session=abc"))
    provider = tape.provider(model_server)
    error, _ = await failure(provider, request())
    await provider.aclose()
    assert (error.kind, error.status, error.retry_after_ms) == ("rate_limit", 429, 7000)
    again, _ = await failure(Scripted(), tape.replayed())
    assert told(again) == told(error)
    assert b"session=abc" not in tape.path.read_bytes()


async def test_what_the_adapter_cures_is_cured_again(tape: Tape) -> None:
    refusal = {"error": {"message": "Unknown field stream_options", "type": "invalid_request_error"}}
    with ModelServer([json_answer(refusal, 400), {"content": [{"type": "text", "text": "ok"}]}]) as server:
        provider = tape.provider(server)
        assert (await read(provider)).text == "ok"
        await provider.aclose()
    assert len(tape.of("request")) == 2
    assert (await read(Scripted(), tape.replayed())).text == "ok"


@pytest.mark.parametrize("api", SERVERS)
async def test_a_stream_cut_in_the_middle_is_cut_again(api: str, tape: Tape) -> None:
    with SERVERS[api]([{"content": [{"type": "text", "text": "x" * 200}]}]) as server:
        probe = Tape(tape.path.with_name("probe"))
        provider = probe.provider(server, api)
        await read(provider)
        await provider.aclose()
        body = probe.answer()
        probe.close()
        server.push(Raw(body, cut_after=len(body) * 2 // 3))
        provider = tape.provider(server, api)
        error, reading = await failure(provider, request())
        await provider.aclose()
    assert (error.kind, error.retryable) == ("network", True)
    assert reading.events
    again, replayed = await failure(Scripted(), tape.replayed())
    assert told(again) == told(error)
    assert replayed.events == reading.events


async def test_a_server_that_is_not_there_is_not_there_again(tape: Tape) -> None:
    server = ModelServer()
    server.close()
    provider = tape.provider(server)
    error, _ = await failure(provider, request())
    await provider.aclose()
    assert error.kind == "network"
    assert told((await failure(Scripted(), tape.replayed()))[0]) == told(error)


@pytest.mark.parametrize(
    "stall",
    [Raw(answer=False), Raw(stall_after=0), Raw(b": begin\n\n" + b"x" * 9, stall_after=9)],
    ids=["no head", "no body", "no more"],
)
async def test_a_wait_that_was_too_long_is_told_at_once(
    stall: Raw, tape: Tape, model_server: ModelServer
) -> None:
    model_server.push(stall)
    # A tenth of the limit is for what comes before the request is sent, which a busy machine may be slow in.
    provider = tape.provider(model_server, timeouts={"first_byte": 2, "idle": 2})
    error, _ = await failure(provider, request())
    await provider.aclose()
    again, _ = await failure(Scripted(), tape.replayed())
    assert (error.kind, error.retryable) == (again.kind, again.retryable) == ("timeout", True)
    assert "local" in again.message


async def test_a_long_wait_of_the_recording_is_not_waited_for(tape: Tape, model_server: ModelServer) -> None:
    model_server.push(Raw(b": begin\n\n", stall_after=9))
    provider = tape.provider(model_server, timeouts={"idle": 0.3})
    await failure(provider, request())
    await provider.aclose()
    text = tape.path.read_text().replace('"idle":0.3', '"idle":180.0')
    *lines, end = text.splitlines()
    stretched = json.loads(end) | {"at": 500.0}
    tape.path.write_text("\n".join([*lines, json.dumps(stretched)]) + "\n")
    with anyio.fail_after(20):
        error, _ = await failure(Scripted(), tape.replayed())
    assert error.kind == "timeout"


async def test_a_socket_that_stayed_open_after_the_end_is_no_fault(
    tape: Tape, model_server: ModelServer
) -> None:
    chunk = {"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}
    model_server.push(Raw(sse(chunk), linger=True), Raw(sse(chunk, done=False), linger=True))
    provider = tape.provider(model_server, timeouts={"idle": 0.3})
    first, second = await read(provider), await read(provider)
    await provider.aclose()
    assert [line["how"] for line in tape.of("end")] == ["left", "left"]
    player = Scripted()
    assert (await read(player, tape.replayed())).events == first.events
    assert (await read(player, tape.replayed())).events == second.events


async def test_where_a_run_was_cancelled_the_replay_says_so(tape: Tape, model_server: ModelServer) -> None:
    chunk = {"choices": [{"delta": {"content": "ok"}}]}
    model_server.push(Raw(sse(chunk, done=False), linger=True))
    provider = tape.provider(model_server)
    async with provider.stream(request()) as events:
        assert [await anext(events)]
    await provider.aclose()
    error, reading = await failure(Scripted(), tape.replayed())
    assert reading.text == "ok"
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "answer 1 was not recorded to its end: the run was ended after" in error.message


@pytest.mark.parametrize("kept", [2, 3, 4])
async def test_what_a_killed_daemon_wrote_is_replayed_as_far_as_it_goes(
    kept: int, tape: Tape, model_server: ModelServer
) -> None:
    model_server.push({"content": [{"type": "text", "text": "hello world"}], "chunkSize": 5})
    provider = tape.provider(model_server)
    await read(provider)
    await provider.aclose()
    lines = tape.path.read_bytes().splitlines(keepends=True)
    tape.path.write_bytes(b"".join(lines[:kept]) + lines[kept][:-5])
    error, reading = await failure(Scripted(), tape.replayed())
    assert error.kind == "protocol"
    assert "answer 1 was not recorded to its end" in error.message
    assert "hello world".startswith(reading.text)


async def test_a_replay_that_asks_for_more_than_was_recorded_says_so(
    tape: Tape, model_server: ModelServer
) -> None:
    model_server.push({"content": [{"type": "text", "text": "one"}]})
    provider = tape.provider(model_server)
    await read(provider)
    await provider.aclose()
    player = Scripted()
    await read(player, tape.replayed())
    error, _ = await failure(player, tape.replayed())
    assert error.message == f"scripted/{tape.path}: the recording has no more than 1 answer."


async def test_a_request_without_any_answer_is_not_asked_twice_of_a_recording_of_none(tape: Tape) -> None:
    error, _ = await failure(Scripted(), tape.replayed())
    assert error.message == f"scripted/{tape.path}: the recording has no more than 0 answers."


async def test_answers_of_two_apis_are_replayed_in_their_order(tape: Tape) -> None:
    said = [{"content": [{"type": "text", "text": word}]} for word in ("one", "two", "three")]
    with ModelServer([said[0], said[2]]) as chat, AnthropicServer([said[1]]) as messages:
        first, second = tape.provider(chat), tape.provider(messages, "anthropic", name="other")
        for provider in (first, second, first):
            await read(provider)
        for provider in (first, second):
            await provider.aclose()
    player = Scripted()
    assert [(await read(player, tape.replayed())).text for _ in said] == ["one", "two", "three"]
    await player.aclose()


async def test_dialect_and_timeouts_are_those_of_the_recorded_provider(tape: Tape) -> None:
    dialect = {"betas": ("one-beta",), "cache_markers": 1}
    with AnthropicServer([{"content": [{"type": "text", "text": "ok"}]}]) as server:
        provider = tape.provider(server, "anthropic", dialect=dialect, timeouts={"idle": 9.0})
        await read(provider)
        await provider.aclose()
    (line,) = tape.of("request")
    assert line["dialect"] == {"betas": ["one-beta"], "cache_markers": 1}
    assert line["timeouts"]["idle"] == 9.0
    assert (line["provider"], line["api"], line["model"]) == ("local", "anthropic", "m")
    assert line["headers"]["anthropic-beta"].endswith("one-beta")
    assert (await read(Scripted(), tape.replayed())).text == "ok"


async def test_a_replay_does_not_look_at_the_requests(tape: Tape, model_server: ModelServer) -> None:
    model_server.push({"content": [{"type": "text", "text": "ok"}]})
    provider = tape.provider(model_server)
    await read(provider)
    await provider.aclose()
    orphan = result("never_called", "x")
    asked = tape.replayed(user("something else"), orphan, system="Other words.", tools=(READ, READ))
    assert (await read(Scripted(), asked)).text == "ok"


async def test_no_proxy_of_the_environment_is_asked(
    tape: Tape, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.push({"content": [{"type": "text", "text": "ok"}]})
    provider = tape.provider(model_server)
    await read(provider)
    await provider.aclose()
    far = tape.path.read_text().replace(model_server.base_url, "https://models.example/v1")
    tape.path.write_text(far)
    monkeypatch.setenv("HTTPS_PROXY", "no proxy at all")
    assert (await read(Scripted(), tape.replayed())).text == "ok"


# --- what is written ------------------------------------------------------------------------------


async def test_requests_and_answers_are_written_when_they_happen(
    tape: Tape, model_server: ModelServer
) -> None:
    chunk = {"choices": [{"delta": {"content": "ok"}}]}
    model_server.push(Raw(sse(chunk, done=False), linger=True))
    provider = tape.provider(model_server)
    async with provider.stream(request()) as events:
        await anext(events)
        assert [line["type"] for line in tape.lines] == ["recording", "request", "head", "chunk"]
        assert tape.of("request")[0]["body"]["messages"][-1]["content"] == "Hi"
        assert tape.of("request")[0]["url"] == f"{model_server.base_url}/chat/completions"
    await provider.aclose()


@pytest.mark.parametrize("api", SERVERS)
@pytest.mark.parametrize("size", [1, 7, 0])
async def test_the_key_is_nowhere_even_if_the_server_and_the_user_repeat_it(
    api: str, size: int, tape: Tape
) -> None:
    other = 'token-of-"another"-kind'
    tape.secrets.learn(other)
    echo = Raw(
        f": {KEY} {other}\n\n{KEY}".encode(),
        headers={**EVENT_STREAM, "x-echo": KEY, "request-id": KEY},
        chunk=size,
    )
    with SERVERS[api]([echo, json_answer({"error": {"message": f"bad key {KEY}"}}, 401)]) as server:
        provider = tape.provider(server, api)
        thought = assistant(ThinkingContent(text=other), "x", call("call_1", path=KEY))
        asked = request(user(f"{KEY} and {other}"), thought, result("call_1", KEY), system=KEY)
        await failure(provider, asked)
        await failure(provider, asked)
        await provider.aclose()
        sent = json.dumps([list(each.headers.values()) for each in server.requests])
        assert KEY in sent, "the key was used"
    text = tape.path.read_text()
    assert KEY not in text
    assert "another" not in text
    assert not {"authorization", "x-api-key", "x-goog-api-key", "api-key"} & set(text.lower().split('"'))
    pieces = [line.get("text", "") for line in tape.of("chunk")]
    assert KEY not in "".join(pieces)
    assert "*" * len(KEY) in "".join(pieces)
    stat_of_file = tape.path.stat()
    assert stat.S_IMODE(stat_of_file.st_mode) == 0o600


async def test_a_key_in_the_address_is_masked(tape: Tape, model_server: ModelServer) -> None:
    model_server.push({"content": [{"type": "text", "text": "ok"}]})
    where = Address("openai-chat", f"{model_server.base_url}/{KEY}?key={KEY}")
    provider = open_recorded(where, KEY, recording=tape._recording)
    await read(provider)
    await provider.aclose()
    assert model_server.requests[0].path.count(KEY) == 2
    assert KEY not in tape.path.read_text()
    assert (await read(Scripted(), tape.replayed())).text == "ok"


async def test_what_cannot_be_written_fails_the_request_and_every_later_one(
    tmp_path: Path, model_server: ModelServer
) -> None:
    path = tmp_path / "read-only"
    path.touch()
    fd = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(ProviderError) as caught:
            Recording(fd, Secrets())
    finally:
        os.close(fd)
    assert caught.value.kind == "storage"
    assert "cannot be written" in caught.value.message


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_a_disk_that_fills_up_is_told_and_nothing_is_sent(
    tape: Tape, model_server: ModelServer
) -> None:
    provider = tape.provider(model_server)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, tape._fd)
    os.close(full)
    for _ in range(2):
        error, _ = await failure(provider, request())
        assert error.kind == "storage"
        assert "No space left" in error.message
    await provider.aclose()
    assert not model_server.requests


# --- files that are none --------------------------------------------------------------------------

MARK = '{"type": "recording", "version": 1, "agentd": "1"}\n'
REQUEST = json.dumps(
    {
        "type": "request", "exchange": 1, "provider": "p", "api": "openai-chat", "model": "m", "dialect": {},
        "baseUrl": "http://127.0.0.1:9/v1", "url": "", "headers": {}, "timeouts": {}, "body": {},
    }
)  # fmt: skip
HEAD = '{"type": "head", "exchange": 1, "at": 0, "status": 200, "headers": {}}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (MARK + "garbage\n", "in line 2."),
        (MARK + '{"type": "weather"}\n', "in line 2."),
        (MARK + '{"type": "head", "exchange": 1}\n', "Field required at at in line 2."),
        (MARK + HEAD + "\n", "no request 1 before what stands in line 2."),
        (
            f'{MARK}{REQUEST}\n{{"type": "chunk", "exchange": 1, "at": 0, "text": ""}}\n',
            "no head of answer 1",
        ),
        (
            f'{MARK}{REQUEST}\n{HEAD}\n{{"type": "chunk", "exchange": 1, "at": 0, "base64": "?"}}\n',
            "in line 4.",
        ),
        (MARK.replace("1,", "2,", 1), "version 2"),
        (MARK + REQUEST.replace("openai-chat", "telepathy") + "\n", 'unknown api "telepathy"'),
        (MARK + REQUEST.replace('"dialect": {}', '"dialect": {"mood": 1}') + "\n", "mood"),
        (MARK + REQUEST.replace('"timeouts": {}', '"timeouts": {"mood": 1}') + "\n", "mood"),
    ],
)
async def test_a_broken_recording_is_an_error_that_says_where(text: str, why: str, tape: Tape) -> None:
    tape.path.write_text(text)
    error, _ = await failure(Scripted(), tape.replayed())
    assert error.kind == "bad_request"
    assert why in error.message
    assert str(tape.path) in error.message or "telepathy" in why


async def test_a_recording_needs_no_particular_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_server: ModelServer
) -> None:
    tape = Tape(tmp_path / "bug", KEY)
    model_server.push({"content": [{"type": "text", "text": "ok"}]})
    provider = tape.provider(model_server)
    await read(provider)
    await provider.aclose()
    tape.close()
    monkeypatch.chdir(tmp_path)
    assert (await read(Scripted(), request(model=Model("scripted", "bug")))).text == "ok"
