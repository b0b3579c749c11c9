"""What a model is told of skills: their names, in bounds, always in the same order."""

from pathlib import Path

from agentd.agent.skills import MAX_BYTES, catalogue
from agentd.workspace.skills import Owner, Skill


def skill(name: str, owner: Owner = "user", description: str = "For work.") -> Skill:
    return Skill(name, description, owner, Path("/x") / name, name)


def test_no_skills_add_not_a_byte() -> None:
    assert catalogue(()) == ""


def test_the_users_and_the_projects_are_told_apart() -> None:
    text = catalogue((skill("mine"), skill("theirs", "project")))
    assert text.index("user's own") < text.index("- mine: For work.") < text.index("not the user's word")
    assert text.endswith("- theirs: For work.")


def test_many_long_descriptions_are_cut_all_alike_and_every_name_stays() -> None:
    skills = [skill(f"s{n}", description="é" * 1000) for n in range(100)]
    text = catalogue(skills)
    assert len(text.encode()) <= MAX_BYTES
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(lines) == 100
    assert len({len(line.partition(": ")[2]) for line in lines}) == 1


def test_more_names_than_have_room_are_counted() -> None:
    text = catalogue([skill(f"{'n' * 50}{n}") for n in range(800)])
    assert len(text.encode()) <= MAX_BYTES
    assert "more are not listed" in text
