"""Landings and the target branch as people read them: lines of text that every entry point can show."""

from __future__ import annotations

import shlex

from landlane.landing.model import BOUNCED, EJECTED, HELD, LANDED, TESTING, gated_path, new_checks
from landlane.landing.target_status import TargetState
from landlane.tasks.model import DEAD, FAILED, WAITING
from landlane.text import in_one_line
from landlane.units import clock_time, exact_duration, ordinal, rough_duration, running_time, time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.landing.model import CheckRun, Landing
    from landlane.landing.target_status import QueueView, TargetStatus
    from landlane.tasks.model import Task

_MINUTE_MS = 60_000
_WIDEST_NAME = 40
_WIDTH = 97  # where the state ends at the right of a title
_OUTPUT_INDENT = "     "


def about(milliseconds: int) -> str:
    """Return an estimated duration: `about 40 s`, `about 3 min`."""
    if milliseconds < _MINUTE_MS:
        return f"about {max(round(milliseconds / 10_000) * 10, 10)} s"
    return f"about {rough_duration(milliseconds + _MINUTE_MS // 2)}"


def landing_title(landing: Landing, task: Task | None) -> str:
    """Return the id of an entry and what it is about: `L9 T20 Search by name`."""
    return f"{landing.id} {f'{task.id} {task.title}' if task is not None else landing.branch}"


def merge_text(landing: Landing) -> str:
    """Return onto which commit an entry was merged; empty if it was not."""
    if not landing.base:
        return ""
    return f"onto {landing.base[:8]}" + ("" if landing.resolved else ", no conflicts")


def stage_lines(landing: Landing, names: Sequence[str]) -> list[str]:
    """Return the stages of an entry that ended: its merge, and its checks with the lines that failed.

    `names` are those of the declared checks: they decide how wide the first column is.
    """
    checks = landing.check_runs
    width = stage_width(names)
    merge = merge_text(landing) if landing.code != "CONFLICT" else ""
    lines = [f"  ✓ {'merge':<{width}}  {merge}"] if merge else []
    lines += [f"{' ' * (width + 6)}{note}" for note in landing.resolved if merge]
    for run in checks:
        symbol, text = ("✓", running_time(run.ms)) if run.is_green else ("✗", _failed_text(landing, run))
        lines += [f"  {symbol} {run.name:<{width}}  {text}", *output_lines(run.lines)]
    return lines


def stage_width(names: Sequence[str]) -> int:
    """Return the width of the column with the names of the stages."""
    return min(max([len("merge"), *map(len, names)]), _WIDEST_NAME)


def _failed_text(landing: Landing, run: CheckRun) -> str:
    if landing.pair_commit:
        return f"fails only together with {landing.pair or landing.pair_commit[:8]}, which has landed"
    return f"failed after {running_time(run.ms)} ({exit_text(run.exit)})"


def exit_text(exit_code: int) -> str:
    """Return how a command ended: `exit 2`, `signal 9`."""
    return f"signal {-exit_code}" if exit_code < 0 else f"exit {exit_code}"


def _after(milliseconds: int) -> str:
    text = exact_duration(milliseconds)
    return f"in {text}" if text.startswith("under") else f"after {text}"


def output_lines(lines: list[str]) -> list[str]:
    """Return lines of output, indented."""
    return [_OUTPUT_INDENT + line for line in lines]


def running_line(landing: Landing, view: QueueView) -> str:
    """Return the check that runs now and its clock; empty if none runs."""
    if landing.state != TESTING or not landing.check:
        return ""
    estimate = view.check_estimate(landing.check)
    of = f" of about {running_time(estimate)}" if estimate else ""
    return f"  ● {landing.check:<{stage_width(view.checks)}}  {running_time(view.now - landing.stage_at)}{of}"


