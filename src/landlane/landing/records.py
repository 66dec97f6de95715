"""Landings as the store knows them: what is queued, how far it is, and what was said of each tree.

Every step of whoever runs the queue shows the token of the run: one that was overtaken writes nothing.
How an entry gets in is told in `enqueue.py`, how it ends in `outcomes.py`.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.landing.model import HELD, LANDED, OPEN, QUEUED, TESTING, Landing, Move, Queue
from landlane.sessions.runner_lease import check_runner
from landlane.store import records
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.repository import Repository
    from landlane.sessions.runner_lease import RunnerLease
    from landlane.store.interface import Snapshot, Transaction

NOUN = "landing"


def landing_from(document: records.Document) -> Landing:
    """A landing from its record."""
    return Landing(**document)


def list_landings(repo: Repository, states: Sequence[str] = OPEN) -> list[Landing]:
    """The entries in these states, in the order in which they were submitted; all without states."""
    shelves = (*states, records.SETTLED, records.INTEGRATED) if LANDED in states else states
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, NOUN, shelves))
    return [landing_from(document) for document in found]


def list_unsettled(repo: Repository) -> list[Landing]:
    """What has landed, and for which not everything is done that follows."""
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, NOUN, (LANDED,)))
    return [landing_from(document) for document in found]


def list_unintegrated(repo: Repository, target: str) -> list[Landing]:
    """What has landed on a target, and is part of no whole yet that somebody was asked to look at."""
    shelves = (LANDED, records.SETTLED)
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, NOUN, shelves))
    entries = [landing_from(document) for document in found]
    return [one for one in entries if one.target == target and not one.is_integrated]


def get_landing(repo: Repository, landing_id: str) -> Landing:
    """One entry.

    Raises:
        Malformed: there is none of this id.
    """
    document = repo.store.view(lambda snapshot: records.find(snapshot, NOUN, landing_id))
    if document is None:
        raise unknown_landing(landing_id)
    return landing_from(document)


def unknown_landing(landing_id: str) -> Malformed:
    """There is no such entry."""
    return Malformed(
        f"there is no landing {landing_id[:40]!r}",
        code="UNKNOWN_LANDING",
        hint="`landlane queue list --all` shows them",
    )


def locked(tx: Transaction, landing_id: str) -> Landing:
    """One entry, held still until the transaction ends."""
    document = records.lock(tx, NOUN, landing_id)
    if document is None:
        raise unknown_landing(landing_id)
    return landing_from(document)


def queue_of(snapshot: Snapshot, target: str) -> Queue:
    """What is known of a target branch."""
    document = records.find(snapshot, "queue", target)
    return Queue(**document) if document else Queue(id=target, target=target)


def locked_queue(tx: Transaction, target: str) -> Queue:
    """What is known of a target branch, held still until the transaction ends: others count tests in it."""
    document = records.lock(tx, "queue", target)
    return Queue(**document) if document else Queue(id=target, target=target)


def get_queue(repo: Repository, target: str) -> Queue:
    """What is known of a target branch."""
    return repo.store.view(lambda snapshot: queue_of(snapshot, target))


def change_queue(
    repo: Repository, lease: RunnerLease | None, target: str, verb: str, **fields: object
) -> Queue:
    """Write down what became of a target branch.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Transaction) -> Queue:
        if lease is not None:
            check_runner(tx, lease)
        now = replace(locked_queue(tx, target), **fields)
        records.put(tx, "queue", as_dict(now), verb)
        return now

    return repo.change(work)


