"""What a command finds in the sandbox: real commands in real sandboxes."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from living import all_gone, new_mark
from sandboxes import BACKENDS, PYTHON, ground

from agentd.config.sandbox_settings import Wanted
from agentd.workspace import guarded
from agentd.workspace.command import SpawnError
from agentd.workspace.enclosure import SandboxError
from agentd.workspace.jail import spawner
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

GIT = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

both = pytest.mark.parametrize("backend", BACKENDS)


def git(*arguments: str | Path) -> None:
    subprocess.run(["git", *map(str, arguments)], env=GIT, check=True, capture_output=True)


def repository(path: Path) -> Path:
    """A repository with one commit."""
    git("init", "-q", path)
    commit = ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "--allow-empty", "-qm", "first")
    git("-C", path, *commit)
    return path


# --- what can be written --------------------------------------------------------------------------


@both
async def test_the_workspace_can_be_written_to_and_nothing_beside_it(tmp_path: Path, backend: Wanted) -> None:
    async with ground(tmp_path, backend) as made:
        await made.said("mkdir -p a/b && echo text > a/b/file && mv a/b/file a/other && chmod 600 a/other")
        assert (made.root / "a" / "other").read_text() == "text\n"
        for place in (made.home / "file", "/etc/agentd-test", "/usr/agentd-test"):
            assert (await made.run(f"echo x > {place}")).exit_code == 1
            assert not Path(place).exists()


@both
async def test_tools_that_keep_and_change_modes_work_and_none_sets_setuid(
    tmp_path: Path, backend: Wanted
) -> None:
    async with ground(tmp_path, backend) as made:
        work = (
            "mkdir -p a/b && echo text > a/b/file && chmod 750 a/b/file && touch -d @1000 a/b/file",
            "cp -p a/b/file copy && cp -a a c && stat -c %a%Y copy c/b/file",
            "tar cf t.tar a && mkdir t && tar xpf t.tar -C t && stat -c %a t/a/b/file",
            "install -m 711 copy i && mkdir -m 2775 shared && chmod g+s a && chmod +t a",
            "stat -c %a shared a",
            "git init -q --shared g && stat -c %a g/.git/objects",
            f'{PYTHON} -c \'import zipfile, shutil; shutil.copy2("copy", "copied")\' && stat -c %a copied',
        )
        said = await made.said(" && ".join(work))
        assert said.splitlines() == ["7501000", "7501000", "750", "2775", "3755", "2775", "750"]
        for command in ("chmod u+s copy", "chmod 4755 copy", "chmod 6755 copy", "install -m 4755 copy s"):
            result = await made.run(command)
            assert result.exit_code == 1, command
            assert "Operation not permitted" in result.text
        assert not any(path.stat().st_mode & 0o4000 for path in made.root.rglob("*") if path.is_file())


@both
async def test_the_temporary_folder_lasts_from_command_to_command_and_ends_with_the_daemon(
    tmp_path: Path, backend: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    async with ground(tmp_path, backend) as made:
        inside = await made.said("echo kept > $TMPDIR/file; echo $TMPDIR")
        python = f"{PYTHON} -c 'import tempfile; print(tempfile.gettempdir())'"
        assert await made.said(f"cat $TMPDIR/file; {python}") == f"kept\n{inside}"
        (folder,) = place.iterdir()
        assert (folder / "file").read_text() == "kept\n"
    assert list(place.iterdir()) == []


@both
async def test_builds_find_a_cache_that_they_can_write_to(tmp_path: Path, backend: Wanted) -> None:
    names = ("XDG_CACHE_HOME", "PIP_CACHE_DIR", "GOCACHE", "npm_config_cache", "UV_CACHE_DIR")
    async with ground(tmp_path, backend) as made:
        for name in names:
            await made.said(f'mkdir -p "${name}/x" && touch "${name}/x/file"', GOCACHE="/var/cache/go")
    home_cache = tmp_path / "home" / ".cache"
    home_cache.mkdir()
    async with ground(tmp_path, backend, writable=(home_cache,)) as made:
        assert await made.said("touch ~/.cache/file; echo $XDG_CACHE_HOME") == ""
        assert (home_cache / "file").exists()


@both
async def test_the_users_configuration_opens_more_folders_but_not_their_repositories(
    tmp_path: Path, backend: Wanted
) -> None:
    other = tmp_path / "other"
    repository(other)
    async with ground(tmp_path, backend, writable=(other, tmp_path / "missing", Path("/"))) as made:
        await made.said(f"touch {other}/file")
        assert (await made.run(f"touch {made.home}/file")).exit_code == 1
        assert (await made.run(f"touch {other}/.git/file")).exit_code == (1 if backend == "bubblewrap" else 0)


@pytest.mark.parametrize("root", ["/", "/proc", "/sys/kernel", "/dev"])
async def test_the_system_itself_is_no_workspace(tmp_path: Path, root: str) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        with pytest.raises(SandboxError, match="the system itself"):
            await made.sandbox.enclose(Path(root))


async def test_a_workspace_inside_what_is_hidden_is_still_there(tmp_path: Path) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        inside = made.own / "project"
        inside.mkdir()
        (made.own / "session").write_text("hunter2")
        assert await made.said("touch file; ls ..", root=inside) == "project"
        assert (inside / "file").exists()


async def test_what_is_hidden_inside_of_what_is_hidden_breaks_no_command(tmp_path: Path) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        kept, gone = made.own / "project", made.own / "sessions" / ".aws"
        for path in (kept / ".aws", gone, made.home / ".docker" / "data"):
            path.mkdir(parents=True)
        more = [gone.parent, gone, made.home / ".docker" / "data", kept / ".aws"]
        made.sandbox = Sandbox(made.processes, own=[made.own, *more], home=made.home)
        assert await made.said("ls -A; ls ..; ls -A ~/.docker; ls -A .aws", root=kept) == ".aws\nproject"
        made.sandbox.close()


@both
async def test_what_shells_do_with_descriptors_works(tmp_path: Path, backend: Wanted) -> None:
    async with ground(tmp_path, backend) as made:
        command = "cat <(echo one); echo two > /dev/stdout; echo three | cat /dev/stdin; cat <<< four"
        assert await made.said(command) == "one\ntwo\nthree\nfour"


# --- what is protected ----------------------------------------------------------------------------


async def test_git_reads_a_repository_that_it_cannot_change(tmp_path: Path) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        repository(made.root)
        assert (
            await made.said("git log --format=%s && touch new && git status --porcelain") == "first\n?? new"
        )
        result = await made.run("git commit --allow-empty -m second")
        assert result.exit_code != 0
        assert "Read-only file system" in result.text


@pytest.mark.parametrize("target", ["real", "../elsewhere"])
async def test_a_git_folder_behind_a_link_is_protected_where_it_is(tmp_path: Path, target: str) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        repository(made.root)
        where = Path(os.path.normpath(made.root / target))
        (made.root / ".git").rename(where)
        (made.root / ".git").symlink_to(target)
        assert await made.said("git log --format=%s") == "first"
        for path in (".git/config", f"{where}/config", ".git/hooks/x"):
            assert (await made.run(f"echo x >> {path}")).exit_code == 1


@both
async def test_a_link_to_nowhere_in_a_protected_or_secret_place_breaks_no_command(
    tmp_path: Path, backend: Wanted
) -> None:
    async with ground(tmp_path, backend) as made:
        for link in (made.root / ".git", made.root / ".env", made.root / ".vscode", made.home / ".ssh"):
            link.symlink_to("nowhere")
        (made.root / "loop").symlink_to("loop")
        assert await made.said("echo fine") == "fine"


async def test_the_workspace_of_a_worktree_finds_its_repository_and_cannot_change_it(tmp_path: Path) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        main = repository(made.home / "main")
        made.root.rmdir()
        git("-C", main, "worktree", "add", "-q", made.root)
        assert await made.said("git log --format=%s") == "first"
        folder = await made.said("git rev-parse --absolute-git-dir")
        for path in (".git", f"{folder}/commondir", f"{main}/.git/config"):
            assert (await made.run(f"echo x >> {path}")).exit_code == 1


async def test_the_workspace_may_be_a_part_of_a_repository(tmp_path: Path) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        repository(made.root)
        part = made.root / "part"
        part.mkdir()
        assert await made.said("touch file && git status --porcelain -unormal", root=part) == "?? part/"
        assert (await made.run("touch ../.git/file ../file", root=part)).exit_code == 1


@both
async def test_missing_names_are_not_made_and_told_when_a_command_makes_them(
    tmp_path: Path, backend: Wanted
) -> None:
    async with ground(tmp_path, backend) as made:
        result, changed = await made.run_and_look("ls -A")
        assert (result.text, changed) == ("", [])
        assert list(made.root.iterdir()) == []
        _, changed = await made.run_and_look(
            "git init -q sub/deep; mkdir .vscode; echo x > .mcp.json; ln -s x .git"
        )
        assert changed[:4] == [".git", ".mcp.json", ".vscode", "sub/deep/.git"]
        _, changed = await made.run_and_look("echo x > file")
        assert changed == []


@both
async def test_replacing_a_link_that_is_protected_is_told(tmp_path: Path, backend: Wanted) -> None:
    async with ground(tmp_path, backend) as made:
        repository(made.root / "real")
        (made.root / ".git").symlink_to("real/.git")
        _, changed = await made.run_and_look("ln -sfn other .git")
        assert ".git" in changed


async def test_changes_that_landlock_cannot_prevent_are_told(tmp_path: Path) -> None:
    async with ground(tmp_path, "landlock") as made:
        repository(made.root)
        (made.root / ".vscode").mkdir()
        (made.root / ".vscode" / "tasks.json").write_text("{}")
        command = "echo '[alias]' >> .git/config; echo x > .git/hooks/pre-push; echo 1 > .vscode/tasks.json"
        _, changed = await made.run_and_look(command)
        assert changed == [".git/config", ".git/hooks/pre-push", ".vscode/tasks.json"]
        _, changed = await made.run_and_look("chmod +x .git/hooks/pre-push")
        assert changed == [".git/hooks/pre-push"]


# --- what is hidden -------------------------------------------------------------------------------


async def test_secrets_are_hidden_also_behind_links(tmp_path: Path) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        (made.root / "plain.txt").write_text("hunter2")
        (made.root / ".env").symlink_to("plain.txt")
        (made.home / "keys").mkdir()
        (made.home / "keys" / "id").write_text("hunter2")
        (made.home / ".ssh").symlink_to("keys")
        (made.home / "id_rsa").write_text("hunter2")
        (made.own / "session").write_text("hunter2")
        for path in (".env", "plain.txt", "~/.ssh/id", "~/keys/id", "~/id_rsa", f"{made.own}/session"):
            result = await made.run(f"cat {path}")
            assert (result.exit_code, "hunter2" in result.text) == (1, False), path


async def test_landlock_hides_the_secrets_of_the_home_folder(tmp_path: Path) -> None:
    async with ground(tmp_path, "landlock") as made:
        (made.home / ".ssh").mkdir()
        (made.home / ".ssh" / "id").write_text("hunter2")
        (made.home / ".netrc").write_text("hunter2")
        (made.home / "notes").write_text("notes")
        assert await made.said("cat ~/notes") == "notes"
        for path in ("~/.ssh/id", "~/.netrc"):
            assert "Permission denied" in (await made.run(f"cat {path}")).text


@contextmanager
def listening(address: str) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        yield


def connecting(address: str) -> str:
    code = f"import socket; socket.socket(socket.AF_UNIX).connect({address!r}); print('reached')"
    return f"{PYTHON} -c {code!r}"


async def test_sockets_of_docker_agents_and_the_session_bus_are_out_of_reach(tmp_path: Path) -> None:
    """Stand-ins where those sockets are. The one below /run needs root to make."""
    async with ground(tmp_path, "bubblewrap") as made:
        (made.home / ".docker").mkdir()
        places = [
            str(made.home / ".docker" / "s"),
            f"/tmp/agentd-test-{os.getpid()}",
            f"\0agentd-{os.getpid()}",
        ]
        if os.access("/run", os.W_OK):
            places.append(f"/run/agentd-test-{os.getpid()}")
        for place in places:
            with listening(place):
                assert "reached" not in (await made.run(connecting(place))).text, place
            if place.startswith("/"):
                Path(place).unlink()


@both
@pytest.mark.parametrize("allowed", [True, False])
async def test_sockets_with_a_path_can_be_denied(tmp_path: Path, backend: Wanted, allowed: bool) -> None:
    async with ground(tmp_path, backend, unix_sockets=allowed) as made:
        with listening(str(made.root / "socket")):
            result = await made.run(connecting("socket"))
            assert ("reached" in result.text, "PermissionError" in result.text) == (allowed, not allowed)


# --- network --------------------------------------------------------------------------------------

SERVE_AND_CONNECT = f"""{PYTHON} -c "
import socket
server = socket.create_server(('127.0.0.1', 0))
print('reached', bool(socket.create_connection(server.getsockname())))
" """


