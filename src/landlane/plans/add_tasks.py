"""Entering a plan: all of its tasks with what they wait for, in one transaction, and each only once.

What `plan check` puts in sequence is entered as a dependency, so that the queue keeps to it. A task is found
again by the plan and its name: the same plan a second time adds nothing, a longer one adds what is new.
"""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.plans.check import Around, check_plan
from landlane.plans.model import AGENTS, new_task
from landlane.tasks.add import ADDING, LooksAlike, add_in
from landlane.tasks.checklist import is_task_id
from landlane.tasks.model import DROPPED, check_new
from landlane.tasks.records import FAN_LABEL, find_task_by_key, get_in, list_tasks, whole
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.plans.check import PlanCheck
    from landlane.plans.model import Plan, PlanTask
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction
    from landlane.tasks.duplicates import Likeness
    from landlane.tasks.model import NewTask, Task


_MOST_TOLD = 20


@value
class Entered:
    """What a plan brought: all of its tasks as they stand now in the order of the plan, and which are new."""

    tasks: tuple[Task, ...]
    added: tuple[Task, ...]
    # Names of tasks that are not there themselves, because other work in the queue looks the same.
    skipped: tuple[tuple[str, tuple[Likeness, ...]], ...]


def around_here(repo: Repository, tasks: Sequence[Task] | None = None) -> Around:
    """What a plan is judged against in this repository; paths count from its root."""
    own = tuple(repo.settings.agents)
    return Around(
        settings=repo.settings,
        parse=_parser(repo),
        tasks=tasks,
        agents=(*own, *(name for name in AGENTS if name not in own)),
    )


def _parser(repo: Repository) -> Callable[[str], Pattern]:
    def parse(text: str) -> Pattern:
        return repo.git.pattern_of(text, "glob")

    return parse


def check_here(repo: Repository, plan: Plan) -> PlanCheck:
    """Judge a plan against this repository and the tasks that are there; nothing is changed."""
    return check_plan(plan, around_here(repo, list_tasks(repo)))


def enter_plan(repo: Repository, session: Session | None, plan: Plan, *, force: bool = False) -> Entered:
    """Add the tasks of a plan that are not there yet: all of them, or none.

    With `force`, also those that look like other work in the queue.

    Raises:
        Malformed: the plan has problems; all of them are named.
    """
    checked = checked_fit(repo, plan)

    def work(tx: Transaction) -> Entered:
        return _Entering(tx, repo, session, checked, force=force).run()

    return repo.change(work, areas=ADDING)


def checked_fit(repo: Repository, plan: Plan) -> PlanCheck:
    """A plan judged, and found without problems.

    Raises:
        Malformed: it has some; all of them are named.
    """
    checked = check_here(repo, plan)
    if checked.problems:
        raise _unfit(checked)
    return checked


def enter_branches(
    tx: Transaction, repo: Repository, session: Session | None, checked: PlanCheck, parent: str, fan: str
) -> Entered:
    """Add all tasks of a plan as branches of one task, inside a transaction that has `ADDING`.

    They are this fan's own: the same plan for another task, or a second time, makes others.
    """
    return _Entering(tx, repo, session, checked, force=True, parent=parent, fan=fan).run()


def _unfit(checked: PlanCheck) -> Malformed:
    first = checked.problems[0]
    more = f", and {len(checked.problems) - 1} more" if len(checked.problems) > 1 else ""
    where = f"line {first.line}: " if first.line else ""
    return Malformed(
        f"{where}{first.reason}{more}",
        code="PLAN_UNFIT",
        hint=f"{first.hint}; `landlane plan check` shows all of it",
        line=first.line,
        problems=[one.reason for one in checked.problems[:_MOST_TOLD]],
    )


class _Entering:
    """One plan, inside its transaction."""

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
        self._contracts = {task.name for task in checked.plan.tasks if task.is_contract}
        self._fan = fan
        self._parse = _parser(repo)
        self._ids: dict[str, str] = {}  # name in the plan → id here
        self._own: set[str] = set()
        self._added: list[Task] = []
        self._skipped: list[tuple[str, tuple[Likeness, ...]]] = []

    def run(self) -> Entered:
        by_name = {task.name: task for task in self._checked.plan.tasks}
        for place, name in enumerate(self._checked.order):
            self._enter(by_name[name], place)
        names = [task.name for task in self._checked.plan.tasks if task.name in self._ids]
        tasks = tuple(whole(self._tx, get_in(self._tx, self._ids[name])) for name in names)
        return Entered(tasks=tasks, added=tuple(self._added), skipped=tuple(self._skipped))

    def _enter(self, task: PlanTask, place: int) -> None:
        key = f"{self._fan}:" * bool(self._fan) + self._checked.plan.key_of(task)
        known = find_task_by_key(self._tx, key)
        if known is not None:
            self._keep(task.name, known.id)
            return
        wanted = check_new(self._for_fan(new_task(task, key, after=self._befores(task))))
        patterns = tuple({one.alternatives: one for one in map(self._parse, task.paths)}.values())
        outcome = add_in(
            self._tx, self._repo, self._session, wanted, patterns, force=self._force, place=place
        )
        # Tasks of one plan may look alike: `plan check` has said so, and both were meant.
        if isinstance(outcome, LooksAlike) and all(one.task in self._own for one in outcome.similar):
            outcome = add_in(self._tx, self._repo, self._session, wanted, patterns, force=True, place=place)
        if isinstance(outcome, LooksAlike):
            others = tuple(one for one in outcome.similar if one.task not in self._own)
            self._skipped.append((task.name, others))
            self._ids[task.name] = others[0].task  # what waits for it waits for the one that is there
            return
        self._keep(task.name, outcome.task.id)
        if outcome.is_new:
            self._added.append(outcome.task)

    def _for_fan(self, new: NewTask) -> NewTask:
        if not self._fan:
            return new
        return replace(new, parent=self._parent, labels=(*new.labels, f"{FAN_LABEL}{self._fan}"))

    def _keep(self, name: str, task_id: str) -> None:
        self._ids[name] = task_id
        self._own.add(task_id)

    def _befores(self, task: PlanTask) -> tuple[str, ...]:
        """The ids of all that a task waits for.

        Who only has to keep out of the way of another does not wait for one that was dropped.
        """
        found: list[str] = []
        for name in self._checked.after[task.name]:
            if self._fan and name not in task.after and name not in self._contracts:
                continue  # branches that meet on a path take turns by claims: one that fails stops no other
            task_id = self._ids.get(name, name)
            if name not in self._ids and not is_task_id(name):
                continue  # not reached: a check without problems knows every name
            if name in task.after or get_in(self._tx, task_id).state != DROPPED:
                found.append(task_id)
        return tuple(dict.fromkeys(found))
