"""Merge counters: a number in a file that both sides raise becomes the sum of their increments."""

from __future__ import annotations

import re
from collections.abc import Mapping

from landlane.merge.model import SIDES, CannotMerge, Merged, quote
from landlane.merge.text_file import TextLines, merge_rest, read_sides, read_text, style_notes, write_text

_WHOLE_FILE = r"\A\s*([+-]?\d+)\s*\Z"
_MOST_DIGITS = 100
_HERE = "\0"  # replaces the number while the rest is merged; no text contains it


def merge_counter(
    base: bytes | None, ours: bytes, theirs: bytes, path: str, options: Mapping[str, str]
) -> Merged:
    """Add what both sides added to the base number, and merge the rest line by line.

    Raises:
        CannotMerge: a side has no such number or several, or the rest was changed differently.
    """
    del path
    texts = read_sides(base, ours, theirs)
    pattern = _pattern(options)
    rests: list[str] = []
    numbers: list[str] = []
    for text, content, side in zip(texts, (base, ours, theirs), SIDES, strict=True):
        number, rest = ("0", "") if content is None else _take_out(text, pattern, side)
        numbers.append(number)
        rests.append(rest)
    start, left, right = map(int, numbers)
    total = left + right - start
    before, now, then = (rest.split("\n") for rest in rests)
    merged = merge_rest(before, now, then, "the text around the number")
    text = "\n".join(merged)
    if text.count(_HERE) != 1:
        raise CannotMerge("the line with the number was moved by both sides")
    written = str(total)
    if numbers[1].lstrip("+-").startswith("0") and total >= 0:
        written = written.zfill(len(numbers[1]))
    result = write_text(text.replace(_HERE, written).split("\n"), texts[1])
    _take_out(read_text(result, "the result"), pattern, "the result")
    note = f"{left} in the target and {right} in the candidate, from {start}, give {total}"
    return Merged(content=result, notes=(note, *style_notes(texts[1])))


def check_counter(content: bytes, path: str, options: Mapping[str, str], before: bytes | None) -> str:
    """Refuse a counter without a number, or with more than one."""
    del path, before
    _take_out(read_text(content, "the file"), _pattern(options), "the file")
    return ""


def _pattern(options: Mapping[str, str]) -> re.Pattern[str]:
    try:
        pattern = re.compile(options.get("pattern") or _WHOLE_FILE, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise CannotMerge(f"the option pattern is not a regular expression: {error}") from None
    if pattern.groups != 1:
        raise CannotMerge(f"the option pattern needs one group around the number, not {pattern.groups}")
    return pattern


def _take_out(text: TextLines, pattern: re.Pattern[str], side: str) -> tuple[str, str]:
    """Return the number, and the text with a mark in its place."""
    body = "\n".join(text.lines)
    matches = list(pattern.finditer(body))
    if len(matches) != 1:
        how_often = "no number" if not matches else f"{len(matches)} numbers"
        raise CannotMerge(f"{side} has {how_often} where one is expected ({quote(pattern.pattern)})")
    number = matches[0][1] or ""
    digits = number.lstrip("+-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    if not is_number or len(number) - len(digits) > 1:
        raise CannotMerge(f"{side} has {quote(number)!r} where a whole number is expected")
    return number, body[: matches[0].start(1)] + _HERE + body[matches[0].end(1) :]
