"""The table `[sandbox]` of the configuration."""

from pathlib import Path

import pytest

from agentd.config.sandbox_settings import SandboxSettings
from agentd.config.settings import Settings, load


def settings(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return load({"AGENTD_CONFIG": str(file)})


def test_without_a_table_everything_is_closed(tmp_path: Path) -> None:
    assert settings(tmp_path, "").sandbox == SandboxSettings(False, True, (), "auto")


def test_what_the_table_says_is_in_force(tmp_path: Path) -> None:
    said = 'network = true\nunix_sockets = "deny"\nwritable = ["/srv", "~/.cargo"]\nbackend = "landlock"'
    loaded = settings(tmp_path, f"[sandbox]\n{said}\n")
    assert loaded.problems == ()
    assert loaded.sandbox == SandboxSettings(True, False, (Path("/srv"), Path.home() / ".cargo"), "landlock")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('network = "yes"', "sandbox.network: has to be true or false, not a string"),
        ('unix_sockets = "denied"', 'sandbox.unix_sockets: "denied" is not known (did you mean "deny"?)'),
        (
            'writable = ["relative"]',
            'sandbox.writable: "relative" has to be an absolute path',
        ),
        ('writable = ["/"]', 'sandbox.writable: "/" is everything there is'),
        ('writable = "/srv"', "sandbox.writable: has to be an array, not a string"),
        ('backend = "docker"', 'sandbox.backend: "docker" is not known'),
        ("disabled = true", "sandbox.disabled: is no known key"),
    ],
)
def test_what_is_wrong_is_told_and_opens_nothing(tmp_path: Path, line: str, complaint: str) -> None:
    loaded = settings(tmp_path, f"[sandbox]\n{line}\n")
    (problem,) = loaded.problems
    assert complaint in problem.message
    closed = loaded.sandbox
    assert (closed.network, closed.writable, closed.backend) == (False, (), "auto")
    assert closed.unix_sockets == ("unix_sockets" not in line)


def test_what_is_no_table_is_told(tmp_path: Path) -> None:
    loaded = settings(tmp_path, "sandbox = false\n")
    assert loaded.sandbox == SandboxSettings()
    assert "sandbox: has to be a table, not true or false" in loaded.problems[0].message
