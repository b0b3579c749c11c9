"""What the README shows runs as it stands."""

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


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


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


def test_the_example_of_rules_is_one_without_problems(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    (example,) = [block for block in blocks("toml") if "[permissions]" in block]
    config.write_text(example)
    settings = load({"AGENTD_CONFIG": str(config)})
    assert settings.problems == ()
    rules = settings.permissions
    assert (len(rules.deny), len(rules.ask), len(rules.allow)) == (2, 1, 2)


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


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_two_commands_are_those_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    commands = [line for block in blocks("sh") for line in block.splitlines() if "-m venv" in line]
    assert commands == [
        "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/agentd demo",
        "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest",
    ]
    assert project["scripts"] == {"agentd": "agentd.boot:main"}
    assert "dev" in project["optional-dependencies"]
