"""Calls of file tools as the loop makes them, on a real folder."""

from dataclasses import dataclass, field
from pathlib import Path

from agentd.tools.base import Action, ToolContext, ToolResult
from agentd.tools.delete_file import DeleteFile
from agentd.tools.edit_file import EditFile
from agentd.tools.find_files import FindFiles
from agentd.tools.list_directory import ListDirectory
from agentd.tools.move_file import MoveFile
from agentd.tools.read_file import ReadFile
from agentd.tools.search_files import SearchFiles
from agentd.tools.write_file import WriteFile
from agentd.workspace.editor import Disk, OpenDocument
from agentd.workspace.seen import SeenFiles

TOOLS = {
    tool.name: tool
    for tool in (
        ReadFile(),
        WriteFile(),
        EditFile(),
        MoveFile(),
        DeleteFile(),
        ListDirectory(),
        FindFiles(),
        SearchFiles(),
    )
}


@dataclass
class FakeEditor(Disk):
    """An editor whose open documents the test sets."""

    documents: dict[Path, OpenDocument] = field(default_factory=dict)

    can_edit: bool = False

    async def document(self, path: Path) -> OpenDocument | None:
        return self.documents.get(path)

    async def dirty_paths(self) -> tuple[Path, ...]:
        return tuple(path for path, document in self.documents.items() if document.dirty)


class Calls:
    """One session's calls in `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.editor = FakeEditor()
        self.context = ToolContext(root.resolve(), self.editor, SeenFiles(), {})

    async def prepare(self, name: str, **arguments: object) -> Action:
        return await TOOLS[name].prepare(dict(arguments), self.context)

    async def run(self, name: str, **arguments: object) -> ToolResult:
        return await (await self.prepare(name, **arguments)).run()

    async def text(self, name: str, **arguments: object) -> str:
        """The text of a result that must be good."""
        result = await self.run(name, **arguments)
        assert not result.is_error, said(result)
        return said(result)

    async def error(self, name: str, **arguments: object) -> str:
        """The text of a result that must be an error."""
        result = await self.run(name, **arguments)
        assert result.is_error, said(result)
        return said(result)

    async def edit(self, data: bytes, old: str, new: str, **more: object) -> bytes:
        """The bytes of a file that held `data`, after it was read and edited."""
        (self.root / "edited").write_bytes(data)
        await self.text("read_file", file_path="edited")
        await self.text("edit_file", file_path="edited", old_string=old, new_string=new, **more)
        return (self.root / "edited").read_bytes()


def said(result: ToolResult) -> str:
    return "".join(block.text for block in result.content)
