"""What `agentd acp` answers to `initialize`, as plain data.

Standard library only: `boot.py` answers from here before anything else is imported. What is not announced
here does not work; tests hold it against what is served.
"""

from typing import Any

from agentd import __version__

PROTOCOL_VERSION = 1
MAX_VERSION = 65535


def initialize_result() -> dict[str, Any]:
    """The answer, which is the same for every client: one that speaks another version goes away or adapts.

    No way to authenticate is announced, as there is none: keys come from the environment.
    """
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {"list": {}, "delete": {}, "resume": {}, "close": {}},
        },
        "agentInfo": {"name": "agentd", "title": "agentd", "version": __version__},
        "authMethods": [],
        "_meta": {"steering": {"supported": True}},
    }


def is_plain(params: dict[str, Any]) -> bool:
    """Whether the params of an `initialize` are right beyond doubt."""
    version = params.get("protocolVersion")
    capabilities = params.get("clientCapabilities")
    return (
        type(version) is int
        and 0 <= version <= MAX_VERSION
        and (capabilities is None or isinstance(capabilities, dict))
    )
