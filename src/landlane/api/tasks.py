"""The work queue for Python agents: `Landlane.tasks`."""

from __future__ import annotations

from landlane.api.session_view import Duration, SessionView, milliseconds
from landlane.landing.submit import fetch_reviewed_commit, fetch_task_commits
from landlane.plans.add_tasks import add_plan
from landlane.plans.parse import read_plan
from landlane.reviews.model import review_labels
from landlane.tasks import pick
from landlane.tasks.add import add_task
from landlane.tasks.change import block_task, drop_task, fail_task, retry_task, unblock_task
from landlane.tasks.evidence import change_digest, complete_task
from landlane.tasks.finish import add_dependency
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.import_checklist import import_checklist
from landlane.tasks.model import FIXES_TARGET, REVIEW_KIND, NewTask
from landlane.tasks.pick import next_task, resume_task, take_task
from landlane.tasks.records import get_task, list_tasks, task_history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.api.claim_values import Entry
    from landlane.api.task_values import (
        Added,
        AddedPlan,
        Completion,
        Imported,
        LooksAlike,
        NothingReady,
        Picked,
        Task,
    )
    from landlane.tasks import model


class Tasks(SessionView):
    """Tasks of one repository, as one session sees them."""

    def add(
        self,
        title: str,
        *,
        body: str = "",
        paths: Sequence[str] = (),
        after: Sequence[str] = (),
        role: str = "",
        kind: str = "",
        output: str = "",
        priority: int = 0,
        max_attempts: int = 3,
        check: str = "",
        key: str = "",
        labels: Sequence[str] = (),
        parent: str = "",
        review: int = 0,
        reviewers: Sequence[str] = (),
        decider: str = "",
        next_action: str = "",
        fixes_target: bool = False,
        force: bool = False,
    ) -> Added | LooksAlike:
        """Add a task, or return the tasks that look like the same work; adding a `key` again changes nothing.

        Raises:
            Malformed: a field cannot be used, or a dependency is unknown.
        """
        marks = (FIXES_TARGET,) if fixes_target else ()
        new = NewTask(
            title=title,
            body=body,
            kind=kind,
            role=role,
            priority=priority,
            paths=tuple(paths),
            after=tuple(after),
            max_attempts=max_attempts,
            check=check,
            output=output,
            key=key,
            labels=(*labels, *marks, *review_labels(review, reviewers, decider)),
            parent=parent,
            next_action=next_action,
        )
        return self._settled(add_task(self._repo, self._session, new, force=force))

    def next(self, *, role: str = "", wait: Duration = 0, resume: bool = False) -> Picked | NothingReady:
        """Take the best ready task whose paths are free, and its paths; or resume the one it already has.

        Raises:
            Stale: the session has ended.
        """
        wait_ms = milliseconds(wait, "wait")
        resumed = resume_task(self._repo, self._session) if resume else None
        if resumed is not None:
            return self._public(resumed)
        start = GitEvidence(self._repo).start
        outcome = next_task(self._repo, self._session, role, start, wait_ms=wait_ms)
        if isinstance(outcome, pick.Picked):
            self._fetch_reviewed(outcome.task)
        return self._settled(outcome)

    def _fetch_reviewed(self, task: model.Task) -> None:
        """Fetch the commits of another machine that this session is to review."""
        if task.kind == REVIEW_KIND:
            fetch_reviewed_commit(self._repo, task)

    def take(self, task: str) -> Picked | None:
        """Take this task and its paths; None when it is not ready, backs off, or its paths are held.

        Raises:
            Malformed: there is no such task.
            Stale: the session has ended.
        """
        start = GitEvidence(self._repo).start()
        outcome = take_task(self._repo, self._session, task, start)
        if outcome is not None:
            self._fetch_reviewed(outcome.task)
        return self._settled(outcome)

    def enter(self, plan: str, *, force: bool = False) -> AddedPlan:
        """Add the tasks of a TOML or Markdown plan that are not there yet (all or nothing).

        Example:
            `ann.tasks.enter(Path("PLAN.md").read_text())`; then `landlane run` runs it.

        Raises:
            Malformed: the plan has problems; all of them are named.
        """
        return self._settled(add_plan(self._repo, self._session, read_plan(plan, ""), force=force))

    def done(self, task: str, *, result: str = "", expect: Mapping[str, int] | None = None) -> Completion:
        """Report a task as done, and return its state after its evidence was verified.

        `expect` are the versions of shared keys that the work is based on.

        Raises:
            Stale: the task no longer belongs to this session, or a key has another version.
        """
        if self._repo.checkout.common_dir:
            fetch_task_commits(self._repo, task)
        return self._settled(complete_task(self._repo, self._session, task, result=result, expect=expect))

    def fail(self, task: str, why: str, *, final: bool = False) -> Task:
        """Give a task back with a report of what was learned; after the last attempt it is dead.

        Raises:
            Stale: the task no longer belongs to this session.
        """
        change = change_digest(self._repo, task)
        failed = fail_task(self._repo, self._session, task, why, is_final=final, change=change)
        return self._settled(failed)

    def block(self, task: str, why: str) -> Task:
        """Keep a task from being offered."""
        return self._settled(block_task(self._repo, self._session, task, why))

    def unblock(self, task: str) -> Task:
        """Offer a blocked task again."""
        return self._settled(unblock_task(self._repo, self._session, task))

    def retry(self, task: str, why: str = "") -> Task:
        """Give a task that failed, died or got stuck another round of attempts."""
        return self._settled(retry_task(self._repo, self._session, task, why))

    def drop(self, task: str, why: str) -> Task:
        """Drop a task for good."""
        return self._settled(drop_task(self._repo, self._session, task, why))

    def after(self, task: str, before: str) -> Task:
        """Make a task wait for another.

        Raises:
            Malformed: they would wait for each other; the message names the cycle.
        """
        return self._settled(add_dependency(self._repo, self._session, task, before))

    def get(self, task: str) -> Task:
        """Return a task by its id."""
        return self._public(get_task(self._repo, task))

    def list(self, *states: str) -> Sequence[Task]:
        """Return all tasks, or those in these states."""
        return self._public(list_tasks(self._repo, states))

    def history(self, task: str) -> Sequence[Entry]:
        """Return the journal entries about a task, oldest first."""
        return self._public(task_history(self._repo, task))

    def import_checklist(self, text: str, *, force: bool = False) -> Imported:
        """Import a Markdown checklist as tasks; importing it again adds nothing."""
        return self._settled(import_checklist(self._repo, self._session, text, force=force))
