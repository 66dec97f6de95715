"""What `init --undo` leaves, and its removal on request: only what holds no work that exists nowhere else."""

from __future__ import annotations

import contextlib
import os
import shutil

from landlane.app.open import open_repository
from landlane.claims.take import list_claims
from landlane.errors import LandlaneError, StoreError
from landlane.git.commits import is_merged
from landlane.git.create_checkout import delete_branch
from landlane.git.discovery import HOME_POINTER, find_checkout
from landlane.git.remove_checkout import list_worktrees
from landlane.git.run import run_in, try_git_output
from landlane.git.shared_config import GIT_LIMITS, list_own_limits, remove_own_limits, write_setting
from landlane.git.target import commits_at, find_target, target_tip
from landlane.git.target_settings import settings_in_force
from landlane.journal.git_copy import REF as JOURNAL_REF
from landlane.landing.model import OPEN as OPEN_LANDINGS
from landlane.landing.records import list_landings
from landlane.setup.plan import Kept, Purged, Remaining
from landlane.tasks.model import IN_PROGRESS
from landlane.tasks.records import list_tasks
from landlane.text import list_some
from landlane.units import join_words
from landlane.workers.returned.output import SAVED_FOLDER as RETURNED_FOLDER
from landlane.workspaces.close import close_workspace, is_checked_out
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.records import list_local, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository

# Only Landlane sets these limits to its values.
_LOCK_LIMITS = {"core.filesRefLockTimeout", "core.packedRefsTimeout"}
_MOST_NAMED = 5
_BRANCHES = "refs/heads/landlane/"
_OWN_REFS = "refs/landlane/"
# Commits that may exist nowhere else: saved work, and what workspaces kept.
_SAVED_REFS = tuple(f"{_OWN_REFS}{name}/" for name in ("rescue", "kept", "replaced", "brought", "breaches"))


def remaining_after_undo(cwd: str) -> Remaining:
    """Return what undo leaves: the state with its history, workspaces, branches, saved work, git settings."""
    checkout = find_checkout(cwd)
    home = checkout.home_checkout
    has_state = os.path.isdir(checkout.state_folder)
    entries, workspaces = 0, list[str]()
    with contextlib.suppress(StoreError):
        for repo in _opened(checkout) if has_state else ():
            rows = repo.store.view(lambda snapshot: snapshot.all("entry_count"))
            entries = sum(row["entries"] for row in rows)
            workspaces = [workspace.path for workspace in list_workspaces(repo)]
    has_git = bool(checkout.common_dir)
    others = [path for path, _ in _worktrees_on_own_branches(home)] if has_git else []
    return Remaining(
        folder=checkout.state_folder if has_state else "",
        entries=entries,
        workspaces=tuple(dict.fromkeys([*workspaces, *others])),
        branches=tuple(_list_refs(home, _BRANCHES)) if has_git else (),
        saved=sum(len(_list_refs(home, prefix)) for prefix in _SAVED_REFS) if has_git else 0,
        settings=tuple(_own_settings(home)) if has_git else (),
    )


def purge(cwd: str) -> Purged:
    """Remove what undo leaves, except what holds work that exists nowhere else or that is in use.

    Uncommitted work in a workspace is saved as a rescue first. Branches that are not merged, rescues and
    workspaces that cannot be removed stay, and are named. While work is under way, and when
    the store cannot be opened to find out, the state stays with the refs that it names.
    """
    checkout = find_checkout(cwd)
    home = checkout.home_checkout
    removed: list[str] = []
    kept: list[Kept] = []
    has_state = os.path.isdir(checkout.state_folder)
    in_use = _settle_state(checkout, removed, kept) if has_state else ""
    if checkout.common_dir:
        if not in_use:
            _remove_worktrees(home, removed, kept)
            _delete_branches(home, removed, kept)
        has_workspaces = any(one.kind == "workspace" for one in kept)
        if not in_use and not has_workspaces:
            _delete_refs(home)
            removed += _remove_settings(home)
        in_use = in_use or ("its workspaces are still here" if has_workspaces else "")
        if any(_list_refs(home, prefix) for prefix in (_SAVED_REFS if in_use else (_OWN_REFS,))):
            kept.append(Kept(kind="saved work", name=f"{_OWN_REFS}*", why="see it: landlane rescue list"))
    if has_state:
        why = in_use or _remove_state(checkout.state_folder)
        if why:
            kept.append(Kept(kind="state", name=checkout.state_folder, why=why))
        else:
            removed.append(checkout.state_folder)
    return Purged(removed=tuple(removed), kept=tuple(kept))


def _settle_state(checkout: Checkout, removed: list[str], kept: list[Kept]) -> str:
    """Close the workspaces that the state names; return why the state must stay, empty if it need not."""
    try:
        for repo in _opened(checkout):
            in_use = _why_in_use(repo)
            if checkout.common_dir:
                _close_workspaces(repo.require_git(), removed, kept)
            return in_use
    except StoreError as error:
        return f"its store cannot be opened, so it may still be in use: {error.message}"
    return ""


def _remove_state(folder: str) -> str:
    """Remove the state folder; return why it stays, empty if it does not."""
    returned = os.path.join(folder, RETURNED_FOLDER)
    if os.path.isdir(returned) and os.listdir(returned):
        return f"{RETURNED_FOLDER}/ in it holds the only copy of what workers returned; move it away first"
    shutil.rmtree(folder, ignore_errors=True)
    return "not all of it could be removed" if os.path.isdir(folder) else ""


