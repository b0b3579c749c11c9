"""Records `agentd demo` into `demo.svg`: what it printed, each line at the moment it came.

    python .assets/record_demo.py

Places of the recording machine are replaced by what a reader would see on theirs.
"""

import os
import re
import subprocess
import sys
import time
from html import escape
from pathlib import Path

TARGET = Path(__file__).with_name("demo.svg")
WIDTH, LINE, MARGIN, TOP, COLUMNS = 860, 19, 18, 52, 96
PAUSE_SECONDS = 6.0
COLOURS = {"✓": "#7ee787", "✗": "#ff7b72", "→": "#8b949e", "+": "#7ee787", "-": "#ff7b72", "@": "#79c0ff"}
PLAIN = "#e6edf3"


def record() -> list[tuple[float, str]]:
    """The lines that the demo prints, with the seconds at which they came."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentd", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    lines = [(time.monotonic() - began, line.rstrip("\n")) for line in process.stdout]
    if process.wait() != 0:
        raise SystemExit("the demo failed")
    return lines


def anonymous(line: str) -> str:
    """The line without places of this machine."""
    line = re.sub(r"\S*/bin/python[\d.]*", "python3", line)
    line = re.sub(r"\S*/agentd-demo-\w+", "/tmp/agentd-demo", line)
    return line.replace(str(Path.home()), "~")


def wrapped(lines: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Long lines broken as a terminal breaks them."""
    rows = []
    for at, line in lines:
        text = anonymous(line)
        rows += [(at, text[start : start + COLUMNS]) for start in range(0, len(text) or 1, COLUMNS)]
    return rows


def drawn(rows: list[tuple[float, str]]) -> str:
    """The SVG: a window in which each row appears at its time, over and over."""
    total = rows[-1][0] + PAUSE_SECONDS
    height = TOP + len(rows) * LINE + MARGIN
    styles, texts = [], []
    for number, (at, text) in enumerate(rows):
        shown = 100 * at / total
        hidden, seen = f"0%,{shown:.2f}%{{opacity:0}}", f"{shown + 0.01:.2f}%,100%{{opacity:1}}"
        styles.append(f"@keyframes r{number}{{{hidden}{seen}}}")
        colour = COLOURS.get(text[:1], PLAIN)
        texts.append(
            f'<text x="{MARGIN}" y="{TOP + number * LINE}" fill="{colour}" '
            f'style="animation:r{number} {total:.2f}s infinite">{escape(text)}</text>'
        )
    dots = "".join(
        f'<circle cx="{20 + 20 * number}" cy="18" r="6" fill="{colour}"/>'
        for number, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" '
        f'xml:space="preserve" role="img" aria-label="agentd demo in a terminal">\n'
        f"<style>text{{white-space:pre}}{''.join(styles)}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#0d1117"/>{dots}\n'
        + "\n".join(texts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    TARGET.write_text(drawn(wrapped([(0.0, "$ agentd demo"), *record()])), "utf-8")
