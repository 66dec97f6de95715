"""The supervisor, one process per attempt: it takes the task, runs the worker and handles the result.

Killing a supervisor, the orchestrator or the worker harms no other attempt: the session is bound to the
supervisor's process, the worker's processes carry a mark, and the scratch folder is in the record of the
run. The next orchestrator cleans up.
"""

from __future__ import annotations

import os
import time
import traceback

from landlane.clock import awake_ms
from landlane.errors import LandlaneError, NotAllowed, Stale, StoreError
from landlane.exec.resident_connection import ResidentConnection
from landlane.exec.sandboxed_run import choose_sandbox_backend
from landlane.processes.tree import TREE_MARK
from landlane.protocol.worker.messages import Heartbeat, Progress, WorkFailed
from landlane.rules.file import load_rules
from landlane.rules.versions import ASSIGNMENT, acknowledge
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import GuaranteeState
from landlane.sessions.leases import touch
from landlane.tasks.attempts import record_activity
from landlane.tasks.model import IN_PROGRESS, WAITING, AttemptOutcome
from landlane.tasks.records import get_task
from landlane.tasks.retry_rules import TASK_OVER_BUDGET
from landlane.units import join_words
from landlane.usage.add import record_usage_so_far
from landlane.usage.budget import over_budget
from landlane.values import as_dict, replace
from landlane.workers.agents import make_assignment, worker_command_for
from landlane.workers.finish_attempt import AttemptFinisher, return_task, save_returned_work
from landlane.workers.model import AttemptResult
from landlane.workers.run_worker import run_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.protocol.worker.messages import Ending, Usage
    from landlane.rules.model import Rules
    from landlane.usage.model import Budget
    from landlane.workers.attempt_resources import AttemptResources
    from landlane.workers.run_worker import WorkerEnd, WorkerMessage


_RECORD_SECONDS = 5.0  # between heartbeats that are written to the store
_CHECK_SECONDS = 2.0  # between checks that the task is still ours
_MAX_BURST = 20.0  # messages of a worker that are reported at once


class MessageRelay:
    """Reports a worker's messages as fast as a person could read: a few at once, then one a second."""

    def __init__(self, report: Callable[[dict[str, Any]], None], now: float) -> None:
        self._report = report
        self._allowance = _MAX_BURST
        self._relayed_at = now
        self.usage: Usage | None = None  # as the worker last reported it

    def relay(self, message: WorkerMessage, now: float) -> None:
        """Report a message, unless there are too many."""
        if isinstance(message, Progress):
            self.usage = message.usage or self.usage
        self._allowance = min(self._allowance + now - self._relayed_at, _MAX_BURST)
        self._relayed_at = now
        if self._allowance < 1 or not isinstance(message, (Heartbeat, Progress)):
            return
        self._allowance -= 1
        usage = as_dict(self.usage) if self.usage else None
        if isinstance(message, Progress):
            self._report({"event": "says", "doing": message.text, "done": message.done, "usage": usage})
        else:
            self._report({"event": "says", "doing": message.doing or "", "usage": usage})


