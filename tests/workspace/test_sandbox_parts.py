"""The parts that a sandbox is made of, each by itself."""

import struct
from pathlib import Path

import pytest

from agentd.workspace import bpf, bubblewrap, guarded, landlock
from agentd.workspace.guarded import look, repository_folders
from agentd.workspace.policy import Policy

# --- seccomp --------------------------------------------------------------------------------------

ALLOWED, REFUSED, KILLED = 0x7FFF0000, 0x00050001, 0x80000000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SOCKET = {"x86_64": 41, "aarch64": 198}
IO_URING_SETUP, READ = 425, {"x86_64": 0, "aarch64": 63}
UNIX, INET, VSOCK = 1, 2, 40


def verdict(program: bytes, number: int, architecture: int, *arguments: int) -> int:
    """What the kernel would say: classic BPF, as far as these programs use it."""
    code = [struct.unpack_from("HBBI", program, at) for at in range(0, len(program), 8)]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    accumulator = position = 0
    while True:
        operation, if_true, if_false, value = code[position]
        position += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return value
        else:
            is_true = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: accumulator & value}
            position += if_true if is_true[operation] else if_false


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_filter_lets_through_just_the_families_it_says(machine: str) -> None:
    def said(family: int, program: bytes) -> int:
        return verdict(program, SOCKET[machine], AUDIT[machine], family)

    only = bpf.program(only=[UNIX], machine=machine)
    assert [said(family, only) for family in (UNIX, INET, VSOCK)] == [ALLOWED, REFUSED, REFUSED]
    without = bpf.program(without=[UNIX, VSOCK], machine=machine)
    assert [said(family, without) for family in (UNIX, INET, VSOCK)] == [REFUSED, ALLOWED, REFUSED]
    nothing = bpf.program(only=[], machine=machine)
    assert [said(family, nothing) for family in (UNIX, INET, VSOCK)] == [REFUSED] * 3
    assert said((1 << 32) | UNIX, without) == REFUSED  # the kernel looks at the lower half only


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_filter_refuses_what_goes_past_it_and_other_architectures(machine: str) -> None:
    program = bpf.program(machine=machine)
    assert verdict(program, READ[machine], AUDIT[machine]) == ALLOWED
    assert verdict(program, SOCKET[machine], AUDIT[machine], INET) == ALLOWED
    assert verdict(program, IO_URING_SETUP, AUDIT[machine]) == REFUSED
    assert verdict(program, READ[machine], 0x40000003) == KILLED  # i386
    if machine == "x86_64":
        assert verdict(program, 0x40000000 | SOCKET[machine], AUDIT[machine], UNIX) == REFUSED  # x32


MODES = {  # call: its numbers, the arguments before the mode
    "chmod": ({"x86_64": 90}, [0]),
    "fchmod": ({"x86_64": 91, "aarch64": 52}, [3]),
    "fchmodat": ({"x86_64": 268, "aarch64": 53}, [3, 0]),
    "fchmodat2": ({"x86_64": 452, "aarch64": 452}, [3, 0]),
    "creat": ({"x86_64": 85}, [0]),
    "mknod": ({"x86_64": 133}, [0]),
    "mknodat": ({"x86_64": 259, "aarch64": 33}, [3, 0]),
    "open": ({"x86_64": 2}, [0, 0o101]),
    "openat": ({"x86_64": 257, "aarch64": 56}, [3, 0, 0o101]),
    "mkdir": ({"x86_64": 83}, [0]),
    "mkdirat": ({"x86_64": 258, "aarch64": 34}, [3, 0]),
}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("name", MODES)
def test_a_filter_lets_nothing_make_a_program_that_runs_as_its_owner(name: str, machine: str) -> None:
    numbers, before = MODES[name]
    if machine not in numbers:
        return  # it has no such call
    program = bpf.program(machine=machine)

    def said(mode: int, *first: int) -> int:
        return verdict(program, numbers[machine], AUDIT[machine], *(first or before), mode)

    folders = name.startswith("mkdir")
    assert [said(mode) for mode in (0o755, 0o100644, 0o1777)] == [ALLOWED] * 3
    assert [said(mode) for mode in (0o4755, 0o104755, 1 << 32 | 0o4000)] == [
        ALLOWED if folders else REFUSED
    ] * 3
    changes = "chmod" in name
    assert said(0o2775) == (ALLOWED if folders or changes else REFUSED)
    if name.startswith("open"):
        assert said(0o4755, *before[:-1], 0) == ALLOWED  # what stands there means nothing
        assert said(0o4755, *before[:-1], 0o20200000) == REFUSED  # O_TMPFILE


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_openat2_whose_mode_no_filter_sees_is_said_not_to_exist(machine: str) -> None:
    assert verdict(bpf.program(machine=machine), 437, AUDIT[machine]) == 0x00050000 | 38


def test_there_is_no_filter_for_what_is_not_known() -> None:
    assert not bpf.is_known("riscv64")
    with pytest.raises(KeyError):
        bpf.program(machine="riscv64")


# --- landlock -------------------------------------------------------------------------------------


