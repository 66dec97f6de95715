"""What one attempt holds (sessions, resource slots, task, claims, clone, log), taken and released."""

from __future__ import annotations

import os
import time

from landlane.claims.take import list_claims
from landlane.errors import StoreTransient
from landlane.exec.cleanup import end_session
from landlane.exec.clone import SandboxClone, make_throwaway_clone
from landlane.exec.sandboxed_run import SandboxedRun
from landlane.exec.save_leftovers import save_leftovers
from landlane.git.target import find_base, find_target
from landlane.landing.submit import is_commit_available
from landlane.managed_files.client_files import equip
from landlane.reviews.records import commit_under_review
from landlane.roles.model import find_role, may_commit
from landlane.sessions.worker_sessions import join_under_free_name, join_worker_session
from landlane.state.slot_kinds import SlotRefused
from landlane.state.slots import make_slot_request, return_unused, take_slot
from landlane.tasks.attempts import begin_attempt, change_attempt
from landlane.tasks.model import READY, AttemptOutcome, AttemptState
from landlane.tasks.pick import take_task
from landlane.tasks.records import get_task, task_patterns
from landlane.tasks.worker_caps import WORKERS_AREA, agents_running, why_full
from landlane.workers.agents import needs_of
from landlane.workers.attempt_log import AttemptLog, log_path
from landlane.workers.model import AttemptResult
from landlane.workspaces.close import close_workspace
from landlane.workspaces.model import CLONE
from landlane.workspaces.open import open_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from landlane.repository import Repository
    from landlane.sandbox.model import Backend
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session, Slot
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Attempt, Task
    from landlane.workers.model import StopRequest, WorkOrder

    T = TypeVar("T")


MAX_OUTAGE_SECONDS = 120.0  # as long as a run continues without its store
_MAX_OUTAGE_WHEN_STOPPING = 5.0
RETRY_SECONDS = 0.5


class StoreRetry:
    """Retries steps while the store is unavailable, so that the result of an attempt is not lost.

    After an outage that lasted too long, further steps are tried once.
    """

    def __init__(self, report: Callable[[str], None], stop: StopRequest) -> None:
        self._report = report
        self._stop = stop
        self._unavailable_since: float | None = None
        self.has_waited = False

    def run(self, step: Callable[[], T], before_retry: Callable[[], object] = lambda: None) -> T:
        """Run a step, again while the store is unavailable; running it twice must do no harm.

        Raises:
            StoreTransient: the store has been unavailable for too long.
        """
        is_retry = False
        while True:
            try:
                if is_retry:
                    before_retry()
                result = step()
            except StoreTransient as error:
                self._wait(error)
                is_retry = True
            else:
                self._unavailable_since = None
                return result

    def _wait(self, error: StoreTransient) -> None:
        now = time.monotonic()
        if self._unavailable_since is None:
            self._unavailable_since = now
        limit = MAX_OUTAGE_SECONDS
        if self._stop.why:
            limit = min(_MAX_OUTAGE_WHEN_STOPPING, limit)
        if now - self._unavailable_since >= limit:
            raise error
        if not self.has_waited:
            self._report(
                f"waiting for the store, to write down what was done: {error.message} [{error.code}]"
            )
        self.has_waited = True
        time.sleep(RETRY_SECONDS)


