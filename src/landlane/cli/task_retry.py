"""`landlane task retry`: let a task be tried again."""

from __future__ import annotations

from landlane.cli.person import person_at
from landlane.cli.task_answers import answer_task
from landlane.tasks.change import retry_task
from landlane.tasks.lineage import lineage_of
from landlane.tasks.model import DEAD, FAILED, check_reason
from landlane.tasks.records import get_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall


def retry(call: CommandCall, task: str, why: str) -> int:
    """Allow another round of attempts at a task; a stopped task only by a person at a terminal."""
    repo = call.repo
    found = get_task(repo, task)
    lineage = lineage_of(repo, found)
    session = call.session()
    if found.id in lineage.parked or (lineage.stopped and found.state in (DEAD, FAILED)):
        session = person_at(call)
    return answer_task(call, retry_task(repo, session, task, check_reason(why) if why.strip() else ""))
