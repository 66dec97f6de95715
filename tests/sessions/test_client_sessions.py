"""Whose session a coding client's is, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import Stale
from landlane.sessions.client_sessions import (
    ClientName,
    begin_client_session,
    begin_subagent,
    end_subagent,
    find_bound_session,
)
from landlane.sessions.tool_calls import find_read, list_reads, record_reads
from tests.support.project import MINUTE

if TYPE_CHECKING:
    from tests.support.project import Project

pytestmark = pytest.mark.contract

SEEN = ("digest", "stamp")


def test_ids_that_begin_alike_are_two_sessions(project: Project) -> None:
    repo = project.repo()
    one = begin_client_session(repo, ClientName(client="codex", session="019a1b2c-0001"))
    two = begin_client_session(repo, ClientName(client="codex", session="019a1b2c-0002"))
    assert one.session.agent == "codex-019a1b"
    assert two.session.agent != one.session.agent
    assert (
        begin_client_session(repo, ClientName(client="codex", session="019a1b2c-0002")).session.id
        == two.session.id
    )


def test_a_chosen_name_is_one_clients(project: Project) -> None:
    repo = project.repo()
    one = begin_client_session(repo, ClientName(client="claude", session="one"), chosen="ann")
    two = begin_client_session(repo, ClientName(client="claude", session="two"), chosen="ann")
    assert one.session.agent == "ann"
    assert two.session.agent.startswith("ann-")
    again = begin_client_session(repo, ClientName(client="claude", session="one"), chosen="ann")
    assert (again.session.id, again.is_new) == (one.session.id, False)


def test_who_goes_on_after_its_lease_still_believes_what_it_read(project: Project) -> None:
    repo = project.repo()
    name = ClientName(client="claude", session="one")
    before = begin_client_session(repo, name).session
    record_reads(repo, before.id, {"/r/a.py": SEEN, "/r/b.py": SEEN})
    project.clock.advance(24 * 60 * MINUTE)
    after = begin_client_session(repo, name).session
    assert after.id != before.id
    assert find_read(repo, after.id, "/r/a.py") == SEEN
    assert repo.store.view(lambda snapshot: list_reads(snapshot, before.id)) == {}
    found = find_bound_session(repo, name)
    assert found is not None
    assert found.session.id == after.id


def test_what_a_subagent_lost_is_not_passed_on(project: Project) -> None:
    repo = project.repo()
    parent = begin_client_session(repo, ClientName(client="claude", session="one")).session
    child = begin_subagent(repo, ClientName(client="claude", session="one", agent="aa"), parent)
    project.clock.advance(24 * 60 * MINUTE)
    with pytest.raises(Stale):
        end_subagent(repo, child.session, parent.id)
