"""What sub-agents may take: what the user's configuration may say of it."""

from pathlib import Path

import pytest

from agentd.config.settings import Settings, load
from agentd.config.subagent_settings import SubagentSettings


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "config.toml"
    path.write_text(text)
    return load({"AGENTD_CONFIG": str(path)})


def test_each_has_a_budget_and_its_parents_model_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    plain = SubagentSettings(max_turns=50, max_tokens=1_000_000, model=None)
    assert loaded(tmp_path, "").subagents == loaded(tmp_path, "[subagents]").subagents == plain


def test_the_user_chooses_budget_and_model(tmp_path: Path) -> None:
    settings = loaded(tmp_path, '[subagents]\nmax_turns = 5\nmax_tokens = 9000\nmodel = "a/b"\n')
    assert settings.subagents == SubagentSettings(5, 9000, "a/b")
    assert settings.problems == ()
    assert settings.origins["subagents"] == f"{tmp_path / 'config.toml'}:1"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("max_turns = 0", "above 0"),
        ("max_turns = 1.5", "has to be a whole number"),
        ("max_tokens = -1", "above 0"),
        ('model = "small"', 'has to be "provider/model"'),
        ("max_turn = 5", 'did you mean "max_turns"?'),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_does_not_count(
    tmp_path: Path, line: str, words: str
) -> None:
    settings = loaded(tmp_path, f"[subagents]\n{line}\n")
    (problem,) = settings.problems
    assert f"config.toml:2: subagents.{line.split()[0]}: " in problem.message
    assert words in problem.message
    assert settings.subagents == SubagentSettings()
