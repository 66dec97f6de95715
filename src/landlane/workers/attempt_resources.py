"""What belongs to one attempt while it lasts, and clearing it away: sessions, workspace, scratch, records."""

from __future__ import annotations

import os
import tempfile
import time

from landlane.errors import LandlaneError, Stale, StoreError
from landlane.exec.cleanup import SCRATCH_PREFIX, remove_scratch, unpin
from landlane.git.target import commit_at
from landlane.ids import short_id
from landlane.protocol.worker.messages import WorkComplete
from landlane.roles.built_in import find_role
from landlane.roles.model import may_commit
from landlane.sessions.join import leave
from landlane.sessions.sandbox_runs import ENDED as RUN_ENDED
from landlane.sessions.sandbox_runs import change_run
from landlane.state.slots import return_unused
from landlane.tasks.attempt_model import ENDED
from landlane.tasks.attempts import change_attempt
from landlane.workers.finish_attempt import give_back
from landlane.workers.returned.save import save_returned
from landlane.workers.store_outage import Patience
from landlane.workers.work_order import Outcome
from landlane.workspaces.close import close_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.exec.clone import Ground
    from landlane.protocol.worker.messages import Ending, Usage
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session
    from landlane.sessions.sandbox_runs import Run
    from landlane.state.slot_kinds import Slot
    from landlane.tasks.attempt_model import Attempt
    from landlane.tasks.model import Task
    from landlane.usage.budget import Budget
    from landlane.workers.attempt_log import AttemptLog
    from landlane.workers.work_order import WorkOrder, Workplace


class Halt:
    """Whether somebody asked the keeper to end, and why."""

    def __init__(self) -> None:
        self.why = ""


class Attendance:
    """Everything that an attempt has, as far as it has it already."""

    def __init__(
        self, place: Workplace, order: WorkOrder, tell: Callable[[dict[str, Any]], None], halt: Halt
    ) -> None:
        self._place = place
        self._repo = place.repo
        self._repo = place.repo
        self._order = order
        self._tell = tell
        self._halt = halt
        self._role: Role = find_role(self._repo.settings, order.role)
        self._is_committing = may_commit(self._role)
        self._scratch = os.path.join(
            os.path.realpath(tempfile.gettempdir()), SCRATCH_PREFIX + short_id("x")[2:]
        )
        self._owner: Joined | None = None  # holds the task and its claims
        self._hands: Joined | None = None  # what the worker acts as
        self._task: Task | None = None
        self._attempt: Attempt | None = None
        self._run: Run | None = None
        self._ground: Ground | None = None
        self._base = ""
        self._log: AttemptLog | None = None
        self._lost = ""
        self._last_word: Ending | None = None
        self._patience = Patience(place.repo.report, lambda: bool(halt.why))
        self._resting_since: int = 0  # when a person was asked; 0 while nobody is
        self._rested_ms: int = 0
        self._look_at = 0.0
        self._sign_at = 0.0
        self._used: Usage | None = None  # what the worker says that it has used so far
        self._noted: Usage | None = None
        self._over: Budget | None = None  # the budget that is used up
        self._slots: list[Slot] = []
        self._allowance = 20.0  # lines of the worker that may be passed on now
        self._said_at = time.monotonic()

    @property
    def _session(self) -> Session:
        assert self._owner is not None
        return self._owner.session

    def _note(self, kind: str, text: str) -> None:
        if self._log is not None and text:
            self._log.write(kind, text)

    def _clear(self, outcome: Outcome) -> None:
        """Clear everything away; each step whatever becomes of the others."""
        repo = self._repo
        if self._task is None and self._slots:  # what counts by time was not used, either
            self._try(lambda: return_unused(self._repo, self._session, self._slots))
        if self._attempt is not None:
            facts: dict[str, Any] = {"state": ENDED, "code": outcome.code, "reason": outcome.why[:2000]}
            facts |= {"outcome": outcome.kind, "head": outcome.head, "usage": outcome.usage}
            attempt = self._attempt
            self._try_on(lambda: change_attempt(self._repo, attempt, "ended", **facts))
        for joined in (self._hands, self._owner):
            if joined is not None:
                self._try_on(lambda one=joined: _end(repo, one.session))
        if self._ground is not None and self._ground.workspace is not None and not outcome.keeps_workspace:
            self._try(self._close_workspace)
        if self._owner is not None:
            self._try(lambda: unpin(repo, self._session.id))
        self._try(lambda: remove_scratch(self._scratch))
        if self._run is not None:
            run = self._run
            self._try_on(lambda: change_run(self._repo, run, "ended", state=RUN_ENDED, why=outcome.kind))

    def _give_back(self, why: str) -> Outcome:
        """Put the task back; where that cannot be done, whoever comes next does it."""
        task, agent = self._task, self._order.agent
        assert task is not None
        try:
            return self._patience.outlast(
                lambda: give_back(self._place, self._session, task, agent, code="not_started", why=why)
            )
        except (Stale, StoreError) as error:  # proved and in nobody's hands, or the store is still away
            self._repo.report(f"{task.id} is not put back: {error.message}")
            return Outcome(kind="lost", why=why, code=error.code, keeps_workspace=True)

    def _save_returned(self) -> str:
        """Save what the worker returned, if it is nowhere else; tells where, to be put behind a reason."""
        task, said = self._task, self._last_word
        if task is None or not isinstance(said, WorkComplete):
            return ""
        if commit_at(self._repo.home, f"refs/heads/{task.branch}") not in ("", self._base):
            return ""  # it was handed in
        try:
            folder = save_returned(self._place.state, task, said, self._scratch)
        except (LandlaneError, OSError) as error:
            self._repo.report(f"what was returned for {task.id} cannot be saved: {error}")
            return ""
        return f"; what was returned is kept in {folder}" if folder else ""

    def _close_workspace(self) -> None:
        assert self._ground is not None
        assert self._ground.workspace is not None
        closed = close_workspace(self._repo, None, self._ground.workspace, force=True)
        if closed.rescue:
            self._repo.report(f"what was not committed is saved: `landlane rescue restore {closed.rescue}`")

    def _try_on(self, step: Callable[[], object]) -> None:
        """The same for what is written down: a store that is away for a moment is waited for."""
        self._try(lambda: self._patience.outlast(step))

    def _try(self, step: Callable[[], object]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the steps that follow must be done, whatever is broken
            self._repo.report(str(error) or type(error).__name__)


def _end(repo: Repository, session: Session) -> None:
    try:
        leave(repo, session)
    except StoreError:
        raise
    except LandlaneError:
        return  # it left by itself, or lapsed
