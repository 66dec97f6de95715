"""Pause, slow down and resume the worker pool.

It pauses itself when its environment is broken, and slows down when a provider asks for it.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import WaitsForPerson
from landlane.roles.model import forbidden
from landlane.store import records
from landlane.tasks.lineage import find_lineage, lock_lineage, put_lineage
from landlane.tasks.model import READY, WAITING, check_reason
from landlane.tasks.records import find_task, lock_task, move_task
from landlane.tasks.retry_rules import NOT_STARTED, normalize
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction

_NOUN = "pool"  # there is one record, with the same id
_AREA = {"//pool": True}  # locked, because two transactions may write the first record at once
_MAX_ALIKE = 3  # after the same failure to start on so many tasks, the environment is to blame
_WINDOW_MS = 3_600_000  # failures further apart are unrelated
_MIN_PAUSE_MS = 10_000  # rate limits within this time count as one
_MAX_KEPT = 50
_MAX_TEXT = 500


class PoolState(StrEnum):
    """Whether the pool starts work: `pause` and `resume` are its only transitions."""

    OPEN = "open"
    PAUSED = "paused"


@value
class Pool:
    """The worker pool. Times are wall-clock milliseconds."""

    id: str = _NOUN
    state: PoolState = PoolState.OPEN
    paused: str = ""  # why it starts nothing
    paused_at: int = 0
    paused_by: str = ""  # empty when it paused itself
    pauses_landing: bool = False  # nothing lands and nothing is deployed, either
    infra: Sequence[Mapping[str, Any]] = ()  # {task, text, at, kind}: recent failures to start work
    # Kind of agent → {limit, until, before, resets_at}: `until` is when it is started again, `resets_at` when
    # the provider's limit ends, as far as the provider said so.
    admission: Mapping[str, Mapping[str, Any]] = {}

    @property
    def is_paused(self) -> bool:
        return self.state == PoolState.PAUSED


def pause(pool: Pool, why: str, now: int, by: str = "", *, pauses_landing: bool = False) -> Pool:
    """Return the pool after it was paused; landings that were paused before stay so."""
    return replace(
        pool,
        state=PoolState.PAUSED,
        paused=why,
        paused_at=now,
        paused_by=by,
        pauses_landing=pauses_landing or pool.pauses_landing,
    )


def resume(pool: Pool) -> Pool:
    """Return the pool after it was resumed; earlier failures are forgotten."""
    return replace(
        pool, state=PoolState.OPEN, paused="", paused_at=0, paused_by="", pauses_landing=False, infra=()
    )


def with_failure(
    pool: Pool, task_id: str, text: str, now: int, kind: str = ""
) -> tuple[Pool, tuple[str, ...]]:
    """Return the pool after work on a task could not start, and all tasks with this failure if they are many.

    `kind` is the kind of agent that did not start; empty when it is unknown.
    """
    normalized = normalize(text)[:_MAX_TEXT]
    failures = [
        failure
        for failure in pool.infra
        if now - failure["at"] < _WINDOW_MS and (failure["task"], failure["text"]) != (task_id, normalized)
    ]
    failures = [*failures, {"task": task_id, "text": normalized, "at": now, "kind": kind}][-_MAX_KEPT:]
    pool = replace(pool, infra=failures)
    alike = {str(failure["task"]): None for failure in failures if failure["text"] == normalized}
    if len(alike) < _MAX_ALIKE:
        return pool, ()
    if not pool.is_paused:
        why = f"{len(alike)} tasks could not be started for the same reason: {' '.join(text.split())[:200]}"
        pool = pause(pool, why, now)
    return pool, tuple(alike)


def _without_failures_of(pool: Pool, kind: str) -> Pool:
    """Return the pool after an agent of this kind has worked: earlier failures to start it are over."""
    rest = [failure for failure in pool.infra if not kind or failure.get("kind") != kind]
    return pool if len(rest) == len(pool.infra) or pool.is_paused else replace(pool, infra=rest)


def slow_down(pool: Pool, kind: str, running: int, retry_after_ms: int, now: int) -> Pool:
    """Admit half as many agents of a kind as are running, and none for a while.

    Rate limits that arrive during that while do not halve the number again.
    """
    known = dict(pool.admission.get(kind, {}))
    until = now + max(retry_after_ms, _MIN_PAUSE_MS)
    if known and now < int(known["until"]):
        limit, before = known["limit"], known["before"]
    else:
        least = running if not known or known["limit"] is None else min(running, int(known["limit"]))
        limit = max(1, least // 2)
        before = max(running, int(known.get("before") or 0))
    until = max(until, int(known.get("until") or 0))
    resets_at = max(now + retry_after_ms if retry_after_ms else 0, int(known.get("resets_at") or 0))
    entry = {"limit": limit, "until": until, "before": before, "resets_at": resets_at}
    return replace(pool, admission={**pool.admission, kind: entry})


def _speed_up(pool: Pool, kind: str, now: int) -> Pool:
    """Admit one more agent of a kind after a success; remove the limit once as many run as before."""
    known = pool.admission.get(kind)
    if not known or now < int(known["until"]):
        return pool
    limit = int(known["limit"] or 0) + 1
    if limit > int(known.get("before") or 0):
        return replace(
            pool, admission={name: entry for name, entry in pool.admission.items() if name != kind}
        )
    return replace(pool, admission={**pool.admission, kind: {**known, "limit": limit}})


def get_pool(repo: Repository) -> Pool:
    """Return the worker pool."""

    def look(snapshot: Snapshot) -> Pool:
        return _from_document(records.find(snapshot, _NOUN, _NOUN))

    return repo.store.view(look)


def _from_document(document: Mapping[str, Any] | None) -> Pool:
    fields: dict[str, Any] = {**document, "state": PoolState(document["state"])} if document else {}
    return Pool(**fields)


def note_infrastructure_in(
    tx: Transaction, repo: Repository, task_id: str, text: str, kind: str = ""
) -> Pool:
    """Record that work on a task could not start, through no fault of the task.

    The same failure on three tasks pauses the pool, unless an agent of this kind has worked in between. Tasks
    that share it are not charged for it.
    """
    tx.lock_areas(_AREA)
    before = _from_document(records.lock(tx, _NOUN, _NOUN))
    pool, alike = with_failure(before, task_id, text, repo.store.wall_of(tx.now), kind)
    is_new_pause = pool.is_paused and not before.is_paused
    records.put(tx, _NOUN, as_dict(pool), "paused" if is_new_pause else "failed")
    _excuse(tx, alike)
    return pool


def _excuse(tx: Transaction, task_ids: Sequence[str]) -> None:
    """Undo what failures of the environment were counted against these tasks."""
    tasks = [find_task(tx, task_id) for task_id in task_ids]
    for lineage_id in sorted({task.lineage for task in tasks if task is not None}):
        if not any(task_id in find_lineage(tx, lineage_id).uncharged for task_id in task_ids):
            continue
        lineage = lock_lineage(tx, lineage_id)
        parked = [name for name, why in lineage.parked.items() if name in task_ids and NOT_STARTED in why]
        uncharged = {name: count for name, count in lineage.uncharged.items() if name not in task_ids}
        still_parked = {name: why for name, why in lineage.parked.items() if name not in parked}
        put_lineage(tx, replace(lineage, uncharged=uncharged, parked=still_parked), "excused")
        for task_id in parked:
            _return_to_queue(tx, task_id)


def _return_to_queue(tx: Transaction, task_id: str) -> None:
    """Make a task ready again that waits for a person only because of the environment."""
    task = lock_task(tx, task_id)
    if task.state != WAITING:
        return
    why = "it could not begin, and neither could others: it was the environment"
    move_task(tx, task, READY, why=why)
    facts = {"task": task.id, "why": why, "attempt": task.attempt, "state": READY, "lapses": task.lapses}
    tx.record("task.returned", "", "", facts | {"handed": True})


def note_rate_limit(repo: Repository, kind: str, running: int, retry_after_ms: int) -> Pool:
    """Record that a provider limits requests: admit fewer agents of this kind, and none for a while."""
    return _change(
        repo, "slowed", lambda pool, now: slow_down(pool, kind[:64], max(running, 1), retry_after_ms, now)
    )


def note_success(repo: Repository, kind: str) -> Pool:
    """Record that an agent of this kind has worked: admit one more, and forget earlier failures to start."""
    pool = get_pool(repo)
    if kind not in pool.admission and _without_failures_of(pool, kind) == pool:
        return pool  # usually there is nothing to write
    return _change(
        repo, "quickened", lambda pool, now: _without_failures_of(_speed_up(pool, kind, now), kind)
    )


def check_may_change(snapshot: Snapshot, what: str) -> None:
    """Refuse to land or deploy while a person has paused that, too.

    Raises:
        WaitsForPerson: it is paused.
    """
    pool = _from_document(records.find(snapshot, _NOUN, _NOUN))
    if pool.pauses_landing:
        by = f"{pool.paused_by} paused" if pool.paused_by else "paused:"
        raise WaitsForPerson(
            f'{by} {what}: "{pool.paused}"', code="RUN_PAUSED", hint="continue: landlane run resume"
        )


def pause_pool(repo: Repository, session: Session, why: str, *, pauses_landing: bool = False) -> Pool:
    """Start no further work until the pool is resumed; running attempts continue.

    With `pauses_landing`, nothing lands and nothing is deployed until then, either.

    Raises:
        Malformed: there is no reason.
        NotAllowed: the session has a role.
    """
    _check_may_decide(session)
    reason = check_reason(why)

    def change(pool: Pool, now: int) -> Pool:
        return pause(pool, reason, now, session.agent, pauses_landing=pauses_landing)

    return _change(repo, "paused", change, session=session)


def resume_pool(repo: Repository, session: Session) -> Pool:
    """Start work again, and forget earlier failures to start.

    Raises:
        NotAllowed: the session has a role.
    """
    _check_may_decide(session)
    return _change(repo, "resumed", lambda pool, _: resume(pool), session=session)


def _check_may_decide(session: Session) -> None:
    """Refuse a session with a role, which must not control the other workers."""
    if session.role:
        raise forbidden(session.agent, session.role, "no role may pause or resume workers")


def _change(
    repo: Repository, verb: str, change: Callable[[Pool, int], Pool], session: Session | None = None
) -> Pool:
    def work(tx: Transaction) -> Pool:
        before = _from_document(records.lock(tx, _NOUN, _NOUN))
        pool = change(before, repo.store.wall_of(tx.now))
        if pool != before:
            records.put(tx, _NOUN, as_dict(pool), verb, session)
            tx.has_freed = True
        return pool

    return repo.change(work, areas=_AREA)
