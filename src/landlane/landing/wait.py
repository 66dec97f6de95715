"""Wait for the queue by running it: until one entry has ended, until it is empty, or forever."""

from __future__ import annotations

import contextlib
import time

from landlane.errors import LandlaneError, Stale, TimedOut
from landlane.git.target import find_target
from landlane.landing import records
from landlane.landing.model import HELD, QUEUE_LEASE_MS, QUEUED, queue_lease_name
from landlane.landing.queue import QueueRunner, drain_queue, start_runner
from landlane.sessions.leases import touch
from landlane.sessions.runner_lease import RunnerBusy, wait_for_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_MAX_PAUSE_SECONDS = 60.0
_IDLE_SECONDS = 2.0
_POLL_SECONDS = 0.5
_FOREVER_MS = 10**9


def wait_for_landing(
    repo: Repository, session: Session, landing_id: str, on_stage: Callable[[str], None]
) -> tuple[Landing, LandlaneError | None]:
    """Run the queue until an entry has ended, or wait for the process that runs it.

    Return the entry, and why the queue stopped before the entry ended.
    """
    shown = ""

    def refresh() -> Landing:
        nonlocal shown
        landing = records.get_landing(repo, landing_id)
        stage = landing.stage or landing.state
        if stage != shown:
            on_stage(stage)
            shown = stage
        return landing

    def on_step(_: str = "") -> None:
        refresh()
        # Waiting keeps the session alive; the entry does not depend on it.
        with contextlib.suppress(LandlaneError):
            touch(repo.store, session)

    while True:
        landing = refresh()
        if not landing.is_open or landing.state == HELD:
            return landing, None
        runner = start_runner(repo, session, on_step)
        if isinstance(runner, RunnerBusy):
            records.wait_for_change(repo, _POLL_SECONDS, lambda: not refresh().is_open)
            on_step()
            continue
        try:
            stop = drain_queue(runner, lambda: not refresh().is_open)
        except Stale:
            continue  # another process took the queue over and continues with the entry
        finally:
            runner.close()
        landing = refresh()
        if stop is not None or landing.is_open:
            return landing, stop or _not_landed_error(landing)


def _not_landed_error(landing: Landing) -> LandlaneError:
    return LandlaneError(
        f"{landing.id} is still {landing.state}: {landing.reason or 'its commits are not here'}",
        code=landing.code or "NOT_LANDED",
        hint="`landlane queue list` shows what it waits for",
    )


def has_new_entries(repo: Repository, seen: Collection[str] = ()) -> bool:
    """Return whether entries are queued that a runner has not seen; checked after a runner has stopped.

    An entry that was submitted while the queue was being run was left to that runner.
    """
    target = find_target(repo.home, repo.settings)
    queued = records.list_landings(repo, (QUEUED,))
    return any(landing.target == target.branch and landing.id not in seen for landing in queued)


def serve_queue(repo: Repository, who: str, *, is_drained: bool, wait_ms: int = 0) -> LandlaneError | None:
    """Run the queue until it is empty (`is_drained`) or until a signal; return why it stopped early."""
    seen: set[str] = set()
    pause = _IDLE_SECONDS
    while True:
        target = find_target(repo.home, repo.settings)
        lease = wait_for_runner(
            repo,
            who,
            queue_lease_name(target.branch),
            QUEUE_LEASE_MS,
            wait_ms if is_drained else _FOREVER_MS,
        )
        if isinstance(lease, RunnerBusy):
            if wait_ms:
                return TimedOut(
                    f"{lease.agent} runs the queue", code="QUEUE_BUSY", hint="wait longer", holder=lease.agent
                )
            repo.report(f"{lease.agent} runs the queue already")
            return None
        runner = QueueRunner(repo, lease, target)
        try:
            stop = drain_queue(runner)
        except Stale as error:
            stop = error
        finally:
            runner.close()
        has_failed_early = stop is not None and not runner.seen  # trying again would fail the same way
        seen |= runner.seen
        if is_drained and (has_failed_early or not has_new_entries(repo, seen)):
            return stop
        if stop is not None:
            repo.report(f"{stop.message} ({stop.hint})")
        if not is_drained:
            pause = min(pause * 2, _MAX_PAUSE_SECONDS) if stop is not None else _IDLE_SECONDS
            _pause(repo, seen, pause)


def _pause(repo: Repository, seen: Collection[str], seconds: float) -> None:
    """Sleep for some time, or until a new entry is queued."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not has_new_entries(repo, seen):
        records.wait_for_change(repo, _IDLE_SECONDS, lambda: False)
        time.sleep(0.01)
