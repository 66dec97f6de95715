"""The sandbox as the doctor reports it: what enforces it here, what is open, and what is required."""

from __future__ import annotations

import os

from landlane.doctor.finding import Finding
from landlane.errors import LandlaneError
from landlane.exec.cleanup import end_abandoned_runs, end_processes, find_abandoned_runs
from landlane.processes.tree import TREE_MARK, count_marked
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import NONE, OPEN, Sandbox, require_guarantees
from landlane.sandbox.start import choose_backend
from landlane.sessions.sandbox_runs import (
    is_at_hand,
    list_ended,
    list_running,
    tree_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.sandbox_runs import Run


def look_at_kernel(repo: Repository, is_fixing: bool) -> Finding:
    """What holds `landlane exec` and workers on this machine."""
    del is_fixing  # no program can mend a kernel
    backend = choose_backend()
    # A worker that must reach the resident, and nothing else of this machine.
    sandbox = Sandbox(
        writable=(), scratch="/scratch", hidden=("/state",), sockets_visible=("/state/s",), udp=False
    )
    held = list_guarantees(backend, sandbox)
    try:
        require_guarantees(held, repo.settings.sandbox.required, backend)
    except LandlaneError as error:
        return Finding(is_ok=False, found=error.message, hint=error.hint)
    missing = [one.promise for one in held if one.state == OPEN]
    open_ones = f"; open: {', '.join(missing)}" if missing else ""
    return Finding(
        is_ok=True,
        found=f"{backend.name}, for what `landlane exec` starts{open_ones}",
        hint=" ".join(backend.reasons),
        is_enforced=backend.name != NONE,
    )


def _surviving(repo: Repository) -> list[tuple[Run, int]]:
    """Runs that are over and of which processes live all the same, with how many bear their mark."""
    marked = count_marked()
    if not marked:
        return []
    ended = [run for run in list_ended(repo) if run.tree["id"] in marked]
    mine = [run for run in ended if is_at_hand(repo, run, repo.common_dir, os.geteuid())]
    marked = count_marked() if mine else {}  # once more: one may have ended while we looked
    return [(run, marked[run.tree["id"]]) for run in mine if run.tree["id"] in marked]


def _end_surviving(repo: Repository) -> list[str]:
    survivors = [(run, end_processes(tree_of(run))) for run, _ in _surviving(repo)]
    return [f"{count} left of {run.id} of {run.agent}, which is over, ended" for run, count in survivors]


def look_at_runs(repo: Repository, is_fixing: bool) -> Finding:
    """Commands in sandboxes whose starter was killed or that left processes behind, for the doctor."""
    done = [*end_abandoned_runs(repo), *_end_surviving(repo)] if is_fixing else []
    left, survivors = find_abandoned_runs(repo), _surviving(repo)
    found: list[str] = []
    if left:
        named = ", ".join(f"{run.id} of {run.agent}" for run in left[:5])
        found.append(f"{len(left)} left by a starter that was killed: {named}")
    if survivors:
        named = ", ".join(f"{count} of {run.id} of {run.agent}" for run, count in survivors[:5])
        found.append(f"processes live of runs that are over: {named}")
    if found:
        hint = "`landlane doctor --fix` ends what goes on of them, and removes their scratch"
        hint = f"end them by hand: they bear {TREE_MARK} in their environment" if is_fixing else hint
        return Finding(is_ok=False, found="; ".join([*done, *found]), hint=hint)
    if done:
        is_ok = not any("cannot be cleared" in line for line in done)
        return Finding(is_ok=is_ok, found="; ".join(done), hint="" if is_ok else "end them by hand")
    count = len(list_running(repo))
    return Finding(is_ok=True, found=f"{count} running, each with its starter" if count else "none")
