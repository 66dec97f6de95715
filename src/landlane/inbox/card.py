"""One item of the inbox as text: the question, and what a person needs to answer it."""

from __future__ import annotations

import re

from landlane.gates.model import WAITING, describe_subject
from landlane.gates.subject import lineage_cost
from landlane.inbox.unblocks import find_unblocked
from landlane.landing.failing_lines import failing_lines
from landlane.landing.model import gated_path, new_checks
from landlane.tasks.records import lessons_of, list_tasks, task_history
from landlane.units import count, join_words, money, rough_duration, time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.tasks.model import Task

_WIDTH = 100
_MOST_PATHS = 6
_MOST_LINES = 5
_ATTEMPT = re.compile(r"^attempt \d+, ", re.MULTILINE)  # the start of an attempt in the history
_COMMIT = 8  # digits of a commit that people see
# Longer texts of the evidence, and their titles.
_SECTIONS = {"history": "Earlier attempts", "said": "Verdicts"}


def card_text(item: Mapping[str, Any]) -> str:
    """Return a gate or a held landing in JSON as a card."""
    evidence = item["evidence"]
    waited = f"{rough_duration(item['waited_seconds'] * 1000)} ago"
    asked = ", ".join(filter(None, (item["agent"], waited)))
    title = f"{item['id']} {question(item)}"
    rows = {
        "why": _reason(item),
        "about": _subject(item),
        "change": change_text(evidence),
        "evidence": _evidence(item) if item["kind"] == "landing" else "",
        "check": evidence.get("check") or "",
        "cost": _cost(evidence),
        "keeps": ", ".join(item.get("keeps") or ()),
        "unblocks": unblocks_text(item.get("unblocks") or ()),
        "moved": item.get("moved") or "",
        "answer": _answer(item),
    }
    lines = [f"{title}{' ' * max(_WIDTH - len(title) - len(asked), 3)}{asked}"]
    for name, text in rows.items():
        first, *more = text.splitlines() or [""]
        lines += [f"  {name:<9} {first}", *(f"  {'':<9} {line}" for line in more)] if text else []
    for name, heading in _SECTIONS.items():
        if evidence.get(name):
            lines += ["", heading, *(f"  {line}" for line in _section_lines(str(evidence[name])))]
    return "\n".join(lines)


def _section_lines(text: str) -> list[str]:
    """Return a text; of each attempt only its reason and the lines that show the failure."""
    starts = [match.start() for match in _ATTEMPT.finditer(text)]
    if not starts:
        return text.splitlines()
    lines: list[str] = text[: starts[0]].splitlines()
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        reason, _, output = text[start:end].partition("\n")
        lines += [reason, *(f"  {line}" for line in failing_lines(output)[:_MOST_LINES])]
    return lines


def dead_task_text(repo: Repository, task: Task, now: int) -> str:
    """Return a task that failed for good as a card: why, its attempts, and what waits for it."""
    history = task_history(repo, task.id)
    died = time_ago(history[-1].at, now) if history else ""
    title = f"{task.id} Retry {task.title}?"
    cost = lineage_cost(repo, task.lineage)
    rows = {
        "why": task.why or "its attempts are used up",
        "check": task.check,
        "cost": _cost({"cost": cost}),
        "unblocks": unblocks_text(find_unblocked(list_tasks(repo), task.id)),
    }
    lines = [f"{title}{' ' * max(_WIDTH - len(title) - len(died), 3)}{died}"]
    lines += [f"  {name:<9} {' '.join(text.split())}" for name, text in rows.items() if text]
    lessons = [f"  {lesson.attempt}  {' '.join(lesson.why.split())}" for lesson in lessons_of(repo, task.id)]
    return "\n".join([*lines, *(["", "Earlier attempts", *lessons] if lessons else [])])


def is_retry(item: Mapping[str, Any]) -> bool:
    """Return whether an item asks if a task that failed is tried again."""
    return "retries" in item["about"]


def question(item: Mapping[str, Any]) -> str:
    """Return the question of an item: `Land T13 Charge cards on main?`."""
    title = item["evidence"].get("title") or ""
    named = f"{item['task']} {title}".strip() if item["task"] else ""
    if is_retry(item):
        return f"Retry {named}?"
    if item["kind"] == "landing":
        about = item["about"]
        return f"Land {named or about['branch']} on {about['target']}?"
    return f"{named} ({item['kind']})" if named else f"Question ({item['kind']})"


def _reason(item: Mapping[str, Any]) -> str:
    path = gated_path(item["why"]) if item["kind"] == "landing" else ""
    if item["kind"] == "landing" and (change := new_checks(item["why"])):
        return f"it has other [landing] checks, which judge it once you approve\n{change}"
    glob = item["why"].rpartition(" (")[2].rstrip(")")
    return f"[landing] gate lists {glob}, and this changes {path}" if path else item["why"]


def _subject(item: Mapping[str, Any]) -> str:
    about = item["about"]
    if item["kind"] == "landing" or is_retry(item):  # the title says it
        return ""
    if head := str(about.get("head") or ""):
        branch = about.get("branch")
        return f"commit {head[:_COMMIT]}" + (f" of {branch}" if branch else "")
    return describe_subject(about)


def change_text(evidence: Mapping[str, Any]) -> str:
    """Return the size and the paths of a change: `2 files, +48 −12: a.py, b.py`; empty if unknown."""
    files = evidence.get("files")
    if files is None:
        return ""
    lines = f", +{evidence['added']} −{evidence['removed']}" if "added" in evidence else ""
    paths = list(evidence.get("paths") or ())
    more = f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
    return f"{count(files, 'file')}{lines}: {', '.join(paths[:_MOST_PATHS])}{more}"


def _evidence(item: Mapping[str, Any]) -> str:
    """Return what holds for a landing: its commit, what was verified when its task was done, its checks."""
    found = [f"✓ commit {str(item['about']['head'])[:_COMMIT]}"]
    found += [f"✓ {name}" for name in item["evidence"].get("verified") or ()]
    for check in item["landing"]["checks"]:
        found.append(f"{'✓' if check['state'] == 'passed' else '✗'} {check['name']} on the merge")
    return "  ".join(found)


def _cost(evidence: Mapping[str, Any]) -> str:
    cost = evidence.get("cost")
    if not cost:
        return ""
    attempts = count(cost["attempts"], "attempt")
    if not cost["usd"] and not cost["is_known"]:
        return f"not reported, {attempts}"
    return f"{money(round(cost['usd'] * 1_000_000), has_unknown=not cost['is_known'])}, {attempts}"


def unblocks_text(unblocks: Any) -> str:
    """Return what an answer unblocks: `T15 Document payments, once T14 is done`."""
    return "; ".join(
        f"{one['task']} {one['title']}"
        + (f", once {join_words(one['waits_for'])} {_is(one['waits_for'])} done" if one["waits_for"] else "")
        for one in unblocks
    )


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _answer(item: Mapping[str, Any]) -> str:
    if item["state"] == WAITING:
        return ""
    by = f" by {item['answered_by']}" if item.get("answered_by") else ""
    said = f': "{item["answer"]}"' if item.get("answer") else ""
    return f"{item['state']}{by}{said}"
