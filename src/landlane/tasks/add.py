"""Add tasks: find them again by key, look for duplicates, and write them with their dependencies."""

from __future__ import annotations

import json

from landlane.errors import Malformed, NotAllowed
from landlane.patterns.pattern import alternatives_overlap
from landlane.roles.enforce import check_known
from landlane.roles.model import role_or_read_only
from landlane.tasks.duplicates import DuplicateCandidate, compare_with, most_similar, signs_of
from landlane.tasks.extensions import installed
from landlane.tasks.lineage import check_room
from landlane.tasks.model import (
    BLOCKED,
    DONE,
    DROPPED,
    FINAL,
    READY,
    NewTask,
    assign_labels,
    assignee_of,
    check_new_task,
    is_for_person,
    rank_of,
    required_evidence,
)
from landlane.tasks.records import (
    actor_of,
    find_task,
    find_task_by_key,
    id_sort_key,
    lock_task,
    read_task,
    task_patterns,
    with_dependencies,
)
from landlane.tasks.role_fit import with_default_kind
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.duplicates import SimilarTask
    from landlane.tasks.model import Task


# Two callers that add the same work at once must see each other. Ids are allocated one by one anyway.
ADD_LOCK = {"//task-add": True}
_MAX_SHARING = 20  # a word that more tasks share does not distinguish them


@value
class Added:
    """A task in the queue, and those that look like it."""

    task: Task
    similar: tuple[SimilarTask, ...]
    is_new: bool


@value
class TaskEdit:
    """New values for fields of a task; None leaves a field as it is."""

    title: str | None = None
    body: str | None = None
    priority: int | None = None
    paths: tuple[str, ...] | None = None
    assignee: str | None = None  # empty: anybody
    next_action: str | None = None


@value
class LooksAlike:
    """Nothing was added, because this work seems to be in the queue already."""

    similar: tuple[SimilarTask, ...]


def add_task(
    repo: Repository, author: Session | None, new: NewTask, *, force: bool = False
) -> Added | LooksAlike:
    """Add a task, or find it by its key, or return the tasks that look like the same work.

    Raises:
        Malformed: a field cannot be used, or a dependency is unknown.
    """
    checked = check_new_task(new)
    check_known(repo, checked.role)
    patterns = new_task_patterns(repo, checked)

    def work(tx: Transaction) -> Added | LooksAlike:
        outcome = add_task_in(tx, repo, author, checked, patterns, force=force)
        if isinstance(outcome, LooksAlike):  # the metrics count refused duplicates
            similar = [other.task for other in outcome.similar]
            tx.record("duplicate.refused", *actor_of(author), {"title": checked.title, "similar": similar})
        return outcome

    return repo.change(work, areas=ADD_LOCK)


def new_task_patterns(repo: Repository, new: NewTask) -> tuple[Pattern, ...]:
    """Return the patterns that a new task declares; two spellings of one pattern count once."""
    patterns = [repo.git.pattern(text) for text in new.paths]
    return tuple({pattern.alternatives: pattern for pattern in patterns}.values())


def add_task_in(
    tx: Transaction,
    repo: Repository,
    author: Session | None,
    new: NewTask,
    patterns: Sequence[Pattern],
    *,
    force: bool,
    position: int = 0,
    may_be_stopped: bool = False,
) -> Added | LooksAlike:
    """Add a checked task inside a transaction; `position` orders the tasks that are added together.

    With `may_be_stopped`, the caller handles a lineage that gets no further attempts.

    Raises:
        Malformed: a dependency or the parent is unknown, or was dropped.
        NotAllowed: the lineage of the parent was stopped, or has too many tasks; or a sandboxed caller gives
            a check.
        SettingsError: no evidence is defined for this kind of task.
    """
    new = with_default_kind(role_or_read_only(repo.settings, new.role), new)
    if new.check:
        repo.refuse_guest_command(f'the check of "{new.title[:80]}"')
    if new.kind:
        required_evidence(new.kind, repo.settings.tasks.evidence)
    known = find_task_by_key(tx, new.key) if new.key else None
    if known is not None:
        return Added(task=with_dependencies(tx, known), similar=(), is_new=False)
    parent = lock_task(tx, new.parent) if new.parent else None
    if parent is not None and not may_be_stopped:
        check_room(tx, repo, parent)
    lineage = parent.lineage if parent is not None else ""
    waits_for = _lock_unfinished(tx, new.after)
    signs = _signs(new, patterns)
    similar = _find_similar(tx, repo, new, patterns, signs, lineage)
    if similar and not force:
        return LooksAlike(similar=similar)
    task_id = _insert(tx, new, patterns, lineage, waits_for, position)
    for before in new.after:
        tx.run("task_after_add", task=task_id, after=before)
    _write_signs(tx, task_id, signs, similar)
    facts = {
        "task": task_id,
        **as_dict(new),  # enough to build the task again from the journal
        "paths": [[pattern.text, pattern.kind] for pattern in patterns],
        "lineage": lineage or task_id,
        "similar": [[other.task, other.reason] for other in similar],
    }
    del facts["parent"]
    del facts["gate"]
    tx.record("task.added", *actor_of(author), facts)
    if new.gate:
        installed().follow_ups.ask_person(
            tx, repo, lock_task(tx, task_id), new.gate, about={}, evidence={"title": new.title}
        )
    tx.has_freed = tx.has_freed or not waits_for
    task = read_task(tx, task_id)
    return Added(task=with_dependencies(tx, task) if new.after else task, similar=similar, is_new=True)


