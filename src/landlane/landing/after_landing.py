"""Clean up after a landing: close the workspace, delete the branch and its pin.

A workspace and a branch can only be seen to where they lie. So each clone does what follows for what was
submitted in it, with its next command about workspaces or the queue, whoever moved the target.
"""

from __future__ import annotations

import os
import time

from landlane.errors import LandlaneError, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git import pins
from landlane.git.run import run_in
from landlane.git.target import commit_at, commits_at, fetch_target, find_target
from landlane.landing import move_target as advancing
from landlane.landing import records as operations
from landlane.landing.forward_checkouts import follow_locally, forward_checkouts
from landlane.landing.model import BOUNCED, EJECTED, LANDED
from landlane.platform.file_users import processes_in
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import LANDING, REPORTED, REVIEW, WAITING, NewTask, branch_of
from landlane.tasks.records import list_tasks
from landlane.workspaces import records as workspace_operations
from landlane.workspaces.close import close_workspace, is_checked_out
from landlane.workspaces.model import CLOSING
from landlane.workspaces.model import OPEN as WORKSPACE_OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from landlane.git.target import TargetBranch
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.settings.model import Settings
    from landlane.workspaces.model import Workspace


_MOST_NAMED = 100  # landings in one task for the whole
_LONGEST_NAME = 300
_CLOSING_SECONDS = 15.0  # that another process may need to close a workspace
_LOOK_SECONDS = 0.05
_SHARED_STATES = (REPORTED, REVIEW, LANDING, WAITING)  # of tasks whose work another machine may go on with


def is_from_here(repo: Repository, landing: Landing) -> bool:
    """Whether an entry was submitted in this very clone on this very machine."""
    return landing.machine == repo.processes.machine and landing.home == repo.common_dir


def is_checkout_root(folder: str) -> bool:
    """Whether a folder is the root of a checkout; one that is not on this machine is believed to be."""
    return os.path.lexists(os.path.join(folder, ".git")) or not os.path.isdir(folder)


def settle_here(repo: Repository) -> None:
    """Do what is left to do here after landings that others made; for commands that come along."""
    if any(is_from_here(repo, one) for one in operations.list_unsettled(repo)):
        settle_landed(repo, find_target(repo.home, repo.settings))
    _unshare_over(repo)


def settle_landed(repo: Repository, target: TargetBranch) -> None:
    """Do what follows for everything that has landed and was submitted here; all of it can be done again."""
    settled: list[Landing] = []
    notes: dict[str, list[str]] = {}
    give_up_at = time.monotonic() + _CLOSING_SECONDS  # for all of them: who runs the queue has a lease
    for landing in operations.list_unsettled(repo):
        if landing.target != target.branch or not is_from_here(repo, landing):
            continue
        if not _follow(repo, target, landing):
            break  # the remote cannot be asked now: another time
        notes[landing.id] = _close_workspaces(repo, landing, give_up_at)
        _drop_branch(repo, landing)
        settled.append(landing)
    if settled:
        in_use = {one.head for one in operations.list_landings(repo)}
        heads = [one.head for one in settled if one.head not in in_use]
        pins.unpin_submitted(repo.home, target, *heads, is_shared=repo.store.is_shared, is_over=True)
        operations.settle(repo, [(one.id, notes[one.id]) for one in settled])


def _follow(repo: Repository, target: TargetBranch, landing: Landing) -> bool:
    """Have here what another machine landed, and let the checkouts of the target follow."""
    home = repo.home
    if not target.remote or advancing.is_in(home, landing.commit, target.ref):
        return True
    if not advancing.is_in(home, landing.commit, target.remote_ref) and fetch_target(home, target):
        return False
    tip = commit_at(repo.home, target.remote_ref)
    for note in forward_checkouts(repo.home, target, "", tip):
        repo.report(note)
    follow_locally(repo.home, target, tip)
    return True


def _close_workspaces(repo: Repository, landing: Landing, give_up_at: float) -> list[str]:
    """Close the workspace that the work was done in, unless somebody is still in it."""
    notes: list[str] = []
    for one in workspace_operations.list_workspaces(repo):
        is_ours = one.branch == landing.branch and one.state in (WORKSPACE_OPEN, CLOSING)
        if is_ours and workspace_operations.is_here(repo, one, repo.common_dir):
            notes.append(_close(repo, one, give_up_at))
    return notes


def _close(repo: Repository, workspace: Workspace, give_up_at: float) -> str:
    """Close a workspace, or see another to the end of it: who waited for a landing finds it gone."""
    seen: Workspace | None = workspace
    while seen is not None and seen.state in (WORKSPACE_OPEN, CLOSING):
        try:
            if not _is_being_closed(repo, seen):  # else the processes in it may be those that close it
                inside = [pid for pid, _ in processes_in(seen.path, include_own=True) if pid != os.getpid()]
                if inside:
                    return f"{seen.id} stays open: process {inside[0]} is in it"
                closed = close_workspace(repo, None, seen, force=True)
                saved = f", the rest of it saved as {closed.rescue}" if closed.rescue else ""
                return f"{seen.id} is closed{saved}"
            trouble = "another process is closing it"
        except (LandlaneError, OSError) as error:
            if getattr(error, "code", "") != "WORKSPACE_BUSY":
                return f"{seen.id} stays: {error}"
            trouble = str(error)
        if time.monotonic() >= give_up_at:
            return f"{seen.id} stays: {trouble}"
        time.sleep(_LOOK_SECONDS)
        seen = workspace_operations.find(repo, workspace.id)
    return f"{workspace.id} is closed"


def _is_being_closed(repo: Repository, workspace: Workspace) -> bool:
    """Whether somebody is at it who lives: another process, or another thread of this one."""
    if workspace.state != CLOSING:
        return False
    is_own = workspace_operations.is_own(repo, workspace)
    return is_own or not workspace_operations.is_forsaken(repo, workspace)


