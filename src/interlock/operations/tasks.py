"""The work queue: adding tasks, taking the best one together with its paths, and what becomes of it."""

from __future__ import annotations

import json

from interlock.domain.claims import EXCLUSIVE, Claim, Refused, Request, areas_of
from interlock.domain.duplicates import Likeness, best_first, likeness, signs_of
from interlock.domain.patterns import Branch, branches_overlap
from interlock.domain.tasks import (
    ACTIVE,
    BLOCKED,
    DEAD,
    DONE,
    FAILED,
    OPEN,
    READY,
    REPORTED,
    NewTask,
    Task,
    check_new,
    check_transition,
    find_loop,
    rank_of,
)
from interlock.errors import Malformed, NotAllowed, Stale
from interlock.operations.claims import is_over, living, take_in
from interlock.operations.task_rows import move_task, pattern_pairs, task_from
from interlock.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.domain.agents import Session
    from interlock.domain.journal import Entry
    from interlock.domain.patterns import Pattern
    from interlock.operations.context import Context
    from interlock.ports.store import Change, Reading

_PAGE = 50
_MOST_LOOKED_AT = 20_000


@value
class Added:
    """A task that stands in the queue, and those that look like it."""

    task: Task
    similar: tuple[Likeness, ...]
    is_new: bool


@value
class LooksAlike:
    """Nothing was added: this work seems to be there already."""

    similar: tuple[Likeness, ...]


@value
class Picked:
    """A task that is the caller's now, and the claims on its paths."""

    task: Task
    claims: tuple[Claim, ...]


@value
class NothingReady:
    """There is no task to take: how many there are in each state, and whose paths are in the way."""

    counts: dict[str, int]
    held_up: tuple[str, ...]


def add_task(
    context: Context, author: Session | None, new: NewTask, *, force: bool = False
) -> Added | LooksAlike:
    """Add a task, or find it under its key, or say which tasks look like the same work.

    Raises:
        Malformed: a field cannot be used, or a dependency is unknown.
    """
    check_new(new)
    patterns = tuple(context.repository.pattern(text) for text in new.paths)

    def work(tx: Change) -> Added | LooksAlike:
        known = tx.one("task_by_key", key=new.key) if new.key else None
        if known is not None:
            return Added(task=_whole(tx, task_from(known)), similar=(), is_new=False)
        similar = _find_alike(tx, context, new, patterns)
        if similar and not force:
            return LooksAlike(similar=similar)
        return Added(task=_insert(tx, author, new, patterns, similar), similar=similar, is_new=True)

    return context.change(work, areas={f"//task-key:{new.key}": True} if new.key else None)


def _find_alike(
    tx: Reading, context: Context, new: NewTask, patterns: Sequence[Pattern]
) -> tuple[Likeness, ...]:
    signs = signs_of(new.title, new.body, (branch.key for one in patterns for branch in one.branches))
    found: list[Likeness] = []
    for task_id, _ in tx.all("tasks_with_signs", signs=list(signs)) if signs else ():
        row = tx.one("task_get", task=task_id)
        if row is None or row[4] not in OPEN:
            continue
        shares_path = _shares_path(context, patterns, row[8])
        one = likeness(new.title, new.body, shares_path, (row[0], row[1], row[2], row[4]))
        if one is not None:
            found.append(one)
    return best_first(found)


def _shares_path(context: Context, patterns: Sequence[Pattern], stored: str) -> bool:
    others = [context.repository.pattern_of(text, kind) for text, kind in pattern_pairs(stored)]
    return any(
        branches_overlap(mine, theirs)
        for one in patterns
        for mine in one.branches
        for other in others
        for theirs in other.branches
    )


