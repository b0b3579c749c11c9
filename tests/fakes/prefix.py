"""What a model server finds in its cache of a request: whatever the one before held, to the byte.

Cache markers are no part of what is cached: they move with every request, and are taken off first.
"""

import itertools
import json
import re
from collections.abc import Iterable

_MARKER = re.compile(r', ?"cache_control": ?\{"type": ?"ephemeral"\}')
_CLOSING = ' "}]'

GROWS = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
}
"""For each API the field of a body that grows."""


def parts(api: str, raw: bytes) -> tuple[str, str]:
    """The text of a body's messages without its last bracket, and the text of all the rest of the body."""
    body = _MARKER.sub("", raw.decode())
    name = f'"{GROWS[api]}":'
    begin = body.index(name) + len(name)
    begin += body[begin:].index("[")
    _, end = json.JSONDecoder().raw_decode(body, begin)
    return body[begin : end - 1], body[:begin] + body[end:]


def assert_each_begins_with_the_one_before(
    api: str, bodies: Iterable[bytes], *, merges: bool = False
) -> None:
    """Each request holds the one before it whole, and messages behind it.

    With `merges` the last message may have grown, as where the user says something before an answer came
    that can be shown; and a request may be the same, as where it is sent again.
    """
    texts = [parts(api, body) for body in bodies]
    for (before, rest_before), (after, rest_after) in itertools.pairwise(texts):
        assert rest_after == rest_before, "system prompt, tools and settings are the same"
        if merges:
            assert after.startswith(before.rstrip(_CLOSING)), (
                before[-300:],
                after[len(before) - 300 :][:600],
            )
        else:
            assert after.startswith(before)
            assert after[len(before) :].lstrip().startswith(",")
