"""The queue runner: merges entries onto the tip, checks the merged tree, and moves the target branch.

One process runs a queue at a time, under a lease that every write checks. It works in rounds: recover after a
runner that was killed, find the tip of the target, land one batch (`land_batch.py`), clean up.
"""

from __future__ import annotations

import contextlib
import time

from landlane.errors import LandlaneError, RepositoryError, Stale, TimedOut
from landlane.git import trial_merge as trials
from landlane.git.target import TargetBranch, fetch_commit, find_target
from landlane.landing import records
from landlane.landing.after_landing import (
    clean_up_landed,
    open_integration_task,
    repair_submitted_refs,
)
from landlane.landing.land_batch import BatchLander
from landlane.landing.model import (
    HELD,
    NEW_CHECKS,
    QUEUE_LEASE_MS,
    QUEUED,
    TESTING,
    Landing,
    queue_lease_name,
)
from landlane.landing.move_target import TargetMover
from landlane.landing.run_checks import CheckRunner
from landlane.landing.target_failure import check_target, target_failing_error
from landlane.landing.target_rules import describe_new_checks, find_gate, settings_at
from landlane.sessions.leases import touch
from landlane.sessions.runner_lease import RunnerBusy, RunnerLease, end_runner, take_runner, wait_for_runner
from landlane.settings.model import FILE_NAME
from landlane.units import exact_duration
from landlane.values import replace, value
from landlane.workspaces.committed_settings import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session

_MAX_GROWTH = 4
_MAX_IDLE_ROUNDS = 2  # rounds in which no entry ended: the rest waits for other machines or for a person
_MAX_OVERTAKEN_ROUNDS = 20  # rounds in a row in which the target moved during the test
_MAX_PAUSE_SECONDS = 60.0
_IDLE_SECONDS = 2.0
_POLL_SECONDS = 0.5
_FOREVER_MS = 10**9


@value
class RoundResult:
    """How many entries ended in a round, and why the queue stopped if it did."""

    ended: int = 0
    stop: LandlaneError | None = None
    is_overtaken: bool = False  # the target moved during the test: try the same again


