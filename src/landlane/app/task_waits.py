"""What tasks wait for in gates, reviews, landings, handoffs and split tasks."""

from __future__ import annotations

from landlane.fanout import model as fans
from landlane.fanout.records import children_of, fans_in
from landlane.gates.records import is_given_up, read_gates
from landlane.handoffs.transfer import waiting_in
from landlane.landing.records import read_landings
from landlane.reviews.model import DECIDING, PERSON, UNDECIDED
from landlane.reviews.records import reviews_in
from landlane.tasks.model import ANYBODY, FINISHED, Wait, WaitKind, is_for_person
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from landlane.repository import Repository
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task


@value
class TaskWaits:
    """Implements `tasks.extensions.Waits` with the open records of the packages above tasks."""

    def find(
        self, snapshot: Snapshot, repo: Repository, tasks: Collection[str]
    ) -> Mapping[str, Sequence[Wait]]:
        found: dict[str, list[Wait]] = {}
        for read in (_gates, _reviews, _landings, _parts):
            for task_id, wait in read(snapshot):
                found.setdefault(task_id, []).append(wait)
        now = repo.store.wall_of(snapshot.now)
        for handoff in waiting_in(snapshot):
            needs_person = is_for_person(handoff.to)
            if needs_person or (handoff.to != ANYBODY and handoff.until > now):
                wait = Wait(
                    kind=WaitKind.HANDOFF,
                    id=handoff.id,
                    holder=handoff.to,
                    until=0 if needs_person else handoff.until,
                    needs_person=needs_person,
                )
                found.setdefault(handoff.task, []).append(wait)
        return {task_id: waits for task_id, waits in found.items() if task_id in tasks}

    def is_given_up(self, snapshot: Snapshot, task: Task) -> bool:
        return is_given_up(snapshot, task.id, task.attempt)


def _gates(snapshot: Snapshot) -> Iterator[tuple[str, Wait]]:
    for gate in read_gates(snapshot):
        yield gate.task, Wait(kind=WaitKind.GATE, id=gate.id, needs_person=True)


def _reviews(snapshot: Snapshot) -> Iterator[tuple[str, Wait]]:
    for review in reviews_in(snapshot, UNDECIDED):
        if review.state == DECIDING and review.gate:
            continue  # the gate is listed already
        names = [entry.name for entry in review.awaited if entry.name]
        is_for_person = bool(names) and set(names) == {PERSON}
        wait = Wait(kind=WaitKind.REVIEW, id=review.id, holder=", ".join(names), needs_person=is_for_person)
        yield review.task, wait
        for entry in review.awaited:
            if entry.name == PERSON:
                yield entry.task, replace(wait, holder=PERSON, needs_person=True)


def _landings(snapshot: Snapshot) -> Iterator[tuple[str, Wait]]:
    for landing in read_landings(snapshot):
        if landing.task:
            yield landing.task, Wait(kind=WaitKind.LANDING, id=landing.id, needs_person=landing.is_gated)


def _parts(snapshot: Snapshot) -> Iterator[tuple[str, Wait]]:
    """Yield the unfinished parts that split tasks wait for."""
    for fan in fans_in(snapshot, (fans.OPEN,)):
        for part in children_of(snapshot, fan).values():
            if part.state not in FINISHED:
                yield fan.task, Wait(kind=WaitKind.TASK, id=part.id)
