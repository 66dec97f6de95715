"""`landlane next`: take the best task that is ready."""

from __future__ import annotations

from landlane.claims.to_json import claim_json
from landlane.cli.arguments import read_wait
from landlane.cli.claims import show_saved
from landlane.cli.command import stop_on_signals
from landlane.cli.task_text import earlier_attempts, feedback_lines, picked_lines
from landlane.cli.terminal import in_one_line
from landlane.error_json import failure_json
from landlane.reviews.records import review_id_of
from landlane.roles.model import find_role
from landlane.rules.show_to_session import carry_rules
from landlane.rules.to_json import carried_json
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import COMMIT, REVIEW_KIND, effective_kind, required_evidence
from landlane.tasks.pick import Picked, next_task, resume_task
from landlane.tasks.text import held_up_lines, why_no_task
from landlane.tasks.to_json import nothing_ready_json, tasks_json
from landlane.tasks.waits import find_held_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.tasks.model import Task
    from landlane.tasks.pick import NothingReady


def next(call: CommandCall, role: str, wait: str, resume: bool) -> int:
    """Take the best task, waiting for one if asked, or continue with the current one."""
    wait_ms = read_wait(wait)
    repo = call.repo
    if role:
        find_role(repo.settings, role)
    session = call.session()
    resumed = resume_task(repo, session) if resume else None
    if resumed is not None:
        return _show_picked(call, resumed)
    if wait_ms:
        stop_on_signals()
    outcome = next_task(repo, session, role, GitEvidence(repo).start, wait_ms=wait_ms)
    if not isinstance(outcome, Picked):
        return _refuse(call, outcome)
    if outcome.task.kind == REVIEW_KIND:
        from landlane.landing.submit import fetch_reviewed_commit  # noqa: PLC0415 - only reviewers need it

        missing = fetch_reviewed_commit(repo, outcome.task)
        if missing:
            call.terminal.note(missing)
    return _show_picked(call, outcome)


def _show_picked(call: CommandCall, picked: Picked) -> int:
    store = call.repo.store
    (task,) = tasks_json(call.repo, [picked.task])
    claims = [claim_json(claim, store) for claim in picked.claims]
    before = earlier_attempts(call, picked.task, picked.lessons)
    lines = picked_lines(picked.task, claims)
    answer = {"ok": True, "task": task, "claims": claims, "resumed": picked.is_resumed, **before}
    answer |= {"handoff": None, "context": ""}
    handoff_lines: list[str] = []
    if picked.task.attempt > 1 or picked.lessons:  # another session had it before
        from landlane.cli.handoff import describe_earlier_work  # noqa: PLC0415 - only later attempts need it

        fields, handoff_lines = describe_earlier_work(call, picked.task)
        answer |= fields
    if answer["handoff"] is None:
        lines += feedback_lines(before["feedback"], "  earlier  ")
        lines += [f"  work in  {branch}" for branch in before["branches"]]
    lines += [f"  do first {in_one_line(task['next_action'])}"] if task["next_action"] else []
    lines += handoff_lines
    rules = carry_rules(call.repo, call.session())
    answer["rules"] = carried_json(rules)
    lines += ["", rules.text, ""] if rules is not None and rules.text else []
    lines.append(f"next: {_next_step(call, picked.task)}")
    answer |= show_saved(call, picked.saved)
    return call.terminal.answer(answer, "\n".join(lines), quiet=picked.task.id)


def _next_step(call: CommandCall, task: Task) -> str:
    """Return the command with which the work on a task begins."""
    if task.kind == REVIEW_KIND:
        return call.command_text("review", "show", review_id_of(task))
    is_in_git = bool(call.repo.checkout.common_dir)
    kind = effective_kind(task.kind, has_output=bool(task.output), is_in_git=is_in_git)
    if COMMIT not in required_evidence(kind, call.repo.settings.tasks.evidence):
        return call.command_text("done", task.id)
    return f'cd "$({call.command_text("workspace", "open", task.id)})"'


def _refuse(call: CommandCall, nothing: NothingReady) -> int:
    hint = f"wait for it: {call.command_text('next', '--wait')}"
    if nothing.in_hand:
        hint = f"continue with it: {call.command_text('next', '--resume')}"
    elif not nothing.counts:
        hint = "add one: landlane task add 'What to do'"
    held_up = find_held_up(call.repo, nothing)
    facts = nothing_ready_json(nothing, held_up, call.repo.store)
    answer = failure_json("NO_TASK", f"no task to take: {why_no_task(nothing)}", hint, **facts)
    details = held_up_lines(held_up, call.wall_now())
    return call.terminal.refuse(answer, 5, [f"  {in_one_line(line)}" for line in details], is_outcome=True)
