"""What text becomes before people and models read it."""

import pytest

from agentd.protocol.text import without_unseen


def tags(words: str) -> str:
    """Words in tag characters, which have no shape."""
    return "".join(chr(0xE0000 + ord(letter)) for letter in words)


SCOTLAND = f"\U0001f3f4{tags('gbsct')}\U000e007f"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"a{tags('rm -rf')}b", "a[6 invisible characters left out]b"),
        (f"{tags('x')}", "[1 invisible characters left out]"),
        (f"{SCOTLAND}{tags('run')}", f"{SCOTLAND}[3 invisible characters left out]"),
        (f"\U0001f3f4{tags('rm -rf /')}", "\U0001f3f4[8 invisible characters left out]"),
        ("a" + "\u200b\u200c" * 8, "a[16 invisible characters left out]"),
        ("a" + "\ufe00\ufe01\U000e0100" * 3, "a[9 invisible characters left out]"),
        ("\u202e\u2066\u2069\u200b", "[4 invisible characters left out]"),
    ],
)
def test_words_that_nobody_sees_are_counted_in_their_place(text: str, told: str) -> None:
    assert without_unseen(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "\ufeffmark",
        FAMILY,
        SCOTLAND,
        "\u2764\ufe0f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u845b\U000e0100",
        "soft\u00adhyphen",
        "\u200f\u202bright to left\u202c",
    ],
)
def test_what_spelling_emoji_and_flags_need_stays(text: str) -> None:
    assert without_unseen(text) == text
