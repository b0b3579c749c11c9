"""The flags that the configuration knows are the fields of the dialects, and no others."""

import types
from dataclasses import fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from agentd.config.builtin import BUILT_IN
from agentd.config.dialects import FLAGS, TIMEOUTS
from agentd.providers.anthropic import Dialect
from agentd.providers.apis import APIS
from agentd.providers.gemini import GeminiDialect
from agentd.providers.http_endpoint import Timeouts
from agentd.providers.openai_chat import ChatDialect
from agentd.providers.openai_responses import ResponsesDialect

DIALECTS: dict[str, type] = {
    "openai-chat": ChatDialect,
    "openai-responses": ResponsesDialect,
    "anthropic": Dialect,
    "gemini": GeminiDialect,
}


def kind_of(hint: Any) -> Any:
    """A field's type as the configuration's table writes it; an optional one as what it is when given."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is Literal:
        return get_args(hint)
    return list if hint == tuple[str, ...] else hint


def test_both_know_the_same_apis() -> None:
    assert tuple(FLAGS) == APIS == tuple(DIALECTS)


@pytest.mark.parametrize("api", APIS)
def test_the_flags_of_an_api_are_the_fields_of_its_dialect(api: str) -> None:
    hints = get_type_hints(DIALECTS[api])
    assert {name: kind_of(hint) for name, hint in hints.items()} == dict(FLAGS[api])


def test_the_waits_that_can_be_set_are_waits() -> None:
    assert set(TIMEOUTS) <= {field.name for field in fields(Timeouts)}


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_flags_of_a_built_in_provider_change_something(name: str) -> None:
    known = BUILT_IN[name]
    plain = DIALECTS[known.api]()
    for flag, value in known.dialect.items():
        assert getattr(plain, flag) != value
