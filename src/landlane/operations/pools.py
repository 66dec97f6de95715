"""The pool as the store knows it: paused when its environment is broken, slower when a provider asks."""

from __future__ import annotations

from landlane.domain.pools import (
    POOL,
    Pool,
    paused,
    proved_sound,
    quickened,
    resumed,
    slowed,
    with_failure,
)
from landlane.domain.retries import NOT_STARTED
from landlane.domain.tasks import READY, WAITING
from landlane.operations import records
from landlane.operations.tasks import check_reason
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.domain.agents import Session
    from landlane.operations.context import Context
    from landlane.ports.store import Change, Reading

_AREA = {"//pool": True}  # two that write of it for the first time must not miss each other


def pool_in(reading: Reading) -> Pool:
    """The pool as one transaction sees it."""
    document = records.find(reading, POOL, POOL)
    return Pool(**document) if document else Pool()


def pool_of(context: Context) -> Pool:
    """The pool as it stands."""
    return context.store.view(pool_in)


def note_infrastructure(context: Context, task_id: str, text: str, kind: str = "") -> Pool:
    """Work on a task could not begin, for no fault of its own.

    The same on three tasks pauses the pool, unless an agent of the same kind got through between them.
    """
    return context.change(lambda tx: note_infrastructure_in(tx, context, task_id, text, kind))


def note_infrastructure_in(tx: Change, context: Context, task_id: str, text: str, kind: str = "") -> Pool:
    """The same inside a transaction; what was counted against tasks that share the failure is forgotten."""
    tx.lock_areas(_AREA)
    before = _locked(tx)
    pool, alike = with_failure(before, task_id, text, context.store.wall_of(tx.now), kind)
    is_new = bool(pool.paused and not before.paused)
    records.put(tx, POOL, as_dict(pool), "paused" if is_new else "failed")
    _excuse(tx, alike)
    return pool


def _excuse(tx: Change, tasks: Sequence[str]) -> None:
    """It was the environment: none of these tasks is nearer to being put aside for it."""
    from landlane.operations.lineages import find_lineage, lineage_in, put_lineage  # noqa: PLC0415 - a circle

    lineages = sorted({row[15] for row in (tx.one("task_get", task=task_id) for task_id in tasks) if row})
    for lineage_id in lineages:
        if not any(task_id in find_lineage(tx, lineage_id).uncharged for task_id in tasks):
            continue
        lineage = lineage_in(tx, lineage_id)
        parked = [name for name, why in lineage.parked.items() if name in tasks and NOT_STARTED in why]
        left = {name: count for name, count in lineage.uncharged.items() if name not in tasks}
        kept = {name: why for name, why in lineage.parked.items() if name not in parked}
        put_lineage(tx, replace(lineage, uncharged=left, parked=kept), "excused")
        for task_id in parked:
            _take_up(tx, task_id)


def _take_up(tx: Change, task_id: str) -> None:
    """A person was asked about a task that could not begin: it was not the task, so it is ready again."""
    from landlane.operations.task_rows import get_in, move_task  # noqa: PLC0415 - few environments break

    task = get_in(tx, task_id)
    if task.state != WAITING:
        return
    why = "it could not begin, and neither could others: it was the environment"
    move_task(tx, task, READY, why=why)
    facts = {"task": task.id, "why": why, "attempt": task.attempt, "state": READY, "lapses": task.lapses}
    tx.record("task.returned", "", "", facts | {"handed": True})


def note_rate_limit(context: Context, kind: str, running: int, retry_after_ms: int) -> Pool:
    """A provider wants fewer requests: half as many agents of this kind, and none before it said so."""
    return _change(
        context, "slowed", lambda pool, now: slowed(pool, kind[:64], max(running, 1), retry_after_ms, now)
    )


def note_success(context: Context, kind: str) -> Pool:
    """An agent of this kind got through: one more may run, until all may, and its environment is sound."""
    pool = pool_of(context)
    if kind not in pool.admission and proved_sound(pool, kind) == pool:  # mostly there is nothing to say
        return pool
    return _change(context, "quickened", lambda pool, now: proved_sound(quickened(pool, kind, now), kind))


def pause_pool(context: Context, session: Session, why: str) -> Pool:
    """Start no further work until somebody resumes it; what runs goes on.

    Raises:
        Malformed: there is no reason.
    """
    reason = check_reason(why)
    return _change(
        context, "paused", lambda pool, now: paused(pool, reason, now, session.agent), session=session
    )


def resume_pool(context: Context, session: Session) -> Pool:
    """Start work again; what the environment did before is forgotten."""
    return _change(context, "resumed", lambda pool, _: resumed(pool), session=session)


def _change(
    context: Context, verb: str, step: Callable[[Pool, int], Pool], session: Session | None = None
) -> Pool:
    def work(tx: Change) -> Pool:
        before = _locked(tx)
        pool = step(before, context.store.wall_of(tx.now))
        if pool != before:
            records.put(tx, POOL, as_dict(pool), verb, session)
            tx.frees = True
        return pool

    return context.change(work, areas=_AREA)


def _locked(tx: Change) -> Pool:
    document = records.lock(tx, POOL, POOL)
    return Pool(**document) if document else Pool()
