"""Tables as text: a header in capitals, two spaces between columns, numbers at the right."""

from __future__ import annotations

from landlane.units import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_GAP = "  "
_SHORTEST = 12  # a column is not cut below this
_TITLE_GAP = "   "  # at least, between a title and the state at its right
_TEXT_START = 12  # the column where the texts of a card begin
_OUTPUT_START = 7  # the column of what belongs to an attempt
_COMMAND_FIELDS = ("check", "diff", "branch")  # to be pasted


def format_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    cut: str = "",
    width: int = 0,
    gap: str = _GAP,
) -> str:
    """Return a table; a column that is empty in all rows is left out.

    `right` names the columns of numbers. With a `width`, the column `cut` is shortened until the table fits.
    """
    shown = [index for index in range(len(header)) if any(row[index] for row in rows)]
    lines = [[header[index] for index in shown], *([row[index] for index in shown] for row in rows)]
    widths = [max(text_width(line[column]) for line in lines) for column in range(len(shown))]
    if width and cut in lines[0]:
        column = lines[0].index(cut)
        excess = sum(widths) + len(gap) * (len(widths) - 1) - width
        if excess > 0:
            widths[column] = max(widths[column] - excess, _SHORTEST)
            for line in lines[1:]:
                line[column] = shorten(line[column], widths[column])
    is_right = [name in right for name in lines[0]]
    return "\n".join(gap.join(map(pad, line, widths, is_right)).rstrip() for line in lines)


def align(
    rows: Sequence[Sequence[str]], *, cut: int, width: int = 0, right: Sequence[int] = (), gap: str = _GAP
) -> list[str]:
    """Return rows without a header as indented lines; the column `cut` is shortened to fit a `width`."""
    if not rows:
        return []
    widths = [max(text_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    shown = [column for column, size in enumerate(widths) if size]
    excess = len(_GAP) + sum(widths) + len(gap) * (len(shown) - 1) - width
    if width and excess > 0:
        widths[cut] = max(widths[cut] - excess, _SHORTEST)
    return [
        _GAP
        + gap.join(
            pad(shorten(row[column], widths[column]), widths[column], column in right) for column in shown
        ).rstrip()
        for row in rows
    ]


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text as lines of at most a width; all but the first begin with an indent, words stay whole."""
    lines: list[str] = []
    while text_width(text) > width:
        start = len(text) - len(text.lstrip())
        end = text.rfind(" ", max(start, len(indent)) + 1, width + 1)
        if end < 0:
            end = text.find(" ", width)
        if end < 0 or not text[end:].strip():
            break
        lines.append(text[:end].rstrip())
        text = indent + text[end:].lstrip()
    return [*lines, text]


def wrap_card(text: str, width: int) -> str:
    """Return a card (a title, then named texts) that fits a width; commands and output are not wrapped."""
    title, *lines = text.split("\n")
    name, gap, state = title.partition(_TITLE_GAP)
    if gap and text_width(title) > width:
        state = state.lstrip()
        title = f"{name}{' ' * max(width - text_width(name) - text_width(state), len(_TITLE_GAP))}{state}"
    return "\n".join([title, *(part for line in lines for part in _wrap_card_line(line, width))])


def _wrap_card_line(line: str, width: int) -> list[str]:
    named = line[:_TEXT_START].startswith(_GAP) and line[_TEXT_START - 1 : _TEXT_START] == " "
    is_text = named and bool(line[_TEXT_START : _TEXT_START + 1].strip()) and not line[2:3].isdigit()
    if is_text and line[:_TEXT_START].strip() not in _COMMAND_FIELDS:
        return wrap(line, width, " " * _TEXT_START)
    first = line[len(_GAP) :][:1]
    if not is_text and line.startswith(_GAP) and first.strip():
        return wrap(line, width, " " * (_OUTPUT_START if first.isdigit() else 2 * len(_GAP)))
    return [line]


def shorten(text: str, width: int) -> str:
    """Return a text cut to a width, with an ellipsis where something was cut off."""
    if text_width(text) <= width:
        return text
    while text_width(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def text_width(text: str) -> int:
    """Return how many columns a terminal needs for a text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415 - rarely needed, and slow to load

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def pad(text: str, width: int, is_right: bool = False) -> str:
    """Return a text filled with blanks to a width."""
    space = " " * (width - text_width(text))
    return space + text if is_right else text + space


def empty_text(noun: str, plural: str = "") -> str:
    """Return the sentence for an empty list, such as "No claims."."""
    return f"{count(0, noun, plural).capitalize()}."
