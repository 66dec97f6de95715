"""Add the tasks of a plan to the queue in one transaction, each of them once.

Implied dependencies become dependencies in the queue. A task is recognised by its plan and its name: adding
the same plan again adds nothing, and a longer one adds only the new tasks.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.plans.check import check_plan
from landlane.plans.model import AGENTS, new_task
from landlane.plans.problems import PlanContext
from landlane.tasks.add import ADD_LOCK, LooksAlike, add_task_in
from landlane.tasks.model import DROPPED, check_new_task
from landlane.tasks.records import FAN_LABEL, find_task_by_key, list_tasks, lock_task, with_dependencies
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.plans.check import PlanCheck
    from landlane.plans.model import Plan, PlanTask
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.duplicates import SimilarTask
    from landlane.tasks.model import Task


_MOST_PROBLEMS = 20


@value
class AddedPlan:
    """The tasks of a plan in its order, and which of them are new."""

    tasks: tuple[Task, ...]
    added: tuple[Task, ...]
    # The names of tasks that were not added because similar work is in the queue.
    skipped: tuple[tuple[str, tuple[SimilarTask, ...]], ...]


def check_here(repo: Repository, plan: Plan) -> PlanCheck:
    """Check a plan against this repository and its queue, without changing anything."""
    context = PlanContext(
        settings=repo.settings,
        parse=lambda text: repo.git.pattern_of(text, "glob"),
        tasks=list_tasks(repo),
        agents=tuple(dict.fromkeys((*repo.settings.agents, *AGENTS))),
        is_in_git=bool(repo.common_dir),
    )
    return check_plan(plan, context)


def add_plan(repo: Repository, session: Session | None, plan: Plan, *, force: bool = False) -> AddedPlan:
    """Add the tasks of a plan that are not in the queue yet: all of them, or none.

    With `force`, also those that look like other work in the queue.

    Raises:
        Malformed: the plan has problems; the error has all of them.
    """
    checked = require_valid_plan(repo, plan)
    return repo.change(
        lambda tx: _PlanAdder(tx, repo, session, checked, force=force).add_all(), areas=ADD_LOCK
    )


def require_valid_plan(repo: Repository, plan: Plan) -> PlanCheck:
    """Check a plan that must not have problems.

    Raises:
        Malformed: it has; the error has all of them.
    """
    checked = check_here(repo, plan)
    if not checked.problems:
        return checked
    first = checked.problems[0]
    more = f", and {len(checked.problems) - 1} more" if len(checked.problems) > 1 else ""
    where = f"line {first.line}: " if first.line else ""
    raise Malformed(
        f"{where}{first.reason}{more}",
        code="TASK_CYCLE" if first.code == "TASK_CYCLE" else "PLAN_UNFIT",
        hint=first.hint,
        line=first.line,
        lines=[task.line for task in plan.tasks if task.name in first.tasks],
        problems=[problem.reason for problem in checked.problems[:_MOST_PROBLEMS]],
    )


def add_branches(
    tx: Transaction, repo: Repository, session: Session | None, checked: PlanCheck, parent: str, fan: str
) -> AddedPlan:
    """Add the tasks of a plan as branches of one task, inside a transaction that has `ADD_LOCK`.

    They belong to this fan-out: the same plan for another task, or a second time, adds other tasks.
    """
    return _PlanAdder(tx, repo, session, checked, force=True, parent=parent, fan=fan).add_all()


class _PlanAdder:
    """Adds one plan inside its transaction."""

    def __init__(
        self,
        tx: Transaction,
        repo: Repository,
        session: Session | None,
        checked: PlanCheck,
        *,
        force: bool,
        parent: str = "",
        fan: str = "",
    ) -> None:
        self._tx = tx
        self._repo = repo
        self._session = session
        self._checked = checked
        self._force = force
        self._parent = parent
        self._fan = fan
        self._contracts = {task.name for task in checked.plan.tasks if task.is_contract}
        self._ids: dict[str, str] = {}  # name in the plan → id in the queue
        self._own: set[str] = set()
        self._added: list[Task] = []
        self._skipped: list[tuple[str, tuple[SimilarTask, ...]]] = []

    def add_all(self) -> AddedPlan:
        by_name = {task.name: task for task in self._checked.plan.tasks}
        for place, name in enumerate(self._checked.order):
            self._add(by_name[name], place)
        ids = [self._ids[name] for name in by_name if name in self._ids]
        tasks = tuple(with_dependencies(self._tx, lock_task(self._tx, task_id)) for task_id in ids)
        return AddedPlan(tasks=tasks, added=tuple(self._added), skipped=tuple(self._skipped))

    def _add(self, task: PlanTask, place: int) -> None:
        key = f"{self._fan}:" * bool(self._fan) + self._checked.plan.key_of(task)
        known = find_task_by_key(self._tx, key)
        if known is not None:
            self._remember(task.name, known.id)
            return
        new = new_task(task, key, after=self._dependencies(task))
        if self._fan:
            new = replace(new, parent=self._parent, labels=(*new.labels, f"{FAN_LABEL}{self._fan}"))
        new = check_new_task(new)
        parsed = [self._repo.git.pattern_of(path, "glob") for path in task.paths]
        patterns = tuple({pattern.alternatives: pattern for pattern in parsed}.values())
        outcome = add_task_in(
            self._tx, self._repo, self._session, new, patterns, force=self._force, position=place
        )
        # Tasks of one plan may look alike: `plan check` warned about it, and both are wanted.
        if isinstance(outcome, LooksAlike) and all(one.task in self._own for one in outcome.similar):
            outcome = add_task_in(
                self._tx, self._repo, self._session, new, patterns, force=True, position=place
            )
        if isinstance(outcome, LooksAlike):
            others = tuple(one for one in outcome.similar if one.task not in self._own)
            self._skipped.append((task.name, others))
            self._ids[task.name] = others[0].task  # tasks that depend on it wait for the similar one instead
            return
        self._remember(task.name, outcome.task.id)
        if outcome.is_new:
            self._added.append(outcome.task)

    def _remember(self, name: str, task_id: str) -> None:
        self._ids[name] = task_id
        self._own.add(task_id)

    def _dependencies(self, task: PlanTask) -> tuple[str, ...]:
        """Return the ids of the tasks that a task waits for.

        An implied dependency on a dropped task does not count: there is nothing left to conflict with.
        """
        task_ids: list[str] = []
        for name in self._checked.after[task.name]:
            is_stated = name in task.after
            if self._fan and not is_stated and name not in self._contracts:
                continue  # branches with a common path take turns by claims, so a failed one blocks no other
            task_id = self._ids.get(name, name)  # a name outside the plan is the id of a task in the queue
            if is_stated or lock_task(self._tx, task_id).state != DROPPED:
                task_ids.append(task_id)
        return tuple(dict.fromkeys(task_ids))