def edit_task(
    repo: Repository, author: Session | None, task_id: str, edit: TaskEdit, *, force: bool = False
) -> Added | LooksAlike:
    """Change the title, body, priority or paths of a task, or return the tasks that look like the same work.

    Raises:
        Malformed: there is no such task, or a field cannot be used.
        NotAllowed: it has ended, or its paths are to change and a session has taken it.
    """
    return repo.change(lambda tx: edit_task_in(tx, repo, author, task_id, edit, force=force), areas=ADD_LOCK)


def edit_task_in(
    tx: Transaction,
    repo: Repository,
    author: Session | None,
    task_id: str,
    edit: TaskEdit,
    *,
    force: bool = False,
) -> Added | LooksAlike:
    """Edit a task inside a transaction that has `ADD_LOCK`; raises as `edit_task` does."""
    patterns = [repo.git.pattern(text) for text in edit.paths] if edit.paths is not None else None
    task = lock_task(tx, task_id)
    _check_editable(task, edit)
    _check_may_assign(author, task, edit)
    changed = _edited(task, edit)
    declared = task_patterns(repo, task) if patterns is None else patterns
    signs = _signs(changed, declared)
    alike = _find_similar(tx, repo, changed, declared, signs, task.lineage)
    similar = tuple(other for other in alike if other.task != task_id)
    if similar and not force and (patterns is not None or changed.title != task.title):
        return LooksAlike(similar=similar)
    facts: dict[str, Any] = {"title": changed.title, "body": changed.body, "priority": changed.priority}
    labels = task.labels if edit.assignee is None else assign_labels(task.labels, edit.assignee)
    next_action = task.next_action if edit.next_action is None else edit.next_action
    facts |= {"labels": json.dumps(labels, ensure_ascii=False), "next_action": next_action}
    paths = [[pattern.text, pattern.kind] for pattern in declared]
    stored = json.dumps(paths, ensure_ascii=False)
    rank = task.rank + rank_of(0, changed.priority) - rank_of(0, task.priority)
    delete_signs(tx, repo, task)
    tx.run("task_edit", task=task_id, paths=stored, rank=rank, **facts)
    _write_signs(tx, task_id, signs, similar)
    edited = {"task": task_id, **facts, "labels": list(labels), "paths": paths}
    tx.record("task.edited", *actor_of(author), edited)
    tx.has_freed = True  # another agent may take it now
    return Added(task=with_dependencies(tx, lock_task(tx, task_id)), similar=similar, is_new=False)


def _check_editable(task: Task, edit: TaskEdit) -> None:
    if task.state in FINAL:
        raise NotAllowed(
            f"{task.id} {task.title} is {task.state} and cannot be changed",
            code="TASK_WRONG_STATE",
            hint=f"landlane task show {task.id}",
            state=task.state,
        )
    if edit.paths is not None and task.state not in (READY, BLOCKED):
        raise NotAllowed(
            f"{task.id} {task.title} is {task.state}; its paths can change only before it is taken",
            code="TASK_WRONG_STATE",
            hint=f"claim what else it needs: landlane claim {edit.paths[0]} --task {task.id}",
            state=task.state,
        )


def _check_may_assign(author: Session | None, task: Task, edit: TaskEdit) -> None:
    """Refuse an agent that would give a task for a person to somebody else, such as itself."""
    assignee = assignee_of(task.labels)
    is_moved = edit.assignee is not None and edit.assignee != assignee
    if is_moved and is_for_person(assignee) and author is not None and not author.is_person:
        raise NotAllowed(
            f"{task.id} is for a person ({assignee}), and {author.agent} is an agent",
            code="NOT_A_PERSON",
            hint="a person runs it in a terminal of their own, that no agent was started from",
        )


