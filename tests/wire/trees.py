"""What a folder holds, to the last bit that a rewind has to bring back."""

import os
import stat
from pathlib import Path

Tree = dict[str, tuple[str, int, bytes]]


def tree(root: Path) -> Tree:
    """Everything below a folder but repositories: kind, permissions and content, by name.

    Folders count where something is in them: of empty ones a rewind knows nothing.
    """
    found: Tree = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in [*names, *links]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            kind = "link" if stat.S_ISLNK(mode) else "file"
            content = os.fsencode(os.readlink(path)) if kind == "link" else path.read_bytes()
            bits = 0 if kind == "link" else stat.S_IMODE(mode)
            found[str(path.relative_to(root))] = (kind, bits, content)
    return found


def folders(root: Path) -> set[str]:
    """The folders below one, without repositories."""
    found = (path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())
    return {str(path.relative_to(root)) for path in found if ".git" not in path.parts}
