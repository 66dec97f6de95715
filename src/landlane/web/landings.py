"""What lands: the batch that is tested, the queue, what came back and why, and what has landed today."""

from __future__ import annotations

from landlane.errors import LandlaneError
from landlane.landing.model import BOUNCED, HELD, LANDED, QUEUED, TESTING
from landlane.landing.records import list_landings
from landlane.landing.target_status import read_target_status, view_queue
from landlane.landing.to_text import about, ended_message, state_text
from landlane.tasks.records import find_task, task_titles
from landlane.units import clock_time
from landlane.usage.model import day_of
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.landing.model import CheckRun, Landing
    from landlane.landing.target_status import QueueView, TargetStatus
    from landlane.web.visit import Visit

_MOST_QUEUED = 12
_MOST_ENDED = 3
_DAY_MS = 86_400_000


@value
class Entry:
    """An entry of the queue, with its title and its place."""

    landing: Landing
    title: str
    place: int = 0
    eta: str = ""
    doing: str = ""


@value
class LandingView:
    """The queue of the target as the page shows it."""

    target: str
    status: TargetStatus | None
    testing: tuple[Entry, ...]
    queued: tuple[Entry, ...]
    more_queued: int
    held: tuple[Entry, ...]
    bounced: tuple[Entry, ...]
    landed: tuple[Entry, ...]
    landed_today: int
    bounced_today: int
    runs: tuple[CheckRun, ...]  # checks of the running batch that ended
    resolved: tuple[str, ...]
    check: str  # the one that runs
    check_at: int
    check_ms: int | None  # how long it usually takes
    eta: str

    @property
    def count(self) -> int:
        """Return how many are on their way."""
        return len(self.testing) + len(self.queued) + self.more_queued


def read_landing_view(visit: Visit) -> LandingView | None:
    """Return the queue; None where there is no git or no commit yet."""
    repo = visit.repo
    if not repo.common_dir:
        return None
    try:
        status, view = read_target_status(repo), view_queue(repo)
    except LandlaneError:
        return None
    ended = list_landings(repo, (LANDED, BOUNCED))
    today = day_of(visit.now)
    recent = sorted((one for one in ended if one.ended_at), key=lambda one: -one.ended_at)
    landed = [one for one in recent if one.state == LANDED and day_of(one.ended_at) == today]
    bounced = [one for one in recent if one.state == BOUNCED and visit.now - one.ended_at < _DAY_MS]
    shown = [*view.landings, *landed[:_MOST_ENDED], *bounced[:_MOST_ENDED]]
    titles = task_titles(repo, [one.task for one in shown])
    testing = [one for one in view.landings if one.state == TESTING]
    queued = [one for one in view.landings if one.state == QUEUED]
    first = next((one for one in testing if not one.tested_with), None)
    runs = first.check_runs if first is not None else []
    return LandingView(
        target=status.branch,
        status=status,
        testing=tuple(_entry(one, titles, view) for one in testing),
        queued=tuple(_entry(one, titles, view) for one in queued[:_MOST_QUEUED]),
        more_queued=max(len(queued) - _MOST_QUEUED, 0),
        held=tuple(_entry(one, titles, view) for one in view.landings if one.state == HELD),
        bounced=tuple(_ended(visit, one, titles) for one in bounced[:_MOST_ENDED]),
        landed=tuple(_entry(one, titles, view) for one in landed[:_MOST_ENDED]),
        landed_today=len(landed),
        bounced_today=sum(day_of(one.ended_at) == today for one in bounced),
        runs=tuple(runs),
        resolved=tuple(note for one in testing for note in one.resolved),
        check=first.check if first is not None else "",
        check_at=first.stage_at if first is not None else 0,
        check_ms=view.check_estimate(first.check) if first is not None and first.check else None,
        eta=_eta(view, testing),
    )


def _entry(landing: Landing, titles: Mapping[str, str], view: QueueView) -> Entry:
    estimate = view.estimates.get(landing.id)
    return Entry(
        landing=landing,
        title=titles.get(landing.task) or landing.subject or landing.branch,
        place=view.position(landing.id),
        eta=about(estimate) if estimate is not None else "",
        doing=state_text(landing, view.now),
    )


def _ended(visit: Visit, landing: Landing, titles: Mapping[str, str]) -> Entry:
    task = visit.repo.store.view(lambda snapshot: find_task(snapshot, landing.task)) if landing.task else None
    return Entry(
        landing=landing,
        title=titles.get(landing.task) or landing.subject or landing.branch,
        doing=ended_message(landing, task),
    )


def _eta(view: QueueView, testing: Sequence[Landing]) -> str:
    ends = [view.estimates[one.id] for one in testing if one.id in view.estimates]
    return f"done about {clock_time(view.now + max(ends))}" if ends else ""
