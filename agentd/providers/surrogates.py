"""Characters that a stream cuts in two.

Servers that count in UTF-16 may end one delta with the first half of a surrogate pair and begin the next with
the second. JSON can say that; each half alone is no character.
"""

_FIRST_HALF = ("\ud800", "\udbff")


class SurrogatePairs:
    """Joins the pairs of one response, block by block. A half without its other half is no text.

    A block is any number that is not that of another one.
    """

    def __init__(self) -> None:
        self._halves: dict[int, str] = {}

    def join(self, block: int, text: str) -> str:
        """The text of a delta with what was held back before it, and without a half at its end."""
        if block in self._halves:
            text = self._halves.pop(block) + text
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if text and _FIRST_HALF[0] <= text[-1] <= _FIRST_HALF[1]:
            self._halves[block] = text[-1]
            return text[:-1]
        return text
