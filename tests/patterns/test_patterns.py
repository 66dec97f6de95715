"""What a pattern's text means, which texts are refused, and what overlaps what."""

from __future__ import annotations

import pytest

from landlane.errors import PatternError
from landlane.patterns.glob import normal_form
from landlane.patterns.pattern import (
    Alternative,
    alternatives_overlap,
    ancestors,
    below,
    common_path,
    covers_alternative,
    overlap,
    parse,
)
from tests.support.patterns import covers

pytestmark = pytest.mark.unit


def shape(text: str, **options: bool) -> tuple[str, list[tuple[str, str | None]]]:
    pattern = parse(text, **options)
    return pattern.kind, [(branch.key, branch.rest) for branch in pattern.alternatives]


def branch(text: str) -> Alternative:
    (only,) = parse(text).alternatives
    return only


# --------------------------------------------------------------------------------------------- parsing


@pytest.mark.parametrize("text", ["src", "src/", "src/**", "src/**/**/", "./src", ".//src//", "././src/**"])
def test_a_folder_is_the_same_claim_however_it_is_written(text: str) -> None:
    assert parse(text).alternatives == parse("src").alternatives
    assert parse(text).text == ("src/**" if "**" in text else "src")


@pytest.mark.parametrize("text", [".", "./", "**", "**/", "**/**", "./**", "./."])
def test_the_whole_repository_has_the_empty_key(text: str) -> None:
    assert [(branch.key, branch.rest) for branch in parse(text).alternatives] == [("", None)]
    assert parse(text).text == ("**" if "**" in text else ".")


def test_a_single_star_covers_everything_and_stays_a_glob() -> None:
    assert shape("*") == ("glob", [("", "*")])
    assert covers(parse("*"), ".git/config")


@pytest.mark.parametrize(
    ("text", "key", "rest"),
    [
        ("src/api/users.py", "src/api/users.py", None),
        ("src/.env", "src/.env", None),
        (".github/workflows/**", ".github/workflows", None),
        ("src/**/*.py", "src", "**/*.py"),
        ("src/*.py/**", "src", "*.py"),
        ("a/**/**/b", "a", "**/b"),
        ("a/x**y", "a", "x*y"),
        ("a/***", "a", "*"),
        (r"a\*b/c?", "a*b", "c?"),
        (r"a*/\*\{b", "", r"a*/\*\{b"),
        (r"\a\b", "ab", None),
        ("x[!b-d]", "", "x[!b-d]"),
        ("x[^d-db-c]", "", "x[!b-d]"),
        ("x[]a]", "", r"x[\]a]"),
        ("x[!]a]", "", r"x[!\]a]"),
        ("x[a-]", "", r"x[\-a]"),
        (r"x[\]\\]", "", r"x[\\-\]]"),
        ("x[+-9]", "", "x[+-.0-9]"),
        ("x[\x01-\U0010fffe]", "", "x?"),
        ("x[*]", "x*", None),
        ("{a}", "{a}", None),
        ("a}b,c", "a}b,c", None),
        ("x[{,}]", "", "x[,{}]"),
        ("a:b", "a:b", None),
        ("src/ab:c", "src/ab:c", None),
    ],
)
def test_a_pattern_is_a_literal_key_and_the_rest_of_the_glob(text: str, key: str, rest: str | None) -> None:
    is_glob = rest is not None or text.endswith("/**")
    assert shape(text) == ("glob" if is_glob else "literal", [(key, rest)])


@pytest.mark.parametrize(
    ("text", "branches"),
    [
        ("{b,a}/c", [("a/c", None), ("b/c", None)]),
        ("{a,b/{c,d*}}", [("a", None), ("b", "d*"), ("b/c", None)]),
        ("x{,.bak}", [("x", None), ("x.bak", None)]),
        ("{{a,b}}", [("{a}", None), ("{b}", None)]),
        ("{a[,]b,c}", [("a,b", None), ("c", None)]),
        (r"{a\,b,c}", [("a,b", None), ("c", None)]),
        ("{a/**,b/}/c", [("a", "**/c"), ("b/c", None)]),
        ("{./a,b//c}", [("a", None), ("b/c", None)]),
    ],
)
def test_braces_make_one_branch_for_each_choice(text: str, branches: list[tuple[str, str | None]]) -> None:
    assert shape(text) == ("glob", branches)


@pytest.mark.parametrize("text", ["{a,a}", "{a,a/**}", "{a,./a}"])
def test_choices_that_are_the_same_count_once(text: str) -> None:
    assert shape(text) == ("literal", [("a", None)])


