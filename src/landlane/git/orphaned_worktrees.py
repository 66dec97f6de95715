"""What git left behind in a repository's folder: lock files, and entries of worktrees that are gone."""

from __future__ import annotations

import os
import time

from landlane.git.run import git_output, resolve_revision, run_in, try_git_output
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout


_KEPT = "leftovers"
_RESCUES = "refs/landlane/rescue/"
_NOBODY = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "landlane"), ("EMAIL", "landlane@localhost"))
}
# Where drives are put that can be taken away.
_DRIVES = ("/mnt", "/media", "/run/media", "/Volumes", "/net", "/autofs", "/misc")


@value
class OrphanedWorktree:
    """An entry of a worktree whose folder is not there; `why_kept` tells why it must stay."""

    name: str
    admin: str
    root: str
    changed_at: float
    why_kept: str = ""


def names_in(folder: str) -> list[str]:
    """List a folder; empty when it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def place_for(common_dir: str, name: str) -> str:
    """Return a new path in the state folder where something can be kept aside."""
    folder = os.path.join(common_dir, "landlane", _KEPT)
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{name.replace('/', '%')}.{time.time_ns()}")


def find_orphans(home: Checkout) -> list[OrphanedWorktree]:
    """The entries of worktrees whose folder is not there."""
    folder = os.path.join(home.common_dir, "worktrees")
    found: list[OrphanedWorktree] = []
    for name in names_in(folder):
        admin = os.path.join(folder, name)
        try:
            with open(os.path.join(admin, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
                marker = os.path.join(admin, file.readline().rstrip("\n"))
            at = os.stat(os.path.join(admin, "HEAD")).st_mtime
        except OSError:
            continue  # half made: whoever makes it is still at it
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
    """Whether a path lies where a drive belongs that is not mounted now."""
    mounted = [point for point in _mount_points("/proc/self/mounts", 1) if _is_below(path, point)]
    if any(point != "/" and any(_is_below(point, drive) for drive in _DRIVES) for point in mounted):
        return False
    if any(_is_below(path, drive) for drive in _DRIVES):
        return True
    planned = [point for point in _mount_points("/etc/fstab", 1) if point != "/" and _is_below(path, point)]
    return any(point not in mounted for point in planned)


def _mount_points(table: str, column: int) -> list[str]:
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.split() for line in file if not line.lstrip().startswith("#")]
    except OSError:
        return []
    return [line[column] for line in lines if len(line) > column and line[column].startswith("/")]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def set_orphan_aside(home: Checkout, orphan: OrphanedWorktree) -> tuple[str, str]:
    """Save what only this entry leads to, then put it aside; tells the ref that keeps it, and the place.

    Raises:
        RepositoryError: what it leads to cannot be saved; the entry stays.
    """
    commit = _last_work(home, orphan)
    ref = ""
    if commit:
        ref = _free_ref(home, f"{_RESCUES}orphan-{_as_ref(orphan.name)}", commit)
        git_output(home, "update-ref", "-m", f"worktree {orphan.name} is gone", ref, commit)
    kept = place_for(home.common_dir, f"worktree-{orphan.name}")
    os.rename(orphan.admin, kept)
    return ref, kept


def _last_work(home: Checkout, orphan: OrphanedWorktree) -> str:
    """The commit that would be lost with an entry: what was staged there, or a HEAD on no branch."""
    head = resolve_revision(home, f"worktrees/{orphan.name}/HEAD^{{commit}}")
    index = os.path.join(orphan.admin, "index")
    if os.path.exists(index):
        tree = run_in(home, "write-tree", variables={"GIT_INDEX_FILE": index})
        staged = "" if tree.exit_code else tree.stdout.strip()
        if staged and staged != resolve_revision(home, f"{head or 'HEAD'}^{{tree}}"):
            parent = ("-p", head) if head else ()
            message = f"What was staged in the worktree {orphan.name}, whose folder is gone"
            made = run_in(home, "commit-tree", staged, *parent, "-m", message, variables=_NOBODY)
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
    """The ref itself, or one beside it where another commit is kept under it already."""
    there = resolve_revision(home, ref)
    return ref if there in ("", commit) else f"{ref}-{commit[:10]}"