def begin_move(repo: Repository, lease: RunnerLease, target: str, move: Move) -> bool:
    """Write a move down before it is made, unless one of its entries was taken out meanwhile.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Transaction) -> bool:
        check_runner(tx, lease)
        if any(locked(tx, landing_id).state != TESTING for landing_id in move.entries):
            return False
        now = replace(locked_queue(tx, target), move=as_dict(move))
        records.put(tx, "queue", as_dict(now), "moving")
        return True

    return repo.change(work)


def begin_testing(repo: Repository, lease: RunnerLease, ids: Sequence[str]) -> list[Landing]:
    """Take entries in hand; those that were ejected or held meanwhile are left out.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Transaction) -> list[Landing]:
        check_runner(tx, lease)
        taken: list[Landing] = []
        for landing_id in ids:
            one = locked(tx, landing_id)
            if one.state in (QUEUED, TESTING):
                one = replace(one, state=TESTING, stage="merging", reason="", code="")
                records.put(tx, NOUN, as_dict(one), "testing")
                taken.append(one)
        return taken

    return repo.change(work)


def show_stage(repo: Repository, lease: RunnerLease, ids: Sequence[str], stage: str) -> None:
    """Let those who wait see how far it is; nothing is journaled."""

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        for landing_id in ids:
            one = locked(tx, landing_id)
            if one.state == TESTING and one.stage != stage:
                records.put_quietly(tx, NOUN, as_dict(replace(one, stage=stage)))

    repo.store.change(work, is_durable=False)


def put_back(repo: Repository, lease: RunnerLease, ids: Sequence[str], reason: str, code: str = "") -> None:
    """Let entries stand in line again.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        for landing_id in ids:
            one = locked(tx, landing_id)
            if one.state == TESTING:
                one = replace(one, state=QUEUED, stage="", reason=reason, code=code)
                records.put(tx, NOUN, as_dict(one), "requeued")

    repo.change(work)


def hold(repo: Repository, lease: RunnerLease, landing_id: str, gate: str) -> Landing:
    """Let an entry wait for a person: the target asks for it since it was submitted.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Transaction) -> Landing:
        check_runner(tx, lease)
        one = locked(tx, landing_id)
        if one.state in (QUEUED, TESTING):
            one = replace(one, state=HELD, stage="", gate=gate, reason=gate, code="")
            records.put(tx, NOUN, as_dict(one), "held")
        return one

    return repo.change(work)


def settle(repo: Repository, landed: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Everything that follows these landings is done; each with what there is to say of it."""

    def work(tx: Transaction) -> None:
        for landing_id, notes in landed:
            one = locked(tx, landing_id)
            if not one.is_settled:
                now = replace(one, is_settled=True, notes=[*one.notes, *notes])
                records.put(tx, NOUN, as_dict(now), "settled")

    if landed:
        repo.change(work)


def mark_integrated(repo: Repository, ids: Sequence[str]) -> None:
    """A task was opened for the whole that these entries are part of."""

    def work(tx: Transaction) -> None:
        for landing_id in ids:
            now = replace(locked(tx, landing_id), is_integrated=True)
            records.put(tx, NOUN, as_dict(now), "integrated")

    repo.change(work)


def remember_verdict(repo: Repository, target: str, tree: str, check_key: str, data: str) -> None:
    """Count a run, and keep what the check said of a tree; nothing is kept without `data`."""

    def work(tx: Transaction) -> None:
        if data:
            tx.run("verdict_put", tree=tree, check_key=check_key, data=data)
        queue = locked_queue(tx, target)
        records.put_quietly(tx, "queue", as_dict(replace(queue, tests=queue.tests + 1)))

    repo.change(work)


def known_verdict(repo: Repository, tree: str, check_key: str) -> str:
    """What a check said of a tree before; empty when it was never asked."""
    row = repo.store.view(lambda snapshot: snapshot.one("verdict_get", tree=tree, check_key=check_key))
    return row["data"] if row else ""


def wait_until(
    repo: Repository, is_over: Callable[[], bool], on_tick: Callable[[], None], timeout_seconds: float = 0.5
) -> None:
    """Sleep until something happened or a moment has passed, unless it is over already."""
    listener = repo.store.listen()
    try:
        if not is_over():
            listener.wait(timeout_seconds)
            on_tick()
    finally:
        listener.close()
