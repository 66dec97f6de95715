"""Whoever waits for the queue runs it: sees one entry through, drains it, or serves it as long as asked."""

from __future__ import annotations

import time

from landlane.errors import LandlaneError, Stale, TimedOut
from landlane.git.target import find_target
from landlane.landing import records as operations
from landlane.landing.model import OPEN, QUEUED
from landlane.landing.queue import LEASE_MS, QueueRunner, drain, queue_name, start_running
from landlane.sessions.leases import touch
from landlane.sessions.runner_lease import RunnerBusy, wait_for_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_LONGEST_PAUSE = 60.0
_IDLE_SECONDS = 2.0
_LOOK_SECONDS = 0.5


def see_through(
    repo: Repository, session: Session, landing_id: str, on_stage: Callable[[str], None]
) -> tuple[Landing, LandlaneError | None]:
    """Run the queue until an entry has ended, or watch whoever runs it; tells why it stopped early."""
    shown = ""

    def look() -> Landing:
        nonlocal shown
        found = operations.get_landing(repo, landing_id)
        stage = found.stage or found.state
        if stage != shown:
            on_stage(stage)
            shown = stage
        return found

    while True:
        landing = look()
        if landing.state not in OPEN or landing.state == "held":
            return landing, None
        runner = start_running(repo, session, lambda _: _stay(repo, session, look))
        if isinstance(runner, RunnerBusy):
            operations.wait_until(
                repo,
                lambda: look().state not in OPEN,
                lambda: _stay(repo, session, look),
                _LOOK_SECONDS,
            )
            continue
        try:
            stop = drain(runner, lambda: look().state not in OPEN)
        except Stale:
            continue  # overtaken: whoever did goes on with it
        finally:
            runner.close()
        landing = look()
        if stop is not None or landing.state in OPEN:
            return landing, stop or _nothing_to_do(landing)


def _stay(repo: Repository, session: Session, look: Callable[[], Landing]) -> None:
    """Waiting is a sign of life, if the session still lives; the entry does not depend on it."""
    look()
    try:
        touch(repo.store, session)
    except LandlaneError:
        return


def _nothing_to_do(landing: Landing) -> LandlaneError:
    return LandlaneError(
        f"{landing.id} is still {landing.state}: {landing.reason or 'its commits are not here'}",
        code=landing.code or "NOT_LANDED",
        hint="`landlane queue list` shows what it waits for",
    )


def has_more(repo: Repository, seen: Collection[str] = ()) -> bool:
    """Whether entries stand in line that a runner has not seen; whoever lets go of the queue looks once more.

    Who submitted them meanwhile found the queue being run, and left them to whoever ran it.
    """
    target = find_target(repo.home, repo.settings)
    found = operations.list_landings(repo, (QUEUED,))
    return any(one.target == target.branch and one.id not in seen for one in found)


def run_until(repo: Repository, who: str, *, is_drained: bool, wait_ms: int = 0) -> LandlaneError | None:
    """Run the queue until nothing is left to do, or until a signal; tells why it stopped early."""
    seen: set[str] = set()
    pause = _IDLE_SECONDS
    while True:
        target = find_target(repo.home, repo.settings)
        lease = wait_for_runner(
            repo, who, queue_name(target.branch), LEASE_MS, wait_ms if is_drained else 10**9
        )
        if isinstance(lease, RunnerBusy):
            if wait_ms:
                return TimedOut(
                    f"{lease.agent} runs the queue", code="QUEUE_BUSY", hint="wait longer", holder=lease.agent
                )
            repo.report(f"{lease.agent} runs the queue already")
            return None
        runner = QueueRunner(repo, who, lease, target)
        try:
            stop = drain(runner)
        except Stale as error:
            stop = error
        finally:
            runner.close()
        is_blind = stop is not None and not runner.seen  # it could not even look: another try ends the same
        seen |= runner.seen
        if is_drained and (is_blind or not has_more(repo, seen)):
            return stop
        if stop is not None:
            repo.report(f"{stop.message} ({stop.hint})")
        if not is_drained:
            pause = min(pause * 2, _LONGEST_PAUSE) if stop is not None else _IDLE_SECONDS
            _rest(repo, seen, pause)


def _rest(repo: Repository, seen: Collection[str], seconds: float) -> None:
    """Let some time pass, or until something new stands in line: what stopped us will not end in a moment."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not has_more(repo, seen):
        operations.wait_until(repo, lambda: False, lambda: None, _IDLE_SECONDS)
        time.sleep(0.01)