def _drop_branch(repo: Repository, landing: Landing) -> None:
    """Delete a branch that was made for a worker without a workspace, once all that is on it has landed."""
    ref = f"refs/heads/{landing.branch}"
    is_tasks = landing.task and landing.branch == branch_of(landing.task, landing.attempt)
    if not is_tasks or commit_at(repo.home, ref) != landing.head:
        return
    is_workers = any(one.attempt == landing.attempt for one in attempts_of(repo, landing.task))
    has_workspace = any(one.branch == landing.branch for one in workspace_operations.list_workspaces(repo))
    if is_workers and not has_workspace and not is_checked_out(repo.home, landing.branch):
        checkouts.delete_branch(repo.home, landing.branch, landing.head)


def let_go(repo: Repository, target: TargetBranch, landing: Landing) -> None:
    """Take the pin of an ended entry away, unless another entry has the same head.

    What did not land is kept on the remote until the clone that it came from has seen to its branch.
    """
    if any(one.head == landing.head for one in operations.list_landings(repo)):
        return
    is_here = is_from_here(repo, landing)
    if is_here and landing.state != LANDED:
        keep_branch(repo, landing)
    is_remote_ours = repo.store.is_shared and (is_here or landing.state == LANDED)
    pins.unpin_submitted(repo.home, target, landing.head, is_shared=is_remote_ours, is_over=True)


def keep_branch(repo: Repository, landing: Landing) -> None:
    """A branch that somebody deleted meanwhile comes back with what was submitted."""
    ref = f"refs/heads/{landing.branch}"
    there = run_in(repo.home, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if is_from_here(repo, landing) and there.exit_code:
        run_in(repo.home, "update-ref", ref, landing.head, "0" * len(landing.head))


def tidy_pins(repo: Repository, target: TargetBranch) -> None:
    """Put right what was cut off between a pin and its entry: one without the other, either way."""
    kept = set(pins.list_submitted(repo.home))
    entries = operations.list_landings(repo)
    left = sorted(kept - {one.head for one in entries})
    # Mostly nothing is left: then what has ended, which is more every day, need not be read.
    over = operations.list_landings(repo, (BOUNCED, EJECTED, LANDED)) if left else []
    ended = {one.head: one for one in over}
    for head in left:
        if head in ended:
            let_go(repo, target, ended[head])
        else:  # whoever submitted it was killed before it was entered
            pins.unpin_submitted(repo.home, target, head, is_shared=repo.store.is_shared)
    for one in entries:
        if one.head not in kept and is_from_here(repo, one):
            try:
                pins.pin_submitted(repo.home, target, one.head, is_shared=repo.store.is_shared)
            except LandlaneError as error:
                repo.report(error.message)
    _unshare_over(repo)
    if repo.store.is_shared and target.remote:
        _share_again(repo, target, {one.head for one in entries})


def _unshare_over(repo: Repository) -> None:
    """Let go of what was proved here and shared, and has landed since or gone back."""
    shared = pins.list_shared(repo.home) if repo.store.is_shared else []
    if not shared:
        return
    tasks = list_tasks(repo, _SHARED_STATES)
    # What is being proved just now is shared before its task has a head.
    tips = commits_at(repo.home, [f"refs/heads/{one.branch}" for one in tasks])
    gone = set(shared) - {one.head for one in tasks} - set(tips.values())
    if not gone:
        return
    for landing in operations.list_landings(repo, (LANDED,)):
        if landing.head in gone:
            _drop_branch(repo, landing)  # another machine landed what was made here
    pins.unshare_verified(repo.home, find_target(repo.home, repo.settings), *sorted(gone))


def _share_again(repo: Repository, target: TargetBranch, entered: Collection[str]) -> None:
    """Share what was proved here while the remote could not be reached."""
    shared = {*pins.list_shared(repo.home), *entered}
    left = [one for one in list_tasks(repo, (REVIEW, LANDING)) if one.head and one.head not in shared]
    tips = commits_at(repo.home, [f"refs/heads/{one.branch}" for one in left])
    for one in left:
        if tips.get(f"refs/heads/{one.branch}") != one.head:
            continue
        try:
            if not pins.share_verified(repo.home, target, one.head):
                return  # the remote is still not to be reached; whoever comes next tries again
        except RepositoryError:
            return


def integrate(repo: Repository, target: TargetBranch, settings: Settings) -> None:
    """Open a task for what only shows when everything is together; the settings are the target's."""
    wanted = settings.landing.integrate
    if wanted is None:
        return
    if wanted.after == "wave" and any(one.target == target.branch for one in operations.list_landings(repo)):
        return
    landed = operations.list_unintegrated(repo, target.branch)
    if not landed:
        return
    tip = operations.get_queue(repo, target.branch).tip
    # Where it was asked for only lately, all that ever landed is new to it: the latest matter.
    latest = landed[-_MOST_NAMED:]
    named = "\n".join(f"- {one.id} {one.branch}: {one.subject}"[:_LONGEST_NAME] for one in latest)
    more = f"\nand {len(landed) - len(latest)} more before them" if len(landed) > len(latest) else ""
    new = NewTask(
        title=f"{wanted.title} ({tip[:12]})",
        body=f"What landed on {target.branch}:\n{named}{more}\n",
        role=wanted.role,
        check=wanted.check,
        key=f"integrate/{tip}",
        labels=("integration",),
    )
    # The task first: found again by its key, it is not opened twice if we die in between.
    from landlane.tasks.add import add_task  # noqa: PLC0415 - few settings ask for such tasks

    add_task(repo, None, new, force=True)
    operations.mark_integrated(repo, [one.id for one in landed])
