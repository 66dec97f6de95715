"""After a landing: update the checkouts of the target branch, close workspaces, delete branches and refs.

Checkouts with local changes are left alone. Workspaces and branches are local to a clone. So each clone
cleans up after the entries that were submitted in it, with its next command about workspaces or the queue, no
matter which machine moved the target.
"""

from __future__ import annotations

import os
import time

from landlane.errors import LandlaneError, RepositoryError
from landlane.files import read_first_line
from landlane.git import create_checkout as checkouts
from landlane.git.commits import is_ancestor
from landlane.git.discovery import Checkout
from landlane.git.lock import git_lock, wait_for_locks
from landlane.git.remove_checkout import list_worktrees
from landlane.git.run import resolve_revision, run_git, run_in, try_git_output
from landlane.git.target import (
    commit_at,
    commits_at,
    drop_submitted,
    drop_verified,
    fetch_target,
    find_target,
    keep_submitted,
    list_submitted,
    list_verified,
    share_verified,
)
from landlane.git.tree_diff import find_untracked_in_the_way, is_reachable
from landlane.landing import records
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
    from collections.abc import Callable, Collection

    from landlane.git.target import TargetBranch
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.settings.model import Settings
    from landlane.workspaces.model import Workspace


_PLAIN_FILES = ("000000", "100644", "100755")


def forward_checkouts(
    home: Checkout, target: TargetBranch, before: str, after: str, on_tick: Callable[[], None] | None = None
) -> list[str]:
    """Move clean checkouts of the target branch forward; return notes about those that are not clean.

    A checkout with changes keeps its files and index. Only its HEAD is set to the commit that its files are
    based on: otherwise its next commit would revert everything that landed.
    """
    notes: list[str] = []
    roots: list[Checkout] = []
    if home.root != home.common_dir:  # else it is bare and has no files
        roots.append(Checkout(root=home.root, git_dir=home.common_dir, common_dir=home.common_dir))
    roots += [
        Checkout(root=root, git_dir=git_dir, common_dir=home.common_dir)
        for git_dir, root in list_worktrees(home)
    ]
    for checkout in roots:
        if os.path.isdir(checkout.root) and _head_ref(checkout.git_dir) == target.ref:
            with git_lock(home.common_dir, f"move {checkout.root} forward", on_tick=on_tick):
                note = _forward_checkout(checkout, target, before, after)
            if note:
                notes.append(note)
    return notes


def _head_ref(git_dir: str) -> str:
    return read_first_line(os.path.join(git_dir, "HEAD")).strip().removeprefix("ref: ")


def _forward_checkout(checkout: Checkout, target: TargetBranch, before: str, after: str) -> str:
    if try_git_output(checkout, "rev-parse", "--is-bare-repository") == "true":
        return ""
    try:
        wait_for_locks(checkout)  # a git process of a killed client may still be running
    except RepositoryError as error:
        return _leave_alone(checkout, target, before, after, error.message)
    if target.remote:  # only the remote's branch has moved: fast-forward this one if it is behind
        return _fast_forward(checkout, target, after)
    # The branch may have moved again since: HEAD already refers to its current tip.
    after = commit_at(checkout, target.ref) or after
    if not run_in(checkout, "diff-index", "--cached", "--quiet", after).exit_code and _is_clean(checkout):
        return ""  # already forwarded
    trouble = _find_obstacle(checkout, before, after)
    is_as_before = not run_in(checkout, "diff-index", "--cached", "--quiet", before).exit_code
    if not trouble and is_as_before and _is_clean(checkout):
        moved = run_in(checkout, "read-tree", "-m", "-u", before, after)
        if not moved.exit_code:
            return ""
        trouble = moved.stderr  # an untracked file is in the way, or a file is locked
    if _finish_interrupted(checkout, before, after):
        return ""
    return _leave_alone(checkout, target, before, after, trouble)


def _find_obstacle(checkout: Checkout, before: str, after: str) -> str:
    try:
        untracked = find_untracked_in_the_way(checkout, before, after) if before else []
    except RepositoryError as error:
        return error.message
    return f"{untracked[0]} lies there without being under version control" if untracked else ""


