"""The state of the target branch and of the entries that wait for it, with estimates."""

from __future__ import annotations

import contextlib
from enum import StrEnum

from landlane.errors import LandlaneError
from landlane.git.target import commit_at, find_target
from landlane.landing.estimate import estimate_check, estimate_entries
from landlane.landing.model import OPEN, QUEUED, TESTING, Landing, Queue, TargetFailure
from landlane.landing.records import get_queue, list_landings
from landlane.values import value
from landlane.workspaces.committed_settings import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository


class TargetState(StrEnum):
    """What is known about the checks on the target."""

    PASSING = "passing"
    FAILING = "failing"
    UNTESTED = "untested"  # nothing has landed yet


@value
class TargetStatus:
    """Whether the target passes its checks, and what waits to land on it."""

    branch: str
    state: TargetState
    tip: str
    passing: str  # the last commit that passed
    failure: TargetFailure | None
    waiting: list[str]  # ids of the queued entries


def read_target_status(repo: Repository) -> TargetStatus:
    """Return whether the target passes its checks, as far as the queue has seen it."""
    target = find_target(repo.home, repo.settings)
    queue = get_queue(repo, target.branch)
    waiting = [one.id for one in list_landings(repo, (QUEUED, TESTING)) if one.target == target.branch]
    known = TargetState.PASSING if queue.passing else TargetState.UNTESTED
    return TargetStatus(
        branch=target.branch,
        state=TargetState.FAILING if queue.failing else known,
        tip=commit_at(repo.home, target.remote_ref or target.ref),
        passing=queue.passing,
        failure=queue.failure,
        waiting=waiting,
    )


@value
class QueueView:
    """The open entries of a queue in the order of their submission, with estimates in milliseconds."""

    queue: Queue
    landings: list[Landing]
    checks: list[str]  # names of the checks that the target declares
    estimates: dict[str, int]
    now: int

    def position(self, landing_id: str) -> int:
        """Return the place of an entry in the queue, from 1; 0 if it is not in it."""
        ids = [landing.id for landing in self.landings if landing.state in (QUEUED, TESTING)]
        return ids.index(landing_id) + 1 if landing_id in ids else 0

    def check_estimate(self, check: str) -> int | None:
        """Return how many milliseconds a check usually takes."""
        return estimate_check(self.queue, check)


def view_queue(repo: Repository) -> QueueView:
    """Return the open entries of the target's queue, and when they probably land."""
    target = find_target(repo.home, repo.settings)
    queue = get_queue(repo, target.branch)
    landings = [landing for landing in list_landings(repo, OPEN) if landing.target == target.branch]
    settings = repo.settings
    with contextlib.suppress(LandlaneError):  # settings of the target that cannot be read stop the queue
        settings = read_at(repo, commit_at(repo.home, target.remote_ref or target.ref))
    checks = [check.name for check in settings.landing.checks or ()]
    now = repo.wall_ms()
    estimates = estimate_entries(queue, landings, checks, settings.landing.batch, now)
    return QueueView(queue=queue, landings=landings, checks=checks, estimates=estimates, now=now)
