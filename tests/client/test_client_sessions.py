"""The client's calls for sessions and their queue, with the real daemon and a scripted model."""

import json

import anyio
from wire.home import Home

from agentd.client import Client, ClientOptions
from agentd.protocol.events import EventNotification
from agentd.protocol.messages import TextContent


async def test_a_client_queues_steers_attaches_exports_and_deletes(home: Home) -> None:
    script = home.path / "script.json"
    hanging = {"content": [{"type": "text", "text": "so far"}], "hang": True}
    said = [{"content": [{"type": "text", "text": text}]} for text in ("one", "two")]
    script.write_text(json.dumps([hanging, *said]))
    options = ClientOptions(model=f"scripted/{script}", trusted=True)
    seen: list[EventNotification] = []

    async def note(event: EventNotification) -> None:
        seen.append(event)

    async with Client.start(
        home.workspace(), env=home.environment(), options=options, on_event=note
    ) as client:
        session = await client.new_session()
        name = session.session_id
        await client.submit("first", session_id=name, prompt_id="p1")
        for prompt_id in ("p2", "p3"):
            queued = await client.submit(prompt_id, session_id=name, prompt_id=prompt_id, when_busy="queue")
            assert queued.outcome == "queued"
        moved = await client.update_queue(name, "move", "p3", index=0)
        assert [each.prompt_id for each in moved] == ["p3", "p2"]
        edited = await client.update_queue(name, "edit", "p2", prompt="other words")
        assert edited[1].prompt == (TextContent(text="other words"),)
        assert (await client.cancel(name, keep_queue=True)).restored == ()
        assert (await client.prompt("p3", session_id=name, prompt_id="p3")).text == "one"
        assert (await client.prompt("other words", session_id=name, prompt_id="p2")).text == "two"
        told = await client.attach_session(name, after_seq=3)
        events = [EventNotification.model_validate(each) for each in told.events or ()]
        with anyio.fail_after(10):
            while not seen or seen[-1].seq != told.seq:
                await client.status()
        assert events == [each for each in seen if each.seq is not None and each.seq > 3]
        assert (await client.export_session(name)).startswith("# first\n")
        await client.delete_session(name)
        assert (await client.list_sessions()).sessions == ()


async def test_a_client_looks_at_changes_takes_them_back_and_forks(home: Home) -> None:
    script = home.path / "script.json"
    call = {"type": "tool_call", "name": "write_file", "arguments": {"file_path": "a.txt", "content": "a\n"}}
    script.write_text(json.dumps([{"content": [call]}, {"content": [{"type": "text", "text": "done"}]}]))
    options = ClientOptions(model=f"scripted/{script}", mode="edit", trusted=True)
    root = home.workspace()
    async with Client.start(root, env=home.environment(), options=options) as client:
        name = (await client.new_session()).session_id
        await client.prompt("write", session_id=name, prompt_id="p1")
        uri = (root / "a.txt").as_uri()
        (file,) = (await client.diff_session(name)).files
        assert (file.uri, file.action, file.additions) == (uri, "created", 1)
        assert await client.diff_session(name, "p1") == await client.diff_session(name)
        assert await client.original_text(name, "p1", uri) is None
        fork = await client.fork_session(name)
        assert fork.forked_from is not None
        assert fork.forked_from.session_id == name
        dry = await client.rewind_session(name, "p1", uris=[uri], dry_run=True)
        assert await client.rewind_session(name, "p1", uris=[uri]) == dry
        assert not (root / "a.txt").exists()
        undone = await client.undo_rewind(name)
        assert undone.restored_message_ids == dry.removed_message_ids
        assert (root / "a.txt").read_text() == "a\n"
