"""Whose session a coding client's is, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import Stale
from landlane.sessions.client_sessions import ClientName, begin, begin_child, end_child, find_bound
from landlane.sessions.file_versions import all_seen, last_seen, remember
from tests.support.sites import MINUTE

if TYPE_CHECKING:
    from tests.support.sites import Site

pytestmark = pytest.mark.contract

SEEN = ("digest", "stamp")


def test_ids_that_begin_alike_are_two_sessions(site: Site) -> None:
    repo = site.repo()
    one = begin(repo, ClientName(client="codex", session="019a1b2c-0001"))
    two = begin(repo, ClientName(client="codex", session="019a1b2c-0002"))
    assert one.session.agent == "codex-019a1b"
    assert two.session.agent != one.session.agent
    assert begin(repo, ClientName(client="codex", session="019a1b2c-0002")).session.id == two.session.id


def test_a_chosen_name_is_one_clients(site: Site) -> None:
    repo = site.repo()
    one = begin(repo, ClientName(client="claude", session="one"), chosen="ann")
    two = begin(repo, ClientName(client="claude", session="two"), chosen="ann")
    assert one.session.agent == "ann"
    assert two.session.agent.startswith("ann-")
    again = begin(repo, ClientName(client="claude", session="one"), chosen="ann")
    assert (again.session.id, again.is_new) == (one.session.id, False)


def test_who_goes_on_after_its_lease_still_believes_what_it_read(site: Site) -> None:
    repo = site.repo()
    name = ClientName(client="claude", session="one")
    before = begin(repo, name).session
    remember(repo, before.id, {"/r/a.py": SEEN, "/r/b.py": SEEN})
    site.clock.advance(24 * 60 * MINUTE)
    after = begin(repo, name).session
    assert after.id != before.id
    assert last_seen(repo, after.id, "/r/a.py") == SEEN
    assert all_seen(repo, before.id) == {}
    found = find_bound(repo, name)
    assert found is not None
    assert found.session.id == after.id


def test_what_a_subagent_lost_is_not_passed_on(site: Site) -> None:
    repo = site.repo()
    parent = begin(repo, ClientName(client="claude", session="one")).session
    child = begin_child(repo, ClientName(client="claude", session="one", agent="aa"), parent)
    site.clock.advance(24 * 60 * MINUTE)
    with pytest.raises(Stale):
        end_child(repo, child.session, parent.id)
