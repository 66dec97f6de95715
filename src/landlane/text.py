"""Check labels and free text before they are stored; escape foreign text before it is shown."""

from __future__ import annotations

import os

from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_PLAIN_IN_SHELL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def check_label(text: str, what: str, longest: int = 64) -> str:
    """Return a short word such as a role or a task id, checked to be safe to print and store."""
    if not text or len(text) > longest or not text.isprintable() or "/" in text or not text.isascii():
        raise Malformed(
            f"{text[:40]!r} is not a {what}",
            code=f"BAD_{what.upper().replace(' ', '_')}",
            hint=f"use 1 to {longest} printable ASCII characters without a slash",
        )
    return text


def check_text(text: str, what: str, longest: int) -> str:
    """Return free text of a bounded size that every store can hold.

    Raises:
        Malformed: it is too long, has NUL bytes or is not valid Unicode.
    """
    if len(text) > longest:
        raise Malformed(
            f"the {what} has {len(text):,} characters; {longest:,} are the most",
            code="TEXT_TOO_LONG",
            hint="keep the text in a file and give its path",
        )
    if "\0" in text or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
        raise Malformed(
            f"the {what} holds a NUL byte or is not valid UTF-8",
            code="BAD_TEXT",
            hint="give plain text",
        )
    return text


# Spaces that `str.isprintable` does not count as printable, although they control nothing.
_SPACES = frozenset("\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))
_LINES = _SPACES | {"\n", "\t"}


def in_one_line(text: str) -> str:
    """Return foreign text as one line that is safe to show: everything invisible is escaped.

    So no title, file name or output can control a terminal, forge a line or reverse the order of letters.
    """
    return text if text.isprintable() else _escape(text, _SPACES)


def in_lines(text: str) -> str:
    """Return foreign text that is safe to show, with its lines and tabs; see `in_one_line`."""
    return text if text.isprintable() else _escape(text, _LINES)


def _escape(text: str, kept: frozenset[str]) -> str:
    return "".join(
        letter if letter.isprintable() or letter in kept else repr(letter)[1:-1] for letter in text
    )


def in_json(text: str) -> str:
    """Return JSON with everything invisible escaped: it is safe to show, and its values are the same."""
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter in _LINES or "\ud800" <= letter <= "\udfff"
        else _json_escape(letter)
        for letter in text
    )


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def nearest_word(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the most similar known word; empty when none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    words = list(known)
    swapped = (one for one in words if one != word and sorted(one) == sorted(word))
    return next(swapped, "") or next(iter(get_close_matches(word, words, n=1, cutoff=cutoff)), "")


def printable(name: str) -> str:
    """Return a name from git as valid text: bytes that are not UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def path_text(path: str) -> str:
    """Return a path as it can be shown: bytes that are not UTF-8 are escaped."""
    return path.encode("utf-8", "backslashreplace").decode()


def list_some(names: Sequence[str], most: int) -> str:
    """Return the first few names, separated by commas, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def home_path(path: str) -> str:
    """Return a path as people write it: `~/shop` inside their home folder."""
    home = os.path.expanduser("~")
    if path == home:
        return "~"
    return f"~/{path[len(home) + 1 :]}" if home != "/" and path.startswith(f"{home}/") else path


def short_path(path: str) -> str:
    """Return a path as people read it: relative below the current directory, else from their home folder."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # the current directory no longer exists
        return home_path(path)
    full = os.path.realpath(path)
    return os.path.relpath(full, here) if full.startswith(os.path.join(here, "")) else home_path(path)


def shell_quote(text: str) -> str:
    """Return a word as a shell reads it; like `shlex.quote`, without what that module loads."""
    if text and _PLAIN_IN_SHELL.issuperset(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def shell_path(path: str) -> str:
    """Return a path as it is typed in a shell."""
    shown = short_path(path)
    if all(letter.isalnum() or letter in "/._~-+@" for letter in shown):
        return shown
    return shell_quote(path)
