"""What is true of the events of every session, and the short form in which tests write an order down."""

from typing import Any

Json = dict[str, Any]

LIVE = ("message_update", "tool_execution_update")


def shape(notifications: list[Json]) -> list[str]:
    """The durable events as words: `message_start(user)`, `tool_execution_end(call-1)`, `turn_end` …

    Live updates are left out (adjacent ones may be merged); `assert_well_formed` says where they may stand.
    """
    return [_word(params["event"]) for params in notifications if params["event"]["type"] not in LIVE]


def _word(event: Json) -> str:
    kind: str = event["type"]
    if kind in ("message_start", "message_end"):
        return f"{kind}({event['message']['role']})"
    if kind in ("tool_execution_start", "tool_execution_end"):
        return f"{kind}({event['toolCallId']})"
    if kind == "agent_end":
        return f"agent_end({event['stopReason']})"
    return kind


SAID = ["message_start(assistant)", "message_end(assistant)"]
USER = ["message_start(user)", "message_end(user)"]


def called(call_id: str) -> list[str]:
    """A tool call from its start to its result message."""
    return [
        f"tool_execution_start({call_id})",
        f"tool_execution_end({call_id})",
        "message_start(tool_result)",
        "message_end(tool_result)",
    ]


def turn(*parts: list[str]) -> list[str]:
    """A turn with these parts."""
    return ["turn_start", *(word for part in parts for word in part), "turn_end"]


def units(value: str) -> int:
    """The length in UTF-16 code units, as offsets count it."""
    return len(value.encode("utf-16-le", errors="surrogatepass")) // 2


def assert_well_formed(notifications: list[Json]) -> None:
    """Section 5 and guarantees 2 to 4, for all events of one session from its first on."""
    numbers = [params["seq"] for params in notifications if params["event"]["type"] not in LIVE]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all("seq" not in params for params in notifications if params["event"]["type"] in LIVE)
    assert notifications[0]["event"]["type"] == "session_changed"
    prompts = [params["promptId"] for params in notifications if "promptId" in params]
    for prompt_id in dict.fromkeys(prompts):
        run = [params["event"] for params in notifications if params.get("promptId") == prompt_id]
        if any(event["type"] == "agent_end" for event in run):
            _assert_run(run)


def _assert_run(run: list[Json]) -> None:
    kinds = [event["type"] for event in run]
    assert kinds.count("agent_start") == 1
    assert kinds.count("agent_end") == 1
    assert kinds[0] == "agent_start"
    assert kinds[-1] == "agent_end"
    said = _Said()
    open_parts: list[tuple[str, Any]] = []
    turns = 0
    last_message: Json = {}
    for event in run:
        kind = event["type"]
        if kind == "turn_start":
            turns += 1
            assert event["turn"] == turns
            assert open_parts == []
            open_parts.append(("turn", turns))
        elif kind == "turn_end":
            assert open_parts.pop() == ("turn", event["turn"])
        elif kind == "message_start":
            open_parts.append(("message", event["message"]["messageId"]))
        elif kind == "message_end":
            last_message = event["message"]
            assert open_parts.pop() == ("message", last_message["messageId"])
            said.assert_is(last_message)
        elif kind == "tool_execution_start":
            open_parts.append(("tool", event["toolCallId"]))
        elif kind == "tool_execution_end":
            assert open_parts.pop() == ("tool", event["toolCallId"])
        elif kind == "message_update":
            assert open_parts[-1] == ("message", event["messageId"])
            said.add(event["messageId"], event["update"])
        elif kind == "tool_execution_update":
            assert open_parts[-1] == ("tool", event["toolCallId"])
            assert event["update"]["delta"]
        elif kind == "message_reset":
            said.forget(event["messageId"])
    assert open_parts == []
    assert last_message["role"] == "assistant"
    assert run[-1]["messageId"] == last_message["messageId"]


class _Said:
    """What was streamed of each block of each message, with its length in UTF-16 code units."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, int], tuple[list[str], int]] = {}

    def add(self, message_id: str, update: Json) -> None:
        pieces, length = self._blocks.get((message_id, update["index"]), ([], 0))
        assert update["offset"] == length
        pieces.append(update["delta"])
        self._blocks[message_id, update["index"]] = (pieces, length + units(update["delta"]))

    def forget(self, message_id: str) -> None:
        self._blocks = {key: block for key, block in self._blocks.items() if key[0] != message_id}

    def assert_is(self, message: Json) -> None:
        """The text that was streamed is the text of the whole message."""
        if not any(key[0] == message["messageId"] for key in self._blocks):
            return
        for index, block in enumerate(message["content"]):
            if block["type"] == "text":
                assert "".join(self._blocks[message["messageId"], index][0]) == block["text"]
