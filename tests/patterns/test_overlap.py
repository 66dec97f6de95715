"""Overlap against brute force: an independent matcher, every path of a small world, and proof for each yes.

A yes is proved by a witness, which the independent matcher has to accept; a no by looking at every path of a
world that holds, beside the characters named in patterns, one (`z`) that none of them names.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from functools import cache

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from landlane.errors import PatternError
from landlane.patterns.glob import compile_rest, normal_form, write_glob
from landlane.patterns.pattern import (
    Alternative,
    Pattern,
    alternatives_overlap,
    ancestors,
    below,
    common_path,
    covers_alternative,
    overlap,
    parse,
)
from tests.support.patterns import covers

pytestmark = pytest.mark.simulation


# ---------------------------------------------------------------------------- the independent matcher

PIECE = re.compile(r"\\.|\[[!^]?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def pieces(glob: str) -> list[str]:
    """Escapes, classes and single characters."""
    return PIECE.findall(glob)


def choices(glob: str) -> list[str]:
    """Multiply out the first pair of braces with a comma in it, and go on with what that gives."""
    parts = pieces(glob)
    opened: list[int] = []
    pairs: list[tuple[int, int, list[int]]] = []
    commas: list[list[int]] = []
    for at, part in enumerate(parts):
        if part == "{":
            opened.append(at)
            commas.append([])
        elif part == "," and opened:
            commas[-1].append(at)
        elif part == "}" and opened:
            pairs.append((opened.pop(), at, commas.pop()))
    for start, end, cuts in sorted(pairs):
        if cuts:
            edges = [start, *cuts, end]
            options = ["".join(parts[a + 1 : b]) for a, b in itertools.pairwise(edges)]
            head, tail = "".join(parts[:start]), "".join(parts[end + 1 :])
            return [done for option in options for done in choices(head + option + tail)]
    return [glob]


@cache
def expression(name: str, ignore_case: bool) -> re.Pattern[str]:
    out = ""
    for part in pieces(name):
        if part == "*":
            out += "[^/]*"
        elif part == "?":
            out += "[^/]"
        elif part[0] == "[":
            inner = part[1:-1]
            negated = inner[0] in "!^"
            members = re.sub(r"[\[\]^&~|]|\\.", lambda found: "\\" + found[0][-1], inner[negated:])
            out += f"[{'^' * negated}{members}]"
        else:
            out += re.escape(part[-1])
    return re.compile(f"(?!/){out}", re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def reaches(glob: list[str], path: list[str], ignore_case: bool) -> bool:
    """Whether the glob matches the path or a folder around it."""
    if not glob:
        return True
    if glob[0] == "**":
        return any(reaches(glob[1:], path[at:], ignore_case) for at in range(len(path) + 1))
    if not path or not expression(glob[0], ignore_case).fullmatch(path[0]):
        return False
    return reaches(glob[1:], path[1:], ignore_case)


@cache
def globs_of(text: str) -> list[list[str]]:
    return [[name for name in one.split("/") if name not in {"", "."}] for one in choices(text)]


def is_covered(text: str, path: str, ignore_case: bool = False) -> bool:
    names = path.split("/") if path else []
    return any(reaches(glob, names, ignore_case) for glob in globs_of(text))


# ------------------------------------------------------------------------------------------ the worlds


def words(letters: str, longest: int) -> list[str]:
    return [
        "".join(word) for size in range(1, longest + 1) for word in itertools.product(letters, repeat=size)
    ]


def paths(names: list[str], deepest: int) -> list[str]:
    return [
        "/".join(path) for depth in range(1, deepest + 1) for path in itertools.product(names, repeat=depth)
    ]


# Two names of at most three pieces each are matched, if at all, by one of at most six characters.
LONG_NAMES = words("abz", 6) + words("*]-,{", 2) + ["a*", "]b", "z-"]
SMALL_TREE = paths([*words("abz", 2), "*", "]"], 3) + paths(["a", "b", "z"], 5)


def is_pattern(text: str) -> bool:
    try:
        parse(text)
    except PatternError:
        return False
    return True


odd_pieces = [r"\*", "[*]", "[]a]", "[!]]", r"[\]-]", "[!-a]", "[,{]", "{", "}", ","]
plain_piece = st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]", "[^ab]", "[a-b]", "[b-z]", r"\a"])
piece = st.one_of(plain_piece, st.sampled_from(odd_pieces))
name = st.one_of(st.lists(plain_piece, min_size=1, max_size=3).map("".join), st.just("**"))
row = st.lists(name, min_size=1, max_size=3).map("/".join)
braces = st.lists(st.one_of(st.just(""), name, row), min_size=2, max_size=3).map(
    lambda parts: f"{{{','.join(parts)}}}"
)
part = st.one_of(name, name, braces, st.tuples(name, braces).map("".join))
ending = st.sampled_from(["", "", "/", "/**"])
glob_text = (
    st.tuples(st.sampled_from(["", "", "./"]), st.lists(part, min_size=1, max_size=3).map("/".join), ending)
    .map("".join)
    .filter(is_pattern)
)
one_name = st.lists(piece, min_size=1, max_size=3).map("".join).filter(is_pattern)
SIMPLE_PIECES = ["a", "b", "*", "?", "[!a]", "[ab]"]


def check_pair(a: str, b: str, world: list[str]) -> None:
    one, two = parse(a), parse(b)
    witness = common_path(one, two)
    assert overlap(one, two) == overlap(two, one) == (witness is not None)
    if witness is not None:
        assert is_covered(a, witness)
        assert is_covered(b, witness)
    else:
        found = [path for path in world if is_covered(a, path) and is_covered(b, path)]
        assert found == []


# ------------------------------------------------------------------------------------------- the tests


@given(one_name, one_name)
@example("[!a]", "[^ab]")
@example("*", "*")
@example("[]a]", "[!]]")
def test_names_overlap_exactly_when_some_name_matches_both(a: str, b: str) -> None:
    check_pair(a, b, LONG_NAMES)


@pytest.mark.slow
@given(glob_text, glob_text)
@example("**/a/b", "b/*/a")
@example("{a,b/**}/?", "b*")
@example("*", ".")
def test_patterns_overlap_exactly_when_some_path_is_covered_by_both(a: str, b: str) -> None:
    check_pair(a, b, SMALL_TREE)


def check_all_pairs(texts: list[str], world: list[str]) -> None:
    """Compare with brute force, in a world large enough for an equality."""
    seen = {text: sum(1 << at for at, path in enumerate(world) if is_covered(text, path)) for text in texts}
    patterns = [(parse(text), seen[text]) for text in texts]
    for (a, paths_of_a), (b, paths_of_b) in itertools.product(patterns, repeat=2):
        assert overlap(a, b) == bool(paths_of_a & paths_of_b), (a.text, b.text)
        is_inside = covers_alternative(a.alternatives[0], b.alternatives[0])
        assert not (is_inside and paths_of_b & ~paths_of_a), (a.text, b.text)


@pytest.mark.slow
def test_all_short_rows_of_simple_names_compare_as_brute_force_says() -> None:
    # What two of these names have in common, `a`, `b` or `z` shows; and two rows of three, six folders.
    check_all_pairs(paths(["a", "b", "*", "?", "[!a]", "**"], 3), paths(["a", "b", "z"], 6))


@pytest.mark.slow
def test_all_short_names_of_simple_pieces_compare_as_brute_force_says() -> None:
    # What two of these pieces have in common, `a`, `b` or `z` shows; and two names of three, six letters.
    texts = [
        "".join(pieces) for size in (1, 2, 3) for pieces in itertools.product(SIMPLE_PIECES, repeat=size)
    ]
    check_all_pairs([text for text in texts if text != "**"], words("abz", 6))


@given(glob_text)
def test_every_pattern_overlaps_itself_and_the_whole_repository(text: str) -> None:
    pattern = parse(text)
    assert overlap(pattern, pattern)
    assert overlap(pattern, parse("."))
    assert not overlap(pattern, parse("deploy:prod"))


@pytest.mark.slow
@given(st.one_of(glob_text, one_name))
def test_a_pattern_covers_exactly_what_the_independent_matcher_says(text: str) -> None:
    pattern = parse(text)
    for path in [*SMALL_TREE[:200], *LONG_NAMES[:150], *LONG_NAMES[-10:], *SMALL_TREE[-100:]]:
        assert covers(pattern, path) == is_covered(text, path), path


@pytest.mark.slow
@given(glob_text, glob_text)
@example("*", "**/a")
@example("?*", "*")
def test_a_branch_that_covers_another_leaves_no_path_out(a: str, b: str) -> None:
    for outer, inner in itertools.product(parse(a).alternatives, parse(b).alternatives):
        verdict = covers_alternative(outer, inner)
        if inner.rest is None:
            assert verdict == covers(outer, inner.key)
        elif verdict:
            assert alternatives_overlap(outer, inner)
            assert [path for path in SMALL_TREE if covers(inner, path) and not covers(outer, path)] == []


@given(glob_text, glob_text)
def test_whatever_overlaps_is_found_through_the_index(a: str, b: str) -> None:
    for one, two in itertools.product(parse(a).alternatives, parse(b).alternatives):
        if alternatives_overlap(one, two):
            low, high = below(one.key)
            assert two.key in ancestors(one.key) or low <= two.key < high


def texts_of(pattern: Pattern) -> Pattern:
    return parse(pattern.text, literal=pattern.kind == "literal")


@given(st.one_of(glob_text, one_name))
def test_the_text_of_a_pattern_gives_the_same_pattern(text: str) -> None:
    pattern = parse(text)
    assert texts_of(pattern) == pattern
    for branch in pattern.alternatives:
        if branch.rest is not None:
            assert write_glob(compile_rest(branch.rest)[:-1]) == branch.rest


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\U0010ffff"), max_size=12))
def test_any_text_is_a_pattern_or_is_refused(text: str) -> None:
    for literal, ignore_case in itertools.product([False, True], repeat=2):
        try:
            pattern = parse(text, literal=literal, ignore_case=ignore_case)
        except PatternError:
            continue
        assert overlap(pattern, pattern)
        assert (
            parse(pattern.text, literal=pattern.kind == "literal", ignore_case=ignore_case).alternatives
            == pattern.alternatives
        )


cased = st.sampled_from(
    ["a", "A", "b", "B", "[aB]", "[A-B]", "[!A]", "[!a-b]", "[Z-b]", "?", "*", "[@-C]", "_"]
)
cased_name = st.lists(cased, min_size=1, max_size=3).map("".join)
CASED_WORLD = words("abAB_Z`", 3)


@given(cased_name, cased_name)
def test_without_case_patterns_match_as_regular_expressions_do_without_case(a: str, b: str) -> None:
    one, two = parse(a, ignore_case=True), parse(b, ignore_case=True)
    of_a = {path for path in CASED_WORLD if is_covered(a, path, ignore_case=True)}
    of_b = {path for path in CASED_WORLD if is_covered(b, path, ignore_case=True)}
    assert of_a == {path for path in CASED_WORLD if covers(one, path, ignore_case=True)}
    witness = common_path(one, two)
    assert overlap(one, two) == (witness is not None)
    if witness is None:
        assert not of_a & of_b
    else:
        assert is_covered(a, witness, ignore_case=True)
        assert is_covered(b, witness, ignore_case=True)


letters = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0/\U0010ffff"), min_size=1, max_size=8
)


@given(letters, st.booleans())
@example("J\u030c", True)
@example("\u0345\u0301", True)
@example("\u1fbc", True)
def test_the_comparison_form_is_reached_at_once_and_whatever_the_spelling(
    text: str, ignore_case: bool
) -> None:
    form = normal_form(text, ignore_case=ignore_case)
    assert normal_form(form, ignore_case=ignore_case) == form
    for spelling in ("NFC", "NFD"):
        assert normal_form(unicodedata.normalize(spelling, text), ignore_case=ignore_case) == form


@given(letters)
def test_a_literal_covers_its_other_spelling(text: str) -> None:
    assume(text not in {".", ".."})
    pattern = parse(text, literal=True)
    assert pattern.alternatives == (Alternative(key=normal_form(text), rest=None),)
    assert covers(pattern, unicodedata.normalize("NFD", text) + "/below")
