"""Who works on what, what is landing, and who waits for whom, as JSON."""

from __future__ import annotations

from landlane.claims.describe import list_holdings
from landlane.claims.take import list_claims
from landlane.claims.wait import list_waiters
from landlane.clock import rfc3339
from landlane.errors import LandlaneError
from landlane.inbox.unblocks import unfinished
from landlane.landing.model import QUEUED, TESTING
from landlane.landing.records import list_landings
from landlane.landing.target_status import view_queue
from landlane.landing.to_text import state_text
from landlane.patterns.pattern import alternatives_overlap
from landlane.sessions.client_sessions import list_live_links
from landlane.sessions.join import live_sessions
from landlane.sessions.signs_of_life import Activity, newer_activity, read_activity
from landlane.status.headline import sessions_without_task
from landlane.tasks.attempts import running_attempts
from landlane.tasks.model import BLOCKED, IN_PROGRESS, READY, WaitKind
from landlane.tasks.records import list_tasks, task_patterns
from landlane.tasks.text import limit_text
from landlane.tasks.waits import find_waits
from landlane.tasks.worker_pool import get_pool
from landlane.usage.model import add_up
from landlane.usage.totals import of_lineage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from landlane.claims.model import Holding
    from landlane.landing.model import Landing
    from landlane.landing.target_status import QueueView
    from landlane.repository import Repository
    from landlane.sessions.model import Session, Waiter
    from landlane.status.json_types import ActivityJson, LandingRowJson, WaitingJson, WorkingJson, WorkJson
    from landlane.tasks.model import Attempt, Task

_ATTEMPT_MS = 5_000  # how often a supervisor records what its worker does


def working_json(repo: Repository) -> list[WorkingJson]:
    """Return the tasks in progress, then the sessions that hold claims without a task."""
    now = repo.store.wall_of(repo.store.view(lambda snapshot: snapshot.now))
    attempts = {attempt.task: attempt for attempt in running_attempts(repo)}
    sessions = {session.id: session for session in live_sessions(repo)}
    clients = {link.session: link.name.client for link in repo.store.view(list_live_links)}
    all_tasks = list_tasks(repo)
    found: list[WorkingJson] = []
    for task in all_tasks:
        if task.state in IN_PROGRESS:
            life = _life(repo, attempts.get(task.id), sessions.get(task.session), clients, now)
            found.append({**_task_row(repo, task), **life})
    claims = list_claims(repo)
    for session in sessions_without_task(repo, all_tasks):
        patterns = [claim.pattern for claim in claims if claim.session == session.id]
        found.append({**_claims_row(session, patterns), **_life(repo, None, session, clients, now)})
    return found


