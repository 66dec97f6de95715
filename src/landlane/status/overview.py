"""Looking at everything at once, briefly: what is there to do, what runs, and what keeps it from going on."""

from __future__ import annotations

from landlane.claims.read import list_claims
from landlane.gates.records import list_gates
from landlane.landing.model import OPEN as UNDER_WAY
from landlane.sessions.join import live_sessions
from landlane.status.next_steps import Standpoint
from landlane.store import records
from landlane.tasks.attempts import running_attempts
from landlane.tasks.model import AT_WORK, DEAD, READY, STATES
from landlane.tasks.records import list_tasks
from landlane.tasks.worker_pool import pool_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session


def stand(repo: Repository, me: Session | None = None) -> Standpoint:
    """How everything stands, as the caller sees it."""
    tasks = list_tasks(repo)
    queues = [queue for queue in _records(repo, "queue") if queue["state"] == "paused"]
    landings = _records(repo, "landing", UNDER_WAY)
    reasons = [
        str(one["reason"]) for one in (*queues, *landings) if one["code"] == "TARGET_RED" and one["reason"]
    ]
    mine = [task.id for task in tasks if me and task.state in AT_WORK and task.session == me.id]
    count = {state: sum(task.state == state for task in tasks) for state in STATES}
    return Standpoint(
        tasks={state: number for state, number in count.items() if number},
        mine=tuple(mine),
        ready=tuple(task.id for task in tasks if task.state == READY),
        dead=tuple(task.id for task in tasks if task.state == DEAD),
        gates=tuple(gate.task or gate.id for gate in list_gates(repo)),
        sessions=sum(not session.is_holder for session in live_sessions(repo)),
        claims=len({claim.pattern for claim in list_claims(repo)}),
        attempts=len(running_attempts(repo)),
        landings=len(landings),
        pool_paused=pool_of(repo).paused,
        queue_paused=next((str(queue["reason"]) for queue in queues if queue["code"] != "TARGET_RED"), ""),
        red=reasons[0] if reasons else "",
    )


def _records(repo: Repository, noun: str, states: tuple[str, ...] = ()) -> list[records.Document]:
    return repo.store.view(lambda snapshot: records.all_of(snapshot, noun, states))
