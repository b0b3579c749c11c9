"""The process that turns HTML into Markdown, since nobody knows how long a page can keep a parser busy.

It reads a line of JSON, `{"url": ..., "seconds": n}`, and the page in UTF-8 from stdin. It writes a line of
JSON, `{"complete": bool}`, and the Markdown in UTF-8 to stdout. Scripts, styles and what is hidden are left
out; title and description stand at the beginning.
"""

import json
import resource
import signal
import sys

_MAX_MEMORY = 2 * 1024**3


def main() -> None:
    """Convert what is on stdin."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    wanted = json.loads(sys.stdin.buffer.readline())
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(wanted["seconds"]) + 1)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    options = ConversionOptions(
        base_url=wanted["url"],  # links are shown as what can be fetched
        inline_data_media="alt_text_only",
        preprocessing=PreprocessingOptions(remove_forms=False),  # some pages are one large form
    )
    result = convert(sys.stdin.buffer.read().decode("utf-8", "replace"), options)
    sys.stdout.buffer.write(json.dumps({"complete": not result.warnings}).encode("ascii") + b"\n")
    sys.stdout.buffer.write((result.content or "").encode("utf-8", "replace"))
