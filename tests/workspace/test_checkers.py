"""Checkers: run as configured, and what each of the known formats says."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agentd.config.checker_settings import Checker, Format
from agentd.workspace.checkers import CheckerError, check
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest_asyncio.fixture
async def processes() -> AsyncIterator[Processes]:
    async with Processes() as processes:
        yield processes


def prints(text: str, form: Format, code: int = 0) -> Checker:
    program = f"import sys; sys.stdout.write({text!r}); sys.exit({code})"
    return Checker("it", (sys.executable, "-c", program), form, 20)


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
    ],
)
async def test_a_checker_that_fails_says_why(
    processes: Processes, tmp_path: Path, checker: Checker, why: str
) -> None:
    with pytest.raises(CheckerError, match=why):
        await check(checker, tmp_path, ENVIRONMENT, processes, None)


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
