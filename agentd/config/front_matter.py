"""YAML front matter: what a Markdown file says of itself, between two lines `---` at its beginning.

These files come from users and projects, so they are read as plain data and with bounds: no tags but YAML's
own for text, numbers, lists and mappings, no aliases (ten lines of them can say gigabytes), nothing large or
deep.
"""

import re
from typing import Any

MAX_BYTES = 32 * 1024
"""How long front matter may be, in UTF-8."""

MAX_DEPTH = 16

_MOST_BITS = 64  # of a number: what Python reads of `0xff…` it may not be able to write again

_FENCE = "---"
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_ENTRY = re.compile(r"(?P<key>[A-Za-z_][\w-]*):[ \t]+(?P<value>\S.*)")
_WRITTEN_AS_YAML = ("'", '"', "|", ">")


class FrontMatterError(ValueError):
    """Front matter that cannot be read, and why. `line` (0-based, of the file) is where, if that is known."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.line = line


class _NotYaml(FrontMatterError):
    """Text that no reader of YAML takes; as against what only we refuse."""


def read(text: str) -> tuple[dict[str, Any], str]:
    """What a file says of itself, and what follows: `{}` and the whole text where it has no front matter.

    Values are what JSON has; dates stay text. A value that YAML would not take though everybody writes it so
    (`argument-hint: [file] [line]`, `description: Fix: all of it`) is text. Raises FrontMatterError.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if not lines or lines[0].rstrip() != _FENCE:
        return {}, text.removeprefix("\ufeff")
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == _FENCE), None)
    if end is None:
        raise FrontMatterError('the front matter is not closed: a second line "---" is missing', 0)
    inner = [line.rstrip("\r\n") for line in lines[1:end]]
    if len("\n".join(inner).encode("utf-8", "replace")) > MAX_BYTES:
        raise FrontMatterError(f"the front matter is longer than {MAX_BYTES // 1024} KB", 0)
    try:
        values = _parse(inner)
    except _NotYaml as error:
        plain = [_as_text(line) for line in inner]
        if plain == inner:
            raise
        try:
            values = _parse(plain)
        except _NotYaml:
            raise error from None
    return values, "".join(lines[end + 1 :])


def _as_text(line: str) -> str:
    """A line `key: value` whose value is no YAML, with the value made text; any other line as it is."""
    entry = _ENTRY.fullmatch(line)
    if entry is None or entry["value"].startswith(_WRITTEN_AS_YAML):
        return line
    try:
        _parse([line])
    except _NotYaml:
        quoted = entry["value"].strip().replace("'", "''")
        return f"{entry['key']}: '{quoted}'"
    return line


def _parse(lines: list[str]) -> dict[str, Any]:
    """The mapping that lines of YAML hold. Raises FrontMatterError, its line that of the file."""
    import yaml  # its import takes as long as a small file's reading a hundred times

    class Loader(yaml.SafeLoader):
        """Plain data and nothing else."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise _error("aliases (*name) are not taken", self._here())
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise _error(f"it is nested more than {MAX_DEPTH} levels deep", self._here())
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def _here(self) -> Any:
            return self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML has no types there

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            if node.tag == "tag:yaml.org,2002:timestamp" and isinstance(node.value, str):
                return node.value
            if node.tag not in _TAGS:
                raise _error(f"{node.tag!r} is no kind of value that is taken", node)
            value = super().construct_object(node, deep=deep)
            if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                raise _error("a number is too large", node)
            return value

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise _error("a key has to be a word", key)
                if key.value in seen:
                    raise _error(f'the key "{key.value}" stands there twice', key)
                seen.add(key.value)
            pairs = [(key.value, self.construct_object(value, deep=deep)) for key, value in node.value]
            return dict(pairs)

    try:
        values = yaml.load("\n".join(lines), Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        raise _NotYaml(f"the front matter is no YAML: {error.problem or error.context}", line) from None
    except yaml.YAMLError as error:  # characters that YAML does not take
        raise FrontMatterError(f"the front matter is no YAML: {str(error).splitlines()[0]}") from None
    except FrontMatterError:
        raise
    except ValueError as error:  # a number that Python does not read, for its length
        raise FrontMatterError(f"a value cannot be read: {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise FrontMatterError('the front matter has to be lines of "key: value"', 1)
    return values


def _error(why: str, at: Any) -> FrontMatterError:
    return FrontMatterError(why, at.start_mark.line + 1)
