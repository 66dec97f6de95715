"""Tasks as they stand and what becomes of them: dependencies, reports, failures, blocks, ends."""

from __future__ import annotations

from landlane.claims.take import ancestors_of, living
from landlane.errors import Malformed, NotAllowed, Stale
from landlane.sessions.leases import sweep_if_due
from landlane.sessions.model import check_text
from landlane.store.journal_chain import entry_from
from landlane.tasks.model import (
    ACTIVE,
    AT_WORK,
    BLOCKED,
    DEAD,
    DONE,
    DROPPED,
    FAILED,
    LONGEST_BODY,
    LONGEST_LINE,
    OVER,
    READY,
    REPORTED,
    WAITING,
    Lesson,
    find_loop,
    ring_error,
)
from landlane.tasks.on_change import settle_due
from landlane.tasks.rows import (
    get_in,
    move_task,
    task_from,
    unknown_task,
    who,
    whole,
    with_after,
)
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.context import Context
    from landlane.sessions.model import Session
    from landlane.store.interface import Change, Reading
    from landlane.store.journal_chain import Entry
    from landlane.tasks.model import Task

# What tells the next owner something.
_LESSONS = frozenset(
    {
        *("task.failed", "task.returned", "task.doubted", "task.blocked", "task.retried", "task.answered"),
        *("task.joined", "task.reviewed"),
    }
)


def get_task(context: Context, task_id: str) -> Task:
    """A task by its id.

    Raises:
        Malformed: there is no such task.
    """

    def look(reading: Reading) -> Task:
        row = reading.one("task_get", task=task_id)
        if row is None:
            raise unknown_task(task_id)
        return whole(reading, task_from(row))

    sweep_if_due(context.store)
    return context.store.view(look)


def list_tasks(context: Context, states: Sequence[str] = ()) -> list[Task]:
    """All tasks in the order in which they were added, or those in these states."""

    def look(reading: Reading) -> list[Task]:
        tasks = [task_from(row) for row in reading.all("tasks_all")]
        state_of = {task.id: task.state for task in tasks}
        after: dict[str, list[tuple[str, str]]] = {}
        for one, other in reading.all("task_after_all"):
            after.setdefault(one, []).append((other, state_of[other]))
        return [
            with_after(task, after.get(task.id, ())) for task in tasks if not states or task.state in states
        ]

    sweep_if_due(context.store)
    settle_due(context)
    return context.store.view(look)


def count_tasks(context: Context) -> dict[str, int]:
    """How many tasks are in each state that is not over."""
    return dict(context.store.view(lambda reading: reading.all("tasks_count")))


def task_history(context: Context, task_id: str) -> list[Entry]:
    """Everything that happened to a task, in order.

    Raises:
        Malformed: there is no such task.
    """
    get_task(context, task_id)
    return context.store.view(lambda reading: history_in(reading, task_id))


def history_in(reading: Reading, task_id: str) -> list[Entry]:
    """Everything that happened to a task, in order, as one transaction sees it."""
    return [entry_from(row) for row in reading.all("task_entries", task=task_id)]


def lessons_in(reading: Reading, task_id: str) -> tuple[Lesson, ...]:
    """What earlier owners, and those who looked at their work, left behind."""
    found: list[Lesson] = []
    attempt = 0
    for entry in history_in(reading, task_id):
        facts = entry.facts()
        attempt = facts["attempt"] if entry.kind == "task.taken" else attempt
        if entry.kind in _LESSONS and facts.get("why"):
            why = str(facts.get("feedback") or facts["why"])
            found.append(Lesson(at=entry.at, kind=entry.kind, agent=entry.agent, attempt=attempt, why=why))
    return tuple(found)


def lessons_of(context: Context, task_id: str) -> tuple[Lesson, ...]:
    """What earlier owners of a task left behind."""
    return context.store.view(lambda reading: lessons_in(reading, task_id))


def links_of(context: Context, task_id: str) -> list[tuple[str, str]]:
    """The tasks that a task was found to look like, and why."""
    rows = context.store.view(lambda reading: reading.all("task_links_of", task=task_id))
    return [(row[0], row[1]) for row in rows]


