import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.workspace.web_address import WebError, is_public, origin_of, parse

CLOSED = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.255.255.255", "169.254.169.254",
    "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1",
    "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "3fff::1", "5f00::1", "4000::1",
    "", "localhost", "1.2.3",
]  # fmt: skip
OPEN = ["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "2606:4700::1111",
        "2a00:1450:4001::1", "2400:cb00::1"]  # fmt: skip


@pytest.mark.parametrize("address", CLOSED)
def test_what_is_not_of_the_public_internet_is_closed(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", OPEN)
def test_the_public_internet_is_open(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_what_python_says_is_not_global_is_never_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    assert address.is_global or not is_public(str(address))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "Only http"),
        ("ftp://example.org/", "Only http"),
        ("javascript:alert(1)", "Only http"),
        ("//example.org/", "Only http"),
        ("example.org", "Only http"),
        ("", "Only http"),
        ("http://", "no host"),
        ("http:///path", "no host"),
        ("https://user@example.org/", "user name"),
        ("https://user:pass@example.org/", "user name"),
        ("https://example.org\\@evil.test/", "backslash"),
        ("https://example.org/a b", "space"),
        ("https://example.org/\r\nX: y", "space"),
        ("https://exa\x00mple.org/", "control character"),
        ("https://example.org:port/", "valid URL"),
        ("https://example.org:99999/", "port"),
        ("https://example.org:0/", "port"),
        ("https://[::1/", "valid URL"),
        ("https://xn--\u00fc.org/", "valid URL"),
        ("https://example.org/" + "a" * 2000, "characters long"),
    ],
)
def test_a_bad_url_is_refused_with_its_reason(url: str, reason: str) -> None:
    with pytest.raises(WebError, match=reason):
        parse(url)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0", "10.0.0.1", "169.254.169.254", "[::1]",
     "[::ffff:127.0.0.1]", "[64:ff9b::a00:1]", "[fd00::1]", "localhost", "LOCALHOST", "localhost.",
     "a.localhost"],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused_outright(host: str) -> None:
    with pytest.raises(WebError, match="not a public address"):
        parse(f"http://{host}/")


@pytest.mark.parametrize(
    ("url", "normal", "origin"),
    [
        ("HTTPS://Example.ORG", "https://example.org", "https://example.org"),
        ("https://example.org:443/a?b=c#d", "https://example.org/a?b=c", "https://example.org"),
        ("http://example.org:8080/", "http://example.org:8080/", "http://example.org:8080"),
        ("http://8.8.8.8/", "http://8.8.8.8/", "http://8.8.8.8"),
        ("http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81"),
        ("https://b\u00fccher.example/\u00fc", "https://xn--bcher-kva.example/%C3%BC", "https://xn--bcher-kva.example"),
    ],
)  # fmt: skip
def test_a_url_is_normalized(url: str, normal: str, origin: str) -> None:
    address = parse(url)
    assert (address.url, address.origin, origin_of(normal)) == (normal, origin, origin)
