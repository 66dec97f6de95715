"""The commands for tasks: add, list, import, edit, after, block, unblock, retry, drop."""

from __future__ import annotations

import os

from landlane.cli.arguments import read_file, read_number
from landlane.cli.person import person_at
from landlane.cli.table import empty_text
from landlane.cli.task_text import answer_task
from landlane.cli.terminal import in_one_line
from landlane.error_json import failure_json
from landlane.errors import LandlaneError, Malformed
from landlane.inbox.decisions import note_answered
from landlane.reviews.model import review_labels
from landlane.tasks.add import LooksAlike, TaskEdit, add_task, edit_task
from landlane.tasks.change import block_task, drop_task, retry_task, unblock_task
from landlane.tasks.checklist import as_checklist
from landlane.tasks.finish import add_dependency
from landlane.tasks.import_checklist import import_checklist
from landlane.tasks.lineage import lineage_of
from landlane.tasks.model import (
    ANYBODY,
    BLOCKED,
    DEAD,
    FAILED,
    FINAL,
    FIXES_TARGET,
    LONGEST_BODY,
    WAITING,
    NewTask,
    TaskState,
    assign_labels,
    check_assignee,
    check_reason,
)
from landlane.tasks.records import get_task, list_tasks, task_paths
from landlane.tasks.sync_checklist import Prefer, Synced
from landlane.tasks.sync_file import sync_file
from landlane.tasks.text import NEEDS_YOU, count_text, read_state, state_text, tries_text, waits_text
from landlane.tasks.to_json import (
    similar_task_json,
    task_json,
    tasks_json,
)
from landlane.tasks.waits import find_waits
from landlane.text import nearest_word
from landlane.units import count, join_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.tasks.duplicates import SimilarTask
    from landlane.tasks.model import Task, Wait


_LONGEST_LIST = 8_000_000


def add(
    call: CommandCall,
    title: str,
    body: str,
    path: tuple[str, ...],
    after: tuple[str, ...],
    role: str,
    kind: str,
    output: str,
    priority: str,
    max_attempts: str,
    check: str,
    key: str,
    label: tuple[str, ...],
    parent: str,
    review: str,
    reviewer: tuple[str, ...],
    decider: str,
    next: str,
    assign: str,
    gate: str,
    fixes_target: bool,
    force: bool,
) -> int:
    """Add a task, or show similar tasks."""
    labels = assign_labels((*label, *((FIXES_TARGET,) if fixes_target else ())), read_assignee(assign))
    new = NewTask(
        title=title,
        body=read_file(body, "--body", LONGEST_BODY),
        kind=kind,
        role=role,
        priority=_read_priority(priority) or 0,
        paths=path,
        after=after,
        max_attempts=read_number(max_attempts or "3", "--max-attempts") or 0,
        check=check,
        output=output,
        key=key,
        labels=(*labels, *review_labels(read_number(review, "--review") or 0, reviewer, decider)),
        parent=parent,
        next_action=next,
        gate=gate,
    )
    repo = call.repo
    outcome = add_task(repo, call.session(), new, force=force)
    if isinstance(outcome, LooksAlike):
        return _refuse_similar(call, outcome.similar)
    (task,) = tasks_json(repo, [outcome.task])
    similar = [similar_task_json(one) for one in outcome.similar]
    word = "added" if outcome.is_new else "known already:"
    text = f"✓ {word} {task['id']} {task['title']} ({_new_state(outcome.task)})"
    answer = {"ok": True, "task": task, "similar": similar, "new": outcome.is_new}
    return call.terminal.answer(answer, in_one_line(text), quiet=task["id"])


def read_assignee(text: str) -> str:
    """Return the assignee that a person names; empty for `anybody`."""
    return "" if text in ("", ANYBODY) else check_assignee(text)


def _new_state(task: Task) -> str:
    if task.state == BLOCKED and task.open_after:
        return f"blocked by {join_words(task.open_after)}"
    return state_text(task.state)


def _read_priority(text: str) -> int | None:
    sign = -1 if text.startswith("-") else 1
    number = read_number(text.removeprefix("-"), "--priority")
    return None if number is None else sign * number


