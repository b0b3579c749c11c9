"""The fake Gemini server refuses what Google's refuse, so that other tests may trust it."""

from typing import Any

import httpx
import pytest
from fakes.gemini_faults import UNSIGNED, request_fault, schema_faults, sign
from fakes.gemini_server import GeminiServer

G2, G3 = "gemini-2.5-flash", "gemini-3-flash"
PNG = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return user(*parts) | {"role": "model"}


def call(name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}} | fields}


def response(name: str = "f", **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": "x"}} | fields}


def fault(*contents: Any, name: str = G2, **fields: Any) -> str | None:
    return request_fault(
        f"/v1beta/models/{name}:streamGenerateContent?alt=sse", {"contents": list(contents)} | fields
    )


def tools(*declarations: Any) -> list[Any]:
    return [{"functionDeclarations": list(declarations)}]


HI = user("Hi")


def test_a_valid_request_has_no_fault() -> None:
    turn = model("I see.", call("f", id="1"), call("g"))
    results = user(response("f", id="1"), response("g"))
    declared = {"name": "f", "description": "F", "parametersJsonSchema": {"type": "object", "$schema": "x"}}
    thinking = {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024}}
    fields = {
        "tools": tools(declared),
        "generationConfig": thinking,
        "systemInstruction": {"parts": [{"text": "S"}]},
    }
    assert fault(HI, turn, results, model("Done."), user("And?", PNG), **fields) is None


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([], "contents is not specified"),
        ([{"role": "assistant", "parts": [{"text": "x"}]}], "valid role"),
        ([{"parts": [{"text": "x"}]}], "valid role"),
        ([user()], "at least one parts field"),
        ([user({"text": ""})], "required oneof field 'data'"),
        ([user({})], "required oneof field 'data'"),
        ([user({"text": "x"} | PNG)], "required oneof field 'data'"),
        ([user({"text": "x", "cache": 1})], 'Unknown name "cache"'),
        ([model("Hi"), HI], "first content"),
        ([HI, model("Hi")], "last content"),
        ([HI, model(call("3d")), user(response("3d"))], "Invalid function name"),
        ([HI, model(call(args="{}")), user(response())], "Invalid value"),
        ([HI, model(call()), user(response(response="x"))], "Invalid value (Struct)"),
        ([HI, model(call()), user(response(content="x"))], 'Unknown name "content"'),
        ([HI, model(call()), user(response(parts=[PNG]))], "not supported for this model"),
        ([HI, model(call())], "last content"),
        ([HI, model(call(), call("g")), user(response())], "number of function response parts"),
        ([HI, model(call()), user(response(), response())], "number of function response parts"),
        ([HI, model(call()), user(response(), "And?")], "number of function response parts"),
        ([HI, model(call()), HI, user(response())], "number of function response parts"),
        ([HI, model(call(), call("g")), user(response("g"), response())], "in its order"),
        ([HI, model(call(id="1")), user(response(id="2"))], "in its order"),
        ([HI, user(response())], "immediately after a function call turn"),
        ([HI, model("I see."), model(call()), user(response())], "immediately after a user turn"),
        ([user({"inlineData": {"mimeType": "text/html", "data": "AA=="}})], "Unsupported MIME type"),
        ([user({"inlineData": {"mimeType": "image/png", "data": "no base64"}})], "Base64"),
        ([user("\ud800")], "surrogate"),
    ],
)
def test_a_fault_in_the_contents_is_found(contents: Any, words: str) -> None:
    found = fault(*contents)
    assert found is not None
    assert words in found


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"system": "x"}, 'Unknown name "system"'),
        ({"tools": tools()}, "tool_type"),
        ({"tools": tools({"name": "3d"})}, "Invalid function name"),
        ({"tools": tools({"name": "f"}, {"name": "f"})}, "Duplicate function declaration"),
        ({"tools": tools({"name": "f", "strict": True})}, 'Unknown name "strict"'),
        (
            {"tools": tools({"name": "f", "parameters": {"type": "OBJECT"}, "parametersJsonSchema": {}})},
            "cannot both be set",
        ),
        ({"tools": tools({"name": "f", "parameters": {"type": "STRING"}})}, "should be OBJECT"),
        ({"tools": tools({"name": "f", "parametersJsonSchema": {"type": "string"}})}, "should be OBJECT"),
        ({"generationConfig": {"max_tokens": 1}}, 'Unknown name "max_tokens"'),
        ({"generationConfig": {"maxOutputTokens": 0}}, "must be positive"),
        (
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 512}}},
            "only one of",
        ),
        ({"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, "not supported for this model"),
        ({"generationConfig": {"thinkingConfig": {"thinkingBudget": 10**6}}}, "budget 1000000 is invalid"),
        ({"systemInstruction": {"parts": []}}, "system_instruction"),
        ({"name": "gemini-2.0-flash", "generationConfig": {"thinkingConfig": {}}}, "not enabled"),
    ],
)  # fmt: skip
def test_a_fault_beside_the_contents_is_found(fields: Any, words: str) -> None:
    found = fault(HI, **fields)
    assert found is not None
    assert words in found


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "OBJECT", "additionalProperties": False}, 'Unknown name "additionalProperties"'),
        ({"type": "STRING", "$ref": "#"}, 'Unknown name "$ref"'),
        ({"type": ["STRING", "NULL"]}, "Invalid value"),
        ({"type": "INTEGER", "enum": [1]}, "only allowed for STRING"),
        ({"type": "STRING", "required": []}, "only allowed for OBJECT"),
        ({"type": "OBJECT", "properties": {}}, "non-empty"),
        ({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["b"]}, "not defined: b"),
        ({"type": "ARRAY"}, "missing field"),
        ({"type": "ARRAY", "items": {"oneOf": []}}, 'Unknown name "oneOf"'),
        ({"anyOf": [{"type": "STRING"}], "description": "x"}, "only field set"),
    ],
)
def test_a_schema_outside_the_subset_is_found(schema: Any, words: str) -> None:
    assert any(words in found for found in schema_faults(schema, "parameters"))


