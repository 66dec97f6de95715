"""Read and write globs: `*`, `?`, `[a-z]`, `**` and `{a,b}`.

A path is a sequence of names, and a name is a sequence of characters. `**` is a gap among names and `*` a
gap among characters, so on both levels a glob is a sequence of items and gaps, and one algorithm serves
both: the product automaton of the two sequences, held as one integer for each item of the left sequence.
Bit j says that what comes before this item and the first j items of the right sequence can match the same
text. The work is the product of the two lengths, never exponential, and Python's integers handle many
states at a time.

A glob covers what it matches and everything below, which is one more gap at the end of its names. The
alphabet is every code point that a path can hold; names such as `.` are not special.
"""

from __future__ import annotations

from functools import lru_cache

from landlane.errors import PatternError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Characters = tuple[tuple[int, int], ...]  # a set of characters: ranges, sorted and apart
    Token = str | Characters  # one character, or any one of a set
    Name = str | tuple[Token | None, ...]  # a plain name, or a sequence of tokens and gaps
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
_LAST_CASED = 0x1FFFF  # no script with upper and lower case lies above
_SHORT_RANGE = 512


def pattern_error(text: str, why: str, code: str, hint: str) -> PatternError:
    """Return the error for a text that is not a valid pattern."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return PatternError(f"{shown!r} {why}", code=code, hint=hint)


def normal_form(text: str, *, ignore_case: bool = False) -> str:
    """Return the text as paths are compared: in Unicode NFC and, if asked, without case."""
    if text.isascii():
        return text.lower() if ignore_case else text
    from unicodedata import normalize  # noqa: PLC0415 - expensive, and most paths are ASCII

    text = normalize("NFC", text)
    # Some letters have a composed form in lower case only, hence the second normalisation.
    return normalize("NFC", "".join(map(_fold, text))) if ignore_case else text


def _fold(char: str) -> str:
    """Return the character without case, always as one character, so that `?` counts as file systems do."""
    folded = char.casefold()
    if len(folded) > 1:
        folded = char.lower()
    return folded if len(folded) == 1 else char


def _fold_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges with each upper-case character replaced by its folded form; exact for any script."""
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
    """Return the characters of a range that folding changes, each with its folded form."""
    pairs = ((code, ord(_fold(chr(code)))) for code in range(low, high + 1))
    return [(code, folded) for code, folded in pairs if code != folded]


@lru_cache(maxsize=1)
def _all_folds() -> list[tuple[int, int]]:
    return _folds(0, _LAST_CASED)


def _merge(ranges: list[tuple[int, int]]) -> Characters:
    """Return the same characters as sorted ranges that do not touch."""
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


def common_characters(left: Characters, right: Characters) -> Characters:
    """Return the characters that are in both sets."""
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


def read_glob(text: str, *, ignore_case: bool = False) -> list[Row]:
    """Return the sequences of names that a normalized glob matches, one for each choice among its braces.

    Raises:
        PatternError: a bracket or brace is not closed, a class is empty, or there are too many choices.
    """
    alternatives = _alternatives(text, ignore_case)
    if len(alternatives) > 1 and sum(map(len, alternatives)) > MOST_TOKENS:
        why = f"grows to more than {MOST_TOKENS:,} characters when its braces are multiplied out"
        raise pattern_error(text, why, "PATTERN_TOO_MANY_ALTERNATIVES", "use * or give several patterns")
    if [] in alternatives or any(tokens[0] == "/" for tokens in alternatives):
        why = "has an alternative that is empty or begins with a slash"
        raise pattern_error(text, why, "PATTERN_ABSOLUTE", "use . for the entire repository")
    return [_names(tokens, ignore_case=ignore_case) for tokens in alternatives]


@lru_cache(maxsize=1024)
def compile_rest(rest: str | None) -> Row:
    """Return the names of a rest that `write_glob` wrote, with a final gap for everything below."""
    return (None,) if rest is None else (*read_glob(rest)[0], None)


