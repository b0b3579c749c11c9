"""What servers refuse of the images in a request, in their own words where they are known."""

import base64
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from PIL import Image, UnidentifiedImageError

MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
MB = 1024 * 1024


def images_in(body: Any) -> list[tuple[str, bytes]]:
    """Type and content of every image in a request of any API, in its order."""
    return [(kind, base64.b64decode(data)) for kind, data in _encoded(body)]


def _encoded(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if value.get("type") == "base64":
            yield value["media_type"], value["data"]
        elif isinstance(blob := value.get("inlineData"), Mapping):
            yield blob.get("mimeType", ""), blob.get("data", "")
        for item in value.values():
            yield from _encoded(item)
    elif isinstance(value, list):
        for item in value:
            yield from _encoded(item)
    elif isinstance(value, str) and value.startswith("data:image/"):
        kind, _, data = value.removeprefix("data:").partition(";base64,")
        yield kind, data


def anthropic_faults(body: Any) -> Iterator[str]:
    """The limits of Anthropic's API."""
    images = list(_encoded(body))
    if len(images) > 100:
        yield f"messages: too many images in the request ({len(images)} > 100)"
    for kind, data in images:
        if len(data) > 5 * MB:
            yield f"image.source.base64: image exceeds 5 MB maximum: {len(data)} bytes > {5 * MB} bytes"
        yield from _type_faults(kind, data)
        size = _size(data)
        if max(size) > 8000:
            yield "At least one of the image dimensions exceed max allowed size: 8000 pixels"
        if len(images) > 20 and max(size) > 2000:
            yield (
                "At least one of the image dimensions exceed max allowed size for many-image requests: "
                "2000 pixels"
            )


def openai_faults(body: Any) -> Iterator[str]:
    """The limits of OpenAI's two APIs."""
    images = list(_encoded(body))
    if len(images) > 500:
        yield "Too many images"
    for kind, data in images:
        yield from _type_faults(kind, data)
        if _frames(data) > 1:
            yield "You uploaded an unsupported image. Please make sure your image is valid: it is animated"


def gemini_faults(body: Any) -> Iterator[str]:
    """The limits of Gemini's API."""
    images = list(_encoded(body))
    if sum(len(data) for _, data in images) > 20 * MB:
        yield "Request payload size exceeds the limit: 20971520 bytes (images)"
    for kind, data in images:
        if kind == "image/gif":
            yield "inline_data: Unsupported MIME type: image/gif"
        yield from _type_faults(kind, data)


def _type_faults(kind: str, data: str) -> Iterator[str]:
    if not _bytes(data).startswith(MAGIC.get(kind, b"?")):
        yield f"The image was specified using the {kind} media type, but the image does not appear to be one"


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return b""


def _size(data: str) -> tuple[int, int]:
    try:
        with Image.open(BytesIO(_bytes(data))) as image:
            return image.size
    except (UnidentifiedImageError, OSError):  # the tests of requests alone show no whole images
        return (0, 0)


def _frames(data: str) -> int:
    try:
        with Image.open(BytesIO(_bytes(data))) as image:
            return getattr(image, "n_frames", 1)
    except (UnidentifiedImageError, OSError):
        return 0
