"""Roles: what each may write and do, and how the settings change that."""

from __future__ import annotations

import pytest

from landlane.errors import Malformed, SettingsError
from landlane.patterns.pattern import parse
from landlane.roles.model import (
    BUILT_IN,
    TESTS,
    VERBS,
    WORKER_ROLE,
    Scope,
    find_role,
    role_or_read_only,
    why_not_verb,
)
from landlane.settings.model import RoleSettings, Settings
from landlane.settings.readers import parse_settings

pytestmark = pytest.mark.unit

READERS = ("orchestrator", "debug", "review", "verify", "explore", "security", "research")


def scope(role: str) -> Scope:
    return Scope(find_role(Settings(), role), Settings())


# -------------------------------------------------------------------------------------------- built in


def test_there_are_thirteen() -> None:
    assert len(BUILT_IN) == 13
    assert all(set(role.verbs) <= set(VERBS) for role in BUILT_IN.values())
    assert not any("approve" in role.verbs for role in BUILT_IN.values())


@pytest.mark.parametrize("role", READERS)
def test_readers_write_nothing(role: str) -> None:
    assert BUILT_IN[role].is_read_only
    for path in ("a", "src/a.py", "tests/a.py", "README.md", "VERSION"):
        assert scope(role).why_not(path) == f"the role {role} changes no file"
    assert not {"commit", "land", "deploy"} & set(BUILT_IN[role].verbs)


def test_whoever_is_started_without_a_role_proposes() -> None:
    assert BUILT_IN[WORKER_ROLE].safety == "propose"
    assert not BUILT_IN[WORKER_ROLE].verbs


def test_each_role_has_a_safety_level() -> None:
    levels = {name: str(role.safety) for name, role in BUILT_IN.items()}
    assert {name for name, level in levels.items() if level == "read-only"} == {*READERS}
    assert levels["propose"] == "propose"
    assert levels["release"] == "trusted"
    assert {levels[name] for name in ("code", "test", "document", "refactor")} == {"commit"}


def test_settings_demand_a_safety_level() -> None:
    tame = Settings(roles={"tame": RoleSettings(like="code", verbs=(), safety="propose")})
    assert find_role(tame, "tame").safety == "propose"
    wild = Settings(roles={"wild": RoleSettings(like="code", safety="propose")})
    with pytest.raises(SettingsError) as caught:
        find_role(wild, "wild")
    assert caught.value.code == "ROLE_UNSAFE"
    assert "it may commit and land" in caught.value.message


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        ("code", ["src/a.py", "README.md", "setup.py"], ["tests/a.py", "src/tests/x", "src/test_a.py"]),
        ("code", ["src/testing.py"], ["conftest.py", "a/b/__tests__/c.js", "web/a.test.ts", "pkg/x_test.go"]),
        ("test", ["tests/a.py", "src/test_a.py", "conftest.py"], ["src/a.py", "README.md", "Makefile"]),
        ("document", ["docs/a.md", "README.md", "src/NOTES.rst"], ["src/a.py", "tests/README.md", "a.txt"]),
        ("refactor", ["src/a.py", "tests/a.py"], [".gitattributes"]),
        ("release", ["CHANGELOG.md", "pyproject.toml", "src/pkg/_version.py"], ["src/a.py", "tests/a.py"]),
    ],
)
def test_writers_write_what_is_theirs(role: str, may: list[str], may_not: list[str]) -> None:
    found = scope(role)
    assert [found.why_not(path) for path in may] == [""] * len(may)
    assert all(found.why_not(path) for path in may_not)


@pytest.mark.parametrize("role", [role for role in BUILT_IN if role not in READERS])
@pytest.mark.parametrize(
    "path",
    [
        *(".gitattributes", "docs/.gitattributes", ".gitmodules", ".githooks/pre-commit", ".husky/x"),
        *(
            ".github/workflows/ci.yml",
            ".claude/settings.json",
            "tests/.codex/hooks.json",
            ".vscode/tasks.json",
        ),
        *("landlane.toml", "RULES.md", "AGENTS.md", "CLAUDE.md", "docs/CLAUDE.md", ".mcp.json"),
    ],
)
def test_what_decides_for_others_is_nobodys(role: str, path: str) -> None:
    assert scope(role).why_not(path)
    assert scope(role).why_not(path.upper())


@pytest.mark.parametrize(
    "path", ["Tests/a.py", "TESTS/A.PY", "tests\u200b/a.py", "tests./a.py", "tests /a.py", "src/Conftest.py"]
)
def test_a_spelling_that_some_disk_takes_for_the_same_is_the_same(path: str) -> None:
    assert scope("code").why_not(path)


@pytest.mark.parametrize("path", ["../a", "src/../tests/a", "a\udcff", "/etc/passwd", "x" * 5000])
def test_what_cannot_be_judged_is_refused(path: str) -> None:
    assert scope("refactor").why_not(path)


def test_no_role_is_bound_by_nothing_and_one_that_is_gone_only_reads() -> None:
    assert role_or_read_only(Settings(), "") is None
    gone = role_or_read_only(Settings(), "gardener")
    assert gone is not None
    assert Scope(gone, Settings()).why_not("a")
    assert all(why_not_verb(gone, verb) for verb in VERBS)
    assert not why_not_verb(None, "deploy")


