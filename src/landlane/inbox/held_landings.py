"""Landings that wait for approval, in the form of gates."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.gates.model import APPROVAL, WAITING
from landlane.gates.subject import MOST_PATHS, diff_size, estimate_risk, lineage_cost
from landlane.landing.to_json import landing_json
from landlane.tasks.records import get_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.gates.json_types import GateEvidenceJson
    from landlane.inbox.json_types import HeldLandingJson
    from landlane.landing.model import Landing
    from landlane.repository import Repository


def landing_gate_json(repo: Repository, landing: Landing, now: int) -> HeldLandingJson:
    """Return a landing that waits for approval in the JSON form of a gate, with risk and evidence."""
    evidence: GateEvidenceJson = diff_size(repo, landing.head) or {
        "paths": landing.paths[:MOST_PATHS],
        "files": len(landing.paths),
    }
    if landing.task:
        task = get_task(repo, landing.task)
        cost = lineage_cost(repo, task.lineage)
        evidence |= {"title": task.title, "attempt": landing.attempt, "cost": cost}
        if task.head and task.head == landing.head:  # the commit whose evidence was verified
            evidence["verified"] = ["paths", *([task.check] if task.check else [])]
    checks = repo.settings.landing.checks
    has_checks = None if checks is None else bool(checks)
    return {
        "id": landing.id,
        "kind": "landing",
        "state": WAITING,
        "why": landing.gate,
        "about": {"head": landing.head, "branch": landing.branch, "target": landing.target},
        "risk": estimate_risk(repo, APPROVAL, evidence, has_checks=has_checks),
        "task": landing.task or None,
        "attempt": landing.attempt or None,
        "agent": landing.agent,
        "session": landing.session,
        "evidence": evidence,
        "asked_at": rfc3339(landing.submitted_at),
        "waited_seconds": max(now - landing.submitted_at, 0) // 1000,
        "landing": landing_json(landing),
    }
