"""What reaches a session between its turns, on both stores: what landed after it was read, leases, rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.hooks.briefing.compose import brief
from landlane.hooks.messages import due_messages
from landlane.hooks.session_end import leftovers, should_point_out
from landlane.protocol.hook_events import HookEvent, HookEventKind
from landlane.rules.model import RULES_TEMPLATE
from landlane.sessions.client_sessions import ClientName, bind_session
from landlane.sessions.notices import add_notice, take_notices
from landlane.sessions.tool_calls import record_reads
from tests.landing.test_landings import enter, land, run_by
from tests.support.git import commit_text
from tests.support.project import MINUTE, opened

if TYPE_CHECKING:
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract


def as_client(agent: Agent) -> Agent:
    bind_session(agent.repo, ClientName(client="claude", session=agent.name), agent.joined)
    return agent


def test_readers_of_a_landed_path_are_notified_once(project: Project) -> None:
    ann, bob, eve = project.agent("ann"), as_client(project.agent("bob")), as_client(project.agent("eve"))
    ann.take("src/a.py")
    record_reads(bob.repo, bob.session.id, {"/one/src/a.py": ("d", "s"), "/two/src/a.py": ("d", "s")})
    record_reads(eve.repo, eve.session.id, {"/one/src/b.py": ("d", "s"), "/one/a.py": ("d", "s")})

    land(ann, run_by(project.agent("runner")), enter(ann, "src/a.py").id)

    (told,) = take_notices(bob.repo, bob.session.id)
    assert told.endswith("and changed src/a.py: read it again")
    assert take_notices(bob.repo, bob.session.id) == []
    assert take_notices(eve.repo, eve.session.id) == []


def test_a_start_a_turn_and_an_end_on_every_store(project: Project) -> None:
    commit_text(project.repository, "RULES.md", RULES_TEMPLATE)
    ann, bob = as_client(project.agent("ann")), project.agent("bob")
    bob.take("src/**")
    ann.take("README.md")
    with opened(project) as repo:
        started = brief(
            repo.require_git(), ann.session, HookEvent(client="claude", kind=HookEventKind.START, session="c")
        )
        quiet = due_messages(repo.require_git(), ann.session)
        commit_text(project.repository, "RULES.md", "## Be kind\n\nAlways.\n")
        changed = due_messages(repo.require_git(), ann.session)
        left = leftovers(repo.require_git(), ann.session)
        pointed_out = [should_point_out(repo, ann.session, left) for _ in range(2)]

    assert "- bob holds src/**" in started
    assert quiet == []
    assert len(changed) == 1
    assert "New: Be kind." in changed[0]
    assert "- still held: README.md" in left
    assert pointed_out == [True, False]


def test_expired_lease_is_reported_once(project: Project) -> None:
    ann = as_client(project.agent("ann"))
    ann.take("a.py", ttl_ms=MINUTE)
    project.clock.advance(2 * MINUTE)
    project.agent("bob").take("a.py")
    with opened(project) as repo:
        first = due_messages(repo.require_git(), ann.session)
        second = due_messages(repo.require_git(), ann.session)

    assert ["bob holds a.py now" in text for text in first] == [True]
    assert second == []


def test_t35_undelivered_messages_of_a_dead_agent_reach_its_successor_once(project: Project) -> None:
    first = project.agent("ann")
    first.repo.change(lambda tx: add_notice(tx, first.session.id, "before it went silent"))
    project.clock.advance(365 * 24 * 60 * MINUTE)
    project.agent("bob").repo.change(lambda tx: add_notice(tx, first.session.id, "while nobody was there"))
    second = project.agent("ann")
    assert second.session.id != first.session.id
    second.repo.change(lambda tx: add_notice(tx, first.session.id, "to a name that is out of date"))

    told = take_notices(second.repo, second.session.id)
    assert told == ["before it went silent", "while nobody was there", "to a name that is out of date"]
    assert take_notices(second.repo, second.session.id) == []
    assert take_notices(second.repo, first.session.id) == []
