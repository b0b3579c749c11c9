"""Text as the wire counts and carries it. Standard library only."""


def clean_text(text: str) -> str:
    """The same text with lone surrogates replaced, which no server takes and no UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def utf16_length(text: str) -> int:
    """How many UTF-16 code units a text has: the unit of all offsets on the wire."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
