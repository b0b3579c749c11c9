"""Histories for tests: messages by hand, and any that hypothesis can think of, damaged ones above all."""

from typing import Any

from hypothesis import strategies as st

from agentd.agent.memory import is_aside
from agentd.protocol.messages import (
    AssistantMessage,
    CommandContent,
    ImageContent,
    Message,
    ResourceContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

TIME = "2026-01-01T00:00:00.000Z"


def user(*content: Any, message_id: str = "u1") -> UserMessage:
    blocks = tuple(TextContent(text=each) if isinstance(each, str) else each for each in content)
    return UserMessage(message_id=message_id, content=blocks, timestamp=TIME)


def answer(*content: Any, stop: Any = "stop", message_id: str = "a1") -> AssistantMessage:
    blocks = tuple(TextContent(text=each) if isinstance(each, str) else each for each in content)
    return AssistantMessage(
        message_id=message_id, content=blocks, provider="p", model="m", stop_reason=stop, timestamp=TIME
    )


def told(*content: Any, shown: tuple[str, ...]) -> UserMessage:
    """What the user wrote, where the model is shown something else."""
    blocks = tuple(TextContent(text=each) for each in shown)
    return user(*content).model_copy(update={"shown": blocks})


def aside(*shown: str) -> list[Message]:
    """A command of agentd's own with its answer, and what the model is told of it."""
    command = told(CommandContent(name="undo"), shown=shown)
    return [command, answer("done").model_copy(update={"provider": "agentd", "model": "commands"})]


def call(call_id: str, name: str = "read", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def result(call_id: str, *texts: str, is_error: bool = False, message_id: str = "r1") -> ToolResultMessage:
    return ToolResultMessage(
        message_id=message_id,
        tool_call_id=call_id,
        tool_name="read",
        content=tuple(TextContent(text=text) for text in texts),
        is_error=is_error,
        timestamp=TIME,
    )


def is_asked(message: Message) -> bool:
    """Whether a model was asked for this."""
    return isinstance(message, AssistantMessage) and not is_aside(message)


# --- any history at all ---------------------------------------------------------------------------

CALL_IDS = st.sampled_from(["a", "b", "a~2", "c:1", "x" * 128])
TEXTS = st.sampled_from(["", " \n\t", "hello", "\ud83d", "a\udc00b", "é😀", "\u2028", "\u00a0"])
NAMES = st.sampled_from(["read", "", "two words", "näme", "a.b/c", "n" * 70, "\ud800"])
ARGUMENTS = st.sampled_from(
    [{}, {"path": "a"}, {"t": "\ud800"}, {"\udc00": {"k": ["\ud800", 1, None]}}, {"n": [[1.5, True]]}]
)
RESULT_TEXTS = st.lists(TEXTS, max_size=2).map(tuple)

calls = st.builds(
    ToolCall,
    id=CALL_IDS,
    name=NAMES,
    arguments=ARGUMENTS,
    raw_arguments=st.sampled_from([None, None, '{"pa', "\ud800"]),
)
user_blocks = st.one_of(
    TEXTS.map(lambda text: TextContent(text=text)),
    st.just(ImageContent(mime_type="image/png", data="iVBORw0KGgo=")),
    st.builds(ResourceContent, uri=st.just("file:///a.py"), text=st.one_of(st.none(), TEXTS)),
    st.builds(CommandContent, name=st.just("fix"), arguments=TEXTS),
)
answer_blocks = st.one_of(
    TEXTS.map(lambda text: TextContent(text=text)), TEXTS.map(lambda text: ThinkingContent(text=text)), calls
)
messages = st.one_of(
    st.lists(user_blocks, max_size=3).map(lambda blocks: user(*blocks)),
    st.builds(lambda shown: told("/fix", shown=shown), st.lists(TEXTS, max_size=2).map(tuple)),
    st.sampled_from(aside()),
    st.builds(
        lambda blocks, stop: answer(*blocks, stop=stop),
        st.lists(answer_blocks, max_size=4),
        st.sampled_from(["stop", "length", "tool_use", "refusal", "error", "aborted"]),
    ),
    st.builds(lambda call_id, texts: result(call_id, *texts), CALL_IDS, RESULT_TEXTS),
)
histories = st.lists(messages, max_size=10)


def _numbered(history: list[Message]) -> list[Message]:
    """The same with an id of its own for each message."""
    return [message.model_copy(update={"message_id": f"m{n}"}) for n, message in enumerate(history)]


numbered_histories = histories.map(_numbered)
"""Any history, damaged as may be, whose messages can be told apart."""


@st.composite
def _runs(draw: st.DrawFn) -> list[Message]:
    """What a loop leaves behind: prompts, turns with calls side by side and all their results, every end."""
    history: list[Message] = []
    number = 0
    can_go_on = False
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()) and draw(st.booleans()):
            history += aside(*draw(st.lists(TEXTS, max_size=1)))
        if not (can_go_on and draw(st.booleans())):
            said = draw(st.lists(user_blocks, max_size=2))
            shown = draw(st.none() | st.lists(TEXTS, min_size=1, max_size=2).map(tuple))
            history.append(user("please", *said) if shown is None else told("please", *said, shown=shown))
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            made = [call(f"c{number}-{i}") for i in range(draw(st.integers(1, 3)))]
            history.append(answer(*draw(st.lists(TEXTS, max_size=1)), *made, stop="tool_use"))
            history += [result(each.id, *draw(RESULT_TEXTS)) for each in made]
            if draw(st.booleans()) and draw(st.booleans()):
                history.append(user("by the way"))
        stop = draw(st.sampled_from(["stop", "length", "refusal", "error", "aborted"]))
        history.append(answer(*draw(st.lists(TEXTS, max_size=2)), stop=stop))
        can_go_on = stop != "stop"
    return _numbered(history)


runs = _runs()
"""The histories of sessions that nothing has damaged."""
