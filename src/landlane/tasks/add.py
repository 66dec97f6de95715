"""Adding tasks: found again by key, compared with those that look alike, written with all they wait for."""

from __future__ import annotations

import json

from landlane.errors import Malformed, NotAllowed
from landlane.patterns.pattern import alternatives_overlap
from landlane.roles.enforce import check_known
from landlane.tasks.duplicates import Lookalike, best_first, likeness, signs_of
from landlane.tasks.evidence_model import required_evidence
from landlane.tasks.lineage import check_room
from landlane.tasks.model import BLOCKED, DONE, DROPPED, OVER, READY, NewTask, Task, check_new, rank_of
from landlane.tasks.records import (
    find_task,
    find_task_by_key,
    get_in,
    id_order,
    pattern_pairs,
    task_in,
    who,
    whole,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.duplicates import Likeness
    from landlane.tasks.model import Task


# Two who add the same work at once must see each other. Ids are given out one by one anyway.
ADDING = {"//task-add": True}
_MOST_ALIKE = 20  # a word that more tasks share tells little


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


def add_task(
    repo: Repository, author: Session | None, new: NewTask, *, force: bool = False
) -> Added | LooksAlike:
    """Add a task, or find it under its key, or say which tasks look like the same work.

    Raises:
        Malformed: a field cannot be used, or a dependency is unknown.
    """
    wanted = check_new(new)
    check_known(repo, wanted.role)
    patterns = patterns_of(repo, wanted)

    def work(tx: Transaction) -> Added | LooksAlike:
        outcome = add_in(tx, repo, author, wanted, patterns, force=force)
        if isinstance(outcome, LooksAlike):  # nothing is added, but how often that happens is worth knowing
            alike = [one.task for one in outcome.similar]
            tx.record("duplicate.refused", *who(author), {"title": wanted.title, "similar": alike})
        return outcome

    return repo.change(work, areas=ADDING)


def patterns_of(repo: Repository, new: NewTask) -> tuple[Pattern, ...]:
    """What the declared paths of a new task mean here; two spellings of one thing are one."""
    found = [repo.git.pattern(text) for text in new.paths]
    return tuple({one.alternatives: one for one in found}.values())


def add_in(
    tx: Transaction,
    repo: Repository,
    author: Session | None,
    new: NewTask,
    patterns: Sequence[Pattern],
    *,
    force: bool,
    place: int = 0,
    may_be_stopped: bool = False,
) -> Added | LooksAlike:
    """Add a checked task inside a transaction; `place` is its place among those that are added together.

    `may_be_stopped`: the caller sees to it that nobody works for a lineage that gets no further attempts.

    Raises:
        Malformed: a dependency or the parent is unknown, or was dropped.
        NotAllowed: the lineage of the parent was stopped, or has too many tasks.
        SettingsError: nobody has said what a task of this kind must show.
    """
    if new.kind:
        required_evidence(new.kind, repo.settings.tasks.evidence)
    known = find_task_by_key(tx, new.key) if new.key else None
    if known is not None:
        return Added(task=whole(tx, known), similar=(), is_new=False)
    lineage = _lineage_below(tx, repo, new.parent, may_be_stopped=may_be_stopped) if new.parent else ""
    open_before = _open_before(tx, new.after)
    signs = signs_of(new.title, new.body, (branch.key for one in patterns for branch in one.alternatives))
    similar = _find_alike(tx, repo, new, patterns, signs, lineage)
    if similar and not force:
        return LooksAlike(similar=similar)
    task_id = _insert(tx, new, patterns, lineage, len(open_before), place)
    for before in new.after:
        tx.run("task_after_add", task=task_id, after=before)
    tx.run("task_signs_add", task=task_id, signs=json.dumps(signs))
    for one in similar:
        tx.run("task_link_add", task=task_id, other=one.task, reason=one.reason)
    tx.record("task.added", *who(author), _facts(task_id, new, patterns, lineage or task_id, similar))
    tx.frees = tx.frees or not open_before
    task = task_in(tx, task_id)
    return Added(task=whole(tx, task) if new.after else task, similar=similar, is_new=True)


def declare_paths(
    repo: Repository,
    author: Session | None,
    task_id: str,
    patterns: Sequence[Pattern],
    *,
    force: bool = False,
) -> Added | LooksAlike:
    """Say what a task that nobody has taken yet will change, or which tasks look like the same work.

    Raises:
        Malformed: there is no such task.
        NotAllowed: somebody is at work on it already, or it is over.
    """

    def work(tx: Transaction) -> Added | LooksAlike:
        task = get_in(tx, task_id)
        if task.state not in (READY, BLOCKED):
            raise NotAllowed(
                f"{task_id} is {task.state}: its paths are settled",
                code="TASK_WRONG_STATE",
                hint=f"claim what else it needs: landlane claim PATH --task {task_id}",
            )
        signs = signs_of(
            task.title, task.body, (branch.key for one in patterns for branch in one.alternatives)
        )
        planned = NewTask(title=task.title, body=task.body)
        found = _find_alike(tx, repo, planned, patterns, signs, task.lineage)
        similar = tuple(one for one in found if one.task != task_id)
        if similar and not force:
            return LooksAlike(similar=similar)
        stored = [[one.text, one.kind] for one in patterns]
        tx.run("task_set_paths", task=task_id, paths=json.dumps(stored, ensure_ascii=False))
        forget_signs(tx, repo, task)
        tx.run("task_signs_add", task=task_id, signs=json.dumps(signs))
        for one in similar:
            tx.run("task_link_add", task=task_id, other=one.task, reason=one.reason)
        tx.record("task.planned", *who(author), {"task": task_id, "paths": stored})
        return Added(task=whole(tx, get_in(tx, task_id)), similar=similar, is_new=False)

    return repo.change(work, areas=ADDING)


def _open_before(tx: Transaction, after: Sequence[str]) -> list[str]:
    """Those dependencies that are not done, held still: one that ends just now must not be waited for."""
    found: list[str] = []
    for before in sorted(after, key=id_order):
        state = get_in(tx, before).state
        if state == DROPPED:
            raise Malformed(
                f"{before} was dropped: what waits for it would wait for ever",
                code="TASK_OVER",
                hint=f"leave out --after {before}",
            )
        if state != DONE:
            found.append(before)
    return found


def _lineage_below(tx: Transaction, repo: Repository, parent_id: str, *, may_be_stopped: bool) -> str:
    """The lineage of a child: its parent's, which must have room for it."""
    parent = get_in(tx, parent_id)
    if not may_be_stopped:
        check_room(tx, repo, parent)
    return parent.lineage


def _find_alike(
    tx: Snapshot,
    repo: Repository,
    new: NewTask,
    patterns: Sequence[Pattern],
    signs: Sequence[str],
    lineage: str,
) -> tuple[Likeness, ...]:
    found: list[Likeness] = []
    for task in _candidates(tx, signs):
        other = Lookalike(
            task=task.id,
            title=task.title,
            body=task.body,
            state=task.state,
            shares_path=_shares_path(repo, patterns, task.stored_paths),
            is_family=bool(lineage) and task.lineage == lineage,
        )
        one = likeness(new.title, new.body, other)
        if one is not None:
            found.append(one)
    return best_first(found)


def _candidates(tx: Snapshot, signs: Sequence[str]) -> list[Task]:
    """Tasks that are not over and share a sign; words that very many share are passed over."""
    names: dict[str, None] = {}
    for sign, sharing in _sharing(tx, signs).items():
        if len(sharing) < _MOST_ALIKE or sign[0] in "=#/":
            names.update(dict.fromkeys(sharing))
    tasks = [find_task(tx, name) for name in names]
    return [task for task in tasks if task is not None and task.state not in OVER]


def _sharing(tx: Snapshot, signs: Sequence[str]) -> dict[str, list[str]]:
    """Each sign and the tasks that have it, the newest of very many."""
    limit = _MOST_ALIKE * len(signs)
    rows = tx.all("tasks_with_signs", signs=list(signs), limit=limit)
    if len(rows) == limit:  # some of them are common: ask for each
        one_by_one = {sign: tx.all("tasks_with_sign", sign=sign, limit=_MOST_ALIKE) for sign in signs}
        return {sign: [row["task"] for row in found] for sign, found in one_by_one.items()}
    sharing: dict[str, list[str]] = {}
    for row in rows:
        sharing.setdefault(row["sign"], []).append(row["task"])
    return sharing


def _shares_path(repo: Repository, patterns: Sequence[Pattern], stored: str) -> bool:
    others = [repo.git.pattern_of(text, kind) for text, kind in pattern_pairs(stored)]
    return any(
        alternatives_overlap(mine, theirs)
        for one in patterns
        for mine in one.alternatives
        for other in others
        for theirs in other.alternatives
    )


def _insert(
    tx: Transaction, new: NewTask, patterns: Sequence[Pattern], lineage: str, waits_for: int, place: int
) -> str:
    row = tx.one("task_next_id")
    assert row is not None
    task_id = f"T{row['last']}"
    tx.run(
        "task_add",
        id=task_id,
        title=new.title,
        body=new.body,
        kind=new.kind,
        state=BLOCKED if waits_for else READY,
        role=new.role,
        priority=new.priority,
        rank=rank_of(tx.now + place, new.priority),
        paths=json.dumps([[one.text, one.kind] for one in patterns], ensure_ascii=False)
        if patterns
        else "[]",
        max_attempts=new.max_attempts,
        lineage=lineage or task_id,
        check=new.check,
        output=new.output,
        key=new.key or None,
        labels=json.dumps(new.labels, ensure_ascii=False) if new.labels else "[]",
        why="",
        next_action=new.next_action,
        waits_for=waits_for,
    )
    return task_id


def _facts(
    task_id: str, new: NewTask, patterns: Sequence[Pattern], lineage: str, similar: Sequence[Likeness]
) -> dict[str, object]:
    """What the journal keeps of a new task: enough to build it again."""
    return {
        "task": task_id,
        "title": new.title,
        "body": new.body,
        "kind": new.kind,
        "role": new.role,
        "priority": new.priority,
        "paths": [[one.text, one.kind] for one in patterns],
        "after": list(new.after),
        "max_attempts": new.max_attempts,
        "lineage": lineage,
        "check": new.check,
        "output": new.output,
        "key": new.key,
        "labels": list(new.labels),
        "next_action": new.next_action,
        "similar": [[one.task, one.reason] for one in similar],
    }


def forget_signs(tx: Transaction, repo: Repository, task: Task) -> None:
    """A task is over: nothing that is added later is its duplicate."""
    patterns = [repo.git.pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)]
    signs = signs_of(task.title, task.body, (branch.key for one in patterns for branch in one.alternatives))
    tx.run("task_signs_drop", task=task.id, signs=list(signs))
