#!/usr/bin/env python3
"""Draw docs/pictures/story.svg: two agents share one repository, with the output of a real run.

The story runs on a scratch repository with real commands and real git. With --check nothing is written: it
fails if the committed picture differs from what the commands print today, apart from times and commit ids.
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

FILES = {
    "Makefile": "test:\n\t@cd src && for file in *.py; do python3 -B $$file || exit 1; done\n",
    "landlane.toml": '[landing]\nchecks = ["make test"]\n',
    "src/price.py": 'def price(item):\n    return 4\n\n\nassert price("tea") == 4\n',
}
# The edits of the two agents, each in its own worktree. Each passes `make test` alone.
PRICES_BY_COUNTRY = {
    "src/price.py": 'def price(item, country):\n    return 4\n\n\nassert price("tea", "no") == 4\n'
}
GIFT_CARDS = {"src/gifts.py": 'from price import price\n\nCARD = ("gift card", price("tea"))\n'}
FIXED_GIFT_CARDS = {"src/gifts.py": 'from price import price\n\nCARD = ("gift card", price("tea", "no"))\n'}

LETTER = 8.4  # the width of one letter at this size; textLength below holds every font to it
LINE = 20
MARGIN = 20
BAR = 34
WIDEST = 116
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
PAPER, EDGE, PLAIN, BRIGHT, DIM = "#16181d", "#2b2f38", "#c3c8d1", "#ffffff", "#8a919e"
GREEN, AMBER, RED, CYAN, VIOLET = "#7fd18b", "#e8b75a", "#ef7e7e", "#6cc7dd", "#c3a5f2"
PROMPTS = {"ann": CYAN, "bob": VIOLET, "pat": GREEN}
# The parts of a line that have a colour of their own, as on a terminal.
COLOURS = (
    (r"✓", GREEN),
    (r"✗|^L\d+ bounced", RED),
    (r"^refused:", AMBER),
    (r"\[[A-Z_]+\]$", DIM),
    (r"^hint:.*?(?= landlane )|^hint:.*$|^#.*$", DIM),
    (r"(?<=: )landlane .*$", CYAN),
    (r"main passing", GREEN),
)
# What differs from run to run.
MASKS = (
    (r"\b\d+ (s|min)\b|under 1 s", "SPAN"),
    (r"\b\d:\d\d\b", "CLOCK"),
    (r"\b[0-9a-f]{8}\b", "HASH"),
    (r"\s+", " "),
)


class Story:
    """A scratch repository with a worktree for each agent, and the lines that a terminal shows."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.lines: list[str] = []
        self._environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith(("GIT_", "LANDLANE_"))},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(scratch),
            "USER": "pat",
            "COLUMNS": "120",
        }

    def run(self, agent: str, folder: str, command: str) -> str:
        """Run a command as an agent, or as the person `pat`; return its output."""
        done = subprocess.run(
            ["sh", "-c", f"exec 2>&1; {command}"],
            cwd=self.scratch / folder,
            env=self._environment if agent == "pat" else {**self._environment, "LANDLANE_AGENT": agent},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        return done.stdout.replace(str(self.scratch), "~")

    def show(self, agent: str, folder: str, command: str) -> None:
        """Run a command and show it with its output."""
        output = self.run(agent, folder, command).rstrip("\n").splitlines()
        self.lines += [f"{agent}$ {command}", *(shorten(line) for line in output)]

    def write(self, folder: str, files: dict[str, str]) -> None:
        """Write files into a checkout."""
        for name, text in files.items():
            path = self.scratch / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def main() -> int:
    """Run the story, and draw its output or compare it with the drawing."""
    with tempfile.TemporaryDirectory(prefix="picture-", ignore_cleanup_errors=True) as scratch:
        lines = play(Path(scratch).resolve())
    if "--check" in sys.argv[1:]:
        return compare(lines)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(lines), encoding="utf-8")
    return 0


