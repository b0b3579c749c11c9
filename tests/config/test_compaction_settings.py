"""When histories are made shorter by themselves: what the user's configuration may say of it."""

from pathlib import Path

import pytest

from agentd.config.compaction_settings import CompactionSettings
from agentd.config.settings import Settings, load


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "config.toml"
    path.write_text(text)
    return load({"AGENTD_CONFIG": str(path)})


def test_at_most_of_the_window_and_by_itself_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    assert loaded(tmp_path, "").compaction == CompactionSettings(at=0.85, auto=True)
    assert loaded(tmp_path, "[compaction]").compaction == CompactionSettings(at=0.85, auto=True)


def test_the_user_chooses_the_share_and_whether_it_happens_at_all(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "[compaction]\nat = 0.5\nauto = false\n")
    assert settings.compaction == CompactionSettings(at=0.5, auto=False)
    assert settings.problems == ()
    assert settings.origins["compaction"] == f"{tmp_path / 'config.toml'}:1"
    assert loaded(tmp_path, "[compaction]\nat = 1\n").compaction.at == 1.0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("at = 85", "from 0.1 to 1"),
        ("at = 0.01", "from 0.1 to 1"),
        ("at = nan", "nan"),
        ('at = "half"', "has to be a number"),
        ("auto = 1", "has to be true or false"),
        ("att = 0.5", 'did you mean "at"?'),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_does_not_count(
    tmp_path: Path, line: str, words: str
) -> None:
    settings = loaded(tmp_path, f"[compaction]\n{line}\n")
    (problem,) = settings.problems
    assert f"config.toml:2: compaction.{line.split()[0]}: " in problem.message
    assert words in problem.message
    assert settings.compaction == CompactionSettings()
