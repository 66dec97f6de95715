"""Handle a worker's last message: collect its change, verify and submit it, or decide about a retry."""

from __future__ import annotations

import signal

from landlane.errors import LandlaneError, Malformed, NotAllowed, Stale, StoreError
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.run import resolve_revision, try_git_output
from landlane.git.target import commit_at
from landlane.ids import digest
from landlane.landing.records import list_landings
from landlane.landing.rejected_tasks import fail_unsubmitted
from landlane.landing.submit import submit_branch
from landlane.protocol.worker.messages import WorkComplete, WorkFailed
from landlane.reviews.give_verdict import take_verdict
from landlane.roles.enforce import record_role_violation
from landlane.sessions.leases import touch
from landlane.tasks.attempts import change_attempt, running_attempts
from landlane.tasks.evidence import complete_task
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import (
    COMMIT,
    DONE,
    IN_PROGRESS,
    LANDING,
    PATHS,
    REVIEW,
    REVIEW_KIND,
    WAITING,
    AttemptOutcome,
    effective_kind,
    required_evidence,
    returned_branch_of,
)
from landlane.tasks.records import get_task
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import RATE_LIMITED, AttemptEnd, RetryOutcome
from landlane.tasks.worker_pool import note_rate_limit, note_success
from landlane.usage.add import book, with_reported
from landlane.usage.model import UsageEntry, attempt_key
from landlane.usage.totals import cost_of_attempt
from landlane.values import as_dict, replace
from landlane.workers.model import MESSAGES, AttemptResult, Stage
from landlane.workers.returned.commit import ReturnedWork, commit_returned, commit_unclaimed
from landlane.workers.returned.output import copy_output, save_returned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from landlane.protocol.worker.messages import Ending
    from landlane.tasks.model import Task
    from landlane.workers.attempt_resources import AttemptResources
    from landlane.workers.run_worker import WorkerEnd

    T = TypeVar("T")


_MAX_FEEDBACK = 3500
# Killed from outside, perhaps for lack of memory: counted as a lapse, which does not blame the task.
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


def return_task(attempt: AttemptResources, *, code: str, why: str) -> AttemptResult:
    """Return a task that could not start, without counting the attempt.

    The same failure on several tasks pauses the worker pool.
    """
    agent = attempt.order.agent.name
    end = AttemptEnd(code=code, feedback=why[:_MAX_FEEDBACK], is_infrastructure=True, kind=agent)
    decision = end_attempt(attempt.repo, attempt.session, attempt.task.id, end)
    return AttemptResult(
        outcome=AttemptOutcome(decision.outcome),
        why=decision.why or why,
        code=code,
        cause=why,
        retry_at=decision.not_before,
    )


def save_returned_work(attempt: AttemptResources, message: Ending | None) -> str:
    """Save a returned change that is not on a branch yet; return a note that says where."""
    task, repo = attempt.task, attempt.repo
    if not isinstance(message, WorkComplete):
        return ""
    if commit_at(repo.home, f"refs/heads/{task.branch}") not in ("", attempt.base):
        return ""  # it was committed
    try:
        folder = save_returned(repo.state_folder, task, message, attempt.run.scratch)
    except (LandlaneError, OSError) as error:
        repo.report(f"what was returned for {task.id} cannot be saved: {error}")
        return ""
    return f"; what was returned is kept in {folder}" if folder else ""


