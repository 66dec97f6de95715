"""Globs: reading `*`, `?`, `[a-z]`, `**` and `{a,b}`, and telling what two of them have in common.

A path is a row of names and a name is a row of characters. `**` is a gap among names and `*` a gap among
characters, so on both levels a glob is a row of items and gaps, and one walk serves both: the product
automaton of the two rows, held as one integer for each item of the left row. Its bit j says that what comes
before this item and the first j items of the right row can match the same text. The work is the product of
the two lengths, never exponential, and Python's integers do many states of it at a time.

A glob covers what it matches and all below, which is one more gap at the end of its row of names.
The alphabet is every code point that a path can hold; names such as `.` are not treated apart.
"""

from __future__ import annotations

from functools import lru_cache

from landlane.errors import PatternError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    Characters = tuple[tuple[int, int], ...]  # a set of characters: ranges, sorted and apart
    Token = str | Characters  # one character, or any one of a set
    Name = str | tuple[Token | None, ...]  # a plain name, or a row of tokens and gaps
    Row = tuple[Name | None, ...]
    Tokens = list[Token | None]
    Item = TypeVar("Item", Token, Name)

MOST_ALTERNATIVES = 64
# Each alternative of one pattern is compared with each of another: 64 long ones would take a minute.
MOST_TOKENS = 16_384
# What no path holds is left out: the slash, NUL, lone surrogates, and the last code point, above which no
# index could search.
ANY_CHARACTER: Characters = ((0x01, 0x2E), (0x30, 0xD7FF), (0xE000, 0x10FFFE))
ANY_NAME: Name = (None,)
_READABLE = "abcdefghijklmnopqrstuvwxyz0123456789_"
_LAST_CASED = 0x1FFFF  # no script with upper and lower case lies above
_SHORT_RANGE = 512


def refusal(text: str, why: str, code: str, hint: str) -> PatternError:
    """The error that says why a text is no pattern, for the caller to raise."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return PatternError(f"{shown!r} {why}", code=code, hint=hint)


# ------------------------------------------------------------------------------------------ characters


def normal_form(text: str, *, ignore_case: bool) -> str:
    """The text in Unicode NFC and, if asked, without case."""
    if text.isascii():
        return text.lower() if ignore_case else text
    from unicodedata import normalize  # noqa: PLC0415 - dear, and most paths are ASCII

    text = normalize("NFC", text)
    # Some letters have a composed form in lower case only, hence the second normalisation.
    return normalize("NFC", "".join(map(_fold, text))) if ignore_case else text


def _fold(char: str) -> str:
    """The character without case; always one for one, so that `?` still counts what a file system counts."""
    folded = char.casefold()
    if len(folded) > 1:
        folded = char.lower()
    return folded if len(folded) == 1 else char


def _fold_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges with each cased character in them replaced by what it folds to; exact for any script."""
    kept: list[tuple[int, int]] = []
    for low, high in ranges:
        folds = _folds(low, high) if high - low < _SHORT_RANGE else _all_folds()
        for code, folded in folds:
            if low <= code <= high:
                kept += (low, code - 1), (folded, folded)
                low = code + 1
        kept.append((low, high))
    return [(low, high) for low, high in kept if low <= high]


def _folds(low: int, high: int) -> list[tuple[int, int]]:
    """The cased characters in this range, each with what it folds to."""
    pairs = ((code, ord(_fold(chr(code)))) for code in range(low, high + 1))
    return [(code, folded) for code, folded in pairs if code != folded]


@lru_cache(maxsize=1)
def _all_folds() -> list[tuple[int, int]]:
    return _folds(0, _LAST_CASED)


