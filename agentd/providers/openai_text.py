"""Messages in words, where both of OpenAI's APIs want text."""

from agentd.protocol.messages import ContentBlock, ImageContent, TextContent

NO_OUTPUT = "(no output)"
_SAYS_ERROR = ("error", "failed", "unknown tool", "aborted")


def said(block: ContentBlock) -> str:
    """A block in words. Files and commands are text by the time they come here; this is for completeness."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ImageContent):
        return f"[image {block.mime_type}]"
    if block.type == "resource":
        return f"[{block.uri}]" + (f"\n{block.text}" if block.text else "")
    return f"/{block.name} {block.arguments}".rstrip()


def data_url(image: ImageContent) -> str:
    """An image as a URL that holds it."""
    return f"data:{image.mime_type};base64,{image.data}"


def shows_error(text: str) -> bool:
    """Whether the first line of a failed tool's text says so: the APIs have no flag for it."""
    first_line = text.lstrip().partition("\n")[0].lower()
    return any(word in first_line for word in _SAYS_ERROR)
