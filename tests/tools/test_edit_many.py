"""`edit_file` with several replacements: in order, in the text so far, all or none."""

from pathlib import Path

import pytest
from file_calls import Calls, said
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.validation import InvalidArguments, validated
from agentd.protocol.messages import EditDetails, ToolCall
from agentd.tools.edit_file import EditFile
from agentd.tools.replacement import replace


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path)


def edit(old: str, new: str, **more: object) -> dict[str, object]:
    return {"old_string": old, "new_string": new, **more}


async def read(calls: Calls, data: str | bytes) -> Path:
    path = calls.root / "f"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    await calls.text("read_file", file_path="f")
    return path


async def test_all_are_made_in_one_change_with_one_patch(calls: Calls) -> None:
    path = await read(calls, "one\ntwo\nthree\ntwo\n")
    edits = [edit("one", "1"), edit("two", "2", replace_all=True), edit("three\n", "")]
    result = await calls.run("edit_file", file_path="f", edits=edits)
    assert said(result) == "Edited f (3 edits, 4 replacements, +3 -4)."
    assert path.read_text() == "1\n2\n2\n"
    assert isinstance(result.details, EditDetails)
    (change,) = result.details.files
    assert change.patch.splitlines()[3:] == ["-one", "-two", "-three", "-two", "+1", "+2", "+2"]


async def test_a_single_one_in_the_list_is_as_one_without(calls: Calls) -> None:
    path = await read(calls, "one\n")
    assert await calls.text("edit_file", file_path="f", edits=[edit("one", "1")]) == (
        "Edited f (1 replacement, +1 -1)."
    )
    assert path.read_text() == "1\n"


async def test_each_is_made_in_the_text_that_those_before_it_left(calls: Calls) -> None:
    path = await read(calls, "a b\n")
    await calls.text(
        "edit_file", file_path="f", edits=[edit("a", "b"), edit("b b", "c"), edit("c\n", "c\nd\n")]
    )
    assert path.read_text() == "c\nd\n"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (edit("absent", "x"), "Edit 2 of 3: old_string was not found in 'f'. Nothing was changed."),
        (edit("one", "1"), "Edit 2 of 3: old_string was not found"),
        (edit("three", "3"), "Edit 2 of 3: old_string occurs 2 times in 'f', at lines 3, 4."),
        (edit("", "x"), "Edit 2 of 3: old_string is empty"),
        (edit("two", "two"), "Edit 2 of 3: old_string and new_string are the same"),
        (edit("two", "\ud800"), "Edit 2 of 3: The new text for 'f' holds half of a character"),
    ],
)
async def test_when_one_cannot_be_made_none_is_and_it_is_named(
    calls: Calls, bad: dict[str, object], reason: str
) -> None:
    path = await read(calls, "one\ntwo\nthree\nthree\n")
    before = path.stat()
    text = await calls.error("edit_file", file_path="f", edits=[edit("one", "uno"), bad, edit("two", "2")])
    assert text.startswith(reason)
    assert text.endswith("(That is the text after the edits before this one, none of which was made.)")
    assert path.read_text() == "one\ntwo\nthree\nthree\n"
    assert path.stat().st_ino == before.st_ino


async def test_edits_that_undo_each_other_are_refused(calls: Calls) -> None:
    path = await read(calls, "one\n")
    assert "change nothing" in await calls.error(
        "edit_file", file_path="f", edits=[edit("one", "two"), edit("two", "one")]
    )
    assert path.read_text() == "one\n"


async def test_line_ends_and_encoding_stay_through_all_of_them(calls: Calls) -> None:
    path = await read(calls, "\ufeffa\r\nb\r\nc".encode())
    await calls.text("edit_file", file_path="f", edits=[edit("a\nb", "a\nx\nb"), edit("x\n", "x\ny\n")])
    assert path.read_bytes() == "\ufeffa\r\nx\r\ny\r\nb\r\nc".encode()


@pytest.mark.parametrize(
    ("arguments", "issues"),
    [
        ({}, ["/: either old_string and new_string, or edits is required"]),
        ({"old_string": "a"}, ["/new_string: is required"]),
        ({"new_string": "a"}, ["/old_string: is required"]),
        ({"replace_all": True}, ["/old_string: is required", "/new_string: is required"]),
        (
            {"edits": [edit("a", "b")], **edit("a", "b", replace_all=True)},
            [
                f"/{name}: must not be given beside edits"
                for name in ("old_string", "new_string", "replace_all")
            ],
        ),
    ],
)
async def test_exactly_one_of_the_two_forms_is_taken(
    calls: Calls, arguments: dict[str, object], issues: list[str]
) -> None:
    path = await read(calls, "a\n")
    text = await calls.error("edit_file", file_path="f", **arguments)
    assert text.split("\n") == [
        'Invalid arguments for tool "edit_file":', *(f"  - {issue}" for issue in issues)
    ]  # fmt: skip
    assert path.read_text() == "a\n"


def schema_says(**arguments: object) -> str:
    call = ToolCall(id="c", name="edit_file", arguments={"file_path": "f", **arguments})
    try:
        validated(call, EditFile.parameters)
    except InvalidArguments as error:
        return str(error)
    return ""


def test_the_schema_is_strict_about_each_edit() -> None:
    assert schema_says(edits=[edit("a", "b", replace_all=None)]) == "", "null counts as absent, there too"
    assert schema_says(edits=None, **edit("a", "b")) == ""
    assert "/edits: must have at least 1 items" in schema_says(edits=[])
    assert "/edits: must be of type array" in schema_says(edits=edit("a", "b"))
    assert "/edits/0/new_string: is required" in schema_says(edits=[{"old_string": "a"}])
    assert "/edits/1/line: unknown argument" in schema_says(edits=[edit("a", "b"), edit("a", "b", line=3)])
    assert "/edits/0/old_string: must be of type string" in schema_says(edits=[edit("a", "b", old_string=1)])


@given(
    st.text(alphabet="ab\r\n", max_size=20),
    st.lists(st.tuples(st.text(alphabet="ab\n", min_size=1, max_size=3), st.text("abx\n\\$", max_size=3))),
)
@settings(max_examples=200, deadline=None)
def test_many_at_once_are_what_one_after_the_other_is(text: str, pairs: list[tuple[str, str]]) -> None:
    from agentd.tools.edit_file import _Edit, _revision
    from agentd.workspace.paths import WorkspaceError
    from agentd.workspace.text import Text

    expected: str | None = text
    for old, new in pairs:
        try:
            after = replace(expected, old, new, every=True, name="f").text
            expected = after if after != expected and old != new else None
        except WorkspaceError:
            expected = None
        if expected is None:
            break
    try:
        made = _revision(Text(text), [_Edit(old, new, True, "Edit: ") for old, new in pairs], "f").text
    except WorkspaceError:
        assert expected is None or expected == text
        return
    assert made == expected
