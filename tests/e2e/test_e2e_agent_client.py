"""A rich client, as an editor extension would be one, through a language client library."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from e2e.lsp_client import AgentClient, connect, finish
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from wire.home import Home
from wire.scripts import reply, tool


@pytest_asyncio.fixture
async def client(home: Home) -> AsyncIterator[AgentClient]:
    """A client that asks for everything; its workspace is the folder `project`."""
    project = home.path / "project"
    project.mkdir()
    client = await connect(home, "--allow-full")
    await client.lsp.initialize_session(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(),
            initialization_options={"agentd": {"permission": True, "trusted": True}},
            workspace_folders=[types.WorkspaceFolder(uri=project.as_uri(), name="project")],
        )
    )
    yield client
    await finish(client)


async def test_a_prompt_edits_a_file_with_the_users_permission(home: Home, client: AgentClient) -> None:
    target = home.path / "project" / "greeting.py"
    target.write_text("print('hallo')\n")
    edit = {"file_path": "greeting.py", "old_string": "hallo", "new_string": "hello"}
    model = home.script(
        reply("I look first.", tool("read_file", {"file_path": "greeting.py"}, "look")),
        reply("Now I edit.", tool("edit_file", edit, "edit")),
        reply(tool("bash", {"command": f"{sys.executable} greeting.py"}, "run")),
        reply("It says hello now."),
    )
    client.answer = lambda question: {
        "optionId": next(o["optionId"] for o in question["options"] if o["kind"] == "allow_once")
    }
    result = await client.request("agentd/prompt", {"prompt": "Say it in English.", "model": model})
    assert (result["stopReason"], result["text"], result["turns"]) == ("stop", "It says hello now.", 4)
    assert target.read_text() == "print('hello')\n"
    assert [question["toolCallId"] for question in client.questions] == ["edit", "run"]
    ended = await client.until(
        lambda event: event["type"] == "tool_execution_end" and event["toolCallId"] == "run"
    )
    assert "hello" in ended["event"]["result"]["content"][0]["text"]
    assert client.kinds()[-2:] == ["files_changed", "agent_end"]


async def test_a_cancelled_request_of_a_prompt_gives_its_result(home: Home, client: AgentClient) -> None:
    params = {"prompt": "Talk for ever.", "model": home.script(reply("so far", hang=True))}
    prompt = asyncio.ensure_future(client.request("agentd/prompt", params, "prompt-1"))
    await client.until(lambda event: event["type"] == "message_update")
    client.lsp.cancel_request(types.CancelParams(id="prompt-1"))
    result = await prompt
    assert (result["stopReason"], result["text"]) == ("aborted", "so far")


async def test_an_error_carries_its_code_and_kind(client: AgentClient) -> None:
    with pytest.raises(JsonRpcException) as raised:
        await client.request("agentd/session/get", {"sessionId": "no-such-session"})
    assert raised.value.code == -32803
    assert "no-such-session" in raised.value.message


async def test_an_unsaved_buffer_is_what_the_model_reads(home: Home, client: AgentClient) -> None:
    path = home.path / "project" / "notes.md"
    path.write_text("on disk\n")
    client.lsp.text_document_did_open(
        types.DidOpenTextDocumentParams(
            text_document=types.TextDocumentItem(
                uri=path.as_uri(), language_id="markdown", version=1, text="in the buffer\n"
            )
        )
    )
    model = home.script(reply(tool("read_file", {"file_path": "notes.md"}, "look")), reply("done"))
    await client.request("agentd/prompt", {"prompt": "Read.", "model": model})
    ended = await client.until(lambda event: event["type"] == "tool_execution_end")
    assert "in the buffer" in ended["event"]["result"]["content"][0]["text"]


async def test_a_conversation_goes_on_in_the_latest_session(home: Home, client: AgentClient) -> None:
    model = home.script(reply("one"), reply("two"))
    first = await client.request("agentd/prompt", {"prompt": "First.", "model": model})
    second = await client.request("agentd/prompt", {"prompt": "Second.", "model": model})
    assert second["sessionId"] == first["sessionId"]
    got = await client.request("agentd/session/get", {"sessionId": first["sessionId"]})
    assert [message["role"] for message in got["messages"]] == ["user", "assistant", "user", "assistant"]
    assert [request["messages"][-1]["content"][0]["text"] for request in home.model_requests()] == [
        "First.",
        "Second.",
    ]


async def test_a_killed_daemon_is_started_again_and_remembers(home: Home) -> None:
    project = home.path / "project"
    project.mkdir()
    params = types.InitializeParams(
        capabilities=types.ClientCapabilities(),
        initialization_options={"agentd": {}},
        workspace_folders=[types.WorkspaceFolder(uri=project.as_uri(), name="project")],
    )
    first = await connect(home)
    await first.lsp.initialize_session(params)
    result = await first.request(
        "agentd/prompt", {"prompt": "Remember.", "model": home.script(reply("I do."))}
    )
    server = first.lsp._server
    assert server is not None
    server.kill()
    await server.wait()
    await finish(first, exit_code=-9)
    second = await connect(home)
    await second.lsp.initialize_session(params)
    (session,) = (await second.request("agentd/session/list", {}))["sessions"]
    assert session["sessionId"] == result["sessionId"]
    again = {"sessionId": session["sessionId"], "prompt": "And?", "model": home.script(reply("Still do."))}
    assert (await second.request("agentd/prompt", again))["text"] == "Still do."
    await finish(second)
