"""The neutral form of a conversation as Gemini's request."""

import json
from typing import Any

import pytest
from conversation import PIXEL, READ, assistant, call, request, result, thinking, user
from fakes.gemini_faults import request_fault, sign
from fakes.gemini_server import answer_events
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.request import GO_ON, project
from agentd.agent.response import Response
from agentd.protocol.messages import AssistantMessage, Message, TextContent, ToolCall
from agentd.providers.base import Model, ProviderError, StreamEnd, ToolSpec
from agentd.providers.gemini_decoder import GeminiDecoder
from agentd.providers.gemini_dialect import VERTEX, GeminiDialect
from agentd.providers.gemini_request import UNSIGNED, generate_body
from agentd.providers.http_errors import Peer

G2, G3 = "gemini-2.5-flash", "gemini-3-flash-preview"
BLOB = {"inlineData": {"mimeType": "image/png", "data": PIXEL.data}}


def body(*messages: Message, model: str = G3, **fields: Any) -> dict[str, Any]:
    """The body of a request, which a strict server takes."""
    traits = {"images": True} | {k: fields.pop(k) for k in list(fields) if k in Model.__dataclass_fields__}
    asked = request(*messages, model=Model("local", model, **traits), **fields)
    made = json.loads(json.dumps(generate_body(asked)))
    assert request_fault(f"/models/{model}:streamGenerateContent?alt=sse", made) is None
    return made


def contents(*messages: Message, **fields: Any) -> list[tuple[str, list[Any]]]:
    return [(content["role"], content["parts"]) for content in body(*messages, **fields)["contents"]]


def called(name: str = "read_file", **args: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}}


def answered(output: str = "x", **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": "read_file", "response": {"output": output}} | fields}


# --- the whole ------------------------------------------------------------------------------------


def test_a_prompt_is_system_contents_and_tools() -> None:
    assert body(user("Hi"), max_output=4000) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "read_file",
                        "description": "Read a file.",
                        "parametersJsonSchema": READ.parameters,
                    }
                ]
            }
        ],
        "generationConfig": {"maxOutputTokens": 4000},
    }


def test_what_there_is_not_is_left_out() -> None:
    assert set(body(user("Hi"), system=" ", tools=())) == {"contents"}


def test_a_tool_without_parameters_is_an_object_of_none() -> None:
    (tool,) = body(user("Hi"), tools=(ToolSpec("list", "List.", {}),))["tools"]
    (declared,) = tool["functionDeclarations"]
    assert declared["parametersJsonSchema"] == {"type": "object", "properties": {}}


def test_the_subset_takes_the_place_of_json_schema_and_an_empty_object_that_of_none() -> None:
    closed = READ.parameters | {"additionalProperties": False, "$schema": "x"}
    tools = (ToolSpec("read_file", "Read.", closed), ToolSpec("list", "List.", {"type": "object"}))
    made = generate_body(request(tools=tools), GeminiDialect(schemas="subset"))
    assert request_fault(f"/models/{G3}:streamGenerateContent?alt=sse", made) is None
    assert made["tools"][0]["functionDeclarations"] == [
        {
            "name": "read_file",
            "description": "Read.",
            "parameters": {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}},
        },
        {"name": "list", "description": "List."},
    ]


# --- thinking -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        (G3, "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        (G3, "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        (G3, "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        (G3, None, {"includeThoughts": True}),
        (G3, "xhigh", {"includeThoughts": True}),  # not among the model's efforts
        ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
        (G2, "low", {"includeThoughts": True, "thinkingBudget": 2048}),
        (G2, "max", {"includeThoughts": True, "thinkingBudget": 24576}),
        (G2, None, {"includeThoughts": True}),
        ("gemini-2.0-flash", "low", None),
        ("gemma-3-27b-it", "low", None),
    ],
)
def test_effort_is_a_level_or_a_budget_by_generation(model: str, effort: Any, expected: Any) -> None:
    efforts = ("minimal", "low", "medium", "high", "max")
    made = body(user("Hi"), model=model, effort=effort, reasoning=True, efforts=efforts)
    assert made.get("generationConfig", {}).get("thinkingConfig") == expected


def test_a_model_that_is_not_known_to_reason_is_not_asked_to() -> None:
    assert "generationConfig" not in body(user("Hi"), effort="low")