async def test_servers_for_tests_work_inside(tmp_path: Path) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        assert await made.said(SERVE_AND_CONNECT) == "reached True"


@both
@pytest.mark.parametrize("network", [True, False])
async def test_the_network_is_there_where_the_user_opens_it(
    tmp_path: Path, backend: Wanted, network: bool
) -> None:
    async with ground(tmp_path, backend, network=network) as made:
        with socket.create_server(("127.0.0.1", 0)) as server:
            result = await made.run(f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached")
            assert ("reached" in result.text) == network


# --- how commands end -----------------------------------------------------------------------------


@both
async def test_exit_codes_pass_through(tmp_path: Path, backend: Wanted) -> None:
    async with ground(tmp_path, backend) as made:
        assert (await made.run("exit 7")).exit_code == 7
        killed = await made.run("kill -KILL $$")
        assert (killed.exit_code, killed.signal) == (
            (137, None) if backend == "bubblewrap" else (None, "SIGKILL")
        )


@both
async def test_a_command_that_runs_out_of_time_may_clean_up_and_leaves_nothing(
    tmp_path: Path, backend: Wanted
) -> None:
    async with ground(tmp_path, backend) as made:
        mark = new_mark()
        command = 'trap "echo cleaned > done; exit" TERM; setsid -f sleep 300; sleep 300 & wait'
        result = await made.run(command, timeout=1.5, MARK=mark)
        assert result.timed_out
        assert (made.root / "done").read_text() == "cleaned\n"
        assert all_gone(mark)


@both
async def test_a_cancelled_command_leaves_nothing(tmp_path: Path, backend: Wanted) -> None:
    async with ground(tmp_path, backend) as made:
        mark = new_mark()
        with anyio.move_on_after(2) as scope:
            await made.run("setsid -f sh -c 'trap \"\" TERM; sleep 300'; sleep 300", MARK=mark)
        assert scope.cancelled_caught
        assert all_gone(mark)


async def test_a_jail_that_cannot_be_set_up_runs_nothing(tmp_path: Path) -> None:
    jails = ({"landlock": {"attribute": "\xff" * 24, "rules": []}}, {"filter": "\xff" * 8}, {"filter": ""})
    async with Processes() as processes:
        for jail in jails:
            with pytest.raises(SpawnError, match="the sandbox cannot be set up"):
                await processes.run(
                    ["touch", "made"], cwd=tmp_path, env={"PATH": os.defpath}, timeout=10, jail=jail
                )
        with pytest.raises(SpawnError, match="no such program"):
            await processes.run(["/missing"], cwd=tmp_path, env={}, timeout=10, jail={})
    assert list(tmp_path.iterdir()) == []


@both
async def test_nothing_of_the_wardens_is_open_in_a_command(tmp_path: Path, backend: Wanted) -> None:
    async with ground(tmp_path, backend) as made:
        listed = await made.said("ls /proc/self/fd")
        assert listed.split() == ["0", "1", "2", "3"]  # the last is the folder being listed
        assert await made.said("grep -E '^(SigBlk|SigIgn|NoNewPrivs)' /proc/self/status") == (
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nNoNewPrivs:\t1"
        )


@both
async def test_a_descriptor_that_the_command_is_given_stays_open(tmp_path: Path, backend: Wanted) -> None:
    async with ground(tmp_path, backend) as made:
        enclosure = await made.sandbox.enclose(made.root)
        jailed = enclosure.wrap(["/bin/sh", "-c", "echo aside >&9"], made.root, {"PATH": os.defpath})
        assert jailed.jail is not None
        read_end, write_end = os.pipe()
        pid = spawner(jailed.jail)(
            os.fsencode(jailed.argv[0]),
            [os.fsencode(each) for each in jailed.argv],
            {os.fsencode(name): os.fsencode(value) for name, value in jailed.env.items()},
            file_actions=[(os.POSIX_SPAWN_DUP2, write_end, 9)],
        )
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            assert pipe.read() == "aside\n"
        await anyio.to_thread.run_sync(os.waitpid, pid, 0)


if sys.platform != "linux":
    pytest.skip("the sandbox is for Linux", allow_module_level=True)


# --- where agentd itself lies in the workspace ----------------------------------------------------


async def test_commands_cannot_change_the_agentd_that_is_installed_in_the_workspace(tmp_path: Path) -> None:
    async with ground(tmp_path, "bubblewrap") as made:
        made.program.mkdir(parents=True)
        (made.program / "warden.py").write_text("as it was\n")
        assert await made.said("cat tools/env/warden.py") == "as it was"
        for attack in (
            "echo x > tools/env/warden.py",
            "touch tools/env/sitecustomize.py",
            "rm -rf tools/env",
            "mv tools/env tools/e",
            "mv tools t",
        ):
            assert (await made.run(attack)).exit_code != 0, attack
        await made.said("touch tools/file")
        assert [path.name for path in made.program.iterdir()] == ["warden.py"]
        assert (made.program / "warden.py").read_text() == "as it was\n"


async def test_where_agentd_lies_in_the_workspace_landlock_is_no_sandbox(tmp_path: Path) -> None:
    async with ground(tmp_path, "landlock") as made:
        await made.said("echo works")
        made.program.mkdir(parents=True)
        with pytest.raises(SandboxError, match="agentd itself lies in"):
            await made.run("echo works")


# --- commands that prepare the ground for the next one --------------------------------------------


async def test_what_was_closed_stays_closed_however_many_names_a_command_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded.look, "__defaults__", (30,))
    async with ground(tmp_path, "bubblewrap") as made:
        repository(made.root / "z" / "nested")
        (made.root / "z" / ".env").write_text("secret")
        assert (await made.run("cat z/.env")).exit_code == 1
        await made.said("for i in $(seq 40); do mkdir -p a/$i; done")
        assert not guarded.look(made.root).complete
        for attack in ("cat z/.env", "echo x >> z/nested/.git/config", "mv z y"):
            assert (await made.run(attack)).exit_code == 1, attack


async def test_a_folder_that_holds_a_secret_keeps_its_name_while_a_command_runs(tmp_path: Path) -> None:
    """Else a command in the background could move it away while the next one's secrets are being hidden."""
    async with ground(tmp_path, "bubblewrap") as made:
        (made.root / "conf" / "deep").mkdir(parents=True)
        (made.root / "conf" / "deep" / ".env").write_text("secret")
        for attack in ("mv conf moved", "mv conf/deep moved"):
            assert (await made.run(attack)).exit_code == 1, attack
        await made.said("touch conf/deep/file && mv conf/deep/file conf/deep/other")
