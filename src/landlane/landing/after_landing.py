"""Clean up after a landing: close the workspace, delete the branch and the temporary ref.

Workspaces and branches are local to a clone. So each clone cleans up after the entries that were submitted in
it, with its next command about workspaces or the queue, no matter which machine moved the target.
"""

from __future__ import annotations

import os
import time

from landlane.errors import LandlaneError, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git import temporary_refs
from landlane.git.ancestry import is_ancestor
from landlane.git.run import run_in
from landlane.git.target import commit_at, commits_at, fetch_target, find_target
from landlane.landing import records
from landlane.landing.forward_checkouts import forward_checkouts, update_local_target
from landlane.landing.model import BOUNCED, EJECTED, LANDED
from landlane.platform.file_users import processes_in
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import LANDING, REPORTED, REVIEW, WAITING, NewTask, branch_of
from landlane.tasks.records import list_tasks
from landlane.workspaces import records as workspace_records
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


_MAX_NAMED = 100  # landings listed in one integration task
_MAX_LINE_CHARS = 300
_CLOSE_SECONDS = 15.0  # to wait for another process that closes a workspace
_POLL_SECONDS = 0.05
_SHARED_STATES = (REPORTED, REVIEW, LANDING, WAITING)  # of tasks that another machine may continue


def is_submitted_here(repo: Repository, landing: Landing) -> bool:
    """Return whether an entry was submitted in this clone on this machine."""
    return landing.machine == repo.processes.machine and landing.home == repo.common_dir


def clean_up_here(repo: Repository) -> None:
    """Clean up after entries of this clone that other processes landed."""
    if any(is_submitted_here(repo, landing) for landing in records.list_unsettled(repo)):
        clean_up_landed(repo, find_target(repo.home, repo.settings))
    _drop_unneeded_verified(repo)


def clean_up_landed(repo: Repository, target: TargetBranch) -> None:
    """Clean up after all entries of this clone that have landed; safe to repeat."""
    notes: dict[str, list[str]] = {}
    heads: list[str] = []
    give_up_at = time.monotonic() + _CLOSE_SECONDS  # for all of them together: a queue runner has a lease
    for landing in records.list_unsettled(repo):
        if landing.target != target.branch or not is_submitted_here(repo, landing):
            continue
        if not _fetch_landed(repo, target, landing):
            break  # the remote does not answer: the next command tries again
        notes[landing.id] = _close_workspaces(repo, landing, give_up_at)
        _delete_attempt_branch(repo, landing)
        heads.append(landing.head)
    if notes:
        in_use = {landing.head for landing in records.list_landings(repo)}
        unused = [head for head in heads if head not in in_use]
        temporary_refs.drop_submitted(
            repo.home, target, *unused, is_shared=repo.store.is_shared, is_over=True
        )
        records.mark_settled(repo, notes)


def _fetch_landed(repo: Repository, target: TargetBranch, landing: Landing) -> bool:
    """Fetch what another machine landed and update the checkouts of the target; False if that fails."""
    home = repo.home
    if not target.remote or is_ancestor(home, landing.commit, target.ref):
        return True
    if not is_ancestor(home, landing.commit, target.remote_ref) and fetch_target(home, target):
        return False
    tip = commit_at(repo.home, target.remote_ref)
    for note in forward_checkouts(repo.home, target, "", tip):
        repo.report(note)
    update_local_target(repo.home, target, tip)
    return True


def _close_workspaces(repo: Repository, landing: Landing, give_up_at: float) -> list[str]:
    """Close the workspaces of the landed branch, unless processes run in them; return notes about each."""
    return [
        _close(repo, workspace, give_up_at)
        for workspace in workspace_records.list_workspaces(repo)
        if workspace.branch == landing.branch
        and workspace.state in (WORKSPACE_OPEN, CLOSING)
        and workspace_records.is_here(repo, workspace, repo.common_dir)
    ]


def _close(repo: Repository, workspace: Workspace, give_up_at: float) -> str:
    """Close a workspace, or wait until another process has closed it; return a note about the outcome."""
    current: Workspace | None = workspace
    while current is not None and current.state in (WORKSPACE_OPEN, CLOSING):
        try:
            if not _is_being_closed(repo, current):  # else the processes in it may be those that close it
                users = [pid for pid, _ in processes_in(current.path, include_own=True) if pid != os.getpid()]
                if users:
                    return f"{current.id} stays open: process {users[0]} is in it"
                closed = close_workspace(repo, None, current, force=True)
                saved = f", the rest of it saved as {closed.rescue}" if closed.rescue else ""
                return f"{current.id} is closed{saved}"
            trouble = "another process is closing it"
        except (LandlaneError, OSError) as error:
            if getattr(error, "code", "") != "WORKSPACE_BUSY":
                return f"{current.id} stays: {error}"
            trouble = str(error)
        if time.monotonic() >= give_up_at:
            return f"{current.id} stays: {trouble}"
        time.sleep(_POLL_SECONDS)
        current = workspace_records.find(repo, workspace.id)
    return f"{workspace.id} is closed"


def _is_being_closed(repo: Repository, workspace: Workspace) -> bool:
    """Return whether a live process closes it: another one, or another thread of this one."""
    if workspace.state != CLOSING:
        return False
    is_own = workspace_records.is_own(repo, workspace)
    return is_own or not workspace_records.is_abandoned(repo, workspace)


