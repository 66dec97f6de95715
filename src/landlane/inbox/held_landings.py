"""Landings that wait for a person, with risk and evidence."""

from __future__ import annotations

from landlane.gates.model import APPROVAL
from landlane.gates.subject import MOST_PATHS, cost_of, describe_change, estimate_risk
from landlane.tasks.records import get_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.landing.model import Landing
    from landlane.repository import Repository


def landing_evidence(repo: Repository, landing: Landing) -> tuple[int, dict[str, Any]]:
    """How much hangs on an entry that waits for a person, and what there is to see of it."""
    found = describe_change(repo, landing.head) or {
        "paths": landing.paths[:MOST_PATHS],
        "files": len(landing.paths),
    }
    task = get_task(repo, landing.task) if landing.task else None
    if task is not None:
        found |= {"title": task.title, "attempt": landing.attempt, "cost": cost_of(repo, task.lineage)}
    checks = repo.settings.landing.checks
    return estimate_risk(repo, APPROVAL, found, has_checks=None if checks is None else bool(checks)), found
