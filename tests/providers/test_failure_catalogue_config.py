"""What surroundings have done to clients elsewhere: keys, waits, certificates and proxies, for every API."""

import shutil
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from types import SimpleNamespace
from typing import Any, ClassVar

import httpx
import pytest
from conversation import Reading, read, request
from fakes.answers import APIS, answer
from fakes.rude_server import Plan, RudeServer, head

from agentd.providers.apis import open_provider
from agentd.providers.base import Model, Provider, ProviderError
from agentd.providers.http_endpoint import OpenClient

KEY = "sk-canary-0123456789"


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """Each wire API in turn."""
    return str(request.param)


def provider_at(
    api: str, base_url: str, key: str | None = KEY, open_client: OpenClient = httpx.AsyncClient
) -> Provider:
    address = SimpleNamespace(name="local", api=api, base_url=base_url, dialect={}, timeouts={})
    return open_provider(address, key, open_client=open_client)


async def fail(provider: Provider, model: Model | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await Reading().read(provider, request(model=model))
    await provider.aclose()
    return caught.value


async def refused(api: str, status: str, *lines: str, body: str = "") -> ProviderError:
    """The error that an answer with this status, these header lines and this body means."""
    plan = Plan(head(status, *lines, content_type="application/json") + body.encode())
    with RudeServer(plan) as server:
        error = await fail(provider_at(api, server.address))
        assert len(server.requests) == 1, "the provider itself never tries again"
    return error


# --- whether and when to try again ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "wait"),
    [
        ("Retry-After: 2", 2000),
        ("retry-after: 0.5", 500),
        ("retry-after-ms: 1500", 1500),
        ("Retry-After: 3600", 3_600_000),
        ("Retry-After: soon", None),
        ("Retry-After: -5", None),
        ("Retry-After: nan", None),
        ("x-nothing: 1", None),
    ],
)
@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable", "529 "])
async def test_the_wait_that_a_busy_server_asks_for_is_read(
    api: str, status: str, line: str, wait: int | None
) -> None:
    error = await refused(api, status, line, body='{"error": {"message": "Slow down."}}')
    assert (error.retryable, error.retry_after_ms) == (True, wait)
    assert error.kind in ("rate_limit", "overloaded")


async def test_a_date_to_wait_for_is_read(api: str) -> None:
    error = await refused(
        api, "429 Too Many Requests", f"Retry-After: {formatdate(time() + 60, usegmt=True)}"
    )
    assert error.retry_after_ms is not None
    assert 50_000 < error.retry_after_ms <= 60_000


async def test_a_servers_word_on_trying_again_goes_before_its_status(api: str) -> None:
    assert not (await refused(api, "503 Service Unavailable", "X-Should-Retry: false")).retryable


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        ("400 Bad Request", False),
        ("401 Unauthorized", False),
        ("402 Payment Required", False),
        ("403 Forbidden", False),
        ("404 Not Found", False),
        ("408 Request Timeout", True),
        ("413 Payload Too Large", False),
        ("422 Unprocessable", False),
        ("429 Too Many Requests", True),
        ("500 Internal Server Error", True),
        ("502 Bad Gateway", True),
        ("503 Service Unavailable", True),
        ("504 Gateway Timeout", True),
        ("529 ", True),
    ],
)
async def test_what_may_pass_is_told_from_what_stays(api: str, status: str, retryable: bool) -> None:
    assert (await refused(api, status, body='{"error": {"message": "It is so."}}')).retryable is retryable


# --- what a model cannot do -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "m:1b does not support tools",  # Ollama
        "No endpoints found that support tool use.",  # OpenRouter
        "This model doesn't support function calling.",
        "Function calling is not enabled for models/m:1b",  # Google
        "`tool calling` is not supported with this model",  # Groq
    ],
)
async def test_a_model_without_tools_is_named_and_not_taken_for_a_fault_of_the_history(
    api: str, words: str
) -> None:
    body = f'{{"error": {{"message": "{words}"}}}}'
    plan = Plan(head("400 Bad Request", content_type="application/json") + body.encode())
    with RudeServer(plan) as server:
        error = await fail(provider_at(api, server.address), Model("local", "m:1b"))
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "local/m:1b" in error.message
    assert "no tool support" in error.message


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}\t", f'"{KEY}"', f"'{KEY}'\r\n", f"\ufeff{KEY}"])
async def test_a_key_loses_what_copying_added(api: str, key: str) -> None:
    with RudeServer(Plan(head() + answer(api, "hi"))) as server:
        provider = provider_at(api, server.address, key)
        assert (await read(provider)).text == "hi"
        await provider.aclose()
        header = next(line for line in server.requests[0].splitlines() if KEY.encode() in line)
    assert header.endswith(KEY.encode())
    assert b'"' not in header