class AttemptResources:
    """Everything an attempt holds, as far as it was acquired."""

    def __init__(
        self,
        repo: Repository,
        order: WorkOrder,
        report: Callable[[dict[str, Any]], None],
        stop: StopRequest,
    ) -> None:
        self.repo = repo
        self.order = order
        self.report = report
        self.role = find_role(repo.settings, order.role)
        self.is_committing = may_commit(self.role)
        self.run = SandboxedRun(repo, self.role)
        self.stop = stop
        self.retry = StoreRetry(repo.report, stop)
        self.base = ""  # the commit that the work starts from
        self.log: AttemptLog | None = None
        self.worker_session: Joined | None = None  # unless the worker acts as the owner
        self._owner: Joined | None = None  # holds the task and its claims
        self._slots: list[Slot] = []
        self._task: Task | None = None
        self._attempt: Attempt | None = None
        self.returned_patch = ""  # by the worker
        self._leftovers: str | None = None  # the rescue of what the worker left; None until it was looked for

    @property
    def session(self) -> Session:
        """The session that holds the task and its claims."""
        assert self._owner is not None
        return self._owner.session

    @property
    def worker(self) -> Joined:
        """The session that the worker acts as."""
        joined = self.worker_session or self._owner
        assert joined is not None
        return joined

    @property
    def has_task(self) -> bool:
        """Whether the task was taken."""
        return self._task is not None

    @property
    def task(self) -> Task:
        assert self._task is not None
        return self._task

    @property
    def attempt(self) -> Attempt:
        assert self._attempt is not None
        return self._attempt

    @property
    def clone(self) -> SandboxClone:
        assert self.run.clone is not None
        return self.run.clone

    def write_log(self, kind: str, text: str) -> None:
        """Add a line to the log, if there is one."""
        if self.log is not None and text:
            self.log.write(kind, text)

    def take(self) -> AttemptResult | None:
        """Start a session, and take slots, task and claims; return a result if that is not possible now."""
        repo, order = self.repo, self.order
        own_role = self.role.name if self.is_committing else ""
        here = repo.processes.current()
        name = f"{order.agent.name[:40]}-{order.task}"
        self._owner = join_under_free_name(repo, name, role=own_role, process=here)
        task = get_task(repo, order.task)
        for kind, amount in needs_of(task, order.agent).items():
            slot = take_slot(repo, self.session, make_slot_request(repo, kind, amount=amount))
            if isinstance(slot, SlotRefused):
                why = f"needs {amount} of {kind}; {slot.left} of {slot.size} are free"
                return AttemptResult(outcome=AttemptOutcome.NOT_STARTED, why=why)
            self._slots.append(slot.slot)
        target = find_target(repo.home, repo.settings)
        base = find_base(repo.home, target, is_offline=order.is_offline)
        reviewed = commit_under_review(repo, task)
        if reviewed and not is_commit_available(repo, reviewed, is_offline=order.is_offline):
            why = f"{reviewed[:12]} is not here: it can be reviewed where it was made, or once it is shared"
            return AttemptResult(outcome=AttemptOutcome.NOT_STARTED, why=why, code="head_not_here")
        self.base = reviewed or base.commit  # a reviewer reads the commit under review
        begun: list[Attempt] = []  # the last one counts: a transaction may be run again

        def begin(tx: Transaction, task: Task) -> None:
            begun.append(self._begin_attempt(tx, task))

        full: list[str] = []

        def is_allowed(tx: Transaction) -> bool:
            full[:] = filter(None, [why_full(repo.settings, order.agent.name, agents_running(tx))])
            return not full

        picked = take_task(
            repo,
            self.session,
            order.task,
            self.base,
            also=begin,
            is_allowed=is_allowed,
            areas=WORKERS_AREA,
        )
        if picked is None and full:
            return AttemptResult(outcome=AttemptOutcome.NOT_STARTED, why=f"waits for {full[0]}")
        if picked is None:
            return AttemptResult(outcome=AttemptOutcome.NOT_TAKEN, why=self._why_not_taken())
        task = picked.task
        self._task, self._attempt = task, begun[-1]
        self.log = AttemptLog(repo.state_folder, task.id, task.attempt, secrets=(self._owner.secret,))
        self.log.write("begun", f"{self.session.agent} in the role {self.role.name} from {self.base[:12]}")
        taken = {"tries": task.tries, "agent": self.session.agent, "id": self._attempt.id}
        self.report({"event": "taken", **taken})
        return None

    def _begin_attempt(self, tx: Transaction, task: Task) -> Attempt:
        """Record the attempt in the transaction that takes the task, so that a kill cannot separate them."""
        return begin_attempt(
            tx,
            self.repo,
            self.session,
            task,
            role=self.role.name,
            client=self.order.agent.client,
            kind=self.order.agent.name,
            orchestrator=self.order.orchestrator,
            log=os.path.basename(log_path(self.repo.state_folder, task.id, task.attempt)),
        )

    def _why_not_taken(self) -> str:
        """Return who has the task or its paths now."""
        repo = self.repo
        task = get_task(repo, self.order.task)
        if task.state != READY:
            return f"it is {task.state}" + (f", by {task.owner}" if task.owner else "")
        patterns = task_patterns(repo, task)
        claims = list_claims(repo, patterns) if patterns else []
        if not claims:
            return "another session has it, or its paths"
        return f"{claims[0].agent} holds {claims[0].pattern}"

    def prepare(self, backend: Backend) -> None:
        """Create the record of the run, the scratch folder and the clone."""
        repo, task = self.repo, self.task
        if not self.is_committing:
            self.worker_session = join_worker_session(repo, self.session, self.role.name)
            if self.log is not None:
                self.log.hide(self.worker_session.secret)
        worker = self.worker_session.session.id if self.worker_session else ""
        record = self.run.begin(
            self.session, backend, program=self.order.agent.name, task=task.id, worker=worker
        )
        self._attempt = change_attempt(repo, self.attempt, "placed", run=record.id)
        if self.is_committing:
            workspace = open_workspace(
                repo, self.session, task.id, kind=CLONE, is_offline=self.order.is_offline
            ).workspace
            clone = SandboxClone(path=workspace.path, task=task.id, workspace=workspace)
            self.base = workspace.base
        else:
            path = make_throwaway_clone(repo, self.session, self.run.scratch, self.base)
            equip(repo, path)  # the client's hooks, which notify it of events
            clone = SandboxClone(path=path, task=task.id)
        self.run.enter(clone)

    def save_leftovers(self, *, without: Sequence[str] = (), has_scratch: bool = True) -> str:
        """Save once what the worker left in its throwaway clone and its scratch folder; return the rescue.

        All its processes have ended, so the files do not change any more.

        Raises:
            LandlaneError: it cannot be saved, and must not be removed then.
        """
        if self.run.clone is None or self.run.clone.workspace is not None:
            return ""
        if self._leftovers is None:
            task = self.task
            self._leftovers = save_leftovers(
                self.repo,
                self.session,
                self.run.scratch,
                base=self.base,
                reason=f"left by attempt {task.attempt} at {task.id}",
                task=task.id,
                attempt=task.attempt,
                without=without,
                has_scratch=has_scratch,
                patch=self.returned_patch,
            )
        return self._leftovers

    def release(self, result: AttemptResult) -> str:
        """End and remove everything; a step that fails does not stop the next ones.

        Return the id under which uncommitted work was saved; empty if there was none. What cannot be saved,
        for instance because the store is away, is not removed: the next run saves it and cleans up.
        """
        repo = self.repo
        rescues: list[str] = []
        # A change that was collected is on its branch.
        is_saved = bool(result.head) or self._try_with_retry(lambda: rescues.append(self.save_leftovers()))
        if self._task is None and self._slots:  # resources counted over time were not used, either
            self._try(lambda: return_unused(repo, self.session, self._slots))
        if self._attempt is not None:
            attempt = self._attempt
            changes = {
                "state": AttemptState.ENDED,
                "outcome": result.outcome,
                "reason": result.why[:2000],
                "code": result.code,
                "head": result.head,
                "usage": result.usage,
                "resets_at": result.resets_at,
            }
            self._try_with_retry(lambda: change_attempt(repo, attempt, "ended", **changes))
        for joined in (self.worker_session, self._owner):
            if joined is not None:
                self._try_with_retry(lambda session=joined.session: end_session(repo, session))
        if not result.keeps_workspace:
            self._try(lambda: rescues.append(self._close_workspace()))
        if is_saved:
            self._try(self.run.unpin)
            self._try(self.run.remove_scratch)
            self._try_with_retry(lambda: self.run.end(result.outcome))
        return "".join(rescues)

    def _close_workspace(self) -> str:
        """Close the workspace; return the id under which its uncommitted work was saved."""
        workspace = self.run.clone.workspace if self.run.clone is not None else None
        return close_workspace(self.repo, None, workspace, force=True).rescue if workspace is not None else ""

    def _try_with_retry(self, step: Callable[[], object]) -> bool:
        """Run a step that writes to the store, again while it is unavailable; return whether it ran."""
        return self._try(lambda: self.retry.run(step))

    def _try(self, step: Callable[[], object]) -> bool:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the next steps must run, whatever is broken
            self.repo.report(str(error) or type(error).__name__)
            return False
        return True
