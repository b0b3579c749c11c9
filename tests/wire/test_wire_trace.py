"""`$/setTrace`: the client hears of messages and answers, as much as it asked for, and no secret with it."""

from typing import Any

import pytest
from wire.harness import Daemon
from wire.home import Home

KEY = "sk-canary-0123456789"


def traced(daemon: Daemon) -> list[dict[str, Any]]:
    """What has been traced so far."""
    assert daemon.serves()
    return [m["params"] for m in daemon.messages if m.get("method") == "$/logTrace"]


def told_of(daemon: Daemon, method: str) -> list[dict[str, Any]]:
    return [params for params in traced(daemon) if method in params["message"]]


def test_messages_and_answers_are_traced_by_method_and_id(home: Home) -> None:
    daemon = home.start()
    daemon.notify("$/setTrace", {"value": "messages"})
    number = daemon.request("agentd/session/list", {"limit": 3})
    daemon.response(number)
    daemon.refused("agentd/session/get", {"sessionId": "s_none"})
    name = f"agentd/session/list ({number})"
    assert told_of(daemon, "session/list") == [
        {"message": f"received {name}"},
        {"message": f"answered {name}"},
    ]
    assert "sessionNotFound" in told_of(daemon, "session/get")[-1]["message"]


def test_verbose_adds_the_params_and_off_ends_it(home: Home) -> None:
    daemon = home.start()
    daemon.notify("$/setTrace", {"value": "verbose"})
    daemon.call("agentd/session/list", {"limit": 3})
    assert [params.get("verbose") for params in told_of(daemon, "session/list")] == ['{"limit":3}', None]
    daemon.notify("$/setTrace", {"value": "off"})
    before = len(traced(daemon))
    daemon.call("agentd/session/list", {"limit": 4})
    assert len(traced(daemon)) == before


@pytest.mark.parametrize(
    ("value", "is_traced"), [("messages", True), ("compact", True), ("loud", False), (5, False)]
)
def test_initialize_may_ask_for_it_too(home: Home, value: object, is_traced: bool) -> None:
    daemon = home.spawn()
    daemon.call("initialize", {"capabilities": {}, "trace": value})
    daemon.notify("initialized", {})
    daemon.call("agentd/session/list")
    assert bool(told_of(daemon, "session/list")) is is_traced


def test_no_key_is_traced(home: Home) -> None:
    daemon = home.start()
    daemon.notify("$/setTrace", {"value": "verbose"})
    daemon.refused("agentd/credentials/set", {"secret": [KEY]})
    daemon.call("agentd/credentials/set", {"provider": "anthropic", "secret": KEY})
    daemon.refused("agentd/session/get", {"sessionId": KEY})
    assert len(told_of(daemon, "credentials/set")) == 4
    assert KEY not in str(traced(daemon))


@pytest.mark.parametrize("depth", [3, 300, 511])
def test_a_request_is_answered_however_deep_its_traced_params_are_nested(home: Home, depth: int) -> None:
    daemon = home.start()
    daemon.notify("$/setTrace", {"value": "verbose"})
    params = b'{"x":%b%b}' % (b"[" * (depth - 2), b"]" * (depth - 2))
    daemon.send(b'{"jsonrpc":"2.0","id":"deep","method":"agentd/status","params":%b}' % params)
    assert "result" in daemon.response("deep")
    assert told_of(daemon, "agentd/status ('deep')")[0]["verbose"].startswith('{"x":[')


def test_of_long_params_the_beginning_is_traced(home: Home) -> None:
    daemon = home.start()
    daemon.notify("$/setTrace", {"value": "verbose"})
    daemon.call("agentd/status", {"x": ["word"] * 5000})
    shown = next(params["verbose"] for params in told_of(daemon, "agentd/status") if "verbose" in params)
    assert shown.startswith('{"x":["word","word",')
    assert len(shown) == 1000