def _insert(
    tx: Change,
    author: Session | None,
    new: NewTask,
    patterns: Sequence[Pattern],
    similar: Sequence[Likeness],
) -> Task:
    row = tx.one("task_next_id")
    assert row is not None
    task_id = f"T{row[0]}"
    open_before = [before for before in new.after if state_of(tx, before) != DONE]
    lineage = _lineage(tx, new.parent) or task_id
    state = BLOCKED if open_before else READY
    why = f"waits for {', '.join(open_before)}" if open_before else ""
    paths = json.dumps([[one.text, one.kind] for one in patterns], ensure_ascii=False)
    labels = json.dumps(list(new.labels), ensure_ascii=False)
    tx.run(
        "task_add",
        id=task_id,
        title=new.title,
        body=new.body,
        kind=new.kind,
        state=state,
        role=new.role,
        priority=new.priority,
        rank=rank_of(tx.now, new.priority),
        paths=paths,
        max_attempts=new.max_attempts,
        lineage=lineage,
        check=new.check,
        output=new.output,
        key=new.key or None,
        labels=labels,
        why=why,
        next_action=new.next_action,
        waits_for=len(open_before),
    )
    for before in new.after:
        tx.run("task_after_add", task=task_id, after=before)
    for sign in signs_of(new.title, new.body, (branch.key for one in patterns for branch in one.branches)):
        tx.run("task_sign_add", sign=sign, task=task_id)
    for one in similar:
        tx.run("task_link_add", task=task_id, other=one.task, reason=one.reason)
    facts: dict[str, object] = {
        "task": task_id,
        "title": new.title,
        "body": new.body,
        "kind": new.kind,
        "role": new.role,
        "priority": new.priority,
        "paths": json.loads(paths),
        "after": list(new.after),
        "max_attempts": new.max_attempts,
        "lineage": lineage,
        "check": new.check,
        "output": new.output,
        "key": new.key,
        "labels": list(new.labels),
        "next_action": new.next_action,
    }
    tx.record("task.added", author.agent if author else "", author.id if author else "", facts)
    tx.frees = state == READY
    found = tx.one("task_get", task=task_id)
    assert found is not None
    return replace(task_from(found), after=new.after)


def state_of(tx: Reading, task_id: str) -> str:
    """The state of a task.

    Raises:
        Malformed: there is no such task.
    """
    row = tx.one("task_get", task=task_id)
    if row is None:
        raise unknown_task(task_id)
    return row[4]


def unknown_task(task_id: str) -> Malformed:
    """There is no such task."""
    return Malformed(
        f"there is no task {task_id[:40]!r}", code="UNKNOWN_TASK", hint="`interlock task list` shows them"
    )


def _lineage(tx: Reading, parent: str) -> str:
    if not parent:
        return ""
    row = tx.one("task_get", task=parent)
    if row is None:
        raise unknown_task(parent)
    return row[15]


def _whole(tx: Reading, task: Task) -> Task:
    """The task with the names of those it waits for."""
    return replace(task, after=tuple(row[0] for row in tx.all("task_after_of", task=task.id)))


def add_dependency(context: Context, author: Session | None, task_id: str, after: str) -> Task:
    """Let a task wait for another.

    Raises:
        Malformed: one of them is unknown, or they would wait for each other; the ring is named.
        NotAllowed: the task is already under way.
    """

    def work(tx: Change) -> Task:
        task = get_in(tx, task_id)
        if task.state not in (READY, BLOCKED):
            raise NotAllowed(
                f"{task_id} is {task.state}: it is too late to let it wait",
                code="TASK_WRONG_STATE",
                hint="let a new task wait instead",
            )
        before = get_in(tx, after)
        graph: dict[str, tuple[str, ...]] = {}
        for one, other in tx.all("task_after_all"):
            graph[one] = (*graph.get(one, ()), other)
        graph[task_id] = (*graph.get(task_id, ()), after)
        ring = find_loop(graph, task_id) if after != task_id else (task_id, task_id)
        if ring:
            raise Malformed(
                f"these tasks would wait for each other: {' → '.join(ring)}",
                code="TASK_CYCLE",
                hint="take one of these dependencies away",
                cycle=list(ring),
            )
        tx.run("task_after_add", task=task_id, after=after)
        waits = [row[0] for row in tx.all("task_after_of", task=task_id) if row[1] != DONE]
        tx.run("task_set_waits", task=task_id, waits_for=len(waits))
        if before.state != DONE and task.state == READY:
            move_task(tx, task, BLOCKED, why=f"waits for {', '.join(waits)}")
        tx.record("task.waits", *_who(author), {"task": task_id, "after": after})
        return _whole(tx, get_in(tx, task_id))

    return context.change(work, areas={"//task-graph": True})


def _who(session: Session | None) -> tuple[str, str]:
    return (session.agent, session.id) if session else ("", "")


def get_in(tx: Reading, task_id: str) -> Task:
    """A task as it stands in this transaction.

    Raises:
        Malformed: there is no such task.
    """
    row = tx.one("task_lock", task=task_id)
    if row is None:
        raise unknown_task(task_id)
    return task_from(row)


def get_task(context: Context, task_id: str) -> Task:
    """A task by its id.

    Raises:
        Malformed: there is no such task.
    """

    def look(reading: Reading) -> Task:
        row = reading.one("task_get", task=task_id)
        if row is None:
            raise unknown_task(task_id)
        return _whole(reading, task_from(row))

    return context.store.view(look)


