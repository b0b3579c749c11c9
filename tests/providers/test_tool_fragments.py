"""Which call a fragment belongs to, with all that servers leave out, repeat or get wrong."""

import json
from typing import Any

import pytest
from conversation import calls_in
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.providers.base import StreamEvent
from agentd.providers.tool_fragments import ToolFragments


def assemble(*fragments: dict[str, Any]) -> list[tuple[Any, Any, str]]:
    blocks = iter(range(100))
    tool_fragments = ToolFragments(lambda: next(blocks))
    events: list[StreamEvent] = [delta for raw in fragments if (delta := tool_fragments.add(raw))]
    calls = calls_in(events)
    assert len(calls) == tool_fragments.count
    return [(call["id"], call["name"], call["arguments"]) for call in calls]


ABSENT: Any = object()


def fragment(
    arguments: Any = ABSENT, *, id: Any = ABSENT, name: Any = ABSENT, index: Any = ABSENT
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    raw = {"index": index, "id": id, "function": {k: v for k, v in function.items() if v is not ABSENT}}
    return {key: value for key, value in raw.items() if value is not ABSENT}


A, B = '{"path":"a"}', '{"path":"b"}'


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [
                fragment("", index=0, id="c1", name="read"),
                fragment('{"pa', index=0),
                fragment('th":"a"}', index=0),
            ],
            [("c1", "read", A)],
            id="the usual form",
        ),
        pytest.param([fragment(A, id="c1", name="read")], [("c1", "read", A)], id="one call without index"),
        pytest.param(
            [fragment(A, id="c1", name="read"), fragment(B, id="c2", name="read")],
            [("c1", "read", A), ("c2", "read", B)],
            id="two calls without index, told apart by id",
        ),
        pytest.param(
            [
                fragment("{", id="c1", name="read"),
                fragment("}"),
                fragment("{", id="c2", name="ls"),
                fragment("}"),
            ],
            [("c1", "read", "{}"), ("c2", "ls", "{}")],
            id="without index and id the last call goes on",
        ),
        pytest.param(
            [fragment("{", id="c1", name="read"), fragment("}", id="c1")],
            [("c1", "read", "{}")],
            id="without index the same id goes on",
        ),
        pytest.param(
            [fragment(A, index=0, id="c1", name="write"), fragment(B, index=0, id="c2", name="write")],
            [("c1", "write", A), ("c2", "write", B)],
            id="index 0 for every call",
        ),
        pytest.param(
            [
                fragment("", index=0, id="c1", name="w"),
                fragment("", index=0, id="c2", name="w"),
                fragment(A, index=0, id="c1"),
                fragment(B, index=0, id="c2"),
            ],
            [("c1", "w", A), ("c2", "w", B)],
            id="one index and interleaved ids",
        ),
        pytest.param(
            [fragment(A, index=0, name="read"), fragment(B, index=0, name="read")],
            [(None, "read", A), (None, "read", B)],
            id="index 0 and no id for whole calls",
        ),
        pytest.param(
            [fragment(A, index=0, id="", name="read"), fragment("{}", index=0, id="", name="ls")],
            [(None, "read", A), (None, "ls", "{}")],
            id="index 0 and another name",
        ),
        pytest.param(
            [fragment("{", index=0), fragment("{", index=1), fragment("}", index=0), fragment("}", index=1)],
            [(None, None, "{}"), (None, None, "{}")],
            id="interleaved indexes",
        ),
        pytest.param(
            [fragment(A, index=0, id="x", name="f"), fragment(B, index=1, id="x", name="f")],
            [("x", "f", A), ("x", "f", B)],
            id="one id for two indexes",
        ),
        pytest.param(
            [
                fragment("", index=0, id="0", name="read"),
                fragment('{"pa', index=0, id="0", name=None),
                fragment('th":"a"}', index=0, id="", name=""),
            ],
            [("0", "read", A)],
            id="id and name repeated, null or empty",
        ),
        pytest.param(
            [fragment('{"path"', index=0, id="c", name="f"), fragment(':"a"}', index=0, id="c", name="f")],
            [("c", "f", A)],
            id="id and name in every fragment",
        ),
        pytest.param(
            [fragment("{", index=0, id="c1"), fragment("}", index=0, name="list")],
            [("c1", "list", "{}")],
            id="the name comes late",
        ),
        pytest.param(
            [fragment("{", index=0, name="list"), fragment("}", index=0, id="c1")],
            [("c1", "list", "{}")],
            id="the id comes late",
        ),
        pytest.param([fragment(A, index=0, id="c1")], [("c1", None, A)], id="the name never comes"),
        pytest.param(
            [fragment(None, index=0, id="c1", name="list"), fragment(None, index=0)],
            [("c1", "list", "")],
            id="null arguments",
        ),
        pytest.param(
            [fragment(A, index=0, id="c1", name="f"), fragment("", index=0, id="")],
            [("c1", "f", A)],
            id="an empty fragment at the end",
        ),
        pytest.param([fragment("", index=3, id="", name="")], [], id="nothing but an index"),
        pytest.param(
            [fragment({"path": "a"}, index=0, id=7, name="f")],
            [("7", "f", '{"path": "a"}')],
            id="arguments as an object, id as a number",
        ),
        pytest.param(
            [{"index": "0", "id": ["x"], "function": {"name": 1.5, "arguments": 3}}, {"function": None}],
            [],
            id="nothing usable",
        ),
        pytest.param(
            [fragment("{}", index=0, id="c1", name="f"), fragment(" ", index=0), fragment("\n", index=0)],
            [("c1", "f", "{} \n")],
            id="blanks after whole arguments",
        ),
    ],
)
def test_fragments_become_calls(fragments: list[dict[str, Any]], expected: list[Any]) -> None:
    assert assemble(*fragments) == expected


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write"]),
        st.dictionaries(st.text(max_size=3), st.text(max_size=9), max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@given(CALLS, st.data())
@settings(max_examples=100)
def test_indexed_calls_survive_any_split_and_interleaving(
    calls: list[tuple[str, dict[str, str]]], data: st.DataObject
) -> None:
    queues = []
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        first = fragment(pieces[0], index=index, id=f"c{index}", name=name)
        queues.append([first, *(fragment(piece, index=index) for piece in pieces[1:])])
    stream = [queue[0] for queue in queues]
    rest = [queue[1:] for queue in queues]
    while any(rest):
        queue = data.draw(st.sampled_from([queue for queue in rest if queue]))
        stream.append(queue.pop(0))
    expected = [(f"c{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls)]
    assert assemble(*stream) == expected


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "a", "{}", "c1"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["index", "id", "function", "name", "arguments"]), inner, max_size=5
        )
    ),
    max_leaves=6,
)
PARTS = st.dictionaries(st.sampled_from(["index", "id", "function", "type"]), JUNK, max_size=4)


@given(st.lists(PARTS, max_size=6))
@settings(max_examples=100)
def test_no_fragment_raises_and_ids_and_names_come_once(fragments: list[dict[str, Any]]) -> None:
    assemble(*fragments)  # `calls_in` checks that nothing comes twice