def add_dependency(context: Context, author: Session | None, task_id: str, after: str) -> Task:
    """Let a task wait for another.

    Raises:
        Malformed: one of them is unknown, or they would wait for each other; the ring is named.
        NotAllowed: the task is already under way, or the other was dropped.
    """

    def work(tx: Change) -> Task:
        before = get_in(tx, after)  # first: whoever ends it locks it before those behind it, too
        task = get_in(tx, task_id)
        if task.state not in (READY, BLOCKED):
            raise _too_late(f"{task_id} is {task.state}: it is too late to let it wait", task.state)
        if before.state == DROPPED:
            raise _too_late(f"{after} was dropped: {task_id} would wait for ever", before.state)
        ring = find_loop(_graph_with(tx, task_id, after), task_id)
        if ring:
            raise ring_error(ring)
        tx.run("task_after_add", task=task_id, after=after)
        waits = count_waits(tx, task_id)
        if waits and task.state == READY:
            move_task(tx, task, BLOCKED)
        tx.record("task.waits", *who(author), {"task": task_id, "after": after})
        return whole(tx, get_in(tx, task_id))

    return context.change(work, areas={"//task-graph": True})


def _too_late(message: str, state: str) -> NotAllowed:
    return NotAllowed(message, code="TASK_WRONG_STATE", hint="let a new task wait instead", state=state)


def _graph_with(tx: Reading, task_id: str, after: str) -> dict[str, tuple[str, ...]]:
    graph: dict[str, tuple[str, ...]] = {task_id: (after,)}
    for one, other in tx.all("task_after_all"):
        graph[one] = (*graph.get(one, ()), other)
    return graph


def count_waits(tx: Change, task_id: str) -> int:
    """Count anew how many dependencies of a task are not done, and write it down."""
    waits = sum(row[1] != DONE for row in tx.all("task_after_of", task=task_id))
    tx.run("task_set_waits", task=task_id, waits_for=waits)
    return waits


def owned(tx: Change, session: Session, task_id: str, *, by_hands: bool = False) -> Task:
    """A task that this session is at work on, or one whose subagent it is.

    `by_hands`: the worker of a keeper may do it, too (see `sessions/worker_sessions.py`); what ends an attempt it may not.

    Raises:
        Stale: it is somebody else's by now, or nobody's.
    """
    task = get_in(tx, task_id)
    is_own = task.session == session.id
    are_hands = False
    if task.session and not is_own and task.session in ancestors_of(tx, session.id):
        from landlane.sessions.worker_sessions import keeper_of  # noqa: PLC0415 - few act for another

        are_hands = keeper_of(tx, session.id) == task.session
        is_own = by_hands or not are_hands
    if is_own and task.state in AT_WORK:
        return task
    held = f"{task.owner} is at work on it" if task.owner and task.state in AT_WORK else f"it is {task.state}"
    if are_hands and task.state in AT_WORK:
        raise Stale(
            f"{task_id} is not {session.agent}'s to end: {task.owner} holds it, and does that",
            code="TASK_NOT_YOURS",
            hint="end with WorkComplete or WorkFailed; what you return is judged and handed in then",
            holder=task.owner or None,
            state=task.state,
        )
    raise Stale(
        f"{task_id} is not (or no longer) {session.agent}'s: {held}",
        code="TASK_NOT_YOURS",
        hint="`landlane next` gives you a task of your own; what you did stays in your branch",
        holder=task.owner or None,
        state=task.state,
    )


def report_done(context: Context, session: Session, task_id: str, result: str = "") -> Task:
    """The owner says it is done. Whether it is, evidence tells; until then it is `reported`.

    Raises:
        Stale: the task is not this session's any more.
    """
    check_text(result, "result", LONGEST_BODY)

    def work(tx: Change) -> Task:
        living(tx, session)
        task = owned(tx, session, task_id)
        if task.state == ACTIVE:
            move_task(tx, task, REPORTED, keep_owner=True, result=result, why="reported; not yet proved")
            tx.record("task.reported", *who(session), {"task": task_id, "result": result})
        return whole(tx, get_in(tx, task_id))

    return context.change(work)


