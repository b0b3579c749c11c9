"""Output that is too long for the model: where it is, what is in it, and who may read it."""

import os
import resource
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from shell_calls import ShellCalls, details, said

from agentd.protocol.messages import ReadDetails
from agentd.tools.base import ToolResult
from agentd.workspace import spills
from agentd.workspace.paths import OutsideWorkspace
from agentd.workspace.process import Processes

LONG = "seq 100000"


def spill_of(result: ToolResult) -> Path:
    uri = details(result).spill_uri
    assert uri is not None
    path = Path(unquote(urlsplit(uri).path))
    assert f"{path} (read_file and search_files take this path)]" in said(result)
    return path


async def test_output_that_is_shown_whole_is_kept_nowhere(shell: ShellCalls):
    result = await shell.run("seq 9000")
    assert not details(result).truncated
    assert details(result).spill_uri is None
    assert "read_file" not in said(result)
    assert shell.shell.spills.folder is None


async def test_output_that_is_cut_is_whole_in_a_file_for_its_owner(shell: ShellCalls):
    path = spill_of(await shell.run(LONG + "; printf last"))
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 100_001)) + "last"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


async def test_the_file_holds_what_the_model_would_have_seen(shell: ShellCalls):
    path = spill_of(await shell.run(rf"printf '\e[1mbold\e[m 1%%\r2%%\n'; {LONG}; printf '\xff\n'"))
    assert path.read_text().startswith("bold 2%\n1\n2\n")
    assert path.read_text().endswith("100000\n\N{REPLACEMENT CHARACTER}\n")


async def test_output_of_a_command_that_ran_out_of_time_is_kept(shell: ShellCalls):
    path = spill_of(await shell.run(f"{LONG}; sleep 300", timeout_ms=4000))
    assert path.read_text().endswith("\n100000\n")


async def test_read_file_reads_any_part_of_it(shell: ShellCalls):
    path = str(spill_of(await shell.run(LONG)))
    text = said(await shell.call("read_file", file_path=path, offset=99_000, limit=2))
    assert "(100000 lines total, showing 99001-99002)" in text
    assert text.endswith("99001 | 99001\n99002 | 99002\n(998 more lines; continue with offset=99002)")
    last = await shell.call("read_file", file_path=path, offset=99_999)
    assert said(last).endswith("100000 | 100000")
    assert isinstance(last.details, ReadDetails)
    assert (last.details.start_line, last.details.total_lines) == (100_000, 100_000)
    assert "showing none" in said(await shell.call("read_file", file_path=path, offset=100_000))
    assert "showing 1-" in said(await shell.call("read_file", file_path=path))


