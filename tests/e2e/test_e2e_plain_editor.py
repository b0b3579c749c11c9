"""An editor that knows nothing of agentd finds an ordinary language server."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from e2e.lsp_client import AgentClient, connect, finish
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import client_capabilities
from wire.home import Home
from wire.scripts import reply


@pytest_asyncio.fixture
async def editor(home: Home, request: pytest.FixtureRequest) -> AsyncIterator[AgentClient]:
    """A client with the capabilities of a real editor (Neovim's unless named) and no `agentd` object."""
    named = getattr(request, "param", "neovim")
    client = await connect(home)
    result = await client.lsp.initialize_session(
        types.InitializeParams(capabilities=client_capabilities(named), root_uri=home.path.as_uri())
    )
    assert result.server_info is not None
    assert result.server_info.name == "agentd"
    yield client
    await finish(client)


@pytest.mark.parametrize("editor", ["visual-studio-code", "neovim", "emacs"], indirect=True)
async def test_an_editor_opens_edits_saves_and_closes_a_document(home: Home, editor: AgentClient) -> None:
    uri = (home.path / "main.py").as_uri()
    item = types.TextDocumentItem(uri=uri, language_id="python", version=1, text="print(1)\n")
    editor.lsp.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    start = types.Position(line=0, character=6)
    change = types.TextDocumentContentChangePartial(
        range=types.Range(start=start, end=types.Position(line=0, character=7)), text="2"
    )
    identifier = types.VersionedTextDocumentIdentifier(uri=uri, version=2)
    editor.lsp.text_document_did_change(
        types.DidChangeTextDocumentParams(text_document=identifier, content_changes=[change])
    )
    document = types.TextDocumentIdentifier(uri=uri)
    editor.lsp.text_document_did_save(types.DidSaveTextDocumentParams(text_document=document))
    editor.lsp.text_document_did_close(types.DidCloseTextDocumentParams(text_document=document))
    with pytest.raises(JsonRpcException) as raised:
        await editor.lsp.workspace_execute_command_async(
            types.ExecuteCommandParams(command="no.such.command")
        )
    assert raised.value.code in (-32601, -32602)
    assert editor.events == []
    assert editor.lsp.messages == []


async def test_a_prompt_without_an_agentd_object_is_answered_without_events(
    home: Home, editor: AgentClient
) -> None:
    result = await editor.request("agentd/prompt", {"prompt": "hi", "model": home.script(reply("hello"))})
    assert result["text"] == "hello"
    assert editor.events == []


async def test_an_unknown_request_is_method_not_found(editor: AgentClient) -> None:
    with pytest.raises(JsonRpcException) as raised:
        await editor.request("no/such/method", {})
    assert raised.value.code == -32601
