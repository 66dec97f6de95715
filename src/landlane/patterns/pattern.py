"""Patterns: what a claim may name, in one canonical form, and exactly when two of them overlap.

A pattern covers what it matches and everything below, there already or not; the disk is never asked. Each
pattern is one branch or, with braces, several. A branch is a literal key and a rest: `src/**/*.py` has the
key `src` and the rest `**/*.py`, a plain path has no rest. Whatever overlaps a branch has a key that is an
ancestor of its key or lies below it, so that an index finds all candidates: `ancestors` and `below`.

Names such as `deploy:prod` are no paths. Their keys begin with `//`, as no path's key does.
"""

from __future__ import annotations

from landlane.errors import PatternError
from landlane.patterns.glob import compile_rest, normal_form, pattern_error, read_glob, write_glob
from landlane.patterns.glob_overlap import common_names, row_holds, rows_meet
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from landlane.patterns.glob import Row

    Kind = Literal["literal", "glob", "name"]


LONGEST_TEXT = 4096
MOST_SEGMENTS = 100
LONGEST_NAME = 200
# A text without any of these, and tidy, is its own canonical form.
_GLOB_CHARACTERS = frozenset("*?[{\\")
_UNUSUAL = _GLOB_CHARACTERS | frozenset(":\0")
_SCHEME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_NAME_CHARACTERS = _SCHEME_CHARACTERS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ./@+:")


@value
class Alternative:
    """One alternative of a pattern: a literal folder or file and, unless that is all, a glob below it."""

    key: str
    rest: str | None


@value
class Pattern:
    """What a claim names: a text for people, a kind, and the branches that are compared."""

    text: str
    kind: Kind
    alternatives: tuple[Alternative, ...]


# --------------------------------------------------------------------------------------------- parsing


def parse(text: str, *, literal: bool = False, ignore_case: bool = False) -> Pattern:
    """Read a path, glob or name that is relative to the repository; with `literal`, always a path.

    The text of a pattern is canonical: parsed again, as a literal if it was one, it gives the same pattern.

    Raises:
        PatternError: nothing, or nothing inside the repository, could be meant by it.
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
        raise _refusal(text, "begins at the root of the machine", "PATTERN_ABSOLUTE", hint)
    if literal:
        return _parse_path(text, ignore_case)
    tidy = _tidy(text)
    is_plain = _GLOB_CHARACTERS.isdisjoint(tidy)
    found = _parse_path(tidy, ignore_case) if is_plain else _parse_glob(tidy, ignore_case)
    if not ("/" + text.rstrip("/")).endswith("/**"):
        return found
    # A folder and all below it are one and the same, but people like to see what they wrote.
    return Pattern(
        text="**" if tidy == "." else _shown(tidy) + "/**", kind="glob", alternatives=found.alternatives
    )


def _literal(text: str, key: str) -> Pattern:
    return Pattern(text=text, kind="literal", alternatives=(Alternative(key=key, rest=None),))


def _checked(text: str) -> str:
    """The text in Unicode NFC, when it is one that a repository's path could have."""
    if not text:
        raise _refusal(text, "names nothing", "PATTERN_EMPTY", "use . for the whole repository")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        size = -1
    # No path can hold the first; the second is where the range of all keys ends.
    if size < 0 or "\0" in text or "\U0010ffff" in text:
        raise _refusal(text, "holds characters that no path can have", "PATTERN_BAD_TEXT", "use valid UTF-8")
    if size > LONGEST_TEXT:
        why = f"is {size:,} bytes long; {LONGEST_TEXT:,} are the most"
        raise _refusal(text, why, "PATTERN_TOO_LONG", "name a folder or a shorter glob that covers it")
    return comparable(text)


def comparable(text: str, *, ignore_case: bool = False) -> str:
    """The form in which paths are compared: Unicode NFC and, if asked, without case."""
    if text.isascii():
        return text.lower() if ignore_case else text
    return normal_form(text, ignore_case=ignore_case)


def _parse_path(text: str, ignore_case: bool) -> Pattern:
    names = _inside(tuple(name for name in text.split("/") if name), text)
    path = "/".join(map(str, names))
    return _literal(_shown(path), comparable(path, ignore_case=ignore_case))


def _parse_name(text: str) -> Pattern:
    rest = text[text.index(":") + 1 :]
    if not rest or len(rest) > LONGEST_NAME or not _NAME_CHARACTERS.issuperset(rest):
        hint = f"after the colon, use 1 to {LONGEST_NAME} letters, digits or . _ - / @ + : and no wildcards;"
        raise _refusal(text, "is not a name", "PATTERN_BAD_NAME", f"{hint} for a path, begin with ./")
    return Pattern(text=text, kind="name", alternatives=(Alternative(key="//" + text, rest=None),))


def reads_as_name(text: str) -> bool:
    """Whether the text begins with a scheme; one letter is none, but a drive elsewhere."""
    scheme, colon, _ = text.partition(":")
    return bool(colon) and len(scheme) > 1 and "a" <= text[0] <= "z" and _SCHEME_CHARACTERS.issuperset(scheme)


def has_special(text: str) -> bool:
    """Whether a text holds a character that means something in a glob."""
    return not _GLOB_CHARACTERS.isdisjoint(text)


