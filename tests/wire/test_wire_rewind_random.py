"""Random edits of tools, commands, sub-agents and the user, then rewinds, undos and forks, beside copies.

The model knows nothing of how changes are kept: it holds the world from just before each prompt and steer,
which is the tree of files and what the editor shows of an open one. While nobody but the session has changed
anything that world has to come back to the last bit, and when the user has, no file may change that is called
a conflict. In between the history is summed up, and the session closed or its daemon killed.
"""

import itertools
import os
import shutil
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from wire.editing import CAPABILITIES, SimulatedEditor
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.rewinding import Author, bash, read, write
from wire.scripts import reply, tool
from wire.subagents import delegate, job, of
from wire.trees import Tree, tree

NAMES = ("a", "b", "d", "d/a", "d/b", "d/e/a", "l")
names = st.sampled_from(NAMES)
texts = st.sampled_from(("1\n", "2\n", "3\n", "\0binary\xff", ""))

plain_commands = st.one_of(
    st.builds("mkdir -p $(dirname {0}); echo {1} > {0}".format, names, st.sampled_from("xy1")),
    st.builds("rm -rf {0}".format, names),
    st.builds("mkdir -p $(dirname {1}); mv {0} {1}".format, names, names),
    st.builds("chmod {1} {0}".format, names, st.sampled_from(("600", "755", "444"))),
    st.builds("mkdir -p $(dirname {1}); ln -sfn {0} {1}".format, names, names),
    st.builds("rm -rf {0}; mkdir -p {0}; echo in > {0}/z".format, names),
)  # fmt: skip
copies = st.just("cp -r d e; rm -rf d")
hard_links = st.builds("mkdir -p $(dirname {1}); ln -f {0} {1}".format, names, names)
commands = plain_commands | copies | hard_links


def quiet(command: str) -> Json:
    """A call of a command, whatever comes of it."""
    return bash(f"( {command} ) 2>/dev/null; true")


def says(message: Json, text: str) -> bool:
    return message["role"] == "user" and any(block.get("text") == text for block in message["content"])


