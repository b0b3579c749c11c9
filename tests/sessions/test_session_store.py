"""Sessions in their folder: opened, listed, read and closed, alone and beside another process."""

import errno
import gc
import os
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from sessions.session_home import Home, home, page_of, prompt

from agentd.protocol.errors import RpcError
from agentd.protocol.methods import (
    PromptResult,
    SessionGetParams,
    SessionListParams,
    SessionNewParams,
    SessionUpdateParams,
)
from agentd.sessions.session import Session
from agentd.workspace.paths import uri_of


async def said(session: Session, text: str = "go", **params: Any) -> PromptResult:
    result = await session.prompt(prompt(text, **params))
    assert isinstance(result, PromptResult)
    return result


async def listed(living: Home, root: Path | None = None, **params: Any) -> tuple[list[str], str | None]:
    found = await living.sessions.listing(SessionListParams(**params), root)
    return [info.session_id for info in found.sessions], found.next_cursor


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


# --- new ------------------------------------------------------------------------------------------


async def test_a_new_session_is_on_disk_before_anyone_is_told(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        made = await living.sessions.create(
            living.root, SessionNewParams(title="T", mode="plan", effort="high")
        )
        assert living.face.sent == []
        info = made.session.info
        assert (info.title, info.mode, info.effort, info.seq, info.state) == ("T", "plan", "high", 1, "idle")
        assert (info.workspace_uri, info.model) == (uri_of(living.root), "scripted/none")
        assert living.journal(info.session_id).is_file()
        made.introduce()
        (sent,) = living.face.sent
        assert (sent.event.type, sent.seq, sent.prompt_id) == ("session_changed", 1, None)


@pytest.mark.parametrize(
    ("params", "kind"), [({"mode": "auto"}, "unsupported"), ({"model": "none/x"}, "noModel")]
)
async def test_a_session_that_cannot_be_leaves_no_file(tmp_path: Path, params: Any, kind: str) -> None:
    async with home(tmp_path) as living:
        with pytest.raises(RpcError) as caught:
            await living.sessions.create(living.root, SessionNewParams(**params))
        assert caught.value.kind == kind
        assert files(tmp_path / "data") == []
        assert living.sessions.opened == ()


# --- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_id", ["..", ".", "a", "s~", "..:..", "x" * 128])
async def test_an_id_of_no_session_opens_reads_and_creates_nothing(tmp_path: Path, session_id: str) -> None:
    async with home(tmp_path) as living:
        await living.new("x")
        before = files(tmp_path)
        for use in (
            living.sessions.open(session_id),
            living.sessions.close(session_id),
            living.sessions.get(SessionGetParams(session_id=session_id)),
        ):
            with pytest.raises(RpcError) as caught:
                await use
            assert caught.value.kind == "sessionNotFound"
        assert files(tmp_path) == before


@pytest.mark.parametrize("session_id", ["", "a/b", "../../etc/x", "x" * 129, "a\n", "\0", "é", "a b"])
def test_an_id_that_is_none_is_refused_by_the_wire(session_id: str) -> None:
    with pytest.raises(ValueError, match="session"):
        SessionGetParams(session_id=session_id)


async def test_a_folder_that_cannot_be_read_is_told_and_named_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with home(tmp_path) as living:
        session = await living.new("x", "fine")
        await living.sessions.close(session.session_id)
        folder = tmp_path / "data" / "sessions"
        listed_before = await listed(living)

        def unreadable(path: Path) -> Any:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

        with monkeypatch.context() as broken:
            broken.setattr(Path, "iterdir", unreadable)
            for use in (
                living.sessions.listing(SessionListParams(), None),
                living.sessions.get(SessionGetParams(session_id=session.session_id)),
                living.sessions.open(session.session_id),
                living.sessions.delete(session.session_id),
            ):
                with pytest.raises(RpcError) as caught:
                    await use
                assert (caught.value.kind, "AGENTD_DATA" in (caught.value.hint or "")) == ("storage", True)
                assert str(folder) not in caught.value.message
        assert await listed(living) == listed_before


async def test_a_closed_session_is_freed_with_all_that_it_held(tmp_path: Path) -> None:
    async with home(tmp_path, seconds=120) as living:
        counts, freed = [], []
        for number in range(7):
            session = await living.new("x")
            await said(session)
            freed.append(weakref.ref(session))
            await living.sessions.close(session.session_id)
            del session
            living.face.sent.clear()
            await anyio.wait_all_tasks_blocked()
            gc.collect()
            counts.append(len(os.listdir("/proc/self/fd")) if number > 3 else 0)
        assert [each() for each in freed[:-1]] == [None] * 6
        assert len(set(counts[4:])) == 1, counts


async def test_a_file_that_holds_no_session_is_none(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("x")
        folder = living.journal(session.session_id).parent
        (folder / "empty.jsonl").touch()
        (folder / "junk.jsonl").write_bytes(b"\x00\xff" * 500)
        assert await listed(living) == ([session.session_id], None)
        for name in ("empty", "junk"):
            with pytest.raises(RpcError) as caught:
                await living.sessions.open(name)
            assert caught.value.kind in ("storage", "sessionNotFound")


# --- open and close -------------------------------------------------------------------------------


async def test_requests_that_open_one_session_at_once_get_the_same(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session_id = (await living.new("x")).session_id
    async with home(tmp_path) as living:
        found: list[Session] = []

        async def use() -> None:
            found.append(await living.sessions.open(session_id))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(use)
        assert len({id(session) for session in found}) == 1


async def test_a_closed_session_opens_again_at_its_next_use(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("one", "two")
        await said(session)
        await living.sessions.close(session.session_id)
        await living.sessions.close(session.session_id)
        assert living.sessions.opened == ()
        again = await living.sessions.open(session.session_id)
        assert again is not session
        assert (await said(again)).text == "two"
        assert again.info.message_count == 4


async def test_a_session_is_found_in_whichever_workspace_it_is(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with home(tmp_path) as living:
        made = await living.sessions.create(other, SessionNewParams())
        session_id = made.session.session_id
    async with home(tmp_path) as living:
        assert (await living.sessions.open(session_id)).root == other


async def test_a_prompt_that_names_no_session_goes_to_the_workspaces_latest(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        assert living.sessions.latest(living.root, None) is None
        first, second = await living.new("a"), await living.new("b")
        assert living.sessions.latest(living.root, None) == second.session_id
        await said(first, prompt_id="p1")
        living.sessions.used(first)
        assert living.sessions.latest(living.root, None) == first.session_id
        await living.sessions.open(second.session_id)
        assert living.sessions.latest(living.root, None) == first.session_id, "reading is not using"
        living.sessions.used(second)
        assert living.sessions.latest(living.root, "p1") == first.session_id, "the one that knows the prompt"
        assert living.sessions.latest(living.root, "p2") == second.session_id
        await living.sessions.close(second.session_id)
        assert living.sessions.latest(living.root, "p2") is None
        assert living.sessions.latest(tmp_path, None) is None


async def test_closing_a_folder_closes_its_sessions_only(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with home(tmp_path) as living:
        await living.new("a")
        kept = (await living.sessions.create(other, SessionNewParams())).session
        await living.sessions.close_in(living.root)
        assert living.sessions.opened == (kept,)


# --- list -----------------------------------------------------------------------------------------


async def test_the_list_is_the_same_open_and_closed(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        answered, silent = await living.new("x", "y"), await living.new("x", title="Silent")
        await said(answered, "the first line\nand more")
        await said(answered, "again")
        answered.update(SessionUpdateParams(session_id=answered.session_id, mode="plan"))
        opened = (await living.sessions.listing(SessionListParams(), None)).sessions
        assert {info.session_id for info in opened} == {answered.session_id, silent.session_id}
    async with home(tmp_path) as living:
        closed = (await living.sessions.listing(SessionListParams(), None)).sessions
        assert closed == opened
        assert living.sessions.opened == (), "listing opens nothing"
        assert [(info.title, info.message_count) for info in closed] == [("the first line", 4), ("Silent", 0)]


async def test_the_list_is_newest_first_and_comes_in_pages(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        sessions = [await living.new("x") for _ in range(5)]
        await said(sessions[1])
        expected, _ = await listed(living)
        assert expected[0] == sessions[1].session_id
        assert set(expected) == {session.session_id for session in sessions}
        pages: list[str] = []
        cursor = None
        for _ in range(3):
            page, cursor = await listed(living, limit=2, cursor=cursor)
            pages += page
        assert pages == expected
        assert cursor is None
        assert await listed(living, limit=5) == (expected, None), "no cursor where nothing is left"


async def test_a_cursor_that_is_none_gives_an_end_and_no_fault(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        await living.new("x")
        assert await listed(living, cursor="") == ([], None)


async def test_the_list_of_a_workspace_holds_its_own_sessions(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with home(tmp_path) as living:
        here = await living.new("x")
        there = (await living.sessions.create(other, SessionNewParams())).session
        assert await listed(living, living.root) == ([here.session_id], None)
        assert await listed(living, other) == ([there.session_id], None)
        assert await listed(living, tmp_path) == ([], None)
        assert len((await listed(living))[0]) == 2


async def test_the_list_of_no_sessions_is_empty(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        assert await listed(living) == ([], None)


# --- get ------------------------------------------------------------------------------------------


async def test_messages_are_read_backwards_page_by_page(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new(*"abcde")
        for text in "12345":
            await said(session, text)

        async def page(before: str | None, limit: int) -> Any:
            wanted = SessionGetParams(session_id=session.session_id, before=before, limit=limit)
            return page_of(await living.sessions.get(wanted))

        last = await page(None, 3)
        texts = [m.content[0].text for m in last.messages]
        assert (texts, last.has_more, last.seq) == (["d", "5", "e"], True, session.info.seq)
        earlier = await page(last.messages[0].message_id, 5)
        assert [m.content[0].text for m in earlier.messages] == ["2", "b", "3", "c", "4"]
        first = await page(earlier.messages[0].message_id, 5)
        assert ([m.content[0].text for m in first.messages], first.has_more) == (["1", "a"], False)
        assert (await page(first.messages[0].message_id, 5)).messages == ()
        assert not (await page(None, 10)).has_more
        with pytest.raises(RpcError) as caught:
            await page("m_unknown", 5)
        assert caught.value.kind == "invalidParams"


# --- another process ------------------------------------------------------------------------------

HOLD = """
    import sys
    from pathlib import Path
    from agentd.sessions.journal import Journal
    journal, _ = Journal.open(Path(sys.argv[1]))
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Another process holds the session's journal."""
    command = [sys.executable, "-c", textwrap.dedent(HOLD), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process.pid
        finally:
            process.communicate()


async def test_a_session_that_another_process_holds_can_be_read_and_no_more(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("hello")
        await said(session)
        session_id, path = session.session_id, living.journal(session.session_id)
    with held(path) as pid:
        before = path.read_bytes()
        async with home(tmp_path) as living:
            with pytest.raises(RpcError) as caught:
                await living.sessions.open(session_id)
            assert caught.value.kind == "sessionLocked"
            assert caught.value.to_wire()["data"]["pid"] == pid
            reading = page_of(await living.sessions.get(SessionGetParams(session_id=session_id)))
            assert [m.content[0].text for m in reading.messages] == ["go", "hello"]  # type: ignore[union-attr]  # both are text
            assert (reading.session.locked_by, reading.seq) == (pid, session.info.seq)
            found = (await living.sessions.listing(SessionListParams(), None)).sessions
            assert [info.locked_by for info in found] == [pid]
            assert living.face.sent == []
        assert path.read_bytes() == before
    async with home(tmp_path) as living:
        again = await living.sessions.open(session_id)
        assert (await said(again, model=living.script("fine"))).text == "fine"
        assert again.info.locked_by is None


async def test_a_run_that_another_process_is_in_the_middle_of_is_not_closed_by_readers(
    tmp_path: Path,
) -> None:
    async with home(tmp_path) as living:
        session = await living.new("hello")
        await said(session)
        session_id, path = session.session_id, living.journal(session.session_id)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))
    with held(path) as pid:
        before = path.read_bytes()
        async with home(tmp_path) as living:
            reading = page_of(await living.sessions.get(SessionGetParams(session_id=session_id)))
            assert reading.session.locked_by == pid
            assert len(reading.messages) == 1, "the answer had begun and was not whole"
        assert path.read_bytes() == before


async def test_a_session_is_let_go_when_it_is_closed(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        session = await living.new("hello")
        path = living.journal(session.session_id)
        await living.sessions.close(session.session_id)
        with held(path) as pid:
            assert pid != os.getpid()
