"""Landings and queues in the store, and the saved results of checks.

Every write of a queue runner checks its lease: a runner that lost it gets `Stale` and changes nothing.
Entries are added in `enqueue.py` and ended in `outcomes.py`.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.landing.estimate import add_sample
from landlane.landing.model import HELD, LANDED, OPEN, QUEUED, TESTING, Landing, Queue
from landlane.sessions.runner_lease import check_runner
from landlane.state.keys import find_moved, state_areas
from landlane.store import records
from landlane.tasks.worker_pool import check_may_change
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.landing.model import LandingState, TargetFailure, TargetMove
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.runner_lease import RunnerLease
    from landlane.store.interface import Snapshot, Transaction

NOUN = "landing"


@value
class EntryMerge:
    """Onto which commit an entry was merged, and notes about files that were merged by their kind."""

    base: str
    notes: tuple[str, ...] = ()
    sandbox: str = ""


def read_landings(snapshot: Snapshot, states: Sequence[str] = OPEN) -> list[Landing]:
    """Return the entries whose records are in these states, in the order of their submission."""
    return [Landing.from_document(document) for document in records.find_all(snapshot, NOUN, states)]


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
            f"no landing {landing_id[:40]}",
            code="UNKNOWN_LANDING",
            hint="landlane queue list --all",
        )
    return Landing.from_document(document)


def put_landing(tx: Transaction, landing: Landing, verb: str, session: Session | None = None) -> None:
    """Write an entry and the journal entry about the change."""
    records.put(tx, NOUN, as_dict(landing), verb, session)


def put_queue(tx: Transaction, queue: Queue, verb: str) -> None:
    """Write a queue and the journal entry about the change."""
    records.put(tx, "queue", as_dict(queue), verb)


def lock_queue(tx: Transaction, target: str) -> Queue:
    """Return the queue of a target branch, locked until the transaction ends."""
    return _queue_from(records.lock(tx, "queue", target), target)


def get_queue(repo: Repository, target: str) -> Queue:
    """Return the queue of a target branch."""
    return _queue_from(repo.store.view(lambda snapshot: records.find(snapshot, "queue", target)), target)


def _queue_from(document: records.Document | None, target: str) -> Queue:
    return Queue(**document) if document else Queue(id=target, target=target)


def update_queue(
    repo: Repository, lease: RunnerLease | None, target: str, verb: str, **fields: object
) -> Queue:
    """Change fields of the queue of a target branch."""

    def work(tx: Transaction) -> Queue:
        if lease is not None:
            check_runner(tx, lease)
        queue = replace(lock_queue(tx, target), **fields)
        put_queue(tx, queue, verb)
        return queue

    return repo.change(work)


def begin_move(repo: Repository, lease: RunnerLease, target: str, move: TargetMove) -> bool:
    """Record a move before it is made.

    Return False if one of its entries was taken out of the queue meanwhile, or expects a version of a shared
    key that has moved: such an entry is rejected when it is merged again.
    """
    expected = [get_landing(repo, landing_id).expects for landing_id in move.entries]

    def work(tx: Transaction) -> bool:
        check_runner(tx, lease)
        check_may_change(tx, "landing")
        if any(lock_landing(tx, landing_id).state != TESTING for landing_id in move.entries):
            return False
        if any(find_moved(tx, repo, versions) for versions in expected):
            return False
        put_queue(tx, replace(lock_queue(tx, target), move=as_dict(move)), "moving")
        return True

    return repo.change(work, areas=state_areas(key for versions in expected for key in versions))


def begin_testing(repo: Repository, lease: RunnerLease, ids: Sequence[str]) -> list[Landing]:
    """Mark entries as being tested, and return them, without those that were ejected or held meanwhile."""
    cleared: dict[str, object] = {"reason": "", "code": "", "checks": [], "resolved": []}
    return _move_entries(repo, lease, ids, TESTING, "testing", stage="merging", **cleared)


def requeue(repo: Repository, lease: RunnerLease, ids: Sequence[str], reason: str, code: str = "") -> None:
    """Put entries that are being tested back into the queue."""
    if ids:
        _move_entries(repo, lease, ids, QUEUED, "requeued", reason=reason, code=code)


def hold(repo: Repository, lease: RunnerLease, landing_id: str, gate: str) -> None:
    """Make an entry wait for a person."""
    _move_entries(repo, lease, [landing_id], HELD, "held", gate=gate, reason=gate, code="")


def _move_entries(
    repo: Repository,
    lease: RunnerLease,
    ids: Sequence[str],
    state: LandingState,
    verb: str,
    *,
    stage: str = "",
    **changes: object,
) -> list[Landing]:
    """Change the state of entries, and return them; held and ended ones are not the runner's to change."""

    def work(tx: Transaction) -> list[Landing]:
        check_runner(tx, lease)
        moved: list[Landing] = []
        for landing_id in ids:
            landing = lock_landing(tx, landing_id)
            if landing.state != HELD and landing.state.can_become(state):
                landing = landing.become(state, stage=stage, **changes)
                put_landing(tx, landing, verb)
                moved.append(landing)
        return moved

    return repo.change(work)


