"""What an image is is told by its bytes alone, and what it says of its maker is left out."""

from contextlib import suppress

import pytest
from fakes.pictures import SECRET, TYPES, claiming, moving, noise, opened, picture, saved, sideways, telling
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageOps

from agentd.workspace.image_form import BadImage, ImageForm, form_of, without_metadata

FORMS = sorted(TYPES)
ANIMATED = ("GIF", "PNG", "WEBP")


@pytest.mark.parametrize("form", FORMS)
def test_type_and_size_of_an_image_are_told_by_its_bytes(form: str) -> None:
    assert form_of(picture(123, 45, form)) == ImageForm(TYPES[form], 123, 45)


@pytest.mark.parametrize("options", [{"lossless": True}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"}])
def test_every_layout_of_webp_is_known(options: dict[str, object]) -> None:
    assert form_of(picture(301, 7, "WEBP", **options)) == ImageForm("image/webp", 301, 7)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "I;16", "CMYK"])
def test_whatever_an_image_is_made_of_it_is_known(mode: str) -> None:
    image = Image.new(mode, (9, 4))
    form = "JPEG" if mode == "CMYK" else "PNG"
    assert form_of(saved(image, form)) == ImageForm(TYPES[form], 9, 4)


def test_a_jpeg_in_several_scans_is_read_to_its_end() -> None:
    data = saved(opened(noise(64, 64)), "JPEG", progressive=True)
    assert form_of(data + b"\xff\xd8 another one behind it") == ImageForm("image/jpeg", 64, 64)
    assert without_metadata(data + b"appended")[-2:] == b"\xff\xd9"


@pytest.mark.parametrize("form", ANIMATED)
def test_a_moving_image_is_told_from_a_still_one(form: str) -> None:
    still, animated = form_of(picture(20, 10, form)), form_of(moving(form))
    assert still is not None
    assert animated is not None
    assert (still.animated, animated.animated) == (False, True)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_how_an_image_is_to_be_turned_is_read(form: str) -> None:
    found = form_of(sideways(form))
    assert found is not None
    assert found.orientation == 6


@pytest.mark.parametrize(
    "data", [b"", b"GIF", b"hello", b"%PDF-1.7", b"BM" + bytes(60), b"<svg></svg>", bytes(99)]
)
def test_what_is_none_of_the_four_types_is_none(data: bytes) -> None:
    assert form_of(data) is None


@pytest.mark.parametrize("form", FORMS)
def test_an_image_that_is_cut_off_anywhere_is_no_image(form: str) -> None:
    data = picture(16, 16, form)
    last = len(data) - (
        2 if form in ("GIF", "WEBP") else 1
    )  # their last byte is a mark of the end, or padding
    for end in range(16, last):
        with pytest.raises(BadImage):
            form_of(data[:end])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FORMS), st.binary(max_size=300), st.integers(0, 60))
def test_bytes_that_mean_ill_are_an_image_or_none_and_nothing_else(form: str, more: bytes, kept: int) -> None:
    data = picture(16, 16, form)[:kept] + more
    try:
        found = form_of(data)
    except BadImage:
        return
    if found is not None:
        with suppress(BadImage):
            without_metadata(data)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FORMS), st.data())
def test_a_damaged_image_is_an_image_or_none(form: str, data: st.DataObject) -> None:
    damaged = bytearray(telling(form))
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = form_of(bytes(damaged))
    except BadImage:
        return
    if found is not None:
        with suppress(BadImage):
            without_metadata(bytes(damaged))


@pytest.mark.parametrize("form", FORMS)
def test_metadata_are_left_out_and_no_pixel_changes(form: str) -> None:
    data = telling(form)
    assert SECRET.encode() in data
    bare = without_metadata(data)
    assert SECRET.encode() not in bare
    assert form_of(bare) == form_of(data)
    assert ImageChops.difference(opened(bare).convert("RGB"), opened(data).convert("RGB")).getbbox() is None


@pytest.mark.parametrize("form", FORMS)
def test_an_image_without_metadata_stays_to_the_byte(form: str) -> None:
    data = without_metadata(picture(form=form))
    assert without_metadata(data) is data


@pytest.mark.parametrize("form", ANIMATED)
def test_a_moving_image_still_moves_without_its_metadata(form: str) -> None:
    assert opened(without_metadata(moving(form))).n_frames == 3  # type: ignore[attr-defined]


def test_a_jpeg_keeps_how_it_is_to_be_turned_and_nothing_else() -> None:
    bare = without_metadata(sideways())
    assert SECRET.encode() not in bare
    assert ImageOps.exif_transpose(opened(bare)).size == (20, 40)


def test_a_colour_profile_stays() -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for form in ("JPEG", "PNG", "WEBP"):
        data = picture(form=form, icc_profile=profile)
        assert opened(without_metadata(data)).info["icc_profile"] == profile


def test_what_claims_to_be_huge_is_known_for_it_without_being_decoded() -> None:
    form = form_of(claiming(60_000, 60_000))
    assert form is not None
    assert form.pixels == 3_600_000_000


@pytest.mark.parametrize(
    "data",
    [
        picture()[:33] + bytes(12) * 300_000,
        picture(form="JPEG")[:20] + b"\xff\xe5\x00\x02" * 300_000,
        picture(form="GIF")[:-1] + b"\x21\xfe" + b"\x01x" * 300_000,
        b"RIFF\x00\x00\x00\x01WEBP" + b"JUNK\x00\x00\x00\x00" * 300_000 + bytes(2**24),
    ],
    ids=["png", "jpeg", "gif", "webp"],
)
def test_an_image_in_pieces_without_number_is_not_looked_at_to_its_end(data: bytes) -> None:
    with pytest.raises(BadImage, match="too many pieces"):
        form_of(data)


def test_a_jpeg_that_is_broken_behind_its_header_is_found_so_when_it_is_copied() -> None:
    data = picture(form="JPEG")
    scan = data.index(b"\xff\xda") + 14
    broken = data[:scan] + b"\xff\xe1\xff\xff" + data[scan:]
    assert form_of(broken) is not None
    with pytest.raises(BadImage):
        without_metadata(broken)


def test_a_jpeg_whose_pixels_are_filled_up_is_read_once() -> None:
    """A search that begins anew at each byte would take days here, and hold up all else meanwhile."""
    whole = picture(8, 8, "JPEG")
    pixels = whole.rindex(b"\xff\xda") + 14
    filled = whole[:pixels] + b"\xff" * 4_000_000 + b"\0" + whole[pixels:]
    assert without_metadata(filled) == filled
