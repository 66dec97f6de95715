"""The commands about tasks: task add, list, show …, next, done, fail."""

from __future__ import annotations

import os

from landlane.cli.parse_number import read_number
from landlane.cli.read_file import read_file
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration, rfc3339
from landlane.errors import Malformed
from landlane.tasks.git_evidence import GitWitness
from landlane.tasks.model import LONGEST_BODY, STATES, NewTask, branch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.tasks.duplicates import Likeness
    from landlane.tasks.model import Lesson, Task
    from landlane.tasks.pick import NothingReady, Picked


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
    force: bool,
) -> int:
    """Add a task, or show what looks like it."""
    from landlane.reviews.model import check_step
    from landlane.tasks.add import LooksAlike, add_task
    from landlane.tasks.to_json import likeness_json, task_json

    new = NewTask(
        title=title,
        body=read_file(body, "--body", LONGEST_BODY),
        kind=kind,
        role=role,
        priority=_signed(priority, "--priority"),
        paths=path,
        after=after,
        max_attempts=read_number(max_attempts or "3", "--max-attempts") or 0,
        check=check,
        output=output,
        key=key,
        labels=(*label, *check_step(read_number(review, "--review") or 0, reviewer, decider)),
        parent=parent,
        next_action=next,
    )
    repo = call.repo
    outcome = add_task(repo, call.session(), new, force=force)
    if isinstance(outcome, LooksAlike):
        return _point_out(call, outcome.similar)
    word = "added" if outcome.is_new else "was there already:"
    task = task_json(outcome.task, repo.store)
    why = f", {task['why']}" if task["why"] else ""
    similar = [likeness_json(one) for one in outcome.similar]
    answer = {"ok": True, "task": task, "similar": similar, "new": outcome.is_new}
    call.terminal.answer(answer, f"{word} {task['id']} {task['title']} ({task['state']}{why})")
    return 0


def _point_out(call: CommandCall, similar: tuple[Likeness, ...]) -> int:
    from landlane.tasks.to_json import likeness_json

    first = similar[0]
    answer: dict[str, Any] = {
        "ok": False,
        "code": "TASK_SIMILAR",
        "message": f"{first.task} looks like the same work: {first.title}",
        "hint": f"work on {first.task}, or add it all the same with --force",
        "similar": [likeness_json(one) for one in similar],
    }
    _refuse(call, answer)
    for one in similar:
        call.terminal.note(f"  {one.task} ({one.state}, {one.score:.2f}): {in_one_line(one.reason)}")
    return 3


def _refuse(call: CommandCall, answer: dict[str, Any]) -> None:
    call.terminal.answer(answer, "")
    if not call.terminal.is_json:
        call.terminal.complain(answer["message"], answer["hint"], answer["code"])


def _signed(text: str, what: str) -> int:
    if text[:1] == "-":
        return -(read_number(text[1:], what) or 0)
    return read_number(text, what) or 0


def list_all(call: CommandCall, state: tuple[str, ...], label: str, markdown: bool) -> int:
    """List tasks as a table, as JSON, or as a checklist."""
    from landlane.tasks.checklist import as_checklist
    from landlane.tasks.read import list_tasks
    from landlane.tasks.to_json import task_json, task_paths

    for one in state:
        if one not in STATES:
            raise Malformed(
                f"{one[:40]!r} is no state", code="UNKNOWN_STATE", hint=f"one of {', '.join(STATES)}"
            )
    repo = call.repo
    call.show_life()
    found = [task for task in list_tasks(repo, state) if not label or label in task.labels]
    if markdown and not call.terminal.is_json:
        call.terminal.answer({}, as_checklist((task, task_paths(task)) for task in found).rstrip("\n"))
        return 0
    items = [task_json(task, repo.store) for task in found]
    columns = ["id", "state", "owner", "priority", "attempt", "title", "why"]
    cells = [[str(item[column] if item[column] is not None else "") for column in columns] for item in items]
    title = f"{len(items)} task{'' if len(items) == 1 else 's'}"
    call.terminal.answer({"ok": True, "tasks": items}, call.terminal.table(title, columns, cells))
    return 0


def import_list(call: CommandCall, file: str, force: bool) -> int:
    """Read a checklist in as tasks."""
    from landlane.tasks.import_checklist import import_checklist
    from landlane.tasks.to_json import likeness_json, task_json

    repo = call.repo
    text = read_file(file, "the checklist", _LONGEST_LIST)
    outcome = import_checklist(repo, call.session(), text, force=force)
    added = [task_json(task, repo.store) for task in outcome.added]
    skipped: list[dict[str, Any]] = [
        {"title": title, "similar": [likeness_json(one) for one in similar]}
        for title, similar in outcome.skipped
    ]
    lines = [f"added {task['id']} {task['title']}" for task in added]
    lines += [
        f"skipped {one['title']}: looks like {one['similar'][0]['id']} (--force adds it)" for one in skipped
    ]
    answer = {"ok": True, "tasks": added, "known": outcome.known, "skipped": skipped}
    call.terminal.answer(answer, "\n".join(lines) or "nothing new")
    return 0


