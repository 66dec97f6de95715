"""Check the git settings and lock files that all worktrees share, and the worktrees themselves."""

from __future__ import annotations

import os
import time

from landlane.app.repair_config import changed_at, describe_active, repair_and_record
from landlane.doctor.check import Check, advisory, failed, fixed, passed
from landlane.git.hooks.hooks_path import load_installed_hooks
from landlane.git.leftovers import find_lock_files, find_orphans, set_lock_aside, set_orphan_aside
from landlane.git.lock import git_lock
from landlane.git.remove_checkout import list_worktrees
from landlane.git.shared_config import (
    GIT_LIMITS,
    find_config_damage,
    missing_limits,
    remember_config,
    set_git_limits,
)
from landlane.landing.unattended import list_unattended
from landlane.platform.file_users import can_see_all_processes, describe_process, find_file_users
from landlane.platform.process import can_see_processes
from landlane.resident.start import start_queue_runner
from landlane.setup.install_git_hooks import install_git_hooks
from landlane.text import home_path, list_some
from landlane.values import replace
from landlane.workspaces.misplaced import STRAY, find_misplaced
from landlane.workspaces.model import CLONE
from landlane.workspaces.moved import find_former_place, follow_move
from landlane.workspaces.records import list_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.leftovers import LockFile
    from landlane.platform.file_users import FileUsers
    from landlane.repository import Repository


# A lock younger than this may still be in use. Inside a container the processes outside are hidden, and one
# of them may hold the lock for as long as the slowest commit hook takes.
_YOUNG_SECONDS, _YOUNG_IN_CONTAINER_SECONDS = 10.0, 600.0
_MOST_NAMED = 5


def check_settings(repo: Repository, is_fixing: bool) -> Check:
    """Check the git settings that all worktrees share, and the limits that Landlane sets."""
    repaired = repair_and_record(repo, is_thorough=is_fixing)
    damage = find_config_damage(repo.home)
    if damage:
        active = describe_active(repo, changed_at(os.path.join(repo.common_dir, "config")))
        found = f"{'; '.join(flip.describe() for flip in damage)} ({active})"
        return failed(found, "landlane doctor --fix")
    if is_fixing:
        remember_config(repo.home)
        repaired += [f"{line} set" for line in set_git_limits(repo.home)]
    missing = missing_limits(repo.home)
    if repaired:
        return fixed("; ".join(repaired), is_enforced=not missing)
    if missing:
        named = ", ".join(f"{name}={GIT_LIMITS[name]}" for name in missing)
        return advisory(f"not set yet, but the first workspace sets them: {named}", "landlane doctor --fix")
    return passed("as they should be")


def check_worktrees(repo: Repository, is_fixing: bool) -> Check:
    """Check for entries of worktrees whose folder no longer exists."""
    orphans = find_orphans(repo.home)
    gone = [orphan for orphan in orphans if not orphan.why_kept]
    kept = [f"{one.name}: {one.root} is missing, but {one.why_kept}" for one in orphans if one.why_kept]
    if not gone:
        return passed("; ".join(kept) or "every entry has its folder")
    if not is_fixing:
        lines = [
            f"{one.name}: {one.root} is gone ({describe_active(repo, int(one.changed_at * 1000))})"
            for one in gone
        ]
        hint = (
            "repair it if it was moved (git worktree repair), else save and remove it: landlane doctor --fix"
        )
        return failed("; ".join(lines + kept), hint)
    done: list[str] = []
    with git_lock(repo.common_dir, "remove entries of lost worktrees"):
        for orphan in gone:
            ref, place = set_orphan_aside(repo.home, orphan)
            saved = f"its work is kept as {ref}" if ref else "it had no unsaved work"
            done.append(f"removed {orphan.name}; {saved}; the entry is kept in {place}")
    return fixed("; ".join(done + kept))


def check_place(repo: Repository, *, is_fixing: bool) -> Check:
    """Check whether the repository was moved; with `is_fixing`, let hooks, workspaces and landings follow."""
    former = find_former_place(repo)
    if not former:
        return passed("where it was")
    place = home_path(os.path.dirname(former))
    if not is_fixing:
        found = f"moved here from {place}; its git hooks and workspaces still name that place"
        return failed(found, "landlane doctor --fix")
    moved = follow_move(repo, former)
    if load_installed_hooks(repo.common_dir) is not None:
        clones = [one.path for one in list_open(repo) if one.kind == CLONE]
        install_git_hooks(repo.home, clones)
        moved.insert(0, "git hooks")
    return fixed(f"moved here from {place}; followed: {', '.join(moved) or 'nothing to change'}")


