"""The orchestrator: starts a supervisor for each task that is ready, cleans up, and runs the landing queue.

All state is in the store. Supervisors are separate processes, so killing the orchestrator harms none of
them; the next one counts those that are still running, cleans up after the dead, and continues. Several
orchestrators may run at once, on one machine or on many: a task is taken in one transaction, so there is no
leader.
"""

from __future__ import annotations

import contextlib
import signal
import time

from landlane.errors import LandlaneError, StoreError, StoreTransient
from landlane.exec.cleanup import end_abandoned_runs
from landlane.fanout.join import settle_fans
from landlane.git.target import find_target
from landlane.landing.after_landing import clean_up_here
from landlane.landing.model import LANDED, QUEUED, TESTING
from landlane.landing.records import get_queue, list_landings
from landlane.platform.process import Process
from landlane.reviews.records import approved_waiting
from landlane.tasks.attempts import running_attempts
from landlane.tasks.model import FINISHED, FIXES_TARGET, READY, AttemptOutcome
from landlane.tasks.records import list_tasks
from landlane.tasks.worker_pool import get_pool
from landlane.values import replace
from landlane.workers.admit import Admission
from landlane.workers.agents import role_for
from landlane.workers.follow_tasks import TaskFollower, find_questions
from landlane.workers.model import (
    ALL_SLOTS_TAKEN,
    WITHOUT_ATTEMPT,
    FailingTarget,
    RunEvent,
    RunEventKind,
    RunStatus,
    Stage,
    StartRefusal,
    WorkOrder,
    count_states,
    summarize,
)
from landlane.workers.recover import close_abandoned_workspaces, end_orphaned_attempts, verified_waiting
from landlane.workers.supervisor_pool import (
    MAX_RETRY_SECONDS,
    RETRY_SECONDS,
    STOP_SECONDS,
    TICK_SECONDS,
    StartBackoff,
    SupervisorPool,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.processes.fork_server import ForkedChild, ForkServer
    from landlane.repository import Repository
    from landlane.tasks.model import Task
    from landlane.workers.model import Agent, RunRequest, RunSummary
    from landlane.workers.supervisor_pool import SupervisorProcess


_UPKEEP_SECONDS = 2.0
_FAILING_TARGET = "target"  # stands for the target among what waits for the landing queue
_LANDING_PAUSE = 0.3
_MAX_IDLE_LANDINGS = 5  # runs of the landing queue in a row that moved nothing
_STOP_LANDING_SECONDS = 5.0
_MAX_OUTAGE_SECONDS = 120.0  # that a run continues without its store


class LandingProcess:
    """Runs the landing queue in a child process while something waits in it, since checks take long."""

    def __init__(self, repo: Repository, fork_server: ForkServer) -> None:
        self._repo = repo
        self._fork_server = fork_server
        self._child: ForkedChild | None = None
        self._start_at = 0.0
        self._idle_runs = 0
        self._seen_waiting: set[str] = set()

    @property
    def is_running(self) -> bool:
        return self._child is not None

    def poll(self) -> list[str]:
        """Notice when the child has ended; return what it reported."""
        if self._child is None:
            return []
        reports = self._child.read()
        notes = [str(report.get("text") or report.get("why") or "") for report in reports]
        if self._child.has_ended():
            self._child = None
        return list(filter(None, notes))

    def start_if_needed(self, *, is_failing: bool = False) -> None:
        """Start the child if something waits and none is running; it also tests a failing target again."""
        if self._child is not None:
            return
        waiting = {landing.id for landing in list_landings(self._repo, (QUEUED, TESTING))}
        waiting |= self.list_unsubmitted()
        waiting |= {_FAILING_TARGET} if is_failing else set()
        if not waiting or (waiting <= self._seen_waiting and time.monotonic() < self._start_at):
            return
        # Entries that a run left where they were will not move if it is repeated at once.
        self._idle_runs = self._idle_runs + 1 if waiting <= self._seen_waiting else 0
        self._seen_waiting = waiting
        pause = min(_LANDING_PAUSE * 2**self._idle_runs, MAX_RETRY_SECONDS)
        self._start_at = time.monotonic() + pause
        self._child = self._fork_server.begin({"kind": "land"})

    def list_unsubmitted(self) -> set[str]:
        """Return approved reviews and verified tasks whose author ended before submitting them."""
        reviews = {review.id for review in approved_waiting(self._repo)}
        return reviews | {task.id for task in verified_waiting(self._repo)}

    def is_stuck(self) -> bool:
        """Return whether the queue is paused, or has been run repeatedly without effect.

        Once is enough while the target fails: what waits has been tested, and does not repair it.
        """
        queue = get_queue(self._repo, find_target(self._repo.home, self._repo.settings).branch)
        is_paused = queue.is_paused or get_pool(self._repo).pauses_landing
        most = 1 if queue.failing else _MAX_IDLE_LANDINGS
        return is_paused or self._idle_runs >= most

    def stop(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.signal(signal.SIGTERM)
            self._child.wait(_STOP_LANDING_SECONDS)
            self._child = None


class Orchestrator:
    """Runs tasks until none is left that it could run, or until it is stopped."""

    def __init__(
        self,
        repo: Repository,
        request: RunRequest,
        fork_server: ForkServer,
        on_event: Callable[[RunEvent], None],
    ) -> None:
        here = repo.processes.current()
        self.name = f"{repo.processes.machine}:{here.pid}:{here.started}"
        self.is_draining = False
        self.is_stopping = False
        self.is_interrupted = False  # by a signal
        self._is_stop_urgent = False
        self._repo = repo
        self._request = request
        self._fork_server = fork_server
        self._on_event = on_event
        self._follower = TaskFollower(repo, on_event)
        self._pool = SupervisorPool(fork_server, self._follower.on_report)
        self._landing = LandingProcess(repo, fork_server)
        self._backoff = StartBackoff(is_continuous=request.is_continuous)
        self._began = time.monotonic()
        self._stopped: dict[str, str] = {}  # tasks whose attempts were ended on request, and their rescues
        self._tasks: list[Task] = []
        self._finished_before: set[str] = set()
        self._paused = ""
        self._branch = _target_branch(repo)
        self._failing: FailingTarget | None = None
        self._step_at = 0.0
        self._upkeep_at = 0.0
        self._store_lost_at = 0.0
        self._last_report = ""

    def drain(self) -> None:
        """Start nothing more, and end when the running attempts have ended."""
        self.is_draining = self.is_interrupted = True

    def stop(self) -> None:
        """End running attempts; their tasks return to the queue, and their work is saved.

        A second call kills the supervisors at once.
        """
        self._is_stop_urgent = self.is_stopping
        self.is_draining = self.is_stopping = self.is_interrupted = True

    def run(self, on_status: Callable[[RunStatus], None] = lambda _: None) -> RunSummary:
        """Run to the end; `on_status` gets the status a few times a second.

        Raises:
            StoreError: the store has been unavailable for too long; a continuous run waits for it.
        """
        if not self._request.tasks:
            self._finished_before = {task.id for task in list_tasks(self._repo, FINISHED)}
        try:
            while True:
                self._read_reports()
                if self.is_stopping:
                    self._pool.press(is_urgent=self._is_stop_urgent)
                elif time.monotonic() < self._step_at:
                    self._pool.wait()  # workers report more often than there is anything to decide
                    continue
                self._step_at = time.monotonic() + TICK_SECONDS
                if self._step(on_status):
                    break
                self._pool.wait()
        finally:
            self._end_all()
        return self._summarize()

    def _step(self, on_status: Callable[[RunStatus], None]) -> bool:
        """Clean up, start what can start, and return whether the run is finished."""
        try:
            self._upkeep()
            self._tasks = self._list_tasks()
            self._failing = self._find_failing_target()
            self._follower.look(self._own_tasks())
            if not self.is_draining:
                self._start_ready()
            # A task that others finished since the tasks were read may have let another one start.
            is_finished = self._is_finished() and (self.is_draining or self._tasks == self._list_tasks())
            on_status(self.status())  # last, so that the status shows a stop that was just requested
        except StoreError as error:
            # Supervisors continue, and keep their claims as long as their leases last.
            now = time.monotonic()
            self._store_lost_at = self._store_lost_at or now
            if not self._request.is_continuous and now - self._store_lost_at > _MAX_OUTAGE_SECONDS:
                raise
            on_status(self.status(trouble=f"{error.message} [{error.code}]"))
            self._step_at = now + RETRY_SECONDS
            return self.is_draining and not self._pool.processes
        self._store_lost_at = 0.0
        return is_finished

    def _end_all(self) -> None:
        """Stop every child process; usually none is left."""
        if self._pool.processes:
            self._pool.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while self._pool.processes and time.monotonic() < deadline:
            self._read_reports()
            self._pool.wait()
        self._pool.kill()
        self._landing.stop()
        self._fork_server.close()
        with contextlib.suppress(StoreError):  # the next orchestrator cleans up
            self._try(self._clean_up)  # without landing: that child would outlive this process

    def _read_reports(self) -> None:
        for process in self._pool.read_reports():
            self._step_at = 0.0
            self._handle_end(process)
        for text in self._landing.poll():
            self._on_event(RunEvent(kind=RunEventKind.NOTE, text=text))

    def _handle_end(self, process: SupervisorProcess) -> None:
        task_id, outcome = process.task.id, process.outcome
        if outcome == AttemptOutcome.KILLED and process.slot.stage == Stage.STARTING:
            self._upkeep_at = 0.0  # its last reports may be lost, and it may have taken its task
            self._note_failed_start(task_id, "its supervisor ended at once")
            return
        self._backoff.failed_starts = 0
        if outcome in WITHOUT_ATTEMPT:
            why, is_error = str(process.result.get("why", "")), bool(process.result.get("code"))
            self._backoff.note_not_taken(task_id, why, is_error=is_error)
            return
        self._backoff.note_attempt(task_id)
        self._follower.note_cost(process)
        if self.is_stopping and outcome == AttemptOutcome.RETURNED:
            self._stopped[task_id] = str(process.result.get("rescue") or "")
        if outcome == AttemptOutcome.KILLED:
            self._upkeep_at = 0.0
            self._follower.on_report(process, {"event": "ended", "cause": "its supervisor was killed"})

    def _note_failed_start(self, task_id: str, why: str) -> None:
        """Drain after too many failed starts: something other than the task is broken."""
        paused = self._backoff.note_failed_start(task_id, why)
        if paused:
            self._paused = paused
            self.is_draining = True

    def _upkeep(self) -> None:
        now = time.monotonic()
        if now >= self._upkeep_at:
            self._upkeep_at = now + _UPKEEP_SECONDS
            self._try(self._clean_up)
        self._try(lambda: self._landing.start_if_needed(is_failing=self._failing is not None))

    def _clean_up(self) -> None:
        """Clean up after dead processes, join tasks that were split, and close what has landed."""

        def report_all(step: Callable[[Repository], list[str]]) -> None:
            for line in step(self._repo):
                self._repo.report(line)

        for step in (end_orphaned_attempts, end_abandoned_runs, close_abandoned_workspaces):
            self._try(lambda step=step: report_all(step))
        self._try(lambda: settle_fans(self._repo))
        self._try(lambda: clean_up_here(self._repo))
        if not self._backoff.has_too_many_failed_starts:
            self._paused = get_pool(self._repo).paused

    def _try(self, step: Callable[[], object]) -> None:
        """Run a step; report an error once, however often it occurs in a row."""
        try:
            step()
        except StoreError:
            raise
        except (LandlaneError, OSError) as error:
            if str(error) != self._last_report:
                self._repo.report(str(error))
            self._last_report = str(error)

    def _list_tasks(self) -> list[Task]:
        """Return the tasks of this run, with their children and follow-ups."""
        tasks = list_tasks(self._repo)
        requested = self._request.tasks
        if not requested:
            return tasks
        lineages = {task.lineage for task in tasks if task.id in requested}
        return [task for task in tasks if task.id in requested or task.lineage in lineages]

    def _find_failing_target(self) -> FailingTarget | None:
        """Return the failure of the target, as far as the queue has seen one, and who may repair it."""
        failure = get_queue(self._repo, self._branch).failure if self._branch else None
        if failure is None:
            return None
        roots = (task for task in list_tasks(self._repo) if task.id == task.lineage)
        lineages = frozenset(task.id for task in roots if FIXES_TARGET in task.labels)
        return FailingTarget(branch=self._branch, failure=failure, lineages=lineages)

    def _start_ready(self) -> None:
        """Start ready tasks while slots are free."""
        free = self._request.workers - len(self._pool.processes) - self._count_adopted()
        if free <= 0 or self._paused:
            return
        supervised = self._pool.task_ids
        ready = [task for task in self._tasks if task.state == READY and task.id not in supervised]
        if not ready:
            return
        running = [(process.task, process.agent) for process in self._pool.processes]
        admission = Admission(self._repo, self._request.agent, running, self.name, self._failing)
        self._backoff.forget_refusals()
        refusals = self._backoff.refusals
        for task in sorted(ready, key=lambda task: (task.rank, len(task.id), task.id)):
            if free <= 0:
                refusals.setdefault(task.id, StartRefusal(why=ALL_SLOTS_TAKEN, is_permanent=False))
            elif self._backoff.is_delayed(task.id):
                continue
            elif (refusal := admission.why_not(task)) is not None:
                refusals[task.id] = refusal
            else:
                self._start(task, admission.agent_of(task))
                admission.begin(task)
                free -= 1

    def _count_adopted(self) -> int:
        """Count attempts on this machine without a living orchestrator: they use slots of this run.

        The supervisors of a killed orchestrator continue. An attempt of this run whose supervisor was killed
        counts until it is cleaned up.
        """
        machine, supervised = self._repo.processes.machine, self._pool.task_ids
        count = 0
        for attempt in running_attempts(self._repo):
            if attempt.machine != machine:
                continue
            is_own = attempt.orchestrator == self.name
            if attempt.task not in supervised if is_own else not self._is_alive(attempt.orchestrator):
                count += 1
        return count

    def _is_alive(self, orchestrator: str) -> bool:
        here = self._repo.processes.current()
        _, _, rest = orchestrator.partition(":")
        pid, _, started = rest.partition(":")
        if not pid.isdigit() or not started.isdigit():
            return False
        process = Process(boot_id=here.boot_id, namespace=here.namespace, pid=int(pid), started=int(started))
        return not self._repo.processes.is_gone(process)

    def _start(self, task: Task, agent: Agent) -> None:
        order = WorkOrder(
            task=task.id,
            agent=agent,
            role=role_for(self._repo.settings, task, agent),
            orchestrator=self.name,
            is_offline=self._request.is_offline,
        )
        try:
            self._pool.start(task, order)
        except OSError as error:
            self._note_failed_start(task.id, str(error))

    def _is_finished(self) -> bool:
        """Return whether nothing is left that this run could do."""
        request = self._request
        if self._pool.processes:
            return False
        if self.is_stopping:
            return True
        if self._landing.is_running:
            return False
        if self.is_draining:
            return True
        if self._landing.list_unsubmitted() and not self._landing.is_stuck():
            return False
        if request.is_continuous:
            return request.until_empty and not self._has_open_tasks()
        if list_landings(self._repo, (QUEUED, TESTING)) and not self._landing.is_stuck():
            return False
        if self._paused:
            return True
        if request.until_empty:
            return not self._has_open_tasks()
        ready = [task for task in self._tasks if task.state == READY]
        refused = [self._backoff.refusals.get(task.id) for task in ready]
        is_all_refused = all(refusal is not None and refusal.is_permanent for refusal in refused)
        return is_all_refused and not self._count_adopted()

    def _has_open_tasks(self) -> bool:
        return any(task.state not in FINISHED for task in self._tasks)

    def _own_tasks(self) -> list[Task]:
        """Return the tasks of this run without those that were finished before it, unless requested."""
        return [task for task in self._tasks if task.id not in self._finished_before]

    def status(self, trouble: str = "") -> RunStatus:
        """Return the current status of the run."""
        processes = self._pool.processes
        supervised, refusals = self._pool.task_ids, self._backoff.refusals
        own = self._own_tasks()
        running = [process.slot.cost_micros or 0 for process in processes]
        totals = self._follower.totals
        refused = [
            (task.id, refusals[task.id].why)
            for task in self._tasks
            if task.state == READY and task.id in refusals and task.id not in supervised
        ]
        budgets = (refusals[task_id].budget for task_id, _ in refused)
        rows = self._follower.rows(processes, own) if not trouble else ()
        shown = {row.task for row in rows}
        return RunStatus(
            rows=rows,
            workers=self._request.workers,
            elapsed_ms=round((time.monotonic() - self._began) * 1000),
            refusals=tuple(
                (task_id, why)
                for task_id, why in refused
                if task_id not in shown and refusals[task_id].budget is None
            ),
            paused=self._paused,
            budget=next(filter(None, budgets), None),
            is_draining=self.is_draining,
            is_stopping=self.is_stopping,
            trouble=trouble,
            failing=self._failing,
            running=tuple(process.task.id for process in processes),
            totals=replace(totals, cost_micros=totals.cost_micros + sum(running)),
            **count_states(own, shown, self._follower.held_tasks),
        )

    def _summarize(self) -> RunSummary:
        """Return the summary; wait for the store if it is unavailable, unless the run was stopped."""
        give_up_at = time.monotonic() + (0.0 if self.is_stopping else _MAX_OUTAGE_SECONDS)
        while True:
            try:
                self._tasks = self._list_tasks()
                tasks, landings = self._own_tasks(), list_landings(self._repo)
                self._follower.look(tasks)
                questions = find_questions(self._repo)
                landed = {landing.task for landing in list_landings(self._repo, (LANDED,))}
            except StoreTransient:
                if time.monotonic() >= give_up_at:
                    raise
                time.sleep(RETRY_SECONDS)
            else:
                totals, refusals = self._follower.totals, self._backoff.refusals
                summary = summarize(tasks, landings, refusals, questions, totals)
                return replace(
                    summary,
                    landed=tuple(task_id for task_id in summary.done if task_id in landed),
                    took_ms=round((time.monotonic() - self._began) * 1000),
                    paused=self._paused,
                    failing=self._find_failing_target(),
                    is_stopped=self.is_interrupted,
                    stopped=tuple(self._stopped),
                    rescues=tuple(filter(None, self._stopped.values())),
                )


def _target_branch(repo: Repository) -> str:
    try:
        return find_target(repo.home, repo.settings).branch
    except LandlaneError:
        return ""  # nothing was committed yet, so nothing can land
