"""Pause, slow down and resume the worker pool.

It pauses when its environment is broken, and slows down when a provider asks for it.
"""

from __future__ import annotations

from landlane.store import records
from landlane.tasks.lineage import find_lineage, lineage_in, put_lineage
from landlane.tasks.model import READY, WAITING, check_reason
from landlane.tasks.records import find_task, get_in, move_task
from landlane.tasks.retry_rules import NOT_STARTED, normalise
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction

POOL = "pool"
OPEN = "open"
PAUSED = "paused"

MOST_ALIKE = 3  # the same failure of the environment on so many tasks is not the tasks' fault
WINDOW_MS = 3_600_000  # failures further apart have nothing to do with each other
SHORTEST_LULL_MS = 10_000  # those who were told together to slow down are one signal
_MOST_KEPT = 50
_LONGEST_KEPT = 500
_AREA = {"//pool": True}  # two that write of it for the first time must not miss each other


@value
class Pool:
    """The pool as it stands. Instants are the calendar's, in milliseconds."""

    id: str = POOL
    state: str = OPEN
    paused: str = ""  # why it starts nothing; empty while it does
    paused_at: int = 0
    paused_by: str = ""  # who did; empty when it did so by itself
    infra: Sequence[Mapping[str, Any]] = ()  # {task, text, at, kind}: what kept work from beginning, lately
    admission: Mapping[str, Mapping[str, Any]] = {}  # kind of agent → {limit, until, before}


def with_failure(
    pool: Pool, task_id: str, text: str, now: int, kind: str = ""
) -> tuple[Pool, tuple[str, ...]]:
    """The pool after work on a task could not begin; and all tasks with this failure, if they are many.

    `kind` is the kind of agent that should have begun, as far as that is known.
    """
    said = normalise(text)[:_LONGEST_KEPT]
    kept = [
        one
        for one in pool.infra
        if now - one["at"] < WINDOW_MS and (one["task"], one["text"]) != (task_id, said)
    ]
    kept = [*kept, {"task": task_id, "text": said, "at": now, "kind": kind}][-_MOST_KEPT:]
    pool = replace(pool, infra=kept)
    alike = tuple(dict.fromkeys(str(one["task"]) for one in kept if one["text"] == said))
    if len(alike) < MOST_ALIKE:
        return pool, ()
    if not pool.paused:
        first = " ".join(text.split())[:200]
        why = f"{len(alike)} tasks could not be started for the same reason: {first}"
        pool = paused(pool, why, now)
    return pool, alike


def proved_sound(pool: Pool, kind: str) -> Pool:
    """The pool after an agent of a kind got through: what kept others of it from beginning is over."""
    left = [one for one in pool.infra if not kind or one.get("kind") != kind]
    return pool if len(left) == len(pool.infra) or pool.paused else replace(pool, infra=left)


def paused(pool: Pool, why: str, now: int, by: str = "") -> Pool:
    """The pool that starts nothing."""
    return replace(pool, state=PAUSED, paused=why, paused_at=now, paused_by=by)


def resumed(pool: Pool) -> Pool:
    """The pool that starts work again, and has forgotten what its environment did."""
    return replace(pool, state=OPEN, paused="", paused_at=0, paused_by="", infra=())