def signed(part: dict[str, Any], name: str = G3) -> dict[str, Any]:
    return part | {"thoughtSignature": sign(name, part)}


def test_a_call_of_this_turn_without_a_signature_is_refused_from_generation_3_on() -> None:
    turn = (model(call()), user(response()))
    assert fault(HI, *turn) is None
    assert "missing a thought_signature" in str(fault(HI, *turn, name=G3))
    assert fault(HI, *turn, model("Done."), user("And?"), name=G3) is None  # that turn is over
    assert fault(HI, model(signed(call()), call()), user(response(), response()), name=G3) is None
    assert "missing" in str(fault(HI, model(call(), signed(call())), user(response(), response()), name=G3))
    second = (model(call()), user(response()))
    assert "missing" in str(fault(HI, model(signed(call())), user(response()), *second, name=G3))


def test_a_signature_fits_one_part_of_one_model() -> None:
    unsigned = call() | {"thoughtSignature": UNSIGNED}
    assert fault(HI, model(unsigned), user(response()), name=G3) is None
    assert fault(HI, model("x", signed({"text": ""})), HI, name=G3) is None
    for wrong in (unsigned, signed(call(), "gemini-2.5-pro"), call() | {"thoughtSignature": "c2ln"}):
        assert fault(HI, model(wrong), user(response()), name=G2) == "Corrupted thought signature."
    moved = {"text": "x", "thoughtSignature": sign(G3, {"text": ""})}
    assert fault(HI, model(moved), HI, name=G3) == "Corrupted thought signature."


def test_a_path_without_a_model_or_for_no_stream_is_a_fault() -> None:
    body = {"contents": [HI]}
    assert request_fault("/v1beta/models/:streamGenerateContent?alt=sse", body) is not None
    assert request_fault(f"/v1beta/models/{G3}:streamGenerateContent", body) is not None


def test_a_refused_request_uses_up_no_response(gemini_server: GeminiServer) -> None:
    gemini_server.push({"content": [{"type": "text", "text": "ok"}]})
    url = f"{gemini_server.base_url}/models/{G3}:streamGenerateContent?alt=sse"
    refused = httpx.post(url, json={"contents": []})
    answered = httpx.post(url, json={"contents": [HI]})
    assert (refused.status_code, answered.status_code) == (400, 200)
    assert refused.json()["error"]["status"] == "INVALID_ARGUMENT"
    assert '"finishReason": "STOP"' in answered.text
    assert gemini_server.faults == ["contents is not specified"]
    assert gemini_server.unused == 0
