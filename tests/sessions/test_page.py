"""A page of a closed session is read from the end of its journal, and is what an open session answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sessions.prompting import finished
from sessions.session_home import assert_whole_journal, home, page_of
from sessions.test_attach import talked
from sessions.test_journal import _bytes_read

from agentd.protocol.methods import SessionGetParams, SessionListParams
from agentd.sessions import page
from agentd.sessions.journal import read
from agentd.sessions.journal_form import encode
from agentd.sessions.page import read_page


def journal_of(folder: Path, session_id: str) -> Path:
    (path,) = (folder / "data" / "sessions").glob(f"*/{session_id}.jsonl")
    return path


@pytest.mark.parametrize("block", [1, 100, 600, 5000, 256 * 1024])
async def test_every_page_is_what_the_open_session_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(page, "_BLOCK_BYTES", block)
    session_id, _ = await talked(tmp_path)
    path = journal_of(tmp_path, session_id)
    async with home(tmp_path) as living:
        session = await living.sessions.open(session_id)
        ids = [message.message_id for message in session.get(None, 99).messages]
        expected = {
            (before, limit): session.get(before, limit)
            for before in (None, *ids)
            for limit in range(1, len(ids) + 2)
        }
        await living.sessions.close(session_id)
        for (before, limit), answer in expected.items():
            wanted = SessionGetParams(session_id=session_id, before=before, limit=limit)
            assert page_of(read_page(path, wanted)) == answer, (before, limit)
            assert page_of(await living.sessions.get(wanted)) == answer


async def test_what_the_end_does_not_tell_is_left_to_a_whole_reading(tmp_path: Path) -> None:
    session_id, _ = await talked(tmp_path)
    path = journal_of(tmp_path, session_id)
    wanted = SessionGetParams(session_id=session_id)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert read_page(path, wanted) is not None
    assert read_page(path, SessionGetParams(session_id=session_id, before="m_unknown")) is None

    def with_event(role: str, change: Callable[[Any], Any]) -> bytes:
        """The journal with each message of that role changed."""
        changed = [lines[0]]
        for record in read(path).records:
            event = record["event"]
            if event["type"] == "message_end" and event.get("message", {}).get("role") == role:
                record = {**record, "event": {**event, "message": change(event["message"])}}
            changed.append(encode(record))
        return b"".join(changed)

    assert with_event("user", lambda message: message) == whole
    cases = {
        "a run that is open": b"".join(lines[:-1]),
        "a line that is lost": b"".join([*lines[:-3], lines[-3].replace(b"record", b"rekord"), *lines[-2:]]),
        "a line that is gone": b"".join([*lines[:-3], *lines[-2:]]),
        "a line that is there twice": b"".join([*lines[:-3], lines[-3], *lines[-3:]]),
        "no run at all": b"".join(lines[:2]),
        "prompts that wait": b"".join([*lines[:-1], encode({**read(path).records[-1], "waiting": 1})]),
        "a block of a later version": with_event("user", lambda m: {**m, "content": [{"type": "video"}]}),
        "a role of a later version": with_event("user", lambda m: {**m, "role": "observer"}),
        "a record that begins otherwise": b"".join(
            [*lines[:2], encode(dict(reversed(read(path).records[1].items()))), *lines[3:]]
        ),
    }
    for why, content in cases.items():
        path.write_bytes(content)
        assert read_page(path, wanted) is None, why
        if why in ("a line that is lost", "a line that is gone"):
            last = SessionGetParams(session_id=session_id, limit=1)
            assert read_page(path, last) is None, f"{why}, and no more is asked for than what is behind it"
    path.write_bytes(whole + lines[-1][:20])
    assert read_page(path, wanted) is not None, "what a killed writer left unfinished tells nothing"


async def test_a_page_of_a_big_session_does_not_read_all_of_it(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(*["word " * 2000] * 60)
        for number in range(60):
            await finished(session, f"{number} " * 1000)
        await living.sessions.close(session.session_id)
        path = living.journal(session.session_id)
        assert_whole_journal(path)
        wanted = SessionGetParams(session_id=session.session_id, limit=4)
        before = _bytes_read()
        answer = page_of(await living.sessions.get(wanted))
        assert _bytes_read() - before < path.stat().st_size / 2
        assert (len(answer.messages), answer.has_more, answer.session.message_count) == (4, True, 120)


async def test_all_of_a_big_session_is_read_once(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(*["word " * 2000] * 40)
        for number in range(40):
            await finished(session, f"{number} " * 1000)
        await living.sessions.close(session.session_id)
        path = living.journal(session.session_id)
        before = _bytes_read()
        answer = await living.sessions.get(SessionGetParams(session_id=session.session_id, limit=10_000))
        assert _bytes_read() - before < path.stat().st_size * 1.2 + 256 * 1024
        assert len(page_of(answer).messages) == 80


async def test_the_list_counts_what_the_last_run_used(tmp_path: Path) -> None:
    usage = {"input": 2, "output": 3, "total": 5}
    async with home(tmp_path) as living:
        session = await living.new(*[{"content": [{"type": "text", "text": "x"}], "usage": usage}] * 2)
        await finished(session, "one")
        await finished(session, "two")
        told = session.info.usage
        await living.sessions.close(session.session_id)
        (listed,) = (await living.sessions.listing(SessionListParams(), None)).sessions
        assert told is not None
        assert (told.total, listed.usage) == (10, told)
