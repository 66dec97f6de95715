"""Check the sandbox: what enforces it here, what is open, and whether sandboxed runs were abandoned."""

from __future__ import annotations

import os

from landlane.doctor.check import Check, failed, fixed, passed
from landlane.errors import LandlaneError
from landlane.exec.cleanup import end_abandoned_runs, end_processes, find_abandoned_runs
from landlane.processes.tree import TREE_MARK, count_marked
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import BackendKind, GuaranteeState, Promise, Sandbox, require_guarantees
from landlane.sandbox.sandboxed_check import describe_confinement
from landlane.sandbox.start import choose_backend
from landlane.sessions.sandbox_runs import RunState, can_clean_up, list_runs
from landlane.units import join_words
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sandbox.model import Backend
    from landlane.sessions.sandbox_runs import Run


_NAMES = {
    BackendKind.BUBBLEWRAP_LANDLOCK: "bubblewrap and Landlock {abi}",
    BackendKind.BUBBLEWRAP: "bubblewrap",
    BackendKind.LANDLOCK: "Landlock {abi}",
    BackendKind.NONE: "none: commands run without a sandbox",
}
_OPEN = {Promise.SOCKETS: "unix sockets"}


def check_kernel(repo: Repository, is_fixing: bool) -> Check:
    """Check what confines `landlane exec` and workers on this machine."""
    del is_fixing  # the kernel cannot be repaired
    backend = choose_backend()
    # A worker that must reach the resident, and nothing else of this machine.
    settings = repo.settings
    sandbox = Sandbox(
        writable=(),
        scratch="/scratch",
        hidden=("/state",),
        unix_sockets=settings.sandbox.unix_sockets,
        udp=False,
    )
    held = list_guarantees(backend, sandbox)
    try:
        require_guarantees(held, repo.settings.sandbox.required, backend)
    except LandlaneError as error:
        return failed(error.message, error.hint)
    missing = _open_promises(backend, sandbox)
    found = _NAMES[backend.name].format(abi=backend.landlock_abi)
    if missing:
        both = replace(backend, name=BackendKind.BUBBLEWRAP_LANDLOCK)
        is_better = backend.name == BackendKind.LANDLOCK and not _open_promises(both, sandbox)
        better = " (bubblewrap would)" if is_better else ""
        verb = "is" if len(missing) == 1 else "are"
        found += f"; {join_words([_OPEN.get(one, one) for one in missing])} {verb} not restricted{better}"
    agents = sorted(name for name, agent in settings.agents.items() if agent.unix_sockets)
    if settings.sandbox.unix_sockets or agents:
        who = "all agents" if settings.sandbox.unix_sockets else join_words(agents)
        found += f"; unix sockets are open to {who}: programs that listen there run commands outside"
    found += f"; checks: {describe_confinement(settings, backend)}"
    return passed(found, " ".join(backend.reasons), is_enforced=backend.name != BackendKind.NONE)


def _open_promises(backend: Backend, sandbox: Sandbox) -> list[Promise]:
    return [one.promise for one in list_guarantees(backend, sandbox) if one.state == GuaranteeState.OPEN]


def _surviving(repo: Repository) -> list[tuple[Run, int]]:
    """Return ended runs with processes that are still alive, and the number of those processes."""
    marked = count_marked()
    if not marked:
        return []
    ended = [run for run in list_runs(repo, RunState.ENDED) if run.tree.id in marked]
    mine = [run for run in ended if can_clean_up(repo, run, repo.common_dir, os.geteuid())]
    marked = count_marked() if mine else {}  # again, because one may have ended in the meantime
    return [(run, marked[run.tree.id]) for run in mine if run.tree.id in marked]


def _end_surviving(repo: Repository) -> list[str]:
    survivors = [(run, end_processes(run.tree)) for run, _ in _surviving(repo)]
    return [f"ended {count} processes left by {run.id} of {run.agent}" for run, count in survivors]


def check_runs(repo: Repository, is_fixing: bool) -> Check:
    """Check for sandboxed commands whose starter was killed, or that left processes behind."""
    done = [*end_abandoned_runs(repo), *_end_surviving(repo)] if is_fixing else []
    left, survivors = find_abandoned_runs(repo), _surviving(repo)
    found: list[str] = []
    if left:
        named = ", ".join(f"{run.id} of {run.agent}" for run in left[:5])
        found.append(f"{len(left)} whose starter was killed: {named}")
    if survivors:
        named = ", ".join(f"{count} of {run.id} of {run.agent}" for run, count in survivors[:5])
        found.append(f"processes left by runs that have ended: {named}")
    if found:
        hint = "end them and remove their scratch folders: landlane doctor --fix"
        hint = f"end them by hand; they have {TREE_MARK} in their environment" if is_fixing else hint
        return failed("; ".join([*done, *found]), hint)
    if done:
        if any("cannot be cleared" in line for line in done):
            return failed("; ".join(done), "end them by hand")
        return fixed("; ".join(done))
    count = len(list_runs(repo, RunState.RUNNING))
    return passed(f"{count} running, each with its starter" if count else "none")
