"""Images of prompts and files, shown to a strict server of every wire API as it takes them."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.every_api import SERVERS, Stage, configure
from fakes.image_faults import images_in
from fakes.model_server import ModelServer
from fakes.pictures import (
    SECRET,
    TYPES,
    block,
    claiming,
    moving,
    noise,
    opened,
    picture,
    sideways,
    telling,
)
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.runs import of_type, run_events
from wire.scripts import reply, tool

from agentd.agent.request import NO_IMAGE

SIDES = {"openai-chat": 2048, "openai-responses": 2048, "anthropic": 2000, "gemini": 3072}


def seen(stage: Stage, request: int = -1) -> list[tuple[str, bytes]]:
    """Type and content of the images in a request."""
    return images_in(stage.server.requests[request].body)


def read(*paths: str) -> Json:
    """A response that reads files."""
    return reply(*(tool("read_file", {"file_path": path}, f"c-{path}") for path in paths))


# --- prompts ----------------------------------------------------------------------------------------


def test_a_large_image_of_a_prompt_is_shown_as_large_as_helps_and_kept_as_it_was_sent(stage: Stage) -> None:
    chat = stage.chat(reply("I see"))
    sent = block(picture(9000, 300))
    assert chat.run([{"type": "text", "text": "Look"}, sent])["text"] == "I see"
    ((kind, data),) = seen(stage)
    assert (kind, opened(data).width) == ("image/png", SIDES[stage.api])
    assert chat.get()["messages"][0]["content"][1] == sent
    stage.assert_goes_on(chat)
    assert seen(stage) == [(kind, data)]


def test_an_image_is_what_its_bytes_are_whatever_it_is_called(stage: Stage) -> None:
    chat = stage.chat(reply("I see"))
    chat.run([block(picture(form="JPEG"), "image/png"), block(picture(), "image/x-whatever")])
    assert [kind for kind, _ in seen(stage)] == ["image/jpeg", "image/png"]
    stage.assert_goes_on(chat)


def test_a_moving_image_is_shown_as_the_server_takes_it(stage: Stage) -> None:
    chat = stage.chat(reply("I see"))
    sent = moving()
    chat.run([block(sent, "image/gif")])
    ((kind, data),) = seen(stage)
    assert (kind == "image/gif") == (stage.api == "anthropic")
    assert data == sent or getattr(opened(data), "n_frames", 1) == 1
    stage.assert_goes_on(chat)


@pytest.mark.parametrize("form", sorted(TYPES))
def test_nobody_is_told_where_and_by_whom_an_image_was_made(
    all_stages: dict[str, Stage], form: str, stage: Stage
) -> None:
    chat = stage.chat(reply("I see"))
    chat.run([block(telling(form))])
    ((_, data),) = seen(stage)
    assert SECRET.encode() not in data
    stage.assert_goes_on(chat)


def test_an_image_that_lies_on_its_side_is_shown_upright(stage: Stage) -> None:
    chat = stage.chat(reply("I see"))
    chat.run([block(sideways(), "image/jpeg")])
    assert opened(seen(stage)[0][1]).size == (20, 40)
    stage.assert_goes_on(chat)


def test_an_image_of_too_many_bytes_is_made_smaller(all_stages: dict[str, Stage]) -> None:
    stage = all_stages["anthropic"]
    stage.server.start_anew()
    chat = stage.chat(reply("I see"))
    sent = noise(1500, 1500)
    assert len(sent) > 5 * 2**20
    chat.run([block(sent)])
    assert len(base64.b64encode(seen(stage)[0][1])) <= 5 * 2**20
    stage.assert_goes_on(chat)


def test_many_large_images_are_no_more_than_a_server_takes(all_stages: dict[str, Stage]) -> None:
    """Anthropic's server takes no image beyond 2,000 pixels where there are more than 20."""
    stage = all_stages["anthropic"]
    stage.server.start_anew()
    chat = stage.chat(reply("I see"), reply("more"))
    chat.run([block(picture(2400 + n, 10)) for n in range(12)])
    before = seen(stage)
    chat.run([block(picture(2500 + n, 10)) for n in range(12)])
    assert len(seen(stage)) == 24
    assert seen(stage)[:12] == before
    stage.assert_goes_on(chat)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (block(b"%PDF-1.7 and so on"), "is no PNG, JPEG, GIF or WebP image"),
        (block(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"), "is no PNG"),
        (block(picture()[:-8]), "cut off"),
        (block(picture(form="JPEG")[:200], "image/jpeg"), "cut off"),
        (block(claiming(60_000, 60_000)), "60000 x 60000 pixels"),
        (block(claiming(0, 5)), "no size"),
        (block(picture() + bytes(21 * 2**20)), "larger than 20 MB"),
    ],
    ids=["pdf", "svg", "cut", "cut-jpeg", "bomb", "empty", "large"],
)
def test_what_cannot_be_shown_is_refused_by_its_place_and_the_session_goes_on(
    all_stages: dict[str, Stage], sent: Json, why: str
) -> None:
    stage = all_stages["openai-chat"]
    stage.server.start_anew()
    chat = stage.chat()
    prompt = [{"type": "text", "text": "Look"}, block(picture()), sent]
    error = stage.daemon.refused("agentd/prompt", chat.prompt_params(prompt))
    assert error["data"]["kind"] == "invalidParams"
    assert error["message"].startswith("/prompt/2/data: ")
    assert why in error["message"]
    assert chat.get()["messages"] == []
    stage.assert_goes_on(chat)