def _is_clean(checkout: Checkout) -> bool:
    run_git("update-index", "-q", "--refresh", cwd=checkout.root)
    return not run_in(checkout, "diff-files", "--quiet").exit_code


def _finish_interrupted(checkout: Checkout, before: str, after: str) -> bool:
    """Finish an update that a killed git left half done; return whether that worked."""
    if not _is_interrupted(checkout, before, after):
        return False
    return not run_in(checkout, "read-tree", "--reset", "-u", after).exit_code


def _is_interrupted(checkout: Checkout, before: str, after: str) -> bool:
    """Return whether every file is as in one of two commits, as after an interrupted update between them."""
    if all(
        run_in(checkout, "diff-index", "--cached", "--quiet", commit).exit_code for commit in (before, after)
    ):
        return False  # there are staged changes
    fields = try_git_output(checkout, "diff-tree", "-r", "-z", "--no-renames", before, after).split("\0")
    between = {path: entry.split() for entry, path in zip(fields[::2], fields[1::2], strict=False)}
    dirty = try_git_output(checkout, "diff-files", "-z", "--name-only").split("\0")
    if any(path and path not in between for path in dirty):
        return False
    ours = frozenset(between)
    return all(
        is_reachable(checkout.root, path, ours) and _matches_either(checkout, path, entry)
        for path, entry in between.items()
    )


def _matches_either(checkout: Checkout, path: str, entry: list[str]) -> bool:
    """Return whether a file is as on one side of an entry of `git diff-tree`."""
    modes, blobs = [entry[0].lstrip(":"), entry[1]], entry[2:4]
    file = os.path.join(checkout.root, path)
    if not os.path.lexists(file):
        return "000000" in modes
    if os.path.islink(file) or not os.path.isfile(file) or any(mode not in _PLAIN_FILES for mode in modes):
        return False
    return try_git_output(checkout, "hash-object", "--", path) in blobs


def _leave_alone(checkout: Checkout, target: TargetBranch, before: str, after: str, why: str = "") -> str:
    if not target.remote:
        run_in(checkout, "update-ref", "--no-deref", "-m", "landlane: left alone", "HEAD", before)
    lines = [line.strip() for line in why.splitlines() if line.strip() and line.strip() != "Aborting"]
    reason = " ".join(lines[:3]).removeprefix("error: ").rstrip(".") or "it has changes of its own"
    if target.remote:
        return f"{checkout.root} was left alone: {reason}; git pull brings it to {after[:12]}"
    return (
        f"{checkout.root} was left alone: {reason}. It stands on {before[:12]}, off {target.branch};"
        f" `git switch {target.branch}` brings it to {after[:12]}"
    )


def _fast_forward(checkout: Checkout, target: TargetBranch, after: str) -> str:
    now = try_git_output(checkout, "rev-parse", "HEAD")
    if is_ancestor(checkout, after, now):
        return ""
    if not is_ancestor(checkout, now, after):
        return (
            f"{checkout.root} was left alone: {target.branch} there has commits that {target.remote} has not"
        )
    trouble = _find_obstacle(checkout, now, after)
    is_as_before = not run_in(checkout, "diff-index", "--cached", "--quiet", "HEAD").exit_code
    if not trouble and is_as_before and _is_clean(checkout):
        merged = run_git("merge", "--ff-only", "--quiet", "--no-verify", after, cwd=checkout.root)
        if not merged.exit_code:
            return ""
        trouble = merged.stderr or "git refused"
    if _finish_interrupted(checkout, now, after):
        run_in(checkout, "update-ref", "-m", "landlane: landed", "HEAD", after, now)
        return ""
    return _leave_alone(checkout, target, now, after, trouble)


def update_local_target(home: Checkout, target: TargetBranch, after: str) -> None:
    """Fast-forward a local target branch that is not checked out to the remote's commit."""
    now = commit_at(home, target.ref)
    if not target.remote or now == after:
        return
    with git_lock(home.common_dir, f"follow {target.branch}"):
        git_dirs = [home.common_dir, *(git_dir for git_dir, _ in list_worktrees(home))]
        is_checked_out = any(_head_ref(git_dir) == target.ref for git_dir in git_dirs)
        is_behind = not now or is_ancestor(home, now, after)
        if not is_checked_out and is_behind:
            run_in(home, "update-ref", "-m", "landlane: landed", target.ref, after, now or "")


