"""Tasks to fix a branch that bounced and has no task of its own: one lineage per branch.

Otherwise each bounce of a branch would begin a new budget, and a branch that never lands would be tested for
ever. Once a person is asked about it, the branch waits with the question.
"""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.landing.model import BOUNCED
from landlane.landing.records import NOUN
from landlane.sessions.model import PERSON
from landlane.store import records
from landlane.tasks.add import forget_signs
from landlane.tasks.finish import release_claims
from landlane.tasks.lineage import forget_in, lineage_in, put_lineage
from landlane.tasks.model import BLOCKED, DEAD, DROPPED, FAILED, LONGEST_LINE, OVER, READY, WAITING
from landlane.tasks.records import find_task, get_in, move_task
from landlane.tasks.retry import judge_in, tell_end
from landlane.tasks.retry_rules import ABORT, ESCALATE, AttemptEnd
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_LANDED = "its branch has landed"
_MOST_HINT = 600


def find_mend(snapshot: Snapshot, branch: str, target: str, agent: str, home: str) -> Task | None:
    """The task to mend what last bounced of a branch, unless that has landed since."""
    for one in reversed(records.by_key(snapshot, NOUN, target, BOUNCED)):
        is_same = one["branch"] == branch and (one["agent"] == agent or one["home"] == home)
        if is_same and not one["task"] and one["bounce_task"]:
            task = find_task(snapshot, one["bounce_task"])
            return None if task is None or task.why.startswith(_LANDED) else task
    return None


def check_mend(tx: Transaction, me: Session, branch: str, target: str, home: str) -> None:
    """Refuse a branch that a person was asked about: testing it again would change nothing.

    Raises:
        NotAllowed: its question is not answered, or the answer was no.
    """
    if me.kind == PERSON and not me.role:
        return
    task = find_mend(tx, branch, target, me.agent, home)
    if task is not None and task.state in (WAITING, DEAD):
        raise NotAllowed(
            f"{branch} bounced too often: {task.why}"[:_MOST_HINT],
            code="LINEAGE_STOPPED",
            hint=f"a person looks (landlane task show {task.id}), then: landlane task retry {task.id}",
            task=task.id,
        )


def book_bounce(
    tx: Transaction, repo: Repository, landing: Landing, task: Task, said: str, hint: str
) -> None:
    """One more bounce of what a task is to mend: it goes on with what was said, or a person is asked."""
    if task.state == WAITING:
        return  # somebody is asked already
    # The same commit once more is no attempt to mend it, and may land when an outage is over: it is counted,
    # but hearing the same of it is no sign that the work turns in circles.
    is_same = any(
        one["head"] == landing.head and one["id"] != landing.id and one["bounce_task"] == task.id
        for one in records.by_key(tx, NOUN, landing.target, BOUNCED)
    )
    feedback = "" if is_same else said
    end = AttemptEnd(task=task.id, attempt=task.attempt, code="bounced", feedback=feedback)
    # What others did to the task itself is not the branch's failure: only the lineage is charged.
    verdict = judge_in(tx, repo, replace(task, failures=0), end, grace=task.max_attempts)
    is_stopped = verdict.outcome in (ESCALATE, ABORT)
    verdict = replace(verdict, outcome=ESCALATE if is_stopped else verdict.outcome, is_failure=False)
    then = WAITING if is_stopped else task.state
    why = verdict.why[:LONGEST_LINE]
    if is_stopped:
        move_task(tx, task, WAITING, why=why, next_action=hint)
        release_claims(tx, task, "")
    elif task.state == READY:
        tx.run("task_set_why", task=task.id, why=why, next_action=hint)
    tell_end(tx, repo, (landing.agent, landing.session), task, end, verdict, then, landing=landing.id)


def is_open(task: Task) -> bool:
    """Whether a task to mend something can still be gone on with: it waits, or somebody is at it."""
    return task.state not in (*OVER, DEAD, FAILED)


def drop_mend(tx: Transaction, repo: Repository, landing: Landing) -> None:
    """A branch landed: nobody needs to mend it any more, unless somebody is at it."""
    task = (
        None if landing.task else find_mend(tx, landing.branch, landing.target, landing.agent, landing.home)
    )
    if task is None:
        return
    task = get_in(tx, task.id)
    lineage = lineage_in(tx, task.lineage)  # it got there: what comes next is no repetition
    put_lineage(tx, replace(lineage, feedback=(), attempts=0, stopped=""), "renewed")
    if task.state not in (READY, BLOCKED, WAITING, DEAD):
        return
    why = f"{_LANDED} as {landing.id}"
    move_task(tx, task, DROPPED, why=why)
    forget_signs(tx, repo, task)
    forget_in(tx, task)
    tx.record("task.dropped", "", "", {"task": task.id, "why": why, "before": task.state})