def _edited(task: Task, edit: TaskEdit) -> Task:
    """Return the task with its new fields, checked like those of a new task."""
    new = NewTask(
        title=task.title if edit.title is None else edit.title,
        body=task.body if edit.body is None else edit.body,
        priority=task.priority if edit.priority is None else edit.priority,
        paths=edit.paths or (),
    )
    checked = check_new_task(new)
    return replace(task, title=checked.title, body=checked.body, priority=checked.priority)


def _lock_unfinished(tx: Transaction, after: Sequence[str]) -> int:
    """Lock these dependencies, so that none ends meanwhile, and return how many are not done."""
    count = 0
    for before in sorted(after, key=id_sort_key):
        state = lock_task(tx, before).state
        if state == DROPPED:
            raise Malformed(
                f"{before} was dropped, so a task after it could never start",
                code="TASK_OVER",
                hint=f"leave out --after {before}, or choose another task: landlane task list",
            )
        count += state != DONE
    return count


def _signs(task: NewTask | Task, patterns: Sequence[Pattern]) -> tuple[str, ...]:
    keys = (alternative.key for pattern in patterns for alternative in pattern.alternatives)
    return signs_of(task.title, task.body, keys)


def _write_signs(tx: Transaction, task_id: str, signs: Sequence[str], similar: Sequence[SimilarTask]) -> None:
    tx.run("task_signs_add", task=task_id, signs=json.dumps(signs))
    for other in similar:
        tx.run("task_link_add", task=task_id, other=other.task, reason=other.reason)


def delete_signs(tx: Transaction, repo: Repository, task: Task) -> None:
    """Delete the signs of a task, so that nothing counts as its duplicate any more."""
    tx.run("task_signs_drop", task=task.id, signs=list(_signs(task, task_patterns(repo, task))))


def _find_similar(
    tx: Snapshot,
    repo: Repository,
    new: NewTask | Task,
    patterns: Sequence[Pattern],
    signs: Sequence[str],
    lineage: str,
) -> tuple[SimilarTask, ...]:
    similar: list[SimilarTask] = []
    for task in _find_candidates(tx, signs):
        candidate = DuplicateCandidate(
            task=task.id,
            title=task.title,
            body=task.body,
            state=task.state,
            shares_path=_shares_path(patterns, task_patterns(repo, task)),
            is_family=bool(lineage) and task.lineage == lineage,
        )
        found = compare_with(new.title, new.body, candidate)
        if found is not None:
            similar.append(found)
    return most_similar(similar)


def _find_candidates(tx: Snapshot, signs: Sequence[str]) -> list[Task]:
    """Return the unfinished tasks that share a sign; words that very many tasks share are ignored."""
    limit = _MAX_SHARING * len(signs)
    sharing: dict[str, list[str]] = {}
    rows = tx.all("tasks_with_signs", signs=list(signs), limit=limit)
    for row in rows:
        sharing.setdefault(row["sign"], []).append(row["task"])
    if len(rows) == limit:  # some signs are common, so the rest may be missing
        for sign in signs:
            newest = tx.all("tasks_with_sign", sign=sign, limit=_MAX_SHARING)
            sharing[sign] = [row["task"] for row in newest]
    ids: dict[str, None] = {}
    for sign, sharers in sharing.items():
        if len(sharers) < _MAX_SHARING or sign[0] in "=#/":
            ids.update(dict.fromkeys(sharers))
    tasks = [find_task(tx, task_id) for task_id in ids]
    return [task for task in tasks if task is not None and task.state not in FINAL]


def _shares_path(patterns: Sequence[Pattern], others: Sequence[Pattern]) -> bool:
    return any(
        alternatives_overlap(mine, theirs)
        for pattern in patterns
        for mine in pattern.alternatives
        for other in others
        for theirs in other.alternatives
    )


def _insert(
    tx: Transaction, new: NewTask, patterns: Sequence[Pattern], lineage: str, waits_for: int, position: int
) -> str:
    row = tx.one("task_next_id")
    assert row is not None
    task_id = f"T{row['last']}"
    declared = [[pattern.text, pattern.kind] for pattern in patterns]
    tx.run(
        "task_add",
        id=task_id,
        title=new.title,
        body=new.body,
        kind=new.kind,
        state=BLOCKED if waits_for else READY,
        role=new.role,
        priority=new.priority,
        rank=rank_of(tx.now + position, new.priority),
        paths=json.dumps(declared, ensure_ascii=False),
        max_attempts=new.max_attempts,
        lineage=lineage or task_id,
        check=new.check,
        output=new.output,
        key=new.key or None,
        labels=json.dumps(new.labels, ensure_ascii=False),
        why="",
        next_action=new.next_action,
        waits_for=waits_for,
    )
    return task_id
