"""What the file tools take, called as the loop calls them, beside the least that Python can do it in."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
from measures import Value

from agentd.tools.base import Tool, ToolContext
from agentd.tools.edit_file import EditFile
from agentd.tools.read_file import ReadFile
from agentd.workspace.editor import Disk
from agentd.workspace.seen import SeenFiles
from agentd.workspace.write_notes import WriteNotes

LARGE_BYTES = 10_000_000
EDITS = 1_000
_LINE = "    total += weights[{0:06d}] * values[{0:06d}]  # one of many like it\n"
_SMALL_LINES = 300


def of_agentd(folder: Path) -> Iterator[Value]:
    """Reads and edits through the tools, confined, checked, diffed and noted."""
    large, small = _files(folder)
    yield from anyio.run(_of_agentd, folder, large, small)


async def _of_agentd(folder: Path, large: Path, small: Path) -> list[Value]:
    notes = WriteNotes(folder / "notes")
    context = ToolContext(folder.resolve(), Disk(), SeenFiles(), {}, write_notes=notes)
    values: list[Value] = []

    async def call(tool: Tool, **arguments: Any) -> None:
        result = await (await tool.prepare(arguments, context)).run()
        if result.is_error:
            raise RuntimeError(f"{tool.name}: {result.content}")

    start = time.monotonic_ns()
    await call(ReadFile(), file_path=large.name)
    values.append(("read_large", _ms_since(start)))
    start = time.monotonic_ns()
    await call(EditFile(), file_path=large.name, old_string=_marked(large), new_string="changed")
    values.append(("edit_large", _ms_since(start)))
    await call(ReadFile(), file_path=small.name)
    start = time.monotonic_ns()
    for number in range(EDITS):
        await call(
            EditFile(), file_path=small.name, old_string=f"mark {number}\n", new_string=f"mark {number + 1}\n"
        )
    values.append(("edit_many", _ms_since(start) / EDITS))
    return values


def of_bare_python(folder: Path) -> Iterator[Value]:
    """Reading, replacing, writing beside, fsync and rename: what any safe edit has to do."""
    large, small = _files(folder)
    yield "read_large", _taken(lambda: large.read_bytes())
    yield "edit_large", _taken(lambda: _edit(large, _marked(large), "changed"))

    def many() -> None:
        for number in range(EDITS):
            _edit(small, f"mark {number}\n", f"mark {number + 1}\n")

    yield "edit_many", _taken(many) / EDITS


def _edit(path: Path, old: str, new: str) -> None:
    data = path.read_bytes().replace(old.encode(), new.encode())
    temporary = path.with_name("temporary")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def _files(folder: Path) -> tuple[Path, Path]:
    large, small = folder / "large.py", folder / "small.py"
    lines = (_LINE.format(number) for number in range(LARGE_BYTES // len(_LINE.format(0))))
    large.write_text("".join(lines))
    small.write_text("mark 0\n" + "".join(_LINE.format(number) for number in range(_SMALL_LINES)))
    return large, small


def _marked(large: Path) -> str:
    """A text that is in the middle of the file, once."""
    return f"weights[{large.stat().st_size // len(_LINE.format(0)) // 2:06d}]"


def _taken(work: Callable[[], object]) -> float:
    start = time.monotonic_ns()
    work()
    return _ms_since(start)


def _ms_since(start: int) -> float:
    return (time.monotonic_ns() - start) / 1e6
