"""Reading a checklist in as tasks: what is there stays, what is new is added, all of it or nothing."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.roles.enforce import check_known
from landlane.tasks.add import ADDING, LooksAlike, add_in, patterns_of
from landlane.tasks.checklist import is_task_id, read_checklist
from landlane.tasks.model import check_new, in_order
from landlane.tasks.records import find_task, find_task_by_key
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.checklist import Item
    from landlane.tasks.duplicates import Likeness
    from landlane.tasks.model import Task

_MOST_ITEMS = 5000


@value
class Imported:
    """What a checklist brought."""

    added: tuple[Task, ...]
    known: int
    skipped: tuple[tuple[str, tuple[Likeness, ...]], ...]


@value
class Step:
    """One item of the plan, under the name that others in the list have for it."""

    name: str
    item: Item
    patterns: tuple[Pattern, ...]


def import_checklist(repo: Repository, author: Session | None, text: str, *, force: bool = False) -> Imported:
    """Add the open items of a checklist that are not there yet: all of them, or none.

    Raises:
        Malformed: an item cannot be understood, names what is not there, or waits in a ring.
    """
    plan = plan_import(repo, text)

    def work(tx: Transaction) -> Imported:
        return _Import(tx, repo, author, force=force).run(plan)

    return repo.change(work, areas=ADDING)


def plan_import(repo: Repository, text: str) -> list[Step]:
    """The items in the order in which they can be added; nothing is changed.

    Raises:
        Malformed: an item cannot be understood, or some wait for each other; the ring is named.
    """
    items = read_checklist(text)
    if len(items) > _MOST_ITEMS:
        raise Malformed(
            f"{len(items):,} items in one list; {_MOST_ITEMS:,} are the most",
            code="TOO_MANY",
            hint="split the list",
        )
    names = _names(items)
    steps: dict[str, Step] = {}
    for item in items:
        after = tuple(dict.fromkeys(names.get(_plain(before), before) for before in item.task.after))
        task = check_new(replace(item.task, after=after))
        check_known(repo, task.role)
        name = names[_plain(item.task_id or item.task.title)]
        # The same thing twice in one list is one.
        steps.setdefault(
            name, Step(name=name, item=replace(item, task=task), patterns=patterns_of(repo, task))
        )
    return [steps[name] for name in in_order({name: step.item.task.after for name, step in steps.items()})]


def _names(items: Sequence[Item]) -> dict[str, str]:
    """Id or title as written in the list → the name that stands for the item."""
    names: dict[str, str] = {}
    for item in items:
        name = item.task_id or item.task.title
        names.setdefault(_plain(name), name)
        names.setdefault(_plain(item.task.title), name)
    return names


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


class _Import:
    """One import, inside its transaction."""

    def __init__(self, tx: Transaction, repo: Repository, author: Session | None, *, force: bool) -> None:
        self._tx = tx
        self._repo = repo
        self._author = author
        self._force = force
        self._ids: dict[str, str] = {}  # name in the list → id here
        self._known = 0
        self._added: list[Task] = []
        self._skipped: list[tuple[str, tuple[Likeness, ...]]] = []

    def run(self, plan: Sequence[Step]) -> Imported:
        for place, step in enumerate(plan):
            known = _known_as(self._tx, step)
            if known or step.item.is_ticked:
                self._known += 1
                self._ids[step.name] = known
            else:
                self._add(step, place)
        return Imported(added=tuple(self._added), known=self._known, skipped=tuple(self._skipped))

    def _add(self, step: Step, place: int) -> None:
        task = step.item.task
        after = tuple(one for one in (self._id_of(before, step) for before in task.after) if one)
        outcome = add_in(
            self._tx,
            self._repo,
            self._author,
            replace(task, after=after),
            step.patterns,
            force=self._force,
            place=place,
        )
        if isinstance(outcome, LooksAlike):
            self._skipped.append((task.title, outcome.similar))
            self._ids[step.name] = outcome.similar[
                0
            ].task  # what waits for it waits for the one that is there
            return
        self._ids[step.name] = outcome.task.id
        if outcome.is_new:
            self._added.append(outcome.task)
        else:
            self._known += 1

    def _id_of(self, name: str, step: Step) -> str:
        """The id here of what an item waits for; empty for one that was ticked off and is not there."""
        if name in self._ids:
            return self._ids[name]
        if is_task_id(name):
            return name  # not in the list: it must be here
        raise Malformed(
            f"line {step.item.line}: {name[:60]!r} is neither in the list nor a task here",
            code="UNKNOWN_TASK",
            hint="give the id or the whole title of a task",
            line=step.item.line,
        )


def _known_as(snapshot: Snapshot, step: Step) -> str:
    """The id of the task that an item is already; empty when it is new.

    Raises:
        Malformed: its id is another task's here.
    """
    item = step.item
    task = find_task(snapshot, item.task_id) if item.task_id else None
    if task is not None:
        if task.title != item.task.title:
            raise _another(item, task)
        return task.id
    known = find_task_by_key(snapshot, item.task.key)
    return known.id if known is not None else ""


def _another(item: Item, task: Task) -> Malformed:
    return Malformed(
        f"line {item.line}: {task.id} is another task here: {task.title}",
        code="BAD_CHECKLIST",
        hint="leave out the id to add it as a new task",
        line=item.line,
    )