def list_tasks(context: Context, states: Sequence[str] = ()) -> list[Task]:
    """All tasks in the order in which they were added, or those in these states."""

    def look(reading: Reading) -> list[Task]:
        after: dict[str, tuple[str, ...]] = {}
        for one, other in reading.all("task_after_all"):
            after[one] = (*after.get(one, ()), other)
        tasks = [task_from(row) for row in reading.all("tasks_all")]
        return [
            replace(task, after=after.get(task.id, ()))
            for task in tasks
            if not states or task.state in states
        ]

    return context.store.view(look)


def task_history(context: Context, task_id: str) -> list[Entry]:
    """Everything that happened to a task, in order."""
    from interlock.operations.task_rows import entry_of  # noqa: PLC0415 - only people look back

    get_task(context, task_id)
    rows = context.store.view(lambda reading: reading.all("task_entries", task=task_id))
    return [entry_of(row) for row in rows]


def links_of(context: Context, task_id: str) -> list[tuple[str, str]]:
    """The tasks that a task was found to look like, and why."""
    rows = context.store.view(lambda reading: reading.all("task_links_of", task=task_id))
    return [(row[0], row[1]) for row in rows]


def next_task(context: Context, session: Session, role: str = "") -> Picked | NothingReady:
    """Take the best ready task whose paths are free, and its paths with it.

    Raises:
        Stale: the session is over.
    """

    def work(tx: Change) -> Picked | NothingReady:
        me = living(tx, session)
        picked, held_up = _pick(tx, context, me, role or me.role)
        if picked is not None:
            return picked
        return NothingReady(counts=dict(tx.all("tasks_open_count")), held_up=tuple(held_up[:10]))

    return context.change(work)


def _pick(tx: Change, context: Context, me: Session, role: str) -> tuple[Picked | None, list[str]]:
    """Walk the ready tasks in their order until one can be had."""
    rank, last = -(2**62), ""
    held_up: list[str] = []
    in_the_way: set[str] = set()  # path sets that were refused once are refused again
    looked_at = 0
    while looked_at < _MOST_LOOKED_AT:
        tx.hold()
        rows = tx.all("tasks_ready_after", role=role, rank=rank, id=last, limit=tx.page(_PAGE))
        if not rows:
            tx.let_go()
            return None, held_up
        for row in rows:
            looked_at += 1
            rank, last = row[7], row[0]
            if row[8] not in in_the_way:
                picked = _try_to_take(tx, context, me, task_from(row))
                if picked is not None:
                    return picked, held_up
                in_the_way.add(row[8])
            held_up.append(row[0])
        tx.let_go()
    return None, held_up


def _try_to_take(tx: Change, context: Context, me: Session, task: Task) -> Picked | None:
    patterns = tuple(
        context.repository.pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)
    )
    claims: tuple[Claim, ...] = ()
    if patterns:
        tx.lock_areas(areas_of(patterns))
        if _own_task_in_the_way(tx, me, task, patterns):
            return None
        # As long as the session lives: a task and its claims end together.
        ttl_ms = max(context.settings.claim_ttl_ms, me.lease_ms)
        request = Request(patterns=patterns, mode=EXCLUSIVE, ttl_ms=ttl_ms, task=task.id)
        outcome = take_in(tx, context, me, request)
        if isinstance(outcome, Refused):
            return None
        claims = outcome.granted
    tx.run("task_take", task=task.id, owner=me.agent, session=me.id)
    tx.record("task.taken", me.agent, me.id, {"task": task.id, "attempt": task.attempt + 1})
    found = tx.one("task_get", task=task.id)
    assert found is not None
    return Picked(task=_whole(tx, task_from(found)), claims=claims)


def _own_task_in_the_way(tx: Change, me: Session, task: Task, patterns: Sequence[Pattern]) -> bool:
    """Whether another task of the same session has these paths: one session may be at work on several."""
    if not tx.all("tasks_of_session", session=me.id):
        return False
    branches = [branch for one in patterns for branch in one.branches]
    return any(
        row[6] == me.id
        and row[8] not in ("", task.id)
        and not is_over(row, tx.now)
        and any(branches_overlap(branch, Branch(key=row[0], rest=row[1])) for branch in branches)
        for row in tx.near("claims_near", branches, "")
    )


