"""A session's title, from what the user said, and the whole of it as Markdown."""

from pathlib import Path

import pytest
from agent.loop_host import FakeTool
from sessions.prompting import finished
from sessions.session_home import calling, home, prompt, tool_call

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import ImageContent, ResourceContent, TextContent
from agentd.protocol.methods import SessionUpdateParams
from agentd.sessions.export import closed
from agentd.sessions.prompts import title_of_blocks
from agentd.tools.base import ToolResult

NO_CREDIT = {"kind": "quota", "message": "no credit"}


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Mend the date test", "Mend the date test"),
        ("\n\n   Mend   the\ttest  \nand more", "Mend the test"),
        ("# Mend *this* and `that`", "Mend this and that"),
        ("> - **Mend** [the test](https://x.example/a?b) __now__", "Mend the test now"),
        ("1. first\n2. second", "first"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("---\nwords", "words"),
        ("***", "***"),
        ("snake_case_name and 2 * 3 * 4 stay", "snake_case_name and 2 * 3 * 4 stay"),
        ("x" * 200, "x" * 71 + "…"),
        ("word " * 40, ("word " * 14 + "w")[:71].rstrip() + "…"),
        ("", ""),
        ("日本語のタイトル", "日本語のタイトル"),
        ("\x1b[31mred\x1b[0m words", "[31mred[0m words"),
        ("\x9b31m \x07bell\x00", "31m bell"),
        ("\u202egnp.exe\u2066 \u200binnocent", "gnp.exe innocent"),
        ("one\u2028two", "one"),
        ("\u200b\u202e\nwords", "words"),
        ("\u200b\u202e", ""),
        ("👩\u200d💻 code", "👩\u200d💻 code"),
        ("x" * 1_000_000, "x" * 71 + "…"),
    ],
)
def test_a_title_is_one_short_line_without_marks(prompt: str, title: str) -> None:
    assert title_of_blocks((TextContent(text=prompt),)) == title
    assert len(title) <= 72


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("# As *given*", "# As *given*"),
        (" two\nlines\r\n", "two lines"),
        ("\x1b]0;owned\x07\u202eevil", "]0;ownedevil"),
        ("y" * 1_000_000, "y" * 199 + "…"),
        ("  ", ""),
    ],
)
async def test_a_title_that_a_client_gives_is_one_line_of_bounded_length(
    tmp_path: Path, given: str, title: str
) -> None:
    async with home(tmp_path) as living:
        session = await living.new("x", title=given)
        assert session.info.title == title
        assert session.update(SessionUpdateParams(session_id=session.session_id, title=given)).title == title
        assert living.journal(session.session_id).stat().st_size < 5000


def test_a_title_comes_from_the_first_text() -> None:
    image = ImageContent(mime_type="image/png", data="aGk=")
    assert (
        title_of_blocks((image, TextContent(text="  "), TextContent(text="What is this?"))) == "What is this?"
    )
    assert title_of_blocks((image,)) == ""


def test_marks_without_end_take_no_time() -> None:
    for text in ("*" * 100_000, "[" * 100_000, "`a" * 50_000, "> " * 50_000 + "x"):
        assert len(title_of_blocks((TextContent(text=text),))) <= 72


async def test_an_export_tells_everything_and_code_cannot_leave_its_block(tmp_path: Path) -> None:
    async def run(arguments: object, context: object) -> ToolResult:
        return ToolResult.error("it says:\n```\nnot the end\n````")

    async with home(tmp_path, FakeTool(run=run)) as living:
        session = await living.new(
            calling(tool_call("a", text="hi"), text="I look."),
            {"content": [{"type": "thinking", "text": "hm\n\nso"}, {"type": "text", "text": "Done."}]},
            {
                "content": [{"type": "text", "text": "half"}],
                "error": {"kind": "quota", "message": "no credit"},
            },
        )
        await finished(session, [TextContent(text="# Go"), ResourceContent(uri="file:///w/a.py", text="a")])
        await finished(session, "again")
        text = (await living.sessions.export(session.session_id)).text
        parts = [
            "# Go\n\n* Session: `",
            "## User\n\n# Go\n\n[file:///w/a.py](file:///w/a.py)",
            '## Assistant\n\nI look.\n\n**echo** `a`\n\n```json\n{\n  "text": "hi"\n}\n```',
            "**Error** of echo `a`\n\n`````\nit says:\n```\nnot the end\n````\n`````",
            "## Assistant\n\n> hm\n>\n> so\n\nDone.",
            "half\n\n*(error: no credit)*\n",
        ]
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
        await living.sessions.close(session.session_id)
        assert (await living.sessions.export(session.session_id)).text == text
        with pytest.raises(RpcError) as caught:
            await living.sessions.export("s_nowhere")
        assert caught.value.kind == "sessionNotFound"


async def test_a_deleted_session_is_gone_with_its_run_and_its_files(tmp_path: Path) -> None:
    async with home(tmp_path) as living:
        hang = {"content": [{"type": "text", "text": "so far"}], "hang": True}
        session, other = await living.new(hang), await living.new("fine")
        folder = living.journal(session.session_id).parent
        await session.prompt(prompt(wait="accepted"))
        await living.sessions.delete(session.session_id)
        assert session not in living.sessions.opened
        for call in (living.sessions.delete, living.sessions.open, living.sessions.export):
            with pytest.raises(RpcError) as caught:
                await call(session.session_id)
            assert caught.value.kind == "sessionNotFound"
        assert sorted(path.name for path in folder.iterdir()) == [
            f"{other.session_id}.jsonl",
            f"{other.session_id}.jsonl.pid",
        ]
        assert (await finished(other)).text == "fine"
        assert living.sessions.latest(living.root, None) == other.session_id


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("```py\nx = 1", "```"), ("~~~~\n~~~\n```", "~~~~"), ("```\nx\n```", None), ("```\nx\n````", None),
        ("`` ` ``", None), ("```x```", None), ("````\n```\n``` py", "````"), ("    ```", None),
        ("```\n``` x", "```"),
    ],
)  # fmt: skip
def test_a_code_block_that_was_cut_ends_with_what_was_said(said: str, end: str | None) -> None:
    assert closed(said) == (said if end is None else f"{said}\n{end}")
