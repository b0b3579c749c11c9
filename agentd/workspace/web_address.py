"""Addresses on the web: what may be asked for, and where it may lead.

A model asks for what a page told it to ask for. So nothing may lead to this machine or its networks, where
what is asked for by a local program is trusted: a database without a password, a cloud's metadata with keys.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_LENGTH = 2_000
_NOT_IN_URLS = re.compile(r"[\x00-\x20\x7f\\]")

# What the IANA special-purpose registries keep from the public Internet, and what carries IPv4 inside.
_CLOSED_IPV4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
            "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip
_OPEN_IPV6 = ipaddress.IPv6Network(
    "2000::/3"
)  # all that is assigned to the public; not ::ffff:0:0/96, 64:ff9b::/96
_CLOSED_IPV6 = tuple(
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3ffe::/16", "3fff::/20"))
)


class WebError(Exception):
    """What cannot be fetched, said for the model: the address, the reason, the way out."""


@dataclass(frozen=True)
class WebAddress:
    """An address that may be asked for. `host` is ASCII, without brackets."""

    url: str
    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        """Scheme, host and port: what a permission is for."""
        return origin_of(self.url)


def parse(url: str) -> WebAddress:
    """The address that a URL names, normalized, without its fragment. Looks nothing up.

    Raises WebError when it is no http or https URL, carries a user name or password, or names an address of
    this machine or its networks outright.
    """
    import httpx  # not before the first fetch

    if len(url) > _MAX_LENGTH:
        raise WebError(f"The URL is {len(url)} characters long; at most {_MAX_LENGTH} can be fetched.")
    if _NOT_IN_URLS.search(url):
        raise WebError("The URL holds a space, a control character or a backslash. Percent-encode them.")
    try:
        parsed = httpx.URL(url).copy_with(fragment=None)
        host = parsed.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise WebError(f"That is not a valid URL: {error}.") from error
    if parsed.scheme not in _DEFAULT_PORTS:
        raise WebError("Only http:// and https:// URLs can be fetched. For a file, use read_file.")
    if parsed.userinfo or "@" in parsed.netloc.decode("ascii"):
        raise WebError("The URL carries a user name or a password, which are never sent. Leave them out.")
    if not host:
        raise WebError("The URL names no host.")
    port = _DEFAULT_PORTS[parsed.scheme] if parsed.port is None else parsed.port
    if not 0 < port < 65536:
        raise WebError(f"The URL names port {port}, which no server can have.")
    literal = _literal(host)
    if literal is not None and not is_public(literal):
        raise closed(host, literal)
    if host.rstrip(".") == "localhost" or host.rstrip(".").endswith(".localhost"):
        raise closed(host, "this machine")
    return WebAddress(str(parsed), parsed.scheme, host, port)


def origin_of(url: str) -> str:
    """`https://example.org` of a normalized URL, with the port where it is not the usual one."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    shown = "" if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f":{port}"
    return f"{parts.scheme}://{host}{shown}"


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public Internet, and not IPv4 in disguise."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # with a zone (fe80::1%eth0), or none
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _CLOSED_IPV4)
    return (
        parsed.scope_id is None
        and parsed in _OPEN_IPV6
        and not any(parsed in network for network in _CLOSED_IPV6)
    )


def closed(host: str, address: str) -> WebError:
    """The refusal of what is not public."""
    where = "" if address == host else f" leads to {address}, which"
    return WebError(
        f"{host}{where} is not a public address. Only the public Internet can be fetched; for a server on "
        "this machine, run curl with bash."
    )


def _literal(host: str) -> str | None:
    """The IP address that a host is written as, also in a way that only the system takes (127.1, 0x7f1)."""
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        pass
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError:
        return None
