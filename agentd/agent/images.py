"""The images of a transcript as one model's server takes them. The transcript keeps them as they came.

Everything here is a function of the transcript and the model: so an image looks the same from request to
request and after a restart, and what a server has in its cache stays good. Where images grow to more than a
request may hold, the oldest make room, and half of them at once: that costs the cache once and then no more
for a long time.
"""

import binascii
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio.to_thread

from agentd.agent.memory import recalled
from agentd.protocol.events import Memory
from agentd.protocol.messages import AssistantMessage, ImageContent, Message, TextContent
from agentd.providers.base import Model
from agentd.providers.image_limits import ImageLimits
from agentd.tools.images import NotShown, checked, for_model

if TYPE_CHECKING:
    from agentd.workspace.image_form import ImageForm

REFUSED_IMAGE = "[There was an image here, which the model's server refused.]"
MADE_ROOM = (
    "[There was an image here. It was left out to make room for newer ones. If it matters still, look again.]"
)
NOT_SHOWN = "[There was an image here, which cannot be shown: {why}.]"

_REFUSES_IMAGE = re.compile(r"HTTP 413\b|HTTP 4(?:00|15|22)\b.*\bimage", re.IGNORECASE | re.DOTALL)
"""The error of an answer that failed for an image, or may have: too large, too many, of a kind not taken."""


@dataclass(frozen=True)
class Fitted:
    """An image as a server takes it, and its longer side in pixels."""

    content: ImageContent
    side: int


@dataclass(frozen=True)
class Sight:
    """How a model sees images: each by its data as sent, or a word on why it does not."""

    limits: ImageLimits
    fitted: Mapping[str, Fitted | str]
    news: tuple[str, ...] = ()
    """Why images that were not looked at before are not shown, for the user."""

    def shown(self, transcript: Sequence[Message]) -> Sequence[Message]:
        """The transcript with its images as they are in a request, none more than it may hold."""
        if not self.fitted:
            return transcript
        hidden = self._hidden(transcript)
        numbers = iter(range(sum(1 for _ in images_of(transcript))))
        return [self._with_images(message, numbers, hidden) for message in transcript]

    def _with_images(self, message: Message, numbers: Iterator[int], hidden: set[int]) -> Message:
        if isinstance(message, AssistantMessage) or not has_images(message):
            return message
        content = tuple(
            self._block(block, next(numbers) in hidden) if isinstance(block, ImageContent) else block
            for block in message.content
        )
        return message.model_copy(update={"content": content})

    def _block(self, image: ImageContent, is_hidden: bool) -> ImageContent | TextContent:
        found = self.fitted.get(image.data)
        if isinstance(found, str):
            return TextContent(text=NOT_SHOWN.format(why=found))
        if is_hidden:
            return TextContent(text=MADE_ROOM)
        return image if found is None else found.content

    def _hidden(self, transcript: Sequence[Message]) -> set[int]:
        """The images, by number, that make room for others.

        Decided image by image from the oldest on, so that what is hidden stays hidden while more come.
        """
        limits = self.limits
        kept: deque[tuple[int, Fitted]] = deque()
        hidden: set[int] = set()
        total, crowded = 0, False
        for number, image in enumerate(images_of(transcript)):
            found = self.fitted.get(image.data)
            if not isinstance(found, Fitted):
                continue
            kept.append((number, found))
            total += len(found.content.data)
            if len(kept) > limits.count or total > limits.total:
                while len(kept) > max(limits.count // 2, 1) or (total > limits.total // 2 and len(kept) > 1):
                    gone, old = kept.popleft()
                    hidden.add(gone)
                    total -= len(old.content.data)
            crowded = crowded or (limits.crowd is not None and len(kept) > limits.crowd)
        if crowded and limits.crowd_side is not None:
            hidden |= {number for number, each in kept if each.side > limits.crowd_side}
        return hidden


class SessionImages:
    """The images of one session, made once for a model's server and then remembered."""

    def __init__(self) -> None:
        self._limits: ImageLimits | None = None
        self._fitted: dict[str, Fitted | str] = {}

    async def sight(self, transcript: Sequence[Message], memory: Memory | None, model: Model) -> Sight | None:
        """How this model sees the images of the transcript, as far as memory shows it.

        None where there is nothing to see. Takes as long as new images take to be made smaller; a cancel ends
        it at once.
        """
        if not model.images:
            return None
        there = {image.data: image for image in images_of(recalled(transcript, memory))}
        if self._limits != model.image_limits:
            self._limits, self._fitted = model.image_limits, {}
        self._fitted = {data: found for data, found in self._fitted.items() if data in there}
        news = []
        for data in there:
            if data not in self._fitted:
                found = self._fitted[data] = await _fitted(data, model.image_limits)
                if isinstance(found, str):
                    news.append(f'An image is not shown to the model "{model.id}": {found}.')
        return Sight(model.image_limits, dict(self._fitted), tuple(news)) if there else None


async def _fitted(encoded: str, limits: ImageLimits) -> Fitted | str:
    try:
        data, form = await anyio.to_thread.run_sync(_decoded, encoded, abandon_on_cancel=True)
        content, shown = await for_model(data, form, limits)
    except NotShown as error:
        return str(error)
    return Fitted(content, shown.side)


def _decoded(encoded: str) -> "tuple[bytes, ImageForm]":
    try:
        data = binascii.a2b_base64(encoded)
    except ValueError as error:
        raise NotShown("it is no base64") from error
    form = checked(data)
    if form is None:
        raise NotShown("it is no PNG, JPEG, GIF or WebP image")
    return data, form


def images_of(transcript: Sequence[Message]) -> Iterator[ImageContent]:
    """All images, oldest first."""
    for message in transcript:
        for block in message.content:
            if isinstance(block, ImageContent):
                yield block


def has_images(message: Message) -> bool:
    """Whether the message holds an image."""
    return any(isinstance(block, ImageContent) for block in message.content)


def without_images(message: Message, instead: str) -> Message:
    """The message with a word in the place of each image."""
    if isinstance(message, AssistantMessage) or not has_images(message):
        return message
    content = tuple(
        TextContent(text=instead) if isinstance(block, ImageContent) else block for block in message.content
    )
    return message.model_copy(update={"content": content})


def without_refused_images(transcript: Sequence[Message]) -> Sequence[Message]:
    """The same without the images for which a server refused a request: the new ones in it, else all."""
    kept, new = list(transcript), 0
    for number, message in enumerate(transcript):
        if not isinstance(message, AssistantMessage):
            continue
        if message.stop_reason not in ("error", "aborted"):
            new = number + 1  # what an answer was given to, a server has taken
        elif message.stop_reason == "error":
            start = new if any(map(has_images, kept[new:number])) else 0
            if _REFUSES_IMAGE.search(message.error_message or ""):
                kept[start:number] = [without_images(each, REFUSED_IMAGE) for each in kept[start:number]]
    return kept
