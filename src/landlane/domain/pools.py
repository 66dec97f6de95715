"""The pool of workers: whether it runs, what its environment did to it, and how many of a kind it admits."""

from __future__ import annotations

from landlane.domain.retries import normalise
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

POOL = "pool"
OPEN = "open"
PAUSED = "paused"

MOST_ALIKE = 3  # the same failure of the environment on so many tasks is not the tasks' fault
WINDOW_MS = 3_600_000  # failures further apart have nothing to do with each other
SHORTEST_LULL_MS = 10_000  # those who were told together to slow down are one signal
_MOST_KEPT = 50
_LONGEST_KEPT = 500


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