def slowed(pool: Pool, kind: str, running: int, retry_after_ms: int, now: int) -> Pool:
    """Admit half as many of a kind as run, and none for a while; those told together halve it once."""
    known = dict(pool.admission.get(kind, {}))
    until = now + max(retry_after_ms, SHORTEST_LULL_MS)
    if known and now < int(known["until"]):
        limit, before = known["limit"], known["before"]
    else:
        least = running if not known or known["limit"] is None else min(running, int(known["limit"]))
        limit = max(1, least // 2)
        before = max(running, int(known.get("before") or 0))
    until = max(until, int(known.get("until") or 0))
    entry = {"limit": limit, "until": until, "before": before}
    return replace(pool, admission={**pool.admission, kind: entry})


def quickened(pool: Pool, kind: str, now: int) -> Pool:
    """Admit one more of a kind after a success; without a limit once all are back."""
    known = pool.admission.get(kind)
    if not known or now < int(known["until"]):
        return pool
    limit = int(known["limit"] or 0) + 1
    if limit > int(known.get("before") or 0):
        return replace(pool, admission={name: one for name, one in pool.admission.items() if name != kind})
    return replace(pool, admission={**pool.admission, kind: {**known, "limit": limit}})


def pool_in(snapshot: Snapshot) -> Pool:
    """The pool as one transaction sees it."""
    document = records.find(snapshot, POOL, POOL)
    return Pool(**document) if document else Pool()


def pool_of(repo: Repository) -> Pool:
    """The pool as it stands."""
    return repo.store.view(pool_in)


def note_infrastructure(repo: Repository, task_id: str, text: str, kind: str = "") -> Pool:
    """Work on a task could not begin, for no fault of its own.

    The same on three tasks pauses the pool, unless an agent of the same kind got through between them.
    """
    return repo.change(lambda tx: note_infrastructure_in(tx, repo, task_id, text, kind))


def note_infrastructure_in(
    tx: Transaction, repo: Repository, task_id: str, text: str, kind: str = ""
) -> Pool:
    """The same inside a transaction; what was counted against tasks that share the failure is forgotten."""
    tx.lock_areas(_AREA)
    before = _locked(tx)
    pool, alike = with_failure(before, task_id, text, repo.store.wall_of(tx.now), kind)
    is_new = bool(pool.paused and not before.paused)
    records.put(tx, POOL, as_dict(pool), "paused" if is_new else "failed")
    _excuse(tx, alike)
    return pool


def _excuse(tx: Transaction, tasks: Sequence[str]) -> None:
    """It was the environment: none of these tasks is nearer to being put aside for it."""
    found = [find_task(tx, task_id) for task_id in tasks]
    lineages = sorted({task.lineage for task in found if task is not None})
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


def _take_up(tx: Transaction, task_id: str) -> None:
    """A person was asked about a task that could not begin: it was not the task, so it is ready again."""
    task = get_in(tx, task_id)
    if task.state != WAITING:
        return
    why = "it could not begin, and neither could others: it was the environment"
    move_task(tx, task, READY, why=why)
    facts = {"task": task.id, "why": why, "attempt": task.attempt, "state": READY, "lapses": task.lapses}
    tx.record("task.returned", "", "", facts | {"handed": True})


def note_rate_limit(repo: Repository, kind: str, running: int, retry_after_ms: int) -> Pool:
    """A provider wants fewer requests: half as many agents of this kind, and none before it said so."""
    return _change(
        repo, "slowed", lambda pool, now: slowed(pool, kind[:64], max(running, 1), retry_after_ms, now)
    )


def note_success(repo: Repository, kind: str) -> Pool:
    """An agent of this kind got through: one more may run, until all may, and its environment is sound."""
    pool = pool_of(repo)
    if kind not in pool.admission and proved_sound(pool, kind) == pool:  # mostly there is nothing to say
        return pool
    return _change(repo, "quickened", lambda pool, now: proved_sound(quickened(pool, kind, now), kind))


def pause_pool(repo: Repository, session: Session, why: str) -> Pool:
    """Start no further work until somebody resumes it; what runs goes on.

    Raises:
        Malformed: there is no reason.
    """
    reason = check_reason(why)
    return _change(
        repo, "paused", lambda pool, now: paused(pool, reason, now, session.agent), session=session
    )


def resume_pool(repo: Repository, session: Session) -> Pool:
    """Start work again; what the environment did before is forgotten."""
    return _change(repo, "resumed", lambda pool, _: resumed(pool), session=session)


def _change(
    repo: Repository, verb: str, step: Callable[[Pool, int], Pool], session: Session | None = None
) -> Pool:
    def work(tx: Transaction) -> Pool:
        before = _locked(tx)
        pool = step(before, repo.store.wall_of(tx.now))
        if pool != before:
            records.put(tx, POOL, as_dict(pool), verb, session)
            tx.frees = True
        return pool

    return repo.change(work, areas=_AREA)


def _locked(tx: Transaction) -> Pool:
    document = records.lock(tx, POOL, POOL)
    return Pool(**document) if document else Pool()
