"""Ask a person to approve a deploy, and look up the answer."""

from __future__ import annotations

from landlane.errors import (
    LandlaneError,
    NotAllowed,
    WaitsForPerson,
)
from landlane.gates import ask as gates
from landlane.gates.model import DEPLOY, LONGEST_WHY, WAITING
from landlane.gates.subject import estimate_risk, evidence_for
from landlane.tasks.model import AT_WORK
from landlane.tasks.records import tasks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session


def is_deploy_approved(repo: Repository, about: Mapping[str, Any]) -> bool:
    """Whether a person's last word on this commit, command and target was a yes."""
    return repo.store.view(lambda snapshot: gates.find_approval(snapshot, DEPLOY, about)) is not None


def ask_for_deploy(repo: Repository, session: Session, about: Mapping[str, Any]) -> LandlaneError:
    """Ask a person for a deploy; tells what to say to whoever wanted it.

    Its only task in hand rests meanwhile; whoever has none, or several, just has to come again.
    """
    why = f"deploy {about['commit'][:12]} to {about['target']}: {about['command']}"[:LONGEST_WHY]
    owned = repo.store.view(lambda snapshot: tasks_of(snapshot, session.id))
    tasks = [task for task in owned if task.state in AT_WORK]
    found = evidence_for(repo, tasks[0] if len(tasks) == 1 else None, about["commit"])
    risk = estimate_risk(repo, DEPLOY, found, has_checks=None)
    if len(tasks) == 1:
        gate = gates.ask(repo, session, tasks[0].id, DEPLOY, why, about, risk=risk, evidence=found)
    else:
        gate = gates.ask_freely(repo, session, DEPLOY, why, about, risk=risk, evidence=found)
    if gate.state == WAITING:
        return WaitsForPerson(
            f"{gate.id} waits for a person: {why}",
            code="WAITS_FOR_PERSON",
            hint=f"a person says `landlane gate approve {gate.id}`; then give the same command again",
            gate=gate.id,
            head=about["commit"],
        )
    said = f": {gate.answer}" if gate.answer else ""
    return NotAllowed(
        f"{gate.id} was {gate.state} by {gate.answered_by}{said}",
        code="GATE_REJECTED",
        hint=f"deploy another commit; a person who thinks otherwise by now says `gate approve {gate.id}`",
        gate=gate.id,
    )