_INTEGRATION = "integration"  # the label of integration tasks
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
        drop_submitted(repo.home, target, *unused, is_shared=repo.store.is_shared, is_over=True)
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
        for workspace in workspace_records.list_local(repo, (WORKSPACE_OPEN, CLOSING))
        if workspace.branch == landing.branch
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
    is_own = workspace_records.is_in_this_process(repo, workspace)
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
    if is_here and landing.state != LANDED:  # its branch may have been deleted meanwhile
        ref = f"refs/heads/{landing.branch}"
        if not resolve_revision(repo.home, f"{ref}^{{commit}}"):
            run_in(repo.home, "update-ref", ref, landing.head, "0" * len(landing.head))
    is_remote_ours = repo.store.is_shared and (is_here or landing.state == LANDED)
    drop_submitted(repo.home, target, landing.head, is_shared=is_remote_ours, is_over=True)


def repair_submitted_refs(repo: Repository, target: TargetBranch) -> None:
    """Delete temporary refs without an entry, and write those that entries lack, after an interruption."""
    kept = set(list_submitted(repo.home))
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
            drop_submitted(repo.home, target, head, is_shared=repo.store.is_shared)
    for landing in entries:
        if landing.head not in kept and is_submitted_here(repo, landing):
            try:
                keep_submitted(repo.home, target, landing.head, is_shared=repo.store.is_shared)
            except LandlaneError as error:
                repo.report(error.message)
    _drop_unneeded_verified(repo)
    if repo.store.is_shared and target.remote:
        _share_verified_again(repo, target, heads)


def _drop_unneeded_verified(repo: Repository) -> None:
    """Delete the refs of verified commits that have landed since or were rejected."""
    shared = list_verified(repo.home) if repo.store.is_shared else []
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
    drop_verified(repo.home, find_target(repo.home, repo.settings), *sorted(gone))


def _share_verified_again(repo: Repository, target: TargetBranch, entered: Collection[str]) -> None:
    """Share verified commits that could not be pushed while the remote was unreachable."""
    shared = {*list_verified(repo.home), *entered}
    tasks = [task for task in list_tasks(repo, (REVIEW, LANDING)) if task.head and task.head not in shared]
    tips = commits_at(repo.home, [f"refs/heads/{task.branch}" for task in tasks])
    for task in tasks:
        if tips.get(f"refs/heads/{task.branch}") != task.head:
            continue
        try:
            if not share_verified(repo.home, target, task.head):
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
    unseen = records.list_unintegrated(repo, target.branch)
    own = {task.id for task in list_tasks(repo) if _INTEGRATION in task.labels} if unseen else set[str]()
    landed = [landing for landing in unseen if landing.task not in own]
    if not landed:  # what an integration task fixed opens no further one
        if unseen:
            records.mark_integrated(repo, [landing.id for landing in unseen])
        return
    tip = records.get_queue(repo, target.branch).tip
    # If the setting is new, everything that ever landed is unintegrated: list the latest.
    latest = landed[-_MAX_NAMED:]
    lines = "\n".join(f"- {entry.id} {entry.branch}: {entry.subject}"[:_MAX_LINE_CHARS] for entry in latest)
    more = f"\nand {len(landed) - len(latest)} more before them" if len(landed) > len(latest) else ""
    new = NewTask(
        title=f"{integration.title} ({tip[:12]})",
        body=f"What landed on {target.branch}:\n{lines}{more}\n",
        kind=integration.kind,
        role=integration.role,
        check=integration.check,
        key=f"integrate/{tip}",
        labels=(_INTEGRATION,),
    )
    # The task first: its key prevents a second one if this process is killed in between.
    from landlane.tasks.add import add_task  # noqa: PLC0415 - few settings ask for such tasks

    add_task(repo, None, new, force=True)
    records.mark_integrated(repo, [landing.id for landing in unseen])