# --------------------------------------------------------------------------------------------- claiming


@pytest.mark.parametrize(
    ("role", "pattern", "may"),
    [
        ("code", "src/**", True),
        ("code", "**", True),
        ("code", "tests/**", False),
        ("code", "tests/{a,b}/*.py", False),
        ("code", ".github/workflows/*", False),
        ("test", "**/test_*.py", True),
        ("test", "src/*.py", True),  # src/test_a.py could be one of them
        ("code", "deploy:prod", True),
        ("document", "src/**", True),
        ("release", "VERSION", True),
        ("release", "src/a.py", False),
    ],
)
def test_a_glob_is_refused_where_nothing_of_it_could_be_written(role: str, pattern: str, may: bool) -> None:
    assert (not scope(role).why_not_claimed(parse(pattern))) == may


# --------------------------------------------------------------------------------------------- settings


def test_settings_define_a_role_like_another() -> None:
    settings = parse_settings(
        {
            "roles": {
                "frontend": {"like": "code", "writes": ["web/**"], "connects": [443], "summary": "the web"},
                "deployer": {"like": "frontend", "verbs": ["deploy"], "protected": True},
            }
        }
    )
    frontend, deployer = find_role(settings, "frontend"), find_role(settings, "deployer")

    assert (frontend.name, frontend.writes, frontend.denies) == ("frontend", ("web/**",), ("@tests",))
    assert (frontend.connects, frontend.summary) == ((443,), "the web")
    assert (deployer.verbs, deployer.may_change_protected, deployer.writes) == (
        ("deploy",),
        True,
        ("web/**",),
    )
    assert not Scope(deployer, settings).why_not("web/.gitattributes")


def test_settings_change_a_built_in_role() -> None:
    settings = parse_settings({"roles": {"review": {"writes": ["reviews/**"], "verbs": ["claim", "commit"]}}})
    review = find_role(settings, "review")

    assert (review.tools, review.writes) == (BUILT_IN["review"].tools, ("reviews/**",))
    assert not Scope(review, settings).why_not("reviews/a.md")


def test_a_role_of_ones_own_may_nothing_that_it_is_not_given() -> None:
    found = find_role(parse_settings({"roles": {"guest": {"summary": "looks"}}}), "guest")

    assert (found.tools, found.verbs, found.writes) == (("read",), (), ())


def test_words_and_protected_files_are_the_settings_to_say() -> None:
    settings = parse_settings(
        {"paths": {"tests": ["checks/**"], "protected": ["Makefile"]}, "rules": {"file": "docs/LAW.md"}}
    )
    code = Scope(find_role(settings, "code"), settings)

    assert code.why_not("checks/a.py")
    assert not code.why_not("tests/a.py")
    assert code.why_not("Makefile")
    assert code.why_not("docs/LAW.md")
    assert code.why_not(".gitattributes")
    assert TESTS[0] == "tests/**"


@pytest.mark.parametrize(
    ("roles", "nearest"),
    [
        ({"x": {"tools": ["edt"]}}, "edit"),
        ({"x": {"verbs": ["comit"]}}, "commit"),
        ({"x": {"like": "coder"}}, "code"),
        ({"x": {"writes": ["@test"]}}, "@tests"),
        ({"x": {"wrties": []}}, "writes"),
        ({"x": {"like": "y"}, "y": {}}, ""),
    ],
)
def test_a_mistake_in_the_settings_is_named_with_what_is_nearest(
    roles: dict[str, object], nearest: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings({"roles": roles})

    assert caught.value.code == "SETTINGS_UNKNOWN_KEY"
    assert caught.value.facts["nearest"] == nearest


@pytest.mark.parametrize("verb", ["approve", "gate"])
def test_no_role_can_be_given_the_right_to_approve(verb: str) -> None:
    with pytest.raises(SettingsError, match="no role can be given the right to approve"):
        parse_settings({"roles": {"boss": {"verbs": ["claim", verb]}}})


@pytest.mark.parametrize(
    "role",
    [{"writes": ["/etc/**"]}, {"writes": ["../x"]}, {"connects": [0]}, {"connects": 443}, {"udp": "yes"}],
)
def test_a_value_that_makes_no_sense_is_refused(role: dict[str, object]) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings({"roles": {"x": role}})
    assert caught.value.code == "SETTINGS_WRONG_TYPE"


def test_the_task_for_the_whole_is_for_a_role_that_is_there() -> None:
    whole = {"landing": {"checks": [], "integrate": {"role": "gardener"}}}
    with pytest.raises(SettingsError, match="gardener"):
        parse_settings(whole)
    parse_settings({**whole, "roles": {"gardener": {"like": "verify"}}})


def test_an_unknown_role_is_refused_with_the_nearest() -> None:
    with pytest.raises(Malformed) as caught:
        find_role(Settings(), "tester")

    assert (caught.value.code, caught.value.facts["nearest"]) == ("UNKNOWN_ROLE", "test")
    assert "did you mean test?" in caught.value.hint
