"""Images are made small enough in a process of its own that no image can keep, or make large."""

import os
import signal
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from fakes.pictures import SECRET, TYPES, claiming, moving, noise, opened, picture, saved, sideways, telling
from PIL import Image
from wire.processes import until

from agentd.workspace import shrinking
from agentd.workspace.image_form import form_of
from agentd.workspace.shrinking import NotShrunk, shrunk

ALL = tuple(TYPES.values())


async def small(data: bytes, side: int = 100, size: int = 10**6, types: tuple[str, ...] = ALL) -> bytes:
    """The image made smaller, which must be what it says it is, and within what was asked for."""
    mime_type, made = await shrunk(data, side=side, size=size, types=types)
    form = form_of(made)
    assert form is not None
    assert (form.mime_type, form.animated, form.orientation) == (mime_type, False, 1)
    assert form.side <= side
    assert len(made) <= size
    assert mime_type in types
    return made


@pytest.mark.parametrize("form", sorted(TYPES))
async def test_an_image_of_any_type_is_made_smaller_in_its_proportions(form: str) -> None:
    assert opened(await small(picture(400, 200, form))).size == (100, 50)


async def test_a_small_image_is_not_made_larger() -> None:
    assert opened(await small(picture(10, 20))).size == (10, 20)


async def test_a_drawing_stays_one_and_a_photo_a_photo() -> None:
    assert opened(await small(picture(400, 300, "PNG"))).format == "PNG"
    assert opened(await small(picture(400, 300, "JPEG"))).format == "JPEG"


async def test_what_is_too_large_in_bytes_loses_quality_first_and_pixels_then() -> None:
    data = noise(600, 600)
    photo = await small(data, side=600, size=300_000)
    assert (opened(photo).format, opened(photo).size) == ("JPEG", (600, 600))
    assert max(opened(await small(data, side=600, size=30_000)).size) < 600


@pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP"])
async def test_of_a_moving_image_the_first_frame_stays(form: str) -> None:
    made = opened(await small(moving(form), types=("image/png", "image/jpeg"))).convert("RGB")
    red, green, blue = made.getpixel((5, 5))  # type: ignore[misc]
    assert red > 200 > max(green, blue)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
async def test_an_image_that_lies_on_its_side_is_turned_upright(form: str) -> None:
    made = opened(await small(sideways(form))).convert("RGB")
    assert made.size == (20, 40)
    red, _, blue = made.getpixel((10, 5))  # type: ignore[misc]
    assert red > 200 > blue


@pytest.mark.parametrize("form", sorted(TYPES))
async def test_nothing_of_its_metadata_is_left(form: str) -> None:
    assert SECRET.encode() not in await small(telling(form), side=20)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16", "CMYK"])
async def test_whatever_an_image_is_made_of_it_is_shown(mode: str) -> None:
    await small(saved(Image.new(mode, (300, 200)), "JPEG" if mode == "CMYK" else "PNG"))


async def test_grey_of_16_bits_keeps_its_shades() -> None:
    image = Image.new("I;16", (4, 4), 32768)
    assert opened(await small(saved(image, "PNG"))).convert("L").getpixel((0, 0)) in (127, 128)


async def test_what_is_transparent_stays_or_becomes_white() -> None:
    data = saved(Image.new("RGBA", (30, 30), (0, 0, 0, 0)), "PNG")
    assert opened(await small(data)).convert("RGBA").getpixel((3, 3)) == (0, 0, 0, 0)
    photo = opened(await small(data, types=("image/jpeg",)))
    assert photo.convert("RGB").getpixel((3, 3)) == (255, 255, 255)


async def test_the_same_image_is_made_the_same() -> None:
    data = noise(300, 200, "JPEG")
    assert await small(data) == await small(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (claiming(60_000, 60_000), "DecompressionBomb|too many pixels"),
        (claiming(9_000, 9_000), "decoded"),
        (picture(400, 300)[:-30], "decoded"),
        (picture(form="JPEG")[:300] + b"\xff\xd9", "decoded"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "decoded"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "decoded"),
    ],
    ids=["bomb", "hollow", "cut", "stump", "zeros", "other-format"],
)
async def test_what_cannot_be_decoded_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(NotShrunk, match=why):
        await shrunk(data, side=100, size=10**6, types=ALL)


async def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "_SECONDS", 0.01)
    with pytest.raises(NotShrunk, match="seconds"):
        await shrunk(noise(2000, 2000), side=1000, size=10**6, types=ALL)


async def test_a_cancel_ends_the_work_at_once_and_leaves_no_process() -> None:
    data = noise(3000, 3000)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def cancel() -> None:
                await anyio.to_thread.run_sync(until, workers, "the work begins")
                scope.cancel()

            tasks.start_soon(cancel)
            await shrunk(data, side=2900, size=10**8, types=ALL)
    assert scope.cancelled_caught
    assert not workers()


async def test_a_worker_that_is_killed_is_a_reason_and_no_end() -> None:
    async with anyio.create_task_group() as tasks:

        async def kill() -> None:
            await anyio.to_thread.run_sync(until, workers, "the work begins")
            for worker in workers():
                os.kill(int(worker), signal.SIGKILL)

        tasks.start_soon(kill)
        with pytest.raises(NotShrunk, match="could not be decoded"):
            await shrunk(noise(3000, 3000), side=2900, size=10**8, types=ALL)
    assert not workers()


def workers() -> list[str]:
    """The processes of this test that make images smaller."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and b"image_worker" in line:
            found.append(entry.name)
    return found
