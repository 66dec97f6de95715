"""The commands about tasks: task add, list, show …, next, done, fail."""

from __future__ import annotations

import os
import sys

from interlock.cli.numbers import read_number
from interlock.clock import parse_duration
from interlock.domain.tasks import BLOCKED, DROPPED, READY, STATES, NewTask
from interlock.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.cli.main import Desk
    from interlock.domain.tasks import Task

_MOST_TEXT = 64_000


def add(
    desk: Desk,
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
    next: str,
    force: bool,
) -> int:
    """Add a task, or show what looks like it."""
    from interlock.operations.tasks import LooksAlike, add_task
    from interlock.views.tasks import likeness_json, task_json

    new = NewTask(
        title=title,
        body=_read_text(body, "--body"),
        kind=kind,
        role=role,
        priority=_signed(priority, "--priority"),
        paths=path,
        after=after,
        max_attempts=read_number(max_attempts or "3", "--max-attempts") or 0,
        check=check,
        output=output,
        key=key,
        labels=label,
        parent=parent,
        next_action=next,
    )
    house = desk.house
    outcome = add_task(house.context, desk.session(), new, force=force)
    similar = [likeness_json(one) for one in outcome.similar]
    if isinstance(outcome, LooksAlike):
        first = outcome.similar[0]
        answer: dict[str, Any] = {
            "ok": False,
            "code": "TASK_SIMILAR",
            "message": f"{first.task} looks like the same work: {first.title}",
            "hint": f"work on {first.task}, or add it all the same with --force",
            "similar": similar,
        }
        desk.terminal.answer(answer, "")
        if not desk.terminal.is_json:
            desk.terminal.complain(answer["message"], answer["hint"], answer["code"])
            for one in outcome.similar:
                desk.terminal.note(f"  {one.task} ({one.state}, {one.score:.2f}): {one.reason}")
        return 3
    word = "added" if outcome.is_new else "was there already:"
    task = task_json(outcome.task, house.store)
    text = f"{word} {task['id']} {task['title']} ({task['state']}{', ' + task['why'] if task['why'] else ''})"
    desk.terminal.answer({"ok": True, "task": task, "similar": similar, "new": outcome.is_new}, text)
    return 0


def _read_text(name: str, what: str) -> str:
    """The text of a file, or of standard input for `-`."""
    if not name:
        return ""
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(_MOST_TEXT * 4 + 1)
        else:
            with open(name, "rb") as file:
                raw = file.read(_MOST_TEXT * 4 + 1)
        return raw.decode("utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise Malformed(
            f"{what} {name[:80]!r} cannot be read as text: {getattr(error, 'strerror', None) or 'not UTF-8'}",
            code="UNREADABLE_FILE",
            hint="give the path of a text file, or - for standard input",
        ) from error


def _signed(text: str, what: str) -> int:
    if text[:1] == "-":
        return -(read_number(text[1:], what) or 0)
    return read_number(text, what) or 0


def list_all(desk: Desk, state: tuple[str, ...], label: str, markdown: bool) -> int:
    """List tasks as a table, as JSON, or as a checklist."""
    from interlock.domain.checklists import as_checklist
    from interlock.operations.tasks import list_tasks
    from interlock.views.tasks import task_json, task_paths

    for one in state:
        if one not in STATES:
            raise Malformed(
                f"{one[:40]!r} is no state", code="UNKNOWN_STATE", hint=f"one of {', '.join(STATES)}"
            )
    house = desk.house
    desk.show_life()
    found = [task for task in list_tasks(house.context, state) if not label or label in task.labels]
    if markdown and not desk.terminal.is_json:
        desk.terminal.answer({}, as_checklist((task, task_paths(task)) for task in found).rstrip("\n"))
        return 0
    rows = [task_json(task, house.store) for task in found]
    columns = ["id", "state", "owner", "priority", "attempt", "title", "why"]
    cells = [[str(row[column] if row[column] is not None else "") for column in columns] for row in rows]
    title = f"{len(rows)} task{'' if len(rows) == 1 else 's'}"
    desk.terminal.answer({"ok": True, "tasks": rows}, desk.terminal.table(title, columns, cells))
    return 0


