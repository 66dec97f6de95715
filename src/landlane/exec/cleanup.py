"""What a run leaves, and clearing it away: processes, scratch, pins and its session; also after a crash.

Every step can be done again and harms nobody else, so several may clear up after the same run at once. What
was written in a workspace is left alone: whoever opens or prunes that one saves it first.
"""

from __future__ import annotations

import os
import shutil
import stat

from landlane.errors import LandlaneError
from landlane.git.lock import git_lock
from landlane.git.run import git_output
from landlane.git.target import commit_at
from landlane.processes.tree import ProcessTree, end_tree, find_members, has_mark, kill_until_quiet
from landlane.sessions.join import leave
from landlane.sessions.read import find_live_session
from landlane.sessions.sandbox_runs import (
    ENDED,
    change_run,
    is_forsaken,
    list_running,
    tree_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.sandbox_runs import Run


PINS = "refs/landlane/exec/"
SCRATCH_PREFIX = "landlane-"
_GRACE_SECONDS = 1.0
_QUIET_SECONDS = 0.2


def checkout_in(scratch: str) -> str:
    """Where the checkout of a run lies that is thrown away with its scratch."""
    return os.path.join(scratch, "checkout")


def clear_forsaken(repo: Repository) -> list[str]:
    """End what goes on although its starter was killed, and clear away what it left; tells what was done."""
    done: list[str] = []
    for run in forsaken(repo):
        try:
            count = clear_away(repo, run, why="its starter was killed")
        except (LandlaneError, OSError) as error:
            done.append(f"{run.id} of {run.agent}, whose starter was killed, cannot be cleared away: {error}")
            continue
        ended = f"{count} process{'es were' if count != 1 else ' was'} ended" if count else "none went on"
        left = f"; its work is in {run.workspace}" if run.workspace else ""
        done.append(f"{run.id} of {run.agent} was left by its starter: {ended}, its scratch is removed{left}")
    return done


def forsaken(repo: Repository) -> list[Run]:
    """Return the runs of this user whose starter is gone."""
    running = list_running(repo)
    return [run for run in running if is_forsaken(repo, run, repo.common_dir, os.geteuid())]


def clear_away(repo: Repository, run: Run, *, why: str = "", exit_code: int | None = None) -> int:
    """End every process of a run and its session, remove its scratch; tells how many processes there were."""
    tree = tree_of(run)
    count = end_all(tree)
    end_session_of(repo, run)
    unpin(repo, run.session)
    remove_scratch(run.scratch)
    change_run(repo, run, "ended", state=ENDED, why=why, exit_code=exit_code)
    return count


def end_all(tree: ProcessTree) -> int:
    """End a tree whose starter is gone; what forks all the time may escape one look, and hardly many."""
    count = end_tree(tree, grace_seconds=_GRACE_SECONDS) if find_members(tree) else 0
    return count + kill_until_quiet(
        tree, lambda one: has_mark(one.pid, tree.id), quiet_seconds=_QUIET_SECONDS
    )


def end_session_of(repo: Repository, run: Run) -> None:
    """Let the session of a run leave, if it has not."""
    session = repo.store.view(lambda snapshot: find_live_session(snapshot, run.session))
    if session is None:
        return
    try:
        leave(repo, session)
    except LandlaneError:
        return  # it left by itself, or lapsed


def unpin(repo: Repository, session_id: str) -> None:
    """Let go of the commit that a throw-away clone stood on."""
    pin = PINS + session_id
    if commit_at(repo.home, pin):
        with git_lock(repo.common_dir, f"unpin {session_id}"):
            git_output(repo.home, "update-ref", "-d", pin)


def remove_scratch(path: str) -> None:
    """Remove a run's private folder, whatever modes were set in it; nothing that is not one."""
    if not os.path.basename(path).startswith(SCRATCH_PREFIX) or not is_own_folder(path):
        return

    def make_removable(remove: Callable[..., Any], failed: str, _: object) -> None:
        del remove
        _make_removable(path, failed)

    shutil.rmtree(path, onerror=make_removable)  # follows no link out of it
    if os.path.lexists(path):
        shutil.rmtree(path, ignore_errors=True)


def is_own_folder(path: str) -> bool:
    """Whether a folder is this user's, and no link."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and os.geteuid() in (found.st_uid, 0)


def _make_removable(scratch: str, path: str) -> None:
    """Some tools write-protect what they unpack: give ourselves the right to remove it, and try again.

    What the scratch lies in is not ours, and keeps its mode.
    """
    try:
        _open_up(scratch, os.path.dirname(path))
        if os.path.isdir(path) and not os.path.islink(path):
            _open_up(scratch, path)
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            os.unlink(path)
    except OSError:
        return  # the second round, or the system's own cleaning, may do better


def _open_up(scratch: str, folder: str) -> None:
    """Let ourselves change a folder of the scratch; one that meanwhile leads elsewhere is left alone."""
    top, found = os.path.realpath(scratch), os.path.realpath(folder)
    if found == top or found.startswith(top + os.sep):
        os.chmod(found, 0o700)
