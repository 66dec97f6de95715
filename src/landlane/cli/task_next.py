"""`landlane next`: take the best task that is ready."""

from __future__ import annotations

from landlane.claims.to_json import claim_json
from landlane.cli.command import heed_signals
from landlane.cli.former_work import save_former_work
from landlane.cli.task_answers import refuse
from landlane.cli.task_attempts import earlier_attempts, earlier_lines
from landlane.cli.terminal import in_one_line
from landlane.clock import parse_duration, rfc3339
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.pick import Picked, resume_task, wait_for_task
from landlane.tasks.to_json import (
    task_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.tasks.pick import NothingReady


def next_one(call: CommandCall, role: str, wait: str, resume: bool) -> int:
    """Take the best task, waiting for one if asked, or continue with the current one."""
    wait_ms = parse_duration(wait, what="--wait")
    repo = call.repo
    session = call.session()
    in_hand = resume_task(repo, session) if resume else None
    if in_hand is not None:
        return _hand_over(call, in_hand)
    if wait_ms:
        heed_signals()
    outcome = wait_for_task(repo, session, role, wait_ms, GitEvidence(repo).start)
    if isinstance(outcome, Picked) and outcome.task.kind == "review":
        from landlane.landing.submit import fetch_reviewed_commit  # noqa: PLC0415 - only reviewers need it

        missing = fetch_reviewed_commit(repo, outcome.task)
        if missing:
            call.terminal.note(missing)
    return _hand_over(call, outcome) if isinstance(outcome, Picked) else _nothing_ready(call, outcome)


def _hand_over(call: CommandCall, picked: Picked) -> int:
    store = call.repo.store
    task = task_json(picked.task, store)
    claims = [claim_json(claim, store) for claim in picked.claims]
    before = earlier_attempts(call, picked.task, picked.lessons)
    lines = [f"{task['id']} {task['title']} is yours (attempt {task['attempt']}, branch {task['branch']})"]
    lines += [f"  claimed {in_one_line(claim['pattern'])} until {claim['until']}" for claim in claims]
    answer = {"ok": True, "task": task, "claims": claims, "resumed": picked.is_resumed, **before}
    handed: dict[str, Any] = {"handoff": None, "context": "", "lines": []}
    if picked.task.attempt > 1 or picked.lessons:  # another session had it before
        from landlane.cli.handoff import what_was_left  # noqa: PLC0415 - only a later attempt needs it

        handed = what_was_left(call, picked.task)
    if handed["handoff"] is None:
        lines += earlier_lines(before, "  before: ", "  work there: ")
    lines += [f"  next: {in_one_line(task['next_action'])}"] if task["next_action"] else []
    lines += handed.pop("lines")
    answer |= handed
    if picked.claims and not picked.is_resumed:
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
    message += "".join(
        f"; {item['task']} failed and is held back until {item['until']}" for item in held_back
    )
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
    refuse(call, answer)
    return 5