def show(call: CommandCall, task: str) -> int:
    """Show one task whole."""
    from landlane.tasks.on_change import settle_due
    from landlane.tasks.read import get_task, lessons_of, links_of
    from landlane.tasks.to_json import task_json

    repo = call.repo
    call.show_life()
    settle_due(repo)
    found = get_task(repo, task)
    item = task_json(found, repo.store)
    links = [{"id": other, "reason": reason} for other, reason in links_of(repo, task)]
    before = _before(call, found, lessons_of(repo, task), with_own=True)
    lines = [f"{key:<13} {in_one_line(str(item[key]))}" for key in item if item[key] not in (None, [], "")]
    lines += [f"looks like    {one['id']}: {in_one_line(one['reason'])}" for one in links]
    retries, budget, others = budget_of(call, found)
    lines += [in_one_line(line) for line in budget]
    lines += _told(before, "feedback      ", "work there    ")
    lines += _told({"feedback": others, "branches": []}, "of its family ", "")
    answer = {"ok": True, "task": item, "similar": links, **before, "retries": retries}
    call.terminal.answer({**answer, "family_feedback": others}, "\n".join(lines))
    return 0


def _before(
    call: CommandCall, task: Task, lessons: tuple[Lesson, ...], *, with_own: bool = False
) -> dict[str, Any]:
    """What earlier attempts left: what their owners said, and the branches that are there."""
    from landlane.tasks.to_json import lesson_json

    attempts = range(1, task.attempt + with_own)
    branches = GitWitness(call.repo).branches_among([branch_of(task.id, number) for number in attempts])
    return {"feedback": [lesson_json(one) for one in lessons], "branches": branches}


def _told(before: dict[str, Any], said: str, there: str) -> list[str]:
    lines = [
        f"{said}attempt {one['attempt']}, {one['agent'] or 'landlane'}: {in_one_line(one['why'])}"
        for one in before["feedback"]
    ]
    return lines + [f"{there}{branch}" for branch in before["branches"]]


def after(call: CommandCall, task: str, before: str) -> int:
    """Let a task wait for another."""
    from landlane.tasks.dependencies import add_dependency

    return answer_task(call, add_dependency(call.repo, call.session(), task, before))


def plan(call: CommandCall, task: str, paths: tuple[str, ...], force: bool) -> int:
    """Say what a task will change, or show what looks like it."""
    from landlane.tasks.add import LooksAlike, declare_paths

    repo = call.repo
    patterns = [repo.git.pattern(text) for text in paths]
    outcome = declare_paths(repo, call.session(), task, patterns, force=force)
    if isinstance(outcome, LooksAlike):
        return _point_out(call, outcome.similar)
    return answer_task(call, outcome.task)


def block(call: CommandCall, task: str, why: str) -> int:
    """Keep a task from being offered."""
    from landlane.tasks.change import block_task

    return answer_task(call, block_task(call.repo, call.session(), task, why))


def unblock(call: CommandCall, task: str) -> int:
    """Offer a blocked task again."""
    from landlane.tasks.change import unblock_task

    return answer_task(call, unblock_task(call.repo, call.session(), task))


def drop(call: CommandCall, task: str, why: str) -> int:
    """Give a task up for good."""
    from landlane.tasks.change import drop_task

    return answer_task(call, drop_task(call.repo, call.session(), task, why))


def answer_task(call: CommandCall, task: Task) -> int:
    """Answer with a task as it is now."""
    from landlane.tasks.to_json import task_json

    item = task_json(task, call.repo.store)
    why = f", {item['why']}" if item["why"] else ""
    text = in_one_line(f"{item['id']} {item['title']}: {item['state']}{why}")
    call.terminal.answer({"ok": True, "task": item}, text)
    return 0


def next_one(call: CommandCall, role: str, wait: str, resume: bool) -> int:
    """Take the best task, waiting for one if asked; or go on with the one in hand."""
    from landlane.tasks.pick import Picked, resume_task
    from landlane.tasks.wait_for_task import wait_for_task

    wait_ms = parse_duration(wait, what="--wait")
    repo = call.repo
    session = call.session()
    in_hand = resume_task(repo, session) if resume else None
    if in_hand is not None:
        return _hand_over(call, in_hand)
    if wait_ms:
        from landlane.cli.command import heed_signals

        heed_signals()
    outcome = wait_for_task(repo, session, role, wait_ms, GitWitness(repo).start)
    if isinstance(outcome, Picked) and outcome.task.kind == "review":
        from landlane.landing.submit import bring_reviewed

        missing = bring_reviewed(repo, outcome.task)
        if missing:
            call.terminal.note(missing)
    return _hand_over(call, outcome) if isinstance(outcome, Picked) else _nothing_ready(call, outcome)


