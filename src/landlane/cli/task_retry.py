"""`landlane task retry`: let a task be tried again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk


def retry(desk: Desk, task: str, why: str) -> int:
    """Give a task another round of attempts; what was stopped, only a person at a terminal lets go on."""
    from landlane.cli.task import answer_task
    from landlane.tasks.change import retry_task
    from landlane.tasks.lineage import lineage_of
    from landlane.tasks.model import DEAD, FAILED, check_reason
    from landlane.tasks.read import get_task

    context = desk.house.context
    found = get_task(context, task)
    lineage = lineage_of(context, found)
    session = desk.session()
    if found.id in lineage.parked or (lineage.stopped and found.state in (DEAD, FAILED)):
        from landlane.cli.person import person_at

        session = person_at(desk)
    return answer_task(desk, retry_task(context, session, task, check_reason(why) if why.strip() else ""))
