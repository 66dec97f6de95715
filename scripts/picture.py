#!/usr/bin/env python3
"""Draw docs/pictures/demo.svg: what `interlock demo` said in the terminal when this script was run."""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "demo.svg"
COMMAND = "interlock demo"
LIMIT_SECONDS = 180

LETTER = 8.4  # the width of one letter at this size; textLength below holds every font to it
LINE = 20
MARGIN = 20
BAR = 34
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
PAPER, EDGE, PLAIN, BRIGHT, DIM, GREEN, AMBER = (
    "#16181d",
    "#2b2f38",
    "#c3c8d1",
    "#ffffff",
    "#8a919e",
    "#7fd18b",
    "#e8b75a",
)
# The first that is found in a line gives its colour.
COLOURS = (
    (r"^\$ ", BRIGHT),
    (r"^\d\. ", BRIGHT),
    (r"^ +without", DIM),
    (r"refused:|naive:|[A-Z]+_OVER", AMBER),
    (r"claims:|got it|takes over|chain whole", GREEN),
)


def main() -> int:
    """Run the demo and draw what it said."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "interlock"), *COMMAND.split()[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    lines = [f"$ {COMMAND}", *done.stdout.rstrip("\n").splitlines()]
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(lines), encoding="utf-8")
    return 0


def draw(lines: list[str]) -> str:
    """A terminal window with these lines, as SVG."""
    width = round(max(len(line) for line in lines) * LETTER + 2 * MARGIN)
    height = BAR + len(lines) * LINE + MARGIN
    dots = "".join(f'<circle cx="{MARGIN + 18 * n}" cy="17" r="5" fill="{EDGE}"/>' for n in range(3))
    texts = "\n".join(_text(line, BAR + (n + 1) * LINE - 5) for n, line in enumerate(lines) if line.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="14"'
        f' role="img" aria-label="The output of {COMMAND}">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}" stroke="{EDGE}"/>\n'
        f"{dots}\n{texts}\n</svg>\n"
    )


def _text(line: str, y: int) -> str:
    body = line.lstrip(" ")
    x = MARGIN + (len(line) - len(body)) * LETTER
    colour = next((colour for pattern, colour in COLOURS if re.search(pattern, line)), PLAIN)
    shown = escape(body).replace(" ", "\u00a0")  # else columns would fall together
    return (
        f'<text x="{x:g}" y="{y}" fill="{colour}" textLength="{len(body) * LETTER:.1f}"'
        f' lengthAdjust="spacingAndGlyphs">{shown}</text>'
    )


if __name__ == "__main__":
    raise SystemExit(main())
