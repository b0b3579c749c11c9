"""`kill -9` at each step of moving, removing and going back: a file is always somewhere, and whole."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from wire.processes import DEADLINE

from agentd.workspace.swapping import _system_call

needs_renameat2 = pytest.mark.skipif(_system_call() is None, reason="needs renameat2(2)")

# Does one thing in a fork that is killed before or behind its n-th call of the system, for all n until it
# ends by itself; looks at the files then, has a later daemon sweep and settle, looks again, and rewinds.
_KILLER = """
import json, os, shutil, signal, sys
from pathlib import Path
from agentd.workspace import files, replacing, restoring, swapping
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.paths import resolve
from agentd.workspace.prompt_checkpoint import PromptCheckpoint
from agentd.workspace.wants import wanted
from agentd.workspace.write_notes import WriteNotes

base, act, has_renameat2 = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "renameat2"
TEXT = b"what must not be lost\\n"
has_attributes = hasattr(os, "setxattr")
rename_call = swapping._system_call() if has_renameat2 else None
swapping._system_call = lambda: rename_call


class Work:
    def __init__(self, number, when):
        self.root = base / f"{number}-{when}"
        self.root.mkdir(parents=True)
        self.notes = base / f"notes-{number}-{when}"
        self.journal = base / f"{number}-{when}.jsonl"
        self.journal.touch()
        (self.root / "sub").mkdir()
        self.file = self.root / "sub/f"
        self.file.write_bytes(TEXT)
        self.file.chmod(0o640)
        os.link(self.file, self.root / "other")
        if has_attributes:
            try:
                os.setxattr(self.file, "user.mine", b"1")
            except OSError:
                pass
        self.inode = self.file.stat().st_ino

    @property
    def checkpoints(self):
        return Checkpoints.beside(self.journal)

    def place(self, name):
        return resolve(self.root, name)

    def changing(self, name, before, after):
        return PromptCheckpoint(self.checkpoints, "p").changing(self.place(name), before, after)

    def remove(self):
        before = files.read(self.place("sub/f"))
        with self.changing("sub/f", before, None):
            files.remove(self.place("sub/f"), before, WriteNotes(self.notes))

    def remove_under_another(self):
        "Another program writes to it in the last moment."
        looks = replacing._is_unchanged
        def late(*given):
            found = looks(*given)
            with open(self.file, "ab") as file:
                file.write(b"theirs")
            return found
        replacing._is_unchanged = late
        try:
            self.remove()
        except files.WorkspaceError:
            pass

    def move(self):
        before = files.read(self.place("sub/f"))
        new = self.place("new/g")
        with self.changing("new/g", None, before.data), self.changing("sub/f", before, None):
            files.move(self.place("sub/f"), new, before)

    def rewind(self):
        checkpoints = self.checkpoints
        wants = wanted(checkpoints.changes(), {"p"})
        steps = restoring.plan(checkpoints, self.root, wants, ())
        assert not any(step.conflict for step in steps), steps
        if steps:
            restoring.restore(checkpoints, "r", steps, WriteNotes(self.notes))
            checkpoints.end_rewind()

    def look(self):
        found = {}
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                name = "(aside)" if path.name.endswith(".agentd~") else str(path.relative_to(self.root))
                status = path.stat()
                same = status.st_ino == self.inode
                found[name] = [path.read_bytes().decode(), status.st_mode & 0o777, same]
        return found


def killed_at(work, step, when):
    "Whether the step came."
    child = os.fork()
    if not child:
        count = 0
        def dying(call):
            def called(*given, **named):
                nonlocal count
                count += 1
                if count == step and when == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
                result = call(*given, **named)
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result
            return called
        for name in ("rename", "link", "unlink", "fsync", "write", "mkdir", "rmdir", "symlink"):
            setattr(os, name, dying(getattr(os, name)))
        if rename_call is not None:
            late = dying(rename_call)
            swapping._system_call = lambda: late
        try:
            getattr(work, act)()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


told, step, goes_on = [], 1, True
while goes_on:
    for when in ("before", "behind"):
        work = Work(step, when)
        if act == "rewind":
            work.move()
        goes_on = killed_at(work, step, when)
        killed = work.look()
        WriteNotes(work.notes).sweep()
        restoring.settle(work.checkpoints, work.root, (), WriteNotes())
        swept = work.look()
        if act != "remove_under_another":
            work.rewind()
        told.append({"when": f"{when} {step}", "killed": killed, "swept": swept, "rewound": work.look()})
    step += 1
print(json.dumps(told))
"""

TEXT = "what must not be lost\n"
Seen = dict[str, Any]


def killed(tmp_path: Path, act: str, how: str = "renameat2") -> list[Seen]:
    done = subprocess.run(
        [sys.executable, "-c", _KILLER, str(tmp_path / "w"), act, how],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=20 * DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    found: list[Seen] = json.loads(done.stdout)
    assert len(found) > 10, "no kill hit anything"
    return found


def content(found: Seen) -> str | None:
    """What a look found of the file, under whatever name but its second one."""
    said: set[str | None] = {each[0] for name, each in found.items() if name != "other"}
    (only,) = said or {None}
    return only


def test_a_removal_that_is_killed_is_done_or_not_and_a_rewind_brings_the_file_back(tmp_path: Path) -> None:
    looks = killed(tmp_path, "remove")
    assert any("(aside)" in each["killed"] for each in looks), "no kill hit the moment between"
    for each in looks:
        assert content(each["swept"]) in (TEXT, None), each
        assert set(each["swept"]) <= {"sub/f", "other"}, each
        assert each["swept"].get("sub/f", [TEXT, 0o640, True]) == [TEXT, 0o640, True], each
        assert each["rewound"]["sub/f"][:2] == [TEXT, 0o640], each
    assert {bool(content(each["swept"])) for each in looks} == {True, False}


def test_what_another_program_wrote_to_it_in_the_last_moment_outlives_the_kill(tmp_path: Path) -> None:
    for each in killed(tmp_path, "remove_under_another"):
        assert each["swept"]["sub/f"] in ([TEXT, 0o640, True], [TEXT + "theirs", 0o640, True]), each
        assert "(aside)" not in each["swept"], each


@pytest.mark.parametrize("how", [pytest.param("renameat2", marks=needs_renameat2), "plain"])
def test_a_move_that_is_killed_leaves_the_file_under_a_name_and_a_rewind_under_the_old_one(
    tmp_path: Path, how: str
) -> None:
    for each in killed(tmp_path, "move", how):
        assert content(each["killed"]) == TEXT, each
        assert "(aside)" not in each["killed"], each
        assert each["rewound"]["sub/f"] == [TEXT, 0o640, True], each
        assert set(each["rewound"]) == {"sub/f", "other"}, each


@pytest.mark.parametrize("how", [pytest.param("renameat2", marks=needs_renameat2), "plain"])
def test_a_rewind_of_a_move_that_is_killed_is_taken_back_and_done_again(tmp_path: Path, how: str) -> None:
    for each in killed(tmp_path, "rewind", how):
        assert content(each["killed"]) == content(each["swept"]) == TEXT, each
        assert each["rewound"]["sub/f"] == [TEXT, 0o640, True], each
        assert set(each["rewound"]) == {"sub/f", "other"}, each
