"""Images made for tests, good ones and hostile ones."""

import base64
import random
import struct
import zlib
from io import BytesIO
from typing import Any

from PIL import Image

TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
SECRET = "51.477N canary"
"""What the metadata of `telling` images hold."""


def picture(width: int = 40, height: int = 30, form: str = "PNG", **options: Any) -> bytes:
    """A picture in one colour."""
    return saved(Image.new("RGB", (width, height), "teal"), form, **options)


def noise(width: int, height: int, form: str = "PNG") -> bytes:
    """A picture that no format makes small."""
    pixels = random.Random(7).randbytes(width * height * 3)
    return saved(Image.frombytes("RGB", (width, height), pixels), form)


def moving(form: str = "GIF", frames: int = 3) -> bytes:
    """An animation whose first frame is red."""
    images = [Image.new("RGB", (20, 10), "red" if n == 0 else (0, 255 * (n % 2), 255)) for n in range(frames)]
    return saved(images[0], form, save_all=True, append_images=images[1:], duration=50)


def sideways(form: str = "JPEG") -> bytes:
    """A picture of 40 x 20 that is to be shown turned, as 20 x 40: its left half is red."""
    image = Image.new("RGB", (40, 20), "blue")
    image.paste("red", (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = SECRET
    return saved(image, form, exif=exif.tobytes(), quality=95)


def telling(form: str) -> bytes:
    """A picture whose metadata tell a secret."""
    image = Image.new("RGB", (40, 30), "teal")
    if form == "GIF":
        return saved(image, form, comment=SECRET)
    exif = Image.Exif()
    exif[0x010E] = SECRET
    if form == "PNG":
        from PIL.PngImagePlugin import PngInfo

        info = PngInfo()
        info.add_text("Location", SECRET)
        info.add_itxt("XML:com.adobe.xmp", SECRET, zip=False)
        return saved(image, form, exif=exif.tobytes(), pnginfo=info) + SECRET.encode()
    more = {"comment": SECRET} if form == "JPEG" else {}
    return saved(image, form, exif=exif.tobytes(), xmp=SECRET.encode(), **more)


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    """The bytes of an image."""
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def opened(data: bytes) -> Image.Image:
    """The image that bytes are, decoded."""
    image = Image.open(BytesIO(data))
    image.load()
    return image


def claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is so large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(10_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def block(data: bytes, mime_type: str = "image/png") -> dict[str, str]:
    """The image as a block of a prompt."""
    return {"type": "image", "mimeType": mime_type, "data": base64.b64encode(data).decode()}
