"""Checkers: run as configured, and what each of the known formats says."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from wire.processes import is_alive

from agentd.config.checker_settings import Checker, Format
from agentd.tools.findings import listed
from agentd.workspace.checkers import CheckerError, check
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox
from agentd.workspace.spills import Spills

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest_asyncio.fixture
async def processes() -> AsyncIterator[Processes]:
    async with Processes() as processes:
        yield processes


def prints(text: str, form: Format, code: int = 0) -> Checker:
    program = f"import sys; sys.stdout.write({text!r}); sys.exit({code})"
    return Checker("it", (sys.executable, "-c", program), form, 20)


def shell(program: str, timeout_s: int = 20) -> Checker:
    return Checker("it", ("sh", "-c", program), "gnu", timeout_s)


RUFF = json.dumps(
    [{"filename": "/w/a.py", "location": {"row": 3, "column": 7}, "message": "unused", "code": "F401"}]
)
_UNUSED = {"line": 3, "column": 7, "severity": 2, "message": "unused", "ruleId": "F401"}
ESLINT = json.dumps([{"filePath": "a.py", "messages": [_UNUSED]}])


@pytest.mark.parametrize(
    ("form", "text", "told"),
    [
        ("ruff", "All good\n" + RUFF.replace("/w/", ""), ("a.py", 2, 6, "unused", 1, "F401")),
        ("eslint", ESLINT, ("a.py", 2, 6, "unused", 1, "F401")),
        ("tsc", "a.ts(3,7): error TS2304: Cannot find.\n", ("a.ts", 2, 6, "Cannot find.", 1, "TS2304")),
        ("gnu", "src/a.c:3:7: warning: odd\n", ("src/a.c", 2, 6, "odd", 2, None)),
        ("gnu", "a.py:3: error: no column\nFound 1 error\n", ("a.py", 2, 0, "no column", 1, None)),
        ("gnu", "a.py:3:7: E501 too long\n", ("a.py", 2, 6, "E501 too long", 1, None)),
        (
            "ruff",
            "warning: `[tool.ruff]` is odd, [1] too, and `select = []`:\n"
            + RUFF.replace("/w/", "")
            + "\n[end]",
            ("a.py", 2, 6, "unused", 1, "F401"),
        ),
    ],
)
async def test_a_known_format_is_understood(
    processes: Processes, tmp_path: Path, form: Format, text: str, told: tuple[object, ...]
) -> None:
    root = tmp_path.resolve()
    found = await check(prints(text, form, 1), root, ENVIRONMENT, processes, None)
    ((path, (one,)),) = found.items()
    start = one.range.start
    name = path.relative_to(root).as_posix()
    assert (name, start.line, start.character, one.message, one.severity, one.code) == told
    assert one.source == "it"


@pytest.mark.parametrize(
    ("form", "text"), [("ruff", "[]"), ("eslint", "[]"), ("tsc", ""), ("gnu", "Success\n")]
)
async def test_nothing_wrong_is_nothing(
    processes: Processes, tmp_path: Path, form: Format, text: str
) -> None:
    assert await check(prints(text, form), tmp_path, ENVIRONMENT, processes, None) == {}


@pytest.mark.parametrize(
    ("checker", "why"),
    [
        (
            prints("Traceback: broken\n", "ruff", 2),
            "exit code 2, and what it printed is not what was expected",
        ),
        (prints('[{"odd": 1}]', "eslint", 1), "is not what was expected"),
        (prints("config is missing\n", "tsc", 1), "config is missing"),
        (prints("[" * 40_000, "ruff", 1), "is not what was expected"),
        (prints(RUFF.replace("/w/a.py", "a\\u0000b"), "ruff", 1), "is not what was expected"),
        (prints(RUFF.replace("3", '"3"'), "ruff", 1), "is not what was expected"),
        (Checker("it", ("no-such-program-here",), "gnu"), "it did not run"),
        (Checker("it", ("sleep", "30"), "gnu", 1), "it was stopped after 1 s"),
        (Checker("it", ("head", "-c", "200000", "/dev/zero"), "gnu"), "more than can be read"),
        (prints("", "gnu", 1), "it ended with exit code 1 and printed nothing"),
        (prints("", "ruff"), "it ended with exit code 0 and printed nothing"),
        (prints("null", "ruff"), "is not what was expected"),
        (prints("[1, 2]", "eslint"), "is not what was expected"),
        (prints('[{"location": {"row": 1e400}}]', "ruff"), "is not what was expected"),
        (prints(RUFF.replace("3", "9" * 5000), "ruff"), "is not what was expected"),
        (prints(RUFF.replace("/w/", "\\ud800"), "ruff", 1), "is not what was expected"),
        (shell("echo a.c:1:1: error: x; kill -SEGV $$"), "it was ended by SIGSEGV"),
        (shell("echo a.c:1:1: error: x; exit 139"), "it was ended by SIGSEGV"),
        (shell("printf 'a.c:1:1: error: x\\n'; exec sleep 300", 1), "it was stopped after 1 s"),
        (shell("head -c 100000000 /dev/zero | tr '\\0' x; sleep 300", 2), "it was stopped after 2 s"),
    ],
)
async def test_a_checker_that_fails_says_why(
    processes: Processes, tmp_path: Path, checker: Checker, why: str
) -> None:
    with pytest.raises(CheckerError, match=why):
        await check(checker, tmp_path, ENVIRONMENT, processes, None)


async def test_100_mb_of_output_are_not_read(processes: Processes, tmp_path: Path) -> None:
    spill = Spills(tmp_path / "spills").new()
    much = shell("head -c 100000000 /dev/zero | tr '\\0' x", 60)
    with pytest.raises(CheckerError, match="it printed more than can be read"):
        await check(much, tmp_path, ENVIRONMENT, processes, None, spill)


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (b"a.c:7:99999999: error: beyond the line\n", ("a.c", 6, 99999998, "beyond the line")),
        (b"a.c:0:0: error: before the first\n", ("a.c", 0, 0, "before the first")),
        (b"a.c:1:1: error: \xff\xfe\n", ("a.c", 0, 0, "\ufffd\ufffd")),
        (b"../../../etc/passwd:1:1: error: outside\n", (None, 0, 0, "outside")),
        (b"/etc/passwd:1:1: error: outside\n", (None, 0, 0, "outside")),
        (b"link/x:1:1: error: outside\n", (None, 0, 0, "outside")),
        (b"\x1b]52;c;AAAA\x07a.c:1:1: error: an escape \x1b[31m\n", ("a.c", 0, 0, "an escape")),
    ],
)
async def test_what_is_odd_in_a_line_harms_nobody(
    processes: Processes, tmp_path: Path, printed: bytes, found: tuple[str | None, int, int, str]
) -> None:
    root = tmp_path.resolve()
    (root / "link").symlink_to("/etc")
    program = f"import sys; sys.stdout.buffer.write({printed!r})"
    checker = Checker("it", (sys.executable, "-c", program), "gnu", 20)
    told = await check(checker, root, ENVIRONMENT, processes, None)
    ((path, (one,)),) = told.items()
    name = str(path.relative_to(root)) if path.is_relative_to(root) else None
    assert (name, one.range.start.line, one.range.start.character, one.message) == found
    assert len(listed(told, root, 1000)[0]) == (name is not None), "the model is told of the workspace only"


async def test_what_a_checker_leaves_running_is_ended_with_it(processes: Processes, tmp_path: Path) -> None:
    leaves = shell("setsid sleep 300 & echo $! > pid; echo a.c:1:1: error: x")
    assert len(await check(leaves, tmp_path, ENVIRONMENT, processes, None)) == 1
    assert not is_alive(int((tmp_path / "pid").read_text()))


async def test_a_checker_runs_in_the_sandbox_where_there_is_one(
    processes: Processes, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox = Sandbox(processes)
    outside = tmp_path_factory.mktemp("outside").resolve() / "made"
    works = (await sandbox.status()).works
    program = f"touch {outside}; touch inside; echo a.c:1:1: error: x"
    checker = Checker("it", ("sh", "-c", program), "gnu")
    try:
        assert len(await check(checker, tmp_path.resolve(), ENVIRONMENT, processes, sandbox)) == 1
    finally:
        sandbox.close()
    assert (tmp_path / "inside").exists()
    assert outside.exists() is not works


@pytest.mark.parametrize(
    ("form", "module", "arguments", "told"),
    [
        ("ruff", "ruff", ("check", "--output-format", "json", "--isolated", "--select", "F"), ("F401", 0)),
        ("gnu", "mypy", (".",), (None, 1)),
    ],
)
async def test_real_checkers_are_understood(
    processes: Processes,
    tmp_path: Path,
    form: Format,
    module: str,
    arguments: tuple[str, ...],
    told: tuple[str | None, int],
) -> None:
    root = tmp_path.resolve()
    (root / "a.py").write_text("import os\nx: int = ''\n")
    checker = Checker(module, (sys.executable, "-m", module, *arguments), form)
    environment = {**ENVIRONMENT, "HOME": str(root)}
    found = await check(checker, root, environment, processes, None)
    assert list(found) == [root / "a.py"]
    assert [(each.code, each.range.start.line) for each in found[root / "a.py"]] == [told]
    (root / "a.py").write_text("x = 1\n")
    assert await check(checker, root, environment, processes, None) == {}