def finish(
    tx: Change,
    context: Context,
    task: Task,
    session: Session | None,
    *,
    head: str,
    evidence: Sequence[dict[str, object]],
) -> None:
    """A task is over and proved: release its claims and let those go on that waited for it."""
    from landlane.tasks.add import forget_signs  # noqa: PLC0415 - a circle otherwise

    move_task(tx, task, DONE, keep_owner=True, head=head, next_action="")
    release_claims(tx, task, head)
    forget_signs(tx, context, task)
    facts = {"task": task.id, "head": head, "result": task.result, "evidence": list(evidence)}
    tx.record("task.done", *who(session), facts)
    _unblock_those_behind(tx, task.id)
    tx.frees = True


def release_claims(tx: Change, task: Task, commit: str) -> None:
    """Give back what is held for a task."""
    tokens: set[int] = set()
    for row in tx.all("claims_of_task", session=task.session, task=task.id):
        if row[2] not in tokens and tx.run("claim_drop", session=task.session, token=row[2]):
            tokens.add(row[2])
            facts: dict[str, object] = {"pattern": row[3], "token": row[2]}
            tx.record("claim.released", row[7], row[6], facts | ({"commit": commit} if commit else {}))
            tx.frees = True


def _unblock_those_behind(tx: Change, task_id: str) -> None:
    for (behind,) in tx.all("tasks_behind", task=task_id):
        task = get_in(tx, behind)
        # A reason of its own means that somebody blocked it by hand.
        if not count_waits(tx, behind) and task.state == BLOCKED and not task.why:
            move_task(tx, task, READY, ready_at=tx.now)
            tx.record("task.unblocked", "", "", {"task": behind, "why": f"{task_id} is done"})


def fail_task(
    context: Context, session: Session, task_id: str, why: str, *, is_final: bool = False, change: str = ""
) -> Task:
    """The owner gives up: back into the queue with what was learned, or to a person when that would not help.

    `change` is by what the change that it made is known again, if there is one.

    Raises:
        Stale: the task is not this session's any more.
        Malformed: there is no reason, or one that cannot be stored.
    """
    from landlane.tasks.retry import end_attempt_in  # noqa: PLC0415 - a circle otherwise
    from landlane.tasks.retry_rules import AttemptEnd  # noqa: PLC0415 - few calls fail a task

    check_reason(why)

    def work(tx: Change) -> Task:
        living(tx, session)
        task = owned(tx, session, task_id)
        end = AttemptEnd(
            task=task_id,
            attempt=task.attempt,
            code="failed",
            feedback=why,
            change=change,
            may_retry=not is_final,
        )
        # Who gives up says why: another may try at once. From the second time on there is a pause.
        return end_attempt_in(tx, context, session, task, end, grace=1, abort_state=abort_state).task

    abort_state = FAILED if is_final else DEAD
    return context.change(work)


def check_reason(why: str) -> str:
    """A reason that somebody else can learn from.

    Raises:
        Malformed: it is empty or too long.
    """
    if not why.strip():
        raise Malformed("say why", code="NO_REASON", hint="--why 'a sentence for whoever comes next'")
    return check_text(why, "reason", LONGEST_LINE)


def block_task(context: Context, session: Session | None, task_id: str, why: str) -> Task:
    """Keep a task from being offered; whoever is at work on it loses it.

    Raises:
        Malformed: there is no such task, or no reason.
        NotAllowed: it is in no state for that.
    """
    check_reason(why)

    def work(tx: Change) -> Task:
        task = get_in(tx, task_id)
        if task.state == WAITING:  # unblocked again, it would be on its way without an answer
            raise not_for_that(task, "waits for a person's answer")
        return _move_by_hand(tx, context, session, task, "task.blocked", BLOCKED, why)

    return context.change(work)


