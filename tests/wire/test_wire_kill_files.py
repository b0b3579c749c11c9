"""`kill -9` in a prompt that moves and deletes files: the history says what the disk holds, and goes on."""

import pytest
from wire.home import Home
from wire.rewinding import Author
from wire.scripts import reply, tool
from wire.test_wire_kill import UNKNOWN, go_on

from agentd.agent.request import NO_RESULT

BEFORE = {"a.txt": "a\n", "c.txt": "c\n", "e.bin": "e\n"}


def move(old: str, new: str) -> dict[str, object]:
    return tool("move_file", {"file_path": old, "new_path": new}, f"move-{old[-5:]}")


CALLS = [
    move("a.txt", "sub/b.txt"),
    tool("read_file", {"file_path": "c.txt"}, "read-c.txt"),
    tool("delete_file", {"file_path": "c.txt"}, "delete-c.txt"),
    move("sub/b.txt", "d.txt"),
    move("e.bin", "c.txt"),
]
EFFECTS = {
    "move-a.txt": ("a.txt", "sub/b.txt"),
    "delete-c.txt": ("c.txt", None),
    "move-b.txt": ("sub/b.txt", "d.txt"),
    "move-e.bin": ("e.bin", "c.txt"),
}


def after(done: list[str]) -> dict[str, str]:
    """The files once these calls are done."""
    files = dict(BEFORE)
    for call in done:
        old, new = EFFECTS[call]
        content = files.pop(old)
        if new is not None:
            files[new] = content
    return files


@pytest.mark.parametrize("moment", range(2 * len(CALLS)))
def test_what_a_killed_prompt_did_to_files_is_told_as_it_is_and_can_be_taken_back(
    home: Home, moment: int
) -> None:
    root = home.workspace()
    for name, content in BEFORE.items():
        (root / name).write_text(content)
    daemon = home.start("--allow-full")
    author = Author(daemon, home, root)
    chat = author.chat
    chat.start("do it", promptId="killed", model=home.script(*map(reply, CALLS), reply("done")))
    kind = ("tool_execution_start", "tool_execution_end")[moment % 2]
    call = CALLS[moment // 2]["id"]
    daemon.wait(lambda m: _is(m, kind, call))
    daemon.kill()
    later, asked = go_on(home, chat, "after the kill")
    results = {m["toolCallId"]: m for m in asked["messages"] if m["role"] == "tool_result"}
    done = [each for each in EFFECTS if each in results and not results[each]["isError"]]
    unknown = [each for each in EFFECTS if each in results and UNKNOWN in str(results[each]["content"])]
    unrun = [each for each in EFFECTS if each in results and NO_RESULT in str(results[each]["content"])]
    assert set(results) == {*done, *unknown, *unrun} | (set(results) & {"read-c.txt"}), results
    assert len([*unknown, *unrun]) <= 1, "they run one after the other"
    assert not [m for m in list(daemon.messages) for each in unrun if _is(m, "tool_execution_start", each)]
    assert author.files() in (after(done), after([*done, *unknown])), (done, unknown)
    author.moved_to(later)
    assert not [file for file in author.rewind("killed")["files"] if "conflict" in file]
    assert author.files() == BEFORE


def _is(message: dict[str, object], kind: str, call: object) -> bool:
    params = message.get("params")
    event = params.get("event") if isinstance(params, dict) else None
    return isinstance(event, dict) and event["type"] == kind and event["toolCallId"] == call