@pytest.mark.parametrize("text", ["a*b", "a[b", "{a,b}", r"a\b", "**", "a?"])
def test_no_character_of_a_literal_is_special(text: str) -> None:
    assert shape(text, literal=True) == ("literal", [(text, None)])
    assert parse(f"./x//{text}/", literal=True).text == f"x/{text}"


@pytest.mark.parametrize(
    "text", ["deploy:prod", "db:migrations", "gh:o/r@v1+2", "a-1_:a:b", "ab:" + "x" * 200]
)
def test_a_scheme_and_a_colon_make_a_name(text: str) -> None:
    assert shape(text) == ("name", [("//" + text, None)])
    assert shape(text, ignore_case=True) == shape(text)


def test_a_path_that_reads_like_a_name_is_shown_as_a_path() -> None:
    assert shape("./deploy:prod") == ("literal", [("deploy:prod", None)])
    assert parse("./deploy:prod").text == "./deploy:prod"
    assert parse("deploy:prod", literal=True) == parse("./deploy:prod")
    assert parse("./deploy:*").text == "./deploy:*"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PATTERN_EMPTY"),
        ("/etc", "PATTERN_ABSOLUTE"),
        ("//", "PATTERN_ABSOLUTE"),
        ("{/etc,a}", "PATTERN_ABSOLUTE"),
        ("./{/etc,a}", "PATTERN_ABSOLUTE"),
        ("{,a}", "PATTERN_ABSOLUTE"),
        ("..", "PATTERN_NOT_TIDY"),
        ("./../a", "PATTERN_NOT_TIDY"),
        ("a/../b", "PATTERN_NOT_TIDY"),
        ("a/./b", "PATTERN_NOT_TIDY"),
        ("a/.", "PATTERN_NOT_TIDY"),
        ("*/..", "PATTERN_NOT_TIDY"),
        ("a/{..,b}", "PATTERN_NOT_TIDY"),
        (r"a/\.\.", "PATTERN_NOT_TIDY"),
        ("a/[.]/b", "PATTERN_NOT_TIDY"),
        ("a\0b", "PATTERN_BAD_TEXT"),
        ("a\ud800", "PATTERN_BAD_TEXT"),
        ("\U0010ffff", "PATTERN_BAD_TEXT"),
        ("a" * 4097, "PATTERN_TOO_LONG"),
        ("é" * 2049, "PATTERN_TOO_LONG"),
        ("a/" * 100 + "b", "PATTERN_TOO_DEEP"),
        ("*/" * 100 + "b", "PATTERN_TOO_DEEP"),
        ("a[b", "PATTERN_UNCLOSED"),
        ("a[]", "PATTERN_UNCLOSED"),
        ("a[!]", "PATTERN_UNCLOSED"),
        ("a[b/c]", "PATTERN_UNCLOSED"),
        ("a[b-/c]", "PATTERN_UNCLOSED"),
        ("a[b-", "PATTERN_UNCLOSED"),
        ("{a,b", "PATTERN_UNCLOSED"),
        ("{a,{b}", "PATTERN_UNCLOSED"),
        ("{" * 4000, "PATTERN_UNCLOSED"),
        ("[z-a]", "PATTERN_BAD_CLASS"),
        ("[!\x01-\U0010fffe]", "PATTERN_BAD_CLASS"),
        ("a\\", "PATTERN_BAD_ESCAPE"),
        (r"a\/b", "PATTERN_BAD_ESCAPE"),
        (r"a\/", "PATTERN_BAD_ESCAPE"),
        (r"a[\/]", "PATTERN_BAD_ESCAPE"),
        ("{a,b,c,d,e}" * 3, "PATTERN_TOO_MANY_ALTERNATIVES"),
        ("{" + "a," * 64 + "}", "PATTERN_TOO_MANY_ALTERNATIVES"),
        ("*a" * 1900 + "{b,c}" * 6, "PATTERN_TOO_MANY_ALTERNATIVES"),
        ("deploy:", "PATTERN_BAD_NAME"),
        ("deploy:*", "PATTERN_BAD_NAME"),
        ("deploy:a b", "PATTERN_BAD_NAME"),
        ("deploy:" + "x" * 201, "PATTERN_BAD_NAME"),
    ],
)
def test_a_text_that_can_mean_nothing_is_refused_with_a_hint(text: str, code: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(text)
    assert caught.value.code == code
    assert caught.value.hint


def test_the_largest_patterns_are_still_taken() -> None:
    assert len(parse("a" * 4096).text) == 4096
    assert len(parse("{a,b}" * 6).alternatives) == 64
    assert parse("a/" * 99 + "b").kind == "literal"
    assert parse("*/" * 99 + "b").kind == "glob"


@pytest.mark.parametrize("text", ["/a", "a/../b", "", "a\0"])
def test_a_literal_has_to_lie_in_the_repository_too(text: str) -> None:
    with pytest.raises(PatternError):
        parse(text, literal=True)


# ------------------------------------------------------------------------------ case and normalisation


def test_case_is_kept_for_people_and_folded_for_comparison() -> None:
    pattern = parse("Src/API/*.Py", ignore_case=True)
    assert pattern.text == "Src/API/*.Py"
    assert pattern.alternatives == (Alternative(key="src/api", rest="*.py"),)
    assert parse("Src", ignore_case=True).text == "Src"
    assert parse(r"Sr\c", ignore_case=True).text == "Src"
    assert parse("[Aa]b", ignore_case=True).text == "ab"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("x[A-Z]", "x[a-z]"),
        ("x[A-z]", r"x[\[-z]"),
        ("x[!A-C]", "x[!a-c]"),
        ("x[Z-a_]", r"x[\[-az]"),
        ("x[À-Þ]", "x[×à-öø-þ]"),
        ("x[İI]", "x[iİ]"),
    ],
)
def test_a_class_is_folded_character_by_character(text: str, rest: str) -> None:
    assert parse(text, ignore_case=True).alternatives == (Alternative(key="", rest=rest),)


