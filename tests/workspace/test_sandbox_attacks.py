"""What attacks come to in each sandbox: 44 attacks from inside, and a look at the world afterwards.

As the user who runs the tests and, where that is root, as another one too.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from agentd.workspace import bubblewrap, landlock

ATTACKED = Path(__file__).with_name("attacked.py")
NOBODY = 65534

# attack: what comes of it without a sandbox, in bubblewrap's, in Landlock's. Where root and another user
# differ, root's outcome comes first.
TABLE = """
write_outside                                      worked         EROFS         EACCES
append_outside                                     worked         EROFS         EACCES
truncate_outside                                   worked         EROFS         EACCES
create_outside                                     worked         EROFS         EACCES
make_a_folder_outside                              worked         EROFS         EACCES
link_outside                                       worked         EROFS         EACCES
unlink_outside                                     worked         EROFS         EACCES
rename_to_outside                                  worked         EXDEV         EACCES
rename_from_outside                                worked         EXDEV         EACCES
write_through_a_symlink                            worked         EROFS         EACCES
write_through_a_hard_link                          worked         EXDEV         EXDEV
change_mode_outside                                worked         EROFS         worked
change_times_outside                               worked         EROFS         worked
set_an_attribute_outside                           worked         EROFS         worked
write_the_profile                                  worked         EROFS         EACCES
leave_a_file_in_shared_memory                      worked         worked        EACCES
write_git_config                                   worked         EROFS         worked
write_a_git_hook                                   worked         EROFS         worked
point_git_elsewhere                                worked         EROFS         worked
write_the_hook_of_a_nested_repository              worked         EROFS         worked
replace_a_nested_repository                        worked         EBUSY         worked
replace_a_folder_above_a_nested_repository         worked         EBUSY         worked
write_the_pointer_of_a_worktree                    worked         EROFS         worked
replace_the_pointer_of_a_worktree                  worked         EBUSY         worked
write_the_editors_tasks                            worked         EROFS         worked
read_a_private_key                                 worked         ENOENT        EACCES
read_cloud_credentials                             worked         ENOENT        EACCES
read_the_sessions_of_agentd                        worked         ENOENT        EACCES
read_a_secret_of_the_workspace                     worked         EACCES        worked
read_a_secret_of_the_workspace_by_another_name     worked         EBUSY         worked
connect_by_tcp                                     worked         ECONNREFUSED  EPERM
send_by_udp                                        worked         worked        EPERM
connect_to_a_socket_with_a_path                    worked         worked        worked
connect_to_a_socket_with_a_name                    worked         ECONNREFUSED  EPERM
open_a_socket_to_the_virtual_machines_host         worked         EPERM         EPERM
signal_the_daemon                                  worked         ESRCH         EPERM
read_the_daemons_environment                       worked/EACCES  ENOENT        EACCES
open_the_daemons_memory                            worked/EACCES  ENOENT        EACCES
trace_the_daemon                                   worked/EPERM   ESRCH         EPERM
write_a_setting_of_the_kernel                      worked/EACCES  EROFS         EACCES
use_io_uring                                       worked         EPERM         EPERM
make_everything_writable                           worked/EPERM   EPERM         EPERM
take_the_protection_off_in_a_namespace_of_its_own  worked         EROFS         worked
leave_a_program_that_runs_as_its_owner             worked         EPERM         EPERM
"""
COLUMNS = ("none", "bubblewrap", "landlock")
AFTERWARDS = {  # what Landlock leaves open is what `landlock.GAPS` says
    "the world outside is as it was": {"none": False, "bubblewrap": True, "landlock": False},
    "a datagram has arrived": {"none": True, "bubblewrap": False, "landlock": False},
    "git of the host has run a program": {"none": True, "bubblewrap": False, "landlock": True},
    "the user's folder has files that nobody made": {"none": [], "bubblewrap": [], "landlock": []},
}


def golden(backend: str, is_root: bool) -> dict[str, str]:
    rows = [line.split() for line in TABLE.strip().splitlines()]
    column = COLUMNS.index(backend) + 1
    return {row[0]: row[column].split("/")[0 if is_root else -1] for row in rows}


def lacking(backend: str) -> str | None:
    if sys.platform != "linux":
        return "the sandbox is for Linux"
    if backend == "bubblewrap" and not list(bubblewrap.programs()):
        return "bubblewrap is not installed"
    if backend == "landlock" and landlock.version() < 6:
        return f"this kernel has Landlock {landlock.version()}, and the table is that of 6 and later"
    return None


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place that other users reach, which pytest's own is not."""
    path = Path(tempfile.mkdtemp(prefix="agentd-attacks-"))
    path.chmod(0o755)
    yield path
    rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("user", ["own", "other"])
@pytest.mark.parametrize("backend", COLUMNS)
def test_attacks_come_to_what_the_table_says(folder: Path, backend: str, user: str) -> None:
    if (reason := lacking(backend)) is not None:
        pytest.skip(reason)
    if user == "other" and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if user == "other" and not os.path.exists("/usr/bin/python3"):
        pytest.skip("there is no interpreter that another user surely may execute")
    uid = NOBODY if user == "other" else os.geteuid()
    os.chown(folder, uid, -1)
    found = attacked(backend, uid, folder)
    is_root = uid == 0
    expected = golden(backend, is_root)
    assert len(expected) == 44
    if backend == "none" and not is_root:  # may another process of one's own be looked into? Systems differ
        for name in ("read_the_daemons_environment", "open_the_daemons_memory", "trace_the_daemon"):
            expected[name] = found["attacks"][name]
    assert found.pop("attacks") == expected
    reported = found.pop("reported")
    assert found == {name: each[backend] for name, each in AFTERWARDS.items()}
    if backend == "landlock":
        settings = {".git/config", ".git/hooks/post-index-change", ".git/commondir", ".vscode/tasks.json"}
        assert settings | {"tree/.git", "a/b/nested/.git"} <= set(reported)
    else:
        assert reported == []


def attacked(backend: str, uid: int, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(ATTACKED), backend, str(uid), str(folder)],
        env={**os.environ, "CANARY": "hidden"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result
