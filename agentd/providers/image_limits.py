"""What model servers take of images, as data.

Sizes are characters of base64, as servers count them where they count. Larger than `side` an image is made
smaller where that can be done: servers do it themselves with what they take, and pay for the bytes.
"""

from dataclasses import dataclass, replace

ALL_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_MB = 1024 * 1024


@dataclass(frozen=True)
class ImageLimits:
    """What one request may show.

    `side` is the longest side worth sending, `most_side` the longest that is not refused (None: any).
    `crowd`: with more images than that none may have a side beyond `crowd_side`. `size` is the largest image,
    `total` what all of a request may come to, `count` how many there may be. `animated`: whether a moving
    image is taken, of which the model then sees the first frame.
    """

    side: int = 2048
    most_side: int | None = None
    crowd: int | None = None
    crowd_side: int | None = None
    size: int = 20 * _MB
    total: int = 40 * _MB
    count: int = 500
    types: frozenset[str] = ALL_TYPES
    animated: bool = False


USUAL = ImageLimits()
"""OpenAI's, which most servers of its API follow: https://platform.openai.com/docs/guides/images-vision"""

ANTHROPIC = ImageLimits(
    side=2000,  # so that what is sent stays within the limit for many images when there come to be many
    most_side=8000,
    crowd=20,
    crowd_side=2000,
    size=5 * _MB,
    total=20 * _MB,  # of 32 MB for the whole request
    count=100,
    animated=True,
)
"""https://docs.claude.com/en/docs/build-with-claude/vision"""

GEMINI = ImageLimits(
    side=3072,
    size=9 * _MB,  # 7 MB before base64
    total=15 * _MB,  # of 20 MB for the whole request
    count=900,
    types=ALL_TYPES - {"image/gif"},
)
"""https://ai.google.dev/gemini-api/docs/image-understanding"""

_BY_API = {"anthropic": ANTHROPIC, "gemini": GEMINI}
_BY_PROVIDER = {
    "groq": replace(USUAL, size=4 * _MB, total=15 * _MB, count=5),  # https://console.groq.com/docs/vision
    "mistral": replace(USUAL, size=10 * _MB, count=8),  # https://docs.mistral.ai/capabilities/vision
    "xai": replace(USUAL, count=100, types=frozenset({"image/png", "image/jpeg"})),
    # https://docs.x.ai/docs/guides/image-understanding
}


def limits_of(provider: str, api: str, model: str) -> ImageLimits:
    """The limits of a model, by who serves it, and by who made it where a gateway passes requests on."""
    if provider in _BY_PROVIDER:
        return _BY_PROVIDER[provider]
    if api in _BY_API:
        return _BY_API[api]
    name = model.lower()
    if "claude" in name:
        return ANTHROPIC
    return GEMINI if "gemini" in name else USUAL