def test_a_class_of_thousands_of_characters_is_folded_too() -> None:
    beyond_ascii = parse("x[\x80-\U0010fffe]", ignore_case=True)
    assert covers(beyond_ascii, "xÉ", ignore_case=True)
    # The long s is written beyond ASCII, and is an s when case is ignored.
    assert covers(beyond_ascii, "xS", ignore_case=True)
    assert not covers(beyond_ascii, "xT", ignore_case=True)


def test_spellings_that_look_alike_are_one() -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    assert parse(composed) == parse(apart)
    assert parse("caf{e,a}\u0301").alternatives[1].key == composed
    assert covers(parse("caf?"), apart)
    assert covers(parse("caf[e\u0301]*"), composed)
    assert normal_form("J\u030c", ignore_case=True) == normal_form("\u01f0", ignore_case=True)
    assert normal_form("STRASSE", ignore_case=True) != normal_form("straße", ignore_case=True)
    assert overlap(parse("STRA?E", ignore_case=True), parse("Straße", ignore_case=True))


# ----------------------------------------------------------------------------------------- overlapping


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("src", "src/api/users.py"),
        (".", "src"),
        (".", "*"),
        ("src/*", "src"),
        ("src/*.py", "src/a.py/b"),
        ("*.py", "test_*"),
        ("src/**/x", "src/x"),
        ("src/**/x", "src/a/b/x/y"),
        ("**/a/**/b", "b/*/a"),
        ("[a-m]*", "[k-z]?"),
        ("[!a]", "[!b]"),
        ("a?c", "a[!a]*"),
        ("{docs,src}/x", "src"),
        ("src/*", "src/.hidden"),
        ("deploy:prod", "deploy:prod"),
    ],
)
def test_these_overlap_and_a_common_path_proves_it(a: str, b: str) -> None:
    one, two = parse(a), parse(b)
    assert overlap(one, two)
    assert overlap(two, one)
    witness = common_path(one, two)
    assert witness is not None
    assert one.kind == "name" or (covers(one, witness) and covers(two, witness))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("src", "src2"),
        ("src/api", "src/app"),
        ("*.py", "*.ts"),
        ("src/*.py", "src/a.ts/b"),
        ("src/**/*.py", "docs"),
        ("[a-m]x", "[n-z]x"),
        ("[a-m]x", "[!a-m]x"),
        ("?", "??"),
        ("a*b", "a*c"),
        ("*/a", "*/b"),
        ("deploy:prod", "./deploy:prod"),
        ("deploy:prod", "deploy:prod/eu"),
        ("deploy:prod", "deploy:Prod"),
        ("deploy:prod", "."),
        ("deploy:prod", "**/*"),
    ],
)
def test_these_have_nothing_in_common(a: str, b: str) -> None:
    assert not overlap(parse(a), parse(b))
    assert not overlap(parse(b), parse(a))
    assert common_path(parse(a), parse(b)) is None


