"""Which skills are found, and what the user is told of those that are not."""

import os
from pathlib import Path

import pytest
from fakes.skill_files import put, raw

from agentd.workspace.skills import MAX_BYTES, MAX_SKILLS, SkillFolders, Skills


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def users(tmp_path: Path) -> Path:
    folder = tmp_path / "config" / "skills"
    folder.mkdir(parents=True)
    return folder


def find(root: Path, *users: Path) -> Skills:
    return SkillFolders(users).find(root)


def messages(found: Skills, *, trusted: bool = True) -> list[str]:
    return [problem.message for problem in found.problems(trusted=trusted)]


def test_skills_of_the_user_and_of_all_places_of_a_workspace_are_found_by_name(
    root: Path, users: Path, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    put(users, "zoo")
    put(shared, "ant")
    put(root / ".claude/skills", "cat")
    put(root / ".agents/skills", "dog")
    put(root / ".agentd/skills", "bee")
    found = find(root, users, shared)
    assert [skill.name for skill in found.users] == ["ant", "zoo"]
    assert [(skill.name, skill.shown) for skill in found.projects] == [
        ("bee", ".agentd/skills/bee"),
        ("cat", ".claude/skills/cat"),
        ("dog", ".agents/skills/dog"),
    ]
    assert found.projects[0].description == "Use it for bee."
    assert messages(found) == []


def test_without_a_folder_or_a_workspace_there_are_none(root: Path, users: Path) -> None:
    put(users, "zoo")
    assert find(root, users / "missing") == Skills()
    assert [skill.name for skill in SkillFolders((users,)).find(None).users] == ["zoo"]


def test_an_untrusted_workspaces_skills_are_not_loadable_and_one_line_says_so(
    root: Path, users: Path
) -> None:
    put(users, "mine")
    put(root / ".agents/skills", "theirs")
    raw(root / ".agents/skills", "broken", "nothing")
    found = find(root, users)
    assert [skill.name for skill in found.loadable(trusted=False)] == ["mine"]
    assert [skill.name for skill in found.loadable(trusted=True)] == ["mine", "theirs"]
    assert messages(found, trusted=False) == [
        "1 skill of the workspace: not loaded, as the workspace is not trusted."
    ]


def test_of_two_of_one_name_the_users_goes_first_then_agentds_own_place(root: Path, users: Path) -> None:
    put(users, "pdf", description="mine")
    put(root / ".claude/skills", "pdf", description="theirs")
    put(root / ".claude/skills", "csv", description="later")
    put(root / ".agentd/skills", "csv", description="first")
    found = find(root, users)
    assert [skill.description for skill in found.loadable(trusted=True)] == ["mine", "first"]
    assert len(messages(found)) == 2
    assert all("has the same name" in each for each in messages(found))
    assert found.projects_problems[0].uri == (root / ".claude/skills/csv/SKILL.md").as_uri()


def test_two_ways_to_one_folder_are_no_collision(root: Path) -> None:
    put(root / ".agents/skills", "pdf")
    (root / ".claude").mkdir()
    (root / ".claude/skills").symlink_to("../.agents/skills")
    found = find(root)
    assert [skill.shown for skill in found.projects] == [".agents/skills/pdf"]
    assert messages(found) == []


GOOD = "---\nname: x\ndescription: d\n---\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin with front matter"),
        ("# Just text\n", "does not begin with front matter"),
        ("---\n---\n", "does not begin with front matter"),
        ("---\nname: x\ndescription: d\n", "not closed"),
        ('---\nname: "x\n---\n', "no YAML"),
        ("---\n- a\n- b\n---\n", "key: value"),
        ("---\nname: x\n---\n", 'no "description"'),
        ("---\ndescription: d\n---\n", 'no "name"'),
        ("---\nname: 7\ndescription: d\n---\n", '"name" has to be text'),
        ("---\nname: x\ndescription: ''\n---\n", '"description" has to be text'),
        ("---\nname: x\ndescription: [a]\n---\n", '"description" has to be text'),
        ("---\nname: ../x\ndescription: d\n---\n", "has to be 1 to 64"),
        ("---\nname: y\ndescription: d\n---\n", '"y" is not that of its folder, "x"'),
        (GOOD.encode() + b"caf\xe9", "not UTF-8"),
        (GOOD + "x" * MAX_BYTES, "larger than 64 KB"),
        ("---\nname: &a x\ndescription: *a\n---\n", "aliases"),
        ("---\nname: !!python/name:os.system x\ndescription: d\n---\n", "no kind of value"),
    ],
)
def test_a_broken_file_is_a_problem_that_names_it_and_stands_in_no_others_way(
    root: Path, users: Path, text: str | bytes, why: str
) -> None:
    put(root / ".agentd/skills", "good")
    folder = raw(root / ".agentd/skills", "x", text)
    found = find(root, users)
    assert [skill.name for skill in found.projects] == ["good"]
    (problem,) = found.projects_problems
    assert problem.message.startswith(f"{folder / 'SKILL.md'} is not loaded: ")
    assert why in problem.message
    assert (problem.severity, problem.uri) == ("warning", (folder / "SKILL.md").as_uri())


