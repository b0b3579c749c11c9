"""What commands in the background change belongs to the prompt that runs when it is seen."""

from pathlib import Path

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.rewinding import Author, bash, edit, read, told, write
from wire.scripts import tool


class Watched(Author):
    """A session in whose background one command writes a file each time that it is let to."""

    def signal(self, name: str) -> Path:
        return self.root.with_name(f"{self.root.name}-{name}")

    @property
    def writer(self) -> Json:
        """Starts it."""
        steps = [
            f"while ! [ -e {self.signal(f'go{n}')} ]; do sleep 0.02; done; "
            f"echo {n} > made{n}.txt; echo {n} >> kept.txt; touch {self.signal(f'did{n}')}"
            for n in (1, 2, 3)
        ]
        return tool("bash", {"command": "; ".join(steps), "run_in_background": True})

    def let(self, number: int) -> Json:
        """A call that lets it write, and waits until it has. What it does itself changes no file."""
        return bash(
            f"touch {self.signal(f'go{number}')}; "
            f"while ! [ -e {self.signal(f'did{number}')} ]; do sleep 0.02; done"
        )

    def let_now(self, number: int) -> None:
        """Let it write while no prompt runs."""
        self.signal(f"go{number}").touch()
        until(self.signal(f"did{number}").exists, "it has written")


@pytest.fixture
def author(daemon: Daemon, shared_home: Home) -> Watched:
    author = Watched(daemon, shared_home)
    (author.root / "kept.txt").write_text("0\n")
    return author


OUTPUT = tool("bash_output", {"id": "bg_1"})
KILL = tool("bash_kill", {"id": "bg_1"})


def test_what_it_does_within_a_prompt_is_that_prompts(author: Watched) -> None:
    author.does("one", author.writer, author.let(1))
    author.does("two", author.let(2), OUTPUT)
    author.does("three", author.let(3), KILL)
    assert author.files()["kept.txt"] == "0\n1\n2\n3\n"
    names = [
        [file["uri"].rsplit("/", 1)[1] for file in author.ask("diff", promptId=prompt_id)["files"]]
        for prompt_id in ("one", "two", "three")
    ]
    assert names == [["kept.txt", "made1.txt"], ["kept.txt", "made2.txt"], ["kept.txt", "made3.txt"]]
    assert told(author.rewind("three")) == {"kept.txt": "changed", "made3.txt": "deleted"}
    assert told(author.rewind("one")) == {
        "kept.txt": "changed", "made1.txt": "deleted", "made2.txt": "deleted"
    }  # fmt: skip
    assert author.files() == {"kept.txt": "0\n"}


def test_what_it_does_is_seen_at_the_end_of_a_prompt_that_looks_at_nothing(author: Watched) -> None:
    author.does("one", author.writer)
    wait = tool("bash_output", {"id": "bg_1", "wait_ms": 10})
    author.does("two", author.let(1), wait, read("kept.txt"), edit("kept.txt", "1", "edited"))
    assert told(author.rewind("two")) == {"kept.txt": "changed", "made1.txt": "deleted"}
    assert author.files() == {"kept.txt": "0\n"}


def test_what_it_does_between_prompts_is_nobodys_and_stays(author: Watched) -> None:
    author.does("one", author.writer, write("mine.txt", "1\n"))
    author.let_now(1)
    author.does("two", author.let(2))
    assert told(author.rewind("two")) == {"kept.txt": "changed", "made2.txt": "deleted"}
    assert author.files()["kept.txt"] == "0\n1\n"
    author.undo()
    result = told(author.rewind("one"))
    assert result == {"kept.txt": "changed", "made2.txt": "deleted", "mine.txt": "deleted"}
    assert author.files() == {"kept.txt": "0\n1\n", "made1.txt": "1\n"}


def test_what_it_does_in_a_prompt_that_is_cancelled_is_seen(author: Watched) -> None:
    author.does("one", author.writer)
    model = author.home.script({"content": [author.let(1)]}, {"content": [bash("touch ready; sleep 60")]})
    running = author.chat.start("go", promptId="two", model=model)
    until((author.root / "ready").exists, "the command runs")
    author.chat.cancel()
    assert author.chat.result(running)["stopReason"] == "aborted"
    assert told(author.rewind("two")) == {"kept.txt": "changed", "made1.txt": "deleted", "ready": "deleted"}
    assert author.files() == {"kept.txt": "0\n"}