async def test_read_file_reads_one_endless_line(shell: ShellCalls):
    path = str(spill_of(await shell.run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")))
    text = said(await shell.call("read_file", file_path=path))
    assert "(2 lines total, showing 1-2)" in text
    assert "... (truncated)\n" in text
    assert text.endswith("2 | end")


async def test_search_files_searches_it(shell: ShellCalls):
    path = str(spill_of(await shell.run(LONG)))
    text = said(await shell.call("search_files", path=path, pattern="^77777$"))
    assert text == "output-1.txt:77777: 77777"


@pytest.mark.parametrize("name", ["read_file", "search_files"])
async def test_nothing_else_outside_the_workspace_is_readable(shell: ShellCalls, tmp_path: Path, name: str):
    path = spill_of(await shell.run(LONG))
    (path.parent / "other.txt").write_text("not a spill\n")
    (path.parent.parent / "other").mkdir()
    (path.parent.parent / "other" / path.name).write_text("another session's\n")
    refused = (
        path.parent / "other.txt",
        path.parent,
        path.parent.parent / "other" / path.name,
        f"{path.parent}/./other.txt",
        f"{path}/../other.txt",
        path.parent / "output-2.txt",
        "/etc/passwd",
    )
    field = {"read_file": "file_path", "search_files": "path"}[name]
    for given in refused:
        with pytest.raises(OutsideWorkspace):
            await shell.call(
                name, **{"pattern": "a"} if name == "search_files" else {}, **{field: str(given)}
            )


async def test_another_session_cannot_read_it(shell: ShellCalls, tmp_path: Path):
    path = spill_of(await shell.run(LONG))
    async with Processes() as processes:
        other = ShellCalls(processes, tmp_path, path.parent.parent)
        spill_of(await other.run(LONG))
        with pytest.raises(OutsideWorkspace):
            await other.call("read_file", file_path=str(path))
        await other.shell.close()


async def test_what_a_command_puts_in_its_place_is_not_read(shell: ShellCalls, tmp_path: Path):
    (tmp_path / "target").write_text("canary\n")
    for replace in ("ln -sf", "ln -f"):
        path = spill_of(await shell.run(LONG))
        await shell.run(f"{replace} $PWD/target {path}")
        result = await shell.call("read_file", file_path=str(path))
        assert result.is_error
        assert said(result) == f"The output in {path} is not kept any more. Run it again."


async def test_files_go_with_the_session(shell: ShellCalls):
    path = spill_of(await shell.run(LONG))
    await shell.shell.close()
    assert not path.parent.exists()
    with pytest.raises(OutsideWorkspace):
        await shell.call("read_file", file_path=str(path))
    assert details(await shell.run(LONG)).spill_uri is None


async def test_the_file_ends_at_its_cap_and_the_command_does_not(
    shell: ShellCalls, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spills, "FILE_BYTES", 1_000_000)
    result = await shell.run("seq 1000000; echo end")
    path = spill_of(result)
    assert path.stat().st_size == 1_000_000
    assert "\nend\n" in said(result)
    assert "[the first 64 MB of the output: " in said(result)


async def test_the_oldest_files_go_when_a_session_has_too_many(
    shell: ShellCalls, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(spills, "SESSION_BYTES", 1_500_000)
    first, second, third = [spill_of(await shell.run(LONG)) for _ in range(3)]
    assert (first.exists(), second.exists(), third.exists()) == (False, True, True)
    with pytest.raises(OutsideWorkspace):
        await shell.call("read_file", file_path=str(first))


async def test_a_full_disk_stops_no_command_and_is_told(shell: ShellCalls):
    """The limit on file sizes stands for the disk: its refusal comes in the middle of a write as well."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        result = await shell.run(LONG + " | cat; echo end")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not result.is_error
    assert said(result).endswith("\nend\n[the whole output could not be kept in a file: File too large]")
    assert details(result).spill_uri is None
    assert shell.shell.spills.folder is not None
    assert list(shell.shell.spills.folder.iterdir()) == [], "half a file only takes the room that is missing"
    assert spill_of(await shell.run(LONG)).exists(), "the next one is kept again"


async def test_a_folder_that_cannot_be_made_is_told(shell: ShellCalls, tmp_path: Path):
    async with Processes() as processes:
        (tmp_path / "file").touch()
        other = ShellCalls(processes, tmp_path, tmp_path / "file" / "output")
        assert "could not be kept in a file: Not a directory]" in said(await other.run(LONG))


async def test_search_files_searches_all_of_the_largest_file_that_is_kept(shell: ShellCalls):
    path = spill_of(await shell.run(f"{LONG}; yes 'a line of some length, with é' | head -c 70000000"))
    assert path.stat().st_size == spills.FILE_BYTES
    with path.open("r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.write(b"\nlast\r\nthe needle\n")
    text = said(await shell.call("search_files", path=str(path), pattern="^the needle$", context=1))
    number = 1 + path.read_bytes()[:-20].count(b"\n") + 2
    assert text.splitlines()[:2] == [f"output-1.txt-{number - 1}- last", f"output-1.txt:{number}: the needle"]
    cut = said(await shell.call("search_files", path=str(path), pattern="é", limit=3))
    assert cut.endswith("(cut after 3 matches, there are more; narrow the pattern, path or glob)")
