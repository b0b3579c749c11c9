"""What an image is by its bytes alone: its type, size, whether it is whole; and its bytes without metadata.

Sans-I/O, standard library only, and nothing is decoded: so a prompt can be judged at once, and what claims to
be huge is refused before anybody makes room for it. The four types are those that model servers take.

Sources: PNG (W3C, 3rd edition), JPEG (ITU-T T.81, Annex B), GIF 89a, WebP (RFC 9649), Exif 2.32 (TIFF 6.0).
"""

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

UPRIGHT = 1
"""The orientation (Exif tag 0x0112) of an image that need not be turned."""

_MAX_PARTS = 200_000
"""The most pieces that an image may be made of: one of 20 MB has 80,000 where they are as small as any writer
makes them, and looking at each takes time."""

_PNG = b"\x89PNG\r\n\x1a\n"
_ORIENTATION = 0x0112
_EXIF = b"Exif\0\0"


@dataclass(frozen=True)
class ImageForm:
    """An image as its header tells it. `orientation` is Exif's, 1 to 8."""

    mime_type: str
    width: int
    height: int
    animated: bool = False
    orientation: int = UPRIGHT

    @property
    def name(self) -> str:
        """The type as people call it."""
        return _NAMES[self.mime_type]

    @property
    def pixels(self) -> int:
        """How many there are."""
        return self.width * self.height

    @property
    def side(self) -> int:
        """The longer side, in pixels."""
        return max(self.width, self.height)


class BadImage(Exception):
    """Bytes that begin as an image of a known type and are none: the message says what is wrong with it."""


def form_of(data: bytes) -> ImageForm | None:
    """What the image is; None where it is none of the four types. Raises `BadImage`."""
    for mime_type, (is_it, read, _) in _TYPES.items():
        if is_it(data):
            try:
                form = read(data)
            except (IndexError, struct.error):
                raise BadImage(f"the {_NAMES[mime_type]} image is cut off") from None
            if not form.width or not form.height:
                raise BadImage(f"the {form.name} image has no size")
            return form
    return None


def without_metadata(data: bytes) -> bytes:
    """The same image, to the pixel, without the words in it: where and when it was made, by whom, with what.

    How the image is to be turned stays in a JPEG. Takes as long as reading all of it. Raises `BadImage`.
    """
    for mime_type, (is_it, _, strip) in _TYPES.items():
        if is_it(data):
            try:
                bare = strip(data)
            except (IndexError, struct.error):
                raise BadImage(f"the {_NAMES[mime_type]} image is cut off") from None
            return data if bare == data else bare
    return data


# --- PNG ------------------------------------------------------------------------------------------

_PNG_KEPT = frozenset(
    {
        b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB", b"cICP",
        b"bKGD", b"acTL", b"fcTL", b"fdAT",
    }
)  # fmt: skip


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Each chunk's type, and where it begins and ends."""
    place = len(_PNG)
    for _ in range(_MAX_PARTS):
        size, kind = struct.unpack_from(">I4s", data, place)
        end = place + 12 + size
        if end > len(data):
            raise BadImage("the PNG image is cut off")
        yield kind, place, end
        if kind == b"IEND":
            return
        place = end
    raise BadImage("the PNG image is in too many pieces")


def _png(data: bytes) -> ImageForm:
    if data[12:16] != b"IHDR":
        raise BadImage("the PNG image has no header")
    width, height = struct.unpack_from(">II", data, 16)
    animated, orientation, has_pixels = False, UPRIGHT, False
    for kind, start, end in _png_chunks(data):
        animated = animated or kind == b"acTL"
        has_pixels = has_pixels or kind == b"IDAT"
        if kind == b"eXIf":
            orientation = _orientation(data[start + 8 : end - 4])
    if not has_pixels:
        raise BadImage("the PNG image holds no pixels")
    return ImageForm("image/png", width, height, animated, orientation)


def _bare_png(data: bytes) -> bytes:
    return _PNG + b"".join(data[start:end] for kind, start, end in _png_chunks(data) if kind in _PNG_KEPT)


