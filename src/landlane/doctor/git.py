"""Check what all worktrees share: git settings, entries of deleted worktrees, stale lock files."""

from __future__ import annotations

import os
import time

from landlane.app.repair_config import changed_at, describe_active, repair_and_record
from landlane.doctor.finding import Finding
from landlane.git.lock import git_lock
from landlane.git.orphaned_worktrees import find_orphans, set_orphan_aside
from landlane.git.shared_config import (
    GIT_LIMITS,
    find_config_damage,
    missing_limits,
    remember_config,
    set_git_limits,
)
from landlane.git.stale_locks import find_lock_files, set_lock_aside
from landlane.platform.file_users import can_see_all_processes, describe_process, find_file_users
from landlane.platform.proc import can_see_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.stale_locks import LockFile
    from landlane.platform.file_users import FileUsers
    from landlane.repository import Repository


# A lock younger than this may still be in use. Inside a container the processes outside are hidden, and one
# of them may hold the lock for as long as the slowest commit hook takes.
_YOUNG_SECONDS, _YOUNG_IN_CONTAINER_SECONDS = 10.0, 600.0


# ------------------------------------------------------------------------------------ who was active


# ------------------------------------------------------------------------------------------ settings


def look_at_settings(repo: Repository, is_fixing: bool) -> Finding:
    """Check the git settings that all worktrees share, and the limits that Landlane sets."""
    repaired = repair_and_record(repo, is_thorough=is_fixing)
    left = find_config_damage(repo.home)
    if left:
        active = describe_active(repo, changed_at(os.path.join(repo.common_dir, "config")))
        hint = "`landlane doctor --fix` puts back what was there before"
        return Finding(
            is_ok=False, found=f"{'; '.join(flip.describe() for flip in left)} ({active})", hint=hint
        )
    if is_fixing:
        remember_config(repo.home)
        repaired += [f"{line} set" for line in set_git_limits(repo.home)]
    missing = missing_limits(repo.home)
    if repaired:
        return Finding(is_ok=True, found="mended: " + "; ".join(repaired), is_enforced=not missing)
    if missing:
        named = ", ".join(f"{name}={GIT_LIMITS[name]}" for name in missing)
        hint = f"the first workspace sets {named}; so does `landlane doctor --fix`"
        return Finding(
            is_ok=True, found="as they should be; limits not set yet", hint=hint, is_enforced=False
        )
    return Finding(is_ok=True, found="as they should be, limits set")


# ----------------------------------------------------------------------------------------- worktrees


def look_at_worktrees(repo: Repository, is_fixing: bool) -> Finding:
    """Check for entries of worktrees whose folder no longer exists."""
    orphans = find_orphans(repo.home)
    gone = [orphan for orphan in orphans if not orphan.why_kept]
    kept = [f"{one.name}: {one.root} is not there, but {one.why_kept}" for one in orphans if one.why_kept]
    if not gone:
        return Finding(is_ok=True, found="; ".join(kept) or "every entry has its folder")
    if not is_fixing:
        lines = [
            f"{one.name}: {one.root} is gone ({describe_active(repo, int(one.changed_at * 1000))})"
            for one in gone
        ]
        hint = "if it was moved: git worktree repair; else `landlane doctor --fix` saves and removes it"
        return Finding(is_ok=False, found="; ".join(lines + kept), hint=hint)
    done: list[str] = []
    with git_lock(repo.common_dir, "remove entries of lost worktrees"):
        for orphan in gone:
            ref, place = set_orphan_aside(repo.home, orphan)
            saved = f"its work is kept as {ref}" if ref else "nothing of it was at stake"
            done.append(f"removed {orphan.name}; {saved}; the entry is kept in {place}")
    return Finding(is_ok=True, found="; ".join(done + kept))


# ---------------------------------------------------------------------------------------- lock files


def look_at_locks(repo: Repository, is_fixing: bool) -> Finding:
    """Check for git lock files: abandoned ones, and those that may be in use."""
    if not (locks := find_lock_files(repo.common_dir)):
        return Finding(is_ok=True, found="none")
    if not is_fixing:
        use = find_file_users({lock.path for lock in locks}, _folders(repo))
        return _tell_locks(repo, [(lock, _why_kept(lock, use)) for lock in locks])
    done: list[str] = []
    left: list[tuple[LockFile, str]] = []
    # While we hold our own lock, no Landlane command creates one.
    with git_lock(repo.common_dir, "remove old lock files"):
        use = find_file_users({lock.path for lock in locks}, _folders(repo))
        for lock in locks:
            why = _why_kept(lock, use)
            if why:
                left.append((lock, why))
            elif place := set_lock_aside(repo.common_dir, lock):
                active = describe_active(repo, int(lock.changed_at * 1000))
                done.append(f"{_name(repo, lock)} was forsaken and is now {place} ({active})")
    if left:
        finding = _tell_locks(repo, left)
        return Finding(is_ok=finding.is_ok, found="; ".join([*done, finding.found]), hint=finding.hint)
    return Finding(is_ok=True, found="; ".join(done) or "none")


def _folders(repo: Repository) -> list[str]:
    """Return the folders in which a git process of this repository may run."""
    admins = os.path.join(repo.common_dir, "worktrees")
    roots = [repo.home.root, repo.common_dir]
    for name in os.listdir(admins) if os.path.isdir(admins) else []:
        try:
            with open(
                os.path.join(admins, name, "gitdir"), encoding="utf-8", errors="surrogateescape"
            ) as file:
                roots.append(os.path.dirname(os.path.realpath(file.readline().rstrip("\n"))))
        except OSError:
            continue
    return roots


def _why_kept(lock: LockFile, use: FileUsers) -> str:
    """Return why a lock file may still be in use; empty when its owner has certainly ended."""
    if not can_see_processes():
        return "this system does not tell who has it open"
    if holders := use.openers.get(lock.path):
        return f"{describe_process(holders[0])} has it open"
    if use.gits:
        return f"{describe_process(use.gits[0])} works on this repository"
    if use.hidden:
        return f"{describe_process(use.hidden[0])} of another user may hold it"
    young = _YOUNG_SECONDS if can_see_all_processes() else _YOUNG_IN_CONTAINER_SECONDS
    age = time.time() - lock.changed_at
    return (
        "" if age > young else f"it is {max(age, 0):.0f} seconds old, and less than {young:.0f} prove nothing"
    )


def _tell_locks(repo: Repository, locks: list[tuple[LockFile, str]]) -> Finding:
    lines: list[str] = []
    for lock, why in locks:
        active = describe_active(repo, int(lock.changed_at * 1000))
        lines.append(f"{_name(repo, lock)}: {why or 'nobody holds it any more'} ({active})")
    is_stale = any(not why for _, why in locks)
    if is_stale:
        return Finding(
            is_ok=False, found="; ".join(lines), hint="`landlane doctor --fix` takes forsaken ones away"
        )
    # A lock in use is only a problem if it stays.
    return Finding(
        is_ok=True,
        found="; ".join(lines),
        hint="if git stays refused, look again in a while",
        is_enforced=False,
    )


def _name(repo: Repository, lock: LockFile) -> str:
    return os.path.relpath(lock.path, repo.common_dir)
