"""The SDK of ACP as the client: what other people's code makes of `agentd acp`."""

import os
import sys
from pathlib import Path
from typing import Any

import acp
from acp import schema
from fakes.acp_agent import AcpHome
from wire.scripts import reply, tool


class Client(acp.Client):
    """A client that keeps files, allows everything and writes down what it is told."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.written: dict[str, str] = {}

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **kwargs: Any
    ) -> schema.RequestPermissionResponse:
        outcome = schema.AllowedOutcome(option_id=options[0].option_id, outcome="selected")
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def read_text_file(self, path: str, session_id: str, **kwargs: Any) -> schema.ReadTextFileResponse:
        return schema.ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(
        self, content: str, path: str, session_id: str, **kwargs: Any
    ) -> schema.WriteTextFileResponse:
        self.written[path] = content
        Path(path).write_text(content)
        return schema.WriteTextFileResponse()


async def test_the_sdk_talks_to_it_from_initialize_to_the_end(acp_home: AcpHome) -> None:
    folder = acp_home.workspace(a_txt="one\ntwo\n")
    script = acp_home.script(
        reply("I look.", tool("read_file", {"file_path": "a.txt"}, "c1")),
        reply(tool("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "2"}, "c2")),
        reply("Done."),
    )
    acp_home.config.write_text(f'model = "{script}"\n')
    client = Client()
    environment = {**os.environ, **acp_home.environment()}
    command = [sys.executable, "-m", "agentd", "acp"]
    spawned = acp.spawn_agent_process(client, *command, env=environment, cwd=acp_home.path)
    async with spawned as (connection, process):
        files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        began = await connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=schema.ClientCapabilities(fs=files)
        )
        assert began.agent_info is not None
        assert began.agent_info.name == "agentd"
        made = await connection.new_session(cwd=str(folder), mcp_servers=[])
        await connection.set_session_mode(mode_id="ask", session_id=made.session_id)
        ended = await connection.prompt(prompt=[acp.text_block("change it")], session_id=made.session_id)
        assert ended.stop_reason == "end_turn"
        listed = await connection.list_sessions(cwd=str(folder))
        assert [each.session_id for each in listed.sessions] == [made.session_id]
    assert client.written == {str(folder / "a.txt"): "one\n2\n"}
    said = [each.content.text for each in client.updates if isinstance(each, schema.AgentMessageChunk)]
    assert "".join(said) == "I look.Done."
    assert any(isinstance(each, schema.AvailableCommandsUpdate) for each in client.updates)
    assert process.returncode is not None
