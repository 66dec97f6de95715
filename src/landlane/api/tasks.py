"""The work queue for Python agents: `Landlane.tasks`."""

from __future__ import annotations

from landlane.clock import parse_duration
from landlane.landing.submit import fetch_reviewed_commit, fetch_task_commits
from landlane.plans.add_tasks import Entered, enter_plan
from landlane.plans.parse import read_plan
from landlane.reviews.model import check_step
from landlane.tasks import add as task_adding
from landlane.tasks import change as tasks
from landlane.tasks import dependencies, evidence, read, wait_for_task
from landlane.tasks import import_checklist as checklists
from landlane.tasks import pick as picking
from landlane.tasks.git_evidence import GitWitness
from landlane.tasks.model import NewTask, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.journal_chain import Entry


class Tasks:
    """Tasks of one repository, as one session sees them."""

    def __init__(self, repo: Repository, session: Callable[[], Session]) -> None:
        self._repo = repo
        self._session = session

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
        force: bool = False,
    ) -> task_adding.Added | task_adding.LooksAlike:
        """Add a task, or return similar tasks; adding a `key` again changes nothing.

        Raises:
            Malformed: a field cannot be used, or a dependency is unknown.
        """
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
            labels=(*labels, *check_step(review, reviewers, decider)),
            parent=parent,
            next_action=next_action,
        )
        outcome = task_adding.add_task(self._repo, self._session(), new, force=force)
        self._repo.settle()
        return outcome

    def next(
        self, *, role: str = "", wait: str | float = 0, resume: bool = False
    ) -> picking.Picked | picking.NothingReady:
        """Take the best ready task whose paths are free, with its paths; or continue with the current one.

        Raises:
            Stale: the session has ended.
        """
        wait_ms = parse_duration(wait, what="wait") if isinstance(wait, str) else int(wait * 1000)
        in_hand = picking.resume_task(self._repo, self._session()) if resume else None
        if in_hand is not None:
            return in_hand
        start = GitWitness(self._repo).start
        outcome = wait_for_task.wait_for_task(self._repo, self._session(), role, wait_ms, start)
        if isinstance(outcome, picking.Picked):
            self._bring_reviewed(outcome.task)
        self._repo.settle()
        return outcome

    def _bring_reviewed(self, task: Task) -> None:
        """Fetch the commits of another machine that this session is to review."""
        if task.kind == "review":
            fetch_reviewed_commit(self._repo, task)

    def take(self, task: str) -> picking.Picked | None:
        """Take a given task and its paths; None when it is not ready, held back, or its paths are held.

        Raises:
            Malformed: there is no such task.
            Stale: the session has ended.
        """
        start = GitWitness(self._repo).start()
        outcome = picking.take_task(self._repo, self._session(), task, start)
        if outcome is not None:
            self._bring_reviewed(outcome.task)
        self._repo.settle()
        return outcome

    def enter(self, plan: str, *, force: bool = False) -> Entered:
        """Add the tasks of a TOML or Markdown plan that are not there yet (all or nothing).

        Example:
            `ann.tasks.enter(Path("PLAN.md").read_text())`; then `landlane run` runs it.

        Raises:
            Malformed: the plan has problems; all of them are named.
        """
        entered = enter_plan(self._repo, self._session(), read_plan(plan, ""), force=force)
        self._repo.settle()
        return entered

    def done(self, task: str, *, result: str = "") -> evidence.Concluded:
        """Report a task as done; return how far that is verified, and the evidence.

        Raises:
            Stale: the task no longer belongs to this session.
        """
        if self._repo.checkout.common_dir:
            fetch_task_commits(self._repo, task)
        concluded = evidence.conclude(
            self._repo, GitWitness(self._repo), self._session(), task, result=result
        )
        self._repo.settle()
        return concluded

    def fail(self, task: str, why: str, *, final: bool = False) -> Task:
        """Give a task back with a report of what was learned; after the last attempt it is dead.

        Raises:
            Stale: the task no longer belongs to this session.
        """
        change = evidence.change_of(self._repo, GitWitness(self._repo), task)
        failed = tasks.fail_task(self._repo, self._session(), task, why, is_final=final, change=change)
        return self._settled(failed)

    def block(self, task: str, why: str) -> Task:
        """Block a task."""
        return self._settled(tasks.block_task(self._repo, self._session(), task, why))

    def unblock(self, task: str) -> Task:
        """Unblock a task."""
        return self._settled(tasks.unblock_task(self._repo, self._session(), task))

    def retry(self, task: str, why: str = "") -> Task:
        """Allow another round of attempts at a task that failed, died or got stuck."""
        return self._settled(tasks.retry_task(self._repo, self._session(), task, why))

    def drop(self, task: str, why: str) -> Task:
        """Drop a task permanently."""
        return self._settled(tasks.drop_task(self._repo, self._session(), task, why))

    def after(self, task: str, before: str) -> Task:
        """Make a task wait for another.

        Raises:
            Malformed: they would wait for each other; the message names the cycle.
        """
        return self._settled(dependencies.add_dependency(self._repo, self._session(), task, before))

    def get(self, task: str) -> Task:
        """Return a task by its id."""
        return read.get_task(self._repo, task)

    def list(self, *states: str) -> Sequence[Task]:
        """Return all tasks, or those in these states."""
        return read.list_tasks(self._repo, states)

    def history(self, task: str) -> Sequence[Entry]:
        """Return everything that happened to a task."""
        return read.task_history(self._repo, task)

    def import_checklist(self, text: str, *, force: bool = False) -> checklists.Imported:
        """Import a Markdown checklist as tasks; importing it again adds nothing."""
        outcome = checklists.import_checklist(self._repo, self._session(), text, force=force)
        self._repo.settle()
        return outcome

    def _settled(self, task: Task) -> Task:
        self._repo.settle()
        return task
