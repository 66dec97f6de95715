"""Landings and queues in the store, and the saved results of checks.

Every write of a queue runner checks its lease, so a runner that lost the lease changes nothing. Entries are
added in `enqueue.py` and ended in `outcomes.py`.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.landing.model import HELD, LANDED, OPEN, QUEUED, TESTING, Landing, Queue, TargetMove
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


def read_landings(snapshot: Snapshot, states: Sequence[str] = OPEN) -> list[Landing]:
    """Return the entries whose records are in these states, in the order of their submission."""
    return [Landing.from_document(document) for document in records.all_of(snapshot, NOUN, states)]


def list_landings(repo: Repository, states: Sequence[str] = OPEN) -> list[Landing]:
    """Return the entries in these states in the order of their submission; all entries without states."""
    if LANDED in states:
        states = (*states, records.SETTLED, records.INTEGRATED)
    return repo.store.view(lambda snapshot: read_landings(snapshot, states))


def list_unsettled(repo: Repository) -> list[Landing]:
    """Return the landed entries that are not cleaned up yet."""
    return repo.store.view(lambda snapshot: read_landings(snapshot, (LANDED,)))


def list_unintegrated(repo: Repository, target: str) -> list[Landing]:
    """Return the entries that landed on a target and that no integration task covers yet."""
    landed = repo.store.view(lambda snapshot: read_landings(snapshot, (LANDED, records.SETTLED)))
    return [landing for landing in landed if landing.target == target and not landing.is_integrated]


def get_landing(repo: Repository, landing_id: str) -> Landing:
    """Return one entry.

    Raises:
        Malformed: there is no such entry.
    """
    document = repo.store.view(lambda snapshot: records.find(snapshot, NOUN, landing_id))
    return _landing_or_error(document, landing_id)


def lock_landing(tx: Transaction, landing_id: str) -> Landing:
    """Return one entry, locked until the transaction ends."""
    return _landing_or_error(records.lock(tx, NOUN, landing_id), landing_id)


def _landing_or_error(document: records.Document | None, landing_id: str) -> Landing:
    if document is None:
        raise Malformed(
            f"there is no landing {landing_id[:40]!r}",
            code="UNKNOWN_LANDING",
            hint="`landlane queue list --all` shows them",
        )
    return Landing.from_document(document)


def lock_queue(tx: Transaction, target: str) -> Queue:
    """Return the queue of a target branch, locked until the transaction ends."""
    document = records.lock(tx, "queue", target)
    return Queue(**document) if document else Queue(id=target, target=target)


def get_queue(repo: Repository, target: str) -> Queue:
    """Return the queue of a target branch."""
    document = repo.store.view(lambda snapshot: records.find(snapshot, "queue", target))
    return Queue(**document) if document else Queue(id=target, target=target)


def update_queue(
    repo: Repository, lease: RunnerLease | None, target: str, verb: str, **fields: object
) -> Queue:
    """Change fields of the queue of a target branch.

    Raises:
        Stale: another process runs the queue now.
    """

    def work(tx: Transaction) -> Queue:
        if lease is not None:
            check_runner(tx, lease)
        queue = replace(lock_queue(tx, target), **fields)
        records.put(tx, "queue", as_dict(queue), verb)
        return queue

    return repo.change(work)


def begin_move(repo: Repository, lease: RunnerLease, target: str, move: TargetMove) -> bool:
    """Record a move before it is made; False if one of its entries was taken out of the queue meanwhile.

    Raises:
        Stale: another process runs the queue now.
    """

    def work(tx: Transaction) -> bool:
        check_runner(tx, lease)
        if any(lock_landing(tx, landing_id).state != TESTING for landing_id in move.entries):
            return False
        queue = replace(lock_queue(tx, target), move=move.to_document())
        records.put(tx, "queue", as_dict(queue), "moving")
        return True

    return repo.change(work)


def begin_testing(repo: Repository, lease: RunnerLease, ids: Sequence[str]) -> list[Landing]:
    """Mark entries as being tested, and return them; those that were ejected or held meanwhile are left out.

    Raises:
        Stale: another process runs the queue now.
    """

    def work(tx: Transaction) -> list[Landing]:
        check_runner(tx, lease)
        batch: list[Landing] = []
        for landing_id in ids:
            landing = lock_landing(tx, landing_id)
            if landing.state.can_become(TESTING):
                landing = replace(landing, state=TESTING, stage="merging", reason="", code="")
                records.put(tx, NOUN, as_dict(landing), "testing")
                batch.append(landing)
        return batch

    return repo.change(work)


def set_stage(repo: Repository, lease: RunnerLease, ids: Sequence[str], stage: str) -> None:
    """Set the stage that waiting clients see; it is not journaled."""

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        for landing_id in ids:
            landing = lock_landing(tx, landing_id)
            if landing.state == TESTING and landing.stage != stage:
                records.put_quietly(tx, NOUN, as_dict(replace(landing, stage=stage)))

    repo.store.change(work, is_durable=False)


def requeue(repo: Repository, lease: RunnerLease, ids: Sequence[str], reason: str, code: str = "") -> None:
    """Put entries that are being tested back into the queue.

    Raises:
        Stale: another process runs the queue now.
    """

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        for landing_id in ids:
            landing = lock_landing(tx, landing_id)
            if landing.state == TESTING:
                landing = replace(landing, state=QUEUED, stage="", reason=reason, code=code)
                records.put(tx, NOUN, as_dict(landing), "requeued")

    repo.change(work)


def hold(repo: Repository, lease: RunnerLease, landing_id: str, gate: str) -> None:
    """Make an entry wait for a person.

    Raises:
        Stale: another process runs the queue now.
    """

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        landing = lock_landing(tx, landing_id)
        if landing.state.can_become(HELD):
            landing = replace(landing, state=HELD, stage="", gate=gate, reason=gate, code="")
            records.put(tx, NOUN, as_dict(landing), "held")

    repo.change(work)


def mark_settled(repo: Repository, notes: dict[str, list[str]]) -> None:
    """Mark landed entries as cleaned up, and add the notes about each."""

    def work(tx: Transaction) -> None:
        for landing_id, more in notes.items():
            landing = lock_landing(tx, landing_id)
            if not landing.is_settled:
                landing = replace(landing, is_settled=True, notes=[*landing.notes, *more])
                records.put(tx, NOUN, as_dict(landing), "settled")

    repo.change(work)


def mark_integrated(repo: Repository, ids: Sequence[str]) -> None:
    """Mark entries as covered by an integration task."""

    def work(tx: Transaction) -> None:
        for landing_id in ids:
            landing = replace(lock_landing(tx, landing_id), is_integrated=True)
            records.put(tx, NOUN, as_dict(landing), "integrated")

    repo.change(work)


def save_check_result(repo: Repository, target: str, tree: str, check_key: str, data: str) -> None:
    """Count a run of a check, and save its result for a tree if `data` is not empty."""

    def work(tx: Transaction) -> None:
        if data:
            tx.run("verdict_put", tree=tree, check_key=check_key, data=data)
        queue = lock_queue(tx, target)
        records.put_quietly(tx, "queue", as_dict(replace(queue, tests=queue.tests + 1)))

    repo.change(work)


def find_check_result(repo: Repository, tree: str, check_key: str) -> str:
    """Return the saved result of a check on a tree; empty if there is none."""
    row = repo.store.view(lambda snapshot: snapshot.one("verdict_get", tree=tree, check_key=check_key))
    return row["data"] if row else ""


def wait_for_change(repo: Repository, timeout_seconds: float, is_over: Callable[[], bool]) -> None:
    """Sleep until the store changes or the time is over; return at once if `is_over`."""
    listener = repo.store.listen()
    try:
        if not is_over():
            listener.wait(timeout_seconds)
    finally:
        listener.close()
