"""`kill -9` in the middle of a rewind: nothing is half done, and nothing was told that did not happen."""

import pytest
from wire.home import Home
from wire.processes import until
from wire.rewinding import Author, told, write
from wire.test_wire_storage import fill_disk, free_disk

FILES = [f"{number:02}.txt" for number in range(40)]


def restored(author: Author) -> int:
    """How many of the files are as they were before: gone."""
    return sum(not (author.root / name).exists() for name in FILES)


@pytest.mark.parametrize("count", [0, 1, 7, 23, 39])
def test_a_rewind_that_is_killed_is_done_and_told_or_neither(home: Home, count: int) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", *(write(name, f"{name}\n" * 50) for name in FILES))
    after = author.files()
    author.rewinds_until(lambda: restored(author) >= count, promptId="one", scope="both")
    author.daemon.kill()
    was_told = any(e["event"]["type"] == "session_rewound" for e in author.chat.notifications())
    daemon = home.start("--allow-full")
    until(lambda: not author.plans(), "a daemon that starts settles it, before anybody opens the session")
    author.moved_to(daemon)
    events = author.ask("attach")["events"]
    is_done = any(event["event"]["type"] == "session_rewound" for event in events)
    assert author.files() == ({} if is_done else after)
    assert author.texts() == ([] if is_done else ["do one", "done one"])
    assert is_done or not was_told
    if not is_done:
        assert set(told(author.rewind("one", "both")).values()) == {"deleted"}
    assert author.files() == {}
    author.undo()
    assert author.files() == after


def test_a_rewind_that_cannot_be_journaled_did_not_happen(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", *(write(name, f"{name}\n") for name in FILES[:3]))
    before, after = author.chat.get(), author.files()
    (journal,) = home.data.rglob(f"{author.chat.id}.jsonl")
    fill_disk(author.daemon, journal)
    error = author.refused("rewind", promptId="one", scope="both")
    assert error["data"]["kind"] == "storage"
    assert (author.files(), author.chat.get()) == (after, before)
    assert not author.plans()
    free_disk(author.daemon)
    assert set(told(author.rewind("one", "both")).values()) == {"deleted"}
    assert author.files() == {}
