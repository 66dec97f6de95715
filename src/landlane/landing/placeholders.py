"""Find lines that a branch adds and that say they are unfinished, such as TODO or "coming soon"."""

from __future__ import annotations

import re

from landlane.git.run import run_in
from landlane.landing.model import Rejection
from landlane.settings.model import FILE_NAME
from landlane.text import printable
from landlane.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout
    from landlane.settings.model import Settings

_LIMIT_SECONDS = 120.0
_MOST_SHOWN = 20
_LONGEST_SHOWN = 120
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")


def find_placeholders(home: Checkout, settings: Settings, before: str, after: str) -> list[str]:
    """Return the added lines between two trees that contain a placeholder, as `path:line: text`.

    The settings and the rules name the words, so they may contain them.
    """
    words = settings.landing.placeholders
    if not words:
        return []
    pattern = re.compile("|".join(map(_word_pattern, words)))
    form = ("--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-prefix")
    diff = run_in(home, "diff", *form, before, after, "--", limit_seconds=_LIMIT_SECONDS)
    exempt = {FILE_NAME, settings.rules.file}
    found: list[str] = []
    path, line = "", 0
    for text in diff.stdout.split("\n"):
        if text.startswith("diff --git "):
            path = ""  # the lines up to the first hunk are a header
        elif text.startswith("+++ ") and not path:
            path = text.removeprefix("+++ ").rstrip("\t").strip('"')
        elif hunk := _HUNK.match(text):
            line = int(hunk[1])
        elif text.startswith("+"):
            if path not in exempt and pattern.search(text[1:]):
                found.append(f"{printable(path)}:{line}: {printable(text[1:].strip())[:_LONGEST_SHOWN]}")
            line += 1
    return found


def _word_pattern(word: str) -> str:
    """Return the expression for a word: capitals are compared as they are, anything else without case."""
    escaped = re.escape(word)
    before = r"\b" if word[:1].isalnum() else ""
    after = r"\b" if word[-1:].isalnum() else ""
    return f"{before}{escaped}{after}" if word.isupper() else f"(?i:{before}{escaped}{after})"


def placeholder_rejection(found: Sequence[str]) -> Rejection:
    """Return why an entry with such lines does not land."""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return Rejection(
        code="PLACEHOLDERS",
        reason=f"{count(len(found), 'added line')} unfinished: {found[0]}{more}",
        hint="finish them, or leave them out and add a task: landlane task add",
        output="\n".join(found[:_MOST_SHOWN]),
    )