@pytest.mark.parametrize("model", ["gemini-flash-latest", "models/gemini-4-argon", "gemini-10.2-pro"])
def test_newer_names_and_the_latest_are_of_the_newest_generation(model: str) -> None:
    asked = request(model=Model("local", model, efforts=("low",)), effort="low")
    assert generate_body(asked)["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "LOW"


def test_a_dialect_may_name_the_generation() -> None:
    asked = request(model=Model("local", "tuned", efforts=("low",)), effort="low")
    made = generate_body(asked, GeminiDialect(generation=2.5))
    assert "thinkingBudget" in made["generationConfig"]["thinkingConfig"]
    assert VERTEX.generation is None


# --- results and images ---------------------------------------------------------------------------


def test_all_results_of_a_turn_are_one_content_in_order() -> None:
    asked = assistant("Reading.", call("a", path="1"), call("b", path="2"))
    assert contents(
        user("Hi"), asked, result("a", "one"), result("b", "two", is_error=True), user("Go on")
    ) == [
        ("user", [{"text": "Hi"}]),
        (
            "model",
            [{"text": "Reading."}, called(path="1") | {"thoughtSignature": UNSIGNED}, called(path="2")],
        ),
        (
            "user",
            [
                answered("one"),
                {"functionResponse": {"name": "read_file", "response": {"error": "two"}}},
            ],
        ),
        ("user", [{"text": "Go on"}]),
    ]


def test_a_result_that_says_nothing_says_so() -> None:
    *_, (_, parts) = contents(user("Hi"), assistant(call("a")), result("a", " "))
    assert parts == [answered("(no output)")]


def test_images_are_inline_data() -> None:
    assert contents(user("Look", PIXEL)) == [("user", [{"text": "Look"}, BLOB])]


def test_images_of_results_are_inside_them_from_generation_3_on() -> None:
    *_, (_, parts) = contents(user("Hi"), assistant(call("a")), result("a", PIXEL))
    assert parts == [answered("(see the image)", parts=[BLOB])]


def test_images_of_results_are_a_content_of_their_own_before() -> None:
    turn = (user("Hi"), assistant(call("a"), call("b")), result("a", "x", PIXEL), result("b", PIXEL))
    said = contents(*turn, user("And?"), model=G2)
    assert said[2:] == [
        ("user", [answered("x"), answered("(see the image)")]),
        ("user", [{"text": "Images from the tool results above:"}, BLOB, BLOB, {"text": "And?"}]),
    ]
    assert contents(*turn, assistant("Seen."), user("And?"), model=G2)[3:5] == [
        ("user", [{"text": "Images from the tool results above:"}, BLOB, BLOB]),
        ("model", [{"text": "Seen."}]),
    ]


@pytest.mark.parametrize("messages", [(user(PIXEL),), (user("Hi"), assistant(call("a")), result("a", PIXEL))])
def test_an_image_for_a_model_without_eyes_is_refused(messages: Any) -> None:
    with pytest.raises(ProviderError, match="does not take images"):
        generate_body(request(*messages, model=Model("local", G3)))


# --- the order of contents ------------------------------------------------------------------------


def test_messages_of_one_role_in_a_row_are_one_content() -> None:
    assert contents(user("1"), user("2"), assistant("3"), assistant(call("a")), result("a", "x")) == [
        ("user", [{"text": "1"}, {"text": "2"}]),
        ("model", [{"text": "3"}, called() | {"thoughtSignature": UNSIGNED}]),
        ("user", [answered()]),
    ]


def test_an_answer_that_says_nothing_is_left_out() -> None:
    assert contents(user("1"), assistant("\n\n"), assistant(thinking("Hm.")), user("2")) == [
        ("user", [{"text": "1"}, {"text": "2"}])
    ]


def test_thoughts_are_not_replayed_unsigned() -> None:
    assert contents(user("1"), assistant(thinking("Hm."), "2"), user("3"))[1] == ("model", [{"text": "2"}])


# --- signatures -----------------------------------------------------------------------------------


def answer(*blocks: dict[str, Any], model: str = G3, **fields: Any) -> AssistantMessage:
    """The message that a scripted answer of the fake server makes, as the loop makes it."""
    decoder = GeminiDecoder(Peer("local", model, "http://127.0.0.1"))
    ids = iter(range(99))
    response = Response(lambda given: given or f"made-{next(ids)}")
    for piece in answer_events({"content": blocks} | fields, model):
        for event in decoder.feed(piece):
            assert not isinstance(event, StreamEnd)
            response.add(event)
    for event in decoder.close():
        assert not isinstance(event, StreamEnd)
        response.add(event)
    end = decoder.end()
    content, _ = response.finish(end, None)
    return assistant(*content, model=model, provider_data=end.provider_data)


def tool(id: str | None = None, **arguments: Any) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_call", "name": "read_file", "arguments": arguments}
    return block | ({} if id is None else {"id": id})


def test_signatures_go_back_on_the_parts_they_came_with() -> None:
    told = [{"type": "text", "text": "I will look into this."}, tool(path="a"), tool(path="b")]
    turn = answer({"type": "thinking", "text": "Hm."}, *told)
    ids = [each.id for each in turn.calls]
    first = called(path="a")
    assert contents(user("Hi"), turn, *(result(id, "x") for id in ids))[1] == (
        "model",
        [
            {"text": "I will look into this."},
            first | {"thoughtSignature": sign(G3, first)},
            called(path="b"),
        ],
    )


def test_a_signature_on_an_empty_text_goes_back_on_one() -> None:
    said = contents(user("Hi"), answer({"type": "text", "text": "Hello, world"}), user("More"))
    empty = {"text": ""}
    assert said[1] == ("model", [{"text": "Hello, world"}, empty | {"thoughtSignature": sign(G3, empty)}])


def test_the_servers_own_ids_go_back_with_call_and_result() -> None:
    turn = answer(tool("srv-1"), tool("srv-2"))
    renamed = tuple(each.model_copy(update={"id": f"{each.id}~2"}) for each in turn.calls)
    turn = turn.model_copy(update={"content": renamed})
    said = contents(user("Hi"), turn, result("srv-1~2", "x"), result("srv-2~2", "y"))
    assert [part["functionCall"]["id"] for part in said[1][1]] == ["srv-1", "srv-2"]
    assert [part["functionResponse"]["id"] for part in said[2][1]] == ["srv-1", "srv-2"]


def test_ids_that_are_ours_are_not_sent() -> None:
    said = contents(user("Hi"), answer(tool(path="a")), result("made-0", "x"))
    assert said[2][1] == [answered()]


@pytest.mark.parametrize("other", ["gemini-3.1-pro-preview", "gemini-2.5-pro", "gemini-2.0-flash", "gemma-3"])
def test_another_model_gets_no_signature_but_the_one_for_foreign_calls(other: str) -> None:
    turn = answer(tool("srv-1", path="a"), tool("srv-2", path="b"))
    first, second = contents(user("Hi"), turn, result("srv-1", "x"), result("srv-2", "x"), model=other)[1][1]
    demanded = {"thoughtSignature": UNSIGNED} if other.startswith("gemini-3") else {}
    assert (first, second) == (called(path="a") | demanded, called(path="b"))


def test_another_provider_of_the_same_model_gets_none_either() -> None:
    turn = answer({"type": "text", "text": "Hello"}).model_copy(update={"provider": "vertex"})
    assert contents(user("Hi"), turn, user("More"))[1] == ("model", [{"text": "Hello"}])


def test_a_call_of_ours_that_lost_its_signature_is_marked_like_a_foreign_one() -> None:
    bare = answer(tool(path="a")).model_copy(update={"provider_data": None})
    (part,) = contents(user("Hi"), bare, result("made-0", "x"))[1][1]
    assert part["thoughtSignature"] == UNSIGNED


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"parts": "x"},
        {"parts": [7]},
        {"parts": [{"chars": "x"}]},
        {"parts": [{"chars": 3}]},
        {"parts": [{"call": True}]},
        {"reasoningField": "reasoning"},
    ],
)
def test_what_was_kept_for_another_text_is_not_used(kept: Any) -> None:
    turn = assistant("Hello", model=G3, provider_data=kept)
    assert contents(user("Hi"), turn, user("More"))[1] == ("model", [{"text": "Hello"}])