def test_a_problem_says_in_which_line(root: Path) -> None:
    raw(root / ".agentd/skills", "x", '---\nname: x\ndescription: "a\n---\n')
    assert find(root).projects_problems[0].line in (2, 3)


def test_what_is_no_file_is_a_problem_and_never_waited_for(root: Path) -> None:
    folder = root / ".agentd/skills"
    for name in ("fifo", "folder", "loop"):
        (folder / name).mkdir(parents=True)
    os.mkfifo(folder / "fifo/SKILL.md")
    (folder / "folder/SKILL.md").mkdir()
    (folder / "loop/SKILL.md").symlink_to("SKILL.md")
    (folder / "without").mkdir()
    (folder / "a file").write_text("x")
    found = find(root)
    assert (found.projects, len(found.projects_problems)) == ((), 3)


def test_links_out_of_the_workspace_or_the_skill_are_not_followed(root: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", "away")
    folder = root / ".agentd/skills"
    folder.mkdir(parents=True)
    (folder / "away").symlink_to(outside)
    other = put(root / "docs", "linked")
    (folder / "linked").mkdir()
    (folder / "linked/SKILL.md").symlink_to(other / "SKILL.md")
    (root / ".agents").symlink_to(tmp_path / "outside")
    found = find(root)
    assert found.projects == ()
    assert len([each for each in messages(found) if "leads out of the folder" in each]) == 3


def test_a_link_that_the_user_made_in_the_own_folder_is_followed(
    root: Path, users: Path, tmp_path: Path
) -> None:
    (users / "pdf").symlink_to(put(tmp_path / "dotfiles", "pdf"))
    (skill,) = find(root, users).users
    assert skill.folder == tmp_path / "dotfiles/pdf"


def test_what_says_that_no_model_may_use_it_is_left_out(root: Path) -> None:
    raw(root / ".agentd/skills", "x", "---\nname: x\ndescription: d\ndisable-model-invocation: true\n---\n")
    assert find(root) == Skills()


def test_a_description_is_one_line_of_bounded_length(root: Path) -> None:
    raw(root / ".agentd/skills", "x", f"---\nname: x\ndescription: |\n  a\x0b\n  b\n  {'c' * 2000}\n---\n")
    raw(root / ".agentd/skills", "y", f"---\nname: y\ndescription: |\n  a\n\n  b {'c' * 2000}\n---\n")
    found = find(root)
    (skill,) = found.projects
    assert skill.description.startswith("a b ccc")
    assert len(skill.description) == 1024
    assert "cut after 1024 characters" in messages(found)[-1]


def test_words_that_nobody_sees_are_left_out_of_a_description(root: Path) -> None:
    put(root / ".agentd/skills", "x", description="For\U000e0069\U000e0067\U000e006e x.")
    (skill,) = find(root).projects
    assert skill.description == "For[3 invisible characters left out] x."


def test_more_skills_than_anybody_has_are_not_all_looked_at(root: Path) -> None:
    for number in range(MAX_SKILLS + 5):
        put(root / ".agentd/skills", f"s{number:04d}")
    found = find(root)
    assert len(found.projects) == MAX_SKILLS
    assert f"only the first {MAX_SKILLS} of {MAX_SKILLS + 5} count" in messages(found)[0]


def test_a_file_is_read_again_only_when_it_has_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentd.config import front_matter

    folder = put(root / ".agentd/skills", "pdf")
    reads: list[str] = []
    read = front_matter.read
    monkeypatch.setattr(front_matter, "read", lambda text: reads.append(text) or read(text))
    folders = SkillFolders()
    assert folders.find(root) == folders.find(root)
    assert len(reads) == 1
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: another\n---\n")
    assert folders.find(root).projects[0].description == "another"
    assert len(reads) == 2
