"""The text of what was fetched: which characters its bytes are, and HTML as Markdown."""

import codecs
import json
import re
from dataclasses import dataclass

from agentd.workspace.web import Page
from agentd.workspace.worker_process import run_worker

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {
        "application/json", "application/xml", "application/javascript", "application/ecmascript",
        "application/x-javascript", "application/yaml", "application/x-yaml", "application/toml",
        "application/sql", "application/graphql", "application/x-sh", "application/x-ndjson",
    }
)  # fmt: skip
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml")
_LOOKS_LIKE_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.I)
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([\w.:-]{1,40})""", re.I)
_SNIFFED = 1024  # bytes in which a page has to say its encoding: HTML Standard, 13.2.3.2
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_FALLBACK = "windows-1252"  # what browsers take for a page that is not UTF-8 and says nothing
_GROWTH = 4  # Markdown may be longer than its HTML, where links are made whole


@dataclass(frozen=True)
class WebText:
    """Text, what kind it was sent as, and what there is to know of how it came about."""

    text: str
    kind: str
    note: str = ""


class NotText(Exception):
    """Content that cannot be shown as text; the message is its type."""


async def text_of(page: Page, seconds: float) -> WebText:
    """What a page says. `seconds` is how long turning it into Markdown may take. Raises NotText."""
    kind, charset = _content_type(page)
    is_html = kind in _HTML
    if not (is_html or kind.startswith("text/") or kind in _TEXT or kind.endswith(_TEXT_SUFFIXES)):
        raise NotText(kind)
    text = _decoded(page.data, charset, is_html)
    if "\0" in text:
        raise NotText(f"{kind} that holds NUL characters")
    return await _as_markdown(page.url, text, kind, seconds) if is_html else WebText(text, kind)


def _content_type(page: Page) -> tuple[str, str | None]:
    charset = _CHARSET.search(page.content_type)
    kind = page.content_type.partition(";")[0].strip().lower()
    if not kind or kind in ("application/octet-stream", "unknown/unknown"):
        kind = _sniffed(page.data, kind)
    return kind, charset[1] if charset else None


def _sniffed(data: bytes, kind: str) -> str:
    """What content seems to be whose sender does not say."""
    if _LOOKS_LIKE_HTML.match(data[:_SNIFFED]):
        return "text/html"
    try:
        data[:_SNIFFED].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end < min(len(data), _SNIFFED):  # not just a character cut in two
            return kind or "application/octet-stream"
    return "text/plain" if b"\0" not in data[:_SNIFFED] else kind or "application/octet-stream"


def _decoded(data: bytes, charset: str | None, is_html: bool) -> str:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    if charset is None and is_html and (match := _META_CHARSET.search(data[:_SNIFFED])):
        charset = match[1].decode("ascii")
    if charset is not None:
        try:
            return data.decode(charset, "replace")
        except (LookupError, UnicodeError):  # one that nobody knows, or that is no encoding of text
            pass
    text = data.decode("utf-8", "replace")
    # A character cut in two at the end of what was read does not make it another encoding.
    return text if "\ufffd" not in text[:-1] else data.decode(_FALLBACK, "replace")


async def _as_markdown(url: str, html: str, kind: str, seconds: float) -> WebText:
    answer = bytearray()
    request = json.dumps({"url": url, "seconds": seconds}).encode("ascii") + b"\n"
    page = html.encode("utf-8", "replace")
    in_time = await run_worker(
        "agentd.workspace.markdown_worker", request + page, answer,
        seconds=seconds, limit=len(page) * _GROWTH + 1024 * 1024,
    )  # fmt: skip
    head, _, markdown = bytes(answer).partition(b"\n")
    if not in_time or not head:
        return WebText(html, kind, "as HTML, since it could not be turned into Markdown")
    note = "" if json.loads(head)["complete"] else "parts that nest too deeply are missing"
    return WebText(markdown.decode("utf-8", "replace"), f"{kind} as Markdown", note)