def _delete_attempt_branch(repo: Repository, landing: Landing) -> None:
    """Delete the branch of a worker that had no workspace, if its head is what landed."""
    ref = f"refs/heads/{landing.branch}"
    is_task_branch = landing.task and landing.branch == branch_of(landing.task, landing.attempt)
    if not is_task_branch or commit_at(repo.home, ref) != landing.head:
        return
    is_workers = any(attempt.attempt == landing.attempt for attempt in attempts_of(repo, landing.task))
    has_workspace = any(w.branch == landing.branch for w in workspace_records.list_workspaces(repo))
    if is_workers and not has_workspace and not is_checked_out(repo.home, landing.branch):
        checkouts.delete_branch(repo.home, landing.branch, landing.head)


def delete_entry_ref(repo: Repository, target: TargetBranch, landing: Landing) -> None:
    """Delete the temporary ref of an ended entry, unless another entry has the same head.

    If the entry did not land, the ref stays on the remote until the clone that submitted it has its branch.
    """
    if any(other.head == landing.head for other in records.list_landings(repo)):
        return
    is_here = is_submitted_here(repo, landing)
    if is_here and landing.state != LANDED:
        restore_branch(repo, landing)
    is_remote_ours = repo.store.is_shared and (is_here or landing.state == LANDED)
    temporary_refs.drop_submitted(repo.home, target, landing.head, is_shared=is_remote_ours, is_over=True)


def restore_branch(repo: Repository, landing: Landing) -> None:
    """Create the branch of an entry again if it was deleted meanwhile."""
    ref = f"refs/heads/{landing.branch}"
    existing = run_in(repo.home, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if is_submitted_here(repo, landing) and existing.exit_code:
        run_in(repo.home, "update-ref", ref, landing.head, "0" * len(landing.head))


def repair_submitted_refs(repo: Repository, target: TargetBranch) -> None:
    """Delete temporary refs without an entry, and write those that entries lack, after an interruption."""
    kept = set(temporary_refs.list_submitted(repo.home))
    entries = records.list_landings(repo)
    heads = {landing.head for landing in entries}
    unused = sorted(kept - heads)
    # Usually there are none: then the ended entries, more every day, need not be read.
    ended = records.list_landings(repo, (BOUNCED, EJECTED, LANDED)) if unused else []
    ended_by_head = {landing.head: landing for landing in ended}
    for head in unused:
        if head in ended_by_head:
            delete_entry_ref(repo, target, ended_by_head[head])
        else:  # the process that submitted it was killed before it added the entry
            temporary_refs.drop_submitted(repo.home, target, head, is_shared=repo.store.is_shared)
    for landing in entries:
        if landing.head not in kept and is_submitted_here(repo, landing):
            try:
                temporary_refs.keep_submitted(repo.home, target, landing.head, is_shared=repo.store.is_shared)
            except LandlaneError as error:
                repo.report(error.message)
    _drop_unneeded_verified(repo)
    if repo.store.is_shared and target.remote:
        _share_verified_again(repo, target, heads)


def _drop_unneeded_verified(repo: Repository) -> None:
    """Delete the refs of verified commits that have landed since or were rejected."""
    shared = temporary_refs.list_verified(repo.home) if repo.store.is_shared else []
    if not shared:
        return
    tasks = list_tasks(repo, _SHARED_STATES)
    # A commit is shared before its task records it as the head.
    tips = commits_at(repo.home, [f"refs/heads/{task.branch}" for task in tasks])
    gone = set(shared) - {task.head for task in tasks} - set(tips.values())
    if not gone:
        return
    for landing in records.list_landings(repo, (LANDED,)):
        if landing.head in gone:
            _delete_attempt_branch(repo, landing)  # another machine landed it
    temporary_refs.drop_verified(repo.home, find_target(repo.home, repo.settings), *sorted(gone))


def _share_verified_again(repo: Repository, target: TargetBranch, entered: Collection[str]) -> None:
    """Share verified commits that could not be pushed while the remote was unreachable."""
    shared = {*temporary_refs.list_verified(repo.home), *entered}
    tasks = [task for task in list_tasks(repo, (REVIEW, LANDING)) if task.head and task.head not in shared]
    tips = commits_at(repo.home, [f"refs/heads/{task.branch}" for task in tasks])
    for task in tasks:
        if tips.get(f"refs/heads/{task.branch}") != task.head:
            continue
        try:
            if not temporary_refs.share_verified(repo.home, target, task.head):
                return  # the remote is still unreachable: the next run tries again
        except RepositoryError:
            return


def open_integration_task(repo: Repository, target: TargetBranch, settings: Settings) -> None:
    """Open a task that checks all recent landings together, if the target's settings ask for it."""
    integration = settings.landing.integrate
    if integration is None:
        return
    if integration.after == "wave" and any(
        landing.target == target.branch for landing in records.list_landings(repo)
    ):
        return
    landed = records.list_unintegrated(repo, target.branch)
    if not landed:
        return
    tip = records.get_queue(repo, target.branch).tip
    # If the setting is new, everything that ever landed is unintegrated: list the latest.
    latest = landed[-_MAX_NAMED:]
    lines = "\n".join(f"- {entry.id} {entry.branch}: {entry.subject}"[:_MAX_LINE_CHARS] for entry in latest)
    more = f"\nand {len(landed) - len(latest)} more before them" if len(landed) > len(latest) else ""
    new = NewTask(
        title=f"{integration.title} ({tip[:12]})",
        body=f"What landed on {target.branch}:\n{lines}{more}\n",
        role=integration.role,
        check=integration.check,
        key=f"integrate/{tip}",
        labels=("integration",),
    )
    # The task first: its key prevents a second one if this process is killed in between.
    from landlane.tasks.add import add_task  # noqa: PLC0415 - few settings ask for such tasks

    add_task(repo, None, new, force=True)
    records.mark_integrated(repo, [landing.id for landing in landed])