# --- JPEG -----------------------------------------------------------------------------------------

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_APP0, _APP1, _APP2, _APP14, _APP15, _COMMENT = 0xE0, 0xE1, 0xE2, 0xEE, 0xEF, 0xFE
_SCAN, _END = 0xDA, 0xD9
_NEXT_MARKER = re.compile(rb"\xff+[\x01-\xcf\xd8-\xfe]")
_BEHIND_PIXELS = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""Among pixels 0xff comes before 0x00 or a restart. One 0xff and not a run of them: where no marker follows,
the search for a run would take the square of its length, and no other thread runs meanwhile."""


def _jpeg_segments(data: bytes, *, header: bool = False) -> Iterator[tuple[int, int, int]]:
    """Each segment's marker, where it begins and where it ends, a scan's with the pixels behind it.

    Of the `header` only those before the first scan, where an end follows somewhere: that takes no time.
    """
    place = 2
    for _ in range(_MAX_PARTS):
        found = _NEXT_MARKER.match(data, place)
        if found is None:
            is_at_end = len(data) - place < 4
            raise BadImage(f"the JPEG image is {'cut off' if is_at_end else 'broken'}")
        marker, place = data[found.end() - 1], found.end()
        if marker == _END:
            yield marker, place - 2, place
            return
        end = place + struct.unpack_from(">H", data, place)[0]
        if end > len(data):
            raise BadImage("the JPEG image is cut off")
        if marker == _SCAN and header:
            if data.rfind(b"\xff\xd9", end) < 0:
                raise BadImage("the JPEG image is cut off")
            return
        if marker == _SCAN:
            following = _BEHIND_PIXELS.search(data, end)
            if following is None:
                raise BadImage("the JPEG image is cut off")
            end = following.start()
        yield marker, place - 2, end
        place = end
    raise BadImage("the JPEG image is in too many pieces")


def _jpeg(data: bytes) -> ImageForm:
    width = height = 0
    orientation = UPRIGHT
    for marker, start, end in _jpeg_segments(data, header=True):
        if marker in _FRAMES and not width:
            height, width = struct.unpack_from(">HH", data, start + 5)
        elif marker == _APP1 and data.startswith(_EXIF, start + 4):
            orientation = _orientation(data[start + 10 : end])
    return ImageForm("image/jpeg", width, height, orientation=orientation)


def _bare_jpeg(data: bytes) -> bytes:
    orientation = _jpeg(data).orientation
    kept = [data[:2]]
    for marker, start, end in _jpeg_segments(data):
        profile = marker == _APP2 and data.startswith(b"ICC_PROFILE\0", start + 4)
        is_metadata = _APP0 < marker <= _APP15 or marker == _COMMENT
        if not is_metadata or profile or marker == _APP14:
            kept.append(data[start:end])
    if orientation != UPRIGHT:
        kept.insert(1, _only_orientation(orientation))
    return b"".join(kept)


def _only_orientation(orientation: int) -> bytes:
    """The segment that says how to turn a JPEG, and nothing else."""
    entry = struct.pack(">HHIHH", _ORIENTATION, 3, 1, orientation, 0)
    exif = _EXIF + b"MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4)
    return b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif


# --- GIF ------------------------------------------------------------------------------------------

_GIF_CONTROL, _GIF_APPLICATION = 0xF9, 0xFF
_GIF_LOOPS = (b"\x0bNETSCAPE2.0", b"\x0bANIMEXTS1.0")


def _gif_blocks(data: bytes) -> Iterator[tuple[int, int, int]]:
    """The beginning and end of the header, then of each block with the kind of it: ',' is a frame."""
    flags = data[10]
    place = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    yield 0, 0, place
    parts = 0
    while place < len(data):
        parts += 1
        start, kind = place, data[place]
        if kind == 0x3B:
            yield kind, start, start + 1
            return
        if kind == 0x2C:
            flags = data[place + 9]
            place += 11 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
        elif kind == 0x21:
            kind, place = data[place + 1], place + 2
        else:
            raise BadImage("the GIF image is broken")
        while size := data[place]:
            place += size + 1
            parts += 1
            if parts > _MAX_PARTS:
                raise BadImage("the GIF image is in too many pieces")
        place += 1
        yield kind, start, place


def _gif(data: bytes) -> ImageForm:
    width, height = struct.unpack_from("<HH", data, 6)
    frames = sum(kind == 0x2C for kind, _, _ in _gif_blocks(data))
    if not frames:
        raise BadImage("the GIF image holds no pixels")
    return ImageForm("image/gif", width, height, animated=frames > 1)


def _bare_gif(data: bytes) -> bytes:
    return b"".join(
        data[start:end]
        for kind, start, end in _gif_blocks(data)
        if kind in (0, 0x2C, 0x3B, _GIF_CONTROL)
        or (kind == _GIF_APPLICATION and data.startswith(_GIF_LOOPS, start + 2))
    )


# --- WebP -----------------------------------------------------------------------------------------

_WEBP_KEPT = frozenset({b"VP8X", b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L"})
_WEBP_METADATA = 0x08 | 0x04  # the flags of Exif and XMP


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Each chunk's type, and where it begins and ends, with its padding."""
    whole = 8 + struct.unpack_from("<I", data, 4)[0]
    if whole > len(data) + 1:  # some writers count a padding that they leave out
        raise BadImage("the WebP image is cut off")
    place = 12
    for _ in range(_MAX_PARTS):
        if place + 8 > min(whole, len(data)):
            return
        kind, size = struct.unpack_from("<4sI", data, place)
        end = place + 8 + size + size % 2
        if end > len(data) + 1:
            raise BadImage("the WebP image is cut off")
        yield kind, place, end
        place = end
    raise BadImage("the WebP image is in too many pieces")


