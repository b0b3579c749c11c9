import gzip
import shutil
import socket
import ssl
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from fakes.rude_server import Plan, RudeServer, head
from fakes.web_server import HOST, WebServer, dripping, moved, page, web_for

from agentd.workspace import web as web_module
from agentd.workspace.web import MAX_BYTES, Moved, Page, Web
from agentd.workspace.web_address import WebError, is_public, parse


async def fetched(server: WebServer, path: str = "/", web: Web | None = None) -> Page | Moved:
    return await (web or web_for()).fetch(parse(server.url(path)))


async def got(server: WebServer, path: str = "/") -> Page:
    found = await fetched(server, path)
    assert isinstance(found, Page)
    return found


async def test_a_page_is_fetched_without_anything_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer({"/a?b": page("text/plain", b"hello", set_cookie="id=1"), "/c": page("", b"x")}) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        web = web_for()
        found = await web.fetch(parse(server.url("/a?b")))
        assert found == Page(server.url("/a?b"), 200, "text/plain", b"hello", truncated=False)
        await web.fetch(parse(server.url("/c")))
    names = {line.partition(":")[0].lower() for line in server.requests[1].splitlines()[1:] if line}
    assert names <= {"host", "user-agent", "accept", "accept-encoding"}
    assert f"Host: {HOST}" in server.requests[0]
    assert "User-Agent: agentd/" in server.requests[0]


# --- where it may lead ----------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"])
async def test_a_name_that_leads_to_a_closed_address_is_refused_and_nothing_connects(address: str) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["8.8.8.8", address]

    with (
        WebServer({"/": page("text/plain", b"secret")}) as server,
        pytest.raises(WebError, match="not a public address"),
    ):
        await Web(resolve).fetch(parse(server.url("/")))
    assert server.requests == []


async def test_the_system_s_own_look_up_is_judged_too() -> None:
    with WebServer({"/": page("text/plain", b"secret")}) as server:
        url = server.url("/", host=socket.gethostname())
        try:
            local = {str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), 80)}
        except socket.gaierror:
            pytest.skip("this machine's name is not known")
        if any(map(is_public, local)):
            pytest.skip("this machine's name leads to a public address")
        with pytest.raises(WebError, match="not a public address"):
            await Web().fetch(parse(url))
    assert server.requests == []


async def test_a_name_that_answers_otherwise_the_second_time_gains_nothing() -> None:
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with WebServer({"/": page("text/plain", b"good")}) as server:
        web = Web(rebinding, is_allowed=lambda address: address == "127.0.0.1")
        assert await fetched(server, web=web) == Page(server.url(), 200, "text/plain", b"good", False)
        assert asked == [HOST]  # looked up once: what was checked is what was connected to
        with pytest.raises(WebError, match=r"leads to 127\.0\.0\.2"):
            await fetched(server, web=web)


async def test_each_redirect_is_looked_up_and_judged_anew() -> None:
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    answers = {"/": moved("/next"), "/next": page("text/plain", b"secret")}
    with WebServer(answers) as server, pytest.raises(WebError, match=r"leads to 10\.0\.0\.1"):
        await fetched(server, web=Web(rebinding, is_allowed=lambda address: address == "127.0.0.1"))
    assert [request.split()[1] for request in server.requests] == ["/"]


async def test_redirects_within_a_place_are_followed_but_not_for_ever() -> None:
    hops = {f"/{number}": moved(f"/{number + 1}") for number in range(5)}
    with WebServer({**hops, "/5": page("text/plain", b"there"), "/loop": moved("loop")}) as server:
        assert (await got(server, "/0")).data == b"there"
        server.answers["/5"] = moved("/6")
        with pytest.raises(WebError, match="more than 5 times"):
            await got(server, "/0")
        before = len(server.requests)
        with pytest.raises(WebError, match="more than 5 times"):
            await got(server, "/loop")
        assert len(server.requests) - before == 6


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_place_is_told_and_not_followed(status: int) -> None:
    looked_up: list[str] = []
    with WebServer({"/": moved("https://other.example/x#y", status)}) as server:
        found = await fetched(server, web=web_for(looked_up=looked_up))
        assert found == Moved(status, "https://other.example/x")
        server.answers["/"] = moved(server.url("/").replace("http://", "https://"), status)
        assert isinstance(await fetched(server), Moved)  # another port is another place too
    assert looked_up == [HOST]


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "http://u:p@site.example/",
        "file:///etc/passwd",
        "http://[::1]/",
        "http://2130706433/",
    ],
)
async def test_a_redirect_to_what_cannot_be_fetched_is_an_error(location: str) -> None:
    answers = {"/": moved(location)}
    with WebServer(answers) as server, pytest.raises(WebError, match="redirects to what cannot be fetched"):
        await fetched(server)


