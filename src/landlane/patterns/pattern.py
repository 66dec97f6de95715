"""Patterns: what a claim may name, in one canonical form, and exactly when two of them overlap.

A pattern covers what it matches and everything below, whether it exists or not; the disk is never read. A
pattern has one alternative or, with braces, several. An alternative is a literal key and a rest: the key of
`src/**/*.py` is `src`, and the rest `**/*.py`; a plain path has no rest. Whatever overlaps an alternative has
a key above or below its key, so that an index finds all candidates: see `ancestors` and `below`.

Names such as `deploy:prod` are not paths. Their keys begin with `//`, unlike that of any path.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import PatternError
from landlane.patterns.glob import compile_rest, normal_form, pattern_error, read_glob, write_glob
from landlane.patterns.glob_overlap import common_names, row_holds, rows_meet
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.glob import Row


LONGEST_TEXT = 4096
MOST_SEGMENTS = 100
LONGEST_NAME = 200
# A text without any of these, and tidy, is its own canonical form.
_GLOB_CHARACTERS = frozenset("*?[{\\")
_UNUSUAL = _GLOB_CHARACTERS | frozenset(":\0")
_SCHEME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_NAME_CHARACTERS = _SCHEME_CHARACTERS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ./@+:")


class PatternKind(StrEnum):
    """What a pattern names."""

    LITERAL = "literal"  # one path and everything below it
    GLOB = "glob"
    NAME = "name"  # not a path, such as `deploy:prod`


LITERAL, GLOB, NAME = PatternKind


@value
class Alternative:
    """One alternative of a pattern: a literal folder or file and, unless that is all, a glob below it."""

    key: str
    rest: str | None


@value
class Pattern:
    """What a claim names: a text for people, a kind, and the alternatives that are compared."""

    text: str
    kind: PatternKind
    alternatives: tuple[Alternative, ...]


def parse(text: str, *, literal: bool = False, ignore_case: bool = False) -> Pattern:
    """Parse a path, glob or name that is relative to the repository; with `literal`, always a path.

    The text of a pattern is canonical: parsed again, as a literal if it was one, it gives the same pattern.

    Raises:
        PatternError: the text is not valid, or names nothing inside the repository.
    """
    if (
        _UNUSUAL.isdisjoint(text)
        and text[:1] not in "./"
        and text[-1] != "/"
        and "/." not in text
        and "//" not in text
        and text.isascii()
        and len(text) <= LONGEST_TEXT
        and text.count("/") < MOST_SEGMENTS
    ):
        return _literal(text, text.lower() if ignore_case else text)
    text = _checked(text)
    if not literal and reads_as_name(text):
        return _parse_name(text)
    if text[0] == "/":
        hint = "write the path from the root of the repository"
        raise pattern_error(text, "begins at the root of the machine", "PATTERN_ABSOLUTE", hint)
    if literal:
        return _parse_path(text, ignore_case)
    tidy = _tidy(text)
    is_plain = _GLOB_CHARACTERS.isdisjoint(tidy)
    found = _parse_path(tidy, ignore_case) if is_plain else _parse_glob(tidy, ignore_case)
    if not ("/" + text.rstrip("/")).endswith("/**"):
        return found
    # A folder and everything below it are the same pattern, but the text stays as people wrote it.
    return Pattern(
        text="**" if tidy == "." else _shown(tidy) + "/**", kind=GLOB, alternatives=found.alternatives
    )


def _literal(text: str, key: str) -> Pattern:
    return Pattern(text=text, kind=LITERAL, alternatives=(Alternative(key=key, rest=None),))


def _checked(text: str) -> str:
    """Return the text in Unicode NFC, if a path of a repository could have it."""
    if not text:
        raise PatternError(
            "a path is empty",
            code="PATTERN_EMPTY",
            hint="use . for the whole repository",
            unknown="",
            example=".",
        )
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        size = -1
    # No path can contain NUL; the last code point ends the range of all keys.
    if size < 0 or "\0" in text or "\U0010ffff" in text:
        raise pattern_error(
            text, "holds characters that no path can have", "PATTERN_BAD_TEXT", "use valid UTF-8"
        )
    if size > LONGEST_TEXT:
        why = f"is {size:,} bytes long; {LONGEST_TEXT:,} are the most"
        raise pattern_error(text, why, "PATTERN_TOO_LONG", "name a folder or a shorter glob that covers it")
    return normal_form(text)


def _parse_path(text: str, ignore_case: bool) -> Pattern:
    names = _inside(tuple(name for name in text.split("/") if name), text)
    path = "/".join(map(str, names))
    return _literal(_shown(path), normal_form(path, ignore_case=ignore_case))


def _parse_name(text: str) -> Pattern:
    rest = text[text.index(":") + 1 :]
    if not rest or len(rest) > LONGEST_NAME or not _NAME_CHARACTERS.issuperset(rest):
        hint = f"after the colon, use 1 to {LONGEST_NAME} letters, digits or . _ - / @ + : and no wildcards;"
        raise pattern_error(text, "is not a name", "PATTERN_BAD_NAME", f"{hint} for a path, begin with ./")
    return Pattern(text=text, kind=NAME, alternatives=(Alternative(key="//" + text, rest=None),))


def reads_as_name(text: str) -> bool:
    """Return whether the text begins with a scheme; one letter is a drive, not a scheme."""
    scheme, colon, _ = text.partition(":")
    return bool(colon) and len(scheme) > 1 and "a" <= text[0] <= "z" and _SCHEME_CHARACTERS.issuperset(scheme)


def has_special(text: str) -> bool:
    """Return whether a text contains a character with a special meaning in globs."""
    return not _GLOB_CHARACTERS.isdisjoint(text)


def _parse_glob(tidy: str, ignore_case: bool) -> Pattern:
    alternatives = _alternatives(tidy, ignore_case)
    first = alternatives[0]
    if len(alternatives) > 1 or first.rest is not None:
        return Pattern(text=_shown(tidy), kind=GLOB, alternatives=tuple(alternatives))
    spelled = _alternatives(tidy, ignore_case=False)[0] if ignore_case else first
    return _literal(_shown(first.key if spelled.rest else spelled.key), first.key)


def _alternatives(tidy: str, ignore_case: bool) -> list[Alternative]:
    found = {_alternative(sequence, tidy) for sequence in read_glob(tidy, ignore_case=ignore_case)}
    return sorted(found, key=lambda alternative: (alternative.key, alternative.rest or ""))


def _alternative(sequence: Row, text: str) -> Alternative:
    sequence = _inside(sequence, text)
    while sequence and sequence[-1] is None:
        sequence = sequence[:-1]
    depth = 0
    while depth < len(sequence) and isinstance(sequence[depth], str):
        depth += 1
    return Alternative(
        key="/".join(map(str, sequence[:depth])),
        rest=write_glob(sequence[depth:]) if depth < len(sequence) else None,
    )


def _tidy(text: str) -> str:
    """Return the glob without `./` at its start, double slashes, and `/` or `/**` at its end."""
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    while "//" in text:
        text = text.replace("//", "/")
    while text.endswith(("/", "/**")):
        text = text.removesuffix("/").removesuffix("/**")
    return "." if text in {"", "**"} else text


def _inside(sequence: Row, text: str) -> Row:
    """Return the names without leading `.`, if they stay inside the repository and are not too many."""
    while sequence and sequence[0] == ".":
        sequence = sequence[1:]
    if "." in sequence or ".." in sequence:
        why = "has a . or .. between its slashes"
        raise pattern_error(text, why, "PATTERN_NOT_TIDY", "write the path from the root of the repository")
    if len(sequence) > MOST_SEGMENTS:
        why = f"is {len(sequence)} folders deep; {MOST_SEGMENTS} are the most"
        raise pattern_error(text, why, "PATTERN_TOO_DEEP", "name a folder further up")
    return sequence


def _shown(text: str) -> str:
    return "./" + text if reads_as_name(text) else text or "."


def overlap(a: Pattern, b: Pattern) -> bool:
    """Return whether any path, existing or not, is covered by both."""
    return any(alternatives_overlap(mine, other) for mine in a.alternatives for other in b.alternatives)


def alternatives_overlap(a: Alternative, b: Alternative) -> bool:
    """Return whether any path, existing or not, is covered by both."""
    upper, lower = a.key, b.key
    if upper == lower:
        return a.rest is None or b.rest is None or _meet(a, b)
    if len(upper) > len(lower):
        upper, lower, a, b = lower, upper, b, a
    # Most pairs end here, without a further call.
    if not lower.startswith(upper):
        return False
    return _is_below(lower, upper) and (a.rest is None or _meet(a, b))


def _is_below(key: str, folder: str) -> bool:
    """Return whether a key is strictly below another; nothing is below a name."""
    return key.startswith(folder + "/" if folder else "") and key[:2] != "//" and key != folder


def _meet(upper: Alternative, lower: Alternative) -> bool:
    return rows_meet(compile_rest(upper.rest), (*_names_between(upper, lower), *compile_rest(lower.rest)))


def _names_between(upper: Alternative, lower: Alternative) -> list[str]:
    """Return the folders from one key down to the other."""
    return lower.key[len(upper.key) :].strip("/").split("/") if lower.key != upper.key else []


def common_path(a: Pattern, b: Pattern) -> str | None:
    """Return a path or name that both cover, to show why they overlap; None if they do not."""
    for mine in a.alternatives:
        for other in b.alternatives:
            if alternatives_overlap(mine, other):
                return _common_example(mine, other)
    return None


def _common_example(a: Alternative, b: Alternative) -> str:
    upper, lower = sorted((a, b), key=lambda alternative: len(alternative.key))
    if upper.key[:2] == "//":
        return upper.key[2:]
    sequence = (*_names_between(upper, lower), *compile_rest(lower.rest))
    return "/".join([*filter(None, [upper.key]), *(common_names(compile_rest(upper.rest), sequence) or [])])


def covers_alternative(a: Alternative, b: Alternative) -> bool:
    """Return whether a covers everything that b covers; False is certain only if one of them is literal."""
    if a == b:
        return True
    if a.key != b.key and not _is_below(b.key, a.key):
        return False
    if a.rest is None:
        return True
    return row_holds(compile_rest(a.rest), (*_names_between(a, b), *compile_rest(b.rest)))


def covers_all(held: Sequence[Alternative], wanted: Pattern) -> bool:
    """Return whether everything that a pattern names is covered by these alternatives."""
    return all(any(covers_alternative(mine, one) for mine in held) for one in wanted.alternatives)


def ancestors(key: str) -> list[str]:
    """Return the keys of all folders above a key, from the root down, and the key; a name has no folders."""
    if key[:2] == "//":
        return [key]
    found = [""]
    end = key.find("/")
    while end >= 0:
        found.append(key[:end])
        end = key.find("/", end + 1)
    if key:
        found.append(key)
    return found


def below(key: str) -> tuple[str, str]:
    """Return the half-open range, by bytes of UTF-8, of the keys strictly below a key."""
    if key[:2] == "//":
        return key, key
    # "0" comes right after "/".
    return (key + "/", key + "0") if key else ("", "\U0010ffff")


def areas_of(patterns: Sequence[Pattern]) -> dict[str, bool]:
    """Return the keys to lock before checking these patterns for overlaps, and whether exclusively.

    Everything that can overlap a pattern has a key on the way from the root to the pattern's key, or below
    it. With shared locks on the way and an exclusive one on the key itself, two requests wait for each other
    only if they could overlap.
    """
    areas: dict[str, bool] = {}
    for pattern in patterns:
        for alternative in pattern.alternatives:
            for key in ancestors(alternative.key):
                areas.setdefault(key, False)
            areas[alternative.key] = True
    return areas