def _alternatives(text: str, ignore_case: bool) -> list[Tokens]:
    """Read the characters and expand the braces; braces and commas inside a class are plain characters."""
    around: list[tuple[list[Tokens], list[Tokens]]] = []
    done: list[Tokens] = []  # the complete choices of the innermost brace
    sequences: list[Tokens] = [[]]  # the choice that is being read, once for each earlier choice
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "{":
            around.append((done, sequences))
            done = []
            sequences = [[]]
        elif char == "," and around:
            done += sequences
            sequences = [[]]
        elif char == "}" and around:
            # Without a comma there is no choice, and the braces are plain characters.
            choices = done + sequences if done else [["{", *sequence, "}"] for sequence in sequences]
            done, heads = around.pop()
            _check_count(len(heads) * len(choices), text)
            sequences = [head + tail for head in heads for tail in choices]
        else:
            token, at = _read_token(text, at - 1, ignore_case)
            for sequence in sequences:
                sequence.append(token)
        _check_count(len(done) + len(sequences), text)
    if around:
        raise pattern_error(
            text, "has a { that is never closed", "PATTERN_UNCLOSED", "write \\{ for the character"
        )
    return sequences


def _check_count(count: int, text: str) -> None:
    if count > MOST_ALTERNATIVES:
        why = f"stands for more than {MOST_ALTERNATIVES} alternatives"
        raise pattern_error(text, why, "PATTERN_TOO_MANY_ALTERNATIVES", "use * or give several patterns")


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
    """Read one plain character, with or without a backslash before it."""
    if text[at] != "\\":
        return text[at], at + 1
    if text[at + 1 : at + 2] in {"", "/"}:
        why = "has a backslash with nothing to make plain after it"
        raise pattern_error(
            text, why, "PATTERN_BAD_ESCAPE", "separate folders with / and write \\\\ for a backslash"
        )
    return text[at + 1], at + 2


def _read_class(text: str, at: int, ignore_case: bool) -> tuple[Token, int]:
    """Read the set of characters of `[...]`; `at` is the position after the bracket."""
    negated = text[at : at + 1] in {"!", "^"}
    first = at = at + negated
    ranges: list[tuple[int, int]] = []
    while text[at : at + 1] != "]" or at == first:
        if text[at : at + 1] in {"", "/"}:
            why = "has a [ that is not closed within its name"
            raise pattern_error(text, why, "PATTERN_UNCLOSED", "write \\[ for the character")
        low, at = _read_character(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in {"", "/", "]"}:
            high, at = _read_character(text, at + 1)
        if high < low:
            why = f"has the range {low}-{high}, which runs backwards"
            raise pattern_error(text, why, "PATTERN_BAD_CLASS", f"write {high}-{low}")
        ranges.append((ord(low), ord(high)))
    # Folded before negation: where `a` and `A` are the same file, [!a] matches neither.
    members = _merge(_fold_ranges(ranges) if ignore_case else ranges)
    found = common_characters(ANY_CHARACTER, _complement(members) if negated else members)
    if not found:
        why = "has a class that no character can match"
        raise pattern_error(text, why, "PATTERN_BAD_CLASS", "leave a character to match")
    is_single = len(found) == 1 and found[0][0] == found[0][1]
    return (chr(found[0][0]) if is_single else found), at + 1


def _names(tokens: Tokens, *, ignore_case: bool) -> Row:
    """Split at the slashes, without empty names and repeated gaps."""
    sequence: list[Name | None] = []
    part: Tokens = []
    for token in [*tokens, "/"]:
        if token != "/":
            part.append(token)
            continue
        if part == [None, None]:
            if sequence[-1:] != [None]:
                sequence.append(None)
        elif part:
            sequence.append(_name(part, ignore_case=ignore_case))
        part = []
    return tuple(sequence)


def _name(tokens: Tokens, *, ignore_case: bool) -> Name:
    """Return one name in comparison form; runs of plain characters are joined before they are normalized."""
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


def write_glob(sequence: Row) -> str:
    """Return the canonical text of a sequence of names; `read_glob` returns the same sequence for it."""
    return "/".join("**" if name is None else "".join(map(_spell, name)) for name in sequence)


def _spell(token: Token | None) -> str:
    if token is None:
        return "*"
    if isinstance(token, str):
        return "\\" + token if token in "\\*?[{" else token
    if token == ANY_CHARACTER:
        return "?"
    negated = token[-1][1] == ANY_CHARACTER[-1][1]
    spans = common_characters(ANY_CHARACTER, _complement(token)) if negated else token
    return f"[{'!' * negated}{''.join(_spell_span(low, high) for low, high in spans)}]"


def _spell_span(low: int, high: int) -> str:
    first, last = ("\\" + chr(edge) if chr(edge) in "\\[]!^-" else chr(edge) for edge in (low, high))
    return first if low == high else f"{first}-{last}"
