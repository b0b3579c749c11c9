"""The images of a prompt, judged before it begins: what is wrong with one is said at once, by its place."""

import binascii
from collections.abc import Sequence

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import ContentBlock, ImageContent
from agentd.providers.base import Model
from agentd.tools.images import TOO_LARGE, NotShown, checked, lack
from agentd.workspace.shrinking import INSTALL, MAX_BYTES, can_shrink

_MOST_BASE64 = -(-MAX_BYTES // 3) * 4


def check_images(blocks: Sequence[ContentBlock], model: Model) -> None:
    """Raise `RpcError` invalidParams for an image that the model would not see, or that is none.

    An image is judged by its bytes, whatever it is called, and none is decoded here.
    """
    images = [(number, block) for number, block in enumerate(blocks) if isinstance(block, ImageContent)]
    if images and not model.images:
        raise RpcError(
            "invalidParams",
            f'/prompt/{images[0][0]}: model "{model.id}" takes no images',
            hint=f"Choose another model, or set images = true for {model.name} in your configuration.",
        )
    for number, image in images:
        if not image.mime_type.lower().startswith("image/"):
            raise RpcError("invalidParams", f"/prompt/{number}/mimeType: must be like image/png")
        _check_image(f"/prompt/{number}", image, model)
    if len(images) > model.image_limits.count:
        most = model.image_limits.count
        raise RpcError(
            "invalidParams",
            f'/prompt/{images[most][0]}: model "{model.id}" takes at most {most} images at once',
        )


def _check_image(where: str, image: ImageContent, model: Model) -> None:
    """Raise `RpcError` invalidParams for what is no image, or none that can be made fit for the model."""
    try:
        if len(image.data) > _MOST_BASE64:
            raise NotShown(TOO_LARGE)
        data = _decoded(image.data)
        if not data:
            raise RpcError("invalidParams", f"{where}/data: must be base64, and not empty")
        form = checked(data)
    except NotShown as error:
        raise RpcError("invalidParams", f"{where}/data: this image cannot be shown: {error}") from error
    if form is None:
        raise RpcError("invalidParams", f"{where}/data: is no PNG, JPEG, GIF or WebP image")
    why = None if can_shrink() else lack(form, len(data), model.image_limits)
    if why is not None:
        raise RpcError(
            "invalidParams",
            f"{where}: {why}",
            hint=f"Make it so that it does, or install Pillow, with which agentd does that: {INSTALL}",
        )


def _decoded(text: str) -> bytes:
    """What base64 (RFC 4648, section 4) says, as model servers take it; nothing where it is none."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return b""