def test_parts_of_the_servers_own_go_back_as_they_came() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    turn = assistant("Hello", model=G3, provider_data={"parts": [{"part": code}, {"chars": 5}]})
    assert contents(user("Hi"), turn, user("More"))[1] == ("model", [code, {"text": "Hello"}])


BLOCKS = st.one_of(
    st.builds(
        lambda kind, text: {"type": kind, "text": text},
        st.sampled_from(("text", "thinking")),
        st.text(alphabet="ab \nü🌍", min_size=1, max_size=20),
    ),
    st.builds(lambda n: tool(path=str(n)), st.integers(0, 3)),
    st.builds(lambda n: tool(f"srv-{n}"), st.integers(0, 3)),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(BLOCKS, min_size=1, max_size=5), min_size=1, max_size=3), st.integers(1, 9))
def test_any_conversation_with_a_model_goes_back_to_it_as_valid(turns: Any, size: int) -> None:
    messages: list[Message] = [user("Hi")]
    made = 0
    for blocks in turns:
        turn = answer(*blocks, chunkSize=size)
        unique = []
        for block in turn.content:
            made += 1
            unique.append(
                block.model_copy(update={"id": f"c{made}"}) if isinstance(block, ToolCall) else block
            )
        turn = turn.model_copy(update={"content": tuple(unique)})
        messages += [turn, *(result(each.id, "x") for each in turn.calls)]
    said = contents(*project([*messages, user("More")]))
    texts = [
        part["text"] for _, parts in said for part in parts if "text" in part and not part.get("thought")
    ]
    texts = [text for text in texts if text.strip() and text != GO_ON]  # what stands between two answers
    assert "".join(texts) == f"Hi{''.join(_answers(messages))}More"


def _answers(messages: list[Message]) -> list[str]:
    return [
        block.text
        for message in messages[1:]
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, TextContent) and block.text.strip()
    ]