def play(scratch: Path) -> list[str]:
    """Return the commands of the story with their output."""
    story = Story(scratch)
    story.write("shop", FILES)
    story.run(
        "pat", "shop", "git config --global user.name Pat; git config --global user.email pat@shop.example"
    )
    story.run(
        "pat", "shop", "git init --quiet --initial-branch main; git add --all; git commit --quiet -m Begin"
    )
    story.run("pat", "shop", "git worktree add -b countries ../ann; git worktree add -b gifts ../bob")

    story.show("ann", "ann", "landlane claim src/price.py --note 'prices per country'")
    story.show("bob", "bob", "landlane claim src/price.py src/gifts.py")
    story.show("bob", "bob", "landlane claim src/gifts.py --note 'gift cards'")
    story.lines += ["", "# both edit and commit, each in its own worktree; both pass make test", ""]
    story.write("ann", PRICES_BY_COUNTRY)
    story.run("ann", "ann", "landlane commit -m 'Let prices depend on the country' src")
    story.write("bob", GIFT_CARDS)
    story.run("bob", "bob", "landlane commit -m 'Add gift cards' src")
    story.show("ann", "ann", "landlane land --wait")
    story.show("bob", "bob", "landlane land --wait")
    story.lines += ["", "# bob follows the hint and fixes his call of price()", ""]
    story.run("bob", "bob", "landlane sync --update rebase --no-check")
    story.write("bob", FIXED_GIFT_CARDS)
    story.run("bob", "bob", "landlane commit -m 'Pass the country' src")
    story.show("bob", "bob", "landlane land --wait")
    story.show("pat", "shop", "landlane | head -n 1")
    return story.lines


def shorten(line: str) -> str:
    """Return a line cut to the width of the picture."""
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def compare(lines: list[str]) -> int:
    """Return 0 if the picture shows these lines, apart from times and commit ids."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", PICTURE.read_text(encoding="utf-8"))
    shown = [re.sub(r"<[^>]+>", "", text) for text in texts]
    before, now = ([masked(line) for line in side if line.strip()] for side in (shown, lines))
    if before == now:
        return 0
    for line in sorted({*before} ^ {*now}):
        print(f"{'only in the picture' if line in before else 'not in the picture'}: {line}", file=sys.stderr)
    print("draw it again: .venv/bin/python scripts/picture.py", file=sys.stderr)
    return 1


def masked(line: str) -> str:
    """Return a line without what differs from run to run."""
    text = unescape(line).replace("\u00a0", " ").strip()
    for pattern, name in MASKS:
        text = re.sub(pattern, name, text)
    return text


def draw(lines: list[str]) -> str:
    """Return a terminal window with these lines, as SVG."""
    width = round(max(len(line) for line in lines) * LETTER + 2 * MARGIN)
    height = BAR + len(lines) * LINE + MARGIN
    dots = "".join(f'<circle cx="{MARGIN + 18 * n}" cy="17" r="5" fill="{EDGE}"/>' for n in range(3))
    texts = "\n".join(_text(line, BAR + (n + 1) * LINE - 5) for n, line in enumerate(lines) if line.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="14"'
        f' role="img" aria-label="Two agents use Landlane in one repository">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}" stroke="{EDGE}"/>\n'
        f"{dots}\n{texts}\n</svg>\n"
    )


def _text(line: str, y: int) -> str:
    body = line.lstrip(" ")
    x = MARGIN + (len(line) - len(body)) * LETTER
    parts = "".join(_span(text, colour) for text, colour in _coloured(body))
    return (
        f'<text x="{x:g}" y="{y}" fill="{PLAIN}" textLength="{len(body) * LETTER:.1f}"'
        f' lengthAdjust="spacingAndGlyphs">{parts}</text>'
    )


def _coloured(line: str) -> list[tuple[str, str]]:
    """Return the parts of a line, each with its colour."""
    prompt, dollar, command = line.partition("$ ")
    if dollar and prompt in PROMPTS:
        return [(f"{prompt}$", PROMPTS[prompt]), (" ", PLAIN), (command, BRIGHT)]
    colours = [PLAIN] * len(line)
    for pattern, colour in COLOURS:
        for match in re.finditer(pattern, line):
            colours[match.start() : match.end()] = [colour] * (match.end() - match.start())
    parts: list[tuple[str, str]] = []
    for letter, colour in zip(line, colours, strict=True):
        if parts and parts[-1][1] == colour:
            parts[-1] = (parts[-1][0] + letter, colour)
        else:
            parts.append((letter, colour))
    return parts


def _span(text: str, colour: str) -> str:
    shown = escape(text).replace(" ", "\u00a0")  # spaces would be collapsed
    return shown if colour == PLAIN else f'<tspan fill="{colour}">{shown}</tspan>'


if __name__ == "__main__":
    raise SystemExit(main())
