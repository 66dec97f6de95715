"""Plans: tasks described in a file, before any of them is in the queue.

A plan is written as TOML (`toml.py`) or as a Markdown checklist (`markdown.py`). `fields.py` defines the
fields of a task, `graph.py` the order of the tasks, and `check.py` examines the plan before it runs.
"""

from __future__ import annotations

from landlane.clients.model import CLIENTS
from landlane.errors import Malformed
from landlane.ids import digest
from landlane.reviews.model import review_labels
from landlane.tasks.model import FIXES_TARGET, LONGEST_TITLE, NewTask, assign_labels, check_assignee
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_TASKS = 1000
MOST_CHARACTERS = 4_000_000
_MOST_CONTRACTS = 50  # every other task waits for each of them
_MOST_PATHS = 3000  # of all tasks together: each is compared with many others
# Agents that a task may ask for: coding clients, or `command` for a worker of one's own.
AGENTS = (*CLIENTS, "command")
_LONGEST_ID = 100
_KEY_LETTERS = 20


@value
class PlanTask:
    """One task of a plan. Other tasks of the plan refer to it by `name`, which defaults to the title."""

    name: str
    title: str
    line: int = 0
    body: str = ""
    paths: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    role: str = ""
    agent: str = ""
    kind: str = ""
    check: str = ""
    output: str = ""
    priority: int = 0
    attempts: int = 3
    estimate_ms: int | None = None
    budget_micros: int | None = None  # millionths of a US dollar, for one attempt
    needs: tuple[tuple[str, int], ...] = ()
    review: int = 0  # the number of verdicts it needs before it lands
    reviewers: tuple[str, ...] = ()
    decider: str = ""
    is_contract: bool = False  # must land before all tasks that are not contracts
    assign: str = ""  # the agent or person that it is for
    gate: str = ""  # what a person is asked before any agent takes it
    fixes_target: bool = False  # it repairs the target branch: it starts while that fails its checks
    is_ticked: bool = False


@value
class Plan:
    """The tasks of a plan, in the order of the file."""

    title: str
    tasks: tuple[PlanTask, ...]
    id: str = ""
    budget_micros: int | None = None  # for all tasks together

    @property
    def digest(self) -> str:
        """A hash that identifies the plan: of its id, else of its title, else of all its tasks.

        It stays the same when a task is ticked or, in a plan with an id or a title, added.
        """
        if self.id or self.title:
            return digest(f"plan\n{self.id or normalize(self.title)}")
        return digest("\n".join(["tasks", *(f"{normalize(task.name)}\t{task.title}" for task in self.tasks)]))

    def key_of(self, task: PlanTask) -> str:
        """Return the key of a task of this plan in the queue."""
        return f"plan:{self.digest[:_KEY_LETTERS]}:{digest(normalize(task.name))[:_KEY_LETTERS]}"


def bad_plan(line: int, message: str, hint: str, **facts: str) -> Malformed:
    """Return the error for a plan that cannot be parsed; `line` is 0 if unknown."""
    where = f"line {line}: " if line else ""
    return Malformed(f"{where}{message}", code="BAD_PLAN", hint=hint, line=line, **facts)


def normalize(text: str) -> str:
    """Return a name or title in the form in which they are compared."""
    return " ".join(text.lower().split())


def new_task(task: PlanTask, key: str, *, after: tuple[str, ...] = ()) -> NewTask:
    """Return the task for the queue; what the queue has no field for becomes labels, which workers read."""
    labels = [*task.labels, *([f"agent:{task.agent}"] if task.agent else [])]
    labels += [f"needs:{name}={amount}" for name, amount in task.needs]
    labels += [f"budget:{money_text(task.budget_micros)}"] if task.budget_micros is not None else []
    labels += review_labels(task.review, task.reviewers, task.decider)
    labels += ["contract"] if task.is_contract else []
    labels += [FIXES_TARGET] if task.fixes_target else []
    return NewTask(
        title=task.title,
        body=task.body,
        kind=task.kind,
        role=task.role,
        priority=task.priority,
        paths=task.paths,
        after=after,
        max_attempts=task.attempts,
        check=task.check,
        output=task.output,
        key=key,
        labels=assign_labels(tuple(dict.fromkeys(labels)), task.assign and check_assignee(task.assign)),
        gate=task.gate,
    )


def money_text(micros: int) -> str:
    """Return an amount with two or more decimal places."""
    whole, rest = divmod(micros, 1_000_000)
    return f"{whole}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}"


def make_plan(
    title: str, tasks: Sequence[PlanTask], *, id: str = "", budget_micros: int | None = None
) -> Plan:
    """Return a plan in which `after` refers to tasks by name, never by title.

    Raises:
        Malformed: two tasks have the same name, or there are no tasks or too many.
    """
    if not tasks:
        hint = "write `- [ ] what is to be done`, or [[task]] in TOML"
        raise bad_plan(0, "there is no task in this plan", hint)
    check_task_count([task.line for task in tasks])
    paths = sum(len(task.paths) for task in tasks)
    if paths > _MOST_PATHS:
        hint = f"{_MOST_PATHS:,} are the most; name folders or globs"
        raise bad_plan(0, f"{paths:,} paths in one plan", hint)
    contracts = [task for task in tasks if task.is_contract]
    if len(contracts) > _MOST_CONTRACTS:
        line = contracts[_MOST_CONTRACTS].line
        raise bad_plan(line, f"{len(contracts)} contracts in one plan", f"{_MOST_CONTRACTS} are the most")
    if len(id) > _LONGEST_ID or len(title) > LONGEST_TITLE:
        raise bad_plan(0, "the id or the title of the plan is too long", f"use {_LONGEST_ID} characters")
    names: dict[str, PlanTask] = {}
    for task in tasks:
        other = names.setdefault(normalize(task.name), task)
        if other is not task:
            raise bad_plan(
                task.line,
                f"two tasks are called {task.name[:60]!r}; the other is in line {other.line}",
                "give one of them a name of its own",
            )
    for task in tasks:  # a title can be used like a name unless another task has that name
        names.setdefault(normalize(task.title), task)
    return Plan(
        title=" ".join(title.split()),
        tasks=tuple(replace(task, after=_task_names(task.after, names)) for task in tasks),
        id=id,
        budget_micros=budget_micros,
    )


def check_task_count(lines: Sequence[int]) -> None:
    """Refuse more tasks than a plan may have; `lines` are the lines of all tasks."""
    if len(lines) > MOST_TASKS:
        message = f"{len(lines):,} tasks in one plan"
        raise bad_plan(lines[MOST_TASKS], message, f"{MOST_TASKS:,} are the most")


def _task_names(after: Sequence[str], names: Mapping[str, PlanTask]) -> tuple[str, ...]:
    found = (names[key].name if (key := normalize(text)) in names else text.strip() for text in after)
    return tuple(dict.fromkeys(found))