class WorkerMonitor:
    """Watches a running worker: records its heartbeats, and decides when it must be stopped."""

    def __init__(self, attempt: AttemptResources, resident: ResidentConnection) -> None:
        self.lost = ""  # why the task is not ours any more
        self.exceeded: Budget | None = None
        self._attempt = attempt
        self._resident = resident
        self._relay = MessageRelay(attempt.report, time.monotonic())
        self._recorded_usage: Usage | None = None
        self._check_at = 0.0
        self._record_at = 0.0
        self._waiting_since: int = 0  # for a person; 0 while the worker works
        self._waited_ms: int = 0

    def on_message(self, message: WorkerMessage) -> None:
        """Log, report and record a message of the worker."""
        attempt, now = self._attempt, time.monotonic()
        assert attempt.log is not None
        attempt.log.write_message(message)
        self._relay.relay(message, now)
        if now >= self._record_at:
            self._record_at = now + _RECORD_SECONDS
            doing = getattr(message, "doing", None) or getattr(message, "text", None) or ""
            try:
                record_activity(attempt.repo, attempt.attempt, str(doing))
            except StoreError:
                return  # the next one will be recorded

    def on_tick(self) -> str:
        """Return why the worker has to end now; empty while it may continue."""
        attempt = self._attempt
        if attempt.stop.why:
            return attempt.stop.why
        self._resident.tick(attempt.repo.store, attempt.session)
        now = time.monotonic()
        if now < self._check_at:
            return ""
        self._check_at = now + _CHECK_SECONDS
        try:
            touch(attempt.repo.store, attempt.session)
            if attempt.worker_session is not None:
                touch(attempt.repo.store, attempt.worker_session.session)
            self.lost = self.lost or self._why_lost()
            self.exceeded = self.exceeded or self._check_budget()
        except Stale as error:
            self.lost = error.message
        except StoreError:
            return ""  # while the store is unavailable, no other session can take the task
        return self.lost or (self.exceeded.why if self.exceeded is not None else "")

    def _check_budget(self) -> Budget | None:
        """Record the usage so far, and return the budget of the attempt or the task that it exceeds."""
        attempt, usage = self._attempt, self._relay.usage
        if usage is not None and usage != self._recorded_usage:
            record_usage_so_far(attempt.repo, attempt.attempt, usage, model=attempt.order.agent.model)
            self._recorded_usage = usage
        budget = over_budget(attempt.repo, attempt.task)
        return None if budget is not None and budget.is_shared else budget

    def _why_lost(self) -> str:
        """Return why the task is not ours any more. While it waits for a person, the worker's clock stops."""
        attempt = self._attempt
        task = get_task(attempt.repo, attempt.task.id)
        is_ours = task.session == attempt.session.id and task.attempt == attempt.task.attempt
        if not is_ours or task.state not in (*IN_PROGRESS, WAITING):
            return f"{task.id} was taken away: it is {task.state}{f' ({task.why})' if task.why else ''}"
        now = awake_ms()
        if task.state == WAITING:
            self._waiting_since = self._waiting_since or now
        elif self._waiting_since:
            self._waited_ms += now - self._waiting_since
            self._waiting_since = 0
        return ""

    def working_ms(self) -> int:
        """Return a clock that stops while the task waits for a person or the machine sleeps."""
        return (self._waiting_since or awake_ms()) - self._waited_ms

    def with_budget_code(self, end: WorkerEnd) -> WorkerEnd:
        """Fail a worker that was stopped for its cost."""
        message = end.outcome
        if self.exceeded is None or not isinstance(message, WorkFailed) or message.code != "stopped":
            return end
        code = {"attempt": "over_budget", "task": TASK_OVER_BUDGET}.get(self.exceeded.kind, message.code)
        return replace(end, outcome=replace(message, code=code, reason=self.exceeded.why))