def owned(tx: Change, session: Session, task_id: str) -> Task:
    """A task that this session is at work on.

    Raises:
        Stale: it is somebody else's by now, or nobody's.
    """
    task = get_in(tx, task_id)
    if task.session == session.id and task.state in (ACTIVE, REPORTED):
        return task
    held = f"{task.owner} is at work on it" if task.owner else f"it is {task.state}"
    raise Stale(
        f"{task_id} is not (or no longer) {session.agent}'s: {held}",
        code="TASK_NOT_YOURS",
        hint="`interlock next` gives you a task of your own; what you did stays in your branch",
        holder=task.owner or None,
        state=task.state,
    )


def report_done(context: Context, session: Session, task_id: str, result: str = "") -> Task:
    """The owner says it is done. Whether it is, evidence tells; until then it is `reported`.

    Raises:
        Stale: the task is not this session's any more.
    """

    def work(tx: Change) -> Task:
        living(tx, session)
        task = owned(tx, session, task_id)
        if task.state == ACTIVE:
            move_task(tx, task, REPORTED, keep_owner=True, result=result, why="reported; not yet proved")
            tx.record("task.reported", session.agent, session.id, {"task": task_id, "result": result})
        return _whole(tx, get_in(tx, task_id))

    return context.change(work)


def finish(
    tx: Change, task: Task, session: Session | None, *, head: str, evidence: Sequence[dict[str, object]]
) -> None:
    """A task is over and proved: release its claims and let those go on that waited for it."""
    move_task(tx, task, DONE, keep_owner=True, head=head)
    _release_claims(tx, task, head)
    tx.record("task.done", *_who(session), {"task": task.id, "head": head, "evidence": list(evidence)})
    _unblock_those_behind(tx, task.id)
    tx.frees = True


def _release_claims(tx: Change, task: Task, commit: str) -> None:
    for row in tx.all("claims_of_task", session=task.session, task=task.id):
        if tx.run("claim_drop", session=task.session, token=row[2]):
            facts: dict[str, object] = {"pattern": row[3], "token": row[2]}
            tx.record("claim.released", row[7], row[6], facts | ({"commit": commit} if commit else {}))
            tx.frees = True


def _unblock_those_behind(tx: Change, task_id: str) -> None:
    for (behind,) in tx.all("tasks_behind", task=task_id):
        task = get_in(tx, behind)
        tx.run("task_count_down", task=behind)
        if task.state == BLOCKED and task.waits_for == 1 and task.why.startswith("waits for "):
            move_task(tx, task, READY, ready_at=tx.now)
            tx.record("task.unblocked", "", "", {"task": behind, "why": f"{task_id} is done"})


def fail_task(context: Context, session: Session, task_id: str, why: str, *, is_final: bool = False) -> Task:
    """The owner gives up: back into the queue with what was learned, or out of it when the tries are used up.

    Raises:
        Stale: the task is not this session's any more.
    """

    def work(tx: Change) -> Task:
        living(tx, session)
        task = owned(tx, session, task_id)
        failures = task.failures + 1
        then = FAILED if is_final else READY if failures < task.max_attempts else DEAD
        move_task(tx, task, then, why=why, failures=failures, ready_at=tx.now if then == READY else None)
        _release_claims(tx, task, "")
        facts = {"task": task_id, "why": why, "attempt": task.attempt, "failures": failures, "state": then}
        tx.record("task.failed", session.agent, session.id, facts)
        tx.frees = True
        return _whole(tx, get_in(tx, task_id))

    return context.change(work)


def change_state(
    context: Context, session: Session | None, task_id: str, kind: str, then: str, why: str = ""
) -> Task:
    """Block, unblock, retry or drop a task, with a reason.

    Raises:
        Malformed: there is no such task.
        NotAllowed: it is not in a state for that.
    """

    def work(tx: Change) -> Task:
        task = get_in(tx, task_id)
        check_transition(task_id, task.state, then)
        if then == READY and task.waits_for and task.state == BLOCKED:
            waits = [row[0] for row in tx.all("task_after_of", task=task_id) if row[1] != DONE]
            raise NotAllowed(
                f"{task_id} still waits for {', '.join(waits)}",
                code="TASK_WAITS",
                hint="finish or drop these first",
            )
        fresh = 0 if kind == "task.retried" else None
        ready_at = tx.now if then == READY else None
        move_task(tx, task, then, why=why, ready_at=ready_at, failures=fresh, lapses=fresh)
        _release_claims(tx, task, "")
        tx.record(kind, *_who(session), {"task": task_id, "why": why, "before": task.state})
        tx.frees = True
        return _whole(tx, get_in(tx, task_id))

    return context.change(work)