def _hand_over(call: CommandCall, picked: Picked) -> int:
    from landlane.claims.to_json import claim_json
    from landlane.tasks.to_json import task_json

    store = call.repo.store
    task = task_json(picked.task, store)
    claims = [claim_json(claim, store) for claim in picked.claims]
    before = _before(call, picked.task, picked.lessons)
    lines = [f"{task['id']} {task['title']} is yours (attempt {task['attempt']}, branch {task['branch']})"]
    lines += [f"  claimed {in_one_line(claim['pattern'])} until {claim['until']}" for claim in claims]
    answer = {"ok": True, "task": task, "claims": claims, "resumed": picked.is_resumed, **before}
    handed: dict[str, Any] = {"handoff": None, "context": "", "lines": []}
    if picked.task.attempt > 1 or picked.lessons:  # somebody had it before
        from landlane.cli.handoff import what_was_left

        handed = what_was_left(call, picked.task)
    if handed["handoff"] is None:
        lines += _told(before, "  before: ", "  work there: ")
    lines += [f"  next: {in_one_line(task['next_action'])}"] if task["next_action"] else []
    lines += handed.pop("lines")
    answer |= handed
    if picked.claims and not picked.is_resumed:
        from landlane.cli.claims import save_former_work

        answer |= save_former_work(call, call.session(), picked.claims)
    call.terminal.answer(answer, "\n".join(lines))
    return 0


def _nothing_ready(call: CommandCall, nothing: NothingReady) -> int:
    names = ", ".join(nothing.held_up)
    hint = "wait for one with --wait 10m, or add one: landlane task add 'what is to be done'"
    if nothing.in_hand:
        hint = f"{', '.join(nothing.in_hand)} is yours already: go on with it (landlane next --resume)"
    held_back = [{"task": task, "until": rfc3339(until)} for task, until in nothing.held_back]
    message = "no task is ready" + (f"; {names} wait for paths that others hold" if names else "")
    message += "".join(f"; {one['task']} failed and is held back until {one['until']}" for one in held_back)
    message += "".join(f"; {task} is over its budget: {why}" for task, why in nothing.over_budget)
    answer: dict[str, Any] = {
        "ok": False,
        "code": "NO_TASK",
        "message": message,
        "hint": hint,
        "held_back": held_back,
        "over_budget": [{"task": task, "why": why} for task, why in nothing.over_budget],
        "counts": nothing.counts,
        "held_up": list(nothing.held_up),
        "in_hand": list(nothing.in_hand),
        "task": None,
        "claims": [],
    }
    _refuse(call, answer)
    return 5


def done(call: CommandCall, task: str, result: str) -> int:
    """Report a task as done and show how far it is believed."""
    from landlane.tasks.evidence import conclude
    from landlane.tasks.to_json import proof_json, task_json

    repo = call.repo
    if repo.checkout.common_dir:
        from landlane.landing.submit import bring_task_home

        bring_task_home(repo, task)
    concluded = conclude(
        repo,
        GitWitness(repo),
        call.session(),
        task,
        result=_read_result(result),
        on_step=lambda name: call.terminal.note(f"looking at: {name}"),
    )
    item = task_json(concluded.task, repo.store)
    proofs = [proof_json(proof) for proof in concluded.proofs]
    lines = [f"{item['id']} {item['title']}: {item['state']}"]
    lines += [
        in_one_line(f"  {'seen   ' if one['seen'] else 'MISSING'} {one['name']}: {one['found']}")
        for one in proofs
    ]
    lines += [f"  hint: {in_one_line(one['hint'])}" for one in proofs if one["hint"]]
    lines += [f"  next: {item['next_action']}"] if item["state"] == "landing" else []
    call.terminal.answer({"ok": True, "task": item, "evidence": proofs}, "\n".join(lines))
    return 0


def _read_result(name: str) -> str:
    if name and name != "-" and not os.path.exists(name):
        return name  # a short result may be given as it is
    return read_file(name, "--result", LONGEST_BODY)


def fail(call: CommandCall, task: str, why: str, final: bool) -> int:
    """Give a task back with what was learned."""
    from landlane.tasks.change import fail_task
    from landlane.tasks.evidence import change_of

    session, repo = call.session(), call.repo
    change = change_of(repo, GitWitness(repo), task)
    return answer_task(call, fail_task(repo, session, task, why, is_final=final, change=change))


def budget_of(call: CommandCall, task: Task) -> tuple[dict[str, Any], list[str], list[dict[str, Any]]]:
    """What the lineage of a task has used, as JSON and in lines, and what was said of the others in it."""
    from landlane.tasks.lineage import family_with_lessons, lineage_of
    from landlane.tasks.retry_rules import limits_of
    from landlane.tasks.to_json import lesson_json, lineage_json, lineage_lines

    repo = call.repo
    family, others = family_with_lessons(repo, task)
    item = lineage_json(task, lineage_of(repo, task), limits_of(repo.settings), family)
    return item, lineage_lines(item), [lesson_json(one) for one in others]
