"""What reaches a session between its turns, on both stores: what landed after it was read, leases, rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.hooks.briefing.compose import brief
from landlane.hooks.messages import due_messages
from landlane.hooks.session_end import leftovers, should_point_out
from landlane.protocol.hook_events import START, HookEvent
from landlane.rules.model import RULES_TEMPLATE
from landlane.sessions.client_sessions import ClientName, bind
from landlane.sessions.file_versions import remember
from landlane.sessions.notices import add_notice, take_notices
from tests.landing.test_landings import enter, land, run_by
from tests.support.sites import MINUTE, opened

if TYPE_CHECKING:
    from tests.support.sites import Agent, Site

pytestmark = pytest.mark.contract


def as_client(agent: Agent) -> Agent:
    bind(agent.repo, ClientName(client="claude", session=agent.name), agent.joined)
    return agent


def test_readers_of_what_landed_hear_of_it_once(site: Site) -> None:
    ann, bob, eve = site.agent("ann"), as_client(site.agent("bob")), as_client(site.agent("eve"))
    ann.take("src/a.py")
    remember(bob.repo, bob.session.id, {"/one/src/a.py": ("d", "s"), "/two/src/a.py": ("d", "s")})
    remember(eve.repo, eve.session.id, {"/one/src/b.py": ("d", "s"), "/one/a.py": ("d", "s")})

    land(ann, run_by(site.agent("runner")), enter(ann, "src/a.py").id)

    (told,) = take_notices(bob.repo, bob.session.id)
    assert told.endswith("and changed src/a.py: read it again")
    assert take_notices(bob.repo, bob.session.id) == []
    assert take_notices(eve.repo, eve.session.id) == []


def test_a_start_a_turn_and_an_end_on_every_store(site: Site) -> None:
    (site.repository / "RULES.md").write_text(RULES_TEMPLATE, encoding="utf-8")
    ann, bob = as_client(site.agent("ann")), site.agent("bob")
    bob.take("src/**")
    ann.take("README.md")
    with opened(site) as repo:
        started = brief(repo.require_git(), ann.session, HookEvent(client="claude", kind=START, session="c"))
        quiet = due_messages(repo.require_git(), ann.session)
        (site.repository / "RULES.md").write_text("## Be kind\n\nAlways.\n", encoding="utf-8")
        changed = due_messages(repo.require_git(), ann.session)
        left = leftovers(repo.require_git(), ann.session)
        pointed_out = [should_point_out(repo, ann.session, left) for _ in range(2)]

    assert "- bob holds src/**" in started
    assert quiet == []
    assert len(changed) == 1
    assert "New: Be kind." in changed[0]
    assert "- still held: README.md" in left
    assert pointed_out == [True, False]


def test_a_lease_that_is_over_is_told_once(site: Site) -> None:
    ann = as_client(site.agent("ann"))
    ann.take("a.py", ttl_ms=MINUTE)
    site.clock.advance(2 * MINUTE)
    site.agent("bob").take("a.py")
    with opened(site) as repo:
        first = due_messages(repo.require_git(), ann.session)
        second = due_messages(repo.require_git(), ann.session)

    assert ["bob holds a.py now" in text for text in first] == [True]
    assert second == []


def test_t35_what_a_dead_agent_was_not_told_its_successor_hears_once(site: Site) -> None:
    first = site.agent("ann")
    first.repo.change(lambda tx: add_notice(tx, first.session.id, "before it went silent"))
    site.clock.advance(365 * 24 * 60 * MINUTE)
    site.agent("bob").repo.change(lambda tx: add_notice(tx, first.session.id, "while nobody was there"))
    second = site.agent("ann")
    assert second.session.id != first.session.id
    second.repo.change(lambda tx: add_notice(tx, first.session.id, "to a name that is out of date"))

    told = take_notices(second.repo, second.session.id)
    assert told == ["before it went silent", "while nobody was there", "to a name that is out of date"]
    assert take_notices(second.repo, second.session.id) == []
    assert take_notices(second.repo, first.session.id) == []