def _parse_glob(tidy: str, ignore_case: bool) -> Pattern:
    branches = _branches(tidy, ignore_case)
    first = branches[0]
    if len(branches) > 1 or first.rest is not None:
        return Pattern(text=_shown(tidy), kind="glob", alternatives=tuple(branches))
    spelled = _branches(tidy, ignore_case=False)[0] if ignore_case else first
    return _literal(_shown(first.key if spelled.rest else spelled.key), first.key)


def _branches(tidy: str, ignore_case: bool) -> list[Alternative]:
    found = {_branch(sequence, tidy) for sequence in read_glob(tidy, ignore_case=ignore_case)}
    return sorted(found, key=lambda branch: (branch.key, branch.rest or ""))


def _branch(sequence: Row, text: str) -> Alternative:
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
    """The glob without what changes nothing: `./` before it, doubled slashes, `/` and `/**` behind it."""
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    while "//" in text:
        text = text.replace("//", "/")
    while text.endswith(("/", "/**")):
        text = text.removesuffix("/").removesuffix("/**")
    return "." if text in {"", "**"} else text


def _inside(sequence: Row, text: str) -> Row:
    """The names without `.` in front, when they do not leave the repository and are not too many."""
    while sequence and sequence[0] == ".":
        sequence = sequence[1:]
    if "." in sequence or ".." in sequence:
        why = "has a . or .. between its slashes"
        raise _refusal(text, why, "PATTERN_NOT_TIDY", "write the path from the root of the repository")
    if len(sequence) > MOST_SEGMENTS:
        why = f"is {len(sequence)} folders deep; {MOST_SEGMENTS} are the most"
        raise _refusal(text, why, "PATTERN_TOO_DEEP", "name a folder further up")
    return sequence


def _shown(text: str) -> str:
    return "./" + text if reads_as_name(text) else text or "."


def _refusal(text: str, why: str, code: str, hint: str) -> PatternError:
    return pattern_error(text, why, code, hint)


# ----------------------------------------------------------------------------------------- overlapping


def overlap(a: Pattern, b: Pattern) -> bool:
    """Whether any path, there or not, is covered by both."""
    for mine in a.alternatives:
        for other in b.alternatives:
            if alternatives_overlap(mine, other):
                return True
    return False


def alternatives_overlap(a: Alternative, b: Alternative) -> bool:
    """Whether any path, there or not, is covered by both branches."""
    upper, lower = a.key, b.key
    if upper == lower:
        return a.rest is None or b.rest is None or _meet(a, b)
    if len(upper) > len(lower):
        upper, lower, a, b = lower, upper, b, a
    # Most pairs part here, without a further call.
    if not lower.startswith(upper):
        return False
    return _is_below(lower, upper) and (a.rest is None or _meet(a, b))


def _is_below(key: str, folder: str) -> bool:
    """Whether a key lies strictly below another; nothing lies below a name."""
    return key.startswith(folder + "/" if folder else "") and key[:2] != "//" and key != folder


def _meet(upper: Alternative, lower: Alternative) -> bool:
    return rows_meet(compile_rest(upper.rest), (*_names_between(upper, lower), *compile_rest(lower.rest)))


def _names_between(upper: Alternative, lower: Alternative) -> list[str]:
    """The folders from the one key down to the other."""
    return lower.key[len(upper.key) :].strip("/").split("/") if lower.key != upper.key else []


def common_path(a: Pattern, b: Pattern) -> str | None:
    """A path (or the name) that both cover, to show why they overlap; None when they do not."""
    for mine in a.alternatives:
        for other in b.alternatives:
            if alternatives_overlap(mine, other):
                return _witness(mine, other)
    return None


def _witness(a: Alternative, b: Alternative) -> str:
    upper, lower = sorted((a, b), key=lambda branch: len(branch.key))
    if upper.key[:2] == "//":
        return upper.key[2:]
    sequence = (*_names_between(upper, lower), *compile_rest(lower.rest))
    return "/".join([*filter(None, [upper.key]), *(common_names(compile_rest(upper.rest), sequence) or [])])


def covers(held: Pattern | Alternative, path: str, *, ignore_case: bool = False) -> bool:
    """Whether this tidy path is covered; `ignore_case` has to be what the pattern was parsed with."""
    key = comparable(path, ignore_case=ignore_case)
    branches = held.alternatives if isinstance(held, Pattern) else (held,)
    for branch in branches:
        if branch.key == key:
            if branch.rest is None:
                return True
        elif _is_below(key, branch.key) and (branch.rest is None or _matches(branch, key)):
            return True
    return False


def _matches(branch: Alternative, key: str) -> bool:
    names = key[len(branch.key) + 1 :] if branch.key else key
    return rows_meet(compile_rest(branch.rest), tuple(names.split("/")))


def covers_alternative(a: Alternative, b: Alternative) -> bool:
    """Whether surely all that b covers is covered by a; a no is certain only where one is literal."""
    if a == b:
        return True
    if a.key != b.key and not _is_below(b.key, a.key):
        return False
    if a.rest is None:
        return True
    return row_holds(compile_rest(a.rest), (*_names_between(a, b), *compile_rest(b.rest)))


# -------------------------------------------------------------------------------------------- indexing


def ancestors(key: str) -> list[str]:
    """The key itself and those of all folders around it, from the root down; a name has none around it."""
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
    """The half-open range, by bytes of UTF-8, of the keys strictly below; that of the root is all keys."""
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
