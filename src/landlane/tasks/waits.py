"""What open tasks wait for: other tasks, a person, a landing, a claimed path, a provider's limit."""

from __future__ import annotations

from landlane.claims.agent_locks import find_agent_locks
from landlane.claims.take import claims_near
from landlane.patterns.pattern import alternatives_overlap
from landlane.store import records
from landlane.tasks.extensions import installed
from landlane.tasks.lineage import held_in
from landlane.tasks.model import BLOCKED, DEAD, FAILED, READY, Attempt, Wait, WaitKind
from landlane.tasks.records import get_task, task_patterns
from landlane.tasks.retry_rules import RATE_LIMITED
from landlane.tasks.worker_caps import agent_named, agents_running, why_full

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Alternative
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task
    from landlane.tasks.pick import NothingReady


def find_waits(repo: Repository, tasks: Sequence[Task]) -> dict[str, tuple[Wait, ...]]:
    """Return what each of these tasks waits for; tasks that wait for nothing are left out."""

    def look(snapshot: Snapshot) -> dict[str, tuple[Wait, ...]]:
        from_others = installed().waits.find(snapshot, repo, {task.id for task in tasks})
        until = held_in(snapshot)
        now = repo.store.wall_of(snapshot.now)
        held = {task_id: at for task_id, at in until.items() if at > now}
        ready = [task for task in tasks if task.state == READY]
        claims = _find_claims(snapshot, repo, ready)
        workers = _find_full_caps(snapshot, repo, ready)
        waits = {
            task.id: (
                *dependency_waits(task),
                *from_others.get(task.id, ()),
                *(_retries(snapshot, task, held[task.id]) if task.id in held else ()),
                *claims.get(task.id, ()),
                *workers.get(task.id, ()),
            )
            for task in tasks
        }
        for task in tasks:
            if task.state == BLOCKED and not waits[task.id] and task.why:
                waits[task.id] = (Wait(kind=WaitKind.BLOCKED, why=task.why),)
            elif task.state in (FAILED, DEAD) and not installed().waits.is_given_up(snapshot, task):
                waits[task.id] = (Wait(kind=WaitKind.DECISION, needs_person=True, why=task.why),)
        return {task_id: found for task_id, found in waits.items() if found}

    return repo.store.view(look)


def find_held_up(repo: Repository, nothing: NothingReady) -> list[tuple[Task, tuple[Wait, ...]]]:
    """Return the tasks that are ready except for one thing, each with what it waits for."""
    over = dict(nothing.over_budget)
    later = (task_id for task_id, _ in nothing.held_back)
    tasks = [get_task(repo, task_id) for task_id in dict.fromkeys((*nothing.held_up, *later, *over))]
    waits = find_waits(repo, tasks)
    budgets = {task_id: (Wait(kind=WaitKind.BUDGET, why=why),) for task_id, why in over.items()}
    return [(task, budgets.get(task.id) or waits.get(task.id, ())) for task in tasks]


def dependency_waits(task: Task) -> tuple[Wait, ...]:
    """Return the tasks that must be done before a blocked one, without a look at the store."""
    waits = [Wait(kind=WaitKind.TASK, id=before) for before in task.open_after]
    return tuple(waits) if task.state == BLOCKED else ()


def _retries(snapshot: Snapshot, task: Task, until: int) -> tuple[Wait, ...]:
    """Return that a task is offered again later, because of a provider's limit or after a failure."""
    documents = records.find_by_key(snapshot, "attempt", task.id)
    attempts = sorted(map(Attempt.from_document, documents), key=lambda attempt: attempt.started_at)
    if attempts and attempts[-1].code == RATE_LIMITED:
        last = attempts[-1]
        return (Wait(kind=WaitKind.LIMIT, holder=last.provider, until=until, resets_at=last.resets_at),)
    return (Wait(kind=WaitKind.RETRY, until=until),)


def _find_full_caps(
    snapshot: Snapshot, repo: Repository, ready: Sequence[Task]
) -> dict[str, tuple[Wait, ...]]:
    """Return the ready tasks for which no worker may start now, because enough of them run."""
    settings = repo.settings
    has_caps = settings.run.workers is not None or any(agent.most for agent in settings.agents.values())
    running = agents_running(snapshot) if ready and has_caps else []
    reasons = {task.id: why_full(settings, agent_named(settings, task), running) for task in ready}
    return {task_id: (Wait(kind=WaitKind.WORKER, why=why),) for task_id, why in reasons.items() if why}


def _find_claims(snapshot: Snapshot, repo: Repository, tasks: Sequence[Task]) -> dict[str, tuple[Wait, ...]]:
    """Return the claims of others that keep ready tasks from being taken, the first for each task."""
    wanted = {
        task.id: [part for one in task_patterns(repo, task) for part in one.alternatives] for task in tasks
    }
    everything = [alternative for parts in wanted.values() for alternative in parts]
    if not everything:
        return {}
    claims = [claim for claim in claims_near(snapshot, everything, "") if not claim.is_over(snapshot.now)]
    claims += find_agent_locks(repo, [one for task in tasks for one in task_patterns(repo, task)], snapshot)
    found: dict[str, tuple[Wait, ...]] = {}
    for task in tasks:
        others = [claim for claim in claims if claim.task != task.id]
        claim = next((one for one in others if _overlaps(one, wanted[task.id])), None)
        if claim is not None:
            found[task.id] = (Wait(kind=WaitKind.CLAIM, holder=claim.agent, path=claim.pattern),)
    return found


def _overlaps(claim: Claim, wanted: Sequence[Alternative]) -> bool:
    return any(alternatives_overlap(held, part) for held in claim.alternatives for part in wanted)
