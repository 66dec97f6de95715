"""The headline: a repository's situation in one line, the same in every command and on the web page."""

from __future__ import annotations

import os

from landlane.claims.take import list_claims
from landlane.errors import LandlaneError
from landlane.git.target import find_target
from landlane.inbox.items import find_waiting
from landlane.landing.model import QUEUED, TESTING
from landlane.landing.records import read_landings
from landlane.sessions.join import live_sessions
from landlane.store import records
from landlane.tasks.model import IN_PROGRESS, READY
from landlane.tasks.records import list_tasks
from landlane.tasks.worker_pool import get_pool
from landlane.units import count, money, money_limit
from landlane.usage.totals import spent_today
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.status.json_types import HeadlineJson, TargetWord
    from landlane.tasks.model import Task

PASSING: TargetWord = "passing"
FAILING: TargetWord = "failing"
UNTESTED: TargetWord = "untested"
SEPARATOR = " · "


@value
class Headline:
    """What needs a person, what is under way, what it costs, and whether the target passes its checks."""

    repository: str
    needs_you: int = 0
    working: int = 0
    landing: int = 0
    ready: int = 0
    spent_micros: int = 0
    has_unknown_cost: bool = False
    day_budget_micros: int | None = None
    target: str = ""  # empty without git
    target_state: TargetWord = UNTESTED
    is_paused: bool = False  # no workers are started
    is_queue_paused: bool = False


def read_headline(repo: Repository, person: str = "") -> Headline:
    """Return the headline; `person` is who looks at it."""
    waiting = find_waiting(repo, person)
    landings, queues = repo.store.view(
        lambda snapshot: (
            read_landings(snapshot, (QUEUED, TESTING)),
            records.find_all(snapshot, "queue"),
        )
    )
    tasks = list_tasks(repo)
    today = spent_today(repo)
    is_red = any(queue["code"] == "TARGET_RED" for queue in queues if queue["state"] == "paused")
    is_red = is_red or any(queue.get("failing") for queue in queues)
    is_red = is_red or any(landing.code == "TARGET_RED" for landing in landings)
    has_passed = any(queue.get("passing") for queue in queues)
    return Headline(
        repository=repository_name(repo),
        needs_you=len(waiting),
        working=sum(task.state in IN_PROGRESS for task in tasks) + len(sessions_without_task(repo, tasks)),
        landing=len(landings),
        ready=sum(task.state == READY for task in tasks),
        spent_micros=today.cost_micros,
        has_unknown_cost=not today.is_known,
        day_budget_micros=repo.settings.budgets.day_micros,
        target=_target_name(repo),
        target_state=FAILING if is_red else PASSING if has_passed else UNTESTED,
        is_paused=get_pool(repo).is_paused,
        is_queue_paused=any(queue["state"] == "paused" and queue["code"] != "TARGET_RED" for queue in queues),
    )


def repository_name(repo: Repository) -> str:
    """Return the name of a repository: that of the folder of its main checkout."""
    return os.path.basename(repo.home.root if repo.checkout.common_dir else repo.checkout.root)


def _target_name(repo: Repository) -> str:
    if not repo.checkout.common_dir:
        return ""
    try:
        return find_target(repo.home, repo.settings).branch
    except LandlaneError:
        return ""  # there is no commit yet


def sessions_without_task(repo: Repository, tasks: Sequence[Task]) -> list[Session]:
    """Return the sessions that hold claims and work on none of these tasks."""
    holders = {claim.session for claim in list_claims(repo)} - {task.session for task in tasks}
    return [session for session in live_sessions(repo) if session.id in holders and not session.is_holder]


def headline_text(headline: Headline) -> str:
    """Return the headline as one line; zeros are left out."""
    return SEPARATOR.join(_parts(headline))


def _parts(headline: Headline) -> Sequence[str]:
    need, is_stopped = headline.needs_you, headline.is_paused or headline.is_queue_paused
    parts = [headline.repository]
    parts += ["✗ workers paused"] if headline.is_paused else []
    parts += ["✗ landing paused"] if headline.is_queue_paused else []
    if need or not is_stopped:
        parts.append(f"{need} need{'s' if need == 1 else ''} you" if need else "nothing needs you")
    parts += [f"{headline.working} working"] if headline.working else []
    parts += [f"{headline.landing} landing"] if headline.landing else []
    parts += [f"{count(headline.ready, 'task')} ready"] if is_stopped and headline.ready else []
    parts += [f"{spent_text(headline)} today"] if _shows_money(headline) else []
    parts += [f"{headline.target} {headline.target_state}"] if headline.target else []
    return parts


def _shows_money(headline: Headline) -> bool:
    """Return whether there is an amount to show; that costs are unknown is said below, beside a budget."""
    return bool(headline.spent_micros)


def spent_text(headline: Headline) -> str:
    """Return what was spent today, and the limit if there is one: `$4.10 of $20`."""
    spent = money(headline.spent_micros, has_unknown=headline.has_unknown_cost)
    limit = headline.day_budget_micros
    return spent if limit is None else f"{spent} of {money_limit(limit)}"


def headline_json(headline: Headline) -> HeadlineJson:
    """Return the headline as JSON: its text, and each number."""
    limit = headline.day_budget_micros
    return {
        "text": headline_text(headline),
        "repository": headline.repository,
        "needs_you": headline.needs_you,
        "working": headline.working,
        "landing": headline.landing,
        "ready": headline.ready,
        "spent_usd": headline.spent_micros / 1_000_000,
        "is_spent_known": not headline.has_unknown_cost,
        "day_budget_usd": None if limit is None else limit / 1_000_000,
        "target": headline.target or None,
        "target_state": headline.target_state,
        "workers_paused": headline.is_paused,
        "queue_paused": headline.is_queue_paused,
    }
