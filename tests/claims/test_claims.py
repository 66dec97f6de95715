"""Taking, sharing and releasing claims, on both stores."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest

from landlane.claims.model import Refused, Taken
from landlane.claims.take import list_claims
from landlane.errors import Held, LandlaneError, Malformed, NotAllowed, Stale
from landlane.ids import epoch_of
from landlane.settings.model import ClaimSettings, Settings
from tests.support.project import MINUTE, SECOND, granted, refused

if TYPE_CHECKING:
    from tests.support.project import Project

pytestmark = pytest.mark.contract

# -------------------------------------------------------------------------------------------- refusing


@pytest.mark.promise(
    "claims.overlap-is-refused",
    "A claim that overlaps another session's claim is refused with the holder, the end of its lease and a "
    "hint.",
)
def test_an_overlapping_claim_is_refused_with_holder_end_and_hint(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    claim = granted(ann.claim("src/api/**", ttl_ms=10 * MINUTE, task="T7", note="moving the router"))[0]
    project.clock.advance(MINUTE)

    outcome = bob.claim("src/api/users.py")

    assert isinstance(outcome, Refused)
    assert outcome.code == "CLAIM_HELD"
    (refusal,) = outcome.refused
    assert (refusal.pattern, refusal.held) == ("src/api/users.py", "src/api/**")
    assert (refusal.holder, refusal.session) == ("ann", ann.session.id)
    assert (refusal.mode, refusal.task, refusal.note) == ("exclusive", "T7", "moving the router")
    assert (refusal.since, refusal.until) == (claim.granted_at, claim.granted_at + 10 * MINUTE)
    assert not refusal.is_waiting
    assert refusal.hint == "wait in line: landlane claim src/api/users.py --wait"
    assert ([one.claim.token for one in refusal.holders], refusal.position) == ([claim.token], 1)


def test_a_refused_claim_changes_nothing_and_is_journaled(project: Project) -> None:
    project.agent("ann").take("src")
    bob = project.agent("bob")
    before = project.entries()

    bob.expect_refusal("src/a.py")

    assert bob.holds() == []
    *earlier, last = project.entries()
    assert (earlier, last.kind, last.agent) == (before, "claim.refused", "bob")


OVERLAPPING = [
    ("README.md", "README.md"),
    ("src", "src/not/there/yet.py"),
    ("src/not/there/yet.py", "src"),
    (".", "docs/index.md"),
    ("docs/index.md", "**"),
    ("src/**/*.py", "src/a/b/c.py"),
    ("src/a/b/c.py", "src/**/*.py"),
    ("src/**/*.py", "src/api"),
    ("src/*/models.py", "src/api/*.py"),
    ("**/users.py", "src/api/**"),
    ("src/{api,web}/*.py", "src/web/*"),
    ("*.md", "*.md"),
    ("a?c", "ab*"),
    ("[ab].txt", "[bc].txt"),
    ("deploy:prod", "deploy:prod"),
]


@pytest.mark.promise(
    "claims.overlap-is-exact",
    "Two patterns that could match the same file, existing or not, conflict; this includes glob against "
    "glob.",
)
@pytest.mark.parametrize(("theirs", "mine"), OVERLAPPING)
def test_what_could_touch_the_same_file_is_refused(project: Project, theirs: str, mine: str) -> None:
    project.agent("ann").take(theirs)

    assert project.agent("bob").expect_refusal(mine).holder == "ann"


DISJOINT = [
    ("src/api", "src/api2"),
    ("src/api.py", "src/api"),
    ("src/*.py", "src/*.ts"),
    ("src/*.py", "src/api/users.py"),
    ("src/{api,web}/*.py", "src/cli/*.py"),
    ("[ab].txt", "[cd].txt"),
    ("deploy:prod", "deploy:stage"),
    ("deploy:prod", "./deploy:prod"),
    (".", "deploy:prod"),
    ("README.md", "readme.md"),
]


@pytest.mark.promise(
    "claims.disjoint-work-is-free",
    "Patterns that can never match the same file are granted to different sessions.",
)
@pytest.mark.parametrize(("theirs", "mine"), DISJOINT)
def test_what_can_never_touch_the_same_file_is_granted_to_both(
    project: Project, theirs: str, mine: str
) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take(theirs)
    bob.take(mine)

    assert [(claim.agent, claim.pattern) for claim in project.claims()] == [("ann", theirs), ("bob", mine)]


def test_a_session_may_claim_inside_what_it_holds(project: Project) -> None:
    ann = project.agent("ann")
    outer, inner = ann.take("src"), ann.take("src/api/*.py")

    assert outer.token < inner.token
    assert ann.holds() == ["src", "src/api/*.py"]


# --------------------------------------------------------------------------------------------- sharing


@pytest.mark.promise(
    "claims.shared-with-shared",
    "Many sessions can hold a shared claim on a path that no session holds exclusively.",
)
def test_many_may_share_what_nobody_holds_alone(project: Project) -> None:
    agents = [project.agent(name) for name in ("ann", "bob", "cid")]
    for agent in agents:
        agent.take("CHANGELOG.md", is_shared=True)

    assert [(claim.agent, claim.mode) for claim in project.claims()] == [
        ("ann", "shared"),
        ("bob", "shared"),
        ("cid", "shared"),
    ]


@pytest.mark.promise(
    "claims.shared-never-with-exclusive",
    "A path with a shared claim cannot be claimed exclusively, and the other way round.",
)
def test_what_is_shared_cannot_be_had_alone(project: Project) -> None:
    project.agent("ann").take("CHANGELOG.md", is_shared=True)

    assert project.agent("bob").expect_refusal("*.md").mode == "shared"


def test_what_is_held_alone_cannot_be_shared(project: Project) -> None:
    project.agent("ann").take("*.md")

    assert project.agent("bob").expect_refusal("CHANGELOG.md", is_shared=True).mode == "exclusive"


def test_only_mergeable_files_can_be_shared_where_the_settings_name_them(project: Project) -> None:
    shareable = ("CHANGELOG.md", "registry/**")
    ann = project.agent("ann", settings=Settings(claims=ClaimSettings(shareable=shareable)))
    ann.take("CHANGELOG.md", "registry/a.json", is_shared=True)

    with pytest.raises(NotAllowed) as caught:
        ann.claim("src/a.py", is_shared=True)
    assert (caught.value.code, caught.value.exit_code) == ("NOT_MERGEABLE", 6)


def test_a_session_may_turn_its_share_into_the_whole_when_nobody_else_shares(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    shared = ann.take("CHANGELOG.md", is_shared=True)
    alone = ann.take("CHANGELOG.md")

    assert alone.token > shared.token
    assert bob.expect_refusal("CHANGELOG.md", is_shared=True).holder == "ann"


@pytest.mark.promise(
    "claims.release-gives-back-every-grant",
    "Releasing a pattern releases every grant on it, shared and exclusive.",
)
def test_releasing_a_pattern_gives_back_every_grant_on_it(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("CHANGELOG.md", is_shared=True)
    ann.take("CHANGELOG.md")

    assert ann.release("CHANGELOG.md") == ("CHANGELOG.md",)

    assert ann.holds() == []
    bob.take("CHANGELOG.md")


def test_releasing_all_gives_back_both_modes_of_one_pattern(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("CHANGELOG.md", is_shared=True)
    ann.take("CHANGELOG.md")

    ann.release()

    assert project.claims() == []


def test_one_of_two_grants_on_a_pattern_can_be_released_by_its_token(project: Project) -> None:
    ann = project.agent("ann")
    shared = ann.take("CHANGELOG.md", is_shared=True)
    alone = ann.take("CHANGELOG.md")

    ann.release("CHANGELOG.md", token=shared.token)

    assert [claim.token for claim in project.claims()] == [alone.token]


# ------------------------------------------------------------------------------- all, or what is free


@pytest.mark.promise(
    "claims.all-or-nothing",
    "If one pattern of a claim is held, the whole claim is refused and every conflict is listed.",
)
def test_one_held_pattern_refuses_the_whole_set_and_every_obstacle_is_named(project: Project) -> None:
    project.agent("ann").take("src/a.py", "docs")
    bob = project.agent("bob")

    outcome = bob.claim("src/a.py", "free.txt", "docs/b.md")

    assert [refusal.pattern for refusal in refused(outcome)] == ["src/a.py", "docs/b.md"]
    assert bob.holds() == []


@pytest.mark.promise(
    "claims.partial-takes-what-is-free",
    "With `partial`, free patterns are granted and the others are refused.",
)
def test_partial_grants_what_is_free_and_refuses_the_rest(project: Project) -> None:
    project.agent("ann").take("src/a.py")
    bob = project.agent("bob")

    outcome = bob.claim("src/a.py", "free.txt", is_partial=True)

    assert isinstance(outcome, Taken)
    assert [claim.pattern for claim in outcome.granted] == ["free.txt"]
    assert [refusal.pattern for refusal in outcome.refused] == ["src/a.py"]
    assert bob.holds() == ["free.txt"]


def test_partial_is_refused_when_nothing_at_all_is_free(project: Project) -> None:
    project.agent("ann").take("src")

    assert len(refused(project.agent("bob").claim("src/a", "src/b", is_partial=True))) == 2


def test_a_pattern_named_twice_is_granted_once(project: Project) -> None:
    ann = project.agent("ann")

    assert len(granted(ann.claim("src", "src/", "./src/**"))) == 1
    assert len(ann.holds()) == 1


# ---------------------------------------------------------------------------------------------- tokens


@pytest.mark.promise(
    "claims.tokens-grow",
    "Every grant gets a higher fencing token than all grants before it.",
)
def test_every_grant_gets_a_higher_token_whoever_takes_it(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    tokens: list[int] = []
    for turn in range(5):
        tokens += [claim.token for claim in granted(ann.claim(f"a/{turn}", f"b/{turn}"))]
        tokens.append(bob.take("hot/**/x").token)
        bob.release("hot/**/x")

    assert tokens == sorted(set(tokens))
    assert tokens[-1] < 2**53
    assert {epoch_of(token) for token in tokens} == {epoch_of(tokens[0])}


@pytest.mark.promise(
    "claims.again-is-renewal",
    "Claiming a pattern that the session already holds renews it under the same token.",
)
@pytest.mark.parametrize(
    ("first", "again"),
    [("src", "src/**"), ("src/**/*.py", "./src/**/*.py"), ("src/{a,b}.py", "src/{b,a}.py"), ("x:y", "x:y")],
)
def test_claiming_again_what_one_holds_renews_it_under_the_same_token(
    project: Project, first: str, again: str
) -> None:
    ann = project.agent("ann")
    claim = ann.take(first, ttl_ms=10 * MINUTE)
    project.clock.advance(5 * MINUTE)

    renewed = ann.take(again, ttl_ms=20 * MINUTE)

    assert renewed.token == claim.token
    assert renewed.until == project.now() + 20 * MINUTE
    assert len(project.claims()) == 1
    assert project.kinds().count("claim.taken") == 1


def test_claiming_again_with_a_shorter_lease_shortens_it(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src", ttl_ms=60 * MINUTE)
    ann.take("src", ttl_ms=5 * SECOND)

    project.clock.advance(5 * SECOND)

    project.agent("bob").take("src")


def test_claiming_again_without_a_lease_keeps_the_longer_one(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src", ttl_ms=8 * 60 * MINUTE)

    again = ann.take("src")

    assert again.until == project.now() + 8 * 60 * MINUTE
    assert project.claims()[0].ttl_ms == 8 * 60 * MINUTE


# ------------------------------------------------------------------------------------------- releasing


def test_what_is_released_is_free_for_the_next(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    first = ann.take("src")

    assert ann.release("src/**") == ("src",)

    assert bob.take("src/a.py").token > first.token


def test_release_without_a_name_gives_back_all(project: Project) -> None:
    ann = project.agent("ann")
    ann.claim("a", "b/**/c", "{d,e}")

    assert ann.release() == ("a", "b/**/c", "{d,e}")
    assert project.claims() == []


@pytest.mark.promise("claims.release-records-commit", "A release records the commit in which the work ended.")
def test_release_records_the_commit_it_ended_in(project: Project) -> None:
    ann = project.agent("ann")
    claim = ann.take("README.md")
    commit = ann.repo.git.commit_id("HEAD")

    ann.release("README.md", commit=commit)

    newest = project.entries()[-1]
    assert (newest.kind, newest.agent) == ("claim.released", "ann")
    assert newest.facts() == {"commit": commit, "pattern": "README.md", "token": claim.token}


def test_a_commit_that_does_not_exist_cannot_be_recorded(project: Project) -> None:
    repository = project.agent("ann").repo.git

    for text in ("no-such-branch", "--all", "", "0" * 40):
        with pytest.raises(Malformed) as caught:
            repository.commit_id(text)
        assert caught.value.code == "UNKNOWN_COMMIT"


def test_releasing_what_nobody_holds_is_an_error(project: Project) -> None:
    with pytest.raises(LandlaneError) as caught:
        project.agent("ann").release("src")

    assert (type(caught.value), caught.value.code, caught.value.exit_code) == (LandlaneError, "NOT_HELD", 1)


def test_releasing_what_another_holds_is_refused_with_its_holder(project: Project) -> None:
    claim = project.agent("ann").take("src", task="T1")

    with pytest.raises(Held) as caught:
        project.agent("bob").release("src")

    assert (caught.value.code, caught.value.exit_code) == ("CLAIM_HELD", 3)
    assert caught.value.facts == {"pattern": "src", "holder": "ann", "until_at": claim.until, "task": "T1"}


@pytest.mark.promise(
    "claims.release-names-the-true-holder",
    "Only the session that holds a path is named as its holder.",
)
def test_only_who_really_holds_it_is_named_as_its_holder(project: Project) -> None:
    project.agent("bob").take("src/*.ts")

    with pytest.raises(LandlaneError) as caught:
        project.agent("ann").release("src/a.py")

    assert caught.value.code == "NOT_HELD"


def test_releasing_is_all_or_nothing(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src")

    with pytest.raises(LandlaneError):
        ann.release("src", "docs")

    assert ann.holds() == ["src"]


def test_a_part_of_a_claim_cannot_be_released(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src")

    with pytest.raises(LandlaneError) as caught:
        ann.release("src/a.py")

    assert caught.value.code == "NOT_HELD"


def test_what_was_released_once_cannot_be_released_again(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src")
    ann.release("src")

    with pytest.raises(LandlaneError) as caught:
        ann.release("src")

    assert caught.value.code == "NOT_HELD"


def test_release_with_the_token_of_an_older_grant_is_stale(project: Project) -> None:
    ann = project.agent("ann")
    old = ann.take("src")
    ann.release("src")
    ann.take("src")

    with pytest.raises(Stale) as caught:
        ann.release("src", token=old.token)

    assert (caught.value.code, caught.value.exit_code) == ("LEASE_OVER", 4)
    assert ann.holds() == ["src"]


# -------------------------------------------------------------------------------------------- checking


def test_check_tells_who_may_change_a_path(project: Project) -> None:
    rules = Settings(claims=ClaimSettings(required=("src/**",), free=("src/generated/**",)))
    ann = project.agent("ann", settings=rules)
    project.agent("bob").take("docs")
    claim = ann.take("src/api/*.py")

    standings = {
        path: ann.check(path).state
        for path in ("src/api/users.py", "docs/a.md", "src/other.py", "src/generated/a.py", "notes.txt")
    }

    assert standings == {
        "src/api/users.py": "held",
        "docs/a.md": "other",
        "src/other.py": "required",
        "src/generated/a.py": "required",
        "notes.txt": "free",
    }
    assert ann.check("src/api/users.py", claim.token).claim == claim


@pytest.mark.promise("claims.own-is-not-in-the-way", "A session's own claims never conflict with each other.")
def test_what_a_session_holds_nearby_is_not_in_its_own_way(project: Project) -> None:
    ann = project.agent("ann")
    ann.take("src/**/*.py")

    assert ann.check("src/a.ts").state == "unclaimed"
    assert project.agent("bob").check("src/a.ts").state == "other"


@pytest.mark.promise("claims.stale-token-is-refused", "The token of a grant that has ended is refused.")
def test_check_refuses_the_token_of_a_grant_that_is_over(project: Project) -> None:
    ann = project.agent("ann")
    old = ann.take("src")
    ann.release("src")
    ann.take("src")

    with pytest.raises(Stale) as caught:
        ann.check("src/a.py", old.token)

    assert (caught.value.code, caught.value.exit_code) == ("LEASE_OVER", 4)


def test_claims_are_listed_in_the_order_of_their_grants_or_by_what_they_touch(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src/{z,a}/*.py")
    bob.take("docs")
    ann.take("src/a/b")

    assert [claim.pattern for claim in project.claims()] == ["src/{z,a}/*.py", "docs", "src/a/b"]
    near = list_claims(ann.repo, (ann.pattern("src/a"),))
    assert [claim.pattern for claim in near] == ["src/{z,a}/*.py", "src/a/b"]


# ---------------------------------------------------------------------------------------------- limits


@pytest.mark.promise("claims.thousand-at-once", "One call can claim up to a thousand patterns, and no more.")
def test_a_thousand_patterns_can_be_claimed_at_once_and_no_more(project: Project) -> None:
    ann = project.agent("ann")
    names = [f"src/{number}.py" for number in range(1001)]

    assert len(granted(ann.claim(*names[:1000]))) == 1000
    with pytest.raises(Malformed) as caught:
        ann.claim(*names)

    assert (caught.value.code, caught.value.exit_code) == ("TOO_MANY_PATTERNS", 2)
    assert len(ann.release()) == 1000


def test_a_thousand_overlapping_globs_are_judged(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src/x/**/deep.py")

    assert len(refused(bob.claim(*(f"src/*/{number}*/d*.py" for number in range(1000))))) == 1000


def test_a_path_a_hundred_folders_deep_can_be_claimed(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    deep = "/".join(["d"] * 100)
    ann.take(deep)

    assert bob.expect_refusal("d/d/**").holder == "ann"


@pytest.mark.parametrize("ttl_ms", [0, 999, -MINUTE, 7 * 86_400_000 + 1])
def test_a_lease_must_be_a_sensible_length(project: Project, ttl_ms: int) -> None:
    with pytest.raises(Malformed) as caught:
        project.agent("ann").claim("src", ttl_ms=ttl_ms)

    assert caught.value.code == "TTL_OUT_OF_RANGE"


def test_nothing_cannot_be_claimed(project: Project) -> None:
    with pytest.raises(Malformed) as caught:
        project.agent("ann").claim()

    assert caught.value.code == "NO_PATTERN"


def test_a_note_and_a_task_are_kept_within_bounds(project: Project) -> None:
    ann = project.agent("ann")

    with pytest.raises(Malformed) as note:
        ann.claim("src", note="x" * 1001)
    with pytest.raises(Malformed) as task:
        ann.claim("src", task="a/b")

    assert (note.value.code, task.value.code) == ("TEXT_TOO_LONG", "BAD_TASK")


# -------------------------------------------------------------------------------------- kinds of names


@pytest.mark.promise(
    "claims.literal-brackets",
    "A literal claim treats brackets in a path as plain characters.",
)
def test_a_literal_claim_takes_brackets_as_they_are(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    granted(ann.claim("app/[id]/page.tsx", is_literal=True))

    assert refused(bob.claim("app/[id]/page.tsx", is_literal=True))[0].holder == "ann"
    bob.take("app/i/page.tsx")


def test_two_spellings_of_one_unicode_name_are_one_path(project: Project) -> None:
    project.agent("ann").take(unicodedata.normalize("NFD", "docs/café.md"))

    project.agent("bob").expect_refusal(unicodedata.normalize("NFC", "docs/café.md"))


def test_names_outside_ascii_are_found_below_their_folder(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("docs/日本/𝔘.md", "docs/\U0010fffd")

    assert len(refused(bob.claim("docs", "docs/日本/**"))) == 2


def test_paths_that_differ_in_case_are_one_where_case_is_ignored(project: Project) -> None:
    ann = project.agent("ann", ignore_case=True)
    bob = project.agent("bob", ignore_case=True)
    claim = ann.take("Docs/ReadMe.md")

    assert claim.pattern == "Docs/ReadMe.md"
    assert bob.expect_refusal("docs/README.*").held == "Docs/ReadMe.md"
    assert ann.take("docs/readme.md").token == claim.token
