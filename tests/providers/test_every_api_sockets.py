"""What sockets do to an answer, for every API alike: nothing is lost, believed or given away."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from conversation import Reading, read, request
from fakes.answers import APIS, answer
from fakes.rude_server import Plan, RudeServer, head

from agentd.providers.apis import open_provider
from agentd.providers.base import Provider, ProviderError

KEY = "sk-canary-0123456789"
PAGE = b"<!DOCTYPE html><html><body>Your IP: 203.0.113.9" + b" filler" * 30_000
KEY_HEADERS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """Each wire API in turn."""
    return str(request.param)


def provider_at(api: str, base_url: str, **timeouts: float) -> Provider:
    address = SimpleNamespace(name="rude", api=api, base_url=base_url, dialect={}, timeouts=timeouts)
    return open_provider(address, KEY)


async def fail(
    api: str, server: RudeServer, release_at: str | None = None, **timeouts: float
) -> tuple[Reading, ProviderError]:
    """The error of an answer that must fail, and what was read before it.

    A held connection is released once the text `release_at` has come.
    """
    provider, reading = provider_at(api, server.address, **timeouts), Reading()

    async def read_on() -> None:
        async with provider.stream(request()) as events:
            async for event in events:
                reading.events.append(event)
                if reading.text == release_at:
                    server.release()

    with anyio.fail_after(20), pytest.raises(ProviderError) as caught:
        await read_on()
    await provider.aclose()
    assert caught.value.message.startswith("rude: ")
    assert KEY not in caught.value.message
    assert len(caught.value.message) < 700
    return reading, caught.value


# --- the connection breaks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan",
    [
        Plan(end="reset"),
        Plan(end="close"),
        Plan(b"HTTP/1.1 200 OK\r\ncontent-ty", end="close"),
        Plan(b"HTTP/1.1 200 OK\r\ncontent-ty", end="reset"),
        Plan(b"SSH-2.0-OpenSSH_9.6\r\n", end="close"),
    ],
    ids=["reset", "closed", "half-a-head", "half-a-head-reset", "no-http"],
)
async def test_a_connection_without_an_answer_is_a_network_error_that_names_the_server(
    api: str, plan: Plan
) -> None:
    with RudeServer(plan) as server:
        reading, error = await fail(api, server)
        assert len(server.requests) == 1
        assert server.address in error.message
    assert reading.events == []
    assert (error.kind, error.retryable) == ("network", True)


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_connection_that_breaks_behind_the_head_is_no_empty_answer(api: str, end: Any) -> None:
    with RudeServer(Plan(head(), end=end)) as server:
        reading, error = await fail(api, server)
    assert reading.events == []
    assert (error.kind, error.retryable) == ("network", True)


async def test_a_name_that_nobody_knows_is_a_network_error(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("anyio.connect_tcp", unknown)
    provider = provider_at(api, "http://model.invalid/v1")
    with pytest.raises(ProviderError) as caught:
        async with provider.stream(request()):
            pass
    assert (caught.value.kind, caught.value.retryable) == ("network", True)
    assert "model.invalid" in caught.value.message
    assert "Name or service not known" in caught.value.message
    await provider.aclose()


async def test_bytes_without_end_and_without_a_word_are_not_read_for_ever(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentd.providers.http_answer.MOST_MUTE_BYTES", 2**20)
    with RudeServer(Plan(head() + b"data: " + b"x" * 3 * 2**20, end="stay")) as server:
        _, error = await fail(api, server)
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "1 MB came without a word" in error.message


async def test_an_answer_of_no_bytes_may_be_tried_again(api: str) -> None:
    with RudeServer(Plan(head("200 OK", "content-length: 0"))) as server:
        _, error = await fail(api, server)
    assert error.retryable


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_connection_that_breaks_in_mid_answer_keeps_the_text_and_is_never_an_end(
    api: str, end: Any
) -> None:
    half = answer(api, "as far as it came", hang=True)
    with RudeServer(Plan(head() + half, end=end, held=True)) as server:
        reading, error = await fail(api, server, release_at="as far as it came")
    assert reading.text == "as far as it came"
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message


@pytest.mark.parametrize("end", ["close", "reset", "stay"])
async def test_whatever_happens_to_the_connection_of_a_whole_answer_is_no_matter(api: str, end: Any) -> None:
    """Also that it is cut in its length: the answer says itself when it is whole."""
    with RudeServer(Plan(head("200 OK", "content-length: 999999") + answer(api, "hello"), end=end)) as server:
        provider = provider_at(api, server.address)
        with anyio.fail_after(5):
            reading = await read(provider)
        await provider.aclose()
    assert (reading.text, reading.end.stop) == ("hello", "stop")


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_connection_that_went_stale_between_two_requests_costs_no_answer(api: str, end: Any) -> None:
    body = answer(api, "hello")
    plan = Plan(head("200 OK", f"content-length: {len(body)}", "connection: keep-alive") + body, end=end)
    with RudeServer(plan) as server:
        provider = provider_at(api, server.address)
        for _ in range(3):
            with anyio.fail_after(10):
                assert (await read(provider)).text == "hello"
            server.wait_for_an_end()
        await provider.aclose()
        assert server.connections == 3


async def test_an_interim_answer_is_waited_out(api: str) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    with RudeServer(Plan(interim + head() + answer(api, "hello"))) as server:
        provider = provider_at(api, server.address)
        assert (await read(provider)).text == "hello"
        await provider.aclose()


@pytest.mark.parametrize("beginning", [b"", b": keep\n\n"], ids=["head-only", "a-comment"])
async def test_a_server_that_stalls_is_a_timeout(api: str, beginning: bytes) -> None:
    with RudeServer(Plan(head() + beginning, end="stay")) as server:
        _, error = await fail(api, server, first_byte=0.2, idle=0.2)
    assert (error.kind, error.retryable) == ("timeout", True)


async def test_text_and_then_silence_is_a_timeout_that_keeps_the_text(api: str) -> None:
    plan = Plan(head() + answer(api, "half", hang=True), end="stay")
    with RudeServer(plan) as server:
        reading, error = await fail(api, server, first_byte=5, idle=0.2)
    assert (reading.text, error.kind) == ("half", "timeout")


# --- somebody else answers ------------------------------------------------------------------------


@pytest.fixture
def elsewhere() -> Iterator[RudeServer]:
    """A server on another host that would say hello."""
    with RudeServer(Plan(head()), host="127.0.0.2") as other:
        yield other


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Moved", "308 Moved"])
async def test_a_redirect_to_another_host_is_told_and_neither_key_nor_prompt_follows(
    api: str, status: str, elsewhere: RudeServer
) -> None:
    plan = Plan(head(status, f"location: {elsewhere.address}/v1?token=secret", "content-length: 0"))
    with RudeServer(plan) as server:
        _, error = await fail(api, server)
        (sent,) = server.requests
    assert KEY.encode() in sent
    assert elsewhere.connections == 0
    assert elsewhere.address in error.message
    assert "token" not in error.message
    assert (error.kind, error.retryable, error.status) == ("bad_request", False, int(status[:3]))


@pytest.mark.parametrize("location", ["/v1/elsewhere", "//evil.invalid/v1", "https://user:pw@evil.invalid/"])
async def test_no_other_form_of_redirect_is_followed(api: str, location: str) -> None:
    with RudeServer(Plan(head("307 Moved", f"location: {location}", "content-length: 0"))) as server:
        _, error = await fail(api, server)
        assert len(server.requests) == 1
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "pw" not in error.message


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/event-stream", "text/plain"])
async def test_a_page_in_place_of_an_answer_names_address_and_way_out(api: str, content_type: str) -> None:
    with RudeServer(Plan(head(content_type=content_type) + PAGE)) as server:
        reading, error = await fail(api, server)
        assert server.address in error.message
    assert reading.events == []
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "base_url" in error.message
    assert "203.0.113.9" not in error.message


@pytest.mark.parametrize(
    "content_type", ["text/html; charset=utf-8", "text/plain", "application/octet-stream"]
)
async def test_a_stream_is_one_whatever_its_head_says_of_it(api: str, content_type: str) -> None:
    """Small servers leave it to their framework to say what they send, and some frameworks say HTML."""
    with RudeServer(Plan(head(content_type=content_type) + answer(api, "Hi"))) as server:
        provider = provider_at(api, server.address)
        assert (await read(provider)).text == "Hi"
        await provider.aclose()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [("text/plain", b"Welcome to nginx"), ("application/json", b"null"), ("application/json", b'"hi"')],
    ids=["text", "null", "a-string"],
)
async def test_words_in_place_of_an_answer_name_address_and_way_out(
    api: str, content_type: str, body: bytes
) -> None:
    with RudeServer(Plan(head(content_type=content_type) + body)) as server:
        _, error = await fail(api, server)
        assert server.address in error.message
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "base_url" in error.message


@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "application/json"])
@pytest.mark.parametrize("status", ["502 Bad Gateway", "520 ", "524 "])
async def test_a_gateways_page_stays_out_of_the_message(api: str, status: str, content_type: str) -> None:
    with RudeServer(Plan(head(status, content_type=content_type) + PAGE)) as server:
        _, error = await fail(api, server)
    assert error.retryable
    assert error.status == int(status[:3])
    assert str(error.status) in error.message
    assert "203.0.113.9" not in error.message
    assert "<" not in error.message


async def test_a_key_that_the_server_repeats_is_not_told(api: str) -> None:
    body = f'{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}'.encode()
    with RudeServer(Plan(head("401 Unauthorized", content_type="application/json") + body)) as server:
        _, error = await fail(api, server)
        (sent,) = server.requests
    names = {line.partition(b":")[0].lower() for line in sent.partition(b"\r\n\r\n")[0].splitlines()[1:]}
    assert len(names & set(KEY_HEADERS)) == 1
    assert KEY.encode() not in sent.splitlines()[0]
    assert (error.kind, error.retryable) == ("auth", False)
    assert "Incorrect API key provided" in error.message


async def test_an_error_in_mid_stream_ends_the_answer_though_the_connection_stays(api: str) -> None:
    broke = {"kind": "bad_request", "message": "It broke: invalid request.", "status": 400}
    with RudeServer(Plan(head() + answer(api, "half", error=broke), end="stay")) as server:
        reading, error = await fail(api, server, tail=1.0)
    assert reading.text == "half"
    assert "It broke" in error.message
    assert (error.kind, error.retryable) == ("bad_request", False)