class Rewinds(RuleBasedStateMachine):
    """One session in one folder, and copies of its tree."""

    home: Home
    daemon: Daemon

    def __init__(self) -> None:
        super().__init__()
        self.author = self.new_author()
        self.root = self.author.root
        self.numbers = itertools.count(1)
        self.before: dict[str, Tree] = {}  # prompt -> the tree just before it
        self.messages: dict[str, list[Json]] = {}  # prompt -> what was said before it
        self.undoable: tuple[Tree, list[Json], dict[str, Tree]] | None = None
        self.is_clean = True  # the user has changed nothing so far
        self.is_touched = False  # the user has changed something since the last rewind

    def new_author(self) -> Author:
        return Author(self.daemon, self.home)

    def world(self) -> Tree:
        """All that a rewind brings back."""
        return tree(self.root)

    def read_and_write(self, name: str, text: str) -> list[Json]:
        """Nothing is written through one of several names of a file: who asks for the others sees no edit."""
        path = self.root / name
        if path.is_file() and path.stat().st_nlink > 1:
            return [read(name)]
        return [read(name), write(name, text)]

    @initialize(given=st.dictionaries(names, texts, max_size=5))
    def fill(self, given: dict[str, str]) -> None:
        for name, text in given.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> bool:
        path = self.root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() or path.is_dir():
                return False
            path.write_bytes(text.encode("latin-1"))
        except (FileExistsError, NotADirectoryError, FileNotFoundError, IsADirectoryError):
            return False
        return True

    def begin(self) -> str:
        """The id of a prompt that begins now."""
        prompt_id = f"p{next(self.numbers)}"
        self.before[prompt_id] = self.world()
        self.messages[prompt_id] = self.author.chat.get()["messages"]
        self.undoable = None
        return prompt_id

    def prompt(self, *calls: Json) -> None:
        self.author.does(self.begin(), *calls)

    @rule(made=st.lists(commands, min_size=1, max_size=3))
    def run_commands(self, made: list[str]) -> None:
        self.prompt(*map(quiet, made))

    @rule(name=names, text=st.sampled_from(("1\n", "2\n", "3\n")), command=st.none() | commands)
    def edit_files(self, name: str, text: str, command: str | None) -> None:
        more = [quiet(command)] if command is not None else []
        self.prompt(*self.read_and_write(name, text), *more)

    @rule(name=names, to=names, then=st.sampled_from(("", "1\n", "2\n")), more=st.booleans())
    def move_and_delete(self, name: str, to: str, then: str, more: bool) -> None:
        """A file gets another name, is perhaps changed there, and one of its old name is made or goes."""
        move = tool("move_file", {"file_path": name, "new_path": to})
        delete = tool("delete_file", {"file_path": to})
        calls = [read(name), move, *(self.read_and_write(to, then) if then else []), read(to)]
        self.prompt(*calls, *([delete, write(name, then + "again\n")] if more else []))

    @rule(
        works=st.lists(
            st.tuples(st.lists(plain_commands, max_size=2), names, st.sampled_from(("4\n", "5\n"))),
            min_size=1,
            max_size=3,
        )
    )
    def delegate(self, works: list[tuple[list[str], str, str]]) -> None:
        """Sub-agents that work at the same time, maybe in the same files."""
        prompt_id = self.begin()
        parts: list[Json] = []
        for number, (made, name, text) in enumerate(works):
            calls = [*map(quiet, made), *self.read_and_write(name, text), *map(quiet, made[:1])]
            parts += of(f"{prompt_id}-{number}", *(reply(call) for call in calls), reply("ok"))
        jobs = [job(f"{prompt_id}-{number}") for number in range(len(works))]
        model = self.home.script(delegate(*jobs, call_id=f"task-{prompt_id}"), *parts, reply("all done"))
        result = self.author.chat.run(f"do {prompt_id}", promptId=prompt_id, model=model)
        assert result["text"] == "all done", result

    @rule(made=plain_commands, name=names, text=st.sampled_from(("6\n", "7\n")), then=st.none() | commands)
    def steer(self, made: str, name: str, text: str, then: str | None) -> None:
        """A prompt that is told something in its midst: what comes behind that is the steer's."""
        chat, prompt_id, gate = self.author.chat, self.begin(), self.root.with_name(f"{self.root.name}-gate")
        hold = f"( {made} ) 2>/dev/null; touch {gate}-at; while ! [ -e {gate}-go ]; do sleep 0.01; done"
        calls = [bash(hold), *self.read_and_write(name, text), *([quiet(then)] if then is not None else [])]
        model = self.home.script(*map(reply, calls), reply("all done"))
        request = chat.start(f"do {prompt_id}", promptId=prompt_id, model=model)
        at, go = Path(f"{gate}-at"), Path(f"{gate}-go")
        until(at.exists, "the command holds")
        steer_id = f"p{next(self.numbers)}"
        self.before[steer_id] = self.world()
        params = chat.prompt_params(f"do {steer_id}", promptId=steer_id, whenBusy="steer", wait="accepted")
        assert self.author.daemon.call("agentd/prompt", params)["outcome"] == "steered"
        go.touch()
        assert chat.result(request)["text"] == "all done"
        messages = chat.get()["messages"]
        place = next(n for n, each in enumerate(messages) if says(each, f"do {steer_id}"))
        self.messages[steer_id] = messages[:place]
        at.unlink()
        go.unlink()

    @precondition(lambda self: self.before)
    @rule()
    def built_in_undo(self) -> None:
        """`/undo` is a prompt like any other for the next rewind."""
        prompt_id = self.begin()
        command = [{"type": "command", "name": "undo", "arguments": ""}]
        result = self.author.chat.run(command, promptId=prompt_id)
        assert result["stopReason"] == "stop", result

    @precondition(lambda self: self.before)
    @rule()
    def compact(self) -> None:
        """Nobody sees a change but the model."""
        was, messages = self.world(), self.author.chat.get()["messages"]
        self.author.daemon.call("agentd/session/compact", {"sessionId": self.author.chat.id})
        assert (self.world(), self.author.chat.get()["messages"]) == (was, messages)

    @precondition(lambda self: self.before)
    @rule(data=st.data(), text=texts)
    def user_writes(self, data: st.DataObject, text: str) -> None:
        name = data.draw(st.sampled_from(NAMES))
        if self.write(name, text + "user"):
            self.is_clean, self.is_touched = False, True

    @precondition(lambda self: self.before)
    @rule(data=st.data(), scope=st.sampled_from(("files", "both")))
    def rewind(self, data: st.DataObject, scope: str) -> None:
        self.go_back(data.draw(st.sampled_from(list(self.before))), scope)

    def go_back(self, prompt_id: str, scope: str) -> None:
        was, messages = self.world(), self.author.chat.get()["messages"]
        dry = self.author.rewind(prompt_id, scope, dryRun=True)
        assert self.world() == was
        result = self.author.rewind(prompt_id, scope)
        assert result == dry
        now = self.world()
        conflicts = {name_of(self.root, f["uri"]) for f in result["files"] if "conflict" in f}
        self.assert_told(result, was, now)
        if self.is_clean:
            assert conflicts == set()
            assert now == self.before[prompt_id]
        for name in conflicts:
            assert now.get(name) == was.get(name)
        if now != was or result["removedMessageIds"]:
            self.undoable = (was, messages, dict(self.before))
            self.is_touched = False
        if scope == "both":
            assert self.author.chat.get()["messages"] == self.messages[prompt_id]
            kept = itertools.takewhile(lambda each: each != prompt_id, list(self.before))
            self.before = {each: self.before[each] for each in kept}

    def assert_told(self, result: Json, was: Tree, now: Tree) -> None:
        """Every file that changed is told, with what became of it."""
        told = {name_of(self.root, f["uri"]): f["action"] for f in result["files"] if "conflict" not in f}
        for name in {*was, *now}:
            if was.get(name) != now.get(name):
                assert told[name] == {(False, True): "created", (True, False): "deleted"}.get(
                    (name in was, name in now), "changed"
                )

    @precondition(lambda self: self.before)
    @rule()
    def undo(self) -> None:
        if self.undoable is None:  # no precondition: what sub-agents came to is not the same each time
            return
        files, messages, before = self.undoable
        now = (self.world(), self.author.chat.get()["messages"], dict(self.before))
        result = self.author.undo()
        conflicts = {name_of(self.root, f["uri"]) for f in result["files"] if "conflict" in f}
        assert self.author.chat.get()["messages"] == messages
        if self.is_touched:
            assert all(self.world().get(name) == now[0].get(name) for name in conflicts)
        else:
            assert (self.world(), conflicts) == (files, set())
        self.undoable, self.before, self.is_touched = now, before, False

    @precondition(lambda self: self.before)
    @rule()
    def restart(self) -> None:
        self.author.ask("close")
        self.author.ask("attach")

    @precondition(lambda self: self.before)
    @rule()
    def kill(self) -> None:
        """The daemon dies, and another one takes its place."""
        self.daemon.kill()
        type(self).daemon = self.home.start("--allow-full")
        self.author.moved_to(self.daemon).ask("attach")

    @rule()
    def fork(self) -> None:
        """A fork holds the conversation, changes no file, and takes none of its parent's changes back."""
        was, messages = self.world(), self.author.chat.get()["messages"]
        made = self.author.daemon.call("agentd/session/fork", {"sessionId": self.author.chat.id})
        fork = made["session"]["sessionId"]
        got = self.author.daemon.call("agentd/session/get", {"sessionId": fork})
        assert got["messages"] == messages
        assert self.author.daemon.call("agentd/session/diff", {"sessionId": fork}) == {
            "patch": "",
            "files": [],
        }
        self.author.daemon.call("agentd/session/delete", {"sessionId": fork})
        assert self.world() == was

    @invariant()
    def nothing_is_left(self) -> None:
        assert not list(self.home.data.rglob("rewind.json"))
        assert not [name for name in tree(self.root) if name.endswith(".agentd~")]

    def teardown(self) -> None:
        self.author.ask("delete")
        shutil.rmtree(self.root)