def progress_text(landing: Landing, view: QueueView) -> str:
    """Return how far an open entry is, in one line: `L11: make test, 0:41 of about 1:10`."""
    eta = view.estimates.get(landing.id)
    if landing.state == TESTING and landing.check:
        estimate = view.check_estimate(landing.check)
        of = f" of about {running_time(estimate)}" if estimate else ""
        return f"{landing.id}: {landing.check}, {running_time(view.now - landing.stage_at)}{of}"
    if landing.state == TESTING:
        return f"{landing.id}: {landing.stage or 'merging'}"
    place = (
        f" ({', '.join([ordinal(view.position(landing.id)), *([about(eta)] if eta is not None else [])])})"
    )
    waits = f" until {landing.target} passes" if landing.code == "TARGET_RED" else place
    return f"{landing.id}: queued to land{waits}"


def ended_message(landing: Landing, task: Task | None) -> str:
    """Return how an entry ended without landing, or why it is held, in one sentence."""
    if landing.state == HELD:
        path = gated_path(landing.gate)
        why = f"changes {path}, so a person must approve it" if path else landing.reason
        if change := new_checks(landing.gate):
            why = f"has other [landing] checks, so a person must approve it: {change}"
        return f"{landing.id} {why}"
    if landing.state == EJECTED:
        return f"{landing.id} was taken out of the queue by {landing.reason}"
    reason = landing.reason
    for run in landing.check_runs:  # the line above shows its exit code
        reason = reason.removesuffix(f" ({exit_text(run.exit)})")
    parts = [f"{landing.id} bounced: {reason}"]
    if not landing.pair_commit:
        parts.append(f"{landing.target} is unchanged")
    if task is not None:
        parts.append(_task_after(landing, task))
    return "; ".join(parts)


def _task_after(landing: Landing, task: Task) -> str:
    """Return what becomes of the task of a rejected entry."""
    if task.state == WAITING:
        return f"{task.id} needs a person"
    if task.state in (DEAD, FAILED):
        return f"{task.id} has failed"
    if landing.task != task.id:
        return f"{task.id} was added to fix it"
    attempt = f"attempt {min(task.failures + 1, task.max_attempts)} of {task.max_attempts}"
    whose = "is yours again" if task.session == landing.session else "is ready again"
    return f"{task.id} {whose} ({attempt})"


def ended_hint(landing: Landing) -> str:
    """Return what the author of an entry should do now."""
    if landing.state == HELD:
        return "take another task meanwhile: landlane next"
    if landing.state == EJECTED or not landing.advice:
        return "land it again: landlane land"
    is_command = "landlane" in landing.advice
    full = f"; the full output: landlane queue show {landing.id} -v"
    return landing.advice + (full if landing.output and not is_command else "")


def landed_text(landing: Landing) -> str:
    """Return as which commit an entry landed."""
    took = exact_duration(max(landing.ended_at - landing.submitted_at, 0))
    return f"✓ {landing.id} landed on {landing.target} as {landing.commit[:8]} ({took})"


def state_text(landing: Landing, now: int) -> str:
    """Return the state of an entry for a table: `testing make test (0:41)`, `needs you (2 min)`."""
    if landing.state == HELD:
        return f"needs you ({rough_duration(max(now - landing.submitted_at, 0))})"
    if landing.state == TESTING and landing.tested_with:
        return f"tested with {landing.tested_with}"
    if landing.state == TESTING and landing.check:
        return f"testing {landing.check} ({running_time(now - landing.stage_at)})"
    if landing.state in (LANDED, BOUNCED, EJECTED):
        return f"{landing.state} {time_ago(landing.ended_at, now)}"
    if landing.code == "TARGET_RED":
        return f"queued, waits for {landing.target}"
    return landing.stage or landing.state


def target_headline(status: TargetStatus, now: int) -> str:
    """Return whether the target passes, at which commit, and for how long it has failed."""
    failure = status.failure
    if failure is not None:
        age = rough_duration(max(now - failure.since, 0))
        return f"{status.branch} failing at {failure.commit[:8]} for {age}; only a fix lands"
    if status.state == TargetState.UNTESTED:
        at = f" at {status.tip[:8]}" if status.tip else ""
        return f"{status.branch}{at} is not tested yet"
    changed = f"; now at {status.tip[:8]}, not tested yet" if status.tip != status.passing else ""
    return f"{status.branch} passing at {status.passing[:8]}{changed}"


