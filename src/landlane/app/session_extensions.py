"""What roles and tasks add to sessions."""

from __future__ import annotations

from landlane.errors import NotAllowed, WaitsForPerson
from landlane.gates.model import GateKind, GateState
from landlane.gates.open import open_gate
from landlane.roles.model import find_role
from landlane.tasks.return_lapsed import return_tasks, waits_for_person
from landlane.tasks.worker_paths import find_request
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.store.interface import Transaction


@value
class Sessions:
    """Implements `sessions.extensions.SessionExtensions` with roles and tasks."""

    def check_role(self, settings: Settings, name: str) -> None:
        find_role(settings, name)

    def check_worker_claim(
        self, repo: Repository, session: Session, patterns: Sequence[Pattern], why: str
    ) -> None:
        asked = find_request(repo, session, patterns, why)
        if asked is None:
            return
        about = {"text": f"{asked.task} may also change {asked.paths}"}
        gate = open_gate(repo, session, GateKind.APPROVAL, why, about)
        if gate.state == GateState.APPROVED:
            return
        if gate.state == GateState.WAITING:
            raise WaitsForPerson(
                f"{gate.id} waits for a person: may {asked.task} also change {asked.paths}?",
                code="WAITS_FOR_PERSON",
                hint=f"claim them again once it is approved: landlane gate show {gate.id}",
                gate=gate.id,
            )
        raise NotAllowed(
            f"{gate.id} was {gate.state} by {gate.answered_by}",
            code="GATE_REJECTED",
            hint="change only what the task names",
            gate=gate.id,
        )

    def keeps_lease(self, tx: Transaction, session_id: str) -> bool:
        return waits_for_person(tx, session_id)

    def on_end(self, tx: Transaction, session: Session, *, is_own_will: bool) -> None:
        return_tasks(tx, session, is_own_will=is_own_will)