def _opened(checkout: Checkout) -> Generator[Repository]:
    repo = open_repository(checkout.root, is_person=True)
    try:
        yield repo
    finally:
        repo.close()


def _why_in_use(repo: Repository) -> str:
    """Return which work is under way, so that its state must stay; empty if none is."""
    tasks = [f"{task.owner} works on {task.id}" for task in list_tasks(repo, IN_PROGRESS)]
    landings = [f"{landing.id} is {landing.state}" for landing in list_landings(repo, OPEN_LANDINGS)]
    if tasks or landings:
        return join_words([*tasks, *landings])
    claims = dict.fromkeys(f"{claim.agent} claims {claim.pattern}" for claim in list_claims(repo))
    return list_some(list(claims), _MOST_NAMED)


def _close_workspaces(repo: Repository, removed: list[str], kept: list[Kept]) -> None:
    for workspace in list_local(repo):
        try:
            close_workspace(repo, None, workspace)
            removed.append(workspace.path)
        except (LandlaneError, OSError) as error:
            hint = f"; {error.hint}" if isinstance(error, LandlaneError) and error.hint else ""
            kept.append(Kept(kind="workspace", name=workspace.path, why=f"{error}{hint}"))
    with contextlib.suppress(LandlaneError, OSError):
        folder = workspaces_folder(repo)
        os.rmdir(folder)  # only if nothing is left in it
        removed.append(folder)


def _worktrees_on_own_branches(home: Checkout) -> list[tuple[str, str]]:
    """Return the worktrees on branches of tasks, as (root, git directory), and clones beside them."""
    found: list[tuple[str, str]] = []
    for git_dir, root in list_worktrees(home):
        head = try_git_output(home, "--git-dir", git_dir, "symbolic-ref", "--quiet", "HEAD")
        if head.startswith(_BRANCHES) and os.path.isdir(root):
            found.append((root, git_dir))
    folder = f"{home.root}.workspaces"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in names]
    return found + [(path, "") for path in paths if os.path.isfile(os.path.join(path, ".git", HOME_POINTER))]


def _remove_worktrees(home: Checkout, removed: list[str], kept: list[Kept]) -> None:
    """Remove the checkouts that no record names any more; git refuses those with changes."""
    known = {one.name for one in kept}
    for root, git_dir in _worktrees_on_own_branches(home):
        if root in known:
            continue
        if not git_dir:
            kept.append(Kept(kind="workspace", name=root, why="a clone; remove it by hand"))
            continue
        run_in(home, "worktree", "unlock", root)
        ended = run_in(home, "worktree", "remove", root)
        if ended.exit_code:
            why = (ended.stderr.strip().splitlines() or ["git could not remove it"])[-1]
            kept.append(Kept(kind="workspace", name=root, why=why))
        else:
            removed.append(root)
    with contextlib.suppress(OSError):
        os.rmdir(f"{home.root}.workspaces")


def _delete_branches(home: Checkout, removed: list[str], kept: list[Kept]) -> None:
    try:
        tip = target_tip(home, find_target(home, settings_in_force(home, is_person=True).settings))
    except LandlaneError:
        tip = ""
    refs = _list_refs(home, _BRANCHES)
    for ref, head in commits_at(home, refs).items():
        name = ref.removeprefix("refs/heads/")
        if is_checked_out(home, name):
            kept.append(Kept(kind="branch", name=name, why="a checkout is on it"))
        elif not is_merged(home, head, tip):
            kept.append(Kept(kind="branch", name=name, why=f"it is not merged: git branch -D {name}"))
        else:
            delete_branch(home, name, head)
            removed.append(name)


def _delete_refs(home: Checkout) -> None:
    """Delete the bookkeeping refs, but none that may hold the only copy of a commit."""
    for ref in _list_refs(home, _OWN_REFS):
        if not ref.startswith(_SAVED_REFS) and (ref == JOURNAL_REF or _is_on_a_branch(home, ref)):
            run_in(home, "update-ref", "-d", ref)


def _is_on_a_branch(home: Checkout, ref: str) -> bool:
    """Return whether a branch, here or of a remote, holds the commit of a ref."""
    ended = run_in(home, "rev-list", "--max-count=1", ref, "--not", "--branches", "--remotes")
    return not ended.exit_code and not ended.stdout.strip()


def _own_settings(home: Checkout) -> list[str]:
    """Return the git settings that are ours: recorded as such, or with our values after a lost record."""
    recorded = list_own_limits(home)
    if recorded:
        return recorded
    path = os.path.join(home.common_dir, "config")
    there = {name: try_git_output(home, "config", "--file", path, name) for name in GIT_LIMITS}
    ours = [name for name, value in there.items() if value == GIT_LIMITS[name]]
    return ours if _LOCK_LIMITS <= set(ours) else []


def _remove_settings(home: Checkout) -> list[str]:
    names = _own_settings(home)
    if list_own_limits(home):
        return [f"git config {name}" for name in remove_own_limits(home)]
    path = os.path.join(home.common_dir, "config")
    return [f"git config {name}" for name in names if not write_setting(path, name, None).exit_code]


def _list_refs(home: Checkout, prefix: str) -> list[str]:
    return try_git_output(home, "for-each-ref", "--format=%(refname)", prefix).splitlines()
