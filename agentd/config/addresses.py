"""Addresses of model servers: what is wrong with one, and what is left out of one that is right."""

from urllib.parse import SplitResult, parse_qsl, urlsplit, urlunsplit

from agentd.config.secrets import looks_secret

HOLDS_CREDENTIALS = "holds credentials"
_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


def flaw(address: str) -> str | None:
    """What is wrong with an address. The words never show it: it may hold a key."""
    try:
        parts = urlsplit(address)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return "is no valid address"
    if "@" in parts.netloc or any(looks_secret(name) for name, _ in parse_qsl(parts.query)):
        return HOLDS_CREDENTIALS
    if parts.scheme not in ("http", "https"):
        return "has to begin with http:// or https://"
    if not parts.hostname or not has_port or not address.isprintable() or " " in address:
        return "is no valid address"
    return None


def completed(address: str, usual_path: str) -> str:
    """The address of a known kind of server: one that names a host only gets the path that is usual there."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") or usual_path))


def is_own(address: str | None, own: str | None) -> bool:
    """Whether an address is at the host of a provider's own."""
    return address is not None and own is not None and urlsplit(address).hostname == urlsplit(own).hostname


def from_host(value: str, own: str) -> str:
    """The address that `host`, `host:port` or `:port` means, as Ollama's variable has it; a whole address
    stays. What is missing comes from the server's own address. Raises `ValueError` for a port that is none.
    """
    if "://" in value:
        return value
    default = urlsplit(own)
    parts = urlsplit(f"{default.scheme}://{value}")
    host = _ANY_HOST.get(parts.hostname or "", parts.hostname or default.hostname or "")
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    where = SplitResult(default.scheme, f"{host}:{parts.port or default.port}", parts.path, parts.query, "")
    return value if "@" in value else urlunsplit(where)
