"""Play commands in a shell and return what a terminal would show, with everything that varies masked."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.shell import Shell

_MASKS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\b\d{10,}\b", "TOKEN"),
    (r"\bs-[a-z0-9]{10}\b", "SESSION"),
    (r"\b\d+ (s|min|h) ago\b", "6 min ago"),
    (r"\bin \d+ (s|min|h)( \d+ (s|min))?\b", "in 29 min"),
    (r"\b2\d{4}\b", "20017"),  # a port
    (r"(gpu|api):\d+\b", r"\1:9"),
    (r"\b[0-9a-f]{8,64}\b", "HASH"),
)


def play(shell: Shell, *calls: str) -> str:
    """Run commands one after the other; return each with its output and, unless it is 0, its exit code."""
    lines: list[str] = []
    for call in calls:
        ended = shell.run(*shlex.split(call))
        lines.append(f"$ landlane {call}" + (f"  → {ended.exit}" if ended.exit else ""))
        lines += (ended.out + ended.err).splitlines()
    return mask("\n".join(lines))


def mask(text: str) -> str:
    """Return a text in which times, tokens, ports and hashes have fixed values."""
    for pattern, replacement in _MASKS:
        text = re.sub(pattern, replacement, text)
    return text