class OpenDocument(Rewinds):
    """One of the files, `a.txt`, is open in the editor: it is changed there, and its file stays as it is.

    So is a document that is no file yet.
    """

    editor: SimulatedEditor
    draft: SimulatedEditor
    drafts = itertools.count(1)

    def new_author(self) -> Author:
        self.editor = SimulatedEditor(self.daemon, self.home, "0\n")
        self.editor.runs_anyway = True
        self.editor.__enter__()
        uri = f"untitled:Untitled-{next(self.drafts)}"
        self.draft = SimulatedEditor(self.daemon, self.home, "draft\n", uri=uri, on_disk=False)
        self.draft.__enter__()
        return Author(self.daemon, self.home, self.editor.root)

    def world(self) -> Tree:
        documents = {"a.txt": self.editor, self.draft.uri: self.draft}
        shown = {name: ("document", 0, each.text.encode()) for name, each in documents.items()}
        return {**super().world(), **shown}

    def read_and_write(self, name: str, text: str) -> list[Json]:
        """Where the name has a folder, the open document is changed as well, else the draft."""
        also = "a.txt" if "/" in name else self.draft.uri
        return [*super().read_and_write(name, text), read(also), write(also, text)]

    @rule(text=st.sampled_from(("0\n", "1\n", "2\n")), to=names)
    def edit_move_and_delete_the_draft(self, text: str, to: str) -> None:
        """It is no file: what would move or delete it is refused, and a rewind knows nothing of that."""
        uri = self.draft.uri
        move = tool("move_file", {"file_path": uri, "new_path": to})
        onto = tool("move_file", {"file_path": to, "new_path": uri})
        delete = tool("delete_file", {"file_path": uri})
        self.prompt(read(uri), write(uri, text), move, onto, delete)

    @precondition(lambda self: self.before)
    @rule(text=st.sampled_from(("8\n", "9\n")))
    def user_types_in_the_draft(self, text: str) -> None:
        self.draft.type(0, 0, text)
        self.is_clean, self.is_touched = False, True

    @precondition(lambda self: self.before)
    @rule(text=st.sampled_from(("8\n", "9\n")))
    def user_types(self, text: str) -> None:
        self.editor.type(0, 0, text)
        self.is_clean, self.is_touched = False, True

    @precondition(lambda self: self.before)
    @rule()
    def user_saves(self) -> None:
        """What is in the editor is on the disk now as well, which is no change of the text."""
        self.editor.save()

    def kill(self) -> None:
        """An editor lives with its daemon."""

    def teardown(self) -> None:
        for document in (self.editor, self.draft):
            document.close()
            document.__exit__()
        super().teardown()


def name_of(root: Path, uri: str) -> str:
    from agentd.workspace.paths import path_of

    if uri.startswith("untitled:"):
        return uri

    return str(path_of(uri).relative_to(os.path.realpath(root)))


def run(machine: type[Rewinds], home: Home, daemon: Daemon) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    class Machine(machine):  # type: ignore[valid-type, misc]
        pass

    Machine.home, Machine.daemon = home, daemon
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=int(os.environ.get("AGENTD_REWIND_EXAMPLES", "12")),
            stateful_step_count=12,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),  # a session's steps take too long to be made fewer
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_sessions_go_back_to_the_trees_they_came_from(home: Home) -> None:
    run(Rewinds, home, home.start("--allow-full"))


def test_random_sessions_with_an_open_document_go_back_to_the_worlds_they_came_from(home: Home) -> None:
    run(OpenDocument, home, home.start("--allow-full", capabilities=CAPABILITIES))
