"""Landings that wait for a person, with risk and evidence."""

from __future__ import annotations

from landlane.gates.model import APPROVAL
from landlane.gates.subject import MOST_PATHS, cost_of, describe_change, estimate_risk
from landlane.tasks.read import get_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.context import Site
    from landlane.landing.model import Landing


def landing_evidence(site: Site, landing: Landing) -> tuple[int, dict[str, Any]]:
    """How much hangs on an entry that waits for a person, and what there is to see of it."""
    found = describe_change(site, landing.head) or {
        "paths": landing.paths[:MOST_PATHS],
        "files": len(landing.paths),
    }
    task = get_task(site.context, landing.task) if landing.task else None
    if task is not None:
        found |= {"title": task.title, "attempt": landing.attempt, "cost": cost_of(site, task.lineage)}
    checks = site.settings.landing.checks
    return estimate_risk(site, APPROVAL, found, has_checks=None if checks is None else bool(checks)), found
