"""`agentd trust` and `agentd permissions`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

AGENTD = [sys.executable, "-P", "-m", "agentd"]
DEADLINE = 60


class User:
    """Somebody with a home folder, a project in it, and nothing else."""

    def __init__(self, path: Path) -> None:
        self.home = path / "home"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        (path / "config.toml").touch()
        self.config = path / "config.toml"
        self._env = {
            **os.environ,
            "HOME": str(self.home),
            "AGENTD_CONFIG": str(self.config),
            "AGENTD_DATA": str(path / "data"),
            "AGENTD_MODEL": "",
        }

    def run(self, *arguments: object) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        done = subprocess.run(
            [*AGENTD, *map(str, arguments)],
            env=self._env,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(Path(os.path.realpath(tmp_path)))


def test_trust_is_added_listed_and_removed(user: User) -> None:
    assert user.run("trust") == (0, "", "")
    assert user.run("trust", "add", ".") == (0, f"Trusted: {user.project}\n", "")
    user.config.write_text(f"trusted = [{json.dumps(str(user.home / 'src'))}]\n")
    _, out, _ = user.run("trust", "list")
    assert re.findall(r"(\S+) +trusted +(.+)", out) == [
        (str(user.project), "agentd trust"),
        (str(user.home / "src"), "configuration"),
    ]
    _, out, _ = user.run("trust", "list", "--json")
    assert json.loads(out)[0] == {"folder": str(user.project), "trusted": True, "by": "agentd trust"}
    assert user.run("trust", "remove", ".") == (0, "No longer trusted: .\n", "")
    assert user.run("trust", "remove", ".")[::2] == (1, "agentd: . was not trusted.\n")


@pytest.mark.parametrize(
    ("folder", "why"), [("/", "everything"), ("~", "home folder"), ("/none", "no folder")]
)
def test_what_cannot_be_trusted_is_refused_with_the_reason(user: User, folder: str, why: str) -> None:
    code, out, err = user.run("trust", "add", user.home if folder == "~" else folder)
    assert (code, out) == (1, "")
    assert why in err
    assert user.run("trust")[1] == ""


@pytest.mark.parametrize("arguments", [["trust", "add"], ["trust", "list", "x"], ["trust", "x"],
                                       ["permissions", "revoke"], ["permissions", "list", "x"],
                                       ["permissions", "allow", "ls; rm"], ["permissions", "allow", "sudo *"],
                                       ["permissions", "allow", "cat .env"],
                                       ["permissions", "-C", "/none"]])  # fmt: skip
def test_wrong_usage_is_exit_code_2(user: User, arguments: list[str]) -> None:
    code, out, err = user.run(*arguments)
    assert (code, out) == (2, "")
    assert err


def test_a_damaged_store_is_told(user: User) -> None:
    user.run("trust", "add", ".")
    (path,) = (user.home.parent / "data").glob("trust.json")
    path.write_text("{")
    code, out, _ = user.run("doctor")
    assert (code, "Repair it or remove it" in out) == (1, True)
    for arguments in (["trust"], ["trust", "add", "."], ["trust", "remove", "."]):
        code, out, err = user.run(*arguments)
        assert (code, out) == (1, "")
        assert "Repair it or remove it" in err


def test_rules_are_made_listed_and_revoked(user: User) -> None:
    assert user.run("permissions") == (0, "", "")
    code, out, _ = user.run("permissions", "allow", "git log")
    assert (code, out.partition(": ")[2]) == (0, "git log with reading options\n")
    assert user.run("permissions", "allow", "--user", "make *")[0] == 0
    _, out, _ = user.run("permissions", "list")
    rows = re.findall(r"^(\S+) +(workspace|user) +bash +(.+)$", out, re.MULTILINE)
    assert [row[1:] for row in rows] == [
        ("workspace", "git log with reading options"),
        ("user", "make with any words behind it"),
    ]
    _, out, _ = user.run("permissions", "-C", user.home, "--json")
    assert [rule["scope"] for rule in json.loads(out)["rules"]] == ["user"]
    code, out, _ = user.run("permissions", "revoke", rows[0][0])
    assert (code, len(out.splitlines())) == (0, 1)
    code, _, err = user.run("permissions", "revoke", rows[0][0])
    assert code == 1
    assert "there is no rule" in err


@pytest.mark.parametrize("place", range(3))
def test_an_option_may_stand_anywhere(user: User, place: int) -> None:
    words = ["permissions", "allow", "make"]
    words.insert(place + 1, "--user")
    assert user.run(*words)[0] == 0
    assert re.search("^\\S+ +user ", user.run("permissions")[1])


def test_rules_that_are_damaged_are_no_empty_list(user: User) -> None:
    assert user.run("permissions", "allow", "git log")[0] == 0
    (file,) = (user.config.parent / "data" / "permissions").glob("*.json")
    file.write_text("{")
    code, out, err = user.run("permissions")
    assert (code, out, str(file) in err) == (1, "", True)
    code, out, _ = user.run("doctor")
    assert (code, str(file) in out) == (1, True)


@pytest.mark.parametrize("broken", ["config", "workspace"])
def test_a_configuration_that_cannot_be_understood_has_every_command_asked_about(
    user: User, tmp_path: Path, broken: str
) -> None:
    script = tmp_path / "script.json"
    call = {"type": "tool_call", "name": "bash", "arguments": {"command": "npm test"}}
    script.write_text(json.dumps([{"content": [call]}, {"content": [{"type": "text", "text": "Done."}]}]))
    assert user.run("trust", "add", ".")[0] == 0
    assert user.run("permissions", "allow", "npm test")[0] == 0
    assert "Refused" not in user.run("run", "go", "-m", f"scripted/{script}")[2]
    (user.project / ".agentd").mkdir()
    file = user.config if broken == "config" else user.project / ".agentd" / "config.toml"
    file.write_text('[permissions]\ndeny = ["npm"]\nask = \n')
    _, _, err = user.run("run", "go", "-m", f"scripted/{script}")
    assert f"{file}:3: is no valid TOML" in err
    assert "nothing in it counts, and every command is asked about, but in mode full" in err
    assert "Refused: npm test." in err