def edit(
    call: CommandCall,
    task: str,
    title: str,
    body: str,
    path: tuple[str, ...],
    priority: str,
    assign: str,
    next: str,
    force: bool,
) -> int:
    """Change a task, or show similar tasks."""
    if not (title or body or path or priority or assign or next):
        raise Malformed(
            "task edit needs something to change",
            code="BAD_CALL",
            hint=call.command_text("task", "edit", task, "--title", "New title"),
        )
    edit = TaskEdit(
        title=title or None,
        body=read_file(body, "--body", LONGEST_BODY) if body else None,
        priority=_read_priority(priority),
        paths=path or None,
        assignee=read_assignee(assign) if assign else None,
        next_action=next or None,
    )
    outcome = edit_task(call.repo, call.session(), task, edit, force=force)
    if isinstance(outcome, LooksAlike):
        return _refuse_similar(call, outcome.similar)
    fields = {"title": title, "description": body, "paths": path, "priority": priority}
    fields |= {"assignee": assign, "next step": next}
    changed = join_words([name for name, given in fields.items() if given])
    return answer_task(call, outcome.task, f"changed {changed} of {outcome.task.id} {outcome.task.title}")


def _refuse_similar(call: CommandCall, similar: tuple[SimilarTask, ...]) -> int:
    """Refuse a task because others look like the same work; return the exit code."""
    first = similar[0]
    forced = call.typed.with_words("--force") if call.typed is not None else "--force"
    answer = failure_json(
        "TASK_SIMILAR",
        f"this looks like {first.task} {first.title} ({state_text(first.state)}): {first.reason}",
        f"if it is different work: {forced}",
        similar=[similar_task_json(one) for one in similar],
    )
    others = [f"  also {one.task} {one.title} ({state_text(one.state)}): {one.reason}" for one in similar[1:]]
    return call.terminal.refuse(answer, 3, map(in_one_line, others))


def list_all(call: CommandCall, all: bool, state: tuple[str, ...], label: str, markdown: bool) -> int:
    """List tasks as a table, as JSON, or as a checklist."""
    states = _read_states(state)
    repo = call.repo
    labelled = [task for task in list_tasks(repo) if not label or label in task.labels]
    shown = states or (frozenset(TaskState) if all or markdown else frozenset(TaskState) - FINAL)
    tasks = [task for task in labelled if task.state in shown]
    if markdown and not call.terminal.is_json:
        return call.terminal.answer({}, as_checklist((task, task_paths(task)) for task in tasks).rstrip("\n"))
    waits = find_waits(repo, tasks)
    items = [task_json(task, repo.store, waits.get(task.id, ())) for task in tasks]
    text = _list_text(call, tasks, waits, is_person=_is_person(call))
    if not (states or all or label):
        text = _add_counts(text, labelled, tasks)
    quiet = "\n".join(task.id for task in tasks)
    return call.terminal.answer({"ok": True, "tasks": items}, text, quiet=quiet)


def _is_person(call: CommandCall) -> bool:
    """Return whether a person reads the answer; renews the caller's session, if it has one."""
    caller = call.caller()
    is_agent = bool(caller.name or caller.session_text or caller.agent_variable)
    try:
        session = call.known_session()
    except LandlaneError:
        return not is_agent
    return not is_agent if session is None else session.is_person


def _read_states(names: tuple[str, ...]) -> frozenset[TaskState]:
    states: set[TaskState] = set()
    for name in names:
        state = read_state(name)
        if state is None:
            known = [*(one for one in TaskState if one != WAITING), NEEDS_YOU]
            meant = nearest_word(name, known)
            all_states = f"use {', '.join(known[:-1])} or {known[-1]}"
            hint = f"{'' if meant else f'{all_states}: '}landlane task list --state {meant or known[0]}"
            raise Malformed(f"unknown task state {name[:40]}", code="UNKNOWN_STATE", hint=hint)
        states.add(state)
    return frozenset(states)


def _list_text(
    call: CommandCall, tasks: list[Task], waits: Mapping[str, Sequence[Wait]], *, is_person: bool
) -> str:
    now = call.wall_now()
    rows = [
        (
            task.id,
            state_text(task.state, is_person=is_person),
            task.owner,
            tries_text(task),
            task.title,
            waits_text(waits.get(task.id, ()), now, is_person=is_person),
        )
        for task in tasks
    ]
    columns = ("task", "state", "owner", "try", "title", "waiting for")
    return call.terminal.table("", columns, rows, cut="TITLE") or empty_text("task")


def _add_counts(text: str, everything: list[Task], shown: list[Task]) -> str:
    """Return the list of open tasks with a line that counts all tasks."""
    if not everything:
        return text
    counts = count_text(everything)
    if len(everything) == len(shown):
        return f"{text}\n{counts}"
    more = f"{counts} (all: landlane task list --all)"
    return f"{text}\n{more}" if shown else f"No open tasks: {more}"


