#!/usr/bin/env python3
"""Draw docs/pictures/story.svg: what the product says in a terminal when this script is run.

A short story is played on a scratch repository: real commands, a real worker, real git. With --check nothing
is written: it fails when the committed picture shows something else than the product says today, apart from
times, tokens and names that are made up anew each time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from html import escape, unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "story.svg"
LIMIT_SECONDS = 120

WORKER = "echo 'Run make test.' >> README.md\n"
SETTINGS = """[landing]
checks = ["make test"]
[agents.writer]
command = ["sh", "worker.sh"]
role = "code"
"""
FILES = {
    "README.md": "# Shop\n",
    "Makefile": "test:\n\t@grep -q Shop README.md\n",
    "src/api.py": "ROUTES = []\n",
    "landlane.toml": SETTINGS,
    "worker.sh": WORKER,
}
# The content of the picture, and the commands that produce it.
STORY = (
    "landlane claim src/api.py --as ann --note 'new endpoint'",
    "landlane claim 'src/**' --as bob",
    "landlane task add 'Say how to run the tests' --path README.md",
    "landlane run --agent writer",
    "git log --format=%s -1",
    "landlane",
)

LETTER = 8.4  # the width of one letter at this size; textLength below holds every font to it
LINE = 20
MARGIN = 20
BAR = 34
WIDEST = 110
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
    (r"^landlane: |holds", AMBER),
    (r"^granted|^added|\d done,|^Land ", GREEN),
    (r"^hint:|^`landlane", DIM),
)
# What is different each time.
MASKS = (
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\b\d{10,}\b", "TOKEN"),
    (r"\b\d+(ms|[smhd])(\d+[smhd])?\b", "SPAN"),
    (r"\b[0-9a-f]{8,12}\b", "HASH"),
    (r"writer-T1-\w{5}", "writer-T1-NAME"),
    (r"\s+", " "),
)


def main() -> int:
    """Play the story, and draw what was said; or compare it with what is drawn."""
    with tempfile.TemporaryDirectory(prefix="picture-", ignore_cleanup_errors=True) as scratch:
        lines = play(Path(scratch).resolve())
    if "--check" in sys.argv[1:]:
        return compare(lines)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(lines), encoding="utf-8")
    return 0


def play(scratch: Path) -> list[str]:
    """The commands of the story and what each said, in order."""
    folder = scratch / "shop"
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith(("GIT_", "LANDLANE_"))},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(scratch),
        "USER": "pat",
    }

    def run(command: str) -> str:
        done = subprocess.run(
            ["sh", "-c", f"exec 2>&1; {command}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        return done.stdout.replace(str(scratch), "~")

    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    run("git config --global user.name Pat; git config --global user.email pat@example.invalid")
    run("git init --quiet --initial-branch main; git add --all; git commit --quiet -m Begin")
    lines: list[str] = []
    for command in STORY:
        lines += [f"$ {command}", *(shorten(line) for line in run(command).rstrip("\n").splitlines())]
    return lines


def shorten(line: str) -> str:
    """A line as it fits into the picture."""
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def compare(lines: list[str]) -> int:
    """Whether the picture shows these lines, up to what differs each time and who spoke first."""
    shown = re.findall(r"<text[^>]*>(.*?)</text>", PICTURE.read_text(encoding="utf-8"))
    before, now = (sorted(masked(line) for line in side if line.strip()) for side in (shown, lines))
    if before == now:
        return 0
    for line in sorted({*before} ^ {*now}):
        print(f"{'only in the picture' if line in before else 'not in the picture'}: {line}", file=sys.stderr)
    print("draw it again: .venv/bin/python scripts/picture.py", file=sys.stderr)
    return 1


def masked(line: str) -> str:
    """A line without what is different each time."""
    text = unescape(line).replace("\u00a0", " ").strip()
    for pattern, name in MASKS:
        text = re.sub(pattern, name, text)
    return text[:80]  # the rest may have been cut off elsewhere, where a name was longer


def draw(lines: list[str]) -> str:
    """A terminal window with these lines, as SVG."""
    width = round(max(len(line) for line in lines) * LETTER + 2 * MARGIN)
    height = BAR + len(lines) * LINE + MARGIN
    dots = "".join(f'<circle cx="{MARGIN + 18 * n}" cy="17" r="5" fill="{EDGE}"/>' for n in range(3))
    texts = "\n".join(_text(line, BAR + (n + 1) * LINE - 5) for n, line in enumerate(lines) if line.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="14"'
        f' role="img" aria-label="What Landlane says in a terminal">\n'
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