class Supervisor:
    """Makes one attempt at a task."""

    def __init__(self, attempt: AttemptResources) -> None:
        self._attempt = attempt
        self._repo = attempt.repo
        self._last_message: Ending | None = None

    def run(self) -> AttemptResult:
        """Take the task, run the worker and handle the result. Whatever happens, resources are released."""
        result = AttemptResult(outcome=AttemptOutcome.NOT_TAKEN)
        try:
            result = self._attempt.take() or self._work()
        except Exception as error:  # noqa: BLE001 - the task must be returned, whatever is broken
            result = self._handle_error(error)
        finally:
            rescue = self._attempt.release(result)
        result = replace(result, rescue=result.rescue or rescue)
        self._attempt.write_log(result.outcome, result.why)
        self._attempt.report({"event": "ended", **result.to_report()})
        return result

    def _work(self) -> AttemptResult:
        attempt, repo = self._attempt, self._repo
        opens_sockets = attempt.order.agent.unix_sockets
        backend = choose_sandbox_backend(repo, attempt.role, unix_sockets=opens_sockets)
        with ResidentConnection(os.path.join(repo.common_dir, "landlane")) as resident:
            attempt.prepare(backend)
            folder, scratch = attempt.clone.path, attempt.run.scratch
            agent, role = attempt.order.agent, attempt.role
            command = worker_command_for(repo, agent, role, scratch, folder)
            rules = self._read_rules()
            assignment = make_assignment(
                repo,
                attempt.task,
                agent,
                role,
                folder=folder,
                scratch=scratch,
                base=attempt.base,
                rules=rules,
            )
            sandbox = attempt.run.make_sandbox(
                resident, attempt.worker, command, backend, unix_sockets=opens_sockets
            )
            held = list_guarantees(backend, sandbox)
            gaps = join_words([one.promise for one in held if one.state == GuaranteeState.OPEN])
            attempt.report({"event": "started", "sandbox": backend.name})
            attempt.write_log("sandbox", f"{backend.name}; not held here: {gaps}" if gaps else backend.name)
            monitor = WorkerMonitor(attempt, resident)
            end = run_worker(
                lambda streams: attempt.run.start(command.words, sandbox, backend, streams),
                assignment,
                on_message=monitor.on_message,
                on_tick=monitor.on_tick,
                now=monitor.working_ms,
            )
        if attempt.log is not None:
            attempt.log.write_end(end)
        self._last_message = end.outcome
        assert attempt.run.record is not None
        # Checks that verify the result inherit the mark, so that they are found if this process is killed.
        os.environ[TREE_MARK] = attempt.run.record.tree.id
        end = monitor.with_budget_code(end)
        return AttemptFinisher(attempt, end).finish(is_lost=bool(monitor.lost))

    def _read_rules(self) -> Rules | None:
        """Return the rules for the assignment, and record that the worker gets this version."""
        repo, file = self._repo, self._repo.settings.rules.file
        try:
            rules = load_rules(repo.checkout, repo.home, file)
        except LandlaneError as error:
            repo.report(f"the rules are not in the assignment: {error.message}")
            return None
        if rules is not None:
            acknowledge(repo, self._attempt.worker.session, rules, how=ASSIGNMENT, file=file)
        return rules

    def _handle_error(self, error: Exception) -> AttemptResult:
        """Return the task: Landlane failed, not the worker, so the attempt is not counted."""
        attempt = self._attempt
        code = getattr(error, "code", "SYSTEM_REFUSED" if isinstance(error, OSError) else "UNEXPECTED")
        if not isinstance(error, (LandlaneError, OSError)):
            self._repo.report(traceback.format_exc())
        if not attempt.has_task:
            hint = f". {error.hint}" if isinstance(error, LandlaneError) and error.hint else ""
            return AttemptResult(outcome=AttemptOutcome.NOT_STARTED, why=f"{error}{hint}", code=code)
        if isinstance(error, Stale):
            # The lease may have expired while the store was unavailable.
            saved = save_returned_work(attempt, self._last_message) if attempt.retry.has_waited else ""
            return AttemptResult(outcome=AttemptOutcome.LOST, why=f"{error}{saved}")
        if isinstance(error, NotAllowed) and code == "RUN_PAUSED":
            return AttemptResult(outcome=AttemptOutcome.RETURNED, why=str(error))
        saved = save_returned_work(attempt, self._last_message)
        why = f"{code}: {str(error) or type(error).__name__}{saved}"
        try:
            return attempt.retry.run(lambda: return_task(attempt, code="not_started", why=why))
        except (Stale, StoreError) as stale:  # verified without an owner, or the store is still unavailable
            self._repo.report(f"{attempt.task.id} is not put back: {stale.message}")
            return AttemptResult(outcome=AttemptOutcome.LOST, why=why, code=stale.code, keeps_workspace=True)
