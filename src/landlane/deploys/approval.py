"""Ask a person to approve a deploy, and look up the answer."""

from __future__ import annotations

from landlane.errors import LandlaneError, NotAllowed, WaitsForPerson
from landlane.gates.model import DEPLOY, LONGEST_WHY, WAITING
from landlane.gates.open import open_gate, open_task_gate
from landlane.gates.records import find_approval
from landlane.gates.subject import collect_evidence, estimate_risk
from landlane.tasks.model import IN_PROGRESS
from landlane.tasks.records import tasks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session


def is_deploy_approved(repo: Repository, about: Mapping[str, Any]) -> bool:
    """Return whether a person's latest answer for this commit, command and target was a yes."""
    return repo.store.view(lambda snapshot: find_approval(snapshot, DEPLOY, about)) is not None


def ask_for_deploy(repo: Repository, session: Session, about: Mapping[str, Any]) -> LandlaneError:
    """Ask a person to approve a deploy, and return the error for the caller.

    If the session has exactly one task in progress, the task waits for the answer.
    """
    why = f"deploy {about['commit'][:8]} to {about['target']}: {about['command']}"[:LONGEST_WHY]
    owned = repo.store.view(lambda snapshot: tasks_of(snapshot, session.id))
    tasks = [task for task in owned if task.state in IN_PROGRESS]
    found = collect_evidence(repo, tasks[0] if len(tasks) == 1 else None, about["commit"])
    risk = estimate_risk(repo, DEPLOY, found, has_checks=None)
    if len(tasks) == 1:
        gate = open_task_gate(repo, session, tasks[0].id, DEPLOY, why, about, risk=risk, evidence=found)
    else:
        gate = open_gate(repo, session, DEPLOY, why, about, risk=risk, evidence=found)
    if gate.state == WAITING:
        return WaitsForPerson(
            f"{gate.id} waits for a person: {why}",
            code="WAITS_FOR_PERSON",
            hint=f"once a person approves it, run the same command again: landlane gate show {gate.id}",
            gate=gate.id,
            head=about["commit"],
        )
    said = f": {gate.answer}" if gate.answer else ""
    return NotAllowed(
        f"{gate.id} was {gate.state} by {gate.answered_by}{said}",
        code="GATE_REJECTED",
        hint=f"deploy another commit, or ask a person to reconsider: landlane gate approve {gate.id}",
        gate=gate.id,
    )
