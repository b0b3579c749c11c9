"""Signatures that a server does not take do not end a session: the request goes out again without them."""

from dataclasses import replace
from typing import Any

import pytest
from conversation import HELLO, assistant, call, fail, read, request, result, thinking, user
from fakes.gemini_faults import UNSIGNED
from fakes.gemini_server import GeminiServer
from fakes.model_server import Recorded, json_answer

from agentd.providers.base import Model, ModelRequest
from agentd.providers.gemini import Gemini

PRO = Model("local", "gemini-3-pro", reasoning=True)
OLD = Model("local", "gemini-2.5-pro", reasoning=True)
NAMELESS = Model("local", "our-own", reasoning=True)
STALE = {
    "parts": [
        {"chars": 2, "thought": True, "thoughtSignature": "c3RhbGU="},
        {"chars": 3, "thoughtSignature": "c3RhbGU="},
        {"call": True, "id": "c1", "thoughtSignature": "c3RhbGU="},
    ]
}
"""What another key has signed."""


def resumed(model: Model, **kept: Any) -> ModelRequest:
    said = assistant(thinking("hm"), "So:", call("c1"), model=model.name, **kept)
    return request(user("Hi"), said, result("c1", "x"), model=model)


def provider_of(server: GeminiServer) -> Gemini:
    return Gemini("local", server.base_url, "sk-key")


def google(message: str) -> Any:
    return json_answer({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}, 400)


@pytest.mark.parametrize("model", [PRO, OLD])
async def test_signatures_of_another_key_are_left_out_once_they_are_refused(
    gemini_server: GeminiServer, model: Model
) -> None:
    gemini_server.push(HELLO)
    provider = provider_of(gemini_server)
    assert (await read(provider, resumed(model, provider_data=STALE))).text == "Hello, world"
    await provider.aclose()
    assert gemini_server.faults == ["Corrupted thought signature."]
    said = gemini_server.requests[-1].body["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in said] == [None, UNSIGNED if model is PRO else None]
    assert said[0] == {"text": "So:"}


async def test_what_vertex_says_of_a_bad_signature_is_heard_too(gemini_server: GeminiServer) -> None:
    words = "Unable to submit request because Thought signature is not valid.. Learn more: https://x.invalid"
    gemini_server.push(google(words), HELLO)
    provider = provider_of(gemini_server)
    assert (await read(provider, resumed(PRO))).text == "Hello, world"
    await provider.aclose()


async def test_a_refused_signature_has_nothing_to_do_with_how_much_a_model_thinks(
    gemini_server: GeminiServer,
) -> None:
    words = "Thought signature is not valid. Learn more: https://x.invalid/thinking#signatures"
    gemini_server.push(google(words), HELLO)
    provider = provider_of(gemini_server)
    asked = resumed(PRO)
    assert (await read(provider, replace(asked, effort="high"))).text == "Hello, world"
    await provider.aclose()
    first, second = (each.body["generationConfig"]["thinkingConfig"] for each in gemini_server.requests)
    assert first == second


async def test_a_model_whose_name_does_not_tell_that_it_wants_signatures_gets_them() -> None:
    def strict(asked: Recorded) -> Any:
        calls = [
            part for content in asked.body["contents"] for part in content["parts"] if "functionCall" in part
        ]
        missing = "Function call is missing a thought_signature in functionCall parts. This is required."
        return HELLO if all("thoughtSignature" in part for part in calls) else google(missing)

    with GeminiServer([strict], strict=False, repeat=True) as server:
        provider = provider_of(server)
        assert (await read(provider, resumed(NAMELESS))).text == "Hello, world"
        await provider.aclose()
    assert len(server.requests) == 2


@pytest.mark.parametrize("times", ["for a bad one", "for none", "for both in turn"])
async def test_a_server_that_takes_no_form_of_it_is_not_asked_for_ever(times: str) -> None:
    bad, none = google("Corrupted thought signature."), google("Text part is missing a thought_signature")
    answers = {"for a bad one": [bad], "for none": [none], "for both in turn": [bad, none, bad]}[times]
    with GeminiServer(answers, strict=False, repeat=True) as server:
        _, error = await fail(provider_of(server), resumed(PRO, provider_data=STALE))
    assert (error.kind, error.status) == ("bad_request", 400)
    assert len(server.requests) <= 3