@pytest.mark.parametrize("key", ["sk\u2013dash", "sk new line\nx: y", "sk-\x00", "sk-é"])
async def test_a_key_that_no_header_can_hold_is_refused_by_its_providers_name(api: str, key: str) -> None:
    with RudeServer(Plan(head())) as server:
        error = await fail(provider_at(api, server.address, key))
        assert server.connections == 0
    assert (error.kind, error.retryable) == ("auth", False)
    assert 'provider "local"' in error.message
    assert key not in error.message


# --- certificates and proxies ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("authority")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(["openssl", *words.split(), *names], cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "key.pem").read_text() + (folder / "certificate.pem").read_text())
    return both


@pytest.fixture
def secure_address(authority: Path, api: str) -> Iterator[str]:
    """A server with that certificate that says hi."""

    class Hi(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.wfile.write(head() + answer(api, "hi"))

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # a client that does not trust it leaves in the handshake

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    server = Quiet(("127.0.0.1", 0), Hi)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_certificate_of_nobody_is_refused_with_the_way_out(api: str, secure_address: str) -> None:
    error = await fail(provider_at(api, secure_address))
    assert (error.kind, error.retryable) == ("network", False)
    assert "SSL_CERT_FILE" in error.message
    assert secure_address in error.message


async def test_a_private_authority_in_ssl_cert_file_is_trusted(
    api: str, secure_address: str, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    provider = provider_at(api, secure_address)
    assert (await read(provider)).text == "hi"
    await provider.aclose()


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
async def test_a_private_authority_that_other_programs_are_told_of_is_trusted_beside_the_usual_ones(
    api: str,
    secure_address: str,
    authority: Path,
    variable: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = httpx.create_ssl_context().cert_store_stats()["x509"]
    monkeypatch.setenv(variable, str(authority))
    settings: list[dict[str, Any]] = []

    def open_client(**given: Any) -> httpx.AsyncClient:
        settings.append(given)
        return httpx.AsyncClient(**given)

    provider = provider_at(api, secure_address, open_client=open_client)
    assert (await read(provider)).text == "hi"
    await provider.aclose()
    assert settings[0]["verify"].cert_store_stats()["x509"] == usual + 1


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
async def test_a_bundle_that_is_not_there_is_one_clear_error(
    api: str, variable: str, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURL_CA_BUNDLE", str(authority))
    monkeypatch.setenv(variable, "/no/such/bundle.pem")
    error = await fail(provider_at(api, "https://127.0.0.1:9"))
    assert (error.kind, error.retryable) == ("network", False)
    assert f"cannot read the certificates that {variable} names (/no/such/bundle.pem)" in error.message


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_server_on_this_machine_is_never_asked_through_a_proxy(
    api: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hi = Plan(head() + answer(api, "hi"))
    with RudeServer(Plan(head("502 Bad Gateway"))) as proxy, RudeServer(hi) as server:
        monkeypatch.setenv(variable, proxy.address)
        provider = provider_at(api, server.address)
        assert (await read(provider)).text == "hi"
        await provider.aclose()
        assert proxy.connections == 0


async def test_another_host_is_asked_through_the_proxy_of_the_environment(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RudeServer(Plan(head() + answer(api, "hi"))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        provider = provider_at(api, "http://models.invalid/v1")
        assert (await read(provider)).text == "hi"
        await provider.aclose()
        assert proxy.requests[0].startswith(b"POST http://models.invalid/v1")


class Socks(socketserver.BaseRequestHandler):
    """A SOCKS 5 proxy (RFC 1928) without a password, which leads wherever it is asked to the same answer."""

    says = b""
    led_to: ClassVar[list[bytes]] = []

    def handle(self) -> None:
        stream = self.request.makefile("rwb", buffering=0)
        stream.read(stream.read(2)[1])  # the ways to log in that it offers
        stream.write(b"\x05\x00")
        assert stream.read(4) == b"\x05\x01\x00\x03", "a connection to a name, which the proxy looks up"
        self.led_to.append(stream.read(stream.read(1)[0]))
        stream.read(2)
        stream.write(b"\x05\x00\x00\x01" + bytes(6))
        self.request.recv(1 << 16)
        stream.write(self.says)


async def test_another_host_is_asked_through_a_socks_proxy(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Socks, "says", head() + answer(api, "hi"))
    monkeypatch.setattr(Socks, "led_to", [])
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Socks) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{proxy.server_address[1]}")
        provider = provider_at(api, "http://models.invalid/v1")
        try:
            assert (await read(provider)).text == "hi"
        finally:
            await provider.aclose()
            proxy.shutdown()
            thread.join()
    assert Socks.led_to == [b"models.invalid"]
