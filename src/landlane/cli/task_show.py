"""`landlane task show`: what a task is, where it stands, what happened, and what is next."""

from __future__ import annotations

import textwrap

from landlane.cli.table import align, text_width
from landlane.cli.task_text import earlier_attempts
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_rfc3339
from landlane.status.task_facts import task_facts_json
from landlane.tasks.extensions import settle_due
from landlane.tasks.lineage import family_with_lessons, lineage_of
from landlane.tasks.model import BLOCKED, DEAD, DONE, DROPPED, FAILED, FINAL, IN_PROGRESS, READY, WaitKind
from landlane.tasks.records import get_task, lessons_of, links_of
from landlane.tasks.text import attempt_text, state_text, waits_text
from landlane.tasks.to_json import lesson_json, lineage_json, task_json
from landlane.tasks.waits import find_waits
from landlane.text import home_path
from landlane.units import (
    clock_time,
    count,
    day_and_time,
    join_words,
    money,
    money_limit,
    time_ago,
    time_left,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.tasks.model import Task, Wait

_WIDTH = 100
_NAME = 9  # width of the names of fields
_MICROS = 1_000_000
_MARKS = {"running": "●", "failed": "✗", "returned": "–", "done": "✓"}
# What others said about a task, beside the ends of its attempts.
_NOTES = ("task.answered", "task.reviewed", "task.retried", "task.joined")


def show(call: CommandCall, task: str) -> int:
    """Show one task in full."""
    repo = call.repo
    call.renew_session()
    settle_due(repo)
    loaded = get_task(repo, task)
    waits = find_waits(repo, [loaded]).get(loaded.id, ())
    item = task_json(loaded, repo.store, waits)
    family, family_lessons = family_with_lessons(repo, loaded)
    lessons = lessons_of(repo, loaded.id)
    answer: dict[str, Any] = {
        "ok": True,
        "task": item,
        "similar": [{"id": other, "reason": reason} for other, reason in links_of(repo, loaded.id)],
        **earlier_attempts(call, loaded, lessons, with_own=True),
        "retries": lineage_json(loaded, lineage_of(repo, loaded), repo.settings.retries, family),
        "family_feedback": [lesson_json(lesson) for lesson in family_lessons],
        **task_facts_json(repo, loaded),
    }
    now = call.wall_now()
    blocks = [
        [_heading(loaded), *_field_lines(_fields(answer, waits_text(waits, now), now))],
        _body_lines(loaded.body),
        _section("Attempts", _attempt_lines(answer["attempts"], _doing(loaded, waits, now))),
        _section("Notes", _note_lines([*answer["family_feedback"], *_notes(answer["feedback"])], now)),
    ]
    step = _next_step(loaded, waits, answer["attempts"])
    blocks += [[f"next: {call.command_text(*step)}"]] if step else []
    text = "\n\n".join("\n".join(map(in_one_line, lines)) for lines in blocks if lines)
    return call.terminal.answer_card(answer, text)


def _heading(task: Task) -> str:
    state = state_text(task.state)
    if task.state in (READY, BLOCKED, FAILED, DEAD) and task.failures:
        state += f", {task.failures} of {count(task.max_attempts, 'attempt')} failed"
    elif task.state not in (READY, BLOCKED, *FINAL) and task.attempt:
        state += f", {attempt_text(task)}"
    title = f"{task.id} {task.title}"
    return f"{title}{' ' * max(_WIDTH - text_width(title) - len(state), 3)}{state}"


def _fields(answer: Mapping[str, Any], waiting: str, now: int) -> Iterator[tuple[str, str]]:
    """Yield the names of the fields and their texts; those without a text are not shown."""
    task = answer["task"]
    yield "owner", _owner(answer["owner_session"], now)
    yield "waits for", waiting
    has_why = task["state"] in (BLOCKED, DROPPED, FAILED, DEAD) and not waiting
    yield "why", (task["why"] or "") if has_why else ""
    yield "paths", ", ".join(task["paths"])
    yield "check", task["check"] or ""
    yield "output", task["output"] or ""
    yield "branch", _branch(answer)
    yield "earlier", ", ".join(branch for branch in answer["branches"] if branch != task["branch"])
    yield "after", join_words(task["after"])
    yield "blocks", ", ".join(f"{one['id']} {one['title']}" for one in answer["blocks"])
    yield "role", "" if answer["owner_session"] else task["role"] or ""
    yield "kind", task["kind"] or ""
    yield "priority", str(task["priority"] or "")
    yield "labels", ", ".join(task["labels"])
    yield "key", task["key"] or ""
    yield "do first", task["next_action"] or ""
    yield "result", (task["result"] or "") if task["state"] == DONE else ""
    yield "cost", _cost(answer["cost"])
    yield "retries", _retries(answer["retries"], now)
    yield "like", "; ".join(f"{one['id']}: {one['reason']}" for one in answer["similar"])
    yield "added", _added(answer, now)


def _field_lines(fields: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in fields:
        for number, line in enumerate(text.splitlines()):
            yield f"  {'' if number else name:<{_NAME}} {line}"


def _owner(owner: Mapping[str, Any] | None, now: int) -> str:
    if owner is None:
        return ""
    role = f"role {owner['role']}" if owner["role"] else ""
    about = ", ".join(filter(None, (owner["client"], role)))
    seen = f", last active {_age(owner['seen_at'], now)}" if owner["seen_at"] else ""
    return f"{owner['agent']}{f' ({about})' if about else ''}{seen}"


def _branch(answer: Mapping[str, Any]) -> str:
    branch, workspace = answer["task"]["branch"], answer["workspace"]
    if not branch:
        return ""
    return f"{branch} in {home_path(workspace['path'])}" if workspace is not None else branch


def _cost(cost: Mapping[str, Any]) -> str:
    if cost["budget_usd"] is not None:
        spent = money(round((cost["counted_usd"] or 0) * _MICROS))
        return f"{spent} of {money_limit(round(cost['budget_usd'] * _MICROS))}"
    return "" if cost["usd"] is None else _money(cost)  # scripts report no cost


def _money(cost: Mapping[str, Any]) -> str:
    if cost["usd"] is None:
        return "" if cost["is_known"] else "unknown"
    return money(round(cost["usd"] * _MICROS), has_unknown=not cost["is_known"])


def _retries(retries: Mapping[str, Any], now: int) -> str:
    """Return what limits further attempts: a stop, a pause, or a budget that is shared with other tasks."""
    others = [one["id"] for one in retries["tasks"]]
    shared = ""
    if len(others) > 1 and retries["attempts"]:
        used = f"{retries['attempts']} of {count(retries['max_attempts'], 'failed attempt')} used"
        shared = f"{used}, shared by {join_words(others)}"
    until = retries["not_before"]
    held = f"not before {clock_time(parse_rfc3339(until))}" if until else ""
    if until and parse_rfc3339(until) > now:
        held += f" ({time_left(parse_rfc3339(until) - now)})"
    return "\n".join(filter(None, (retries["stopped"] or "", held, shared)))


def _added(answer: Mapping[str, Any], now: int) -> str:
    by = f"by {answer['added_by']}, " if answer["added_by"] else ""
    return f"{by}{day_and_time(parse_rfc3339(answer['task']['created']), now)}"


def _body_lines(body: str) -> list[str]:
    lines: list[str] = []
    for line in body.strip().splitlines():
        indent = "  " + line[: len(line) - len(line.lstrip())]
        wrapped = textwrap.wrap(
            line, _WIDTH, initial_indent="  ", subsequent_indent=indent, break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
        lines += wrapped or [""]
    return lines


def _section(title: str, lines: list[str]) -> list[str]:
    return [title, *lines] if lines else []


def _doing(task: Task, waits: Sequence[Wait], now: int) -> str:
    """Return what becomes of an attempt that has not ended, where no worker says what it does."""
    if task.state in IN_PROGRESS:
        return "working"
    return f"waits for {waits_text(waits, now)}" if waits else state_text(task.state)


def _attempt_lines(attempts: Sequence[Mapping[str, Any]], doing: str) -> list[str]:
    """Return a line for each attempt, followed by the lines that show its failure."""
    has_costs = any(one["cost"]["usd"] is not None for one in attempts)
    rows = [
        (
            f"{one['attempt']}  {_MARKS[one['state']]} {one['agent']}",
            f"{_clock(one['started_at'])}–{_clock(one['ended_at']) if one['ended_at'] else 'now'}",
            _money(one["cost"]) if has_costs else "",
            one["result"] or one["doing"] or doing,
        )
        for one in attempts
    ]
    lines: list[str] = []
    for one, line in zip(attempts, align(rows, cut=3, gap="   "), strict=True):
        lines += [line, *(f"       {shown.strip()}" for shown in one["lines"])]
    return lines


def _clock(at: str) -> str:
    return clock_time(parse_rfc3339(at))


def _notes(feedback: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in feedback if one["kind"] in _NOTES]


def _note_lines(lessons: Iterable[Mapping[str, Any]], now: int) -> list[str]:
    return [
        f"  {one['agent'] or 'landlane'}, {_age(one['at'], now)}: {' '.join(one['why'].split())}"
        for one in lessons
    ]


def _age(at: str, now: int) -> str:
    return time_ago(parse_rfc3339(at), now)


def _next_step(task: Task, waits: Sequence[Wait], attempts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the words of the command that helps a task on; none for one that is done or dropped."""
    running = attempts and attempts[-1]["is_worker"] and attempts[-1]["state"] == "running"
    if task.state in IN_PROGRESS:
        return ("task", "log", task.id, *(("--follow",) if running else ()))
    for wait in waits:
        if wait.needs_person and wait.id:
            return ("inbox", wait.id)
        if wait.kind in _SHOWN_BY:
            return (*_SHOWN_BY[wait.kind], wait.id)
    if task.state in (FAILED, DEAD):
        return ("task", "retry", task.id)
    if task.state == BLOCKED and not task.open_after:
        return ("task", "unblock", task.id)
    return () if task.state in FINAL or task.state == BLOCKED else ("next",) if task.state == READY else ()


_SHOWN_BY: dict[str, tuple[str, ...]] = {
    WaitKind.LANDING: ("queue", "show"),
    WaitKind.REVIEW: ("review", "show"),
    WaitKind.HANDOFF: ("handoff", "show"),
    WaitKind.TASK: ("task", "show"),
}
