"""Whom the user trusts: the nearest word counts, nothing too wide does, and no workspace has a say."""

import json
from pathlib import Path

import pytest

from agentd.config.settings import load
from agentd.config.trust import Trust, TrustRefused


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a project in it, apart from where trust is kept."""
    (tmp_path / "home" / "src" / "project" / "sub").mkdir(parents=True)
    return tmp_path / "home"


def trust_of(home: Path, *configured: Path) -> Trust:
    return Trust(home.parent / "data" / "trust.json", configured, home)


def test_nothing_is_trusted_of_itself(home: Path) -> None:
    assert not trust_of(home).trusts(home / "src")


def test_the_nearest_folder_that_was_spoken_of_counts(home: Path) -> None:
    trust = trust_of(home)
    trust.add(home / "src")
    project = home / "src" / "project"
    assert trust.trusts(project / "sub")
    assert trust.trusts(home / "src")
    assert not trust.trusts(home / "src2")
    assert trust.remove(project)
    assert not trust.trusts(project)
    assert not trust.trusts(project / "sub")
    assert trust.trusts(home / "src")
    trust.add(project / "sub")
    assert trust.trusts(project / "sub")
    assert not trust.trusts(project)
    assert trust.remove(home / "src")
    assert not trust.trusts(home / "src")
    assert not trust.remove(home / "src")


def test_a_folder_is_known_by_its_real_path(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home / "src" / "project")
    trust = trust_of(home)
    assert trust.add(link) == home / "src" / "project"
    assert trust.trusts(home / "src" / "project")
    assert not trust.trusts(link), "roots are resolved before they are asked about"
    assert trust.remove(link)
    assert not trust.trusts(home / "src" / "project")


def test_what_is_too_wide_cannot_be_trusted(home: Path) -> None:
    trust = trust_of(home)
    for folder, why in (
        (Path("/"), "everything"),
        (home, "is your home"),
        (home.parent, "home folder is in it"),
    ):
        with pytest.raises(TrustRefused, match=why):
            trust.add(folder)
    with pytest.raises(TrustRefused, match="no folder"):
        trust.add(home / "none")
    path = home.parent / "data" / "trust.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "folders": {"/": True, str(home): True}}))
    path.chmod(0o600)
    assert not trust.trusts(home / "src")
    assert not trust.trusts(home)


def test_the_users_configuration_may_name_folders(home: Path) -> None:
    trust = trust_of(home, home / "src")
    assert trust.trusts(home / "src" / "project")
    assert trust.remove(home / "src" / "project")
    assert not trust.trusts(home / "src" / "project"), "the nearer word"


DAMAGED = [
    "",
    "{}",
    *(f'{{"version": 1, "folders": {folders}}}' for folders in ("[]", '{"/a": 1}', '{"a": true}')),
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_store_trusts_nothing_and_is_a_problem(home: Path, content: str) -> None:
    path = home.parent / "data" / "trust.json"
    path.parent.mkdir()
    path.write_text(content)
    path.chmod(0o600)
    trust = trust_of(home, home / "src")
    assert not trust.trusts(home / "src")
    (problem,) = trust.problems()
    assert (problem.severity, problem.uri) == ("error", path.as_uri())


def test_a_store_inside_the_workspace_does_not_count(home: Path) -> None:
    trust = Trust(home / "src" / "project" / "trust.json", [home / "src"], home.parent / "other")
    trust.add(home / "src")
    assert not trust.trusts(home / "src")
    assert not trust.trusts(home / "src" / "project")
    assert trust.trusts(home / "src" / "project" / "sub")


def test_trusted_folders_of_the_configuration_are_checked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    config = home.parent / "config.toml"
    config.write_text('trusted = [\n  "~/src",\n  "src",\n  "/",\n  "~",\n]\n')
    settings = load({"AGENTD_CONFIG": str(config), "HOME": str(home)})
    assert settings.trusted == (home / "src",)
    said = [problem.message for problem in settings.problems]
    expected = ("absolute", "everything", "home")
    assert [words for words, told in zip(expected, said, strict=True) if words not in told] == []
