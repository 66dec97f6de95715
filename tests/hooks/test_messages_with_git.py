"""What reaches a session between its turns: landings, gates, leases and rules, each of them once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from landlane.hooks.messages import due_messages
from landlane.landing.outcomes import decide_held_entry
from landlane.rules.model import RULES_TEMPLATE, version_of
from landlane.rules.versions import find_acknowledgement
from landlane.sessions.client_sessions import ClientName, begin, begin_child, find_bound
from landlane.sessions.file_versions import remember
from landlane.sessions.leases import touch
from landlane.sessions.notices import has_notices
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.testing.fake_clock import FakeClock
from landlane.testing.repositories import git
from tests.support.landing import Yard
from tests.support.sites import WAIT_SECONDS, Background

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
def yard(repository: Path, clock: FakeClock) -> Iterator[Yard]:
    yard = Yard(repository, clock)
    yield yard
    yard.close()


def client(yard: Yard, name: str) -> Session:
    """The session of a coding client, as its hook finds it: as it was before the hook gave a sign of life."""
    repo = yard.repo
    known = find_bound(repo, ClientName(client="claude", session=name))
    bound = known or begin(repo, ClientName(client="claude", session=name), chosen=name)
    return bound.session


def heard(yard: Yard, name: str) -> list[str]:
    """What a client is told with a tool result, in the order in which its hook does things."""
    session = client(yard, name)
    touch(yard.repo.store, session)
    return due_messages(yard.site, session)


def saw(yard: Yard, name: str, path: Path) -> None:
    remember(yard.repo, client(yard, name).id, {str(path): ("d", "s")})


def left_for(yard: Yard, name: str) -> list[str]:
    """The notices that a client has not heard yet."""
    session = client(yard, name)
    found = yard.repo.store.view(lambda snapshot: has_notices(snapshot, session.id))
    return [str(one["text"]) for one in found]


def test_nothing_is_said_when_there_is_nothing(yard: Yard) -> None:
    assert heard(yard, "ann") == []


def test_who_has_read_a_path_hears_once_that_it_landed(yard: Yard) -> None:
    yard.configure(files={"src/a.py": "1\n", "src/b.py": "1\n"})
    tree = yard.folder.parent / "tree"
    git(yard.folder, "worktree", "add", "--quiet", "--detach", str(tree))
    yard.branch("one", {"src/a.py": "2\n"})
    saw(yard, "reader", yard.folder / "src/a.py")
    saw(yard, "elsewhere", tree / "src/a.py")
    saw(yard, "other", yard.folder / "src/b.py")
    saw(yard, "copy", yard.folder / "vendor/src/a.py")
    (yard.folder / "vendor").mkdir()

    landed = yard.land("one", "ann")

    (told,) = heard(yard, "reader")
    assert told.startswith(f"{landed.id} of ann landed as")
    assert "changed src/a.py: read it again" in told
    assert heard(yard, "reader") == []
    assert len(heard(yard, "elsewhere")) == 1
    assert heard(yard, "other") == heard(yard, "copy") == []


def test_the_author_and_its_subagents_hear_nothing_of_their_own_landing(yard: Yard) -> None:
    yard.configure(files={"a.py": "1\n"})
    yard.branch("one", {"a.py": "2\n"})
    author = client(yard, "ann")
    child = begin_child(yard.repo, ClientName(client="claude", session="ann", agent="sub"), author).session
    saw(yard, "ann", yard.folder / "a.py")
    remember(yard.repo, child.id, {str(yard.folder / "a.py"): ("d", "s")})

    yard.land("one", "ann")

    assert heard(yard, "ann") == []
    assert due_messages(yard.site, child) == []


def test_an_answered_gate_reaches_who_waits(yard: Yard) -> None:
    yard.configure(more='gate = ["a.py"]', files={"a.py": "1\n", "b.py": "1\n"})
    yard.branch("one", {"a.py": "2\n"})
    client(yard, "ann")
    first = yard.submit("one", "ann")
    pat = yard.agent("pat")
    decide_held_entry(yard.repo, pat, first.id, is_approved=True)
    (approved,) = heard(yard, "ann")

    yard.branch("two", {"a.py": "3\n"})
    second = yard.submit("two", "ann")
    decide_held_entry(yard.repo, pat, second.id, is_approved=False, why="the price is wrong")
    (rejected,) = heard(yard, "ann")

    assert approved == f"pat let {first.id} (one) land: it is queued again"
    assert "pat rejected it: the price is wrong" in rejected
    assert heard(yard, "ann") == []


def test_a_lease_that_was_about_to_lapse_is_told_once(yard: Yard, clock: FakeClock) -> None:
    client(yard, "ann")
    yard.claim("ann", "a.py")
    clock.advance(11 * MINUTE)
    early = heard(yard, "ann")
    clock.advance(28 * MINUTE)
    (late,) = heard(yard, "ann")
    clock.advance(28 * MINUTE)

    assert early == []
    assert "a.py (30m) was about to lapse" in late
    assert heard(yard, "ann") == []


def test_a_lease_that_is_over_is_told_with_who_holds_it_now(yard: Yard, clock: FakeClock) -> None:
    client(yard, "ann")
    yard.claim("ann", "a.py", "b.py")
    clock.advance(31 * MINUTE)
    yard.claim("bob", "a.py")

    first = client(yard, "ann")  # a new session of the same client: the other has ended
    (told,) = due_messages(yard.site, first)

    assert "Your lease is over on a.py (since" in told
    assert "bob holds a.py now" in told
    assert "b.py (since" in told
    assert heard(yard, "ann") == []


def test_what_was_claimed_again_is_not_told_as_lost(yard: Yard, clock: FakeClock) -> None:
    client(yard, "ann")
    yard.claim("ann", "a.py")
    clock.advance(31 * MINUTE)
    client(yard, "ann")
    yard.claim("ann", "a.py")

    assert heard(yard, "ann") == []


def test_rules_reach_a_session_that_has_not_heard_of_them(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES})

    (told,) = heard(yard, "ann")

    assert "1. Be kind: Always." in told
    assert heard(yard, "ann") == []


@pytest.mark.promise(
    "rules.a-change-is-told-once",
    "A change of the rules reaches every running client with its next tool result, once.",
)
def test_changed_rules_reach_each_running_session_once(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES})
    heard(yard, "ann")
    heard(yard, "bob")
    text = "## Be kind\n\nEven on Mondays.\n\n## Be honest\n\nNever lie.\n"
    (yard.folder / "RULES.md").write_text(text.replace("\n", "\r\n"), encoding="utf-8", newline="")

    (told,) = heard(yard, "ann")

    assert f"version {version_of(text)} instead of {version_of(RULES)}" in told
    assert "New: Be honest. Changed: Be kind. Gone: Be quick." in told
    assert "- Be kind: Even on Mondays." in told
    assert heard(yard, "ann") == []
    assert len(heard(yard, "bob")) == 1
    found = find_acknowledgement(yard.repo, client(yard, "ann").id)
    assert found is not None
    assert [step["version"] for step in found.history] == [version_of(RULES), version_of(text)]


def test_other_line_ends_or_other_words_around_the_rules_are_no_new_rules(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES})
    heard(yard, "ann")
    (yard.folder / "RULES.md").write_bytes(RULES.replace("\n", "\r\n").encode())
    same = heard(yard, "ann")
    (yard.folder / "RULES.md").write_text(f"# Rules\n\nHello.\n\n{RULES}", encoding="utf-8")
    (around,) = heard(yard, "ann")

    assert same == []
    assert "No rule differs" in around


def test_a_long_change_must_be_read_by_oneself(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES})
    heard(yard, "ann")
    long = f"{RULES}\n## Be long\n\n{'Word. ' * 1000}\n"
    (yard.folder / "RULES.md").write_text(long, encoding="utf-8")

    (told,) = heard(yard, "ann")

    assert f"landlane rules ack {version_of(long)}" in told
    assert heard(yard, "ann") == []
    found = find_acknowledgement(yard.repo, client(yard, "ann").id)
    assert found is not None
    assert found.version == version_of(RULES)


def test_rules_that_go_back_are_told_again(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES})
    heard(yard, "ann")
    (yard.folder / "RULES.md").write_text(RULES_TEMPLATE, encoding="utf-8")
    heard(yard, "ann")
    (yard.folder / "RULES.md").write_text(RULES, encoding="utf-8")

    (told,) = heard(yard, "ann")

    assert f"version {version_of(RULES)} instead of {version_of(RULES_TEMPLATE)}" in told


def test_rules_that_break_or_go_say_nothing_and_break_nothing(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES})
    heard(yard, "ann")
    (yard.folder / "RULES.md").write_bytes(b"\x00")
    broken = heard(yard, "ann")
    (yard.folder / "RULES.md").unlink()

    assert broken == heard(yard, "ann") == []


def test_tool_results_that_come_at_once_tell_a_change_once(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES})
    ann = client(yard, "ann")
    others = [Yard(yard.folder, yard._clock) for _ in range(6)]
    sites = [other.site for other in others]

    def all_hear() -> list[str]:
        barrier = threading.Barrier(len(sites))

        def hear(site: Repository) -> list[str]:
            barrier.wait(WAIT_SECONDS)
            return due_messages(site, ann)

        running = [Background(lambda site=site: hear(site)) for site in sites]
        return [text for one in running for text in one.result()]

    first = all_hear()
    (yard.folder / "RULES.md").write_text(RULES_TEMPLATE, encoding="utf-8")
    second = all_hear()

    for other in others:
        other.close()
    assert len(first) == len(second) == 1


def test_a_task_that_would_have_gone_back_is_told_once(yard: Yard, clock: FakeClock) -> None:
    add_task(yard.repo, None, NewTask(title="Mend it"))
    next_task(yard.repo, client(yard, "ann"))
    clock.advance(28 * MINUTE)
    (told,) = heard(yard, "ann")
    clock.advance(28 * MINUTE)

    assert "about to lapse, and task T1 with it" in told
    assert heard(yard, "ann") == []


def test_whoever_sees_changed_rules_first_leaves_word_for_the_others(yard: Yard) -> None:
    """The quick road of a hook looks only for notices: one for each of them sends it the long way."""
    yard.commit({"RULES.md": RULES})
    heard(yard, "ann")
    heard(yard, "bob")
    (yard.folder / "RULES.md").write_text(RULES_TEMPLATE, encoding="utf-8")
    heard(yard, "ann")

    waiting = left_for(yard, "bob")
    (told,) = heard(yard, "bob")

    assert waiting == [f"RULES.md has changed: `landlane rules` shows version {version_of(RULES_TEMPLATE)}"]
    assert "New: Verify before done" in told
    assert heard(yard, "ann") == heard(yard, "bob") == []


def test_who_need_not_hear_of_rules_that_went_back_leaves_word_all_the_same(yard: Yard) -> None:
    yard.commit({"RULES.md": RULES})
    heard(yard, "ann")
    heard(yard, "bob")
    (yard.folder / "RULES.md").write_text(RULES_TEMPLATE, encoding="utf-8")
    heard(yard, "ann")
    (yard.folder / "RULES.md").write_text(RULES, encoding="utf-8")

    assert heard(yard, "bob") == []
    assert len(left_for(yard, "ann")) == 1
    assert len(heard(yard, "ann")) == 1
