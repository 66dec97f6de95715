"""Clean up after a sandboxed run: processes, session, pinned commit, scratch folder; also after a crash.

Every step can be repeated, so several processes may clean up after the same run at once. Files in a workspace
are left alone: opening or pruning the workspace saves them first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile

from landlane.errors import LandlaneError, StoreError
from landlane.exec.save_leftovers import save_leftovers
from landlane.files import is_at_or_below
from landlane.git.lock import git_lock
from landlane.git.run import git_output
from landlane.git.target import commit_at
from landlane.ids import short_id
from landlane.processes.tree import ProcessTree, end_tree, find_members, has_mark, kill_until_quiet
from landlane.sessions.join import leave
from landlane.sessions.leases import find_live_session, find_session
from landlane.sessions.sandbox_runs import RunState, change_run, is_abandoned, list_runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.sandbox_runs import Run


PINS = "refs/landlane/exec/"
SCRATCH_PREFIX = "landlane-"
_CLEANUP_LOCK = "cleanup.lock"
_GRACE_SECONDS = 1.0
_QUIET_SECONDS = 0.2


def new_scratch_path() -> str:
    """Return the path of a private folder for one run; it is not created yet."""
    return os.path.join(os.path.realpath(tempfile.gettempdir()), SCRATCH_PREFIX + short_id("x")[2:])


def end_abandoned_runs(repo: Repository) -> list[str]:
    """Clean up after every run whose starter was killed, and return a line about each."""
    lines: list[str] = []
    for run in find_abandoned_runs(repo):
        try:
            count, rescue = _end_run(repo, run)
        except (LandlaneError, OSError) as error:
            lines.append(
                f"{run.id} of {run.agent}, whose starter was killed, cannot be cleared away: {error}"
            )
            continue
        ended = f"{count} process{'es were' if count != 1 else ' was'} ended" if count else "none went on"
        left = f"; its work is in {run.workspace}" if run.workspace else ""
        left += f"; what it had written is saved: landlane rescue restore {rescue}" if rescue else ""
        lines.append(
            f"{run.id} of {run.agent} was left by its starter: {ended}, its scratch is removed{left}"
        )
    return lines


def find_abandoned_runs(repo: Repository) -> list[Run]:
    """Return the runs of this user whose starter is gone."""
    running = list_runs(repo, RunState.RUNNING)
    return [run for run in running if is_abandoned(repo, run, repo.common_dir, os.geteuid())]


def _end_run(repo: Repository, run: Run) -> tuple[int, str]:
    """Remove everything that belongs to a run; return how many processes were ended, and the rescue.

    What cannot be saved is not removed: the next process that cleans up tries again. One process does it at
    a time, so that none saves a clone that another has half removed.
    """
    count = end_processes(run.tree)
    with git_lock(repo.common_dir, f"clean up after {run.id}", name=_CLEANUP_LOCK):
        if run.id not in {other.id for other in list_runs(repo, RunState.RUNNING)}:
            return count, ""
        return count, _remove_run(repo, run)


def _remove_run(repo: Repository, run: Run) -> str:
    rescue = "" if run.workspace else _save_throwaway(repo, run)
    session = repo.store.view(lambda snapshot: find_live_session(snapshot, run.session))
    if session is not None:
        end_session(repo, session)
    unpin(repo, run.session)
    remove_scratch(run.scratch)
    change_run(repo, run, "ended", state=RunState.ENDED, why="its starter was killed", exit_code=None)
    return rescue


def _save_throwaway(repo: Repository, run: Run) -> str:
    """Save what a killed process left in a throwaway clone; return the rescue."""
    if not is_own_scratch(run.scratch):
        return ""
    base = commit_at(repo.home, PINS + run.session) or commit_at(repo.home, PINS + run.worker)
    reason = "its supervisor was killed" if run.worker else "its starter was killed"
    actor = repo.store.view(lambda snapshot: find_session(snapshot, run.session))
    return save_leftovers(repo, actor, run.scratch, base=base, reason=reason, task=run.task)


def end_processes(tree: ProcessTree) -> int:
    """End a process tree whose starter is gone, and return how many processes there were.

    A process that keeps forking can escape a single scan, so the tree is scanned until it stays empty.
    """
    count = end_tree(tree, grace_seconds=_GRACE_SECONDS) if find_members(tree) else 0
    return count + kill_until_quiet(
        tree, lambda process: has_mark(process.pid, tree.id), quiet_seconds=_QUIET_SECONDS
    )


def end_session(repo: Repository, session: Session) -> None:
    """End a session unless it has ended already.

    Raises:
        StoreError: the store is not available.
    """
    try:
        leave(repo, session)
    except StoreError:
        raise
    except LandlaneError:
        return  # it left or expired


def unpin(repo: Repository, session_id: str) -> None:
    """Delete the ref that kept the commit of a throwaway clone."""
    pin = PINS + session_id
    if commit_at(repo.home, pin):
        with git_lock(repo.common_dir, f"unpin {session_id}"):
            git_output(repo.home, "update-ref", "-d", pin)


def remove_scratch(path: str) -> None:
    """Remove the private folder of a run, whatever file modes were set in it. Other paths are left alone."""
    if not is_own_scratch(path):
        return
    shutil.rmtree(path, onerror=lambda _, failed, __: _remove_protected(path, failed))  # follows no links
    shutil.rmtree(path, ignore_errors=True)


def is_own_scratch(path: str) -> bool:
    """Return whether a path is a scratch folder of this user."""
    return os.path.basename(path).startswith(SCRATCH_PREFIX) and _is_own_folder(path)


def _is_own_folder(path: str) -> bool:
    """Return whether a path is a folder of this user and not a link."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and os.geteuid() in (status.st_uid, 0)


def _remove_protected(scratch: str, path: str) -> None:
    """Remove what a tool has write-protected. The folder that contains the scratch keeps its mode."""
    with contextlib.suppress(OSError):  # the second `rmtree`, or the system's own clean-up, may succeed
        _make_writable(scratch, os.path.dirname(path))
        if os.path.isdir(path) and not os.path.islink(path):
            _make_writable(scratch, path)
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            os.unlink(path)


def _make_writable(scratch: str, folder: str) -> None:
    """Make a folder of the scratch writable; one that leads out of it is left alone."""
    resolved = os.path.realpath(folder)
    if is_at_or_below(resolved, os.path.realpath(scratch)):
        os.chmod(resolved, 0o700)