async def test_a_host_that_is_not_known_is_an_error() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(WebError, match="not known"):
        await Web(unknown).fetch(parse("http://nowhere.example/"))


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    with WebServer({"/": page("text/plain", b"there")}) as server:
        web = Web(web_for(names={HOST: ["127.0.0.9", "127.0.0.1"]})._resolve, lambda address: True)
        found = await fetched(server, web=web)
        assert isinstance(found, Page)
        assert found.data == b"there"


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A folder with a certificate and its key for the host and for another."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    for name in (HOST, "other.example"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{tmp_path}/{name}.key",
             "-out", f"{tmp_path}/{name}.pem", "-days", "2", "-subj", f"/CN={name}",
             "-addext", f"subjectAltName=DNS:{name}"],
            check=True, capture_output=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    return tmp_path


async def test_a_certificate_has_to_be_of_the_host_that_was_asked_for(certificates: Path) -> None:
    trusting = ssl.create_default_context()
    for name, is_good in ((HOST, True), ("other.example", False)):
        trusting.load_verify_locations(certificates / f"{name}.pem")
        server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_side.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
        with WebServer({"/": page("text/plain", b"there")}, tls=server_side) as server:
            with pytest.raises(WebError, match="certificate verify failed"):
                await fetched(server)  # nobody the system knows
            if is_good:
                assert isinstance(await fetched(server, web=web_for(tls=trusting)), Page)
            else:
                with pytest.raises(WebError, match="certificate verify failed"):
                    await fetched(server, web=web_for(tls=trusting))


# --- how much, and how long -----------------------------------------------------------------------


async def test_a_large_body_is_cut() -> None:
    answers = {
        "/at": page("text/plain", b"a" * MAX_BYTES),
        "/over": page("text/plain", b"a" * (MAX_BYTES + 1)),
    }
    with WebServer(answers) as server:
        at, over = await got(server, "/at"), await got(server, "/over")
    assert (len(at.data), at.truncated) == (MAX_BYTES, False)
    assert (len(over.data), over.truncated) == (MAX_BYTES, True)


async def test_a_body_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer({"/": dripping(60)}) as server:
        monkeypatch.setattr(web_module, "MAX_BYTES", 3)
        found = await got(server)
    assert found.truncated
    assert found.data == b"..."


async def test_what_is_packed_is_unpacked_and_a_bomb_does_not_go_off() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(512)) + bomb.flush()
    answers = {
        "/": page("text/plain", gzip.compress(b"hello"), content_encoding="gzip"),
        "/bomb": page("text/plain", data, content_encoding="x-gzip"),
        "/double": page("text/plain", gzip.compress(data), content_encoding="gzip, gzip"),
        "/br": page("text/plain", b"x", content_encoding="br"),
        "/broken": page("text/plain", b"no gzip", content_encoding="gzip"),
        "/empty": page("text/plain", gzip.compress(b"") * 300_000, content_encoding="gzip"),
    }
    with WebServer(answers) as server:
        assert (await got(server)).data == b"hello"
        found = await got(server, "/bomb")
        assert (len(found.data), found.truncated) == (MAX_BYTES, True)
        for path in ("/double", "/br"):
            with pytest.raises(WebError, match="not asked for"):
                await got(server, path)
        with pytest.raises(WebError, match="cannot be unpacked"):
            await got(server, "/broken")
        assert len((await got(server, "/empty")).data) == 0


def test_no_more_of_a_bomb_is_unpacked_than_is_kept() -> None:
    bomb = gzip.compress(bytes(64 * MAX_BYTES))
    unpack = web_module._unpacker("gzip", parse("https://site.example/"))
    assert [len(piece) for piece in unpack(bomb)] == [MAX_BYTES + 1]


async def test_the_whole_call_has_one_deadline() -> None:
    with WebServer({"/": dripping(60), "/next": moved("/")}) as server:
        before = anyio.current_time()
        with pytest.raises(WebError, match="took longer than"):
            await web_for().fetch(parse(server.url("/next")), seconds=0.5)
        assert anyio.current_time() - before < 10


@pytest.mark.parametrize(
    "plan",
    [
        Plan(b""),
        Plan(b"junk\r\n\r\n"),
        Plan(head("200 OK", "content-length: 100") + b"short"),
        Plan(head("200 OK", "transfer-encoding: chunked") + b"5\r\nab"),
        Plan(head("200 OK", "x: " + "y" * 200_000) + b"body"),
        Plan(b"HTTP/1.1 100 Continue\r\n\r\n" * 3, end="reset"),
    ],
    ids=["nothing", "junk", "short", "half a chunk", "large head", "reset"],
)
async def test_a_broken_answer_is_an_error_with_a_reason(plan: Plan) -> None:
    with RudeServer(plan) as server, pytest.raises(WebError, match=r"could not be fetched: .+"):
        await web_for().fetch(parse(server.address.replace("127.0.0.1", HOST)))


async def test_a_closed_port_is_an_error() -> None:
    with WebServer({}) as server:
        url = server.url()
    with pytest.raises(WebError, match="could not be fetched"):
        await web_for().fetch(parse(url))


async def test_a_fetch_can_be_cancelled_at_any_time() -> None:
    with WebServer({"/": dripping(60)}) as server:
        with anyio.move_on_after(0.3) as scope:
            await fetched(server)
        assert scope.cancelled_caught