def _life(
    repo: Repository,
    attempt: Attempt | None,
    session: Session | None,
    clients: Mapping[str, str],
    now: int,
) -> ActivityJson:
    """Return what a worker does, with which client, and when it was last active, as exactly as it is known.

    Of a worker that `run` started the supervisor knows it; of other sessions their own calls do.
    """
    client = clients.get(session.id, "") if session is not None else ""
    activity = read_activity(repo, session) if session is not None else None
    if attempt is not None and attempt.seen_at:
        recorded = Activity(seen_at=attempt.seen_at, accuracy_ms=_ATTEMPT_MS, doing=attempt.doing)
        activity = newer_activity(recorded, activity) if activity is not None else recorded
    return {
        "doing": activity.doing if activity is not None else "",
        "seen_at": rfc3339(activity.seen_at) if activity is not None else None,
        "seen_accuracy_seconds": -(-activity.accuracy_ms // 1000) if activity is not None else None,
        "idle_seconds": max(now - activity.seen_at, 0) // 1000 if activity is not None else None,
        "client": (attempt.client if attempt is not None else "") or client or None,
        "limit_ends_in_seconds": _limit_left(repo, attempt, now),
    }


def _task_row(repo: Repository, task: Task) -> WorkJson:
    spent = repo.store.view(
        lambda snapshot: add_up(
            entry for entry in of_lineage(snapshot, task.lineage) if entry.task == task.id
        )
    )
    return {
        "task": task.id,
        "title": task.title,
        "agent": task.owner,
        "tries": max(task.tries, 1),
        "max_tries": task.max_attempts,
        "cost_usd": spent.cost_micros / 1_000_000 if spent.entries else None,
        "is_cost_known": spent.is_known,
        "claims": [],
    }


def _claims_row(session: Session, patterns: list[str]) -> WorkJson:
    return {
        "task": None,
        "title": None,
        "agent": session.agent,
        "tries": None,
        "max_tries": None,
        "cost_usd": None,
        "is_cost_known": True,
        "claims": patterns,
    }


def _limit_left(repo: Repository, attempt: Attempt | None, now: int) -> int | None:
    """Return when the limit of an attempt's provider ends, as the provider said; None if there is none."""
    if attempt is None:
        return None
    limit = get_pool(repo).admission.get(attempt.kind or attempt.client) or {}
    left = int(limit.get("resets_at") or 0) - now
    return left // 1000 if left > 0 else None


def landing_rows(repo: Repository) -> list[LandingRowJson]:
    """Return what is on its way onto the target: the check that runs, its clock, and the estimates."""
    if not repo.common_dir or not list_landings(repo, (QUEUED, TESTING)):
        return []
    try:
        view = view_queue(repo)
    except LandlaneError:
        return []  # there is no target yet
    titles = {task.id: task.title for task in list_tasks(repo)}
    return [
        _landing_row(landing, view, titles.get(landing.task, ""))
        for landing in view.landings
        if landing.state in (QUEUED, TESTING)
    ]


def _landing_row(landing: Landing, view: QueueView, title: str) -> LandingRowJson:
    check = landing.check if landing.state == TESTING and not landing.tested_with else ""
    estimate, lands_in = view.check_estimate(check) if check else None, view.estimates.get(landing.id)
    return {
        "landing": landing.id,
        "task": landing.task or None,
        "title": title or landing.subject or landing.branch,
        "agent": landing.agent,
        "state": landing.state,
        "doing": state_text(landing, view.now),
        "check": check or None,
        "check_seconds": max(view.now - landing.stage_at, 0) // 1000 if check else None,
        "check_estimate_seconds": None if estimate is None else round(estimate / 1000),
        "eta_seconds": None if lands_in is None else round(lands_in / 1000),
    }


def waiting_json(repo: Repository) -> list[WaitingJson]:
    """Return who waits: sessions for claims; tasks for other tasks, a provider's limit, claimed paths."""
    holdings = list_holdings(repo)
    waiters = [waiter for waiter in repo.store.view(list_waiters) if not waiter.is_for_slot]
    found = [_waiter_row(waiter, holdings, waiters) for waiter in waiters]
    tasks = list_tasks(repo)
    by_id = {task.id: task for task in tasks}
    found += [_blocked_row(task, unfinished(by_id, task)) for task in tasks if task.state == BLOCKED]
    ready = [task for task in tasks if task.state == READY]
    found += _limited(repo, ready)
    return found + list(_held_up(repo, ready, holdings))


def _waiter_row(waiter: Waiter, holdings: list[Holding], waiters: list[Waiter]) -> WaitingJson:
    holders = [
        holding.claim.agent
        for holding in holdings
        if holding.claim.session != waiter.session
        and any(
            alternatives_overlap(mine, one)
            for mine in holding.claim.alternatives
            for one in waiter.alternatives
        )
    ]
    patterns = set(waiter.patterns)
    ahead = sum(other.ticket < waiter.ticket and bool(patterns & set(other.patterns)) for other in waiters)
    return _row(
        agent=waiter.agent,
        paths=list(dict.fromkeys(waiter.patterns)),
        holders=list(dict.fromkeys(holders)),
        position=ahead + 1,
    )


def _blocked_row(task: Task, waits_for: list[str]) -> WaitingJson:
    return _row(task=task.id, title=task.title, waits_for=waits_for, why=task.why or None)


def _limited(repo: Repository, tasks: list[Task]) -> list[WaitingJson]:
    """Return the ready tasks that wait for a provider's limit, with its end if the provider named it."""
    if not get_pool(repo).admission:
        return []
    now = repo.wall_ms()
    by_id = {task.id: task for task in tasks}
    return [
        _row(
            task=task_id,
            title=by_id[task_id].title,
            why=limit_text(wait, now),
            resets_at=rfc3339(wait.resets_at) if wait.resets_at else None,
        )
        for task_id, waits in find_waits(repo, tasks).items()
        for wait in waits
        if wait.kind == WaitKind.LIMIT
    ]


def _held_up(repo: Repository, tasks: list[Task], holdings: list[Holding]) -> Iterator[WaitingJson]:
    """Yield the ready tasks whose paths other sessions have claimed."""
    for task in tasks if holdings else ():
        held = [
            (pattern.text, holding.claim.agent)
            for pattern in task_patterns(repo, task)
            for holding in holdings
            if holding.claim.overlaps(pattern)
        ]
        if held:
            paths, holders = zip(*held, strict=True)
            yield _row(
                task=task.id,
                title=task.title,
                paths=list(dict.fromkeys(paths)),
                holders=list(dict.fromkeys(holders)),
            )


def _row(
    *,
    agent: str | None = None,
    task: str | None = None,
    title: str | None = None,
    paths: Sequence[str] = (),
    holders: Sequence[str] = (),
    waits_for: Sequence[str] = (),
    position: int | None = None,
    why: str | None = None,
    resets_at: str | None = None,
) -> WaitingJson:
    return {
        "agent": agent,
        "task": task,
        "title": title,
        "paths": list(paths),
        "holders": list(holders),
        "waits_for": list(waits_for),
        "position": position,
        "why": why,
        "resets_at": resets_at,
    }