class QueueRunner:
    """One process that runs the queue of one target branch."""

    def __init__(
        self,
        repo: Repository,
        lease: RunnerLease,
        target: TargetBranch,
        on_step: Callable[[str], None] = lambda _: None,
        on_tick: Callable[[], None] = lambda: None,
        on_check: Callable[[Sequence[str], str], None] = lambda _, __: None,
    ) -> None:
        self._repo = repo = replace(repo, is_guest=False)  # the queue acts for all entries
        self._on_tick = on_tick
        self._on_check = on_check
        self._target = target
        self._on_step = on_step
        self._settings = repo.settings
        self._mover = TargetMover(repo, lease, target, on_step)
        self._has_repaired_refs = False
        self._growth = 1
        self._passed_batches = 0
        self.queued_ids: set[str] = set()  # of the entries at the last round

    def close(self) -> None:
        """Release the queue, so that another process can run it."""
        self._mover.close()
        end_runner(self._repo, self._mover.lease)

    def run_round(self) -> RoundResult:
        """Land or reject one batch.

        Raises:
            Stale: another process runs the queue now.
        """
        try:
            self._recover()
            clean_up_landed(self._repo, self._target)
            tip = self._mover.find_tip()
            waiting = self._list_waiting()
            if not waiting:
                self._settings = read_at(self._repo, tip)
                self._test_failing_target(tip)
                # The entry that it waited for may have been ejected, or an earlier runner was killed.
                self._open_integration_task()
                return RoundResult()
            self._settings = settings_at(self._repo, self._target, tip)
            ended = self._land_next_batch(tip, waiting)
        except Stale:
            raise
        except LandlaneError as error:
            return self._stop(error)
        except OSError as error:
            refused = RepositoryError(
                f"the queue cannot continue: {error}",
                code="SYSTEM_REFUSED",
                hint="nothing is lost; check the disk and the permissions, then: landlane queue run --drain",
            )
            return self._stop(refused)
        clean_up_landed(self._repo, self._target)
        self._open_integration_task()
        self._on_step("settled")
        return RoundResult(ended=ended, is_overtaken=self._mover.is_overtaken)

    def _stop(self, error: LandlaneError) -> RoundResult:
        self._requeue_testing(error.message, error.code)
        return RoundResult(stop=error)

    def _recover(self) -> None:
        """Settle what a runner that was killed left behind."""
        if not self._has_repaired_refs:
            self._mover.wait_for_locks()
        self._mover.recover()
        self._requeue_testing("the process that tested it was stopped")
        if not self._has_repaired_refs:
            repair_submitted_refs(self._repo, self._target)
            self._has_repaired_refs = True

    def _open_integration_task(self) -> None:
        """Open the integration task; if that fails, the entries have landed nevertheless."""
        try:
            open_integration_task(self._repo, self._target, self._settings)
        except (LandlaneError, OSError) as error:
            self._repo.report(f"the integration task was not added; the next run tries again: {error}")

    def _list_waiting(self) -> list[Landing]:
        """Return the entries that can be tested here: their commits must be in this clone."""
        queued = [
            landing
            for landing in records.list_landings(self._repo, (QUEUED, TESTING))
            if landing.target == self._target.branch and not landing.is_gated
        ]
        self.queued_ids = {landing.id for landing in queued}
        home = self._repo.home
        missing = trials.missing_commits(home, [landing.head for landing in queued])
        gone = {head for head in missing if not fetch_commit(home, self._target, head)}
        return [landing for landing in queued if landing.head not in gone]

    def _requeue_testing(self, reason: str, code: str = "") -> None:
        testing = records.list_landings(self._repo, (TESTING,))
        ids = [landing.id for landing in testing if landing.target == self._target.branch]
        records.requeue(self._repo, self._mover.lease, ids, reason, code)

    def _land_next_batch(self, tip: str, waiting: Sequence[Landing]) -> int:
        """Land one batch, and the next one if the target itself fails: a later entry may repair it.

        Raises:
            RepositoryError: the target fails its checks, and no waiting entry repairs it.
        """
        self._mover.is_overtaken = False
        waiting = [landing for landing in waiting if not self._hold_if_gated(landing, tip)]
        checks = CheckRunner(self._repo, self._settings, self._target.branch, self._tick)
        lander = BatchLander(
            self._repo, self._settings, self._target, self._mover, checks, self._on_step, self._on_check
        )
        try:
            return self._land_batches(lander, tip, waiting)
        finally:
            checks.close()

    def _test_failing_target(self, tip: str) -> None:
        """Test a target that failed again while nothing is queued: it may have been repaired elsewhere."""
        branch = self._target.branch
        if records.get_queue(self._repo, branch).failure is None:
            return
        checks = CheckRunner(self._repo, self._settings, branch, self._tick)
        try:
            check_target(self._repo, self._mover.lease, branch, tip, checks)
        finally:
            checks.close()

    def _tick(self) -> None:
        self._mover.renew_lease()
        self._on_tick()

    def _land_batches(self, lander: BatchLander, tip: str, waiting: Sequence[Landing]) -> int:
        alone = {landing.id for landing in waiting if self._new_checks(landing, tip)}
        is_failing = records.get_queue(self._repo, self._target.branch).failure is not None
        while waiting:
            # On a failing target each entry is tested alone, so that only one that repairs it lands.
            limit = 1 if is_failing else self._settings.landing.batch * self._growth
            size = batch_size(waiting, limit, alone)
            ids = [landing.id for landing in waiting[:size]]
            batch = records.begin_testing(self._repo, self._mover.lease, ids)
            self._on_step("testing")
            ended = lander.land(tip, batch, has_own_checks=waiting[0].id in alone)
            is_failing = is_failing or lander.target_failure is not None
            self._grow_batches(has_passed=ended == len(batch) and not lander.has_bisected)
            if ended or lander.target_failure is None:
                return ended
            waiting = waiting[size:]
        if lander.target_failure is not None:
            raise lander.target_failure
        return 0

    def _new_checks(self, landing: Landing, tip: str) -> str:
        """Return how an entry changes the checks of the target; empty if it does not."""
        return describe_new_checks(self._repo.home, self._settings, landing.paths, tip, landing.head)

    def _hold_if_gated(self, landing: Landing, tip: str) -> bool:
        """Hold an entry if the target requires an approval since the entry was submitted."""
        if landing.approved_head == landing.head:
            return False
        change = self._new_checks(landing, tip)
        gate = f"{NEW_CHECKS}: {change}" if change else find_gate(self._repo, self._settings, landing.paths)
        if not gate:
            return False
        records.hold(self._repo, self._mover.lease, landing.id, gate)
        return True

    def _grow_batches(self, *, has_passed: bool) -> None:
        """Double the batch size after every two batches that pass; go back to one when a batch fails.

        After a single pass the next batch would mostly fail if one entry in ten is bad.
        """
        is_batching = self._settings.landing.batch > 1
        self._passed_batches = self._passed_batches + 1 if has_passed and is_batching else 0
        if not self._passed_batches:
            self._growth = 1
        elif self._passed_batches % 2 == 0:
            self._growth = min(self._growth * 2, _MAX_GROWTH)


