"""A call that a model wrote into its text is told of, and words about calls are not."""

import pytest

from agentd.agent.unread_calls import names_unread_call

TOOLS = ("read_file", "bash")


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
        "I look.\n<tool_call>\n<function=read_file>\n<parameter=file_path>a</parameter>\n</function>",
        '[TOOL_CALLS][{"name": "bash", "arguments": {}}]',
        '<|python_tag|>{"name": "bash", "parameters": {}}',
        "<\uff5ctool\u2581calls\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>bash",
        "<function=bash>",
        '{"name": "read_file", "parameters": {"file_path": "a"}}',
        ' [{"name": "bash", "arguments": {}}] ',
        '<tool_call>{"name": "bash", "argum',
    ],
)
def test_a_call_in_any_models_own_form_is_found(text: str) -> None:
    assert names_unread_call(text, TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would run bash now.",
        '<tool_call>{"name": "no_tool_of_ours"}</tool_call>',
        '{"name": "bash"}',
        '{"name": "agentd", "arguments": []}',
        '{"arguments": {}}',
        "[1, 2]",
        "[" * 20_000,
        "{not json",
        "The bash history shows <tool_call> tags in a template.",
    ],
)
def test_words_about_calls_and_other_json_are_no_call(text: str) -> None:
    assert not names_unread_call(text, TOOLS)
