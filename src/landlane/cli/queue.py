"""The commands for the landing queue: queue list, show, run, eject, resume."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.cli.arguments import FOREVER_MS, read_wait
from landlane.cli.command import stop_on_signals
from landlane.cli.table import empty_text
from landlane.error_json import error_json
from landlane.errors import TimedOut
from landlane.landing.after_landing import clean_up_here
from landlane.landing.decide import eject_entry, resume_queue
from landlane.landing.model import BOUNCED, LANDED, OPEN
from landlane.landing.predict_conflicts import predict_conflicts
from landlane.landing.queue import serve_queue
from landlane.landing.records import get_landing, list_landings
from landlane.landing.target_status import read_target_status, view_queue
from landlane.landing.to_json import conflicts_text, landing_json, queue_json, target_json
from landlane.landing.to_text import (
    about,
    fix_task_command,
    landing_lines,
    state_text,
    target_headline,
    target_lines,
)
from landlane.tasks.model import READY, is_open_fix
from landlane.tasks.records import find_task, list_tasks
from landlane.tasks.text import state_text as task_state_text
from landlane.text import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.landing.model import Landing
    from landlane.landing.target_status import QueueView
    from landlane.repository import Repository
    from landlane.tasks.model import Task


def run_queue(call: CommandCall, drain: bool, wait: str) -> int:
    """Run the queue until it is empty, or forever."""
    wait_ms = read_wait(wait) or FOREVER_MS
    stop_on_signals()
    repo = prepare_git(call.repo, call.terminal.note)
    before = [landing.id for landing in list_landings(repo)]
    stop = serve_queue(
        repo,
        call.caller_name(),
        is_drained=drain,
        wait_ms=wait_ms,
        on_check=lambda ids, name: repo.report(f"{', '.join(ids)}: {name}"),
    )
    if isinstance(stop, TimedOut):
        raise stop
    ended = [get_landing(repo, landing_id) for landing_id in before]
    answer: dict[str, Any] = {"ok": True, "landings": [landing_json(landing) for landing in ended]}
    if stop is not None:
        answer |= error_json(stop)
        if not call.terminal.is_json:
            call.terminal.print_error(stop.message, stop.hint, stop.code, exit_code=stop.exit_code)
    lines = [_ended_line(landing) for landing in ended]
    code = stop.exit_code if stop is not None else 0
    return call.terminal.answer(answer, "\n".join(lines) or "Nothing to land.", code)


def _ended_line(landing: Landing) -> str:
    symbols = {LANDED: "✓ ", BOUNCED: "✗ "}
    if landing.state == LANDED:
        rest = f" on {landing.target} as {landing.commit[:8]}"
    else:
        rest = f": {landing.reason}" if landing.reason else ""
    return in_one_line(f"{symbols.get(landing.state, '')}{landing.id} {landing.state}{rest}")


def eject(call: CommandCall, landing: str, why: str) -> int:
    """Remove an entry from the queue."""
    repo = call.repo.require_git()
    ended = eject_entry(repo, call.session(), landing.upper(), why or "no reason given")
    text = f"✓ {ended.id} is out of the queue; branch {ended.branch} is unchanged"
    return call.terminal.answer({"ok": True, "landing": landing_json(ended)}, text, quiet=ended.id)


def resume(call: CommandCall, why: str) -> int:
    """Resume the queue after a pause."""
    repo = call.repo.require_git()
    queue = resume_queue(repo, call.session(), why)
    return call.terminal.answer(
        {"ok": True, "queue": queue_json(queue)}, f"✓ the queue continues from {queue.tip[:8]}"
    )


def list_all(call: CommandCall, all: bool, conflicts: bool) -> int:
    """Show the queue, or which open branches conflict."""
    repo = call.repo
    call.renew_session()
    repo = prepare_git(repo, call.terminal.note)
    clean_up_here(repo)
    if conflicts:
        predicted = predict_conflicts(repo)
        return call.terminal.answer({"ok": True, **predicted}, conflicts_text(predicted))
    landings = list_landings(repo, () if all else OPEN)
    view, status = view_queue(repo), read_target_status(repo)
    document: dict[str, Any] = {
        "ok": True,
        "landings": [landing_json(landing, view.estimates.get(landing.id)) for landing in landings],
        "queue": queue_json(view.queue),
        "target": target_json(status),
    }
    title = target_headline(status, view.now)
    if view.queue.is_paused:
        why = in_one_line(view.queue.reason)
        title += f"\n! the queue is paused: {why}\nhint: continue: landlane queue resume"
    if not landings:
        return call.terminal.answer(document, f"{title}\n{empty_text('landing')}")
    columns = [
        "landing",
        "task" if any(one.task for one in landings) else "branch",
        "from",
        "state",
        "lands in",
    ]
    rows = [_row(repo, landing, view) for landing in landings]
    text = call.terminal.table(title, columns, rows, cut=columns[1].upper())
    return call.terminal.answer(document, text, quiet="\n".join(landing.id for landing in landings))


def _row(repo: Repository, landing: Landing, view: QueueView) -> list[str]:
    task = _find_task(repo, landing.task)
    what = f"{task.id} {task.title}" if task is not None else landing.branch
    eta = view.estimates.get(landing.id)
    state = state_text(landing, view.now)
    return [landing.id, what, landing.agent, state, about(eta) if eta is not None else ""]


def _find_task(repo: Repository, task_id: str) -> Task | None:
    return repo.store.view(lambda snapshot: find_task(snapshot, task_id)) if task_id else None


def show(call: CommandCall, landing: str) -> int:
    """Show one entry in full, or the target branch."""
    if not landing:
        return _show_target(call)
    repo = call.repo
    entry = get_landing(repo, landing.upper())
    document = {"ok": True, "landing": landing_json(entry, view_queue(repo).estimates.get(entry.id))}
    # The task to fix a rejected branch is not what the branch is about.
    task, fix = _find_task(repo, entry.task), _find_task(repo, entry.bounce_task)
    lines = landing_lines(entry, task, fix, repo.wall_ms())
    if entry.unidentified and call.terminal.is_verbose:
        lines.append(f"  unknown   agent of {', '.join(commit[:8] for commit in entry.unidentified)}")
    output = entry.output if call.terminal.is_verbose else ""
    if entry.output and not output:
        lines.append(f"full output: landlane queue show {entry.id} -v")
    return call.terminal.answer_card(document, "\n".join(lines), output=output, quiet=entry.state)


def _show_target(call: CommandCall) -> int:
    repo = prepare_git(call.repo, call.terminal.note)
    status = read_target_status(repo)
    failure = status.failure
    lines = target_lines(status, repo.wall_ms())
    output = failure.output if failure is not None and call.terminal.is_verbose else ""
    if failure is not None:
        lines += _fix_lines(repo, status.branch, failure.check)
    document = {"ok": True, "target": target_json(status)}
    return call.terminal.answer_card(document, "\n".join(lines), output=output, quiet=status.state)


def _fix_lines(repo: Repository, branch: str, check: str) -> list[str]:
    """Return how to repair the target: by the tasks that were added for it, a new one, or other checks."""
    fixes = [task for task in list_tasks(repo) if is_open_fix(task)]
    lines = [f"  fix       {task.id} {task.title} ({task_state_text(task.state)})" for task in fixes]
    is_ready = any(task.state == READY for task in fixes)
    command = "landlane run" if is_ready else fix_task_command(branch, check)
    lines += [f"next: {command}"] if is_ready or not fixes else [f"next: landlane task show {fixes[0].id}"]
    return [*lines, "if the check is wrong: change [landing] checks on a branch, then: landlane land BRANCH"]