def test_what_is_hidden_is_left_out_by_granting_its_neighbours(tmp_path: Path) -> None:
    for name in ("a/keep", "a/secret", "b/deep/secret", "b/deep/keep", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/secret")
    hidden = [tmp_path / "a" / "secret", tmp_path / "b" / "deep" / "secret", Path("/elsewhere")]
    granted = {str(path.relative_to(tmp_path)) for path in landlock.readable(tmp_path, hidden)}
    assert granted == {"a/keep", "b/deep/keep", "c"}
    assert list(landlock.readable(tmp_path, [])) == [tmp_path]
    assert list(landlock.readable(tmp_path, [tmp_path])) == []


@pytest.mark.parametrize(("abi", "size", "handles_devices"), [(4, 16, False), (5, 16, True), (7, 24, True)])
def test_the_attribute_is_that_of_the_kernels_version(abi: int, size: int, handles_devices: bool) -> None:
    attribute = landlock.jail(Policy(), abi)["landlock"]["attribute"].encode("latin-1")
    assert len(attribute) == size
    rights, network = struct.unpack_from("QQ", attribute)
    assert (bool(rights & 1 << 15), network) == (handles_devices, 3)
    opened = landlock.jail(Policy(network=True), abi)["landlock"]["attribute"].encode("latin-1")
    assert struct.unpack_from("QQ", opened)[1] == 0


def test_what_an_older_kernel_leaves_open_is_said() -> None:
    assert landlock.gaps(6) == landlock.GAPS
    assert landlock.gaps(5) == (*landlock.GAPS, *landlock.OLDER_GAPS)


# --- bubblewrap -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_root", [True, False])
def test_no_capability_is_ever_kept(is_root: bool) -> None:
    line = bubblewrap.command_line(Path("/bwrap"), Policy(), ["x"], Path("/"), user_namespace=not is_root)
    assert line[1:3] == ["--cap-drop", "ALL"]
    assert "--cap-add" not in line
    assert ("--unshare-user" in line) is not is_root
    for namespace in ("pid", "ipc", "uts", "net"):
        assert f"--unshare-{namespace}" in line
    assert line[-2:] == ["--", "x"]


# --- what is looked for ---------------------------------------------------------------------------


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


def names(root: Path, paths: set[Path]) -> set[str]:
    return {str(path.relative_to(root)) for path in paths}


def test_a_look_finds_repositories_settings_and_secrets(tmp_path: Path) -> None:
    make(tmp_path, ".git/", ".vscode/", "a/.vscode/", "a/b/nested/.git/config", "a/c/.hg/", ".mcp.json")
    make(
        tmp_path,
        ".env",
        ".env.example",
        "a/.env.local",
        "conf/server.key",
        "a/.aws/credentials",
        "id_rsa.pub",
    )
    found = look(tmp_path)
    assert found.complete
    assert names(tmp_path, found.protected) == {".git", ".vscode", ".mcp.json", "a/b/nested/.git", "a/c/.hg"}
    assert names(tmp_path, found.pinned) == {"a", "a/b", "a/b/nested", "a/c", "conf"}
    assert names(tmp_path, found.secrets) == {".env", "a/.env.local", "conf/server.key", "a/.aws"}


def test_what_tools_install_is_passed_over_and_a_folder_is_no_secret_file(tmp_path: Path) -> None:
    make(tmp_path, "node_modules/x/.env", ".venv/lib/site-packages/certifi/cacert.pem", ".env/bin/python")
    assert look(tmp_path).secrets == set()


def test_a_look_is_bounded_and_sees_what_lies_above_first(tmp_path: Path) -> None:
    make(tmp_path, *(f"a/{number}" for number in range(50)), "z/.env", ".env")
    found = look(tmp_path, most=20)
    assert not found.complete
    assert names(tmp_path, found.secrets) == {".env"}


def test_a_folder_is_looked_at_whole_however_much_somebody_has_put_before(tmp_path: Path) -> None:
    make(tmp_path, *(f"!{number}" for number in range(50)), ".env", ".git/", "z/.env")
    found = look(tmp_path, most=20)
    assert (names(tmp_path, found.secrets), names(tmp_path, found.protected)) == ({".env"}, {".git"})


def test_one_full_folder_keeps_no_other_from_being_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "_MOST_OF_ONE", 10)
    make(tmp_path, *(f"!/{number}" for number in range(50)), "z/.env", "zz/x/.git/")
    found = look(tmp_path, most=20)
    assert (names(tmp_path, found.secrets), names(tmp_path, found.protected)) == ({"z/.env"}, {"zz/x/.git"})


def test_a_look_follows_no_links_and_waits_for_nothing(tmp_path: Path) -> None:
    import os

    outside, root = tmp_path / "outside", tmp_path / "root"
    make(outside, ".env")
    root.mkdir()
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(".")
    os.mkfifo(root / ".git")
    found = look(root)
    assert (found.secrets, names(root, found.protected)) == (set(), {".git"})


def test_a_pointer_leads_to_the_folders_of_its_repository(tmp_path: Path) -> None:
    make(tmp_path, "main/.git/worktrees/w/commondir", "w/")
    (tmp_path / "w" / ".git").write_text("gitdir: ../main/.git/worktrees/w\n")
    (tmp_path / "main/.git/worktrees/w/commondir").write_text("../..\n")
    found = look(tmp_path / "w")
    assert names(tmp_path, found.outside) == {"main/.git/worktrees/w", "main/.git"}
    assert names(tmp_path, look(tmp_path).protected) == {"main/.git", "main/.git/worktrees/w", "w/.git"}
    (tmp_path / "w" / ".git").write_text("gitdir: ..\n")
    assert look(tmp_path / "w").outside == set()  # around the workspace: no repository of its own
    (tmp_path / "w" / ".git").write_text("nonsense")
    assert list(repository_folders(tmp_path / "w" / ".git")) == []


@pytest.mark.parametrize("folder", ["own ", "a\nb", "own\t"])
def test_a_pointer_is_read_as_git_reads_it(folder: str, tmp_path: Path) -> None:
    make(tmp_path, f"{folder}/", "own/", "a/")
    (tmp_path / ".git").write_text(f"gitdir: {folder}\n")
    assert names(tmp_path, look(tmp_path).protected) == {".git", folder}


def test_a_pointer_to_what_is_no_path_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"gitdir: a\0b\n")
    assert names(tmp_path, look(tmp_path).protected) == {".git"}
