"""Fetching from the web on the wire: what is refused, and what is asked."""

import pytest
from wire.harness import Daemon
from wire.home import Home
from wire.questions import asked_nothing, asking, option, question, said, tool_result
from wire.scripts import tool


def fetch(url: str) -> dict[str, object]:
    return tool("web_fetch", {"url": url}, "call-1")


@pytest.mark.parametrize("mode", ["ask", "edit", "full"])
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://localhost/", "file:///etc/passwd", "http://u:p@e.org/"]
)
def test_what_cannot_be_fetched_is_refused_before_anybody_is_asked(
    daemon: Daemon, shared_home: Home, mode: str, url: str
) -> None:
    chat, prompt = asking(daemon, shared_home, fetch(url), mode)
    assert chat.result(prompt)["text"] == "done"
    assert tool_result(chat)["isError"] is True
    assert asked_nothing(chat)


def test_the_question_names_the_url_and_always_is_for_its_host(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, fetch("https://site.invalid:443/a?b#c"))
    asked = question(chat)
    assert asked["params"]["kind"] == "fetch"
    assert asked["params"]["title"] == "Fetch https://site.invalid:443/a?b#c"
    assert asked["params"]["subject"] == {"type": "fetch", "url": "https://site.invalid/a?b"}
    rules = [each["rule"] for each in asked["params"]["options"] if "rule" in each]
    assert set(rules) == {"fetching anything from https://site.invalid"}, "for the session, and for good"
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(prompt)
    assert tool_result(chat)["isError"] is True


def test_plan_fetches_nothing_and_asks_nothing(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, fetch("https://site.invalid/"), "plan")
    chat.result(prompt)
    assert tool_result(chat)["isError"] is True
    assert "plan" in said(chat)
    assert asked_nothing(chat)
