"""Worktree entries whose folder is gone: find them, save what only they lead to, and move them aside."""

from __future__ import annotations

import os
import time

from landlane.git.run import git_output, resolve_revision, run_in, try_git_output
from landlane.platform.proc import list_mounts
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout


_KEPT = "leftovers"
_RESCUES = "refs/landlane/rescue/"
_IDENTITY = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "landlane"), ("EMAIL", "landlane@localhost"))
}
# Where removable drives are mounted.
_DRIVES = ("/mnt", "/media", "/run/media", "/Volumes", "/net", "/autofs", "/misc")


@value
class OrphanedWorktree:
    """A worktree entry whose folder is gone; `why_kept` says why it must stay."""

    name: str
    admin: str
    root: str
    changed_at: float
    why_kept: str = ""


def list_folder(folder: str) -> list[str]:
    """Return the names in a folder; none when it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def aside_path(common_dir: str, name: str) -> str:
    """Return a new path in the state folder where something can be kept aside."""
    folder = os.path.join(common_dir, "landlane", _KEPT)
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{name.replace('/', '%')}.{time.time_ns()}")


def find_orphans(home: Checkout) -> list[OrphanedWorktree]:
    """Return the worktree entries whose folder is gone."""
    folder = os.path.join(home.common_dir, "worktrees")
    found: list[OrphanedWorktree] = []
    for name in list_folder(folder):
        admin = os.path.join(folder, name)
        try:
            with open(os.path.join(admin, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
                marker = os.path.join(admin, file.readline().rstrip("\n"))
            at = os.stat(os.path.join(admin, "HEAD")).st_mtime
        except OSError:
            continue  # still being created
        if os.path.lexists(marker):
            continue
        why = "it is locked" if os.path.exists(os.path.join(admin, "locked")) else ""
        why = why or ("its drive may be away" if _is_on_missing_drive(marker) else "")
        found.append(
            OrphanedWorktree(
                name=name, admin=admin, root=os.path.dirname(marker), changed_at=at, why_kept=why
            )
        )
    return found


def _is_on_missing_drive(path: str) -> bool:
    """Return whether a path is on a drive that is not mounted now."""
    mounted = [point for point in list_mounts() if _is_below(path, point)]
    if any(point != "/" and any(_is_below(point, drive) for drive in _DRIVES) for point in mounted):
        return False
    if any(_is_below(path, drive) for drive in _DRIVES):
        return True
    planned = [point for point in _planned_mounts() if point != "/" and _is_below(path, point)]
    return any(point not in mounted for point in planned)


def _planned_mounts() -> list[str]:
    try:
        with open("/etc/fstab", encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.split() for line in file if not line.lstrip().startswith("#")]
    except OSError:
        return []
    return [words[1] for words in lines if len(words) > 1 and words[1].startswith("/")]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def set_orphan_aside(home: Checkout, orphan: OrphanedWorktree) -> tuple[str, str]:
    """Save what only this entry leads to, and move it aside; return the ref that keeps it, and the new path.

    Raises:
        RepositoryError: that cannot be saved; the entry stays.
    """
    commit = _last_work(home, orphan)
    ref = ""
    if commit:
        ref = _free_ref(home, f"{_RESCUES}orphan-{_as_ref(orphan.name)}", commit)
        git_output(home, "update-ref", "-m", f"worktree {orphan.name} is gone", ref, commit)
    kept = aside_path(home.common_dir, f"worktree-{orphan.name}")
    os.rename(orphan.admin, kept)
    return ref, kept


def _last_work(home: Checkout, orphan: OrphanedWorktree) -> str:
    """Return the commit that would be lost with an entry: of what was staged there, or a detached HEAD."""
    head = resolve_revision(home, f"worktrees/{orphan.name}/HEAD^{{commit}}")
    index = os.path.join(orphan.admin, "index")
    if os.path.exists(index):
        tree = run_in(home, "write-tree", variables={"GIT_INDEX_FILE": index})
        staged = "" if tree.exit_code else tree.stdout.strip()
        if staged and staged != resolve_revision(home, f"{head or 'HEAD'}^{{tree}}"):
            parent = ("-p", head) if head else ()
            message = f"What was staged in the worktree {orphan.name}, whose folder is gone"
            made = run_in(home, "commit-tree", staged, *parent, "-m", message, variables=_IDENTITY)
            if not made.exit_code:
                return made.stdout.strip()
    is_kept = not head or bool(
        try_git_output(home, "for-each-ref", "--count=1", f"--contains={head}", "refs")
    )
    return "" if is_kept else head


def _as_ref(name: str) -> str:
    plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name.strip("-") if plain else name.encode("utf-8", "surrogateescape").hex()


def _free_ref(home: Checkout, ref: str, commit: str) -> str:
    """Return the ref, or another name where a different commit is kept under it already."""
    there = resolve_revision(home, ref)
    return ref if there in ("", commit) else f"{ref}-{commit[:10]}"
