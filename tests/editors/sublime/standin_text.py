"""A buffer of Sublime Text as its API shows it: text, places in it, what changed, and undo."""

from collections.abc import Iterator
from dataclasses import dataclass, field


def utf16(text: str) -> int:
    """How many UTF-16 code units a text has."""
    return len(text.encode("utf-16-le")) // 2


class Region:
    """Two points, in code points; `b` is where the caret is."""

    def __init__(self, a: int, b: int | None = None) -> None:
        self.a, self.b = a, a if b is None else b

    def begin(self) -> int:
        return min(self.a, self.b)

    def end(self) -> int:
        return max(self.a, self.b)

    def size(self) -> int:
        return self.end() - self.begin()

    def empty(self) -> bool:
        return self.a == self.b

    def contains(self, other: "Region | int") -> bool:
        if isinstance(other, int):
            return self.begin() <= other <= self.end()
        return self.begin() <= other.begin() and other.end() <= self.end()

    def intersects(self, other: "Region") -> bool:
        """As the API says, an empty one at an end does not intersect."""
        if self.empty() or other.empty():
            return self.begin() < other.begin() < self.end() or other.begin() < self.begin() < other.end()
        return self.begin() < other.end() and other.begin() < self.end()

    def cover(self, other: "Region") -> "Region":
        begin, end = min(self.begin(), other.begin()), max(self.end(), other.end())
        return Region(begin, end) if self.a <= self.b else Region(end, begin)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Region) and (self.a, self.b) == (other.a, other.b)

    def __hash__(self) -> int:
        return hash((self.a, self.b))

    def __repr__(self) -> str:
        return f"Region({self.a}, {self.b})"


class Selection(list[Region]):
    """The carets of a view."""

    def add(self, region: Region | int) -> None:
        self.append(region if isinstance(region, Region) else Region(region))


@dataclass(frozen=True)
class HistoricPosition:
    """A place before a change was made."""

    pt: int
    row: int
    col: int
    col_utf16: int


@dataclass(frozen=True)
class TextChange:
    """One change: the text between two places, of this length, became `str`."""

    a: HistoricPosition
    b: HistoricPosition
    len_utf16: int
    str: str


@dataclass
class Step:
    """What one undo takes back: changes as `(where, old text, new text)`."""

    description: str | None
    changes: list[tuple[int, str, str]] = field(default_factory=list)


class Text:
    """The text. Each modification counts, and is remembered until the listeners are told of it."""

    def __init__(self) -> None:
        self.text = ""
        self.saved = ""
        self.change_count = 0
        self.undone: list[Step] = []
        self.steps: list[Step] = []
        self.untold: list[TextChange] = []

    def load(self, text: str) -> None:
        """The text is what the file holds; there is nothing to undo."""
        self.text = self.saved = text
        self.steps.clear()

    def rowcol(self, point: int) -> tuple[int, int]:
        before = self.text[: max(0, min(point, len(self.text)))]
        return before.count("\n"), len(before) - (before.rfind("\n") + 1)

    def rowcol_utf16(self, point: int) -> tuple[int, int]:
        row, column = self.rowcol(point)
        return row, utf16(self.text[point - column : point])

    def point(self, row: int, column: int, *, in_utf16: bool, clamp: bool) -> int:
        """The point of a row and column; beyond the last row it is the end, as in the API."""
        lines = self.text.split("\n")
        if row >= len(lines):
            return len(self.text)
        start = sum(len(line) + 1 for line in lines[:row])
        line = lines[row]
        if in_utf16:
            column = len(line.encode("utf-16-le")[: 2 * column].decode("utf-16-le", "ignore"))
        return min(start + (min(column, len(line)) if clamp else column), len(self.text))

    def replace(self, begin: int, end: int, new: str, step: Step | None) -> None:
        """Change a stretch of the text, as part of an undo step."""
        old = self.text[begin:end]
        if old == new:
            return
        self.untold.append(TextChange(self._place(begin), self._place(end), utf16(old), new))
        self.text = self.text[:begin] + new + self.text[end:]
        self.change_count += 1
        if step is not None:
            step.changes.append((begin, old, new))

    def undo(self) -> None:
        """Take the last step back."""
        if self.steps:
            step = self.steps.pop()
            for begin, old, new in reversed(step.changes):
                self.replace(begin, begin + len(new), old, None)
            self.undone.append(step)

    def _place(self, point: int) -> HistoricPosition:
        row, column = self.rowcol(point)
        return HistoricPosition(point, row, column, self.rowcol_utf16(point)[1])

    def lines(self, region: Region) -> Iterator[Region]:
        """The lines of a region, without their ends."""
        at = region.begin()
        for line in self.text[region.begin() : region.end()].split("\n"):
            yield Region(at, at + len(line))
            at += len(line) + 1