def _merge(ranges: list[tuple[int, int]]) -> Characters:
    """The same characters as ranges that are sorted and apart."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(ranges: Characters) -> Characters:
    edges = [-1, *(edge for span in ranges for edge in span), 0x110000]
    spans = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in spans if high - low > 1)


def _common(left: Characters, right: Characters) -> Characters:
    """The characters in both sets."""
    found: list[tuple[int, int]] = []
    at = 0
    for low, high in left:
        while at < len(right) and right[at][1] < low:
            at += 1
        for other_low, other_high in right[at:]:
            if other_low > high:
                break
            found.append((max(low, other_low), min(high, other_high)))
    return tuple(found)


def _characters(token: Token) -> Characters:
    return ((ord(token), ord(token)),) if isinstance(token, str) else token


def _tokens_meet(left: Token, right: Token) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return bool(_common(_characters(left), _characters(right)))


def _token_holds(outer: Token, inner: Token) -> bool:
    members = _characters(inner)
    return _common(_characters(outer), members) == members


def _readable(characters: Characters) -> str:
    for char in _READABLE:
        if any(low <= ord(char) <= high for low, high in characters):
            return char
    return chr(characters[0][0])


# --------------------------------------------------------------------------------------------- reading


def read(text: str, *, ignore_case: bool = False) -> list[Row]:
    """The rows of names that a tidy glob stands for: one for each choice among its braces.

    Raises:
        PatternError: a bracket or brace is left open, a class holds nothing, or there are too many choices.
    """
    alternatives = _alternatives(text, ignore_case)
    if len(alternatives) > 1 and sum(map(len, alternatives)) > MOST_TOKENS:
        why = f"grows to more than {MOST_TOKENS:,} characters when its braces are multiplied out"
        raise refusal(text, why, "PATTERN_TOO_MANY_ALTERNATIVES", "use * or give several patterns")
    if [] in alternatives or any(tokens[0] == "/" for tokens in alternatives):
        why = "has an alternative that is empty or begins with a slash"
        raise refusal(text, why, "PATTERN_ABSOLUTE", "use . for the whole repository")
    return [_names(tokens, ignore_case=ignore_case) for tokens in alternatives]


@lru_cache(maxsize=1024)
def compiled(rest: str | None) -> Row:
    """The row of names, ending in the gap for all that lies below, of a rest that `write` wrote."""
    return (None,) if rest is None else (*read(rest)[0], None)


def _alternatives(text: str, ignore_case: bool) -> list[Tokens]:
    """Read the characters and multiply out the braces; a class keeps the braces and commas in it."""
    around: list[tuple[list[Tokens], list[Tokens]]] = []
    done: list[Tokens] = []  # the choices in the innermost brace that are complete
    rows: list[Tokens] = [[]]  # what is being read, once for each choice made before
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "{":
            around.append((done, rows))
            done = []
            rows = [[]]
        elif char == "," and around:
            done += rows
            rows = [[]]
        elif char == "}" and around:
            # Without a comma there was no choice, and the braces are meant as they stand.
            choices = done + rows if done else [["{", *row, "}"] for row in rows]
            done, heads = around.pop()
            _check_count(len(heads) * len(choices), text)
            rows = [head + tail for head in heads for tail in choices]
        else:
            token, at = _read_token(text, at - 1, ignore_case)
            for row in rows:
                row.append(token)
        _check_count(len(done) + len(rows), text)
    if around:
        raise refusal(text, "has a { that is never closed", "PATTERN_UNCLOSED", "write \\{ for the character")
    return rows


def _check_count(count: int, text: str) -> None:
    if count > MOST_ALTERNATIVES:
        why = f"stands for more than {MOST_ALTERNATIVES} alternatives"
        raise refusal(text, why, "PATTERN_TOO_MANY_ALTERNATIVES", "use * or give several patterns")


def _read_token(text: str, at: int, ignore_case: bool) -> tuple[Token | None, int]:
    char = text[at]
    if char == "*":
        return None, at + 1
    if char == "?":
        return ANY_CHARACTER, at + 1
    if char == "[":
        return _read_class(text, at + 1, ignore_case)
    return _read_character(text, at)


def _read_character(text: str, at: int) -> tuple[str, int]:
    """One character that stands for itself, with or without a backslash before it."""
    if text[at] != "\\":
        return text[at], at + 1
    if text[at + 1 : at + 2] in {"", "/"}:
        why = "has a backslash with nothing to make plain after it"
        raise refusal(
            text, why, "PATTERN_BAD_ESCAPE", "separate folders with / and write \\\\ for a backslash"
        )
    return text[at + 1], at + 2


def _read_class(text: str, at: int, ignore_case: bool) -> tuple[Token, int]:
    """The set of characters of `[...]`; `at` is just behind the bracket."""
    negated = text[at : at + 1] in {"!", "^"}
    first = at = at + negated
    ranges: list[tuple[int, int]] = []
    while text[at : at + 1] != "]" or at == first:
        if text[at : at + 1] in {"", "/"}:
            why = "has a [ that is not closed within its name"
            raise refusal(text, why, "PATTERN_UNCLOSED", "write \\[ for the character")
        low, at = _read_character(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in {"", "/", "]"}:
            high, at = _read_character(text, at + 1)
        if high < low:
            why = f"has the range {low}-{high}, which runs backwards"
            raise refusal(text, why, "PATTERN_BAD_CLASS", f"write {high}-{low}")
        ranges.append((ord(low), ord(high)))
    # Folded before it is negated: where `a` and `A` are one file, [!a] matches neither.
    members = _merge(_fold_ranges(ranges) if ignore_case else ranges)
    found = _common(ANY_CHARACTER, _complement(members) if negated else members)
    if not found:
        why = "has a class that no character can match"
        raise refusal(text, why, "PATTERN_BAD_CLASS", "leave a character to match")
    is_single = len(found) == 1 and found[0][0] == found[0][1]
    return (chr(found[0][0]) if is_single else found), at + 1


def _names(tokens: Tokens, *, ignore_case: bool) -> Row:
    """Split at the slashes; empty names and gaps beside gaps fall away."""
    row: list[Name | None] = []
    part: Tokens = []
    for token in [*tokens, "/"]:
        if token != "/":
            part.append(token)
            continue
        if part == [None, None]:
            if row[-1:] != [None]:
                row.append(None)
        elif part:
            row.append(_name(part, ignore_case=ignore_case))
        part = []
    return tuple(row)


def _name(tokens: Tokens, *, ignore_case: bool) -> Name:
    """One name in comparison form: runs of plain characters joined before they are normalised."""
    name: Tokens = []
    run = ""
    for token in tokens:
        if isinstance(token, str):
            run += token
            continue
        name += normal_form(run, ignore_case=ignore_case)
        run = ""
        if token is not None or name[-1:] != [None]:
            name.append(token)
    run = normal_form(run, ignore_case=ignore_case)
    return (*name, *run) if name else run


# --------------------------------------------------------------------------------------------- writing


def write(row: Row) -> str:
    """The one spelling of a row of names that `read` takes back."""
    return "/".join("**" if name is None else "".join(map(_spell, name)) for name in row)


def _spell(token: Token | None) -> str:
    if token is None:
        return "*"
    if isinstance(token, str):
        return "\\" + token if token in "\\*?[{" else token
    if token == ANY_CHARACTER:
        return "?"
    negated = token[-1][1] == ANY_CHARACTER[-1][1]
    spans = _common(ANY_CHARACTER, _complement(token)) if negated else token
    return f"[{'!' * negated}{''.join(_spell_span(low, high) for low, high in spans)}]"


def _spell_span(low: int, high: int) -> str:
    first, last = ("\\" + chr(edge) if chr(edge) in "\\[]!^-" else chr(edge) for edge in (low, high))
    return first if low == high else f"{first}-{last}"


# ------------------------------------------------------------------------------------------- comparing


def rows_meet(left: Row, right: Row) -> bool:
    """Whether some path matches both rows of names."""
    return bool(_walk(left, right, names_meet)[-1] >> len(right) & 1)


@lru_cache(maxsize=4096)
def names_meet(left: Name, right: Name) -> bool:
    """Whether some name matches both."""
    if left == ANY_NAME or right == ANY_NAME:
        return True
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return bool(_walk(left, right, _tokens_meet)[-1] >> len(right) & 1)


def row_holds(outer: Row, inner: Row) -> bool:
    """Whether surely all that matches the inner row matches the outer; exact for plain inner names."""
    return _holds(outer, inner, name_holds, ANY_NAME)


@lru_cache(maxsize=4096)
def name_holds(outer: Name, inner: Name) -> bool:
    """Whether surely every name that matches the inner one matches the outer."""
    return outer in (inner, ANY_NAME) or _holds(outer, inner, _token_holds, ANY_CHARACTER)


def common_names(left: Row, right: Row) -> list[str] | None:
    """The names of one path that matches both rows, or None."""
    steps = _trace(left, right, names_meet, short=True)
    return None if steps is None else [_common_name(a or ANY_NAME, b or ANY_NAME) for a, b in steps if a or b]


def _common_name(left: Name, right: Name) -> str:
    """A name that matches both, which is known to exist."""
    steps = _trace(left, right, _tokens_meet, short=False) or []
    sets = (_common(_characters(a or ANY_CHARACTER), _characters(b or ANY_CHARACTER)) for a, b in steps)
    return "".join(map(_readable, sets))


def _walk(
    left: Sequence[Item | None], right: Sequence[Item | None], meets: Callable[[Item, Item], bool]
) -> list[int]:
    """For each position in the left row and the one behind it: the right positions reached with it, as bits.

    The list ends early, with 0, when nothing is reached any more.
    """
    gaps, spots = _spots(right)
    masks: dict[Item, int] = {}
    row = 1
    rows: list[int] = []
    for item in left:
        row |= (row & gaps) << 1
        if item is None:
            # A gap on the left passes whatever is on the right: all from the lowest bit up is reached.
            row = (2 << len(right)) - (row & -row)
            rows.append(row)
            continue
        rows.append(row)
        if item not in masks:
            masks[item] = _mask(item, spots, meets)
        row = row & gaps | (row & masks[item]) << 1
        if not row:
            break
    rows.append(row | (row & gaps) << 1)
    return rows


def _holds(
    outer: Sequence[Item | None],
    inner: Sequence[Item | None],
    holds: Callable[[Item, Item], bool],
    anything: Item,
) -> bool:
    """Whether the outer row can follow the inner one; bit j says that it can from the inner item j on."""
    gaps, spots = _spots(inner)
    row = 1 << len(inner)
    for item in reversed(outer):
        if item is None:
            row = (1 << row.bit_length()) - 1
            continue
        here = row >> 1 & _mask(item, spots, holds)
        if item == anything:
            # A gap inside: it may be empty, or begin with one item and go on as a gap.
            here |= gaps & here >> 1 & row
        row = here
    return bool(row & 1)


def _spots(row: Sequence[Item | None]) -> tuple[int, dict[Item, int]]:
    """Where the gaps are, and where each item is, as bits."""
    gaps = 0
    spots: dict[Item, int] = {}
    for at, item in enumerate(row):
        if item is None:
            gaps |= 1 << at
        else:
            spots[item] = spots.get(item, 0) | 1 << at
    return gaps, spots


def _mask(item: Item, spots: dict[Item, int], relation: Callable[[Item, Item], bool]) -> int:
    """Where the items are that have this relation to the given one, as bits."""
    mask = spots.get(item, 0)
    # Two plain items are related only when equal; leaving them out keeps long literal names cheap.
    is_plain = isinstance(item, str)
    for other, where in spots.items():
        if not (is_plain and isinstance(other, str)) and relation(item, other):
            mask |= where
    return mask


def _trace(
    left: Sequence[Item | None],
    right: Sequence[Item | None],
    meets: Callable[[Item, Item], bool],
    *,
    short: bool,
) -> list[tuple[Item | None, Item | None]] | None:
    """The pairs of items (None: a gap) to be matched at once along one way back through the walk, or None.

    A short way pairs items where it can. The other uses the gaps, and fills those that both rows have, for
    the sake of witnesses that look like names: `a.py` rather than `.py`.
    """
    rows = _walk(left, right, meets)
    i, j = len(left), len(right)
    if not rows[-1] >> j & 1:
        return None
    steps: list[tuple[Item | None, Item | None]] = []
    while i or j:
        a, b = left[i - 1] if i else None, right[j - 1] if j else None
        in_left_gap = i < len(left) and left[i] is None
        in_right_gap = j < len(right) and right[j] is None
        is_pair = a is not None and b is not None and rows[i - 1] >> (j - 1) & 1 and meets(a, b)
        up = i and rows[i - 1] >> j & 1 and (a is None or in_right_gap)
        across = j and rows[i] >> (j - 1) & 1 and (b is None or in_left_gap)
        if is_pair and (short or not (up or across)):
            i, j = i - 1, j - 1
            steps.append((a, b))
        elif up:
            i -= 1
            steps += [(a, None)] if in_right_gap else []
        else:
            j -= 1
            steps += [(None, b)] if in_left_gap else []
    return steps[::-1]
