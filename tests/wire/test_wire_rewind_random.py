"""Random edits of tools, commands and the user, then rewinds, undos and forks, beside a copy of every tree.

The model knows nothing of how changes are kept: it holds the tree from just before each prompt. While nobody
but the session has changed anything that tree has to come back to the last bit, and when the user has, no
file may change that is called a conflict.
"""

import itertools
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from wire.harness import Daemon, Json
from wire.home import Home
from wire.rewinding import Author, bash, read, tool
from wire.trees import Tree, tree

NAMES = ("a", "b", "d", "d/a", "d/b", "d/e/a", "l")
names = st.sampled_from(NAMES)
texts = st.sampled_from(("1\n", "2\n", "3\n", "\0binary\xff", ""))

commands = st.one_of(
    st.builds("mkdir -p $(dirname {0}); echo {1} > {0}".format, names, st.sampled_from("xy1")),
    st.builds("rm -rf {0}".format, names),
    st.builds("mkdir -p $(dirname {1}); mv {0} {1}".format, names, names),
    st.builds("chmod {1} {0}".format, names, st.sampled_from(("600", "755", "444"))),
    st.builds("mkdir -p $(dirname {1}); ln -sfn {0} {1}".format, names, names),
    st.builds("mkdir -p $(dirname {1}); ln -f {0} {1}".format, names, names),
    st.builds("rm -rf {0}; mkdir -p {0}; echo in > {0}/z".format, names),
    st.just("cp -r d e; rm -rf d"),
)  # fmt: skip


class Rewinds(RuleBasedStateMachine):
    """One session in one folder, and copies of its tree."""

    home: Home
    daemon: Daemon

    def __init__(self) -> None:
        super().__init__()
        self.author = Author(self.daemon, self.home)
        self.root = self.author.root
        self.numbers = itertools.count(1)
        self.before: dict[str, Tree] = {}  # prompt -> the tree just before it
        self.messages: dict[str, list[Json]] = {}  # prompt -> what was said before it
        self.undoable: tuple[Tree, list[Json], dict[str, Tree]] | None = None
        self.is_clean = True  # the user has changed nothing so far
        self.is_touched = False  # the user has changed something since the last rewind

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

    def prompt(self, *calls: Json) -> None:
        prompt_id = f"p{next(self.numbers)}"
        self.before[prompt_id] = tree(self.root)
        self.messages[prompt_id] = self.author.chat.get()["messages"]
        self.author.does(prompt_id, *calls)
        self.undoable = None

    @rule(made=st.lists(commands, min_size=1, max_size=3))
    def run_commands(self, made: list[str]) -> None:
        self.prompt(*(bash(f"( {command} ) 2>/dev/null; true") for command in made))

    @rule(name=names, text=st.sampled_from(("1\n", "2\n", "3\n")), command=st.none() | commands)
    def edit_files(self, name: str, text: str, command: str | None) -> None:
        write = tool("write_file", {"file_path": name, "content": text})
        more = [bash(f"( {command} ) 2>/dev/null; true")] if command is not None else []
        self.prompt(read(name), write, *more)

    @precondition(lambda self: self.before)
    @rule(data=st.data(), text=texts)
    def user_writes(self, data: st.DataObject, text: str) -> None:
        name = data.draw(st.sampled_from(sorted({*tree(self.root), "a"})))
        if self.write(name, text + "user"):
            self.is_clean, self.is_touched = False, True

    @precondition(lambda self: self.before)
    @rule(data=st.data(), scope=st.sampled_from(("files", "both")))
    def rewind(self, data: st.DataObject, scope: str) -> None:
        prompt_id = data.draw(st.sampled_from(list(self.before)))
        was, messages = tree(self.root), self.author.chat.get()["messages"]
        dry = self.author.rewind(prompt_id, scope, dryRun=True)
        assert tree(self.root) == was
        result = self.author.rewind(prompt_id, scope)
        assert result == dry
        now = tree(self.root)
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

    @precondition(lambda self: self.undoable is not None)
    @rule()
    def undo(self) -> None:
        assert self.undoable is not None
        files, messages, before = self.undoable
        now = (tree(self.root), self.author.chat.get()["messages"], dict(self.before))
        result = self.author.undo()
        conflicts = {name_of(self.root, f["uri"]) for f in result["files"] if "conflict" in f}
        assert self.author.chat.get()["messages"] == messages
        if self.is_touched:
            assert all(tree(self.root).get(name) == now[0].get(name) for name in conflicts)
        else:
            assert (tree(self.root), conflicts) == (files, set())
        self.undoable, self.before, self.is_touched = now, before, False

    @precondition(lambda self: self.before)
    @rule()
    def restart(self) -> None:
        self.author.ask("close")
        self.author.ask("attach")

    @rule()
    def fork(self) -> None:
        """A fork holds the conversation, changes no file, and takes none of its parent's changes back."""
        was, messages = tree(self.root), self.author.chat.get()["messages"]
        made = self.author.daemon.call("agentd/session/fork", {"sessionId": self.author.chat.id})
        fork = made["session"]["sessionId"]
        got = self.author.daemon.call("agentd/session/get", {"sessionId": fork})
        assert got["messages"] == messages
        assert self.author.daemon.call("agentd/session/diff", {"sessionId": fork}) == {
            "patch": "",
            "files": [],
        }
        self.author.daemon.call("agentd/session/delete", {"sessionId": fork})
        assert tree(self.root) == was

    @invariant()
    def nothing_is_left(self) -> None:
        assert not list(self.home.data.rglob("rewind.json"))
        assert not [name for name in tree(self.root) if name.endswith(".agentd~")]

    def teardown(self) -> None:
        self.author.ask("delete")
        shutil.rmtree(self.root)


def name_of(root: Path, uri: str) -> str:
    from agentd.workspace.paths import path_of

    return str(path_of(uri).relative_to(os.path.realpath(root)))


@pytest.fixture
def machine(daemon: Daemon, shared_home: Home) -> type[Rewinds]:
    class Machine(Rewinds):
        pass

    Machine.home, Machine.daemon = shared_home, daemon
    return Machine


def test_random_sessions_go_back_to_the_trees_they_came_from(machine: type[Rewinds]) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=int(os.environ.get("AGENTD_REWIND_EXAMPLES", "12")),
            stateful_step_count=12,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),  # a session's steps take too long to be made fewer
            suppress_health_check=list(HealthCheck),
        ),
    )
