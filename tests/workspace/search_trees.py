"""Folders that are hard to search, and both ways to search them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.workspace import search
from agentd.workspace.ripgrep import Ripgrep, find_ripgrep
from agentd.workspace.search import SearchOutcome, run_search
from agentd.workspace.search_job import SearchJob

RIPGREP = find_ripgrep(Path("/nowhere"), os.environ.get("PATH", ""))
ON_PATH = shutil.which("rg")
RIPGREPS = sorted({path for path in (RIPGREP and RIPGREP.path, ON_PATH) if path})
"""All that are here: versions differ."""
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="no ripgrep: pip install 'agentd-lsp[fast]'")

CONTENTS: dict[str, bytes] = {
    "plain.txt": b"one needle\ntwo\n",
    "no final newline": b"a needle",
    "empty": b"",
    "crlf.txt": b"needle\r\nthe needle\r\n",
    "lone cr": b"x\rneedle\ry\nz",
    "bom.txt": b"\xef\xbb\xbfneedle first\n",
    "le16": "\ufeffne\u00e9dle needle\r\n".encode("utf-16-le"),
    "be16": "\ufeffneedle\n".encode("utf-16-be"),
    "le32": "\ufeffneedle\n".encode("utf-32-le"),
    "be32": "\ufeffneedle\n".encode("utf-32-be"),
    "half16": b"\xff\xfen\x00e\x00e\x00\x00\xd8",
    "odd16": b"\xff\xfe needle",
    "latin1": "d\xe9j\xe0 needle\n".encode("latin-1"),
    "mixed": b"needle \xff\xc3\xa9 \xed\xa0\x80 needle\n",
    "binary": b"needle\0",
    "late binary": b"needle\n" * 9000 + b"\0",
    "long line": b"x" * 200_000 + b"needle" + b"y" * 100_000,
    "kelvin": "\u212a elvin, \u0130stanbul, \u017fharp, STRASSE stra\u00dfe\n".encode(),
    ".hidden/.deep": b"needle\n",
    "-e": b"needle\n",
    "--pre=cat": b"needle\n",
    "with space/and\nnewline\t": b"needle\n",
    "glob[id]/*": b"needle\n",
    "src/a.py": b"def needle(x):\n    return 'needle'\n",
    "src/a.log": b"needle\n",
    "src/keep.log": b"needle\n",
    "build/out.js": b"needle\n",
    "build/keep.js": b"needle\n",
    "vendor/.gitignore": b"*\n!kept/\n!kept/**\n",
    "vendor/kept/x": b"needle\n",
    "vendor/dropped/x": b"needle\n",
    ".gitignore": b"\xef\xbb\xbf*.log\r\n!keep.log\nbuild/\n!build/keep.js\n",
    ".ignore": b"plain.txt\n",
    ".rgignore": b"src\n",
    "nested/.git/HEAD": b"needle\n",
    "nested/.gitignore": b"!*.log\n",
    "nested/x.log": b"needle\n",
    ".git/info/exclude": b"plain.txt\n",
    ".env": b"needle=1\n",
    "keys/id_rsa": b"needle\n",
}


def make_nasty(root: Path) -> Path:
    """A folder with everything that ever made two searches differ."""
    for name, data in CONTENTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    for name in (b"bad\xff name", b"nfd e\xcc\x81", "\u202e".encode()):
        (root / os.fsdecode(name)).write_bytes(b"needle\n")
    (root / "link").symlink_to("plain.txt")
    (root / "link to folder").symlink_to("src")
    (root / "dangling").symlink_to("nowhere")
    (root / "out").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    with (root / "sparse").open("wb") as file:
        file.truncate(40 * 1024 * 1024)
    return root


def job(root: Path, pattern: str | None = None, **more: object) -> SearchJob:
    return SearchJob(
        **{"root": str(root), "base": (), "glob": None, "limit": 500, "seconds": 60.0, "pattern": pattern}
        | more
    )


async def search_with(ripgrep: Ripgrep | None, wanted: SearchJob) -> SearchOutcome:
    """What one way to search finds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "find_ripgrep", lambda root, path: ripgrep)
        return await run_search(wanted)


def as_nobody(wanted: SearchJob) -> subprocess.CompletedProcess[str]:
    """The same search by a user that may not read everything; for root only."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _AS_NOBODY, repr(wanted)],
        capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


_AS_NOBODY = """
import ctypes, json, os, sys
from dataclasses import asdict, replace
from agentd.workspace import ripgrep_listing
from agentd.workspace.search_job import SearchJob
from agentd.workspace.search_worker import search_for
job = eval(sys.argv[1])
for way in (None, job.ripgrep):  # imports all that each needs, which nobody might not be able to
    list(search_for(replace(job, ripgrep=way)).results())
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
ripgrep_listing._PATIENCE_SECONDS = 30.0
search = search_for(job)
found = list(search.results())
print(json.dumps([found, asdict(search.end)]))
"""