def fix_task_command(branch: str, check: str) -> str:
    """Return the command that adds a task to repair a target branch that fails a check."""
    title = shlex.quote(f"Fix {branch}: {check}")
    return f"landlane task add {title} --priority 99 --fixes-target"


def target_lines(status: TargetStatus, now: int) -> list[str]:
    """Return the target's state: what fails, since which commit, by whom, and what waits."""
    failure = status.failure
    lines = [target_headline(status, now)]
    if failure is not None:
        lines.append(f"  ✗ {failure.check}, {exit_text(failure.exit)} {_after(failure.ms)}")
        lines += output_lines(failure.lines)
        lines.append(f"  since     {_culprit_text(status)}")
    if status.waiting:
        charged = " (not charged)" if failure is not None else ""
        lines.append(f"  waiting   {', '.join(status.waiting)}{charged}")
    return lines


def _culprit_text(status: TargetStatus) -> str:
    failure = status.failure
    assert failure is not None
    culprit = failure.culprit
    named = f"{culprit['commit'][:8]} {culprit['subject']}"
    if culprit["landing"]:
        named += f", landed by {culprit['landing']} ({culprit['author']})"
    else:
        named += f", pushed by {culprit['author']} outside the queue"
    if len(failure.suspects) > 1:
        return f"{named}, or one of {len(failure.suspects) - 1} commits after it"
    return named if failure.suspects else f"{named}, or earlier"


def landing_lines(landing: Landing, task: Task | None, fix: Task | None, now: int) -> list[str]:
    """Return one entry in full: where it comes from, its merge, its checks and what follows.

    `fix` is the task that a rejected entry goes back to: its own, or one that was added to fix it.
    """
    title = f"{landing_title(landing, task)} → {landing.target}"
    state = landing.state if landing.state != HELD else "needs you"
    lines = [f"{title}{' ' * max(_WIDTH - len(title) - len(state), 2)}{state}"]
    lines.append(f"  from      {landing.agent}, {landing.branch} at {landing.head[:8]}")
    if landing.code == "CONFLICT":
        lines.append(f"  merge     ✗ {in_one_line(landing.reason)}")
    elif merge_text(landing):
        lines.append(f"  merge     {merge_text(landing)}")
        lines += [f"            {note}" for note in landing.resolved]
    for run in landing.check_runs:
        ending = exact_duration(run.ms) if run.is_green else f"{exit_text(run.exit)} {_after(run.ms)}"
        lines.append(f"  check     {'✓' if run.is_green else '✗'} {run.name}, {ending}")
        lines += output_lines(run.lines)
    return [*lines, *_next_lines(landing, fix, now)]


def _next_lines(landing: Landing, fix: Task | None, now: int) -> list[str]:
    lines: list[str] = []
    if landing.state == LANDED:
        lines.append(f"  landed    as {landing.commit[:8]} at {clock_time(landing.ended_at)}")
    elif landing.is_open:
        lines.append(f"  state     {state_text(landing, now)}")
    is_shown = landing.code == "CONFLICT" or (landing.code == "CHECK_FAILED" and not landing.pair_commit)
    if landing.reason and not is_shown:
        lines.append(f"  why       {in_one_line(landing.reason)}")
    if landing.approved_by:
        lines.append(f"  approved  by {landing.approved_by} at {landing.approved_head[:8]}")
    if landing.flaky:
        lines.append(f"  flaky     {', '.join(landing.flaky)}")
    lines += [f"  note      {note}" for note in landing.notes]
    if landing.state == BOUNCED and fix is not None:
        lines.append(f"  then      {_task_after(landing, fix)}")
    if landing.state == BOUNCED and landing.advice:
        lines.append(f"  to do     {landing.advice}")
    return lines
