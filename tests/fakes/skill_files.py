"""Writing skills for tests."""

from pathlib import Path


def put(folder: Path, name: str, text: str = "Do it well.", description: str | None = None) -> Path:
    """A good skill of this name in a folder of skills; gives its own folder."""
    about = f"Use it for {name}." if description is None else description
    return raw(folder, name, f"---\nname: {name}\ndescription: {about}\n---\n\n{text}\n")


def raw(folder: Path, name: str, text: str | bytes) -> Path:
    """A folder with this as its `SKILL.md`."""
    skill = folder / name
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    return skill