def batch_size(waiting: Sequence[Landing], limit: int, alone: Collection[str] = ()) -> int:
    """Return how many entries to test together.

    An entry that changes the settings ends its batch: the new settings apply to the next one. Those in
    `alone` bring their own checks.
    """
    for index, landing in enumerate(waiting[:limit]):
        if landing.id in alone:
            return max(index, 1)
        if FILE_NAME in landing.paths:
            return index + 1
    return min(limit, len(waiting))


def start_runner(
    repo: Repository,
    who: Session | str,
    on_step: Callable[[str], None] = lambda _: None,
    on_tick: Callable[[], None] = lambda: None,
    *,
    lease_ms: int = QUEUE_LEASE_MS,
) -> QueueRunner | RunnerBusy:
    """Take the lease of the queue and return its runner, or return who runs it."""
    target = find_target(repo.home, repo.settings)
    lease = take_runner(repo, who, queue_lease_name(target.branch), lease_ms)
    return lease if isinstance(lease, RunnerBusy) else QueueRunner(repo, lease, target, on_step, on_tick)


def drain_queue(runner: QueueRunner, is_enough: Callable[[], bool] = lambda: False) -> LandlaneError | None:
    """Run rounds until no entry is left that can be tested, or `is_enough`; return why it stopped early.

    Raises:
        Stale: another process runs the queue now.
    """
    idle = overtaken = 0
    while not is_enough():
        result = runner.run_round()
        if result.stop is not None:
            return result.stop
        overtaken = overtaken + 1 if result.is_overtaken else 0
        idle = 0 if result.ended or 0 < overtaken < _MAX_OVERTAKEN_ROUNDS else idle + 1
        if idle >= _MAX_IDLE_ROUNDS:
            return None
    return None


def wait_for_landing(
    repo: Repository,
    session: Session,
    landing_id: str,
    on_stage: Callable[[str], None],
    *,
    on_look: Callable[[Landing], None] = lambda _: None,
    wait_ms: int = _FOREVER_MS,
) -> tuple[Landing, LandlaneError | None]:
    """Run the queue until an entry has ended, or wait for the process that runs it.

    `on_stage` is called when its stage changes, `on_look` a few times a second. Return the entry, and why
    the queue or the wait stopped before the entry ended.
    """
    return _LandingWait(repo, session, landing_id, on_stage, on_look, wait_ms).wait()


class _LandingWait:
    """The wait of one process for one entry."""

    def __init__(
        self,
        repo: Repository,
        session: Session,
        landing_id: str,
        on_stage: Callable[[str], None],
        on_look: Callable[[Landing], None],
        wait_ms: int,
    ) -> None:
        self._repo = repo
        self._session = session
        self._landing_id = landing_id
        self._on_stage = on_stage
        self._on_look = on_look
        self._wait_ms = wait_ms
        self._deadline = time.monotonic() + wait_ms / 1000
        self._shown = ""
        self._looked_at = 0.0

    def wait(self) -> tuple[Landing, LandlaneError | None]:
        while True:
            landing = self._look()
            if not landing.is_open or landing.state == HELD:
                return landing, None
            if self._is_over:
                return landing, self._timed_out(landing)
            runner = start_runner(self._repo, self._session, self._on_step, self._on_tick)
            if isinstance(runner, RunnerBusy):
                _wait_for_change(self._repo, self._poll_seconds, lambda: not self._look().is_open)
                self._on_step()
                continue
            try:
                stop = drain_queue(runner, lambda: self._is_over or not self._look().is_open)
            except Stale:
                continue  # another process took the queue over and continues with the entry
            finally:
                runner.close()
            landing = self._look()
            if stop is not None or landing.is_open:
                return landing, self._why_stopped(landing, stop)

    @property
    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    @property
    def _poll_seconds(self) -> float:
        return max(min(_POLL_SECONDS, self._deadline - time.monotonic()), 0.01)

    def _look(self) -> Landing:
        landing = records.get_landing(self._repo, self._landing_id)
        self._looked_at = time.monotonic()
        stage = landing.stage or landing.state
        if stage != self._shown:
            self._on_stage(stage)
            self._shown = stage
        self._on_look(landing)
        return landing

    def _on_step(self, _: str = "") -> None:
        self._look()
        # Waiting keeps the session alive; the entry does not depend on it.
        with contextlib.suppress(LandlaneError):
            touch(self._repo.store, self._session)

    def _on_tick(self) -> None:
        """Look at the entry while this process runs its check; stop the check when the time is over."""
        if time.monotonic() - self._looked_at < _POLL_SECONDS and not self._is_over:
            return
        landing = self._look()
        if self._is_over:
            raise self._timed_out(landing)

    def _why_stopped(self, landing: Landing, stop: LandlaneError | None) -> LandlaneError:
        if stop is None:
            return self._timed_out(landing) if self._is_over else _not_landed_error(landing)
        failure = records.get_queue(self._repo, landing.target).failure
        if stop.code != "TARGET_RED" or failure is None:
            return stop
        return target_failing_error(landing.target, failure, self._repo.wall_ms(), landing.id)

    def _timed_out(self, landing: Landing) -> TimedOut:
        doing = f"testing {landing.check}" if landing.check else landing.state
        return TimedOut(
            f"{landing.id} is still {doing} after {exact_duration(self._wait_ms)}; it stays in the queue",
            code="WAIT_TIMED_OUT",
            hint="wait again: landlane land --wait",
            landing=landing.id,
        )


