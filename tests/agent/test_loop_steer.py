"""What the user says while the loop runs: at the next turn, whole or not at all, and never behind its end."""

from agent.event_order import AnyEvent, assert_whole_run, words
from agent.loop_host import FakeTool, MemoryHost, calls, text

from agentd.agent.request import project
from agentd.protocol.messages import TextContent, UserMessage


def users(host: MemoryHost) -> list[str]:
    """What the user said, as the transcript has it."""
    said = [m.content[0] for m in host.messages if isinstance(m, UserMessage)]
    return [block.text for block in said if isinstance(block, TextContent)]


async def test_each_turn_takes_one_steer_and_each_gets_an_answer() -> None:
    host = MemoryHost(calls(("a", "echo", "{}")), text("one"), text("two"), tools=[FakeTool()])
    host.steers = ["wait", "and look"]
    end = await host.run()
    assert (end.stop_reason, end.turns) == ("stop", 3)
    assert users(host) == ["go", "wait", "and look"]
    said = words(host.events)
    turns = [said[n + 1 : n + 4] for n, word in enumerate(said) if word == "turn_start"]
    assert turns == [["start(user)", "end(user)", "start(assistant)"]] * 3


async def test_an_answer_behind_which_a_steer_waits_is_not_the_last() -> None:
    host = MemoryHost(text("first"), text("second"), text("third"))
    host.steers = ["one"]

    def speak(event: AnyEvent) -> None:
        if words(host.events).count("start(assistant)") == 2 and words([event]) == ["start(assistant)"]:
            host.steers.append("two")

    host.at_event = speak
    end = await host.run()
    assert (end.turns, users(host)) == (3, ["go", "one", "two"])
    assert [len(request.messages) for request in host.provider.requests] == [1, 3, 5]


async def test_a_steer_waits_where_the_run_may_take_no_turn_more() -> None:
    host = MemoryHost(text("first"), text("never"))
    host.steers = ["one"]
    end = await host.run(max_turns=1)
    assert (end.stop_reason, end.turns, host.steers) == ("stop", 1, ["one"])


async def test_a_cancel_at_any_wait_says_a_steer_whole_or_not_at_all() -> None:
    spoken, number = set(), 0
    while True:
        number += 1
        host = MemoryHost(text("first"), text("second"))
        host.steers = ["one"]
        loop = host.loop()
        host.at_wait = lambda n, loop=loop, at=number: loop.cancel() if n == at else None  # type: ignore[misc]
        end = await host.play(loop)
        assert_whole_run(host.events)
        project(host.messages)
        assert len(users(host)) - 1 + len(host.steers) == 1, number
        spoken.add((end.stop_reason, len(host.steers)))
        if host.waits < number:
            break
    assert spoken == {("aborted", 1), ("aborted", 0), ("stop", 0)}