def set_stage(repo: Repository, lease: RunnerLease, ids: Sequence[str], stage: str, **fields: object) -> None:
    """Set the stage and other fields of a batch, which waiting clients see; they are not journaled."""

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        for landing_id in ids:
            landing = lock_landing(tx, landing_id)
            first = "" if landing_id == ids[0] else ids[0]
            changed = replace(landing, stage=stage, tested_with=first, **fields)
            if landing.state == TESTING and landing != changed:
                records.put_without_entry(tx, NOUN, as_dict(changed))

    repo.store.change(work, is_durable=False)


def record_merges(repo: Repository, lease: RunnerLease, merges: Mapping[str, EntryMerge]) -> None:
    """Record onto which commit each entry of a batch was merged; it is not journaled."""

    def work(tx: Transaction) -> None:
        check_runner(tx, lease)
        for landing_id, merge in merges.items():
            landing = lock_landing(tx, landing_id)
            if landing.state == TESTING:
                changed = replace(landing, base=merge.base, resolved=list(merge.notes), sandbox=merge.sandbox)
                records.put_without_entry(tx, NOUN, as_dict(changed))

    repo.store.change(work, is_durable=False)


def record_target_failure(
    repo: Repository, lease: RunnerLease | None, target: str, failure: TargetFailure
) -> None:
    """Record why the target itself fails; the journal gets an entry when that is new."""

    def work(tx: Transaction) -> None:
        if lease is not None:
            check_runner(tx, lease)
        queue = lock_queue(tx, target)
        known = queue.failure
        changed = replace(queue, failing=as_dict(failure))
        if known is not None and (known.commit, known.check) == (failure.commit, failure.check):
            records.put_without_entry(tx, "queue", as_dict(changed))
        else:
            put_queue(tx, changed, "failing")

    repo.change(work)


def record_target_passing(repo: Repository, lease: RunnerLease | None, target: str, commit: str) -> None:
    """Record that a commit of the target passes its checks; the journal gets an entry if it failed before."""

    def work(tx: Transaction) -> None:
        if lease is not None:
            check_runner(tx, lease)
        queue = lock_queue(tx, target)
        changed = replace(queue, passing=commit, failing={})
        if queue.failing:
            changed = replace(changed, recheck_before=repo.store.wall_of(tx.now))
            put_queue(tx, changed, "passing")
        elif changed != queue:
            records.put_without_entry(tx, "queue", as_dict(changed))

    repo.change(work)


def mark_settled(repo: Repository, notes: dict[str, list[str]]) -> None:
    """Mark landed entries as cleaned up, and add the notes about each."""

    def work(tx: Transaction) -> None:
        for landing_id, more in notes.items():
            landing = lock_landing(tx, landing_id)
            if not landing.is_settled:
                notes_so_far = [*landing.notes, *more]
                put_landing(tx, replace(landing, is_settled=True, notes=notes_so_far), "settled")

    repo.change(work)


def mark_integrated(repo: Repository, ids: Sequence[str]) -> None:
    """Mark entries as covered by an integration task."""

    def work(tx: Transaction) -> None:
        for landing_id in ids:
            put_landing(tx, replace(lock_landing(tx, landing_id), is_integrated=True), "integrated")

    repo.change(work)


def save_check_result(
    repo: Repository, target: str, tree: str, check_key: str, data: str, sample: tuple[str, int] | None
) -> None:
    """Count a run of a check, and save its result for a tree if `data` is not empty.

    `sample` is the name and duration of a check that passed, for estimates.
    """

    def work(tx: Transaction) -> None:
        if data:
            tx.run("verdict_put", tree=tree, check_key=check_key, data=data)
        queue = lock_queue(tx, target)
        durations = add_sample(queue.durations, *sample) if sample else queue.durations
        changed = replace(queue, tests=queue.tests + 1, durations=durations)
        records.put_without_entry(tx, "queue", as_dict(changed))

    repo.change(work)


def find_check_result(repo: Repository, tree: str, check_key: str) -> str:
    """Return the saved result of a check on a tree; empty if there is none."""
    row = repo.store.view(lambda snapshot: snapshot.one("verdict_get", tree=tree, check_key=check_key))
    return row["data"] if row else ""