def import_list(desk: Desk, file: str, force: bool) -> int:
    """Read a checklist in as tasks."""
    from interlock.operations.checklists import import_checklist
    from interlock.views.tasks import likeness_json, task_json

    house = desk.house
    outcome = import_checklist(house.context, desk.session(), _read_text(file, "the checklist"), force=force)
    added = [task_json(task, house.store) for task in outcome.added]
    skipped: list[dict[str, Any]] = [
        {"title": title, "similar": [likeness_json(one) for one in similar]}
        for title, similar in outcome.skipped
    ]
    lines = [f"added {task['id']} {task['title']}" for task in added]
    lines += [
        f"skipped {one['title']}: looks like {one['similar'][0]['id']} (--force adds it)" for one in skipped
    ]
    answer = {"ok": True, "tasks": added, "known": outcome.known, "skipped": skipped}
    desk.terminal.answer(answer, "\n".join(lines) or "nothing new")
    return 0


def show(desk: Desk, task: str) -> int:
    """Show one task whole."""
    from interlock.operations.tasks import get_task, links_of, task_history
    from interlock.views.journal import entry_json
    from interlock.views.tasks import task_json

    house = desk.house
    desk.show_life()
    found = get_task(house.context, task)
    row = task_json(found, house.store)
    links = [{"id": other, "reason": reason} for other, reason in links_of(house.context, task)]
    history = [entry_json(entry) for entry in task_history(house.context, task)]
    feedback = [
        {"at": entry["at"], "kind": entry["kind"], "agent": entry["agent"], "why": entry["data"]["why"]}
        for entry in history
        if entry["data"].get("why")
    ]
    lines = [f"{key:<13} {row[key]}" for key in row if row[key] not in (None, [], "")]
    lines += [f"looks like    {one['id']}: {one['reason']}" for one in links]
    lines += [f"feedback      {one['at']} {one['agent']}: {one['why']}" for one in feedback]
    answer = {"ok": True, "task": row, "similar": links, "feedback": feedback}
    desk.terminal.answer(answer, "\n".join(lines))
    return 0


def log(desk: Desk, task: str) -> int:
    """Show what happened to a task."""
    from interlock.operations.tasks import task_history
    from interlock.views.journal import entry_json

    desk.show_life()
    entries = [entry_json(entry) for entry in task_history(desk.house.context, task)]
    lines: list[str] = []
    for entry in entries:
        facts = entry["data"]
        detail = (
            facts.get("why")
            or facts.get("title")
            or (f"attempt {facts['attempt']}" if "attempt" in facts else "")
        )
        lines.append(f"{entry['at']}  {entry['kind']:<15} {entry['agent']:<12} {detail}")
    desk.terminal.answer({"ok": True, "entries": entries}, "\n".join(lines))
    return 0


def after(desk: Desk, task: str, before: str) -> int:
    """Let a task wait for another."""
    from interlock.operations.tasks import add_dependency

    return _answer_task(desk, add_dependency(desk.house.context, desk.session(), task, before))


def block(desk: Desk, task: str, why: str) -> int:
    """Keep a task from being offered."""
    return _change(desk, task, "task.blocked", BLOCKED, _reason(why))


def unblock(desk: Desk, task: str) -> int:
    """Offer a blocked task again."""
    return _change(desk, task, "task.unblocked", READY, "")


def retry(desk: Desk, task: str) -> int:
    """Give a task another round of attempts."""
    return _change(desk, task, "task.retried", READY, "")


def drop(desk: Desk, task: str, why: str) -> int:
    """Give a task up for good."""
    return _change(desk, task, "task.dropped", DROPPED, _reason(why))


