"""The lock of open documents: one change of a file at a time, and no two that wait for each other."""

import gc
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentd.workspace import alone as room
from agentd.workspace.alone import alone

A, B, C = Path("/a"), Path("/b"), Path("/c")


class Rooms:
    """Who is in, and in which order they came."""

    def __init__(self) -> None:
        self.inside: dict[Path, int] = {}
        self.most = 0
        self.order: list[str] = []

    async def change(self, name: str, *paths: Path) -> None:
        async with alone(*paths):
            self.order.append(name)
            for path in set(paths):
                self.inside[path] = self.inside.get(path, 0) + 1
                self.most = max(self.most, self.inside[path])
            for _ in range(5):
                await checkpoint()
            for path in set(paths):
                self.inside[path] -= 1


async def test_changes_of_one_file_come_one_after_the_other_in_the_order_in_which_they_were_wanted() -> None:
    rooms = Rooms()
    async with anyio.create_task_group() as tasks:
        for name in "abcd":
            tasks.start_soon(rooms.change, name, A)
    assert (rooms.most, rooms.order) == (1, list("abcd"))


async def test_changes_of_different_files_go_on_beside_each_other() -> None:
    async with alone(A):
        with anyio.fail_after(5):
            await Rooms().change("b", B)


async def test_moves_in_both_directions_do_not_wait_for_each_other() -> None:
    rooms = Rooms()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                paths = [(A, B), (B, A), (B, C), (C, A)][number % 4]
                tasks.start_soon(rooms.change, "", *paths)
    assert (rooms.most, len(rooms.order)) == (1, 20)


async def test_a_file_that_is_named_twice_is_held_once() -> None:
    with anyio.fail_after(5):
        await Rooms().change("a", A, A)


@pytest.mark.parametrize("where", ["inside", "while it waits for the second"])
async def test_who_is_cancelled_leaves_nothing_held(where: str) -> None:
    rooms = Rooms()
    started = anyio.Event()

    async def change() -> None:
        started.set()
        async with alone(*((A,) if where == "inside" else (A, B))):
            await anyio.sleep_forever()

    async with alone(B), anyio.create_task_group() as tasks:
        tasks.start_soon(change)
        await started.wait()
        for _ in range(5):
            await checkpoint()
        assert room._locks[A].locked()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(5):
        await rooms.change("next", A, B)
    assert rooms.order == ["next"]


async def test_an_error_inside_is_raised_and_leaves_nothing_held() -> None:
    with pytest.raises(ValueError, match="no"):
        async with alone(A, B):
            raise ValueError("no")
    with anyio.fail_after(5):
        await Rooms().change("next", A, B)


async def test_no_lock_is_kept_for_a_file_that_nobody_changes() -> None:
    async with alone(A, B):
        assert {A, B} <= set(room._locks)
    gc.collect()
    assert not {A, B} & set(room._locks)
