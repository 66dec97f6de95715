"""The pool of workers as JSON for programs and as lines for people."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.domain.pools import Pool


def pool_json(pool: Pool) -> dict[str, Any]:
    """The pool as every door shows it."""
    return {
        "state": pool.state,
        "paused": pool.paused or None,
        "paused_at": rfc3339(pool.paused_at) if pool.paused_at else None,
        "paused_by": pool.paused_by or None,
        "failures": [
            {"task": one["task"], "reason": one["text"], "at": rfc3339(one["at"])} for one in pool.infra
        ],
        "admission": {
            kind: {"limit": one["limit"], "until": rfc3339(one["until"])}
            for kind, one in sorted(pool.admission.items())
        },
    }


def pool_lines(pool: Pool) -> list[str]:
    """The pool for a person."""
    lines = ["the pool starts work"]
    if pool.paused:
        by = f" by {pool.paused_by}" if pool.paused_by else ""
        lines = [f"the pool is paused{by} since {rfc3339(pool.paused_at)}: {pool.paused}"]
        lines.append("  mend it, then: landlane pool resume")
    lines += [f"  {one['task']} could not begin: {one['text']}" for one in pool.infra]
    lines += [
        f"  {kind}: at most {one['limit']} at once, and none before {rfc3339(one['until'])}"
        for kind, one in sorted(pool.admission.items())
    ]
    return lines