def test_more_images_than_a_model_takes_at_once_are_refused(all_stages: dict[str, Stage]) -> None:
    stage = all_stages["anthropic"]
    stage.server.start_anew()
    chat = stage.chat()
    prompt = [block(picture())] * 101
    error = stage.daemon.refused("agentd/prompt", chat.prompt_params(prompt))
    assert error["message"] == f'/prompt/100: model "{stage.model}" takes at most 100 images at once'


def test_an_image_that_only_its_pixels_show_to_be_broken_is_a_word_and_no_end(stage: Stage) -> None:
    chat = stage.chat(reply("I cannot see it"))
    assert chat.run([block(claiming(9000, 9000)), {"type": "text", "text": "Look"}])["stopReason"] == "stop"
    assert seen(stage) == []
    assert "There was an image here, which cannot be shown: it could not be decoded" in said(stage)
    stage.assert_goes_on(chat)
    (notice,) = [e["event"] for e in chat.notifications() if e["event"]["type"] == "notice"]
    assert notice["severity"] == "warning"
    assert f'not shown to the model "{stage.model}": it could not be decoded' in notice["message"]


def test_a_cancel_while_an_image_is_made_smaller_counts_at_once(all_stages: dict[str, Stage]) -> None:
    stage = all_stages["openai-chat"]
    stage.server.start_anew()
    chat = stage.chat()
    request = chat.start([block(noise(2500, 2500))])
    chat.event("message_end")
    assert chat.cancel()["state"] == "cancelled"
    assert chat.result(request)["stopReason"] == "aborted"
    assert stage.server.requests == []
    stage.assert_goes_on(chat)
    assert len(seen(stage)) == 1


def said(stage: Stage) -> str:
    """The last request as text."""
    return json.dumps(stage.server.requests[-1].body)


# --- files ------------------------------------------------------------------------------------------


def test_an_image_file_is_shown_by_what_is_in_it_and_the_session_keeps_it_as_shown(stage: Stage) -> None:
    chat = stage.chat(read("shot.txt", "photo"), reply("I see"))
    (chat.root / "shot.txt").write_bytes(picture(4000, 1000))
    (chat.root / "photo").write_bytes(telling("JPEG"))
    assert chat.run("Look")["text"] == "I see"
    shot, photo = (data for _, data in seen(stage))
    side = SIDES[stage.api]
    assert opened(shot).size == (side, round(side / 4))
    assert SECRET.encode() not in photo
    results = [m for m in chat.get()["messages"] if m["role"] == "tool_result"]
    assert [base64.b64decode(m["content"][1]["data"]) for m in results] == [shot, photo]
    head = results[0]["content"][0]["text"]
    assert head.startswith("Image: shot.txt (PNG, 4000 x 1000 pixels, ")
    assert head.endswith(f"; shown at {side} x {round(side / 4)})")
    assert [event["result"]["isError"] for event in of_type(run_events(chat), "tool_execution_end")] == [
        False,
        False,
    ]
    stage.assert_goes_on(chat)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (claiming(60_000, 60_000), "60000 x 60000 pixels"),
        (picture()[:-8], "cut off"),
        (claiming(9000, 9000), "could not be decoded"),
        (picture() + bytes(21 * 2**20), "larger than 20 MB"),
        (b"BM" + bytes(100), "is a binary file"),
    ],
    ids=["bomb", "cut", "hollow", "large", "bmp"],
)
def test_an_image_file_that_cannot_be_shown_is_an_error_that_says_why(
    all_stages: dict[str, Stage], data: bytes, why: str
) -> None:
    stage = all_stages["gemini"]
    stage.server.start_anew()
    chat = stage.chat(read("x.png"), reply("well"))
    (chat.root / "x.png").write_bytes(data)
    assert chat.run()["text"] == "well"
    result = next(m for m in chat.get()["messages"] if m["role"] == "tool_result")
    assert result["isError"]
    assert why in result["content"][0]["text"]
    stage.assert_goes_on(chat)


def test_a_model_that_sees_nothing_is_told_so(all_stages: dict[str, Stage]) -> None:
    stage = all_stages["openai-chat"]
    stage.server.start_anew()
    stage.server.push(read("x.png"), reply("well"))
    chat = Chat(stage.daemon, stage.home.workspace(), model="at-openai-chat/blind", mode="full")
    (chat.root / "x.png").write_bytes(picture())
    assert chat.run()["text"] == "well"
    result = next(m for m in chat.get()["messages"] if m["role"] == "tool_result")
    assert result["isError"]
    assert 'the model "at-openai-chat/blind" takes no images' in result["content"][0]["text"]
    error = stage.daemon.refused("agentd/prompt", chat.prompt_params([block(picture())]))
    assert error["message"] == '/prompt/0: model "at-openai-chat/blind" takes no images'


