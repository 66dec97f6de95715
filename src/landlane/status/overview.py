"""Read the overview of a repository from its store."""

from __future__ import annotations

import os
from collections import Counter

from landlane.claims.take import list_claims
from landlane.gates.records import list_gates
from landlane.inbox.items import find_waiting
from landlane.landing.model import OPEN, QueueState
from landlane.landing.unattended import list_unattended
from landlane.sessions.join import live_sessions
from landlane.status.next_steps import Overview
from landlane.store import records
from landlane.tasks.attempts import running_attempts
from landlane.tasks.model import DEAD, FAILED, IN_PROGRESS, READY, TaskState
from landlane.tasks.records import list_tasks
from landlane.tasks.waits import find_waits
from landlane.tasks.worker_pool import get_pool
from landlane.workspaces.moved import find_former_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session


def read_overview(repo: Repository, me: Session | None = None) -> Overview:
    """Return the overview for the caller with this session."""
    tasks = list_tasks(repo)
    counts = Counter(task.state for task in tasks)
    queues = repo.store.view(lambda snapshot: records.find_all(snapshot, "queue"))
    paused = [queue for queue in queues if queue["state"] == QueueState.PAUSED]
    landings = repo.store.view(lambda snapshot: records.find_all(snapshot, "landing", OPEN))
    failing = [
        f"{one['target']} itself fails {one['failing']['check']}" for one in queues if one.get("failing")
    ]
    red = (
        str(one["reason"]) for one in (*paused, *landings) if one["code"] == "TARGET_RED" and one["reason"]
    )
    ready = [task for task in tasks if task.state == READY]
    waits = find_waits(repo, ready) if ready else {}
    return Overview(
        tasks={state: counts[state] for state in TaskState if counts[state]},
        mine=tuple(task.id for task in tasks if me and task.state in IN_PROGRESS and task.session == me.id),
        ready=tuple(task.id for task in ready if task.id not in waits),
        dead=tuple(task.id for task in find_waiting(repo).dead) if counts[DEAD] or counts[FAILED] else (),
        gates=tuple(gate.task or gate.id for gate in list_gates(repo)),
        sessions=sum(not session.is_holder for session in live_sessions(repo)),
        claims=len({claim.pattern for claim in list_claims(repo)}),
        attempts=len(running_attempts(repo)),
        landings=len(landings),
        pool_paused=get_pool(repo).paused,
        queue_paused=next((str(queue["reason"]) for queue in paused if queue["code"] != "TARGET_RED"), ""),
        moved_from=os.path.dirname(find_former_place(repo)),
        unattended=tuple(landing.id for landing in list_unattended(repo)),
        red=next(iter(failing), "") or next(red, ""),
        red_lines=next((one["failing"]["lines"] for one in queues if one.get("failing")), ()),
    )