@pytest.mark.parametrize(
    ("a", "b", "path"),
    [
        ("src/**/*.py", "src/a.ts", "src/a.ts/a.py"),
        ("**/*.md", "src/*.ts", "src/a.ts/a.md"),
    ],
)
def test_any_path_may_be_a_folder_with_matches_of_a_deep_glob_below(a: str, b: str, path: str) -> None:
    assert common_path(parse(a), parse(b)) == path


@pytest.mark.parametrize(
    ("a", "b", "path"),
    [
        ("src", "src/api", "src/api"),
        ("*.py", "*.py", "a.py"),
        (".*", "*.", ".a."),
        ("src/**/*.py", "**/test_*", "src/test_a.py"),
        ("*", ".", "a"),
        (".", ".", ""),
        ("deploy:prod", "deploy:prod", "deploy:prod"),
    ],
)
def test_the_common_path_is_one_to_show_to_people(a: str, b: str, path: str) -> None:
    assert common_path(parse(a), parse(b)) == path


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("*a" * 2000 + "*b", "*a" * 2000 + "*c"),
        ("*a*a*a*a*a*a*b", "*a*a*a*a*a*a*b"),
        ("**/a/" * 49 + "b*", "**/a/" * 49 + "c*"),
        ("/".join(["**"] * 100) + "/x", "/".join(["**"] * 100) + "/y"),
        ("?" * 2000 + "*", "*" + "[!a]?" * 500 + "b"),
    ],
)
def test_hard_patterns_are_decided_without_trying_every_way(a: str, b: str) -> None:
    assert overlap(parse(a), parse(b)) == (common_path(parse(a), parse(b)) is not None)
    assert covers_alternative(branch(a), branch(a))


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        (".", "", True),
        (".", "a", True),
        ("*", "", False),
        ("src", "src/a", True),
        ("src", "src", True),
        ("src", "src2", False),
        ("src/*.py", "src", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a.py/x", True),
        ("src/*.py", "src/b/a.py", False),
        ("**/x", "x", True),
        ("**/x", "a/b/x/c", True),
        ("{a,b*}", "bc/d", True),
        ("deploy:prod", "deploy:prod", False),
        ("a[!b]", "ab", False),
    ],
)
def test_a_path_is_covered_by_what_matches_it_or_a_folder_around_it(
    pattern: str, path: str, expected: bool
) -> None:
    assert covers(parse(pattern), path) is expected
    assert any(covers(each, path) for each in parse(pattern).alternatives) is expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("src", "src/api/*.py", True),
        ("src", "*", False),
        ("src/*", "src", False),
        ("src/**/*.py", "src/api/*.py", True),
        ("src/**/*.py", "src/api/**/test_*.py", True),
        ("src/api/*.py", "src/**/*.py", False),
        ("*", "**/x", True),
        ("[ab]", "**/[ab]", False),
        ("[ab]*", "*[ab]*", False),
        ("[a-m]*", "[b-c]?", True),
        ("[a-m]*", "[b-n]?", False),
        ("?*", "a*", True),
        ("*/?", "*/[!a]", True),
        ("deploy:prod", "deploy:prod", True),
        ("deploy:prod", "deploy:prod/eu", False),
        (".", "deploy:prod", False),
    ],
)
def test_a_branch_covers_another_when_nothing_is_left_over(a: str, b: str, expected: bool) -> None:
    assert covers_alternative(branch(a), branch(b)) is expected


# -------------------------------------------------------------------------------------------- indexing


def test_the_ancestors_of_a_key_go_from_the_root_to_itself() -> None:
    assert ancestors("") == [""]
    assert ancestors("src") == ["", "src"]
    assert ancestors("src/api/a.py") == ["", "src", "src/api", "src/api/a.py"]
    assert ancestors("//deploy:a/b") == ["//deploy:a/b"]


def test_the_range_below_a_key_holds_its_children_only() -> None:
    low, high = below("src")
    assert all(low <= key < high for key in ("src/a", "src/\x01", "src/\U0010fffe/b"))
    assert not any(low <= key < high for key in ("src", "src2", "src.py", "src-a", "srd"))
    low, high = below("")
    assert all(low <= key < high for key in ("a", "\U0010fffe"))
    low, high = below("//deploy:prod")
    assert not any(low <= key < high for key in ("//deploy:prod", "//deploy:prod/eu"))


def test_branches_read_back_from_a_store_compare_as_before() -> None:
    held = Alternative(key="src", rest="**/*.py")
    assert alternatives_overlap(held, branch("src/a/b.py"))
    assert not alternatives_overlap(branch("docs/a.py"), held)
