"""What the README and the pages behind it show runs as it stands."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import agentd
from agentd.config.settings import load

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "agentd/agent/README.md",
        "agentd/config/README.md",
        "agentd/permissions/README.md",
        "editors/README.md",
    )
]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What `#` in a link can lead to: the headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(Path(agentd.__file__).parent / "demo_project", folder)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    config = tmp_path / "config.toml"
    config.touch()
    command = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": command,
        "AGENTD_CONFIG": str(config),
        "AGENTD_DATA": str(tmp_path / "data"),
    }


def run(code: str, project: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_client_example_edits_the_file_and_is_refused_the_command(
    project: Path, environment: dict[str, str]
) -> None:
    before = (project / "calculator.py").read_text()
    printed = run(blocks("python")[0], project, environment)
    assert "stop after 6 turns" in printed
    assert (project / "calculator.py").read_text() != before


def test_the_raw_frame_example_gets_its_answer(project: Path, environment: dict[str, str]) -> None:
    lines = run(blocks("python")[1], project, environment).splitlines()
    assert lines[0] == "response"
    assert lines[1:3] == ["session_changed", "agent_start"]
    assert lines[-2:] == ["agent_end", "stop"]


def test_the_configuration_example_is_one_without_problems(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(blocks("toml")[0])
    settings = load({"AGENTD_CONFIG": str(config)})
    assert settings.problems == ()
    assert settings.model == "local/qwen3-coder"
    assert settings.providers["local"].models["qwen3-coder"].max_output == 8192


def test_every_example_of_configuration_is_one_without_problems(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    seen = set()
    for page in PAGES[:-1]:  # an editor's own configuration is not agentd's
        for block in blocks("toml", page.read_text("utf-8")):
            alone = "[providers.local]" not in block and "providers.local" in block
            server = '[providers.local]\napi = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n'
            config.write_text(server + block if alone else block)
            assert load({"AGENTD_CONFIG": str(config)}).problems == (), block
            seen |= tomllib.loads(block).keys()
    assert seen >= {"providers", "permissions", "sandbox", "environment", "compaction", "checkpoints"}
    assert seen >= {"subagents", "checkers", "retention_days"}


def test_the_example_of_a_command_is_one_without_problems(tmp_path: Path) -> None:
    from agentd.agent.commands import Commands

    (tmp_path / "commands").mkdir()
    (example,) = blocks("markdown", (ROOT / "agentd/agent/README.md").read_text("utf-8"))
    (tmp_path / "commands/review.md").write_text(example)
    command = Commands(tmp_path / "project", tmp_path, trusted=False).find("review")
    assert (command.description, command.mode, command.problems) == ("Review a change", "plan", ())


def test_the_readme_names_every_tool_and_no_other() -> None:
    from agentd.tools.builtin import builtin_tools
    from agentd.tools.skill import with_skills
    from agentd.workspace.process import Processes

    section = README.split("## Tools")[1].split("##")[0]
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert named == {tool.name for tool in with_skills(builtin_tools(Processes())).tools}


def test_the_readme_names_every_built_in_provider_and_no_other() -> None:
    from agentd.config.builtin import BUILT_IN

    said = README.split("Built in are ")[1].split(" Their usual variables")[0]
    assert re.findall(r"`(\w+)`", said) == list(BUILT_IN)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def test_the_two_commands_are_those_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    commands = [line for block in blocks("sh") for line in block.splitlines() if "-m venv" in line]
    assert commands == [
        "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/agentd demo",
        "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest",
    ]
    assert project["scripts"] == {"agentd": "agentd.boot:main"}
    assert "dev" in project["optional-dependencies"]
