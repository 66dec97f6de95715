"""The order in which tasks are offered."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.store.interface import Snapshot


FIRST_LOOK = 4  # mostly one of the first can be taken
PAGE = 50
_HOUR_MS = 3_600_000


def rank_of(ready_at: int, priority: int) -> int:
    """Where a task stands in the order: lower comes first."""
    return ready_at - priority * _HOUR_MS


def ready_in_order(snapshot: Snapshot, role: str) -> Iterator[tuple[str, str]]:
    """The ready tasks for a role and those for everybody, best first: (id, declared paths)."""
    lines = [_line(snapshot, one) for one in dict.fromkeys((role, ""))]
    heads = [next(line, None) for line in lines]
    while any(head is not None for head in heads):
        best = min((head for head in heads if head is not None), key=lambda head: head[:3])
        at = heads.index(best)
        heads[at] = next(lines[at], None)
        yield best[2], best[3]


def _line(snapshot: Snapshot, role: str) -> Iterator[tuple[int, int, str, str]]:
    """The ready tasks of one role: (rank, length of the id, id, declared paths), page by page."""
    rank, last, limit = -(2**62), "", FIRST_LOOK
    while rows := snapshot.all("tasks_ready_after", role=role, rank=rank, id=last, limit=limit):
        for row in rows:
            last, rank = row["id"], row["rank"]
            yield rank, len(last), last, row["paths"]
        if len(rows) < limit:
            return
        limit = PAGE