class AttemptFinisher:
    """Finishes an attempt whose worker has ended. Every step can be repeated after an outage of the store."""

    def __init__(self, attempt: AttemptResources, end: WorkerEnd) -> None:
        self._attempt = attempt
        self._end = end
        self._repo = attempt.repo
        self._session = attempt.session
        self._task = attempt.task
        message = end.outcome
        attempt.returned_patch = (message.patch or "") if isinstance(message, WorkComplete) else ""

    def finish(self, *, is_lost: bool) -> AttemptResult:
        """Return the result of the attempt.

        Raises:
            Stale: the task belongs to another session now.
            StoreError: the store is not available.
        """
        clone = self._attempt.clone
        self._retry(self._book_usage)
        if clone.workspace is not None:
            fetch_clone_branch(self._repo.home, clone.path, clone.workspace.branch)
        task = self._read_task()
        message = self._end.outcome
        if task.state == WAITING:
            head, note = self._keep_change(is_ours=True)
            return self._result(AttemptOutcome.WAITING, why=task.why + note, head=head, keeps_workspace=True)
        if is_lost or task.session != self._session.id or task.state not in IN_PROGRESS:
            head, note = self._keep_change(is_ours=False)
            note = note or self._save_unfinished()
            why = message.reason if isinstance(message, WorkFailed) else message.summary
            return self._result(AttemptOutcome.LOST, why=why + note, head=head)
        return self._failed(message) if isinstance(message, WorkFailed) else self._completed(message)

    def _retry(self, step: Callable[[], T]) -> T:
        """Run a repeatable step, again while the store is unavailable; the session stays alive."""
        return self._attempt.retry.run(step, lambda: touch(self._repo.store, self._session))

    def _read_task(self) -> Task:
        return self._retry(lambda: get_task(self._repo, self._task.id))

    def _result(self, outcome: AttemptOutcome | RetryOutcome, **more: Any) -> AttemptResult:
        usage = self._end.outcome.usage
        return AttemptResult(outcome=AttemptOutcome(outcome), usage=as_dict(usage) if usage else None, **more)

    def _report_stage(self, stage: Stage) -> None:
        self._attempt.report({"event": "stage", "stage": stage})

    def _book_usage(self) -> None:
        """Book the usage once, whatever became of the work."""
        task, agent = self._task, self._attempt.order.agent
        entry = UsageEntry(
            key=attempt_key(self._attempt.attempt.id),
            lineage=task.lineage,
            task=task.id,
            attempt=task.attempt,
            agent=self._session.agent,
            client=agent.client,
            model=agent.model,
            at=self._repo.wall_ms(),
        )
        book(self._repo, with_reported(entry, self._end.outcome.usage))

    def _keep_change(self, *, is_ours: bool) -> tuple[str, str]:
        """Commit a returned change for the next owner of the task; return its head and a note.

        Raises:
            StoreError: the store is not available.
        """
        message, task = self._end.outcome, self._task
        if not isinstance(message, WorkComplete) or not self._needs_commit():
            return "", ""
        # On a branch of its own where others may work, or where the worker has committed itself.
        is_free = is_ours and self._attempt.clone.workspace is None
        branch = task.branch if is_free else returned_branch_of(task.id, task.attempt)
        try:
            head = self._retry(lambda: commit_unclaimed(self._returned_work(message), branch))
        except StoreError:
            raise
        except LandlaneError as error:
            return "", f"; what it returned is not kept: {error.code}: {error.message}"
        return head, f"; what it returned is on {branch} at {head[:12]}" if head else ""

    def _save_unfinished(self) -> str:
        """Save what a worker left in its throwaway clone when another session continues its task."""
        try:
            rescue = self._retry(self._attempt.save_leftovers)
        except StoreError:
            raise
        except (LandlaneError, OSError) as error:
            return f"; what it left is not saved: {error}"
        return f"; what it left is saved: landlane rescue restore {rescue}" if rescue else ""

    def _failed(self, message: WorkFailed) -> AttemptResult:
        stderr, exit_code = self._end.stderr.strip(), self._end.exit_code
        is_new = any(" ".join(line.split()) not in message.reason for line in stderr.splitlines())
        reason = message.reason + (f"\n{stderr[-1500:]}" if is_new and message.code != "stopped" else "")
        notes = f"\nnotes: {message.notes}" if message.notes else ""
        if message.code == RATE_LIMITED:
            self._note_rate_limit(message)
        if message.code == "died" and exit_code in _KILLED:
            return self._end_attempt("killed", reason + notes, message=message)
        # A worker that exits with 0 and no message was started, but does not speak the protocol.
        has_not_started = message.code == "died" and not self._end.messages and exit_code != 0
        if message.code == "not_started" or has_not_started:
            return self._retry(lambda: return_task(self._attempt, code=message.code, why=reason))
        return self._end_attempt(
            message.code, reason + notes, may_retry=message.retry is not False, message=message
        )

    def _note_rate_limit(self, message: WorkFailed) -> None:
        agent = self._attempt.order.agent.name
        attempts = self._retry(lambda: running_attempts(self._repo))
        running = sum(attempt.kind == agent for attempt in attempts)
        pause_ms = _retry_after_ms(message)
        self._retry(lambda: note_rate_limit(self._repo, agent, running, pause_ms))

    def _end_attempt(
        self,
        code: str,
        feedback: str,
        *,
        head: str = "",
        may_retry: bool = True,
        message: WorkFailed | None = None,
    ) -> AttemptResult:
        """End an unsuccessful attempt: the retry rules decide between the queue and a person."""
        repo, task, attempt = self._repo, self._task, self._attempt.attempt
        end = AttemptEnd(
            code=code,
            feedback=feedback[:_MAX_FEEDBACK],
            change=self._digest_change(head),
            took_ms=max(repo.wall_ms() - attempt.started_at, 0),
            cost_micros=self._retry(lambda: cost_of_attempt(repo, attempt.id)),
            may_retry=may_retry,
            retry_after_ms=_retry_after_ms(message) if message else 0,
        )
        # If repeated, either step finds that the task has moved on, and raises Stale.
        if self._read_task().state == LANDING:  # it was verified, and belongs to the queue
            decision = self._retry(lambda: fail_unsubmitted(repo, self._session, task, end))
        else:
            decision = self._retry(lambda: end_attempt(repo, self._session, task.id, end))
        is_limit = code == RATE_LIMITED and end.retry_after_ms > 0
        return self._result(
            decision.outcome,
            why=decision.why or feedback,
            code=code,
            head=head,
            cause=feedback,
            resets_at=repo.wall_ms() + end.retry_after_ms if is_limit else 0,
            retry_at=decision.not_before,
        )

    def _digest_change(self, head: str) -> str:
        """Return a digest that is the same for the same change, whenever it was made."""
        base = self._attempt.base
        tip = head or resolve_revision(self._repo.home, f"refs/heads/{self._task.branch}^{{commit}}")
        if not tip or tip == base:
            return ""
        return digest(try_git_output(self._repo.home, "diff-tree", "-r", base, tip))

    def _completed(self, message: WorkComplete) -> AttemptResult:
        """Collect what the worker returned, and verify it."""
        needs_commit = self._needs_commit()
        try:
            head = self._retry(lambda: self._collect(message, needs_commit=needs_commit))
        except (Stale, StoreError):
            raise
        except LandlaneError as error:
            return self._end_attempt("unfit", f"{error.message} [{error.code}]\n{error.hint}")
        if head and self._attempt.clone.workspace is None:
            # Recovery submits this head if this process is killed before it does.
            attempt = self._attempt.attempt
            self._retry(lambda: change_attempt(self._repo, attempt, "handed", head=head))
        if needs_commit and not head:
            said = f": {message.summary}" if message.summary != self._task.title else ""
            why = f"it reported success but changed no file{self._how_to_return()}{said}"
            return self._end_attempt("no_change", why)
        if not needs_commit:
            message = self._without_change(message)
        self._report_stage(Stage.VERIFYING)
        return self._take_verdict(message) if self._task.kind == REVIEW_KIND else self._verify(message, head)

    def _without_change(self, message: WorkComplete) -> WorkComplete:
        """Save the change that a worker made although its task needs none; its report says so.

        Raises:
            StoreError: the store is not available.
        """
        task, role = self._task, self._attempt.role
        output = [task.output.removeprefix("./").rstrip("/")] if task.output else []
        has_scratch = not output or any(not path.startswith(output[0]) for path in message.files or ())
        try:
            rescue = self._retry(
                lambda: self._attempt.save_leftovers(without=output, has_scratch=has_scratch)
            )
        except StoreError:
            raise
        except (LandlaneError, OSError) as error:
            self._repo.report(f"what {task.id} changed is not saved: {error}")
            return message
        if not rescue:
            return message
        why = f"the role {role.name} changes nothing" if role.is_read_only else f"{task.id} needs no change"
        text = f"what it changed is not used, because {why}; it is saved: landlane rescue show {rescue}"
        if role.is_read_only:
            record_role_violation(self._repo, self._session, guard="hand-in", what=why)
        self._attempt.report({"event": "note", "text": text})
        if task.kind == REVIEW_KIND:  # its summary may be the verdict
            return message
        return replace(message, summary=f"{message.summary}\n\n{text}")

    def _how_to_return(self) -> str:
        """Return how a worker that speaks the protocol returns its change; others need not know."""
        if self._attempt.order.agent.protocol != MESSAGES:
            return ""
        if "commit" in self._attempt.role.verbs:
            return " (commit the change)"
        return " (return the change as a patch or as files)"

    def _returned_work(self, message: WorkComplete) -> ReturnedWork:
        attempt = self._attempt
        return ReturnedWork(
            repo=self._repo,
            session=self._session,
            task=self._task,
            role=attempt.role,
            base=attempt.base,
            message=message,
            scratch=attempt.run.scratch,
        )

    def _collect(self, message: WorkComplete, *, needs_commit: bool) -> str:
        """Commit the returned change and return its head, or copy the output of the task."""
        if needs_commit:
            self._report_stage(Stage.COLLECTING)
            return commit_returned(self._returned_work(message))
        if message.files and self._task.output:
            copy_output(self._returned_work(message))
        return ""

    def _needs_commit(self) -> bool:
        task = self._task
        is_in_git = GitEvidence(self._repo).is_in_git
        kind = effective_kind(task.kind, has_output=bool(task.output), is_in_git=is_in_git)
        evidence = required_evidence(kind, self._repo.settings.tasks.evidence)
        return COMMIT in evidence or PATHS in evidence

    def _verify(self, message: WorkComplete, head: str) -> AttemptResult:
        """Check the evidence, and continue according to the new state of the task."""
        repo = self._repo
        result = message.summary if not message.notes else f"{message.summary}\n\n{message.notes}"
        completion = self._retry(lambda: complete_task(repo, self._session, self._task.id, result=result))
        task = completion.task
        if task.state in (DONE, REVIEW):
            self._note_success()
            if task.state == REVIEW:
                return self._result(AttemptOutcome.REVIEW, why=task.why, head=head)
            return self._result(AttemptOutcome.DONE, why=message.summary, head=head)
        if task.state == WAITING:
            return self._result(AttemptOutcome.WAITING, why=task.why, head=head, keeps_workspace=True)
        if task.state != LANDING:
            missing = completion.missing
            feedback = f"{missing.found}. {missing.hint}" if missing else task.why
            return self._end_attempt("not_proved", feedback, head=head)
        return self._submit(head)

    def _take_verdict(self, message: WorkComplete) -> AttemptResult:
        """Record a reviewer's verdict; an answer without one is tried again."""

        def take() -> None:
            # Done already, if the store became unavailable after the verdict was recorded.
            if get_task(self._repo, self._task.id).state != DONE:
                take_verdict(self._repo, self._session, self._task, message)

        try:
            self._retry(take)
        except Malformed as error:
            return self._end_attempt("malformed", f"{error.message} [{error.code}]\n{error.hint}")
        except NotAllowed as error:
            return self._end_attempt("refused", f"{error.message} [{error.code}]\n{error.hint}")
        self._note_success()
        return self._result(AttemptOutcome.DONE, why=message.summary)

    def _submit(self, head: str) -> AttemptResult:
        self._report_stage(Stage.SUBMITTING)
        repo, task = self._repo, self._task

        def submit() -> None:
            # A queued landing holds the claims itself, so the evidence cannot be checked again.
            landings = list_landings(repo)
            is_queued = any((landing.task, landing.head) == (task.id, head) for landing in landings)
            if not is_queued and get_task(repo, task.id).state != DONE:
                submit_branch(repo, self._session, task.branch, task.id)

        try:
            self._retry(submit)
        except (Stale, StoreError):
            raise
        except LandlaneError as error:
            why = f"{error.message} [{error.code}]\n{error.hint}"
            return self._end_attempt("not_submitted", why, head=head)
        self._note_success()
        why = "submitted to the landing queue"
        return self._result(AttemptOutcome.LANDING, why=why, head=head, keeps_workspace=True)

    def _note_success(self) -> None:
        """Tell the worker pool that this agent works; the attempt succeeds even if that fails."""
        try:
            self._retry(lambda: note_success(self._repo, self._attempt.order.agent.name))
        except StoreError as error:
            self._repo.report(str(error))


def _retry_after_ms(message: WorkFailed) -> int:
    """Return after what time the provider takes requests again, as it said; 0 if it did not."""
    return round((message.retry_after_seconds or 0) * 1000)