def unblock_task(context: Context, session: Session | None, task_id: str) -> Task:
    """Take a block away. Dependencies that were dropped are forgotten with it; open ones are waited for.

    Raises:
        Malformed: there is no such task.
        NotAllowed: it is not blocked, or by nothing but open dependencies.
    """

    def work(tx: Change) -> Task:
        task = get_in(tx, task_id)
        if task.state != BLOCKED:
            raise not_for_that(task, "is not blocked")
        for before, state in [(row[0], row[1]) for row in tx.all("task_after_of", task=task_id)]:
            if state == DROPPED:
                tx.run("task_after_drop", task=task_id, after=before)
        waits = count_waits(tx, task_id)
        if waits and not task.why:
            names = [row[0] for row in tx.all("task_after_of", task=task_id) if row[1] != DONE]
            raise NotAllowed(
                f"{task_id} still waits for {', '.join(names)}",
                code="TASK_WAITS",
                hint="finish these first, or drop them and unblock it then",
            )
        move_task(tx, task, BLOCKED if waits else READY, ready_at=tx.now)
        tx.record("task.unblocked", *who(session), {"task": task_id, "why": "", "before": task.state})
        tx.frees = True
        return whole(tx, get_in(tx, task_id))

    return context.change(work)


def retry_task(context: Context, session: Session | None, task_id: str, why: str = "") -> Task:
    """Give a task that failed, died or was stopped another round of attempts; its history stays.

    A person gives its lineage a fresh budget with it, and only a person answers for what was stopped.

    Raises:
        Malformed: there is no such task.
        NotAllowed: it is not in a state for that, or a person must decide.
    """
    from landlane.tasks.lineage import allow_again  # noqa: PLC0415 - a circle otherwise

    def work(tx: Change) -> Task:
        task = get_in(tx, task_id)
        allow_again(tx, task, session)
        if task.state == READY:  # it was held back, and need not wait any longer
            return whole(tx, task)
        return _move_by_hand(tx, context, session, task, "task.retried", READY, why)

    return context.change(work)


def drop_task(context: Context, session: Session | None, task_id: str, why: str) -> Task:
    """Give a task up for good.

    Raises:
        Malformed: there is no such task, or no reason.
        NotAllowed: it is over already.
    """
    return _change(context, session, task_id, "task.dropped", DROPPED, check_reason(why))


def _change(context: Context, session: Session | None, task_id: str, kind: str, then: str, why: str) -> Task:
    def work(tx: Change) -> Task:
        return _move_by_hand(tx, context, session, get_in(tx, task_id), kind, then, why)

    return context.change(work)


def _move_by_hand(
    tx: Change, context: Context, session: Session | None, task: Task, kind: str, then: str, why: str
) -> Task:
    from landlane.tasks.add import forget_signs  # noqa: PLC0415 - a circle otherwise

    fresh = 0 if kind == "task.retried" else None
    move_task(tx, task, then, why=why, failures=fresh, lapses=fresh)
    release_claims(tx, task, "")
    if then in OVER:
        from landlane.handoffs.transfer import withdraw_in  # noqa: PLC0415 - rare
        from landlane.tasks.lineage import forget_in  # noqa: PLC0415 - a circle otherwise

        forget_signs(tx, context, task)
        forget_in(tx, task)
        withdraw_in(tx, task.id, f"{task.id} was dropped")
    tx.record(kind, *who(session), {"task": task.id, "why": why, "before": task.state})
    tx.frees = True
    return whole(tx, get_in(tx, task.id))


def not_for_that(task: Task, words: str) -> NotAllowed:
    """A task is in no state for what somebody wants."""
    hints = {
        BLOCKED: f"landlane task unblock {task.id}",
        ACTIVE: f"{task.owner} is at work on it",
        FAILED: f"landlane task retry {task.id}",
        DEAD: f"landlane task retry {task.id}",
        WAITING: "`landlane gate list` shows the question, and a person answers it",
    }
    return NotAllowed(
        f"{task.id} is {task.state}: it {words}",
        code="TASK_WRONG_STATE",
        hint=hints.get(task.state, f"`landlane task show {task.id}` tells more"),
        state=task.state,
    )


def finish_on_word(context: Context, session: Session, task_id: str, result: str) -> Task:
    """End a task of a kind that has nothing to show: its owner's word is all there is.

    Raises:
        Stale: the task is not this session's any more.
    """
    check_text(result, "result", LONGEST_BODY)

    def work(tx: Change) -> Task:
        living(tx, session)
        task = owned(tx, session, task_id)
        ended = replace(task, result=result or task.result)
        finish(tx, context, ended, session, head="", evidence=())
        return whole(tx, replace(ended, state=DONE, head="", why="", next_action=""))

    return context.change(work)