def _reason(why: str) -> str:
    from interlock.domain.agents import check_text

    if not why.strip():
        raise Malformed("say why", code="NO_REASON", hint="--why 'a sentence for whoever comes next'")
    return check_text(why, "reason", 4000)


def _change(desk: Desk, task: str, kind: str, then: str, why: str) -> int:
    from interlock.operations.tasks import change_state

    return _answer_task(desk, change_state(desk.house.context, desk.session(), task, kind, then, why))


def _answer_task(desk: Desk, task: Task, **more: Any) -> int:
    from interlock.views.tasks import task_json

    row = task_json(task, desk.house.store)
    why = f", {row['why']}" if row["why"] else ""
    desk.terminal.answer(
        {"ok": True, "task": row, **more}, f"{row['id']} {row['title']}: {row['state']}{why}"
    )
    return 0


def next_one(desk: Desk, role: str, wait: str) -> int:
    """Take the best task, waiting for one if asked."""
    from interlock.operations.picking import wait_for_task
    from interlock.operations.tasks import Picked
    from interlock.views.claims import claim_json
    from interlock.views.tasks import task_json

    house = desk.house
    wait_ms = parse_duration(wait, what="--wait")
    outcome = wait_for_task(house.context, desk.session(), role, wait_ms)
    if isinstance(outcome, Picked):
        claims = [claim_json(claim, house.store) for claim in outcome.claims]
        task = task_json(outcome.task, house.store)
        lines = [
            f"{task['id']} {task['title']} is yours (attempt {task['attempt']}, branch {task['branch']})"
        ]
        lines += [f"  claimed {claim['pattern']} until {claim['until']}" for claim in claims]
        lines += [f"  before: {task['why']}"] if task["why"] else []
        lines += [f"  next: {task['next_action']}"] if task["next_action"] else []
        desk.terminal.answer({"ok": True, "task": task, "claims": claims}, "\n".join(lines))
        return 0
    held = f"; {', '.join(outcome.held_up)} wait for paths that others hold" if outcome.held_up else ""
    answer: dict[str, Any] = {
        "ok": False,
        "code": "NO_TASK",
        "message": f"no task is ready{held}",
        "hint": "wait for one with --wait 10m, or add one: interlock task add 'what is to be done'",
        "counts": outcome.counts,
        "held_up": list(outcome.held_up),
        "task": None,
        "claims": [],
    }
    desk.terminal.answer(answer, "")
    if not desk.terminal.is_json:
        desk.terminal.complain(answer["message"], answer["hint"], answer["code"])
    return 5


def done(desk: Desk, task: str, result: str) -> int:
    """Report a task as done and show how far it is believed."""
    from interlock.operations.evidence import conclude
    from interlock.views.tasks import proof_json, task_json

    house = desk.house
    concluded = conclude(
        house.context,
        house.witness(),
        desk.session(),
        task,
        result=_read_result(result),
        on_step=lambda name: desk.terminal.note(f"looking at: {name}"),
    )
    row = task_json(concluded.task, house.store)
    proofs = [proof_json(proof) for proof in concluded.proofs]
    lines = [f"{row['id']} {row['title']}: {row['state']}"]
    lines += [f"  {'seen   ' if one['seen'] else 'MISSING'} {one['name']}: {one['found']}" for one in proofs]
    lines += [f"  hint: {one['hint']}" for one in proofs if one["hint"]]
    desk.terminal.answer({"ok": True, "task": row, "evidence": proofs}, "\n".join(lines))
    return 0


def _read_result(name: str) -> str:
    if name and name != "-" and not os.path.exists(name):
        return name  # a short result may be given as it is
    return _read_text(name, "--result")[:_MOST_TEXT]


def fail(desk: Desk, task: str, why: str, final: bool) -> int:
    """Give a task back with what was learned."""
    from interlock.operations.tasks import fail_task

    return _answer_task(
        desk, fail_task(desk.house.context, desk.session(), task, _reason(why), is_final=final)
    )
