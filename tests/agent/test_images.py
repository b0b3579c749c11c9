"""Which images a request shows, and that what it shows stays the same while more come."""

from itertools import pairwise

import pytest
from fakes.pictures import block, picture
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.images import MADE_ROOM, Fitted, SessionImages, Sight, images_of
from agentd.agent.request import project
from agentd.protocol.messages import ImageContent, Message, TextContent, UserMessage
from agentd.providers.base import Model
from agentd.providers.image_limits import ANTHROPIC, GEMINI, USUAL, ImageLimits, limits_of

TIME = "2026-01-01T00:00:00.000Z"
FEW = ImageLimits(count=6, total=1000, crowd=4, crowd_side=50)


def look(*sizes: int, first: int = 0) -> list[Message]:
    """A message for each image of so many bytes."""
    return [
        UserMessage(
            message_id=f"m{n}",
            content=(
                TextContent(text=f"image {n}"),
                ImageContent(mime_type="image/png", data=f"{n}".rjust(size, "x")),
            ),
            timestamp=TIME,
        )
        for n, size in enumerate(sizes, first)
    ]


def sight(transcript: list[Message], limits: ImageLimits, side: int = 10) -> Sight:
    return Sight(limits, {image.data: Fitted(image, side) for image in images_of(transcript)})


def sent(transcript: list[Message], limits: ImageLimits, side: int = 10) -> tuple[Message, ...]:
    return project(transcript, sight=sight(transcript, limits, side))


sizes = st.lists(st.integers(10, 300), max_size=60)


@settings(max_examples=200, deadline=None)
@given(sizes)
def test_a_request_never_shows_more_than_a_server_takes_and_always_the_newest(found: list[int]) -> None:
    transcript = look(*found)
    shown = list(images_of(sent(transcript, FEW)))
    assert len(shown) <= FEW.count
    assert sum(len(image.data) for image in shown) <= FEW.total
    everything = list(images_of(transcript))
    assert shown == everything[len(everything) - len(shown) :]
    assert bool(shown) == bool(everything)


@settings(max_examples=200, deadline=None)
@given(sizes)
def test_what_made_room_stays_away_and_the_beginning_changes_seldom(found: list[int]) -> None:
    transcript = look(*found)
    requests = [sent(transcript[:n], FEW) for n in range(1, len(transcript) + 1)]
    changes = 0
    for before, after in pairwise(requests):
        gone = [n for n, message in enumerate(before) if MADE_ROOM in str(message)]
        assert all(after[n] == before[n] for n in gone)
        changes += after[: len(before)] != before
    # Each change takes away half of what there may be, so that much has to come before the next.
    assert changes <= 2 * sum(found) / (FEW.total / 2) + len(found) / (FEW.count / 2)


@pytest.mark.parametrize(("size", "places"), [(10, [6, 10, 14, 18]), (250, [4, 7, 10, 13, 16, 19])])
def test_half_of_the_images_make_room_at_once(size: int, places: list[int]) -> None:
    """Too many of them, and too large ones: the cache is lost once for several new images."""
    transcript = look(*[size] * 20)
    requests = [sent(transcript[:n], FEW) for n in range(1, 21)]
    changed = [n for n, (before, after) in enumerate(pairwise(requests), 1) if after[:n] != before]
    assert changed == places


def test_in_a_crowd_images_that_are_too_large_for_one_go_all_at_once_and_stay_away() -> None:
    transcript = look(*[10] * 9)
    large = Sight(
        FEW,
        {image.data: Fitted(image, 90 if n % 2 else 10) for n, image in enumerate(images_of(transcript))},
    )
    assert len(list(images_of(project(transcript[:4], sight=large)))) == 4
    assert len(list(images_of(project(transcript[:5], sight=large)))) == 3
    shown = [image.data[-1] for image in images_of(project(transcript, sight=large))]
    assert set(shown) <= set("02468")


async def test_images_are_made_fit_once_and_forgotten_when_they_are_gone() -> None:
    images = SessionImages()
    model = Model("p", "m", images=True, image_limits=ANTHROPIC)
    made = ImageContent(mime_type="image/png", data=block(picture(3000, 10))["data"])
    message = UserMessage(message_id="m1", content=(made,), timestamp=TIME)
    first = await images.sight([message], None, model)
    again = await images.sight([message], None, model)
    assert first is not None
    assert again is not None
    (one,), (other,) = first.fitted.values(), again.fitted.values()
    assert one is other
    assert await images.sight([], None, model) is None
    assert not images._fitted
    blind = Model("p", "blind")
    assert await images.sight([message], None, blind) is None


async def test_what_got_into_a_session_and_is_no_image_is_a_word() -> None:
    images = SessionImages()
    model = Model("p", "m", images=True)
    odd = [ImageContent(mime_type="image/png", data=data) for data in ("aGVsbG8=", "!", "iVBORw0KGgo=")]
    messages: list[Message] = [UserMessage(message_id="m", content=tuple(odd), timestamp=TIME)]
    shown = project(messages, sight=await images.sight(messages, None, model))
    assert str(shown).count("There was an image here, which cannot be shown: ") == 3
    assert not list(images_of(shown))


@pytest.mark.parametrize(
    ("provider", "api", "model", "expected"),
    [
        ("anthropic", "anthropic", "claude-opus-4-8", ANTHROPIC),
        ("openrouter", "openai-chat", "anthropic/claude-sonnet-4-5", ANTHROPIC),
        ("google", "gemini", "gemini-3-pro", GEMINI),
        ("openrouter", "openai-chat", "google/gemini-3-pro", GEMINI),
        ("openai", "openai-responses", "gpt-5", USUAL),
        ("mine", "openai-chat", "qwen3-vl", USUAL),
    ],
)
def test_limits_are_those_of_who_serves_a_model_or_made_it(
    provider: str, api: str, model: str, expected: ImageLimits
) -> None:
    assert limits_of(provider, api, model) == expected


def test_limits_of_providers_are_their_own() -> None:
    assert limits_of("groq", "openai-chat", "llama-4").count == 5
    assert "image/webp" not in limits_of("xai", "openai-chat", "grok-4").types