def check_landings(repo: Repository, is_fixing: bool) -> Check:
    """Check for landings whose process was killed; with `is_fixing`, run the queue in the background."""
    lost = [landing.id for landing in list_unattended(repo)]
    if not lost:
        return passed("none is without a process")
    if is_fixing:
        trouble = start_queue_runner(repo)
        return failed(trouble) if trouble else fixed(f"the queue runs again for {', '.join(lost)}")
    found = f"{', '.join(lost)}: the process that ran the queue was killed"
    return failed(found, "take over: landlane queue run --drain")


def check_locks(repo: Repository, is_fixing: bool) -> Check:
    """Check for git lock files: abandoned ones, and those that may be in use."""
    if not (locks := find_lock_files(repo.common_dir)):
        return passed("none")
    worktrees = [os.path.realpath(os.path.join(entry, root)) for entry, root in list_worktrees(repo.home)]
    folders = [repo.home.root, repo.common_dir, *worktrees]
    if not is_fixing:
        users = find_file_users({lock.path for lock in locks}, folders)
        return _report_locks(repo, [(lock, _why_kept(lock, users)) for lock in locks])
    done: list[str] = []
    kept: list[tuple[LockFile, str]] = []
    # While we hold our own lock, no Landlane command creates one.
    with git_lock(repo.common_dir, "remove old lock files"):
        users = find_file_users({lock.path for lock in locks}, folders)
        for lock in locks:
            why = _why_kept(lock, users)
            if why:
                kept.append((lock, why))
            elif place := set_lock_aside(repo.common_dir, lock):
                done.append(_describe_lock(repo, lock, f"was abandoned and is now {place}", " "))
    if kept:
        check = _report_locks(repo, kept)
        return replace(check, found="; ".join([*done, check.found]), is_enforced=True)
    return fixed("; ".join(done)) if done else passed("none")


def _why_kept(lock: LockFile, users: FileUsers) -> str:
    """Return why a lock file may still be in use; empty when its owner has certainly ended."""
    if not can_see_processes():
        return "this system does not show who has it open"
    if holders := users.openers.get(lock.path):
        return f"{describe_process(holders[0])} has it open"
    if users.gits:
        return f"{describe_process(users.gits[0])} works on this repository"
    if users.hidden:
        return f"{describe_process(users.hidden[0])} of another user may hold it"
    young = _YOUNG_SECONDS if can_see_all_processes() else _YOUNG_IN_CONTAINER_SECONDS
    age = time.time() - lock.changed_at
    return (
        "" if age > young else f"it is {max(age, 0):.0f} seconds old, and less than {young:.0f} prove nothing"
    )


def _report_locks(repo: Repository, locks: list[tuple[LockFile, str]]) -> Check:
    lines = [_describe_lock(repo, lock, why or "abandoned", ": ") for lock, why in locks]
    if any(not why for _, why in locks):
        return failed("; ".join(lines), "landlane doctor --fix")
    # A lock in use is only a problem if it stays.
    return advisory("; ".join(lines), "if git keeps refusing, check again later: landlane doctor")


def _describe_lock(repo: Repository, lock: LockFile, state: str, separator: str) -> str:
    active = describe_active(repo, int(lock.changed_at * 1000))
    return f"{os.path.relpath(lock.path, repo.common_dir)}{separator}{state} ({active})"


def check_misplaced(repo: Repository, is_fixing: bool) -> Check:
    """Check for changes in the wrong checkout; moving them would change a workspace in use."""
    del is_fixing
    if not list_open(repo):
        return passed("no workspace is open")
    misplaced = [change for change in find_misplaced(repo) if change.state == STRAY]
    if not misplaced:
        return passed("none")
    roots = ", ".join(sorted({change.root for change in misplaced}))
    named = list_some([f"{change.path} of {change.agent}" for change in misplaced], _MOST_NAMED)
    hint = "move them to their workspaces: landlane misplaced move"
    return failed(f"in {roots}: {named}", hint)
