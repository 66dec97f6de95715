"""Describe what keeps work from going on: a failing target, a paused queue, workers that do not start."""

from __future__ import annotations

from landlane.tasks.worker_pool import get_pool
from landlane.text import home_path
from landlane.units import count, join_words, rough_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.status.next_steps import Overview
    from landlane.tasks.worker_pool import Pool

# How to sign in to a client again, by client.
_SIGN_IN = {"claude": "claude /login", "codex": "codex login", "opencode": "opencode auth login"}
_SIGNED_OUT = ("login", "log in", "api key", "sign in", "unauthorized", "authenticat")


def trouble_lines(repo: Repository, overview: Overview, now: int) -> list[str]:
    """Return each trouble as lines: what is wrong, what it cost, and the commands that end it."""
    lines: list[str] = [f"! {repo.held.remark}"] if repo.held.remark else []
    if overview.moved_from:
        lines += [f"✗ This repository was moved here from {home_path(overview.moved_from)}."]
        lines += ["  Its git hooks and workspaces still name that place:", "    landlane doctor --fix"]
    if overview.unattended:
        named = join_words(overview.unattended)
        lines += [f"✗ The process that ran the landing queue was killed; waiting: {named}."]
        lines += ["  Anyone can take over:", "    landlane queue run --drain"]
    if overview.red:
        lines += [
            f"✗ {overview.red}",
            *(f"     {line}" for line in overview.red_lines),
            "  Only a branch that fixes it can land. See why:",
            "    landlane queue show",
        ]
    if overview.queue_paused:
        lines += [
            f"✗ The landing queue is paused: {overview.queue_paused}",
            "  When that is solved, resume:",
            "    landlane queue resume --why 'reason'",
        ]
    if overview.pool_paused:
        lines += pool_lines(get_pool(repo), now)
    return lines


def pool_lines(pool: Pool, now: int) -> list[str]:
    """Return why no workers are started, and the commands that start them again."""
    if pool.paused_by:
        since = f"{rough_duration(max(now - pool.paused_at, 0))} ago"
        return [f'✗ {pool.paused_by} paused the workers {since}: "{pool.paused}"', "    landlane run resume"]
    if not pool.infra:
        return [f"✗ The workers are paused: {pool.paused}", "    landlane run resume"]
    newest = pool.infra[-1]
    alike = [failure for failure in pool.infra if failure["text"] == newest["text"]]
    kind = str(newest.get("kind") or "")
    since = rough_duration(max(now - min(failure["at"] for failure in alike), 0))
    tasks = count(len({failure["task"] for failure in alike}), "task")
    said = pool.paused.partition(": ")[2] or pool.paused
    sign_in = _SIGN_IN.get(kind, "") if any(word in said.lower() for word in _SIGNED_OUT) else ""
    first = "Sign in" if sign_in else "Fix it"
    return [
        f'✗ {kind or "A worker"} has failed to start for {since}: "{said}" ({tasks})',
        f"  No attempt was charged. {first}, then resume:",
        *([f"    {sign_in}"] if sign_in else []),
        "    landlane run resume",
    ]
