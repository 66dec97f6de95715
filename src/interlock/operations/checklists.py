"""Reading a checklist in as tasks: what is there already stays, what is new is added."""

from __future__ import annotations

from interlock.domain.checklists import read_checklist
from interlock.errors import Malformed
from interlock.operations.tasks import LooksAlike, add_task, get_task
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.domain.agents import Session
    from interlock.domain.duplicates import Likeness
    from interlock.domain.tasks import Task
    from interlock.operations.context import Context


@value
class Imported:
    """What a checklist brought."""

    added: tuple[Task, ...]
    known: int
    skipped: tuple[tuple[str, tuple[Likeness, ...]], ...]


def import_checklist(context: Context, author: Session | None, text: str, *, force: bool = False) -> Imported:
    """Add the open items of a checklist that are not there yet.

    Raises:
        Malformed: an item cannot be understood, or names a task that is not there.
    """
    added: list[Task] = []
    skipped: list[tuple[str, tuple[Likeness, ...]]] = []
    known = 0
    for task_id, is_ticked, new in read_checklist(text):
        if is_ticked or (task_id and _exists(context, task_id)):
            known += 1
            continue
        outcome = add_task(context, author, new, force=force)
        if isinstance(outcome, LooksAlike):
            skipped.append((new.title, outcome.similar))
        elif outcome.is_new:
            added.append(outcome.task)
        else:
            known += 1
    return Imported(added=tuple(added), known=known, skipped=tuple(skipped))


def _exists(context: Context, task_id: str) -> bool:
    try:
        get_task(context, task_id)
    except Malformed:
        return False
    return True