def import_list(call: CommandCall, file: str, force: bool) -> int:
    """Import a checklist as tasks."""
    repo = call.repo
    text = read_file(file, "the checklist", _LONGEST_LIST)
    outcome = import_checklist(repo, call.session(), text, force=force)
    added = [task_json(task, repo.store) for task in outcome.added]
    skipped: list[dict[str, Any]] = [
        {"title": title, "similar": [similar_task_json(one) for one in similar]}
        for title, similar in outcome.skipped
    ]
    lines = [in_one_line(f"✓ added {task['id']} {task['title']}") for task in added]
    lines += [
        in_one_line(f"! skipped {one['title']}: it looks like {one['similar'][0]['id']}") for one in skipped
    ]
    forced = call.typed.with_words("--force") if call.typed is not None else ""
    lines += [f"next: add what was skipped, too: {forced}"] if skipped else []
    lines += [f"! line {line}: unknown word {word}; it stays in the title" for line, word in outcome.unknown]
    notes = [{"line": line, "text": f"unknown word {word}"} for line, word in outcome.unknown]
    answer = {"ok": True, "tasks": added, "known": outcome.known, "skipped": skipped, "notes": notes}
    known = f"No new tasks; {count(outcome.known, 'task')} known already."
    return call.terminal.answer(answer, "\n".join(lines) or known)


def sync(call: CommandCall, file: str, prefer: str) -> int:
    """Bring a checklist file and the queue together."""
    repo, path = call.repo, os.path.join(call.cwd, file)
    session = call.session()
    synced = sync_file(repo, session, path, Prefer(prefer or ""))
    lines = [f"✓ synced {file}: {_sync_text(synced)}"]
    lines += [f"! {f'line {note.line}: ' if note.line else ''}{note.text}" for note in synced.notes]
    if synced.notes and not prefer:
        again = call.command_text("task", "sync", file, "--prefer", "queue")
        lines.append(f"next: take the queue's side: {again}")
    answer: dict[str, Any] = {
        "ok": True,
        "added": [task_json(task, repo.store) for task in synced.added],
        "listed": list(synced.listed),
        "ticked": list(synced.ticked),
        "edited": list(synced.edited),
        "notes": [{"line": note.line or None, "text": note.text} for note in synced.notes],
    }
    return call.terminal.answer(answer, "\n".join(map(in_one_line, lines)))


def _sync_text(synced: Synced) -> str:
    added = f"{count(len(synced.added), 'task')} added ({', '.join(task.id for task in synced.added)})"
    parts = [added] if synced.added else []
    parts += [f"{count(len(synced.listed), 'task')} listed"] if synced.listed else []
    parts += [f"{count(len(synced.ticked), 'line')} ticked"] if synced.ticked else []
    parts += [f"{count(len(synced.edited), 'task')} changed"] if synced.edited else []
    return ", ".join(parts) or "nothing to change"


def after(call: CommandCall, task: str, before: str) -> int:
    """Make a task wait for another."""
    changed = add_dependency(call.repo, call.session(), task, before)
    return answer_task(call, changed, f"{changed.id} {changed.title} is {_new_state(changed)}")


def block(call: CommandCall, task: str, why: str) -> int:
    """Block a task."""
    blocked = block_task(call.repo, call.session(), task, why)
    return answer_task(call, blocked, f'blocked {blocked.id} {blocked.title}: "{why}"')


def unblock(call: CommandCall, task: str) -> int:
    """Unblock a task."""
    unblocked = unblock_task(call.repo, call.session(), task)
    return answer_task(call, unblocked, f"{unblocked.id} {unblocked.title} is {_new_state(unblocked)}")


def drop(call: CommandCall, task: str, why: str) -> int:
    """Drop a task permanently."""
    session, was = call.session(), get_task(call.repo, task)
    dropped = drop_task(call.repo, session, task, why)
    if was.state == DEAD:
        note_answered(call.repo, session, dropped.id)
    return answer_task(call, dropped, f"dropped {dropped.id} {dropped.title}")


def retry(call: CommandCall, task: str, why: str) -> int:
    """Allow another round of attempts at a task; a stopped task only by a person at a terminal."""
    repo = call.repo
    stopped = get_task(repo, task)
    lineage = lineage_of(repo, stopped)
    session = call.session()
    if stopped.id in lineage.parked or (lineage.stopped and stopped.state in (DEAD, FAILED)):
        session = person_at(call)
    ready = retry_task(repo, session, task, check_reason(why) if why.strip() else "")
    if stopped.state == DEAD:
        note_answered(repo, session, ready.id)
    allowed = count(ready.max_attempts, "attempt")
    return answer_task(call, ready, f"{ready.id} {ready.title} is {_new_state(ready)} again, with {allowed}")