def _webp(data: bytes) -> ImageForm:
    width = height = 0
    animated, orientation = False, UPRIGHT
    for kind, start, end in _webp_chunks(data):
        body = start + 8
        if kind == b"VP8X":
            width, height = 1 + _int24(data, body + 4), 1 + _int24(data, body + 7)
        elif kind == b"VP8L" and not width:
            if data[body] != 0x2F:
                raise BadImage("the WebP image is broken")
            bits = struct.unpack_from("<I", data, body + 1)[0]
            width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        elif kind == b"VP8 " and not width:
            if data[body + 3 : body + 6] != b"\x9d\x01\x2a":
                raise BadImage("the WebP image is broken")
            width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, body + 6))
        elif kind == b"EXIF":
            orientation = _orientation(data[body:end].removeprefix(_EXIF))
        animated = animated or kind == b"ANIM"
    return ImageForm("image/webp", width, height, animated, orientation)


def _bare_webp(data: bytes) -> bytes:
    kept = []
    for kind, start, end in _webp_chunks(data):
        chunk = data[start:end]
        if kind == b"VP8X":
            chunk = chunk[:8] + bytes((chunk[8] & ~_WEBP_METADATA,)) + chunk[9:]
        if kind in _WEBP_KEPT:
            kept.append(chunk)
    body = b"WEBP" + b"".join(kept)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _int24(data: bytes, place: int) -> int:
    low, high = struct.unpack_from("<HB", data, place)
    return int(low | high << 16)


# --- Exif -----------------------------------------------------------------------------------------


def _orientation(tiff: bytes) -> int:
    """The orientation that Exif data tell; upright where they tell none, or make no sense."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return UPRIGHT
    try:
        place = struct.unpack_from(f"{order}I", tiff, 4)[0]
        count = struct.unpack_from(f"{order}H", tiff, place)[0]
        for number in range(count):
            tag, kind, values, value = struct.unpack_from(f"{order}HHIH", tiff, place + 2 + 12 * number)
            if tag == _ORIENTATION:
                return int(value) if kind == 3 and values == 1 and 1 <= value <= 8 else UPRIGHT
    except struct.error:
        pass  # damaged metadata make no damaged image
    return UPRIGHT


_Reader = Callable[[bytes], ImageForm]
_Stripper = Callable[[bytes], bytes]
_TYPES: dict[str, tuple[Callable[[bytes], bool], _Reader, _Stripper]] = {
    "image/png": (lambda data: data.startswith(_PNG), _png, _bare_png),
    "image/jpeg": (lambda data: data.startswith(b"\xff\xd8\xff"), _jpeg, _bare_jpeg),
    "image/gif": (lambda data: data.startswith((b"GIF87a", b"GIF89a")), _gif, _bare_gif),
    "image/webp": (lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP", _webp, _bare_webp),
}
_NAMES = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WebP"}
