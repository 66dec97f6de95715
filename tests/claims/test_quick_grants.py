"""Grants in one round trip, where the store offers them: the same grants, and none where anyone is near."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import psycopg
import pytest

from landlane.claims import take as claims
from landlane.claims.model import ClaimMode
from landlane.values import as_dict
from tests.support.project import MINUTE, POSTGRES_ONLY, SECOND, Background, granted
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from landlane.store.interface import QuickGrant
    from landlane.store.postgres.store import PostgresStore
    from tests.support.project import Agent, Project

pytestmark = [pytest.mark.contract, POSTGRES_ONLY]


def take_quickly(
    agent: Agent,
    *texts: str,
    mode: ClaimMode = ClaimMode.EXCLUSIVE,
    ttl_ms: int | None = None,
) -> QuickGrant | None:
    """Grant without the usual check; None if the store asks for it."""
    patterns = tuple(agent.pattern(text) for text in texts)
    request = claims.make_request(agent.repo, patterns, mode=mode, ttl_ms=ttl_ms, task="T1", note="why")
    return agent.repo.store.take_uncontested(
        agent.session, request.patterns, request.mode, request.ttl_ms, request.task, request.note
    )


def test_what_nobody_is_near_is_granted_at_once(live_project: Project) -> None:
    ann = live_project.agent("ann")

    grant = take_quickly(ann, "src/a.py", "docs", "deploy:prod")

    assert grant is not None
    assert grant.tokens == sorted(set(grant.tokens))
    standing = [(claim.token, claim.pattern, claim.granted_at) for claim in live_project.claims()]
    assert standing == [
        (token, pattern, grant.granted_at)
        for token, pattern in zip(grant.tokens, ("src/a.py", "docs", "deploy:prod"), strict=True)
    ]


@pytest.mark.promise(
    "claims.quick-grants-are-the-same",
    "A grant through the PostgreSQL fast path is identical to one through the full check, in the store and "
    "in the journal.",
)
def test_a_quick_grant_is_the_same_as_one_that_was_judged(live_project: Project) -> None:
    ann = live_project.agent("ann")
    note = 'quoted " and \\ and {} , NULL and 日本 \u2028'
    quick = granted(ann.claim("quick", task="T1", note=note, ttl_ms=40 * MINUTE))[0]
    judged = granted(ann.claim("*/judged", task="T1", note=note, ttl_ms=40 * MINUTE))[0]

    answer = {
        entry.facts()["token"]: entry for entry in live_project.entries() if entry.kind == "claim.taken"
    }
    standing = {claim.token: claim for claim in live_project.claims()}

    for claim, text, kind in ((quick, "quick", "literal"), (judged, "*/judged", "glob")):
        assert answer[claim.token].facts() == {
            "kind": kind,
            "mode": "exclusive",
            "note": note,
            "pattern": text,
            "task": "T1",
            "token": claim.token,
            "ttl_ms": 40 * MINUTE,
        }
        assert as_dict(standing[claim.token]) == as_dict(claim)


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        ("src", "src"),
        ("src", "src/a/b.py"),
        ("src/a/b.py", "src"),
        ("src/*.py", "src/a.py"),
        (".", "src"),
        ("x:y", "x:y"),
    ],
)
def test_nothing_is_granted_unjudged_where_another_is_near(
    live_project: Project, theirs: str, mine: str
) -> None:
    live_project.agent("ann").take(theirs)
    bob = live_project.agent("bob")

    for mode in (ClaimMode.EXCLUSIVE, ClaimMode.SHARED):
        assert take_quickly(bob, mine, mode=mode) is None
    assert bob.holds() == []


@pytest.mark.parametrize("texts", [("src/*.py",), ("{a,b}",), (".",), ("a", "./a")])
def test_what_needs_a_judge_is_not_granted_unjudged(live_project: Project, texts: tuple[str, ...]) -> None:
    ann = live_project.agent("ann")

    if len(texts) == 1:
        assert take_quickly(ann, *texts) is None
    else:
        assert len(granted(ann.claim(*texts))) == 1


def test_what_one_holds_already_is_not_granted_twice(live_project: Project) -> None:
    ann = live_project.agent("ann")
    first = ann.take("src")

    assert take_quickly(ann, "src") is None
    assert ann.take("src").token == first.token


@pytest.mark.parametrize("near", ["src", "lib/x.py", "lib"])
def test_beside_a_line_grants_are_quick_and_near_it_they_are_not(live_project: Project, near: str) -> None:
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    ann.take("src")
    waiter = Background(lambda: bob.claim("src", "lib/x.py", wait_ms=60 * SECOND))
    wait_until(lambda: live_project.waiting_agents() == ["bob"])

    assert take_quickly(cid, "docs") is not None
    assert take_quickly(cid, near) is None

    ann.release()
    assert len(granted(waiter.result())) == 2


def test_what_happens_beside_a_line_wakes_no_waiter(live_project: Project) -> None:
    """Every notification costs the server the more, the more listen."""
    ann, bob, cid = (live_project.agent(name) for name in ("ann", "bob", "cid"))
    ann.take("src")
    waiter = Background(lambda: bob.claim("src", wait_ms=60 * SECOND))
    store = cast("PostgresStore", cid.repo.store)
    with psycopg.connect(store.url, autocommit=True) as connection:
        query = "SELECT key FROM landlane.listeners WHERE repository = %s AND key <> ''"
        wait_until(lambda: connection.execute(query, (store.repository,)).fetchone())
        connection.execute(f"LISTEN {store.channel}".encode())

        cid.take("docs")
        cid.release()
        assert list(connection.notifies(timeout=0.1)) == []

    ann.release()
    granted(waiter.result())


def test_a_lease_shorter_than_all_of_the_session_takes_the_long_road(live_project: Project) -> None:
    ann = live_project.agent("ann")

    assert take_quickly(ann, "src", ttl_ms=MINUTE) is None
    ann.take("src", ttl_ms=MINUTE)
    assert take_quickly(ann, "docs", ttl_ms=MINUTE) is not None


def test_a_session_that_is_over_gets_nothing_unjudged(live_project: Project) -> None:
    ann = live_project.agent("ann")
    ann.leave()

    assert take_quickly(ann, "src") is None
