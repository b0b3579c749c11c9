"""Images as a model can see them: within what its server takes, upright, and without metadata."""

import base64
from typing import TYPE_CHECKING

import anyio.to_thread

from agentd.protocol.messages import ImageContent
from agentd.providers.image_limits import ImageLimits
from agentd.workspace.shrinking import INSTALL, MAX_BYTES, MAX_PIXELS, NotShrunk, can_shrink, shrunk

if TYPE_CHECKING:  # imported where there is an image
    from agentd.workspace.image_form import ImageForm

TOO_LARGE = f"it is larger than {MAX_BYTES // 2**20} MB"


class NotShown(Exception):
    """An image that cannot be shown to a model. The message is a sentence about it, without its end."""


def checked(data: bytes) -> "ImageForm | None":
    """What an image is; None where it is none. Raises `NotShown` for one that nobody should decode."""
    from agentd.workspace.image_form import BadImage, form_of

    try:
        form = form_of(data)
    except BadImage as error:
        raise NotShown(str(error)) from error
    if form is not None and len(data) > MAX_BYTES:
        raise NotShown(TOO_LARGE)
    if form is not None and form.pixels > MAX_PIXELS:
        raise NotShown(
            f"it has {form.width} x {form.height} pixels, and no more than {MAX_PIXELS // 10**6} million "
            "are decoded"
        )
    return form


def lack(form: "ImageForm", size: int, limits: ImageLimits) -> str | None:
    """Why a server does not take an image of `size` bytes as it is; None where it does."""
    if form.mime_type not in limits.types:
        return f"it is a {form.name} image, which the model does not take"
    if form.animated and not limits.animated:
        return f"it is an animated {form.name} image, which the model does not take"
    if limits.most_side is not None and form.side > limits.most_side:
        sides = f"{form.width} x {form.height} pixels"
        return f"it has {sides}, and the model takes no side beyond {limits.most_side}"
    if _in_base64(size) > limits.size:
        return f"it has {size:,} bytes, and the model takes at most {limits.size * 3 // 4:,}"
    return None


async def for_model(data: bytes, form: "ImageForm", limits: ImageLimits) -> "tuple[ImageContent, ImageForm]":
    """The image as a server with these limits takes it, and what it is then.

    Where the server takes it as it is, only its metadata go. Without Pillow nothing else can be shown. Raises
    `NotShown`.
    """
    from agentd.workspace.image_form import UPRIGHT

    why = lack(form, len(data), limits)
    mime_type = form.mime_type
    if can_shrink() and (why or form.side > limits.side or form.orientation != UPRIGHT):
        try:
            mime_type, data = await shrunk(
                data, side=limits.side, size=limits.size // 4 * 3, types=limits.types
            )
        except NotShrunk as error:
            raise NotShown(str(error)) from error
    elif why is not None:
        raise NotShown(f"{why}; with Pillow ({INSTALL}) it would be made so that it does")
    return await anyio.to_thread.run_sync(_content, mime_type, data, abandon_on_cancel=True)


def _content(mime_type: str, data: bytes) -> "tuple[ImageContent, ImageForm]":
    from agentd.workspace.image_form import BadImage, without_metadata

    form = checked(data)
    assert form is not None
    try:
        encoded = base64.b64encode(without_metadata(data)).decode("ascii")
    except BadImage as error:
        raise NotShown(str(error)) from error
    return ImageContent(mime_type=mime_type, data=encoded), form


def _in_base64(size: int) -> int:
    return -(-size // 3) * 4
