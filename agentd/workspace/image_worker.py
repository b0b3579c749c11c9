"""The process that makes images smaller: what decodes them is native code that reads whatever anybody sends.

It reads a line of JSON, `{"side", "size", "types", "pixels", "seconds"}`, and the image from stdin. It writes
a line of JSON, `{"mimeType"}` or `{"error"}`, and the image to stdout: its first frame, turned upright,
without metadata, no side longer than `side` pixels, no larger than `size` bytes, of one of `types`. The same
image and the same wishes give the same bytes.
"""

import json
import resource
import signal
import sys
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL.Image import Image

_MAX_MEMORY = 2 * 1024**3
_QUALITIES = (90, 80, 65)
_COMPRESSION = 4  # zlib's: a third of the usual level's time for 3 % more bytes
_STEP = 0.75  # of the sides, where no quality makes the image small enough
_LEAST_SIDE = 64
_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}


def main() -> None:
    """Work on what is on stdin."""
    wanted = json.loads(sys.stdin.buffer.readline())
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(wanted["seconds"]) + 1)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        mime_type, data = _smaller(sys.stdin.buffer.read(), wanted)
    except Exception as error:  # decoders fail in many ways, and all of them mean the same
        answer, data = {"error": f"{type(error).__name__}: {error}"[:200]}, b""
    else:
        answer = {"mimeType": mime_type}
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii") + b"\n" + data)


def _smaller(data: bytes, wanted: dict[str, Any]) -> tuple[str, bytes]:
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = wanted["pixels"]
    with Image.open(BytesIO(data), formats=list(_FORMATS.values())) as opened:
        if opened.width * opened.height > wanted["pixels"]:
            raise ValueError("it has too many pixels")
        is_photo = opened.format == "JPEG"
        if is_photo:  # a JPEG is decoded at a fraction of its size, where that is enough
            opened.draft(None, (wanted["side"], wanted["side"]))
        ImageOps.exif_transpose(opened, in_place=True)
        image = _plain(opened)
    side = wanted["side"]
    while True:
        image.thumbnail((side, side), Image.Resampling.LANCZOS)
        for mime_type, smaller in _candidates(image, wanted["types"], is_photo=is_photo):
            if len(smaller) <= wanted["size"]:
                return mime_type, smaller
        side = int(max(image.size) * _STEP)
        if side < _LEAST_SIDE:
            raise ValueError("it cannot be made small enough")


def _plain(image: "Image") -> "Image":
    """The pixels alone, in a mode that all formats have: grey, or colour, transparent where it is."""
    if image.mode.startswith("I;16"):  # Pillow would cut off what is brighter than 255
        image = image.point(lambda value: value * (1 / 256) + 0)
    mode = "RGBA" if image.has_transparency_data else "L" if image.mode[0] in "1LIF" else "RGB"
    plain = image if image.mode == mode else image.convert(mode)  # no copy of a large image without need
    plain.info.clear()
    return plain


def _candidates(image: "Image", types: list[str], *, is_photo: bool) -> "Iterator[tuple[str, bytes]]":
    """The image in the formats that suit it, the best one first."""
    if not is_photo and "image/png" in types:
        yield "image/png", _saved(image, "PNG", compress_level=_COMPRESSION)
    for quality in _QUALITIES:
        yield "image/jpeg", _saved(_on_white(image), "JPEG", quality=quality)


def _on_white(image: "Image") -> "Image":
    if image.mode != "RGBA":
        return image
    from PIL import Image

    ground = Image.new("RGBA", image.size, "white")
    ground.alpha_composite(image)
    return ground.convert("RGB")


def _saved(image: "Image", form: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()
