"""Import a checklist as tasks: known items stay as they are, new ones are added (all or nothing)."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.roles.enforce import check_known
from landlane.tasks.add import ADD_LOCK, LooksAlike, add_task_in, new_task_patterns
from landlane.tasks.checklist import is_task_id, read_checklist
from landlane.tasks.model import check_new_task, dependency_order
from landlane.tasks.records import find_task, find_task_by_key
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.checklist import ChecklistItem
    from landlane.tasks.duplicates import SimilarTask
    from landlane.tasks.model import Task

_MAX_ITEMS = 5000


@value
class Imported:
    """The result of an import: tasks added, items already known, and titles skipped as duplicates."""

    added: tuple[Task, ...]
    known: int
    skipped: tuple[tuple[str, tuple[SimilarTask, ...]], ...]
    unknown: tuple[tuple[int, str], ...] = ()  # line, and a word that means nothing in a checklist


@value
class _ImportItem:
    """An item of the plan, under the name that other items use for it."""

    name: str
    item: ChecklistItem
    patterns: tuple[Pattern, ...]


def import_checklist(repo: Repository, author: Session | None, text: str, *, force: bool = False) -> Imported:
    """Add the open items of a checklist that are not tasks yet (all or nothing).

    Raises:
        Malformed: an item is invalid, names an unknown task, or some items wait for each other.
    """
    plan = _plan_import(repo, text)
    imported = repo.change(lambda tx: _Import(tx, repo, author, force=force).run(plan), areas=ADD_LOCK)
    unknown = [(one.item.line, word) for one in plan for word in one.item.unknown]
    return replace(imported, unknown=tuple(sorted(unknown)))


def _plan_import(repo: Repository, text: str) -> list[_ImportItem]:
    """Return the items in the order in which they can be added."""
    items = read_checklist(text)
    if len(items) > _MAX_ITEMS:
        raise Malformed(
            f"{len(items):,} items in one list; {_MAX_ITEMS:,} are the most",
            code="TOO_MANY",
            hint="split the list",
        )
    names = _names(items)
    plan: dict[str, _ImportItem] = {}
    for item in items:
        after = tuple(dict.fromkeys(names.get(_normalized(before), before) for before in item.task.after))
        task = check_new_task(replace(item.task, after=after))
        check_known(repo, task.role)
        name = names[_normalized(item.task_id or item.task.title)]
        patterns = new_task_patterns(repo, task)
        # An item that is listed twice counts once.
        plan.setdefault(name, _ImportItem(name=name, item=replace(item, task=task), patterns=patterns))
    return [
        plan[name] for name in dependency_order({name: one.item.task.after for name, one in plan.items()})
    ]


def _names(items: Sequence[ChecklistItem]) -> dict[str, str]:
    """Return the name of each item by its normalized id or title."""
    names: dict[str, str] = {}
    for item in items:
        name = item.task_id or item.task.title
        names.setdefault(_normalized(name), name)
        names.setdefault(_normalized(item.task.title), name)
    return names


def _normalized(text: str) -> str:
    return " ".join(text.lower().split())


class _Import:
    """One import, inside its transaction."""

    def __init__(self, tx: Transaction, repo: Repository, author: Session | None, *, force: bool) -> None:
        self._tx = tx
        self._repo = repo
        self._author = author
        self._force = force
        self._ids: dict[str, str] = {}  # name in the list → id of the task
        self._known = 0
        self._added: list[Task] = []
        self._skipped: list[tuple[str, tuple[SimilarTask, ...]]] = []

    def run(self, plan: Sequence[_ImportItem]) -> Imported:
        for position, planned in enumerate(plan):
            known = _find_known(self._tx, planned.item)
            if known or planned.item.is_ticked:
                self._known += 1
                self._ids[planned.name] = known
            else:
                self._add(planned, position)
        return Imported(added=tuple(self._added), known=self._known, skipped=tuple(self._skipped))

    def _add(self, planned: _ImportItem, position: int) -> None:
        task = planned.item.task
        dependencies = (self._id_of(before, planned.item.line) for before in task.after)
        new = replace(task, after=tuple(filter(None, dependencies)))
        outcome = add_task_in(
            self._tx, self._repo, self._author, new, planned.patterns, force=self._force, position=position
        )
        if isinstance(outcome, LooksAlike):
            self._skipped.append((task.title, outcome.similar))
            self._ids[planned.name] = outcome.similar[0].task  # its dependents wait for the similar task
            return
        self._ids[planned.name] = outcome.task.id
        if outcome.is_new:
            self._added.append(outcome.task)
        else:
            self._known += 1

    def _id_of(self, name: str, line: int) -> str:
        """Return the id of a dependency; empty for an item that is ticked off and was never a task."""
        if name in self._ids:
            return self._ids[name]
        if is_task_id(name):
            return name  # not in the list, so it must be a task already
        raise Malformed(
            f"line {line}: {name[:60]!r} is neither in the list nor a task here",
            code="UNKNOWN_TASK",
            hint="give the id or the full title of a task",
            line=line,
        )


def _find_known(snapshot: Snapshot, item: ChecklistItem) -> str:
    """Return the id of the task that an item already is; empty when it is new.

    Raises:
        Malformed: its id belongs to another task.
    """
    task = find_task(snapshot, item.task_id) if item.task_id else None
    if task is not None and task.title != item.task.title:
        raise Malformed(
            f"line {item.line}: {task.id} is another task here: {task.title}",
            code="BAD_CHECKLIST",
            hint="leave out the id to add it as a new task",
            line=item.line,
        )
    known = task or find_task_by_key(snapshot, item.task.key)
    return known.id if known is not None else ""