def _not_landed_error(landing: Landing) -> LandlaneError:
    return LandlaneError(
        f"{landing.id} is still {landing.state}: {landing.reason or 'its commits are in another clone'}",
        code=landing.code or "NOT_LANDED",
        hint="see what it waits for: landlane queue list",
    )


def has_new_entries(repo: Repository, known_ids: Collection[str] = ()) -> bool:
    """Return whether entries are queued that no runner has handled; checked after a runner has stopped.

    An entry that was submitted while the queue was being run was left to that runner.
    """
    target = find_target(repo.home, repo.settings)
    queued = records.list_landings(repo, (QUEUED,))
    return any(landing.target == target.branch and landing.id not in known_ids for landing in queued)


def serve_queue(
    repo: Repository,
    who: str,
    *,
    is_drained: bool,
    wait_ms: int = 0,
    on_check: Callable[[Sequence[str], str], None] = lambda _, __: None,
) -> LandlaneError | None:
    """Run the queue until it is empty (`is_drained`) or until a signal; return why it stopped early.

    While another process runs the queue, this one waits for it, at most `wait_ms`.
    """
    known_ids: set[str] = set()
    pause = _IDLE_SECONDS
    while True:
        target = find_target(repo.home, repo.settings)
        lease = wait_for_runner(
            repo,
            who,
            queue_lease_name(target.branch),
            QUEUE_LEASE_MS,
            wait_ms if is_drained else _FOREVER_MS,
            on_wait=lambda busy: repo.report(f"{busy.agent} runs the queue; waiting for it"),
        )
        if isinstance(lease, RunnerBusy):
            return TimedOut(
                f"{lease.agent} still runs the queue after {exact_duration(wait_ms)}",
                code="QUEUE_BUSY",
                hint="see how far it is: landlane queue list",
                holder=lease.agent,
            )
        runner = QueueRunner(repo, lease, target, on_check=on_check)
        try:
            stop = drain_queue(runner)
        except Stale as error:
            stop = error
        finally:
            runner.close()
        has_failed_early = stop is not None and not runner.queued_ids  # trying again would fail the same way
        known_ids |= runner.queued_ids
        if is_drained and (has_failed_early or not has_new_entries(repo, known_ids)):
            return stop
        if stop is not None:
            repo.report(f"{stop.message} ({stop.hint})")
        if not is_drained:
            pause = min(pause * 2, _MAX_PAUSE_SECONDS) if stop is not None else _IDLE_SECONDS
            _pause(repo, known_ids, pause)


def _pause(repo: Repository, known_ids: Collection[str], seconds: float) -> None:
    """Sleep for some time, or until a new entry is queued."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not has_new_entries(repo, known_ids):
        _wait_for_change(repo, _IDLE_SECONDS, lambda: False)
        time.sleep(0.01)


def _wait_for_change(repo: Repository, timeout_seconds: float, is_over: Callable[[], bool]) -> None:
    """Sleep until the store changes or the time is over; return at once if `is_over`."""
    listener = repo.store.listen()
    try:
        if not is_over():
            listener.wait(timeout_seconds)
    finally:
        listener.close()