def test_a_session_with_images_goes_on_with_a_model_that_sees_none_and_comes_back(stage: Stage) -> None:
    chat = stage.chat(read("x.png"), reply("I see"))
    (chat.root / "x.png").write_bytes(picture(form="JPEG"))
    chat.run([{"type": "text", "text": "Look"}, block(picture())])
    before = seen(stage)
    assert len(before) == 2
    chat.daemon.call("agentd/session/update", {"sessionId": chat.id, "model": f"at-{stage.api}/blind"})
    stage.server.push(reply("I take your word for it"))
    assert chat.run("And now?")["text"] == "I take your word for it"
    assert seen(stage) == []
    assert json.dumps(stage.server.requests[-1].body).count(NO_IMAGE) == 2
    chat.daemon.call("agentd/session/update", {"sessionId": chat.id, "model": stage.model})
    stage.assert_goes_on(chat)
    assert seen(stage) == before


# --- other daemons ----------------------------------------------------------------------------------


@pytest.fixture
def alone(home: Home) -> Iterator[tuple[Home, dict[str, ModelServer]]]:
    """A home and a server of each API, for daemons of a test's own."""
    servers = {api: make() for api, make in SERVERS.items()}
    for server in servers.values():
        server.__enter__()
    configure(home, servers)
    yield home, servers
    for server in servers.values():
        server.__exit__(None, None, None)
        assert server.faults == []


def started(home: Home, **env: str) -> Daemon:
    daemon = home.spawn("--allow-full", EVERY_API_KEY="sk-x", **env)
    daemon.initialize()
    return daemon


def test_after_a_restart_an_image_looks_the_same(alone: Any) -> None:
    home, servers = alone
    server = servers["anthropic"]
    server.push(reply("I see"), reply("still"))
    daemon = started(home)
    chat = Chat(daemon, home.workspace(), model="at-anthropic/claude-sonnet-4-6", mode="full")
    chat.run([block(noise(2100, 100))])
    daemon.kill()
    chat.daemon = started(home)
    chat.run("And now?")
    first, second = (images_in(request.body) for request in server.requests)
    assert opened(first[0][1]).width == 2000
    assert first == second


@pytest.fixture
def without_pillow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with which no process finds Pillow."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'PIL':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    return folder


def test_without_pillow_what_a_server_takes_is_shown_and_the_rest_refused_with_the_way_out(
    alone: Any, without_pillow: Path
) -> None:
    home, servers = alone
    server = servers["anthropic"]
    daemon = started(home, PYTHONPATH=str(without_pillow))
    model = "at-anthropic/claude-sonnet-4-6"
    chat = Chat(daemon, home.workspace(), model=model, mode="full")
    server.push(reply("I see"))
    sent = picture(7000, 20)
    chat.run([block(sent), block(telling("PNG"))])
    first, second = (data for _, data in images_in(server.requests[0].body))
    assert first == sent
    assert SECRET.encode() not in second

    error = daemon.refused("agentd/prompt", chat.prompt_params([block(picture(9000, 20))]))
    assert error["message"] == ("/prompt/0: it has 9000 x 20 pixels, and the model takes no side beyond 8000")
    assert "pip install 'agentd-lsp[images]'" in error["data"]["hint"]

    server.push(read("x.png"), reply("well"))
    (chat.root / "x.png").write_bytes(picture())
    chat.run("Look")
    result = next(m for m in chat.get()["messages"] if m["role"] == "tool_result")
    assert result["isError"]
    assert "needs Pillow" in result["content"][0]["text"]
    assert "pip install 'agentd-lsp[images]'" in result["content"][0]["text"]


def test_without_pillow_large_images_make_room_where_there_come_to_be_many(
    alone: Any, without_pillow: Path
) -> None:
    home, servers = alone
    server = servers["anthropic"]
    chat = Chat(
        started(home, PYTHONPATH=str(without_pillow)),
        home.workspace(),
        model="at-anthropic/claude-sonnet-4-6",
        mode="full",
    )
    server.push(*(reply("I see") for _ in range(4)))
    chat.run([block(picture(3000, 10 + n)) for n in range(3)])
    assert len(images_in(server.requests[-1].body)) == 3
    chat.run([block(picture(30 + n, 10)) for n in range(20)])
    assert len(images_in(server.requests[-1].body)) == 20
    assert json.dumps(server.requests[-1].body).count("left out to make room") == 3
    chat.run("On")
    chat.run("And on")
    assert len(images_in(server.requests[-1].body)) == 20


def test_a_model_of_another_server_sees_an_image_as_that_one_takes_it(alone: Any) -> None:
    home, servers = alone
    chat = Chat(started(home), home.workspace(), model="at-anthropic/claude-sonnet-4-6", mode="full")
    servers["anthropic"].push(reply("I see"))
    chat.run([block(moving(), "image/gif")])
    servers["gemini"].push(reply("I too"))
    assert chat.run("And you?", model="at-gemini/gemini-3-pro")["text"] == "I too"
    ((kind, _),) = images_in(servers["gemini"].requests[0].body)
    assert kind == "image/png"
