"""What reaches a session between its turns: landings, gates, leases and rules, each of them once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from landlane.hooks.messages import due_messages
from landlane.landing.decide import decide_held_entry
from landlane.rules.model import RULES_TEMPLATE, version_of
from landlane.rules.versions import find_acknowledgement
from landlane.sessions.client_sessions import (
    ClientName,
    begin_client_session,
    begin_subagent,
    find_bound_session,
)
from landlane.sessions.leases import touch
from landlane.sessions.notices import list_unread
from landlane.sessions.tool_calls import record_reads
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import git
from tests.support.git import commit_text
from tests.support.landing import LandingTestbed
from tests.support.project import WAIT_SECONDS, Background

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from landlane.repository import Repository
    from landlane.sessions.model import Session

pytestmark = pytest.mark.integration

MINUTE = 60_000
RULES = "## Be kind\n\nAlways.\n\n## Be quick\n\nMostly.\n"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def testbed(repository: Path, clock: FakeClock) -> Iterator[LandingTestbed]:
    testbed = LandingTestbed(repository, clock)
    yield testbed
    testbed.close()


def client(testbed: LandingTestbed, name: str) -> Session:
    """The session of a coding client, as its hook finds it: as it was before the hook gave a sign of life."""
    repo = testbed.repo
    known = find_bound_session(repo, ClientName(client="claude", session=name))
    bound = known or begin_client_session(repo, ClientName(client="claude", session=name), chosen=name)
    return bound.session


def heard(testbed: LandingTestbed, name: str) -> list[str]:
    """What a client is told with a tool result, in the order in which its hook does things."""
    session = client(testbed, name)
    touch(testbed.repo.store, session)
    return due_messages(testbed.prepared_repo, session)


def saw(testbed: LandingTestbed, name: str, path: Path) -> None:
    record_reads(testbed.repo, client(testbed, name).id, {str(path): ("d", "s")})


def left_for(testbed: LandingTestbed, name: str) -> list[str]:
    """The notices that a client has not heard yet."""
    session = client(testbed, name)
    found = testbed.repo.store.view(lambda snapshot: list_unread(snapshot, session.id))
    return [str(one["text"]) for one in found]


def test_no_messages_without_news(testbed: LandingTestbed) -> None:
    assert heard(testbed, "ann") == []


def test_session_that_read_a_path_is_notified_once_when_it_landed(testbed: LandingTestbed) -> None:
    testbed.configure(files={"src/a.py": "1\n", "src/b.py": "1\n"})
    tree = testbed.folder.parent / "tree"
    git(testbed.folder, "worktree", "add", "--quiet", "--detach", str(tree))
    testbed.branch("one", {"src/a.py": "2\n"})
    saw(testbed, "reader", testbed.folder / "src/a.py")
    saw(testbed, "elsewhere", tree / "src/a.py")
    saw(testbed, "other", testbed.folder / "src/b.py")
    saw(testbed, "copy", testbed.folder / "vendor/src/a.py")
    (testbed.folder / "vendor").mkdir()

    landed = testbed.land("one", "ann")

    (told,) = heard(testbed, "reader")
    assert told.startswith(f"{landed.id} of ann landed as")
    assert "changed src/a.py: read it again" in told
    assert heard(testbed, "reader") == []
    assert len(heard(testbed, "elsewhere")) == 1
    assert heard(testbed, "other") == heard(testbed, "copy") == []


def test_author_and_its_subagents_are_not_notified_of_their_own_landing(testbed: LandingTestbed) -> None:
    testbed.configure(files={"a.py": "1\n"})
    testbed.branch("one", {"a.py": "2\n"})
    author = client(testbed, "ann")
    child = begin_subagent(
        testbed.repo, ClientName(client="claude", session="ann", agent="sub"), author
    ).session
    saw(testbed, "ann", testbed.folder / "a.py")
    record_reads(testbed.repo, child.id, {str(testbed.folder / "a.py"): ("d", "s")})

    testbed.land("one", "ann")

    assert heard(testbed, "ann") == []
    assert due_messages(testbed.prepared_repo, child) == []


def test_an_answered_gate_reaches_who_waits(testbed: LandingTestbed) -> None:
    testbed.configure(more='gate = ["a.py"]', files={"a.py": "1\n", "b.py": "1\n"})
    testbed.branch("one", {"a.py": "2\n"})
    client(testbed, "ann")
    first = testbed.submit("one", "ann")
    pat = testbed.agent("pat")
    decide_held_entry(testbed.repo, pat, first.id, is_approved=True)
    (approved,) = heard(testbed, "ann")

    testbed.branch("two", {"a.py": "3\n"})
    second = testbed.submit("two", "ann")
    decide_held_entry(testbed.repo, pat, second.id, is_approved=False, why="the price is wrong")
    (rejected,) = heard(testbed, "ann")

    assert approved == f"pat approved {first.id} (one); it is queued to land"
    assert "pat rejected it: the price is wrong" in rejected
    assert heard(testbed, "ann") == []


def test_lease_that_was_about_to_expire_is_reported_once(testbed: LandingTestbed, clock: FakeClock) -> None:
    client(testbed, "ann")
    testbed.claim("ann", "a.py")
    clock.advance(11 * MINUTE)
    early = heard(testbed, "ann")
    clock.advance(28 * MINUTE)
    (late,) = heard(testbed, "ann")
    clock.advance(28 * MINUTE)

    assert early == []
    assert "a.py (30m) was about to lapse" in late
    assert heard(testbed, "ann") == []


def test_expired_lease_is_reported_with_the_new_holder(testbed: LandingTestbed, clock: FakeClock) -> None:
    client(testbed, "ann")
    testbed.claim("ann", "a.py", "b.py")
    clock.advance(31 * MINUTE)
    testbed.claim("bob", "a.py")

    first = client(testbed, "ann")  # a new session of the same client: the other has ended
    (told,) = due_messages(testbed.prepared_repo, first)

    assert "Your lease is over on a.py (since" in told
    assert "bob holds a.py now" in told
    assert "b.py (since" in told
    assert heard(testbed, "ann") == []


def test_path_claimed_again_is_not_reported_as_lost(testbed: LandingTestbed, clock: FakeClock) -> None:
    client(testbed, "ann")
    testbed.claim("ann", "a.py")
    clock.advance(31 * MINUTE)
    client(testbed, "ann")
    testbed.claim("ann", "a.py")

    assert heard(testbed, "ann") == []


def test_session_is_shown_rules_that_it_has_not_seen(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES})

    (told,) = heard(testbed, "ann")

    assert "1. Be kind: Always." in told
    assert heard(testbed, "ann") == []


@pytest.mark.promise(
    "rules.a-change-is-told-once",
    "A change of the rules reaches every running client with its next tool result, once.",
)
def test_changed_rules_reach_each_running_session_once(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES})
    heard(testbed, "ann")
    heard(testbed, "bob")
    text = "## Be kind\n\nEven on Mondays.\n\n## Be honest\n\nNever lie.\n"
    commit_text(testbed.folder, "RULES.md", text.replace("\n", "\r\n"))

    (told,) = heard(testbed, "ann")

    assert f"version {version_of(text)} instead of {version_of(RULES)}" in told
    assert "New: Be honest. Changed: Be kind. Gone: Be quick." in told
    assert "- Be kind: Even on Mondays." in told
    assert heard(testbed, "ann") == []
    assert len(heard(testbed, "bob")) == 1
    found = find_acknowledgement(testbed.repo, client(testbed, "ann").id)
    assert found is not None
    assert [step["version"] for step in found.history] == [version_of(RULES), version_of(text)]


def test_other_line_ends_or_other_words_around_the_rules_are_no_new_rules(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES})
    heard(testbed, "ann")
    commit_text(testbed.folder, "RULES.md", RULES.replace("\n", "\r\n"))
    same = heard(testbed, "ann")
    commit_text(testbed.folder, "RULES.md", f"# Rules\n\nHello.\n\n{RULES}")
    (around,) = heard(testbed, "ann")

    assert same == []
    assert "No rule differs" in around


def test_a_long_change_must_be_read_by_oneself(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES})
    heard(testbed, "ann")
    long = f"{RULES}\n## Be long\n\n{'Word. ' * 1000}\n"
    commit_text(testbed.folder, "RULES.md", long)

    (told,) = heard(testbed, "ann")

    assert f"landlane rules ack {version_of(long)}" in told
    assert heard(testbed, "ann") == []
    found = find_acknowledgement(testbed.repo, client(testbed, "ann").id)
    assert found is not None
    assert found.version == version_of(RULES)


def test_rules_that_change_back_are_reported_again(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES})
    heard(testbed, "ann")
    commit_text(testbed.folder, "RULES.md", RULES_TEMPLATE)
    heard(testbed, "ann")
    commit_text(testbed.folder, "RULES.md", RULES)

    (told,) = heard(testbed, "ann")

    assert f"version {version_of(RULES)} instead of {version_of(RULES_TEMPLATE)}" in told


def test_rules_that_break_or_go_say_nothing_and_break_nothing(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES})
    heard(testbed, "ann")
    (testbed.folder / "RULES.md").write_bytes(b"\x00")
    broken = heard(testbed, "ann")
    (testbed.folder / "RULES.md").unlink()

    assert broken == heard(testbed, "ann") == []


def test_tool_results_that_come_at_once_tell_a_change_once(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES})
    ann = client(testbed, "ann")
    others = [LandingTestbed(testbed.folder, testbed._clock) for _ in range(6)]
    repositories = [other.prepared_repo for other in others]

    def all_hear() -> list[str]:
        barrier = threading.Barrier(len(repositories))

        def hear(repo: Repository) -> list[str]:
            barrier.wait(WAIT_SECONDS)
            return due_messages(repo, ann)

        running = [Background(lambda repo=repo: hear(repo)) for repo in repositories]
        return [text for one in running for text in one.result()]

    first = all_hear()
    commit_text(testbed.folder, "RULES.md", RULES_TEMPLATE)
    second = all_hear()

    for other in others:
        other.close()
    assert len(first) == len(second) == 1


def test_task_that_was_about_to_be_returned_is_reported_once(
    testbed: LandingTestbed, clock: FakeClock
) -> None:
    add_task(testbed.repo, None, NewTask(title="Mend it"))
    next_task(testbed.repo, client(testbed, "ann"))
    clock.advance(28 * MINUTE)
    (told,) = heard(testbed, "ann")
    clock.advance(28 * MINUTE)

    assert "about to lapse, and task T1 with it" in told
    assert heard(testbed, "ann") == []


def test_first_session_that_sees_changed_rules_notifies_the_others(testbed: LandingTestbed) -> None:
    """The quick road of a hook looks only for notices: one for each of them sends it the long way."""
    testbed.commit({"RULES.md": RULES})
    heard(testbed, "ann")
    heard(testbed, "bob")
    commit_text(testbed.folder, "RULES.md", RULES_TEMPLATE)
    heard(testbed, "ann")

    waiting = left_for(testbed, "bob")
    (told,) = heard(testbed, "bob")

    assert waiting == [f"RULES.md has changed: `landlane rules` shows version {version_of(RULES_TEMPLATE)}"]
    assert "New: Verify before done" in told
    assert heard(testbed, "ann") == heard(testbed, "bob") == []


def test_session_that_knows_the_restored_rules_still_notifies_the_others(testbed: LandingTestbed) -> None:
    testbed.commit({"RULES.md": RULES})
    heard(testbed, "ann")
    heard(testbed, "bob")
    commit_text(testbed.folder, "RULES.md", RULES_TEMPLATE)
    heard(testbed, "ann")
    commit_text(testbed.folder, "RULES.md", RULES)

    assert heard(testbed, "bob") == []
    assert len(left_for(testbed, "ann")) == 1
    assert len(heard(testbed, "ann")) == 1
