"""Steps on both stores: done once by key, in the transaction of what they tell of, and rebuilt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed
from landlane.handoffs.model import Draft
from landlane.handoffs.send import send_handoff
from landlane.setup.rebuild_store import rebuild_store
from landlane.state import steps
from landlane.tasks.records import get_task
from tests.support.project import SQLITE_ONLY, opened
from tests.support.tasks import add, take

if TYPE_CHECKING:
    from landlane.handoffs.model import Handoff
    from landlane.store.interface import Transaction
    from tests.support.project import Project

pytestmark = pytest.mark.contract


@pytest.mark.promise(
    "steps.with-what-they-tell-of",
    "A step and the record that it was done are one transaction.",
)
def test_a_step_is_there_with_what_it_tells_of_or_neither_is(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    take(ann)
    draft = Draft(task="T1", to="bob", next="test it")

    def dies(tx: Transaction, made: Handoff) -> None:
        steps.record_step_in(tx, ann.repo, ann.session, "one", task="T1", about=made.id)
        raise ZeroDivisionError

    def lives(tx: Transaction, made: Handoff) -> None:
        steps.record_step_in(tx, ann.repo, ann.session, "one", task="T1", about=made.id, memo="go on")

    with pytest.raises(ZeroDivisionError):
        send_handoff(ann.repo, ann.session, draft, also=dies)
    assert steps.find_step(ann.repo, "one") is None
    assert get_task(ann.repo, "T1").owner == "ann"

    sent = send_handoff(ann.repo, ann.session, draft, also=lives)
    step = steps.find_step(ann.repo, "one")
    assert step is not None
    assert (step.about, step.memo, step.agent) == (sent.id, "go on", "ann")


def test_the_first_of_a_key_counts(project: Project) -> None:
    ann = project.agent("ann")

    first = steps.record_step(ann.repo, ann.session, "graph/1", memo="first")

    assert steps.record_step(ann.repo, ann.session, "graph/1", memo="second") == first
    with pytest.raises(Malformed):
        steps.record_step(ann.repo, ann.session, "no key at all")
    with pytest.raises(Malformed):
        steps.record_step(ann.repo, ann.session, "big", memo="x" * (steps.LONGEST_MEMO + 1))


@SQLITE_ONLY
def test_steps_are_rebuilt_from_the_journal(project: Project) -> None:
    ann = project.agent("ann")
    kept = steps.record_step(ann.repo, ann.session, "graph/1", about="H1", memo="go on")
    with opened(project) as repo:
        repo.settle()
        folder = repo.checkout.state_folder
    project.close()
    identity = (project.repository / ".git" / "landlane" / "repository").read_text().strip()

    rebuild_store(folder, identity, ignore_case=False)

    assert steps.find_step(project.repo(), "graph/1") == kept
